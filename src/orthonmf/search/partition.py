"""Hard assignments: the passes that give every item one component, and the fixed point of labels and centres."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Distortion, Moving, carried
from ..engines.base import Engine, block_weight
from ..passes.base import Columns, Found
from ..passes.hard import HardStats, Labelled, Nearer, Nearest, OwnAndOther
from .budget import BUDGET

# Relative fall of the cost below which centres and labels are at rest.
FALL_TOL = 1e-11
# An item nearer to its centre than this many roundings lies on it.
NEGLIGIBLE = 64.0
# Items that differ by no more than this many roundings of their size are equal.
ITEM_ROUNDINGS = 4.0


@dataclass(frozen=True)
class Partition:
    """Labels and centres, with the sums of the pass that made them.

    Attributes
    ----------
    labels : column of shape (n_items,)
        Owned by the engine; an array where there are few items.
    centers : ndarray of shape (n_components, n_coordinates)
    stats : HardStats
        Taken with these labels and these centres.
    at_rest : bool
        Whether labels and centres stopped changing.
    prices : ndarray of shape (n_components,) or None
        Under bounds, the prices at which the labels are optimal.
    charge : float
        What items out of soft bounds cost.
    """

    labels: Any
    centers: Array
    stats: HardStats
    at_rest: bool = True
    prices: Array | None = None
    charge: float = 0.0

    @property
    def cost(self) -> float:
        """Σ ω_i d_i, and the charge."""
        return self.stats.total + self.charge

    @property
    def n_components(self) -> int:
        """How many components."""
        return len(self.centers)


# Told of every partition that a search passes through; what it wants of one beyond the call, it copies.
Keep = Callable[[Partition], None]


def forget(part: Partition) -> None:
    """Keep nothing."""


def many(engine: Engine) -> bool:
    """Whether the items are so many that all of them are alternated and moved only; the rest is searched for on samples."""
    return engine.n_items > BUDGET.many_items or engine.n_items * engine.row_width > BUDGET.many_numbers


def nearest_pass(engine: Engine, distortion: Distortion, centers: Array, labels: Any = None) -> tuple[HardStats, Any]:
    """Give every item its nearest component (ties to the lowest index); how many differ from ``labels`` is counted."""
    found = engine.run(distortion, Nearest(centers, labelled=labels is not None), {"labels": labels})
    return found.total, found.columns["labels"]


def labelled_pass(engine: Engine, distortion: Distortion, centers: Array, labels: Any) -> HardStats:
    """The sums for given labels."""
    stats: HardStats = engine.run(distortion, Labelled(centers), {"labels": labels}).total
    return stats


class Momentum:
    """Carries centres beyond the best ones of a pass, the way they have been going: Nesterov's steps, for an alternation that is slow.

    Where the best centres turn back, or those who count the cost find that it rises, the pace is gathered anew (O'Donoghue and Candès,
    2015, doi:10.1007/s10208-013-9150-3).
    """

    def __init__(self, distortion: Distortion) -> None:
        self._distortion, self._best, self._pace, self.carried = distortion, np.zeros(0), 1.0, False

    def step(self, centers: Array, best: Array, mass: Array, slow: bool = True) -> Array:
        """Where to go from a pass with these centres, best centres and masses: to the best, and beyond where it is slow."""
        last, self._best = self._best, best
        turned = last.shape == best.shape and np.vdot(best - centers, best - last) < 0
        pace = self._pace if slow and not turned else 1.0
        self._pace = (1 + np.sqrt(1 + 4 * pace**2)) / 2 if slow else 1.0
        self.carried = pace > 1
        if not self.carried:
            return best
        return carried(self._distortion, best + (pace - 1) / self._pace * (best - last), mass)

    def back(self) -> Array:
        """The last best centres."""
        self._pace, self.carried = 1.0, False
        return self._best


def alternate(
    engine: Engine, distortion: Distortion, centers: Array, *, bound: float = np.inf, max_passes: int = 300, keep: Keep = forget
) -> Partition | None:
    """Alternate nearest labels and best centres to a fixed point; the cost never rises.

    None when a component empties, or when the cost will clearly end above ``bound``. ``keep`` is told of every pass.
    """
    labels: Any = None
    before, momentum, large = np.inf, Momentum(distortion), many(engine)
    for passes in range(max_passes):
        stats, found = nearest_pass(engine, distortion, centers, labels)
        if momentum.carried and not (stats.mass.all() and stats.total <= before):
            centers = momentum.back()
            continue
        if not stats.mass.all():
            return None
        labels = found
        part = Partition(labels, centers, stats, at_rest=False)
        keep(part)
        fall = before - stats.total
        if stats.changed == 0 and fall <= FALL_TOL * stats.total and not momentum.carried:
            return replace(part, at_rest=True)
        if large and fall <= BUDGET.little * stats.total and steps(engine, distortion, part).max() <= BUDGET.steady:
            return replace(part, at_rest=True)
        if passes >= BUDGET.patience and stats.total - BUDGET.optimism * fall > bound:
            return None
        before = stats.total
        slow = engine.n_items > BUDGET.brief_items and stats.changed > 0 and fall <= BUDGET.slow * stats.total
        centers = momentum.step(centers, distortion.center(stats.sums, stats.mass), stats.mass, slow)
    return Partition(labels, centers, labelled_pass(engine, distortion, centers, labels), at_rest=False)


def centered(engine: Engine, distortion: Distortion, labels: Any, centers: Array, *, max_passes: int = 100) -> Partition:
    """The best centres for given labels."""
    before, large = np.inf, many(engine)
    for _ in range(max_passes):
        stats = labelled_pass(engine, distortion, centers, labels)
        if before - stats.total <= FALL_TOL * stats.total or (large and _still(engine, distortion, Partition(labels, centers, stats))):
            break
        before = stats.total
        centers = distortion.center(stats.sums, np.maximum(stats.mass, np.finfo(float).tiny))
    else:
        stats = labelled_pass(engine, distortion, centers, labels)
    return Partition(labels, centers, stats)


def steps(engine: Engine, distortion: Distortion, part: Partition) -> Array:
    """How far one more step would move each centre, relative to the spread of its own component; 0 where that is rounding."""
    mass = np.maximum(part.stats.mass, np.finfo(float).tiny)
    better = distortion.center(part.stats.sums, mass)
    step = np.linalg.norm(better - part.centers, axis=1)
    rounding = NEGLIGIBLE * float(np.finfo(engine.dtype).eps) * np.linalg.norm(better, axis=1)
    spread = np.sqrt(part.stats.cost / mass)
    relative = np.divide(step, spread, out=np.full_like(step, np.inf), where=spread > 0)
    return np.where((step > rounding) & (part.stats.mass > 0), relative, 0.0)


def _still(engine: Engine, distortion: Distortion, part: Partition) -> bool:
    """Whether of many items one more step would gain nothing that is worth its pass over all of them."""
    return bool(steps(engine, distortion, part).max() <= BUDGET.still)


def sharpened(engine: Engine, distortion: Distortion, part: Partition) -> Array:
    """The centres of a partition at rest for its labels, of few items to rounding: an alternation stops when the cost no longer falls."""
    before, large = np.inf, many(engine)
    rounding = float(np.finfo(engine.dtype).eps) / 4 * float(np.abs(part.centers).max())
    for _ in range(BUDGET.sharpening_passes):
        moved = distortion.center(part.stats.sums, np.maximum(part.stats.mass, np.finfo(float).tiny))
        step = float(np.abs(moved - part.centers).max())
        if step >= before:
            break
        if step <= rounding or (large and _still(engine, distortion, part)):
            return moved
        before, stats = step, labelled_pass(engine, distortion, moved, part.labels)
        part = replace(part, centers=moved, stats=stats)
    return part.centers


@dataclass(frozen=True)
class Free:
    """Assigns every item to its nearest component.

    Attributes
    ----------
    engine, distortion
    keep : callable
        Told of every partition on the way.
    """

    engine: Engine
    distortion: Distortion
    keep: Keep = forget
    free = True

    def assigned(self, centers: Array, prices: Array | None = None) -> Partition:
        """The nearest labels for given centres."""
        stats, labels = nearest_pass(self.engine, self.distortion, centers)
        return Partition(labels, centers, stats, at_rest=False)

    def alternate(self, centers: Array, prices: Array | None = None, *, bound: float = np.inf, max_passes: int = 300) -> Partition | None:
        """Alternate nearest labels and best centres; see ``alternate``."""
        return alternate(self.engine, self.distortion, centers, bound=bound, max_passes=max_passes, keep=self.keep)

    def allows(self, sizes: Labels, before: Labels) -> bool:
        """Whether components may go from the sizes ``before`` to these; none may be empty."""
        return bool(sizes.min() > 0)

    def charge(self, sizes: Labels) -> float:
        """Nothing: free components may have any size."""
        return 0.0

    def rearranged(self, centers: Array) -> Iterator[Array]:
        """Nothing: free components have no names."""
        return iter(())


class Assigner(Protocol):
    """Who gives items to components: free, or under bounds."""

    free: bool

    @property
    def keep(self) -> Keep:
        """Told of every partition on the way."""

    def assigned(self, centers: Array, prices: Array | None = None) -> Partition:
        """Labels for given centres."""

    def alternate(self, centers: Array, prices: Array | None = None, *, bound: float = np.inf, max_passes: int = 300) -> Partition | None:
        """Alternate labels and centres to a fixed point; None when one will clearly end above ``bound``."""

    def allows(self, sizes: Labels, before: Labels) -> bool:
        """Whether components may go from the sizes ``before`` to these."""

    def charge(self, sizes: Labels) -> float:
        """What the sizes cost beside the distances."""

    def rearranged(self, centers: Array) -> Iterator[Array]:
        """Other orders of the centres that are worth a try."""


@dataclass(frozen=True)
class Distances:
    """Per item: distance to its own centre, to the next nearest and to the reference, and its weight ω; each of shape (n_items,)."""

    own: Array
    second: Array
    sq: Array
    weight: Array


def distances(engine: Engine, distortion: Distortion, part: Partition) -> Distances:
    """Distances of every item to its own centre and to the nearest other."""
    return Distances(**engine.run(distortion, OwnAndOther(part.centers), {"labels": part.labels}).columns)


def refilled(engine: Engine, distortion: Distortion, centers: Array) -> Array:
    """Centres without empty components: each empty one is moved to the item that is explained worst.

    Fewer centres come back when the items have no more distinct positions.
    """
    while True:
        stats, _ = nearest_pass(engine, distortion, centers)
        empty = np.flatnonzero(stats.mass == 0)
        if not empty.size:
            return centers
        worst = _nearer(engine, distortion, centers).total
        if worst.cost == 0:
            return centers[stats.mass > 0] if stats.mass.any() else centers[:1]
        centers = centers.copy()
        centers[empty[0]] = item_points(engine, distortion, np.array([worst.item]))[0]


def opened(engine: Engine, distortion: Distortion, centers: Array, n_components: int) -> Array:
    """Centres, and as many more as are missing: each time the item that is explained worst, while items differ."""
    found = _nearer(engine, distortion, centers)
    while len(centers) < n_components and found.total.cost > 0:
        centers = np.vstack([centers, item_points(engine, distortion, np.array([found.total.item]))])
        found = _nearer(engine, distortion, centers[-1:], found.columns)
    return centers


def _nearer(engine: Engine, distortion: Distortion, centers: Array, before: Columns | None = None) -> Found:
    """How far every item is from the nearest of the centres, and of those before; and which costs most."""
    # A distance is exact to the rounding of the item's own distance to the reference.
    roundings = float(NEGLIGIBLE * np.finfo(engine.dtype).eps)
    return engine.run(distortion, Nearer(centers, item_rounding(engine, distortion), roundings, before is not None), before)


def alone(engine: Engine, distortion: Distortion) -> HardStats:
    """The sums with all items in one component at the reference."""
    return nearest_pass(engine, distortion, distortion.origin)[0]


def spread(engine: Engine, distortion: Distortion) -> float:
    """Mean distance of the items from the best centre of all."""
    stats = alone(engine, distortion)
    mass = float(stats.mass.sum())
    best = distortion.center(stats.sums, np.maximum(stats.mass, np.finfo(float).tiny))
    total = nearest_pass(engine, distortion, best)[0].total
    return total / mass if mass > 0 else 0.0


def finest(engine: Engine, distortion: Distortion, apart: float | None = None) -> float:
    """The least distance that is no rounding: of the items as they were given, or of the distances, taken about the reference.

    ``apart`` is their spread where it is known.
    """
    apart = spread(engine, distortion) if apart is None else apart
    distance = NEGLIGIBLE * float(np.finfo(engine.dtype).eps) * apart
    return max(item_rounding(engine, distortion), distance)


def item_rounding(engine: Engine, distortion: Distortion) -> float:
    """The least distance between items that is no rounding of theirs."""
    relative = (ITEM_ROUNDINGS * float(np.finfo(engine.given_dtype).eps)) ** 2
    if not (engine.forms_rows and distortion.framed):
        relative = max(relative, NEGLIGIBLE * float(np.finfo(engine.dtype).eps))
    return relative * distortion.measure.length(distortion.ref)


def item_points(engine: Engine, distortion: Distortion, index: Labels) -> Array:
    """The items at ``index`` as centres, shape (n, n_coordinates)."""
    chosen = engine.select(index)
    whole = slice(0, len(index))
    items = distortion.items(chosen.rows(whole), block_weight(chosen, whole))
    return distortion.points(items, np.arange(len(index)))


def all_known(engine: Engine, distortion: Moving) -> Array:
    """All that is ``known`` of few items."""
    chosen = engine.select(np.arange(engine.n_items))
    whole = slice(0, engine.n_items)
    return distortion.known(distortion.items(chosen.rows(whole), block_weight(chosen, whole)), np.arange(engine.n_items))


def item_places(engine: Engine, distortion: Distortion, index: Labels) -> Array:
    """Where components may be opened at the items at ``index``, shape (n, n_coordinates): in sight of others, see ``Distortion.blend``."""
    points = item_points(engine, distortion, index)
    if not distortion.blend:
        return points
    return distortion.to_frame((1 - distortion.blend) * distortion.to_data(points) + distortion.blend * distortion.ref)


def spaced(n_items: int, count: int) -> Labels:
    """At most ``count`` of so many items, at even steps."""
    return np.unique(np.linspace(0, n_items - 1, min(count, n_items)).astype(np.intp))


def rank_within(groups: Labels) -> Labels:
    """0 for the first occurrence of each group, 1 for the second, …"""
    order = np.argsort(groups, kind="stable")
    starts = np.concatenate([[True], np.diff(groups[order]) != 0]) if len(groups) else np.zeros(0, bool)
    first = np.maximum.accumulate(np.where(starts, np.arange(len(groups)), 0))
    rank = np.empty(len(groups), dtype=np.intp)
    rank[order] = np.arange(len(groups)) - first
    return rank
