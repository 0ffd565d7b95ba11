"""Matrices of numbers in a .mat of version 5 to 7, full or sparse.

Every type and size is checked before it is used. scipy's reader does not: one byte changed can end the process, or worse.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from .base import compressed

# Numbers as they are stored, by the type of an element; a class of matrices may store its own more narrowly.
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_SPARSE_CLASS = 5
_COMPLEX = 0x0800
_HEADER = 128  # bytes: text, version, order of the bytes


@dataclass(frozen=True)
class _Element:
    """A piece of the file: its type, its bytes, and their order."""

    kind: int
    content: memoryview
    order: str

    def numbers(self) -> Array:
        if self.kind not in _STORED:
            raise InvalidInputError(f"is damaged: there is no type {self.kind} of numbers.")
        return np.frombuffer(self.content, dtype=self.order + _STORED[self.kind])

    def parts(self) -> Iterator[_Element]:
        return _elements(self.content, self.order)


def variables(content: bytes) -> dict[str, Callable[[], Any]]:
    """The matrices of real numbers by name; each is made when it is called for."""
    order = {b"IM": "<", b"MI": ">"}[content[126:_HEADER]]
    found: dict[str, Callable[[], Any]] = {}
    for element in _elements(memoryview(content)[_HEADER:], order):
        if element.kind == _COMPRESSED:
            element = next(_elements(memoryview(zlib.decompress(element.content)), order))
        if element.kind == _MATRIX:
            found |= _variable(element)
    return found


def by_columns(values: Array, rows: Array, pointers: Array, n_rows: int) -> Any:
    """A sparse array from MATLAB's three vectors; the first two may have room to spare."""
    used = int(pointers[-1])
    return compressed("csc", (values[:used], rows[:used], pointers), (n_rows, len(pointers) - 1))


def _elements(content: memoryview, order: str) -> Iterator[_Element]:
    at = 0
    while at < len(content):
        if at + 8 > len(content):
            raise InvalidInputError("is cut off.")
        kind, size = (int(word) for word in np.frombuffer(content[at : at + 8], dtype=f"{order}u4"))
        start = at + 8
        if kind >> 16:  # at most four bytes, beside their size
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        stop = start + size
        if stop > len(content) or (start == at + 4 and size > 4):
            raise InvalidInputError(f"is cut off, or damaged: an element of {size} bytes does not fit in.")
        yield _Element(kind, content[start:stop], order)
        at = stop if kind == _COMPRESSED else stop + (at - stop) % 8


def _variable(matrix: _Element) -> dict[str, Callable[[], Any]]:
    """A matrix by its name; nothing where it is not one of real numbers in rows and columns."""
    head = [part for part in islice(matrix.parts(), 3) if part.kind in _STORED]
    if len(head) < 3:  # as the unnamed ones that MATLAB adds for its objects
        return {}
    flags, shape = int(head[0].numbers()[0]), tuple(int(side) for side in head[1].numbers())
    kind, name = flags & 0xFF, bytes(head[2].content).decode("latin-1")
    if len(shape) != 2 or flags & _COMPLEX or kind not in (_SPARSE_CLASS, *_CLASSES):
        return {}
    return {name: lambda: _sparse(matrix, shape) if kind == _SPARSE_CLASS else _full(matrix, shape, _CLASSES[kind])}


def _full(matrix: _Element, shape: tuple[int, ...], dtype: str) -> Array:
    values = next(islice(matrix.parts(), 3, None)).numbers()
    if len(values) != prod(shape):
        raise InvalidInputError(f"is damaged: {len(values)} numbers do not make a matrix of shape {shape}.")
    full: Array = values.astype(dtype).reshape(shape, order="F")
    return full


def _sparse(matrix: _Element, shape: tuple[int, ...]) -> Any:
    rows, pointers, values = (part.numbers() for part in islice(matrix.parts(), 3, 6))
    if len(pointers) != shape[1] + 1:
        raise InvalidInputError(f"is damaged: {len(pointers)} pointers for {shape[1]} columns.")
    return by_columns(values.astype(np.float64), rows, pointers, shape[0])
