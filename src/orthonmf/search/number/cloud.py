"""Items as points of few dimensions: the leading directions that carry more than noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.linalg

from ..._common.typing import Array
from ...distortion.base import Distortion, mean_of
from ...engines.base import Engine, as_counts, block_weight, weighted_mean
from ..budget import BUDGET
from .edge import Edge, n_signals
from .shape import BALL, Counted, Shape
from .unevenness import unevenness

# No component varies less than this share of the noise of all: components may differ in their noise.
NOISE_SHARE = 0.5
# Steps below this fraction of a feature's range are rounding.
LEAST_STEP = 1e-7
# What a direction leaves of an item that it was found from, at least, as a share of what it leaves of others.
LEAST_LEFT = 0.5
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
    precision : ndarray of shape (n,)
        One over the variance of each item's noise, up to a factor: 1, or for lines the squared length of the item. Noise that was added
        to items of different lengths turns the shorter ones farther.
    shape : Shape
        How noise lies about a mean.
    """

    points: Array
    weight: Array
    noise: float
    blur: float
    used: Array
    precision: Array
    shape: Shape = BALL

    @cached_property
    def n_items(self) -> float:
        """The effective number of items."""
        return float(self.weight.sum())

    @cached_property
    def floor(self) -> float:
        """The least variance of a component."""
        total = float(self.weight @ np.square(self.points).sum(axis=1)) / (self.n_items * self.points.shape[1])
        return max(NOISE_SHARE * self.noise, self.blur, COINCIDENT * total)

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


def clouds_of(engine: Engine, distortion: Distortion, most: int, evidence: float) -> list[Cloud]:
    """The items of a small engine as a cloud, for lines also with the noise of short items larger; none where there is only noise.

    Parameters
    ----------
    most : int
        The largest number of components asked about: so many have one dimension less.
    evidence : float
        Effective number of items.
    """
    counts = distortion.power == 1
    engine, lengths = standardised(engine, distortion) if counts else (engine, np.ones(engine.n_items))
    whole = slice(0, engine.n_items)
    raw, each = engine.rows(whole), block_weight(engine, whole)
    mean, sq = weighted_mean(engine) if counts else mean_of(engine, distortion), raw.sqnorms()
    lines = mean is None
    used = np.flatnonzero((each > 0) & (lengths > 0) & (sq > 0 if lines else True))
    if not len(used):
        return []
    share = np.zeros(engine.n_items)
    share[used] = each[used] / each[used].sum() / (sq[used] if lines else 1.0)
    if counts:
        share[used] = each[used] * lengths[used] / (each[used] @ lengths[used])
    copies = each * (evidence / each[used].sum())
    if lines:
        shared = _signal(engine, share, mean, most, copies, shared=True)
        if shared.rank < min(len(used), shared.n_dims) / 2:
            share[used] /= unevenness(sq[used], shared.rest(share, sq)[used], each[used])
    signal = _signal(engine, share, mean, most, copies, even=counts)
    rank = min(signal.rank, most if lines else most - 1)
    if rank <= lines:
        return []
    values, total = signal.values[:rank], float((share * _away(raw, mean, sq)).sum())
    noise = max(total - float(values.sum()), 0.0) / max(signal.n_dims - rank, 1)
    points, length = signal.points[used, :rank] / inflation(values, noise, signal.n_dims / evidence), np.ones(len(used))
    if lines:
        points, length = _directions(points / np.sqrt(sq[used])[:, None])
        points, used = points[length > 0], used[length > 0]
        noise, length = noise / float(np.mean(np.square(length[length > 0]))), length[length > 0]
    weight = each[used] * (evidence / each[used].sum())
    blur = 0.0 if counts else _blur(raw, sq, used, lines)
    origin, axes = _own_axes(points, weight, rank - lines)
    even = Cloud((points - origin) @ axes, weight, noise, blur, used, np.ones(len(used)))
    if counts:
        about = cast(Array, mean)
        directions = _features(raw, share, about, signal, rank)
        at, root = about + origin @ directions, np.sqrt(distortion.ref)
        even = replace(even, shape=Counted.of(axes.T @ directions, at, root, profiles=distortion.scaled))
    if not (lines or (lengths[used] != lengths[used[0]]).any()):
        return [even]
    precision = np.square(length) * sq[used] if lines else lengths[used]
    return [even, replace(even, precision=precision / np.average(precision, weights=weight))]


def standardised(engine: Engine, distortion: Distortion) -> tuple[Engine, Array]:
    """Counts whose noise is a ball where they are as all are, on an engine of the same kind, and lengths, with which its variance falls.

    A count x_a of mean t g_a has the variance t g_a. So x_a / √g_a has the variance t in every dimension, and x_a / (t √g_a) has 1 / t:
    profiles of items of length t = |x|, about √g. An item that is zero has the length 0.
    """
    raw = as_counts(engine.rows(slice(0, engine.n_items)))
    lengths = raw.sums() if distortion.scaled else np.ones(engine.n_items)
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    values = raw.times(inverse, 1 / np.sqrt(distortion.ref))
    return type(engine).of(values, engine.weight, None, 0, engine.team), lengths


@dataclass(frozen=True)
class _Signal:
    """The leading directions of all items.

    Attributes
    ----------
    values : ndarray of shape (count,)
        Eigenvalues, the largest first.
    points : ndarray of shape (n, count)
        The items along the directions.
    rank : int
        How many directions carry more than noise.
    n_dims : int
        Of the features, how many have something.
    """

    values: Array
    points: Array
    rank: int
    n_dims: int

    def rest(self, share: Array, sq: Array) -> Array:
        """The square of what the signal leaves of each item; a direction leans towards the items that it was found from."""
        along = np.square(self.points[:, : self.rank])
        leverage = share * (along / self.values[: self.rank]).sum(axis=1)
        return np.maximum(sq - along.sum(axis=1), 0.0) / np.maximum(1 - leverage, LEAST_LEFT)


