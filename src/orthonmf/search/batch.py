"""Alternations side by side: on few items many of them cost little more than one, which is all overhead."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._common.typing import Array
from ..distortion.base import Distortion
from ..engines.base import Engine
from ..passes.hard import Weights
from ..passes.samples import NearestOfEach
from ..passes.several import EachSums, NearestInEach
from .budget import BUDGET
from .partition import FALL_TOL, Partition, item_places


def at_once(engine: Engine, n_components: int) -> int:
    """Alternations that are worth doing side by side."""
    return int(np.clip(BUDGET.at_once_distances // (engine.n_items * n_components), 1, BUDGET.max_at_once))


def alternate_each(engine: Engine, distortion: Distortion, starts: Array, bound: float) -> list[Partition | None]:
    """For every set of centres (n_runs, n_components, n_coordinates) where alternation leads to.

    None where a component empties, or where the cost will clearly end above ``bound``.
    """
    ends: list[Partition | None] = [None] * len(starts)
    runs, centers = np.arange(len(starts)), starts
    labels, before = np.full((engine.n_items, len(starts)), -1, dtype=np.intp), np.full(len(starts), np.inf)
    for passes in range(BUDGET.batch_passes):
        found = engine.run(distortion, NearestInEach(centers), {"labels": labels})
        stats: EachSums = found.total
        labels = found.columns["labels"]
        total = stats.cost.sum(axis=1)
        fall = before - total
        full = stats.mass.all(axis=1)
        rest = full & (stats.changed == 0) & (fall <= FALL_TOL * total)
        for run in np.flatnonzero(rest):
            ends[runs[run]] = Partition(labels[:, run].copy(), centers[run].copy(), stats.of(int(run)))
        going = full & ~rest
        if passes >= BUDGET.patience:
            going &= total - BUDGET.optimism * fall <= bound
        if not going.any():
            break
        sums, mass = stats.sums[going], stats.mass[going]
        centers = distortion.center(sums.reshape(-1, sums.shape[2]), mass.ravel()).reshape(*mass.shape, -1)
        runs, labels, before = runs[going], labels[:, going], total[going]
    return ends


# -- starts ---------------------------------------------------------------------------------------------------------------------


def far_apart(engine: Engine, distortion: Distortion, n_components: int, n_starts: int, seed: int) -> Iterator[Array]:
    """Sets of items far from each other, each drawn in proportion to what it costs about those before."""
    rng = np.random.default_rng(seed)
    weight = engine.run(distortion, Weights()).columns["weight"]
    nearest = np.full((engine.n_items, n_starts), np.inf)
    chosen: list[Array] = []
    for _ in range(n_components):
        if chosen:
            nearest = engine.run(distortion, NearestOfEach(chosen[-1]), {"nearest": nearest}).columns["nearest"]
        cost = weight * (nearest.T if chosen else np.ones((n_starts, 1)))
        running = np.cumsum(cost, axis=1)
        drawn = (running <= rng.random((n_starts, 1)) * running[:, -1:]).sum(axis=1)
        chosen.append(item_places(engine, distortion, np.minimum(drawn, engine.n_items - 1)))
    return iter(np.stack(chosen, axis=1))
