"""The annealing of prices of few items, with compiled steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...engines.base import block_weight
from ...passes.priced import Priced, PricedStats
from ..budget import BUDGET
from . import price_kernels
from .dual import RIDGE, Dual


@dataclass
class CompiledDual(Dual):
    """As ``Dual``, of few items, which are framed once; the steps of the prices at fixed centres see them in one call."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = slice(0, self.engine.n_items)
        self.items = self.distortion.items(self.engine.rows(whole), block_weight(self.engine, whole))
        self.size = np.ones((1, len(self.items))) if self.engine.size is None else self.engine.size[None]
        self.tau = np.maximum(self.items.weight, self.floor)
        self.spread = float(self.items.weight @ self.items.sq)

    def priced_out(self, priced: Priced, tol: float) -> tuple[Priced, PricedStats]:
        """Prices that maximise the dual at fixed centres: projected Newton with a line search."""
        self.engine.team.check()
        n_items, pairs, steepness = len(self.items), self.items.pairs(priced.centers), priced.beta / self.tau
        costs = np.maximum(pairs.distance, 0) * self.items.weight
        resp, counts, prices = np.empty_like(costs), np.empty(len(costs)), priced.prices.astype(np.float64)
        bounds = np.stack([priced.pooled(self.bounds.lower), priced.pooled(self.bounds.upper)])
        ridge, width = RIDGE * priced.beta * n_items / self.mean_tau, max(self.spread / n_items, self.floor)
        limits = tol * n_items, self.penalty, ridge, width, BUDGET.price_steps
        distortion, soft_min, looks = price_kernels.priced_out(
            costs, steepness, self.size, priced.log_slots, bounds, limits, prices, resp, counts
        )
        for _ in range(looks):
            self.engine.count_pass(self.distortion)
        curvature = np.empty((len(costs), len(costs)))
        price_kernels.curved(resp, steepness, self.size, curvature)
        resp *= self.items.weight
        sums = self.items.sums(resp, pairs.inner)
        stats = PricedStats(n_items, counts, resp.sum(axis=1), sums, curvature, soft_min, distortion, self.spread)
        return replace(priced, prices=prices), stats
