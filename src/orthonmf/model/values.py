"""What a search holds, as JSON and arrays and back, bit for bit: runs, and the totals of passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from .._common.encoding import decode, encode
from .._common.typing import Array
from ..engines.journal import Note
from ..passes import audit, base, columns, critical, hard, moves, priced, raw, samples, several, state, swaps
from ..progress import Temperature
from ..search.anneal import Split
from ..search.bounded.bounds import Bounds
from ..search.factorize import Progress
from ..search.number import Number
from ..search.run import Answer, Run, Stage
from ..search.status import Status

__all__ = ["flattened", "restored"]

_PASSES = (audit, base, columns, critical, hard, moves, priced, raw, samples, several, state, swaps)
_TOTALS = {name: kind for module in _PASSES for name, kind in vars(module).items() if isinstance(kind, type) and is_dataclass(kind)}
_KINDS = {**_TOTALS, **{kind.__name__: kind for kind in (Note, Progress, Run, Answer, Bounds, Temperature, Split, Number)}}
_ENUMS = {kind.__name__: kind for kind in (Stage, Status)}


def flattened(value: Any, arrays: dict[str, Array]) -> Any:
    """A run as JSON, its arrays apart."""
    if isinstance(value, np.ndarray):
        arrays[name := f"{len(arrays):06d}"] = value
        return {"array": name}
    if isinstance(value, Enum):
        return {"member": [type(value).__name__, value.name]}
    if is_dataclass(value):
        return {"record": [type(value).__name__, {each.name: flattened(getattr(value, each.name), arrays) for each in fields(value)}]}
    if isinstance(value, tuple | list):
        return {"several": [type(value) is tuple, [flattened(each, arrays) for each in value]]}
    if isinstance(value, dict):
        return {"pairs": [[flattened(part, arrays) for part in pair] for pair in value.items()]}
    return encode("progress", value)


def restored(value: Any, arrays: dict[str, Array]) -> Any:
    """What ``flattened`` made this of. Of classes, only those of a run and of passes are made; anything else is refused."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "member":
        return _ENUMS[content[0]][content[1]]
    if kind == "record":
        return _KINDS[content[0]](**{name: restored(each, arrays) for name, each in content[1].items()})
    if kind == "several":
        return _several((restored(each, arrays) for each in content[1]), content[0])
    if kind == "pairs":
        return {restored(key, arrays): restored(each, arrays) for key, each in content}
    return decode("progress", value)


def _several(values: Iterable[Any], is_tuple: bool) -> Any:
    return tuple(values) if is_tuple else list(values)
