"""Passes that weigh moves of single items between components."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Items, Moving, having
from .base import INDEX, Columns, Count, Found


@dataclass(frozen=True)
class Movers:
    """Items whose move pays, in order: what it gains, from which component, and to which.

    Attributes
    ----------
    count : int
        Of the items they were chosen from.
    items : ndarray of shape (m,)
    gain : ndarray of shape (m,)
    source, goal : ndarray of shape (m,)
    """

    count: int
    items: Labels
    gain: Array
    source: Labels
    goal: Labels

    def __add__(self, other: Movers) -> Movers:
        both = ((self.items, other.items), (self.gain, other.gain), (self.source, other.source), (self.goal, other.goal))
        return Movers(self.count + other.count, *(np.append(one, more) for one, more in both))

    def taken(self, index: Labels) -> Movers:
        """Some of them, in another order."""
        return Movers(self.count, self.items[index], self.gain[index], self.source[index], self.goal[index])


@dataclass(frozen=True)
class MoveGains:
    """Items that gain more than ``least`` by moving to their best other component.

    ``mass`` and ``cost`` are those of the components. Where items move ``together``, that column is what moves with each.
    """

    centers: Array
    mass: Array
    cost: Array
    together: bool
    least: float

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the columns it reads."""
        return ("labels", INDEX, "together") if self.together else ("labels", INDEX)

    def __call__(self, items: Items, columns: Columns) -> Found:
        pairs, frame = items.pairs(self.centers), having(items.frame, Moving, "The refinement")
        mine = columns["labels"], np.arange(len(items), like=columns["labels"])
        moving = replace(items, weight=columns["together"]) if self.together else items
        leave = frame.leave(moving, pairs, columns["labels"], self.centers, self.mass, self.cost)
        join = frame.join(moving, pairs, self.centers, self.mass, self.cost)
        join[mine] = np.inf
        gain = leave - join.min(axis=0)
        pays = np.flatnonzero(gain > self.least)
        return Found(Movers(len(items), columns[INDEX][pays], gain[pays], columns["labels"][pays], join[:, pays].argmin(axis=0)))


@dataclass(frozen=True)
class AllDistances:
    """Columns ``distance`` (n_items, n_components) to every centre, and ``weight`` ω: for few items."""

    centers: Array
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        distance = items.pairs(self.centers).distance.T.astype(np.float64)
        return Found(Count(len(items)), {"distance": distance, "weight": items.weight.copy()})


@dataclass(frozen=True)
class BestPairs:
    """For every ordered pair of components the item whose move gains most, and the gain: the larger wins, ties go to the first."""

    count: int
    gain: Array
    item: Labels

    def __add__(self, other: BestPairs) -> BestPairs:
        better = other.gain > self.gain
        return BestPairs(self.count + other.count, np.where(better, other.gain, self.gain), np.where(better, other.item, self.item))


@dataclass(frozen=True)
class BestMoves:
    """The best move of one item between every two components; ``mass`` and ``cost`` are those of the components."""

    centers: Array
    mass: Array
    cost: Array
    reads: ClassVar = ("labels", INDEX)

    def __call__(self, items: Items, columns: Columns) -> Found:
        frame, pairs = having(items.frame, Moving, "The refinement"), items.pairs(self.centers)
        labels, n_components = columns["labels"], len(self.centers)
        leave = frame.leave(items, pairs, labels, self.centers, self.mass, self.cost)
        gains = leave - frame.join(items, pairs, self.centers, self.mass, self.cost)
        gain, item = np.full((n_components, n_components), -np.inf), np.full((n_components, n_components), -1)
        for source in np.unique(labels):
            mine = np.flatnonzero(labels == source)
            top = mine[gains[:, mine].argmax(axis=1)]
            gain[source], item[source] = gains[np.arange(n_components), top], columns[INDEX][top]
        return Found(BestPairs(len(items), gain, item))
