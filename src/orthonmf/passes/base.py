"""What a pass is, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, Self

from .._common.typing import Array

# Numbers of each item, by name; the first axis runs over the items.
Columns = Mapping[str, Array]

#: The column that every engine offers: the position of each item.
INDEX = "index"


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
    columns : dict of arrays
        Numbers of each item, by name; the first axis runs over the items.
    """

    total: Any
    columns: dict[str, Array] = field(default_factory=dict)


class Pass(Protocol):
    """What is computed of one block of items."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the columns it reads."""

    def __call__(self, items: Any, columns: Columns) -> Found:
        """The totals and columns of one block."""
