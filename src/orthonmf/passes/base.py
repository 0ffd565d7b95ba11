"""What a pass is, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, Self

import numpy as np

from .._common.typing import Array

# Numbers of each item, by name; the first axis runs over the items. A pass gets those of its block, as arrays; to everyone else a column
# is a handle of the engine that made it, which may hold it elsewhere.
Columns = Mapping[str, Any]

#: Columns that every engine offers: the position of each item, and its weight w.
INDEX, GIVEN_WEIGHT = "index", "given weight"


def host(column: Any) -> Array:
    """A column as one array of this process."""
    return column if isinstance(column, np.ndarray) else column.host()


class Additive:
    """A frozen record whose fields add: the sum over blocks is the sum over the data."""

    def __add__(self, other: Self) -> Self:
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in names))


@dataclass(frozen=True)
class Count(Additive):
    """Items seen: the total of a pass that finds columns alone."""

    count: int


@dataclass(frozen=True)
class Found:
    """What a pass finds in a block, or in all of them.

    Attributes
    ----------
    total
        Adds (``+``), and has a ``count`` of items, so that a block lost or counted twice is noticed.
    columns : dict
        Numbers of each item, by name: arrays of a block, or, of all items, handles of the engine.
    """

    total: Any
    columns: dict[str, Any] = field(default_factory=dict)


class Pass(Protocol):
    """What is computed of one block of items.

    A pass that reads a column and finds it anew may name that as ``changes``, and have a method ``after``: this pass and one of the same
    class before it as one, with the same bits. One that only compares a column has ``bare``, which finds the same without it.
    """

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the columns it reads."""

    def __call__(self, items: Any, columns: Columns) -> Found:
        """The totals and columns of one block."""
