"""Passes that say what to draw: what every item adds to the cost, and its part of what its component weighs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._common.arithmetic import argmin_of_columns, by_label
from .._common.typing import Array
from ..distortion.base import Items
from .base import Additive, Columns, Count, Found
from .raw import Scalar


@dataclass(frozen=True)
class ShareSums(Additive):
    """The cost of all items, and the mass of every component."""

    count: int
    cost: float
    mass: Array


@dataclass(frozen=True)
class Shares:
    """Columns ``labels``, the nearest component, ``cost`` ω d to it, and ``mass`` ω."""

    centers: Array
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        distance = items.pairs(self.centers).distance
        labels = argmin_of_columns(distance)
        cost = items.weight * np.maximum(distance.min(axis=0), 0)
        total = ShareSums(len(items), float(cost.sum()), np.bincount(labels, items.weight, len(self.centers)))
        return Found(total, {"labels": labels.astype(np.int32), "cost": cost, "mass": items.weight.copy()})


@dataclass(frozen=True)
class Share:
    """Column ``share``: an item's part of the cost of all, and of the mass of its component, which stands for 1 / n_components of all."""

    sums: ShareSums
    reads: ClassVar = ("cost", "mass", "labels")

    def __call__(self, items: None, columns: Columns) -> Found:
        tiny = np.finfo(float).tiny
        part = 1 / np.maximum(self.sums.mass, tiny) / np.count_nonzero(self.sums.mass)
        share = columns["cost"] / max(self.sums.cost, tiny) + columns["mass"] * by_label(part, columns["labels"])
        return Found(Scalar(len(share), float(share.sum())), {"share": share})


@dataclass(frozen=True)
class LeastCost:
    """Column ``cost``: what it was, or ω d to one more centre where that is less."""

    center: Array
    reads: ClassVar = ("cost",)

    def __call__(self, items: Items, columns: Columns) -> Found:
        distance = items.pairs(self.center).distance[0]
        return Found(Count(len(items)), {"cost": np.minimum(columns["cost"], items.weight * np.maximum(distance, 0))})


@dataclass(frozen=True)
class NearestOfEach:
    """Column ``nearest`` (n_items, n_starts): what it was, or the distance to one more centre of each start where that is less."""

    centers: Array
    reads: ClassVar = ("nearest",)

    def __call__(self, items: Items, columns: Columns) -> Found:
        distance = np.maximum(items.pairs(self.centers).distance, 0)
        return Found(Count(len(items)), {"nearest": np.minimum(columns["nearest"], distance.T)})
