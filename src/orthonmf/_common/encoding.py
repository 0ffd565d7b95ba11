"""Python values as JSON and back, bit for bit: floats as hexadecimal, tuples and NumPy's numbers told from lists and Python's."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from reprlib import repr as brief
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..exceptions import InvalidInputError, ModelFormatError
from .typing import Array

__all__ = ["Ragged", "decode", "encode", "record", "unfit"]

Record = TypeVar("Record")

# NumPy's types of numbers that keep their value on the way through Python's.
NUMBERS = ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float16", "float32", "float64")
# No parameter is nested deeper than an option that is a list of numbers.
DEEPEST = 8


def encode(name: str, value: Any, depth: int = 0) -> Any:
    """A value as JSON: None, bool, int, str and list as they are, all else as an object with one entry that says what it is."""
    if depth > DEEPEST:
        raise InvalidInputError(f"{name} is nested more than {DEEPEST} deep; it cannot be stored.")
    if value is None or type(value) in (bool, int) or isinstance(value, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if isinstance(value, list):
        return [encode(name, each, depth + 1) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(name, each, depth + 1) for each in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(f"{name}[{key!r}]", each, depth + 1) for key, each in value.items()}}
    if isinstance(value, np.ndarray | np.generic) and value.ndim <= 1 and value.dtype.name in NUMBERS:
        return {value.dtype.name: encode(name, value.tolist(), depth + 1)}
    shown, better = " ".join(brief(value).split()), "an int or None" if name == "random_state" else "a list or None"
    raise InvalidInputError(
        f"{name}={shown} cannot be stored: expected None, numbers, text, or lists, dicts and one-dimensional arrays of them. Use "
        f"set_params before saving, for example with {better}."
    )


def decode(name: str, value: Any, depth: int = 0) -> Any:
    """The value that ``encode`` made this of."""
    if depth > DEEPEST:
        raise ModelFormatError(f"{name} is nested more than {DEEPEST} deep.")
    if isinstance(value, list):
        return [decode(name, each, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    kind, content = next(iter(value.items())) if len(value) == 1 else (None, None)
    if kind == "float" and isinstance(content, str):
        return _float(name, content)
    if kind == "tuple" and isinstance(content, list):
        return tuple(decode(name, each, depth + 1) for each in content)
    if kind == "dict" and isinstance(content, dict):
        return {key: decode(name, each, depth + 1) for key, each in content.items()}
    if kind in NUMBERS:
        return _numbers(name, str(kind), decode(name, content, depth + 1))
    raise ModelFormatError(f"{name} is stored as {brief(value)}, which means nothing.")


def _float(name: str, text: str) -> float:
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError) as error:
        raise ModelFormatError(f"{name} is stored as {brief(text)}; expected a hexadecimal float.") from error


def _numbers(name: str, dtype: str, values: Any) -> Any:
    """A scalar or an array of one of NumPy's types, where it holds the values exactly."""
    plain = values if isinstance(values, list) else [values]
    if not all(_held(each, np.dtype(dtype)) for each in plain):
        raise ModelFormatError(f"{name} is stored as {brief(values)}; expected numbers of type {dtype}.")
    numbers = np.array(plain, dtype=dtype)
    return numbers if isinstance(values, list) else numbers[0]


def _held(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether one of NumPy's types holds a value of Python exactly."""
    if type(value) is not type(np.zeros(1, dtype).item()):
        return False
    if dtype.kind in "iu":
        return bool(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)
    with np.errstate(over="ignore", under="ignore"):
        return bool(value != value or dtype.type(value).item() == value)


def record(kind: type[Record], content: dict[str, Any], name: str) -> Record:
    """A dataclass from its fields, each of the type that its declaration asks for; fields with a default may be missing."""
    hints = get_type_hints(kind)
    needed = {field.name for field in fields(kind) if field.default is MISSING}  # type: ignore[arg-type]
    if not needed <= set(content) <= set(hints):
        raise ModelFormatError(f"{name} is stored as {brief(content)}; expected the fields of {kind.__name__}.")
    made = kind(**content)
    if complaint := unfit(made):
        raise ModelFormatError(f"{name}.{complaint}.")
    return made


def unfit(instance: Any) -> str | None:
    """The first field of a dataclass that is not of the type that its declaration asks for, in words; None where all are."""
    for name, hint in get_type_hints(type(instance)).items():
        if not _fits(value := getattr(instance, name), hint):
            return f"{name} is {brief(value)}; expected {hint}"
    return None


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a plain type, of a union of such, or a tuple of one of them."""
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        return type(value) is tuple and all(_fits(each, get_args(hint)[0]) for each in value)
    return value is None if hint in (None, NoneType) else type(value) is hint


@dataclass(frozen=True)
class Ragged:
    """Arrays of different lengths, some of them missing, as two arrays.

    Attributes
    ----------
    values : ndarray
        All of them, one behind the other.
    lengths : ndarray of int
        The length of each; −1 where there is none.
    """

    values: Array
    lengths: Array

    @classmethod
    def of(cls, arrays: list[Any], empty: Array) -> Ragged:
        """From a list of arrays, tuples or None; ``empty`` stands for an array without entries."""
        lengths = np.array([-1 if each is None else len(each) for each in arrays], dtype=np.int64)
        present = [np.asarray(each, dtype=empty.dtype) for each in arrays if each is not None]
        return cls(np.concatenate([empty, *present]), lengths)

    def split(self, name: str) -> list[Array | None]:
        """The list of arrays again."""
        lengths = np.maximum(self.lengths, 0)
        if (self.lengths < -1).any() or (lengths > len(self.values)).any() or int(lengths.sum()) != len(self.values):
            raise ModelFormatError(f"{name} has {len(self.values)} rows, which its lengths do not sum to.")
        stops = np.cumsum(lengths)
        return [None if length < 0 else self.values[stop - length : stop].copy() for length, stop in zip(self.lengths, stops, strict=True)]
