"""Passes with responsibilities of free components: Gibbs weights at a temperature, and the posterior of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._common.typing import Array
from ..distortion.base import Items, Pairs
from .base import GIVEN_WEIGHT, Additive, Columns, Count, Found
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
    """Column ``resp`` (n_items, n_components): π_j exp(−d_ij / 2σ²), normalised; the nearest component takes all where σ is 0.

    Where items are ``sized``, ω_i d_ij stands for d_ij.
    """

    centers: Array
    log_share: Array
    variance: float
    sized: bool = False
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        distance = items.pairs(self.centers).distance
        if self.sized:
            distance *= items.weight
        distance -= distance.min(axis=0)
        # Without any width, of equally near components each takes its share.
        nearness = np.where(distance > 0, -np.inf, 0.0) if self.variance == 0 else distance / (-2 * self.variance)
        logit = self.log_share[:, None] + nearness
        return Found(Count(len(items)), {"resp": np.exp(logit - np.logaddexp.reduce(logit, axis=0)).T})


@dataclass(frozen=True)
class CountedSums(Additive):
    """Of a mixture of counts: Σ w, the shares Σ w p, the masses Σ ω p, what makes the centres, and Σ w log Σ_j π_j exp(−D_ij / φ)."""

    count: int
    weight: float
    share: Array
    mass: Array
    sums: Array
    log_likelihood: float


@dataclass(frozen=True)
class Counted:
    """The sums of the posterior of a mixture of counts, π_j exp(−D_ij / φ) with D_ij = (ω_i / w_i) d_ij."""

    centers: Array
    log_share: Array
    dispersion: float
    reads: ClassVar = (GIVEN_WEIGHT,)

    def __call__(self, items: Items, columns: Columns) -> Found:
        pairs, weight = items.pairs(self.centers), columns[GIVEN_WEIGHT]
        size = np.divide(items.weight, weight, out=np.zeros_like(items.weight), where=weight > 0)
        logits = self.log_share[:, None] - pairs.distance * (size / self.dispersion)
        log_z = np.logaddexp.reduce(logits, axis=0)
        resp = np.exp(logits - log_z)
        sums = items.sums(resp * items.weight, pairs.inner)
        return Found(
            CountedSums(len(items), float(weight.sum()), resp @ weight, resp @ items.weight, sums, float(weight @ log_z)),
        )
