"""Passes with responsibilities under bounds: p_ij ∝ s_j exp(−β (ω_i d_ij + price_j) / τ_i), see ``search.bounded.dual``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Items, Pairs
from .base import Additive, Columns, Found


@lru_cache(maxsize=64)
def _in_turn(slots: tuple[tuple[int, ...], ...]) -> tuple[Labels, Labels]:
    """The slots of all centres one after the other, and where those of each begin."""
    sizes = [len(each) for each in slots]
    return np.concatenate([np.array(each) for each in slots]), np.cumsum([0, *sizes[:-1]])


@dataclass(frozen=True)
class Priced:
    """Distinct centres, the slots each stands for, and their prices.

    Attributes
    ----------
    beta : float
    centers : ndarray of shape (m, n_coordinates)
    slots : tuple of tuples of int
        Which of the k components each centre stands for.
    prices : ndarray of shape (m,)
    """

    beta: float
    centers: Array
    slots: tuple[tuple[int, ...], ...]
    prices: Array

    def pooled(self, each: Array) -> Array:
        """Sum of a bound over the slots of each centre."""
        order, starts = _in_turn(self.slots)
        return np.add.reduceat(each[order], starts).astype(np.float64)

    @property
    def log_slots(self) -> Array:
        return np.log([len(slots) for slots in self.slots])


@dataclass(frozen=True)
class PricedStats(Additive):
    """Sums of one pass: soft counts, weights, what makes the centres, the curvature of the dual, its smooth part, the distortion."""

    count: int
    counts: Array
    mass: Array
    sums: Array
    curvature: Array
    soft_min: float
    distortion: float
    spread: float


def priced_soft(items: Items, priced: Priced, floor: float) -> tuple[Array, Pairs, Array, Array]:
    """p (m, block), distances, τ (block,), and −(τ/β) log Z (block,); no τ is below ``floor``."""
    pairs = items.pairs(priced.centers)
    tau = np.maximum(items.weight, floor)
    logits = np.maximum(pairs.distance, 0) * (-priced.beta * items.weight / tau)
    logits -= np.multiply.outer(priced.prices, priced.beta * items.size / tau)
    logits += priced.log_slots[:, None]
    top = logits.max(axis=0)
    logits -= top
    resp = np.exp(logits, out=logits)
    total = resp.sum(axis=0)
    resp /= total
    return resp, pairs, tau, -(tau / priced.beta) * (np.log(total) + top)


@dataclass(frozen=True)
class PricedSums:
    """The sums of responsibilities at some prices."""

    priced: Priced
    floor: float
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        priced = self.priced
        resp, pairs, tau, soft_min = priced_soft(items, priced, self.floor)
        weighted = resp * items.weight
        loads = resp * items.size
        scaled = loads * (items.size / tau)
        return Found(
            PricedStats(
                count=len(items),
                counts=loads.sum(axis=1),
                mass=weighted.sum(axis=1),
                sums=items.sums(weighted, pairs.inner),
                curvature=priced.beta * (np.diag(scaled.sum(axis=1)) - scaled @ resp.T),
                soft_min=float(soft_min.sum()),
                distortion=float(np.vdot(weighted, np.maximum(pairs.distance, 0))),
                spread=float(items.weight @ items.sq),
            )
        )
