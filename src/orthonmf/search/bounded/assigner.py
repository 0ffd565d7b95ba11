"""Hard assignments under bounds: exact assignment alternated with best centres, always feasible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from ..._common.typing import Array, Labels
from ...distortion.base import Distortion
from ...engines.base import Engine
from ...passes.assigned import Arcs, Worth, WorthSums
from ...passes.hard import Costs as ItemsCosts
from ...passes.hard import TwoCheapest
from ..budget import BUDGET
from ..partition import FALL_TOL, Keep, Momentum, Partition, centered, forget, labelled_pass, rank_within, steps
from .assignment import COSTS_PER_MOVE, Costs, HeldCosts, certify, draft, nearest_slacks, transport
from .bounds import Bounds

# A gap that needs no better prices.
PROVEN = 1e-9


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
        for where, found in self.engine.stream(self.distortion, ItemsCosts(self.centers)):
            yield where, found.columns["costs"]

    def two_cheapest(self, prices: Array) -> tuple[Labels, Labels, Array]:
        """Of every item the component where cost and price are least, the next, and what that costs more."""
        found = self.engine.run(self.distortion, TwoCheapest(self.centers, prices)).columns
        return found["labels"], found["runner"], found["slack"]

    def nearest_slacks(self, labels: Labels, runner: Labels, slack: Array, size: int) -> tuple[Array, Array]:
        """Of the items between every two components: how many up to ``size``, and the most slack of those."""
        return nearest_slacks(self.n_components, labels, runner, slack, size)

    def arcs(self, labels: Labels) -> Array:
        """What moves between components cost at least, (k, k)."""
        least: Array = self.engine.run(self.distortion, Arcs(self.centers), {"labels": labels}).total.least
        return least

    def worth(self, labels: Labels, prices: Array) -> tuple[float, float]:
        """What the labels cost, and what they cost more at these prices than the cheapest components."""
        found: WorthSums = self.engine.run(self.distortion, Worth(self.centers, prices), {"labels": labels}).total
        return found.cost, found.excess

    @property
    def moves_per_pass(self) -> float:
        """Items that are moved one by one in the time of a Newton step, which reads all costs."""
        return self.n_items * self.n_components / COSTS_PER_MOVE

    def taken(self, index: Labels) -> HeldCosts:
        """The costs of some items, held as an array; where those of all are rounded to float32, these are not."""
        few = replace(self, engine=self.engine.select(index))
        return HeldCosts(few.every, self.engine.team.check)

    @property
    def every(self) -> Array:
        """All of them, (n_items, n_components)."""
        found: Array = self.engine.run(self.distortion, ItemsCosts(self.centers)).columns["costs"]
        return found


@dataclass(frozen=True)
class _Tiers:
    """Bounds as columns of a transportation problem.

    Hard bounds are one column for each component. Soft ones are three, which the best assignment fills in turn: places up to the lower
    bound, each worth a penalty; places up to the upper one; and places beyond, at a penalty each.

    Attributes
    ----------
    bounds : Bounds
    least : ndarray of shape (n_components,)
        Fewest items of every component, in any case.
    n_items : int
    """

    bounds: Bounds
    least: Labels
    n_items: int

    @property
    def offsets(self) -> Array:
        """What a place of each tier costs."""
        return np.array([-1.0, 0.0, 1.0]) * self.bounds.penalty if self.bounds.soft else np.zeros(1)

    @property
    def n_columns(self) -> int:
        """How many columns."""
        return len(self.bounds.upper) * len(self.offsets)

    @cached_property
    def limits(self) -> tuple[Labels, Labels]:
        """Fewest and most items of every column."""
        bounds = self.bounds
        if not bounds.soft:
            return np.minimum(np.maximum(bounds.lower, self.least), bounds.upper), bounds.upper
        upper = np.concatenate([bounds.lower, bounds.upper - bounds.lower, np.full(len(bounds.upper), self.n_items)])
        first = np.where(bounds.lower > 0, 0, len(bounds.lower)) + np.arange(len(bounds.lower))
        lower = np.zeros_like(upper)
        lower[first] = self.least
        return lower, upper

    def columns(self, block: Array) -> Array:
        """Costs (rows, n_columns) from those of the components."""
        return np.concatenate([block + offset for offset in self.offsets], axis=1) if self.bounds.soft else block

    def spread(self, prices: Array | None) -> Array | None:
        """Prices of the columns from those of the components."""
        if prices is None or not self.bounds.soft:
            return prices
        return np.concatenate([np.maximum(prices - offset, 0) for offset in self.offsets])

    def folded(self, labels: Labels, prices: Array) -> tuple[Labels, Array]:
        """Labels and prices of the components from those of the columns."""
        if not self.bounds.soft:
            return labels, prices
        n_components = len(self.bounds.upper)
        return labels % n_components, (prices.reshape(-1, n_components) + self.offsets[:, None]).min(axis=0)

    def unfolded(self, labels: Labels) -> Labels:
        """Labels of the columns from those of the components: the first places are the cheapest."""
        if not self.bounds.soft:
            return labels
        n_components, rank = len(self.bounds.upper), rank_within(labels)
        tier = (rank >= self.bounds.lower[labels]).astype(np.intp) + (rank >= self.bounds.upper[labels])
        return labels + n_components * tier


@dataclass(frozen=True)
class _TieredCosts:
    """Costs of the columns, read block by block."""

    costs: ItemCosts
    tiers: _Tiers

    @property
    def n_items(self) -> int:
        return self.costs.n_items

    @property
    def n_components(self) -> int:
        return self.costs.n_components * len(self.tiers.offsets)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Place and costs (rows, n_columns) of each block."""
        for where, block in self.costs.blocks():
            yield where, self.tiers.columns(block)


