"""Mixtures of balls, Σ_j π_j N(μ_j, σ_j² I), from the tree of Ward's joins; where the noise is no ball, of what is one in its ``Shape``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._common.typing import Array, Labels
from ...progress import beat
from ..budget import BUDGET
from .cloud import Cloud

# The gain per item at which EM ends.
EM_TOL = 1e-4
# A variance is held towards that of all by as much as this many items: of few items it is too small by chance.
PRIOR_ITEMS = 1.0


@dataclass(frozen=True)
class Balls:
    """A mixture of balls, fitted.

    Attributes
    ----------
    resp : ndarray of shape (n, m)
        The probability of each ball for each item.
    log_likelihood : float
    """

    resp: Array
    log_likelihood: float

    @property
    def count(self) -> int:
        """How many balls."""
        return self.resp.shape[1]


@dataclass(frozen=True)
class _Parameters:
    centers: Array
    variance: Array
    share: Array


def n_parameters(count: int, n_dims: int) -> int:
    """A centre and a variance for each ball, and their shares."""
    return count * (n_dims + 2) - 1


def fitted(cloud: Cloud, resp: Array, steps: int = BUDGET.em_steps) -> Balls:
    """EM from responsibilities (n, m)."""
    before = -np.inf
    for _ in range(steps):
        beat()
        found = expected(cloud, _best(cloud, resp))
        resp = found.resp
        if found.log_likelihood - before < EM_TOL * cloud.n_items:
            break
        before = found.log_likelihood
    return found


def _best(cloud: Cloud, resp: Array) -> _Parameters:
    """The M step."""
    mass = np.maximum(cloud.weight @ resp, np.finfo(float).tiny)
    precise = resp * (cloud.weight * cloud.precision)[:, None]
    centers = precise.T @ cloud.points / np.maximum(precise.sum(axis=0), np.finfo(float).tiny)[:, None]
    spread = np.einsum("ij,ij->j", precise, cloud.shape.seen(cloud.points, centers)[0]) / cloud.points.shape[1]
    pooled = float(spread.sum() / mass.sum())
    # An item that is known to a step is spread over it.
    variance = (spread + PRIOR_ITEMS * pooled) / (mass + PRIOR_ITEMS) + cloud.blur
    return _Parameters(centers, np.maximum(variance, cloud.floor), mass / mass.sum())


def expected(cloud: Cloud, at: _Parameters) -> Balls:
    """The E step."""
    n_dims = cloud.points.shape[1]
    distance, log_shape = cloud.shape.seen(cloud.points, at.centers)
    logits = distance * cloud.precision[:, None] + n_dims * cloud.blur
    logits *= -0.5 / at.variance
    logits += np.log(at.share) - 0.5 * (n_dims * np.log(2 * np.pi * at.variance) + log_shape)
    top = logits.max(axis=1, keepdims=True)
    resp = np.exp(logits - top)
    total = resp.sum(axis=1, keepdims=True)
    each = (np.log(total) + top)[:, 0] + 0.5 * n_dims * np.log(cloud.precision)
    return Balls(resp / total, float(cloud.weight @ each))


def one_hot(labels: Labels) -> Array:
    """Labels as responsibilities, without empty columns."""
    found = np.unique(labels, return_inverse=True)[1]
    return np.eye(found.max() + 1)[found]


def ward_labels(points: Array, weight: Array, most: int) -> Iterator[Labels]:
    """Labels of min(most, n) groups, then of one group fewer, …, down to one, by Ward's joins of weighted points."""
    labels = np.arange(len(points))
    count = len(points)
    for one, other in ward_joins(points, weight)[0]:
        if count <= most:
            yield labels
        labels = np.where(labels == other, one, labels)
        count -= 1
    yield labels


def ward_joins(points: Array, weight: Array) -> tuple[list[tuple[int, int]], Array]:
    """Pairs (kept, joined to it) of names of groups, and what each join costs, the cheapest first, by the chain of nearest neighbours.

    Joining groups of weights a and b adds ab/(a + b) ‖difference of their means‖² to the variance within; a group bears the name of
    its first point.
    """
    centers, mass, alive = points.copy(), weight.astype(np.float64), np.ones(len(points), dtype=bool)
    chain: list[int] = []
    joins: list[tuple[float, int, int]] = []
    while len(joins) < len(points) - 1:
        beat()
        if not chain:
            chain.append(int(alive.argmax()))
        here = chain[-1]
        rise = np.square(centers - centers[here]).sum(axis=1) * (mass * mass[here] / (mass + mass[here]))
        rise[~alive] = np.inf
        rise[here] = np.inf
        nearest = int(rise.argmin())
        if len(chain) < 2 or rise[nearest] < rise[chain[-2]]:
            chain.append(nearest)
            continue
        one, other = sorted((here, chain[-2]))
        joins.append((float(rise[chain[-2]]), one, other))
        total = mass[one] + mass[other]
        centers[one] = (mass[one] * centers[one] + mass[other] * centers[other]) / total
        mass[one], alive[other] = total, False
        del chain[-2:]
    joins.sort(key=lambda join: join[0])
    return _renamed([join[1:] for join in joins], len(points)), np.array([join[0] for join in joins])


def _renamed(joins: list[tuple[int, int]], n_points: int) -> list[tuple[int, int]]:
    """The joins with the names that groups have at the time: sorting may put a join before one that made its name."""
    name = list(range(n_points))

    def now(i: int) -> int:
        while name[i] != i:
            i = name[i]
        return i

    renamed = []
    for one, other in joins:
        first, second = sorted((now(one), now(other)))
        name[second] = first
        renamed.append((first, second))
    return renamed
