"""Few items: the best of all partitions within bounds, found by going through every subset."""

from __future__ import annotations

import numpy as np

from ..._common.typing import Array
from ...distortion.base import Moving
from ...engines.base import Engine
from ...passes.hard import Weights
from ..partition import Partition, all_known, centered
from .assigner import Bounded

# For the best centres, which are far from where they begin; a pass over so few items is quick.
CENTER_PASSES = 1000


def best_of_all(engine: Engine, distortion: Moving, assigner: Bounded) -> Partition:
    """The best partition of few items.

    With f_j(S) the least cost of giving the items S to the components j, j + 1, …, f_j(S) = min over the subsets R of S of what R costs
    as component j, plus f_{j+1}(S − R).
    """
    n_items, sets = engine.n_items, np.arange(2**engine.n_items)
    members = (sets[:, None] >> np.arange(n_items)) & 1 == 1
    costs, size = _subset_costs(engine, distortion, members), members.sum(axis=1)
    whole, part = np.nonzero((sets & ~sets[:, None]) == 0)  # every pair of a set and a subset, ordered by the set
    starts = np.flatnonzero(np.diff(whole, prepend=-1))
    least, chosen = np.where(sets == 0, 0.0, np.inf), []
    for charge in _charges(assigner, n_items)[::-1]:
        total = costs[part] + charge[size[part]] + least[whole - part]
        least = np.minimum.reduceat(total, starts)
        best = np.flatnonzero(total == least[whole])
        chosen.append(part[best[np.unique(whole[best], return_index=True)[1]]])
    labels, rest = np.zeros(n_items, dtype=np.intp), sets[-1]
    for j, taken in enumerate(chosen[::-1]):
        labels[members[taken[rest]]] = j
        rest -= taken[rest]
    return centered(engine, distortion, labels, np.repeat(distortion.origin, len(chosen), axis=0), max_passes=CENTER_PASSES)


def _charges(assigner: Bounded, n_items: int) -> Array:
    """What each size costs each component beside the distances, (n_components, n_items + 1); inf where it is not allowed."""
    lower, upper = assigner.bounds.lower[:, None], assigner.bounds.upper[:, None]
    sizes = np.arange(n_items + 1)
    outside = np.maximum(sizes - upper, 0) + np.maximum(lower - sizes, 0)
    charge = np.multiply(outside, assigner.bounds.penalty, out=np.zeros(outside.shape), where=outside > 0)
    charge[:, : assigner.least_size] = np.inf
    return charge


def _subset_costs(engine: Engine, distortion: Moving, members: Array) -> Array:
    """The cost of every subset (a row of ``members``) as one component."""
    points = all_known(engine, distortion)
    if distortion.turnable:  # in coordinates of their own span, of which items have no more than their number
        points = np.asarray(np.linalg.qr(points.T, mode="r")).T
    weight = engine.run(distortion, Weights()).columns["weight"]
    return np.array([distortion.least_cost(points[mine], weight[mine]) for mine in members])
