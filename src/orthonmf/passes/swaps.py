"""Passes that rank swaps: every component in two halves, and what closing one and opening another costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Items
from .base import Additive, Columns, Found

# Places whose distances to a block are held at once.
PLACES_AT_ONCE = 32


@dataclass(frozen=True)
class SideSums(Additive):
    """Mass (2, k), cost (2, k) and sums (2, k, n_coordinates) of both halves of every component."""

    count: int
    mass: Array
    cost: Array
    sums: Array


@dataclass(frozen=True)
class Sides:
    """The sums of the items of every component on either side, by the nearer of its two ``halves`` (2, k, n_coordinates)."""

    halves: Array
    reads: ClassVar = ("labels",)

    def __call__(self, items: Items, columns: Columns) -> Found:
        mine = columns["labels"], np.arange(len(items), like=columns["labels"])
        pairs = [items.pairs(centers, mine[0]) for centers in self.halves]
        own = np.concatenate([pair.distance for pair in pairs])
        side = (own[1] < own[0]).astype(np.intp)
        resp = np.zeros((2, len(self.halves[0]), len(items)), dtype=own.dtype, like=own)
        resp[(side, *mine)] = items.weight
        # An item has a part in one sum alone, so that all of them are one product, with the inner product on its own side.
        inner = np.concatenate([pair.inner for pair in pairs])[side, mine[1]][None]
        sums = items.sums(resp.reshape(-1, len(items)), inner).reshape(2, len(self.halves[0]), -1)
        cost = resp[(slice(None), *mine)] * np.maximum(own, 0)
        cost = np.stack([np.bincount(mine[0], each, len(self.halves[0])) for each in cost])
        return Found(SideSums(len(items), resp.sum(axis=2, dtype=np.float64), cost, sums))


@dataclass(frozen=True)
class SwapCosts(Additive):
    """What swaps change: ``bare`` (places, components) in all, ``gain`` (places,) by opening alone, ``stir`` (places,) at home."""

    count: int
    bare: Array
    gain: Array
    stir: Array


@dataclass(frozen=True)
class Swaps:
    """What closing each component and opening one at each place costs, where items go to the nearest centre that is left.

    ``centers`` (n_places, n_coordinates) are the places, ``home`` (n_places,) the components they lie in.
    """

    centers: Array
    home: Labels
    n_components: int
    reads: ClassVar = ("labels", "own", "second")

    def __call__(self, items: Items, columns: Columns) -> Found:
        few = range(0, len(self.home), PLACES_AT_ONCE)
        parts = [self._part(items, columns, slice(start, start + PLACES_AT_ONCE)) for start in few]
        return Found(SwapCosts(len(items), *(np.concatenate(each) for each in zip(*parts, strict=True))))

    def _part(self, items: Items, columns: Columns, chosen: slice) -> tuple[Array, Array, Array]:
        distance = np.maximum(items.pairs(self.centers[chosen]).distance, 0)
        labels, own, second = columns["labels"], columns["own"], columns["second"]
        kept = np.minimum(distance, own)
        gain = (own - kept) @ items.weight
        at_home = labels == self.home[chosen, None]
        stir = np.where(at_home, np.maximum(distance - second, 0), own - kept) @ items.weight
        moved = (np.minimum(distance, second) - kept) * items.weight
        bare = np.stack([np.bincount(labels, each, self.n_components) for each in moved])
        return bare - gain[:, None], gain, stir