@dataclass(frozen=True)
class Bounded:
    """Assigns items under bounds on the sizes; every partition it gives is feasible and its labels optimal for its centres.

    Attributes
    ----------
    engine, distortion, bounds
    least : int
        Fewest items of every component whatever its bound: 1 leaves none empty while there are items for all.
    keep : callable
        Told of every partition on the way.
    steady : float
        On many items centres are at rest when one more step would move none by more than this, relative to the spread of its component.
    """

    engine: Engine
    distortion: Distortion
    bounds: Bounds
    least: int = 1
    keep: Keep = forget
    steady: float = BUDGET.steady
    free = False

    @property
    def least_size(self) -> int:
        """Fewest items of every component in any case; none where there are too few for that."""
        needed = self.least if self.bounds.soft else np.maximum(self.bounds.lower, self.least)
        return self.least if np.broadcast_to(needed, self.bounds.upper.shape).sum() <= self.engine.n_items else 0

    @cached_property
    def tiers(self) -> _Tiers:
        """The bounds as columns."""
        return _Tiers(self.bounds, np.full(len(self.bounds.upper), self.least_size), self.engine.n_items)

    @property
    def _kinds(self) -> tuple[type[ItemCosts], type[HeldCosts], int]:
        """Costs that are computed whenever they are read, costs that are held, and how many may be held; compiled where numba is there."""
        if not self.engine.compiles:
            return ItemCosts, HeldCosts, BUDGET.held_costs
        from .compiled import CompiledCosts, CompiledItemCosts

        return CompiledItemCosts, CompiledCosts, BUDGET.compiled_costs

    def _costs(self, centers: Array) -> Costs:
        read, held, most = self._kinds
        costs, tiers = read(self.engine, self.distortion, centers), self.tiers
        if costs.n_items * tiers.n_columns <= most:
            return held(tiers.columns(costs.every), self.engine.team.check)
        return _TieredCosts(costs, tiers) if self.bounds.soft else costs

    def assign(self, centers: Array, prices: Array | None) -> tuple[Labels, Array]:
        """Labels of the best assignment at costs ω d, and the prices that prove it."""
        tiers = self.tiers
        found = transport(self._costs(centers), *tiers.limits, prices=tiers.spread(prices))
        return tiers.folded(found.labels, found.prices)

    def assigned(self, centers: Array, prices: Array | None = None, loose: int = 0) -> Partition:
        """The best assignment to given centres, but for its proof, and for at most ``loose`` items out of place, which cost their price."""
        tiers = self.tiers
        labels, prices = tiers.folded(*draft(self._costs(centers), *tiers.limits, prices=tiers.spread(prices), loose=loose))
        part = self._partition(labels, centers, prices)
        if not loose:
            return part
        lower, upper = tiers.limits
        return replace(part, charge=float(prices @ (part.stats.sizes - np.where(prices > 0, upper, lower))))

    def _partition(self, labels: Labels, centers: Array, prices: Array | None) -> Partition:
        stats = labelled_pass(self.engine, self.distortion, centers, labels)
        return Partition(labels, centers, stats, at_rest=False, prices=prices, charge=self.charge(stats.sizes))

    def alternate(self, centers: Array, prices: Array | None = None, *, bound: float = np.inf, max_passes: int = 300) -> Partition | None:
        """Alternate the best assignment and the best centres until neither changes; None when the cost will clearly end above ``bound``.

        Where assignments are dear a few items may be out of place until the centres are nearly steady, and it ends as soon as they are
        steady: the last labels at the border take as long as all the others.
        """
        before, dear, momentum = None, self.engine.n_items > BUDGET.dear_items, Momentum(self.distortion)
        loose = int(BUDGET.loose * self.engine.n_items) if dear and not self.bounds.soft else 0
        for passes in range(max_passes):
            part = self.assigned(centers, prices, loose)
            if not loose:
                self.keep(part)
            fall = np.inf if before is None else before.cost - part.cost
            if before is not None and momentum.carried and fall < 0 and not loose:
                part, centers = before, momentum.back()
                continue
            changed = self.engine.n_items if before is None else int(np.count_nonzero(part.labels != before.labels))
            step = self._step(part) if dear else np.inf
            if not loose and (step <= self.steady or (changed == 0 and fall <= FALL_TOL * part.cost)):
                return replace(part, at_rest=True)
            if passes >= BUDGET.patience and part.cost - BUDGET.bounded_optimism * abs(fall) > bound:
                return None
            loose = 0 if changed <= loose or step <= BUDGET.nearly_steady * self.steady else loose
            before, prices = part, part.prices
            slow = dear and changed > 0 and abs(fall) <= BUDGET.slow * part.cost
            centers = momentum.step(centers, self._centers(part, changed == 0), part.stats.mass, slow)
        return self.assigned(centers, prices) if loose else part

    def settled(self, part: Partition, max_passes: int = 300) -> Partition:
        """The fixed point that a partition leads to: labels proven to be the best for its centres, centres the best for its labels.

        The cost never rises. At rest where both hold as closely as a certificate asks, within ``max_passes``.
        """
        centers, prices = part.centers, part.prices
        for _ in range(max_passes):
            labels, prices = self.assign(centers, prices)
            part = self._partition(labels, centers, prices)
            self.keep(part)
            if self._step(part) <= self.steady:
                return replace(part, at_rest=True)
            centers = self._centers(part, self.engine.n_items <= BUDGET.many_bounded_items)
        return part

    def _step(self, part: Partition) -> float:
        """How far one more step would move a centre at most, relative to the spread of its component."""
        return float(steps(self.engine, self.distortion, part).max())

    def _centers(self, part: Partition, all_the_way: bool) -> Array:
        """One step towards the best centres for the labels, or all the way."""
        if all_the_way:
            return centered(self.engine, self.distortion, part.labels, part.centers).centers
        moved = self.distortion.center(part.stats.sums, np.maximum(part.stats.mass, np.finfo(float).tiny))
        return np.where(part.stats.mass[:, None] > 0, moved, part.centers)

    def allows(self, sizes: Labels, before: Labels) -> bool:
        """Whether the sizes are within the bounds, or, where these are soft, no farther out than ``before``."""
        if self.bounds.soft:
            return bool(sizes.min() > 0 and self.charge(sizes) <= self.charge(before))
        lower, upper = self.tiers.limits
        return bool((sizes <= upper).all() and (sizes >= lower).all())

    def charge(self, sizes: Labels) -> float:
        """What items out of soft bounds cost."""
        return self.bounds.charge(sizes) if self.bounds.soft else 0.0

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

    def gap(self, centers: Array, labels: Labels, prices: Array | None = None) -> float:
        """What a better assignment within the bounds could still save at most, as a fraction of the cost; inf out of bounds.

        Any prices prove a gap; those of the best assignment prove the least.
        """
        costs, tiers = self._costs(centers), self.tiers
        columns = tiers.unfolded(labels)
        start = tiers.spread(prices)
        if start is None or (found := self._relative_gap(costs, columns, start)) > PROVEN:
            start = transport(costs, *tiers.limits, prices=start).prices
            found = self._relative_gap(costs, columns, start)
        return found

    def _relative_gap(self, costs: Costs, columns: Labels, prices: Array) -> float:
        found = certify(costs, *self.tiers.limits, labels=columns, prices=prices)
        # Places that are worth a penalty count as their distance alone.
        cost = found.cost + (self.bounds.penalty * float(self.bounds.lower.sum()) if self.bounds.soft else 0.0)
        return found.gap / cost if found.gap > 0 < cost else found.gap


def load_gap(costs: ItemCosts, bounds: Bounds, labels: Labels, prices: Array) -> float:
    """What any other assignment under soft bounds on sums of sizes could save at most, as a fraction of the cost.

    With prices π up to the penalty, none costs less than Σ_i min_j (c_ij + s_i π_j) − Σ_j (π_j⁺ U_j − π_j⁻ L_j).
    """
    size = np.ones(costs.n_items) if costs.engine.size is None else costs.engine.size
    cost, least = bounds.charge(np.bincount(labels, size, len(prices))), -float(prices @ np.where(prices > 0, bounds.upper, bounds.lower))
    for where, block in costs.blocks():
        cost += float(block[np.arange(len(block)), labels[where]].sum())
        least += float((block + np.multiply.outer(size[where], prices)).min(axis=1).sum())
    return (cost - least) / cost if cost > 0 else 0.0
