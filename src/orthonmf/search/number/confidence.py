"""How sure a number of components is: what chance gains by one more, and what halves of the items say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._common.typing import Array, Labels
from ...progress import at
from ..budget import BUDGET
from .balls import fitted, one_hot, ward_labels
from .cloud import Cloud
from .merging import Axes, axes_of


@dataclass(frozen=True)
class _Normals:
    """A mixture of normal components, each with its own axes."""

    axes: Axes

    @classmethod
    def of(cls, cloud: Cloud, weight: Array) -> _Normals:
        """Components of groups whose items have weights (n, m).

        Variances are held towards their mean by as many items as there are dimensions: few items leave a covariance open.
        """
        axes, n_dims = axes_of(cloud, weight), cloud.points.shape[1]
        held = axes.variance * axes.mass[:, None] + axes.variance.mean(axis=1, keepdims=True) * n_dims
        return cls(replace(axes, variance=held / (axes.mass[:, None] + n_dims)))

    @classmethod
    def balls(cls, cloud: Cloud, weight: Array) -> _Normals:
        """Balls of groups whose items have weights (n, m)."""
        axes = axes_of(cloud, weight)
        return cls(replace(axes, variance=np.repeat(axes.variance.mean(axis=1, keepdims=True), cloud.points.shape[1], axis=1)))

    def resp(self, cloud: Cloud) -> Array:
        """The probability of each component for each item, (n, m)."""
        along = (cloud.points - self.axes.center[:, None, :]) @ self.axes.direction
        logits = -0.5 * np.einsum("jid,jd->ij", np.square(along), 1 / self.axes.variance) * cloud.precision[:, None]
        logits += np.log(self.axes.mass) - 0.5 * np.log(self.axes.variance).sum(axis=1)
        resp = np.exp(logits - logits.max(axis=1, keepdims=True))
        return resp / resp.sum(axis=1, keepdims=True)

    def drawn(self, n_items: int, rng: np.random.Generator) -> tuple[Array, Labels]:
        """Items of this model, and which component each came from."""
        axes = self.axes
        labels = np.sort(rng.choice(len(axes.mass), n_items, p=axes.mass / axes.mass.sum()))
        along = rng.standard_normal((n_items, axes.center.shape[1])) * np.sqrt(axes.variance)[labels]
        points = axes.center[labels]
        for j in range(len(axes.mass)):
            mine = labels == j
            points[mine] += along[mine] @ axes.direction[j].T
        return points, labels


def gain_test(cloud: Cloud, labels: Labels, seed: int = 0, draws: int = BUDGET.draws) -> float:
    """How often chance gains as much by one component more as the data do, if the components ``labels`` (n,) are right.

    The null hypothesis is a mixture of one normal component for each label, fitted; the statistic is the log-likelihood gained by
    splitting the component that gains most in two along its longest axis. Returns (1 + number of draws that gain as much) / (draws + 1).
    """
    model, gain = _split_gain(cloud, one_hot(labels))
    rng = np.random.default_rng(seed)
    n_items = int(np.clip(round(cloud.n_items), 2, BUDGET.draw_items))
    scale = cloud.n_items / n_items
    as_much = 0
    for drawn in range(draws):
        at(0.8 + 0.2 * drawn / draws, f"{drawn} of {draws} draws of chance")
        points, origin = model.drawn(n_items, rng)
        draw = Cloud(points, np.full(n_items, scale), cloud.noise, cloud.blur, np.arange(n_items), np.ones(n_items))
        as_much += _split_gain(draw, np.eye(len(model.axes.mass))[origin])[1] >= gain
    return (1 + as_much) / (draws + 1)


def _split_gain(cloud: Cloud, resp: Array) -> tuple[_Normals, float]:
    """The mixture that responsibilities (n, m) lead to, and what splitting one of its components in two gains at most."""
    for _ in range(BUDGET.model_steps):
        model = _Normals.of(cloud, resp * cloud.weight[:, None])
        resp = model.resp(cloud)
    weighted = resp * cloud.weight[:, None]
    axes = axes_of(cloud, weighted)
    longest = axes.direction[:, :, -1]
    along = cloud.points @ longest.T - np.einsum("jd,jd->j", axes.center, longest)
    along *= np.sqrt(cloud.precision)[:, None]  # of one variance again
    return model, float(_two_or_one(along, weighted, axes.mass, cloud.floor).max())


def _two_or_one(along: Array, weighted: Array, mass: Array, floor: float) -> Array:
    """For each column, the log-likelihood by which two normals of one variance explain numbers better than one does."""
    squares = np.square(along)
    total = (weighted * squares).sum(axis=0)
    variance = np.maximum(total / mass, floor)
    single = -0.5 * (mass * np.log(variance) + total / variance)
    right = (along > 0).astype(float)
    linear, whole = weighted * along, (weighted * along).sum(axis=0)
    for _ in range(BUDGET.axis_steps):
        share = np.clip((weighted * right).sum(axis=0) / mass, 1e-6, 1 - 1e-6)
        part = (linear * right).sum(axis=0)
        upper, lower = part / (share * mass), (whole - part) / ((1 - share) * mass)
        narrow = np.maximum(total / mass - share * upper**2 - (1 - share) * lower**2, floor)
        # log odds of the upper of two normals of one variance: linear in the item
        slope = (upper - lower) / narrow
        odds = np.log(share / (1 - share)) + slope * (along - (upper + lower) / 2)
        right = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    low = np.log1p(-share) - np.square(along - lower) / (2 * narrow)
    return (weighted * (low + np.logaddexp(0.0, odds))).sum(axis=0) - 0.5 * mass * np.log(narrow) - single


def agreements(cloud: Cloud, labels: dict[int, Labels], answer: int, seed: int = 0) -> tuple[list[Labels], Array]:
    """Partitions into ``answer`` components from halves of the items, and for every number how far halves agree with ``labels``."""
    rng = np.random.default_rng(seed)
    most = max(labels)
    partitions, found = [], np.full((BUDGET.halves, most), np.nan)
    for half in range(BUDGET.halves):
        at(0.5 + 0.3 * half / BUDGET.halves, f"{half} of {BUDGET.halves} halves of the items")
        chosen = np.sort(rng.permutation(len(cloud.points))[: max(len(cloud.points) // 2, 2)])
        points, weight, precision = (each[chosen] for each in (cloud.points, cloud.weight, cloud.precision))
        small = replace(cloud, points=points, weight=weight, precision=precision, used=chosen)
        for part in ward_labels(small.points, small.weight * small.precision, most):
            count = len(np.unique(part))
            if count not in labels:
                continue
            resp = fitted(small, one_hot(part), BUDGET.half_steps).resp
            whole = _Normals.balls(small, resp * small.weight[:, None]).resp(cloud).argmax(axis=1)
            found[half, count - 1] = adjusted_rand(labels[count], whole, cloud.weight)
            if count == answer:
                partitions.append(whole)
    known = np.isfinite(found).any(axis=0)
    return partitions, np.where(known, np.nanmean(np.where(known, found, 0.0), axis=0), np.nan)


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
