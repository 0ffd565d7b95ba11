"""Where noise ends among the eigenvalues of the items: what is left of the others when every number gets a random sign.

Signs drawn by lot keep the size of every number, so that noise that differs by feature or by item, or is mostly zero, stays as it is,
and take away what items have in common. The largest eigenvalue that is left is what chance reaches (Hong, Sheng and Dobriban 2020).
What the leading directions explain is taken away first, lest it pass for noise (Dobriban and Owen 2019).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import svds

from ..._common.typing import Array, Labels
from ...progress import beat
from ..budget import BUDGET

# With fewer dimensions than this the median direction may carry signal: all of them are taken.
FEW_DIMS = 4
# An eigenvalue stands out by this many standard deviations of the draws above their mean, and by this many times n^(−2/3) of it: so much
# the largest eigenvalue varies (Tracy and Widom).
DEVIATIONS, LEAST_MARGIN = 2.0, 2.0
# Beyond half of the dimensions, an eigenvalue stands out by itself where it is so many times what chance reaches.
BY_FAR = 4.0
# Relative error of a largest singular value.
TOL = 1e-3


@dataclass(frozen=True)
class Edge:
    """The largest eigenvalue of noise, from all items or some that stand for all.

    Attributes
    ----------
    items : ndarray of shape (n, p)
        So that the eigenvalues are about those of itemsᵀ items.
    left : ndarray of shape (n, count)
        What the items have of the leading directions, orthonormal.
    repeats : ndarray of int of shape (n,)
        How many equal items each stands for: they have signs of their own.
    n_items : float
        Of all.
    """

    items: Array
    left: Array
    repeats: Labels
    n_items: float

    def reached(self, rank: int, value: float) -> float:
        """What chance reaches beside ``rank`` leading directions, or a number below ``value``.

        A residual varies by 1 − leverage of what it did. Where much was taken away this differs by feature; where features differ in
        their noise, the directions lean towards the noisy ones, and their leverage is too large. So the smaller edge is taken: with the
        mean leverage, or with that of each item and feature.
        """
        rest, n, p = self._rest(rank), self._n_drawn, self.items.shape[1]
        even = self._factor(rank) * self._largest(rest, rank)
        if value > even:
            return even
        left = self.left[:, :rank]
        explained = left.T @ self.items
        size = np.maximum(np.square(explained).sum(axis=1, keepdims=True), np.finfo(float).tiny)
        rows, columns = 1 - np.square(left).sum(axis=1) / self.repeats, 1 - (np.square(explained) / size).sum(axis=0)
        rest /= np.sqrt(np.maximum(rows / (1 - rank / n), 0.5))[:, None]
        rest /= np.sqrt(np.maximum(columns / (1 - rank / p), 0.5))
        return min(even, self._factor(rank) * self._largest(rest, rank))

    @property
    def _n_drawn(self) -> float:
        return float(self.repeats.sum())

    def equal(self, rank: int, explained: float) -> float:
        """What chance reaches beside ``rank`` leading directions that explain so much, if noise is equal everywhere, and a margin."""
        n, p = self.n_items - rank, self.items.shape[1] - rank
        level = max(float(np.square(self.items).sum()) - explained, np.finfo(float).tiny) / p
        return float(level * (1 + np.sqrt(p / n)) ** 2 * (1 + LEAST_MARGIN * n ** (-2 / 3)))

    def _factor(self, rank: int) -> float:
        """From a residual with random signs to noise of all items: n of them in p dimensions have the edge σ² (√n + √p)² / n."""
        n, p = self._n_drawn, self.items.shape[1]
        wider = (np.sqrt(self.n_items - rank) + np.sqrt(p - rank)) / (np.sqrt(n) + np.sqrt(p))
        return float(wider**2 * n / self.n_items / ((1 - rank / n) * (1 - rank / p)))

    def _rest(self, rank: int) -> Array:
        """What ``rank`` leading directions leave of each of the repeated items."""
        left = self.left[:, :rank]
        return (self.items - left @ (left.T @ self.items)) / np.sqrt(self.repeats)[:, None]

    def _largest(self, rest: Array, seed: int) -> float:
        """The mean of the largest eigenvalue with random signs, and a margin."""
        rest = np.repeat(rest, self.repeats, axis=0).astype(np.float32)
        scale = max(float(np.abs(rest).max(initial=0.0)), float(np.finfo(np.float32).tiny))
        rest /= scale
        rng = np.random.default_rng(seed)
        draws = int(np.clip(BUDGET.draw_numbers // rest.size, *BUDGET.sign_draws))
        found = np.array([scale * _largest_singular(_signed(rest, rng)) for _ in range(draws)]) ** 2
        mean = float(found.mean())
        return mean + max(DEVIATIONS * float(found.std(ddof=1)), LEAST_MARGIN * self.n_items ** (-2 / 3) * mean)


def _signed(items: Array, rng: np.random.Generator) -> Array:
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-items.size // 8)), dtype=np.uint8), count=items.size)
    return items * (2 * bits.reshape(items.shape).astype(items.dtype) - 1)


def _largest_singular(items: Array) -> float:
    start = np.ones(min(items.shape), dtype=items.dtype)
    # A product of float32 with few columns may raise the flag of lanes that hold no number of it: finite items have a finite answer.
    with np.errstate(invalid="ignore"):
        return float(svds(items, k=1, tol=TOL, v0=start, return_singular_vectors=False)[0])


def n_signals(values: Array, edge: Edge, *, shared: bool = False, even: bool = False) -> int:
    """How many of the eigenvalues, the largest first, stand above what chance reaches.

    Parameters
    ----------
    shared : bool
        Whether a direction is itself left among the noise that it must stand above. A direction of one item alone, or of one feature
        alone, then does not count: random signs leave it as large as it is.
    even : bool
        Whether the level of noise is known to be equal everywhere, as that of standardised counts is: directions then stand out one after
        another, the largest first.
    """
    beat()
    distinct, n_dims = edge.items.shape
    if n_dims <= FEW_DIMS:
        return min(len(values), n_dims)
    last, half = min(len(values), n_dims - 1, distinct - 1, int(edge.n_items) - 3), n_dims // 2
    if even:
        above = (values[r - 1] > _evenly(values, edge, r) for r in range(1, last + 1))
        return next((r for r, stands in enumerate(above) if not stands), last)
    # Few dimensions that are left cannot tell how noise differs: it is taken as equal. The largest of them always seems to stand out:
    # beyond half of the dimensions it must do so by far, or follow others.
    ratio = {r: float(values[r - 1]) / edge.equal(r, float(values[:r].sum())) for r in range(half + 1, last + 1)}
    rank = max((r for r, times in ratio.items() if times > BY_FAR), default=0) or _last(values[: min(last, half)], edge, int(shared))
    while half <= rank < last and ratio[rank + 1] > 1:
        rank += 1
    # With signal in all dimensions but one, nothing is left to tell whether the last is noise.
    return n_dims if rank == n_dims - 1 < len(values) else rank


def _last(values: Array, edge: Edge, left: int) -> int:
    """The number of the last eigenvalue that stands out: it takes all above it along. So many of these are left among the noise."""
    rank = len(values)
    while rank and values[rank - 1] <= (chance := edge.reached(rank - left, float(values[rank - 1]))):
        # With fewer directions taken away chance reaches no less.
        rank = int(np.count_nonzero(values[: rank - 1] > chance))
    return rank


def _evenly(values: Array, edge: Edge, rank: int) -> float:
    """What chance reaches before the direction of this ``rank`` where the level of noise is known to be equal.

    The direction itself is left among the noise, so that one of a feature alone, with a handful of counts, does not count: random signs
    leave it as large as it is. They also say what shape the noise has: the largest eigenvalue of profiles of 10 counts in 200 features is
    6 % below that of normal noise. Of half of the dimensions and more, equal noise is what is left.
    """
    if 2 * rank > edge.items.shape[1]:
        return edge.equal(rank, float(values[:rank].sum()))
    return edge.reached(rank - 1, float(values[rank - 1]))
