"""One hard pass for several sets of centres side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Items
from .base import Additive, Columns, Found
from .hard import HardStats


@dataclass(frozen=True)
class EachSums(Additive):
    """Sums of one hard pass for each of several sets of centres, as in ``HardStats``, with one more axis in front."""

    count: int
    mass: Array
    sizes: Labels
    cost: Array
    sums: Array
    changed: Labels

    def of(self, run: int) -> HardStats:
        """Those of one set of centres."""
        return HardStats(self.count, self.mass[run], self.sizes[run], self.cost[run], self.sums[run], int(self.changed[run]))


@dataclass(frozen=True)
class NearestInEach:
    """Column ``labels`` (n_items, n_sets): the nearest component of every item in every set of ``centers`` (n_sets, k, n_coordinates)."""

    centers: Array
    reads: ClassVar = ("labels",)

    def __call__(self, items: Items, columns: Columns) -> Found:
        n_sets, n_components, width = self.centers.shape
        pairs = items.pairs(self.centers.reshape(-1, width))
        found = pairs.distance.reshape(n_sets, n_components, len(items)).argmin(axis=1)
        changed = np.count_nonzero(found != columns["labels"].T, axis=1)
        row = (found + np.arange(0, n_sets * n_components, n_components, like=found)[:, None]).ravel()
        column = np.tile(np.arange(len(items), like=found), n_sets)
        own, weight = np.maximum(pairs.distance[row, column], 0), np.tile(items.weight, n_sets)
        resp = np.zeros_like(pairs.distance)
        resp[row, column] = weight
        shape, size = (n_sets, n_components), n_sets * n_components
        sums = EachSums(
            count=len(items),
            mass=np.bincount(row, weight, size).reshape(shape),
            sizes=np.bincount(row, minlength=size).reshape(shape),
            cost=np.bincount(row, weight * own, size).reshape(shape),
            sums=items.sums(resp, pairs.inner).reshape(*shape, -1),
            changed=changed,
        )
        return Found(sums, {"labels": found.T})
