"""Hard assignments under bounds: exact assignment alternated with best centres, always feasible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ._typing import Array, Labels
from .assignment import Assignment, certify, transport
from .bounds import Bounds
from .distortion.base import Distortion, Items
from .engines.base import Engine
from .partition import OPTIMISM, PATIENCE, REST, Count, HardStats, Partition, centered, labelled_pass

# Relative fall of the cost at which an alternation on many items ends: the last labels at the border take as long as all the others.
MANY_ITEMS, REST_OF_MANY = 4096, 1e-6
# Costs held between the passes of one assignment; more are computed anew in every pass.
HELD_COSTS = 1 << 23


@dataclass(frozen=True)
class ItemCosts:
    """Costs ω_i d_ij, read block by block in the order of the items.

    Attributes
    ----------
    engine, distortion
    centers : ndarray of shape (n_components, n_coordinates)
    """

    engine: Engine
    distortion: Distortion
    centers: Array

    @property
    def n_items(self) -> int:
        return self.engine.n_items

    @property
    def n_components(self) -> int:
        return len(self.centers)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Place and costs (rows, n_components) of each block."""
        for where, items in self.engine.visit(self.distortion):
            yield where, self._block(items)

    def _block(self, items: Items) -> Array:
        distance = self.distortion.pairs(items, self.centers).distance
        return (np.maximum(distance, 0) * items.weight).T.astype(np.float64)

    def held(self) -> ItemCosts | Array:
        """The costs as an array, where they are few."""
        if self.n_items * self.n_components > HELD_COSTS:
            return self
        costs = np.empty((self.n_items, self.n_components))

        def kernel(items: Items, where: slice) -> Count:
            costs[where] = self._block(items)
            return Count(len(items))

        self.engine.reduce_items(self.distortion, kernel)
        return costs


@dataclass(frozen=True)
class Bounded:
    """Assigns items under bounds on the sizes; every partition it gives is feasible and its labels optimal for its centres.

    Attributes
    ----------
    engine, distortion, bounds
    least : int
        Fewest items of every component whatever its bound: 1 leaves none empty while there are items for all.
    """

    engine: Engine
    distortion: Distortion
    bounds: Bounds
    least: int = 1
    free = False

    @property
    def _lower(self) -> Labels:
        least = self.least if self.engine.n_items >= len(self.bounds.upper) else 0
        return np.minimum(np.maximum(self.bounds.lower, least), self.bounds.upper)

    def assign(self, centers: Array, prices: Array | None) -> Assignment:
        """The exact assignment at costs ω d."""
        costs = ItemCosts(self.engine, self.distortion, centers).held()
        return transport(costs, self._lower, self.bounds.upper, prices=prices)

    def alternate(self, centers: Array, *, prices: Array | None = None, bound: float = np.inf, max_passes: int = 300) -> Partition | None:
        """Alternate exact assignment and best centres; None when the cost will clearly end above ``bound``."""
        labels, before, stable = None, np.inf, False
        many = self.engine.n_items > MANY_ITEMS
        for passes in range(max_passes):
            assigned = self.assign(centers, prices)
            prices = assigned.prices
            stable = labels is not None and bool((assigned.labels == labels).all())
            labels = assigned.labels
            stats = labelled_pass(self.engine, self.distortion, centers, labels)
            fall = before - stats.total
            if (stable and fall <= REST * stats.total) or (many and fall <= REST_OF_MANY * stats.total):
                stable = True
                break
            if passes >= PATIENCE and stats.total - OPTIMISM * fall > bound:
                return None
            before = stats.total
            centers = self._centers(labels, centers, stats, stable)
        return Partition(labels, centers, stats, at_rest=stable, prices=prices)  # type: ignore[arg-type]

    def _centers(self, labels: Labels, centers: Array, stats: HardStats, stable: bool) -> Array:
        """One step towards the best centres, or all the way when the labels have come to rest."""
        if stable:
            return centered(self.engine, self.distortion, labels, centers).centers
        moved = self.distortion.center(stats.sums, np.maximum(stats.mass, np.finfo(float).tiny))
        return np.where(stats.mass[:, None] > 0, moved, centers)

    def allows(self, sizes: Labels) -> bool:
        """Whether components of these sizes are within the bounds."""
        return bool((sizes <= self.bounds.upper).all() and (sizes >= self._lower).all())

    def rearranged(self, centers: Array) -> Iterator[Array]:
        """The centres with two of them exchanged, for components with different bounds."""
        if self.bounds.alike:
            return
        for one, other in combinations(range(len(centers)), 2):
            same = self.bounds.upper[one] == self.bounds.upper[other] and self.bounds.lower[one] == self.bounds.lower[other]
            if not same:
                order = np.arange(len(centers))
                order[[one, other]] = other, one
                yield centers[order]

    def gap(self, centers: Array, labels: Labels) -> float:
        """What a better assignment within the bounds could still save at most, as a fraction of the cost; inf out of bounds."""
        costs = ItemCosts(self.engine, self.distortion, centers).held()
        prices = transport(costs, self._lower, self.bounds.upper).prices
        return certify(costs, self._lower, self.bounds.upper, labels=labels, prices=prices).relative_gap
