"""How sure a number of components is: what chance gains by one more, and what halves of the items say."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from .._typing import Array, Labels
from .balls import fitted, one_hot, ward_labels
from .cloud import Cloud
from .merging import covariance

# Draws from the model of the null hypothesis: p-values are multiples of one hundredth.
DRAWS = 99
# Items of a draw, at most: more make the test no more telling than its model is true.
DRAW_ITEMS = 1024
# Steps that bring a model to a draw, as they brought it to the data; and steps of the two normals along one axis.
MODEL_STEPS, AXIS_STEPS = 3, 25
# Halves of the items, and steps of EM on each.
HALVES, HALF_STEPS = 8, 6


class _Ellipsoids:
    """A mixture of normal components of any covariance."""

    def __init__(self, cloud: Cloud, resp: Array) -> None:
        weighted = resp * cloud.weight[:, None]
        self.mass = np.maximum(weighted.sum(axis=0), np.finfo(float).tiny)
        self.centers = weighted.T @ cloud.points / self.mass[:, None]
        self.values, self.vectors = [], []
        n_dims = cloud.points.shape[1]
        pooled = float(np.mean([np.trace(covariance(cloud, column)) for column in weighted.T])) / n_dims
        for column, mass in zip(weighted.T, self.mass, strict=True):
            # Held towards a ball by as much as its own dimensions in items: few items leave a covariance open.
            held = (covariance(cloud, column) * mass + pooled * n_dims * np.eye(n_dims)) / (mass + n_dims)
            values, vectors = np.linalg.eigh(held)
            self.values.append(values)
            self.vectors.append(vectors)

    def resp(self, points: Array) -> Array:
        """The probability of each component for each item."""
        logits = np.empty((len(points), len(self.mass)))
        for j, (values, vectors) in enumerate(zip(self.values, self.vectors, strict=True)):
            along = (points - self.centers[j]) @ vectors
            logits[:, j] = np.log(self.mass[j]) - 0.5 * (np.square(along) / values).sum(axis=1) - 0.5 * np.log(values).sum()
        return np.exp(logits - logsumexp(logits, axis=1, keepdims=True))

    def drawn(self, n_items: int, rng: np.random.Generator) -> tuple[Array, Labels]:
        """Items of this model, and which component each came from."""
        labels = np.sort(rng.choice(len(self.mass), n_items, p=self.mass / self.mass.sum()))
        points = rng.standard_normal((n_items, self.centers.shape[1]))
        for j, (values, vectors) in enumerate(zip(self.values, self.vectors, strict=True)):
            mine = labels == j
            points[mine] = self.centers[j] + points[mine] * np.sqrt(values) @ vectors.T
        return points, labels


def gain_test(cloud: Cloud, labels: Labels, seed: int = 0, draws: int = DRAWS) -> float:
    """How often chance gains as much by one component more as the data do, if the components ``labels`` (n,) are right.

    The null hypothesis is a mixture of one normal component for each label, fitted; the statistic is the log-likelihood gained by
    splitting the component that gains most in two along its longest axis. Returns (1 + number of draws that gain as much) / (draws + 1).
    """
    model, gain = _split_gain(cloud, one_hot(labels))
    rng = np.random.default_rng(seed)
    n_items = int(np.clip(round(cloud.n_items), 2, DRAW_ITEMS))
    scale = cloud.n_items / n_items
    as_much = 0
    for _ in range(draws):
        points, origin = model.drawn(n_items, rng)
        draw = Cloud(points, np.full(n_items, scale), cloud.noise, cloud.blur, np.arange(n_items))
        as_much += _split_gain(draw, np.eye(len(model.mass))[origin])[1] >= gain
    return (1 + as_much) / (draws + 1)


def _split_gain(cloud: Cloud, resp: Array) -> tuple[_Ellipsoids, float]:
    for _ in range(MODEL_STEPS):
        model = _Ellipsoids(cloud, resp)
        resp = model.resp(cloud.points)
    weighted = resp * cloud.weight[:, None]
    mass = np.maximum(weighted.sum(axis=0), np.finfo(float).tiny)
    axes = np.stack([np.linalg.eigh(covariance(cloud, column))[1][:, -1] for column in weighted.T])
    along = cloud.points @ axes.T - np.einsum("jd,jd->j", weighted.T @ cloud.points / mass[:, None], axes)
    return model, float(_two_or_one(along, weighted, mass, cloud.floor).max())


def _two_or_one(along: Array, weighted: Array, mass: Array, floor: float) -> Array:
    """For each column, the log-likelihood by which two normals of one variance explain numbers better than one does."""
    variance = np.maximum(np.einsum("ij,ij->j", weighted, np.square(along)) / mass, floor)
    single = -0.5 * mass * (np.log(variance) + np.einsum("ij,ij->j", weighted, np.square(along)) / mass / variance)
    right = (along > 0).astype(float)
    for _ in range(AXIS_STEPS):
        share = np.clip(np.einsum("ij,ij->j", weighted, right) / mass, 1e-6, 1 - 1e-6)
        upper = np.einsum("ij,ij,ij->j", weighted, right, along) / (share * mass)
        lower = np.einsum("ij,ij,ij->j", weighted, 1 - right, along) / ((1 - share) * mass)
        within = right * np.square(along - upper) + (1 - right) * np.square(along - lower)
        narrow = np.maximum(np.einsum("ij,ij->j", weighted, within) / mass, floor)
        odds = np.log(share / (1 - share)) + (np.square(along - lower) - np.square(along - upper)) / (2 * narrow)
        right = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    low = np.log1p(-share) - np.square(along - lower) / (2 * narrow)
    high = np.log(share) - np.square(along - upper) / (2 * narrow)
    return np.einsum("ij,ij->j", weighted, np.logaddexp(low, high)) - 0.5 * mass * np.log(narrow) - single


def agreements(cloud: Cloud, labels: dict[int, Labels], answer: int, seed: int = 0) -> tuple[list[Labels], Array]:
    """Partitions into ``answer`` components from halves of the items, and for every number how far halves agree with ``labels``."""
    rng = np.random.default_rng(seed)
    most = max(labels)
    partitions, found = [], np.full((HALVES, most), np.nan)
    for half in range(HALVES):
        chosen = np.sort(rng.permutation(len(cloud.points))[: max(len(cloud.points) // 2, 2)])
        small = Cloud(cloud.points[chosen], cloud.weight[chosen], cloud.noise, cloud.blur, chosen)
        for part in ward_labels(small.points, small.weight, most):
            count = len(np.unique(part))
            if count not in labels:
                continue
            resp = fitted(small, one_hot(part), HALF_STEPS).resp
            whole = _spread(cloud, small, resp)
            found[half, count - 1] = adjusted_rand(labels[count], whole, cloud.weight)
            if count == answer:
                partitions.append(whole)
    known = np.isfinite(found).any(axis=0)
    return partitions, np.where(known, np.nanmean(np.where(known, found, 0.0), axis=0), np.nan)


def _spread(cloud: Cloud, small: Cloud, resp: Array) -> Labels:
    """The component of every item by balls fitted to some of them."""
    weighted = resp * small.weight[:, None]
    mass = np.maximum(weighted.sum(axis=0), np.finfo(float).tiny)
    model = _Ellipsoids.__new__(_Ellipsoids)
    centers = weighted.T @ small.points / mass[:, None]
    n_dims = cloud.points.shape[1]
    spread = [np.trace(covariance(small, column)) / n_dims for column in weighted.T]
    model.mass, model.centers = mass, centers
    model.values = [np.full(n_dims, value) for value in spread]
    model.vectors = [np.eye(n_dims)] * len(mass)
    return model.resp(cloud.points).argmax(axis=1)


def _table(one: Labels, other: Labels, weight: Array) -> Array:
    """Weights of the items with every two labels."""
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), weight)
    return table


def adjusted_rand(one: Labels, other: Labels, weight: Array) -> float:
    """Adjusted Rand index of two partitions of weighted items; 1 where both are one group."""
    table = _table(one, other, weight)

    def pairs(counts: Array) -> float:
        return float((counts * (counts - 1)).clip(min=0).sum()) / 2

    both, rows, columns, every = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0)), pairs(np.array([table.sum()]))
    expected = rows * columns / every if every > 0 else 0.0
    largest = (rows + columns) / 2
    return (both - expected) / (largest - expected) if largest > expected else 1.0


def component_agreement(labels: Labels, partitions: list[Labels], n_components: int) -> Array:
    """For each component, the mean over partitions of its Jaccard index with the part that resembles it most; NaN without partitions.

    The index of two sets is the size of what they share over the size of both together. A part may match several components.
    """
    if not partitions:
        return np.full(n_components, np.nan)
    found = np.zeros((len(partitions), n_components))
    for row, part in zip(found, partitions, strict=True):
        table = np.zeros((n_components, int(part.max()) + 1))
        np.add.at(table, (labels, part), 1.0)
        union = table.sum(axis=1, keepdims=True) + table.sum(axis=0) - table
        row[:] = np.divide(table, union, out=np.zeros_like(table), where=union > 0).max(axis=1)
    return found.mean(axis=0)
