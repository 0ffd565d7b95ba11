"""Alternations side by side: on few items many of them cost little more than one, which is all overhead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ._typing import Array, Labels
from .distortion.base import Distortion, Items
from .engines.base import Engine
from .partition import OPTIMISM, PATIENCE, REST, Count, HardStats, Partition, item_points
from .state import Additive

# As many alternations at once as keep this many distances; more leave the cache.
AT_ONCE_DISTANCES, MAX_AT_ONCE = 1 << 16, 32
MAX_PASSES = 300


def at_once(engine: Engine, n_components: int) -> int:
    """Alternations that are worth doing side by side."""
    return int(np.clip(AT_ONCE_DISTANCES // (engine.n_items * n_components), 1, MAX_AT_ONCE))


@dataclass(frozen=True)
class _Sums(Additive):
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


def _pass(engine: Engine, distortion: Distortion, centers: Array, labels: Labels) -> _Sums:
    """Give every item its nearest component, in every set of centres; writes ``labels``."""
    n_runs, n_components, width = centers.shape

    def kernel(items: Items, where: slice) -> _Sums:
        pairs = distortion.pairs(items, centers.reshape(-1, width))
        distance = pairs.distance.reshape(n_runs, n_components, len(items))
        found = distance.argmin(axis=1)
        changed = np.count_nonzero(found != labels[:, where], axis=1)
        labels[:, where] = found
        row = (found + np.arange(0, n_runs * n_components, n_components)[:, None]).ravel()
        column = np.tile(np.arange(len(items)), n_runs)
        own, weight = np.maximum(pairs.distance[row, column], 0), np.tile(items.weight, n_runs)
        resp = np.zeros_like(pairs.distance)
        resp[row, column] = weight
        shape, size = (n_runs, n_components), n_runs * n_components
        return _Sums(
            count=len(items),
            mass=np.bincount(row, weight, size).reshape(shape),
            sizes=np.bincount(row, minlength=size).reshape(shape),
            cost=np.bincount(row, weight * own, size).reshape(shape),
            sums=distortion.sums(items, resp, pairs.inner).reshape(*shape, -1),
            changed=changed,
        )

    sums: _Sums = engine.reduce_items(distortion, kernel)
    return sums


def alternate_each(engine: Engine, distortion: Distortion, starts: Array, bound: float) -> list[Partition | None]:
    """For every set of centres (n_runs, n_components, n_coordinates) where alternation leads to.

    None where a component empties, or where the cost will clearly end above ``bound``.
    """
    ends: list[Partition | None] = [None] * len(starts)
    runs, centers = np.arange(len(starts)), starts
    labels, before = np.full((len(starts), engine.n_items), -1, dtype=np.intp), np.full(len(starts), np.inf)
    for passes in range(MAX_PASSES):
        stats = _pass(engine, distortion, centers, labels)
        total = stats.cost.sum(axis=1)
        fall = before - total
        full = stats.mass.all(axis=1)
        rest = full & (stats.changed == 0) & (fall <= REST * total)
        for run in np.flatnonzero(rest):
            ends[runs[run]] = Partition(labels[run].copy(), centers[run].copy(), stats.of(int(run)))
        going = full & ~rest
        if passes >= PATIENCE:
            going &= total - OPTIMISM * fall <= bound
        if not going.any():
            break
        sums, mass = stats.sums[going], stats.mass[going]
        centers = distortion.center(sums.reshape(-1, sums.shape[2]), mass.ravel()).reshape(sums.shape)
        runs, labels, before = runs[going], labels[going], total[going]
    return ends


# -- starts ---------------------------------------------------------------------------------------------------------------------


def far_apart(engine: Engine, distortion: Distortion, n_components: int, n_starts: int, seed: int) -> Iterator[Array]:
    """Sets of items far from each other, each drawn in proportion to what it costs about those before."""
    rng = np.random.default_rng(seed)
    cost, nearest = np.empty((n_starts, engine.n_items)), np.full((n_starts, engine.n_items), np.inf)
    chosen: list[Array] = []

    def kernel(items: Items, where: slice) -> Count:
        if chosen:
            distance = np.maximum(distortion.pairs(items, chosen[-1]).distance, 0)
            nearest[:, where] = np.minimum(nearest[:, where], distance)
        cost[:, where] = items.weight * (nearest[:, where] if chosen else 1.0)
        return Count(len(items))

    for _ in range(n_components):
        engine.reduce_items(distortion, kernel)
        running = np.cumsum(cost, axis=1)
        drawn = (running <= rng.random((n_starts, 1)) * running[:, -1:]).sum(axis=1)
        chosen.append(item_points(engine, distortion, np.minimum(drawn, engine.n_items - 1)))
    return iter(np.stack(chosen, axis=1))
