"""Items as points of few dimensions: the leading directions that carry more than noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from .._typing import Array
from ..distortion.base import Distortion
from ..engines.base import Engine

# The largest eigenvalue of noise exceeds its limit by about n^(−2/3) of it (Tracy and Widom); twice that is rarely exceeded.
EDGE_MARGIN = 2.0
# With fewer dimensions than this the median direction may carry signal: all of them are taken.
FEW_DIMS = 4
# Numbers in which steps of the values are looked for.
GRID_NUMBERS = 1 << 24
# Steps below this fraction of a feature's range are rounding.
LEAST_STEP = 1e-7
# Variance, relative to the whole, below which points coincide.
COINCIDENT = 1e-12


@dataclass(frozen=True)
class Cloud:
    """Items in the directions that carry more than noise.

    Attributes
    ----------
    points : ndarray of shape (n, n_directions)
        Centred. Lines: the directions of the projected items, so that scale plays no part.
    weight : ndarray of shape (n,)
        Adds up to the effective number of items.
    noise : float
        Variance per direction of what was left out: no component varies less.
    blur : float
        Variance per direction of values that are recorded in steps: a step of δ hides δ²/12.
    used : ndarray of shape (n,)
        Which items these are; an item that is zero, or has nothing along the directions, is none of them.
    """

    points: Array
    weight: Array
    noise: float
    blur: float
    used: Array

    @cached_property
    def n_items(self) -> float:
        """The effective number of items."""
        return float(self.weight.sum())

    @cached_property
    def floor(self) -> float:
        """The least variance of a component."""
        total = float(self.weight @ np.square(self.points).sum(axis=1)) / (self.n_items * self.points.shape[1])
        return max(self.noise, self.blur, COINCIDENT * total)

    @property
    def toll(self) -> float:
        """What BIC asks for one parameter."""
        return 0.5 * float(np.log(max(self.n_items, 2.0)))


def effective_number(weight: Array) -> float:
    """How many items weighted ones are worth as evidence; the same for all multiples of the weights.

    Weights that are counts, up to their unit, count repeated items. Others are worth (Σ w)² / Σ w² (Kish).
    """
    ratio = weight[weight > 0] / weight[weight > 0].min()
    if np.allclose(ratio, np.round(ratio), rtol=1e-6, atol=0):
        return float(np.round(ratio).sum())
    return float(ratio.sum() ** 2 / np.square(ratio).sum())


def cloud_of(engine: Engine, distortion: Distortion, most: int, evidence: float) -> Cloud | None:
    """The items of a small engine as a cloud; None where no direction carries more than noise.

    Parameters
    ----------
    most : int
        The largest number of components asked about: so many have one dimension less.
    evidence : float
        Effective number of items.
    """
    whole = slice(0, engine.n_items)
    raw, each = engine.rows(whole), engine.block_weight(whole)
    mean, sq = distortion.mean_of(engine), raw.sqnorms()
    lines = mean is None
    used = np.flatnonzero((each > 0) & (sq > 0 if lines else True))
    share = np.zeros(engine.n_items)
    share[used] = each[used] / each[used].sum() / (sq[used] if lines else 1.0)
    n_dims = int(np.count_nonzero(raw.total(each)))
    values, points = _principal(engine, raw, share, mean, min(2 * most, n_dims, len(used)))
    rank = _signal(values, float((share * _away(raw, mean, sq)).sum()), n_dims, evidence)
    rank = min(rank, most if lines else most - 1)
    if rank <= lines:
        return None
    noise = max(float((share * _away(raw, mean, sq)).sum() - values[:rank].sum()), 0.0) / max(n_dims - rank, 1)
    points, blur = points[:, :rank], _blur(raw, sq, used, lines)
    if lines:
        used, points, noise = _directions(points, sq, used, noise)
    weight = each[used] * (evidence / each[used].sum())
    points = points if lines else points[used]
    return Cloud(_centred(points, weight, rank - lines), weight, noise, blur, used)


def _away(raw: Any, mean: Array | None, sq: Array) -> Array:
    """Squared distance of every item to the mean, or to the origin."""
    return sq if mean is None else np.maximum(sq - 2 * raw.project(mean) + float(mean @ mean), 0.0)


def _principal(engine: Engine, raw: Any, share: Array, mean: Array | None, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues of Σ share x xᵀ, and the items along their directions (n, count)."""
    n_dims, wide = engine.n_dims, engine.n_dims > engine.n_items
    if wide:
        each = engine.block_weight(slice(0, engine.n_items))
        factor = np.sqrt(np.divide(share, each, out=np.zeros_like(share), where=each > 0))
        matrix = engine.outer(mean) * factor * factor[:, None]
    else:
        matrix = raw.gram(share, mean)
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(len(matrix) - count, len(matrix) - 1))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    # The sign of an eigenvector is arbitrary: its largest entry is made positive.
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)])
    if not wide:
        inner = raw.framed(None, None, np.zeros(n_dims)).dot(np.ascontiguousarray(vectors.T)).T
        return values, inner - (0.0 if mean is None else mean @ vectors)
    root = np.sqrt(share)[:, None]
    return values, np.divide(vectors * np.sqrt(values), root, out=np.zeros_like(vectors), where=root > 0)


def _signal(values: Array, total: float, n_dims: int, n_items: float) -> int:
    """How many eigenvalues stand above what noise of the level of the others reaches: σ² (1 + √(p/n))² (Marchenko and Pastur)."""
    if n_dims <= FEW_DIMS:
        return len(values)
    rank = 0
    for r in range(1, len(values)):
        dims, items = n_dims - r, n_items - r
        if items < 3 or dims < 1:
            break
        level = max(total - float(values[:r].sum()), 0.0) / dims
        if values[r - 1] > level * (1 + np.sqrt(dims / items)) ** 2 * (1 + EDGE_MARGIN * items ** (-2 / 3)):
            rank = r
    return rank


def _directions(points: Array, sq: Array, used: Array, noise: float) -> tuple[Array, Array, float]:
    """Items of any length as directions within the signal: their scale plays no part there either."""
    unit = points[used] / np.sqrt(sq[used])[:, None]
    length = np.linalg.norm(unit, axis=1)
    seen = length > LEAST_STEP
    return used[seen], unit[seen] / length[seen][:, None], noise / float(np.mean(length[seen] ** 2))


def _centred(points: Array, weight: Array, count: int) -> Array:
    """Points about their mean, along their own ``count`` leading directions."""
    share = weight / weight.sum()
    centred = points - share @ points
    vectors = np.linalg.eigh((centred * share[:, None]).T @ centred)[1][:, ::-1][:, :count]
    return centred @ (vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]))


def _blur(raw: Any, sq: Array, used: Array, lines: bool) -> float:
    """Variance that steps of the values hide, per direction: the mean of δ²/12 over the features; 0 where there are no steps."""
    n_dims = len(raw.total(np.zeros(raw.n_items)))
    if raw.n_items * n_dims > GRID_NUMBERS:
        return 0.0
    columns = np.sort(raw.framed(None, None, np.zeros(n_dims)).take(np.arange(raw.n_items)), axis=0)
    gaps, reach = np.diff(columns, axis=0), columns[-1] - columns[0]
    steps = np.where(gaps > LEAST_STEP * reach, gaps, np.inf).min(axis=0, initial=np.inf)
    hidden = float(np.mean(np.where(np.isfinite(steps), steps, 0.0) ** 2)) / 12
    return hidden * float(np.mean(1 / sq[used])) if lines else hidden
