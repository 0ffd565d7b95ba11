"""Balls that are pieces of one cloud, put together.

A part of real data need not be a ball; balls then share it among themselves. One component that is longer in some directions, with a
covariance of σ² I and r directions more, may explain them with fewer parameters. Groups of balls are joined in the order of what that
gains in BIC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from ..._common.typing import Array
from ...progress import beat
from .balls import Balls
from .cloud import Cloud
from .shape import squared_distances

# Balls are given up when joins gain more than this in log-likelihood together: on mixtures of overlapping balls few do (one of 384
# problems, n = 400, is then wrong that was right), on wine, iris, blood cells and blocks of words they gain 21 to 58.
DECISIVE = 20.0
# Then two groups stay apart where joining them loses more than this: very strong evidence, as Kass and Raftery (1995) call it.
VERY_STRONG = 5.0
# Items that a longer direction of a component takes, at least.
ITEMS_PER_DIRECTION = 3.0


@dataclass(frozen=True)
class Join:
    """Two groups become one.

    Attributes
    ----------
    count : int
        Groups that are left.
    gain : float
        In BIC, in units of log-likelihood.
    groups : tuple of tuples of int
        The balls of each group that is left.
    """

    count: int
    gain: float
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _Group:
    balls: tuple[int, ...]
    weight: Array
    score: float


def joins_of(cloud: Cloud, balls: Balls) -> list[Join]:
    """The groups of balls in one place, then all joins down to one group, each the one that gains most, or loses least."""
    groups = [_group(cloud, places, balls.resp[:, list(places)].sum(axis=1)) for places in _places(cloud, balls)]
    gains = {(a, b): _joined(cloud, groups[a], groups[b]) for a in range(len(groups)) for b in range(a)}
    alive, joins = list(range(len(groups))), [Join(len(groups), 0.0, tuple(group.balls for group in groups))]
    while len(alive) > 1:
        best = max(
            ((a, b) for a in alive for b in alive if b < a), key=lambda pair: (gains[pair].score - _apart(cloud, groups, pair), pair)
        )
        gain = gains[best].score - _apart(cloud, groups, best)
        groups.append(gains[best])
        alive = [j for j in alive if j not in best]
        new = len(groups) - 1
        gains.update({(new, b): _joined(cloud, groups[new], groups[b]) for b in alive})
        alive.append(new)
        joins.append(Join(len(alive), gain, tuple(sorted(groups[j].balls for j in alive))))
    return joins


def _places(cloud: Cloud, balls: Balls) -> list[tuple[int, ...]]:
    """Balls whose centres are within a standard deviation of each other: one part with long tails, not two."""
    axes = axes_of(cloud, balls.resp * cloud.weight[:, None])
    variance = axes.variance.mean(axis=1)
    near = squared_distances(axes.center, axes.center) < np.minimum(variance, variance[:, None])
    place = connected_components(near, directed=False)[1]
    return [tuple(np.flatnonzero(place == j).tolist()) for j in range(place.max() + 1)]


def _apart(cloud: Cloud, groups: list[_Group], pair: tuple[int, int]) -> float:
    """What two groups explain, less the parameter of their shares."""
    return groups[pair[0]].score + groups[pair[1]].score - cloud.toll


def _joined(cloud: Cloud, one: _Group, other: _Group) -> _Group:
    return _group(cloud, tuple(sorted(one.balls + other.balls)), one.weight + other.weight)


def _group(cloud: Cloud, balls: tuple[int, ...], resp: Array) -> _Group:
    """How well one component with its best number of longer directions explains a group: BIC of its part of the log-likelihood."""
    beat()
    weight = resp * cloud.weight
    mass = max(float(weight.sum()), np.finfo(float).tiny)
    n_dims = cloud.points.shape[1]
    # One ball has no longer directions, and a few items would seem to have some by chance.
    long = np.arange(min(n_dims, 1 + int(mass / ITEMS_PER_DIRECTION)) if len(balls) > 1 else 1)
    values, log_shape = _variances(cloud, weight)
    logs, sums = np.append(0.0, np.cumsum(np.log(values))), np.append(0.0, np.cumsum(values))
    rest = np.maximum((sums[-1] - sums[long]) / (n_dims - long), cloud.floor)
    fit = -0.5 * mass * (logs[long] + (n_dims - long) * np.log(rest) + n_dims * (1 + np.log(2 * np.pi)) + log_shape)
    parameters = n_dims + 1 + long * n_dims - long * (long - 1) / 2
    # Shares, and that which group an item is in is not known: the log-likelihood is Σ r log (π N) − Σ r log r.
    unsure = -float(cloud.weight @ (resp * np.log(np.maximum(resp, np.finfo(float).tiny))))
    return _Group(balls, resp, float((fit - cloud.toll * parameters).max()) + mass * np.log(mass / cloud.n_items) + unsure)


def _variances(cloud: Cloud, weight: Array) -> tuple[Array, float]:
    """Of one group along its axes where its noise would be a ball, the longest first; and the log determinant of that noise."""
    precise = weight * cloud.precision
    center = precise @ cloud.points / max(float(precise.sum()), np.finfo(float).tiny)
    points, log_shape = cloud.shape.rounded(cloud.points, center)
    return axes_of(replace(cloud, points=points), weight[:, None]).variance[0, ::-1], log_shape


@dataclass(frozen=True)
class Axes:
    """Means and principal axes of groups of items.

    Attributes
    ----------
    mass : ndarray of shape (m,)
    center : ndarray of shape (m, n_dims)
    variance : ndarray of shape (m, n_dims)
        Along each axis, the shortest first; none below the least variance of the cloud.
    direction : ndarray of shape (m, n_dims, n_dims)
        The axes as columns.
    """

    mass: Array
    center: Array
    variance: Array
    direction: Array


def axes_of(cloud: Cloud, weight: Array) -> Axes:
    """The axes of groups whose items have weights (n, m)."""
    mass = np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    precise = weight * cloud.precision[:, None]
    whole = np.maximum(precise.sum(axis=0), np.finfo(float).tiny)
    center = precise.T @ cloud.points / whole[:, None]
    second = (precise.T[:, None, :] * cloud.points.T) @ cloud.points / whole[:, None, None]
    covariance = (second - center[:, :, None] * center[:, None, :]) * (whole / mass)[:, None, None]
    variance, direction = np.linalg.eigh(covariance)
    return Axes(mass, center, np.maximum(variance + cloud.blur, cloud.floor), direction)


def decided(joins: list[Join]) -> int:
    """How many of the joins to make: none where balls will do, else as many as gain most together, and on while little is lost."""
    gains = np.array([join.gain for join in joins])
    together = np.cumsum(gains)
    if together.max() <= DECISIVE:
        return 0
    best = int(together.argmax())
    return best + int(np.append(gains[best + 1 :] < -VERY_STRONG, True).argmax())
