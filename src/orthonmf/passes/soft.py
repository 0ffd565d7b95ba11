"""Passes with responsibilities of free components: Gibbs weights at a temperature, and the posterior of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._common.typing import Array
from ..distortion.base import Items, Pairs
from .base import Columns, Count, Found
from .state import State, Stats


def soft(items: Items, state: State) -> tuple[Array, Pairs, Array]:
    """Weighted responsibilities ω_i p_ij (k, block), distances, and log Z_i (block,) of a block.

    p_ij = α_j exp(−β d_ij) / Z_i, always in log space.
    """
    pairs = items.pairs(state.centers)
    dtype = pairs.distance.dtype
    resp = pairs.distance * dtype.type(-state.beta)
    resp += state.log_mass.astype(dtype)[:, None]
    top = resp.max(axis=0)
    resp -= top
    np.exp(resp, out=resp)
    total = resp.sum(axis=0)
    resp *= items.weight.astype(dtype) / total
    return resp, pairs, np.log(total) + top


@dataclass(frozen=True)
class Gibbs:
    """The sums of Gibbs responsibilities at a state."""

    state: State
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        resp, pairs, log_z = soft(items, self.state)
        return Found(
            Stats(
                count=len(items),
                weight=float(items.weight.sum()),
                mass=resp.sum(axis=1, dtype=np.float64),
                sums=items.sums(resp, pairs.inner),
                log_partition=float(np.dot(items.weight, log_z)),
                distortion=float(np.vdot(resp, pairs.distance)),
            )
        )


@dataclass(frozen=True)
class Posterior:
    """Column ``resp`` (n_items, n_components): π_j exp(−d_ij / 2σ²), normalised; the nearest component takes all where σ is 0."""

    centers: Array
    log_share: Array
    variance: float
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        distance = items.pairs(self.centers).distance
        distance -= distance.min(axis=0)
        # Without any width, of equally near components each takes its share.
        nearness = np.where(distance > 0, -np.inf, 0.0) if self.variance == 0 else distance / (-2 * self.variance)
        logit = self.log_share[:, None] + nearness
        return Found(Count(len(items)), {"resp": np.exp(logit - np.logaddexp.reduce(logit, axis=0)).T})
