"""Passes that read columns alone, and no items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._common.arithmetic import by_label, shifted
from .._common.typing import Array, Labels
from .base import GIVEN_WEIGHT, INDEX, Additive, Columns, Count, Found


@dataclass(frozen=True)
class Renamed:
    """Column ``labels``: label j becomes names[j], which need not be a label."""

    names: Array
    reads: ClassVar = ("labels",)

    def __call__(self, items: None, columns: Columns) -> Found:
        return Found(Count(len(columns["labels"])), {"labels": by_label(self.names, columns["labels"])})


@dataclass(frozen=True)
class Converted:
    """Column ``values``: the same in another type, times 2**shift."""

    dtype: Any
    shift: int = 0
    reads: ClassVar = ("values",)

    def __call__(self, items: None, columns: Columns) -> Found:
        values = columns["values"].astype(self.dtype)
        return Found(Count(len(values)), {"values": shifted(values, self.shift)})


@dataclass(frozen=True)
class SignCounts(Additive):
    """How many numbers are negative."""

    count: int
    negative: int


@dataclass(frozen=True)
class Signs:
    """How many of the values are negative, or no numbers."""

    reads: ClassVar = ("values",)

    def __call__(self, items: None, columns: Columns) -> Found:
        values = columns["values"]
        return Found(SignCounts(len(values), len(values) - int(np.count_nonzero(values >= 0))))


@dataclass(frozen=True)
class Relabelled:
    """Column ``labels``: those of ``items``, which ascend, become ``goals``."""

    items: Labels
    goals: Labels
    n_components: int
    reads: ClassVar = ("labels", INDEX)
    changes: ClassVar = "labels"

    def after(self, before: Relabelled) -> Relabelled:
        """Both at once: this one has the last word."""
        items = np.concatenate([before.items, self.items])
        _, last = np.unique(items[::-1], return_index=True)
        last = len(items) - 1 - last
        return Relabelled(items[last], np.concatenate([before.goals, self.goals])[last], self.n_components)

    def __call__(self, items: None, columns: Columns) -> Found:
        index, labels = columns[INDEX], columns["labels"].copy()
        first, last = int(index[0]), int(index[-1])
        mine = slice(*np.searchsorted(self.items, [first, last + 1]))
        labels[self.items[mine] - first] = self.goals[mine]
        return Found(Sizes(len(labels), np.bincount(labels, minlength=self.n_components)), {"labels": labels})


@dataclass(frozen=True)
class Sizes(Additive):
    """How many items each component has."""

    count: int
    sizes: Labels


@dataclass(frozen=True)
class Belongings:
    """What the labels say of the components.

    Attributes
    ----------
    count : int
    weight : ndarray of shape (n_components,)
        Σ w of the items of each component.
    first : ndarray of shape (n_components,)
        The first item of any weight; beyond all items where there is none.
    """

    count: int
    weight: Array
    first: Labels

    def __add__(self, other: Belongings) -> Belongings:
        return Belongings(self.count + other.count, self.weight + other.weight, np.minimum(self.first, other.first))


@dataclass(frozen=True)
class ByLabel:
    """The weight of each component, and its first item."""

    n_components: int
    reads: ClassVar = ("labels", INDEX, GIVEN_WEIGHT)

    def __call__(self, items: None, columns: Columns) -> Found:
        labels, weight = columns["labels"], columns[GIVEN_WEIGHT]
        first = np.full(self.n_components, np.iinfo(np.intp).max)
        np.minimum.at(first, labels[weight > 0], columns[INDEX][weight > 0])
        return Found(Belongings(len(labels), np.bincount(labels, weight, self.n_components), first))


@dataclass(frozen=True)
class ChanceSums(Additive):
    """Of items drawn in proportion to their share: how many are sure to be, and what the others share."""

    count: int
    sure: int
    rest: float


@dataclass(frozen=True)
class Chances:
    """How many items have a share of at least 1 / ``factor``, and the sum of the others."""

    factor: float
    reads: ClassVar = ("share",)

    def __call__(self, items: None, columns: Columns) -> Found:
        share = columns["share"]
        sure = share * self.factor >= 1
        return Found(ChanceSums(len(share), int(np.count_nonzero(sure)), float(share[~sure].sum())))


@dataclass(frozen=True)
class Pool:
    """Some items, in order, with a number for each.

    Attributes
    ----------
    count : int
        Of the items they were chosen from.
    items : ndarray of shape (m,)
    values : ndarray of shape (m,)
    """

    count: int
    items: Labels
    values: Array

    def __add__(self, other: Pool) -> Pool:
        return Pool(self.count + other.count, np.append(self.items, other.items), np.append(self.values, other.values))


@dataclass(frozen=True)
class Drawn:
    """Items drawn with the chance share · factor, at most one, and this chance; number i of a seed's draws is that of item i."""

    seed: int
    factor: float
    reads: ClassVar = ("share", INDEX)

    def __call__(self, items: None, columns: Columns) -> Found:
        index, chance = columns[INDEX], np.minimum(columns["share"] * self.factor, 1.0)
        generator = np.random.PCG64(self.seed)
        generator.advance(int(index[0]))
        chosen = np.flatnonzero(np.random.Generator(generator).random(len(index)) < chance)
        return Found(Pool(len(index), index[chosen], chance[chosen]))
