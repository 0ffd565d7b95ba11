"""Passes that say of labels under bounds how good they are, from what the items cost in every component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Items
from .base import Additive, Columns, Found
from .hard import item_costs


@dataclass(frozen=True)
class ArcLengths:
    """What moves cost at least.

    Attributes
    ----------
    count : int
    least : ndarray of shape (n_components, n_components)
        min (c_il − c_ij) over the items i of component j, by j and l; inf where j has none.
    """

    count: int
    least: Array

    def __add__(self, other: ArcLengths) -> ArcLengths:
        return ArcLengths(self.count + other.count, np.minimum(self.least, other.least))


@dataclass(frozen=True)
class Arcs:
    """What it costs at least to move an item from one component to another."""

    centers: Array
    reads: ClassVar = ("labels",)

    def __call__(self, items: Items, columns: Columns) -> Found:
        return self.of(item_costs(items, self.centers), columns)

    def of(self, costs: Array, columns: Columns) -> Found:
        """The same from the costs (k, block)."""
        labels = columns["labels"]
        rise = costs - _of_label(costs, labels)
        least = np.full((len(costs), len(costs)), np.inf)
        for goal, each in enumerate(rise):
            np.minimum.at(least[:, goal], labels, each)
        return Found(ArcLengths(len(labels), least))


@dataclass(frozen=True)
class WorthSums(Additive):
    """Σ c of the labels, and Σ c + price of the labels less the least of every item."""

    count: int
    cost: float
    excess: float


@dataclass(frozen=True)
class Worth:
    """What labels cost, and what they cost more, at some prices, than the cheapest component of every item."""

    centers: Array
    prices: Array
    reads: ClassVar = ("labels",)

    def __call__(self, items: Items, columns: Columns) -> Found:
        return self.of(item_costs(items, self.centers), columns)

    def of(self, costs: Array, columns: Columns) -> Found:
        """The same from the costs (k, block)."""
        labels, reduced = columns["labels"], costs + self.prices[:, None]
        excess = _of_label(reduced, labels) - reduced.min(axis=0)
        return Found(WorthSums(len(labels), float(_of_label(costs, labels).sum()), float(excess.sum())))


def _of_label(costs: Array, labels: Labels) -> Array:
    """Of (k, block) numbers, those of every item's label."""
    found: Array = costs[labels, np.arange(len(labels), like=labels)]
    return found