def _signal(
    engine: Engine, share: Array, mean: Array | None, most: int, copies: Array, *, shared: bool = False, even: bool = False
) -> _Signal:
    """The directions of Σ share x xᵀ; items stand for ``copies`` (n,) each."""
    whole = slice(0, engine.n_items)
    raw, used = engine.rows(whole), np.flatnonzero(share)
    n_dims = int(np.count_nonzero(raw.total(block_weight(engine, whole))))
    values, points = _principal(engine, raw, share, mean, min(2 * most, n_dims, len(used)))
    # Few items that are repeated again and again carry no noise.
    if len(used) <= min(most, copies[used].sum() / 2):
        return _Signal(values, points, len(values), n_dims)
    left = points * np.sqrt(share)[:, None] / np.sqrt(np.maximum(values, np.finfo(float).tiny))
    numbers = BUDGET.rough_edge_numbers if shared else BUDGET.edge_numbers
    return _Signal(values, points, n_signals(values, _edge(raw, share, mean, left, copies, numbers), shared=shared, even=even), n_dims)


def _away(raw: Any, mean: Array | None, sq: Array) -> Array:
    """Squared distance of every item to the mean, or to the origin."""
    return sq if mean is None else np.maximum(sq - 2 * raw.project(mean) + float(mean @ mean), 0.0)


def _principal(engine: Engine, raw: Any, share: Array, mean: Array | None, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues of Σ share x xᵀ, and the items along their directions (n, count)."""
    n_dims, wide = engine.n_dims, engine.n_dims > engine.n_items
    if wide:
        each = block_weight(engine, slice(0, engine.n_items))
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


def _edge(raw: Any, share: Array, mean: Array | None, left: Array, copies: Array, numbers: int) -> Edge:
    """The edge of noise among the eigenvalues of Σ share x xᵀ; items stand for ``copies`` (n,) each, some for all."""
    used = np.flatnonzero(share)
    ref = np.zeros(len(raw.total(np.zeros(len(raw))))) if mean is None else mean
    most = max(numbers // len(ref), BUDGET.edge_items)
    some = used[np.linspace(0, len(used) - 1, min(len(used), most)).astype(int)]
    items = raw.framed(None, None if mean is None else np.ones(len(raw)), ref).take(some)
    items *= np.sqrt(share[some] * (copies[used].sum() / copies[some].sum()))[:, None]
    energy = np.square(items).sum(axis=0)
    # An order that the features have by themselves, so that another one changes nothing.
    order = np.argsort(energy, kind="stable")
    total = float(copies[used].sum())
    repeats = np.maximum(np.round(copies[some] * min(1.0, most / total)), 1).astype(int)
    return Edge(items[:, order[energy[order] > COINCIDENT * energy.max()]], np.linalg.qr(left[some])[0], repeats, total)


def inflation(values: Array, noise: float, ratio: float) -> Array:
    """By how much noise is wider along sample eigenvectors than along others: they lean towards the noise of the very items.

    In units of the noise's variance, an eigenvalue y belongs to ℓ with y = (1 + ℓ)(1 + γ/ℓ), where γ is the number of dimensions per
    item, and the noise along it has the deviation 1 + γ/ℓ; at the edge of noise ℓ = √γ.
    """
    unit = max(noise, np.finfo(float).eps * float(values[0]))
    excess = np.maximum(values / unit - 1 - ratio, 2 * np.sqrt(ratio))
    spike = (excess + np.sqrt(np.maximum(excess**2 - 4 * ratio, 0.0))) / 2
    return 1 + ratio / spike


def _directions(points: Array) -> tuple[Array, Array]:
    """Directions within the signal, where the scale of an item plays no part either, and how long its part there is; 0 for none."""
    length = np.linalg.norm(points, axis=1)
    length = np.where(length > LEAST_STEP, length, 0.0)
    return points / np.where(length > 0, length, 1.0)[:, None], length


def _own_axes(points: Array, weight: Array, count: int) -> tuple[Array, Array]:
    """The mean of points, and their own ``count`` leading directions about it, as columns."""
    share = weight / weight.sum()
    origin = share @ points
    centred = points - origin
    vectors = np.linalg.eigh((centred * share[:, None]).T @ centred)[1][:, ::-1][:, :count]
    return origin, vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])


def _features(raw: Any, share: Array, mean: Array, signal: _Signal, rank: int) -> Array:
    """The directions of the signal, (rank, n_features): with X the items about their mean, Xᵀ share (X v) = λ v."""
    turned = (signal.points[:, :rank] / signal.values[:rank]).T * share
    sums = raw.framed(None, None, np.zeros(len(mean))).tdot(turned).astype(np.float64, copy=False)
    return sums - np.multiply.outer(turned.sum(axis=1), mean)


def _blur(raw: Any, sq: Array, used: Array, lines: bool) -> float:
    """Variance that steps of the values hide, per direction: the mean of δ²/12 over the features; 0 where there are no steps."""
    n_dims = len(raw.total(np.zeros(len(raw))))
    if len(raw) * n_dims > BUDGET.grid_numbers:
        return 0.0
    columns = np.sort(raw.framed(None, None, np.zeros(n_dims)).take(np.arange(len(raw))), axis=0)
    gaps, reach = np.diff(columns, axis=0), columns[-1] - columns[0]
    steps = np.where(gaps > LEAST_STEP * reach, gaps, np.inf).min(axis=0, initial=np.inf)
    hidden = float(np.mean(np.where(np.isfinite(steps), steps, 0.0) ** 2)) / 12
    return hidden * float(np.mean(1 / sq[used])) if lines else hidden
