"""Fewer items that stand for all: equal ones merged into one, and samples whose weights make their sums those of all."""

from __future__ import annotations

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Distortion
from ..engines.base import BLIND, Engine, block_weight, reweighted
from ..passes.base import Found
from ..passes.columns import Chances, ChanceSums, Drawn, Pool
from ..passes.raw import Keys
from ..passes.samples import LeastCost, Share, Shares
from .budget import BUDGET
from .partition import item_places


def mergeable(engine: Engine) -> bool:
    """Whether a copy of the items is small enough for ``merged``."""
    return engine.n_items * max(engine.row_width, 1) <= BUDGET.merge_numbers


def merged(engine: Engine) -> tuple[Engine, Labels]:
    """An engine in float64 on the distinct items of any weight, and for every given item which of them it is.

    Equal items become one with the sum of their weights; items without weight are left out (−1). The order is by norm, so that neither
    repeating items instead of weighting them nor the order in which they were given changes anything.
    """
    found = engine.run(None, Keys()).columns
    keys, size = found["key"], found["sq"]
    weight = block_weight(engine, slice(0, engine.n_items))
    heavy = np.flatnonzero(weight > 0)
    _, first, group = np.unique(keys[heavy], return_index=True, return_inverse=True)
    first = heavy[first]
    order = np.lexsort((keys[first], size[first]))
    index = np.full(engine.n_items, -1)
    index[heavy] = np.argsort(order)[group]
    small = engine.select(first[order])
    small.weight = np.bincount(index[heavy], weight[heavy], len(first)).astype(float)
    return small, index


def coreset(engine: Engine, distortion: Distortion, n_items: int, seed: int, centers: Array | None = None) -> Engine:
    """An engine in float64 on about ``n_items`` items, with weights such that its sums are those of all items on average.

    What weighs is seen: an item is drawn in proportion to what it adds to the cost about ``centers``, and to its part of what its
    component weighs, half and half; without ``centers``, about some that a first such sample suggests. An engine that is no larger
    comes back as it is, if in float64.
    """
    if engine.n_items <= n_items:
        return engine if engine.dtype == np.float64 else engine.select(np.arange(engine.n_items))
    if centers is None:
        first = coreset(engine, distortion, BUDGET.rough_items, seed, distortion.origin)
        centers = _apart(first, distortion, BUDGET.rough_centers, seed)
    return _drawn(engine, distortion, centers, n_items, seed)


def unweighted(sample: Engine) -> Engine:
    """A sample of which each item counts as one: by weight, a small group that it was drawn to see would be next to nothing."""
    return reweighted(sample, None)


def _drawn(engine: Engine, distortion: Distortion, centers: Array, n_items: int, seed: int) -> Engine:
    share = _shares(engine, distortion, centers)
    if share is None:
        return engine
    drawn: Pool = engine.run(BLIND, Drawn(seed, _factor(engine, share, n_items)), share.columns).total
    small = engine.select(drawn.items)
    small.weight = block_weight(small, slice(0, small.n_items)) / drawn.values
    return small


def _shares(engine: Engine, distortion: Distortion, centers: Array) -> Found | None:
    """An item's part of all that is drawn from; None where nothing weighs. What it was found from takes 20 bytes an item, and goes."""
    found = engine.run(distortion, Shares(centers))
    return engine.run(BLIND, Share(found.total), found.columns) if found.total.mass.any() else None


def _factor(engine: Engine, share: Found, expected: int) -> float:
    """By which shares become chances, at most one each, that add up to ``expected``."""
    n_sure, before, rest = 0, -1, share.total.total
    # Of fewer items than expected all are sure, and nothing is left to share.
    while n_sure > before and rest > expected * np.finfo(float).tiny:
        factor = (expected - n_sure) / rest
        sums: ChanceSums = engine.run(BLIND, Chances(factor), share.columns).total
        before, n_sure, rest = n_sure, sums.sure, sums.rest
    return factor


def _apart(engine: Engine, distortion: Distortion, n_centers: int, seed: int) -> Array:
    """Items far from each other: each drawn in proportion to what it costs about those before."""
    rng = np.random.default_rng(seed)
    cost = np.full(engine.n_items, np.inf)
    centers = distortion.origin
    for _ in range(n_centers):
        cost = engine.run(distortion, LeastCost(centers[-1:]), {"cost": cost}).columns["cost"]
        if not cost.any():
            break
        chosen = np.searchsorted(np.cumsum(cost), rng.random() * cost.sum())
        centers = np.vstack([centers, item_places(engine, distortion, np.array([min(chosen, engine.n_items - 1)]))])
    return centers
