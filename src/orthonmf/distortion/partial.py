"""Squared differences of the numbers that are there, with M_i the dimensions of which item i has a number.

Means (`PartialEuclidean`): d = Σ_M (x − y)². Directions (`PartialLine`): the best scale of an item is θ = x̂·u / Σ_M u², which leaves
d = 1 − θ x̂·u of items that are divided by their norm ‖x‖_M, so that an item weighs ω = w ‖x‖²_M; u has unit norm, but any multiple of it
is as near.

Sums over the items have two halves, what items add to a dimension and what having it counts, Σ q θ x and Σ q θ² m with θ = 1 for means.
Their quotient is the best centre at these scales; so alternating scales and centres lowers the cost at every step (of means it is exact).
Where no item of a component has a dimension, nothing of the cost depends on it: there a component has what the reference has, which is
the mean of the numbers that are there; of a direction, in its own proportion.

With v = −½ ∂d/∂centre, a component is stable along ψ until β_cr = min Σ q d″ / Σ q (d′)² over ψ, where d′ = −2 v·ψ and

    means:       v = x − m y,           ½ d″ = Σ_M ψ²
    directions:  v = θ (x̂ − θ m u),    ½ d″ = θ² Σ_M ψ² − (x̂·ψ − 2 θ Σ_M u ψ)² / Σ_M u².
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from .._common.typing import Array, Labels
from ..engines.base import Engine, PartialFrame, RawRows, as_partial
from ..engines.masked import MaskedRawRows
from ..passes.raw import Presence, PresenceSums
from ..passes.state import State, Stats
from .base import Items, Moving, Pairs, Splitting
from .euclidean import MovingMeans
from .line import MovingLines
from .measure import PartialSquared, over

TINY = float(np.finfo(float).tiny)
# The best centre of few items: steps, and the relative fall of the cost below which they end.
LEAST_STEPS, LEAST_FALL = 200, 1e-11
# Below this share of what a component has of a dimension nothing is left of it but rounding. And a dimension of which it has no more than
# this share of what it has of others is as one that it has not: items that belong to it with a chance of 1e-30 would decide what it has
# there, and of a direction that might be almost all.
LEAST_LEFT_OVER = 1e-12


class Partial(Splitting, Moving, ABC):
    """What losses over the numbers that are there have in common."""

    ability = "numbers that may be missing"
    partial = True
    flat = False

    def sums(self, items: Items, resp: Array, inner: Array) -> Array:
        of_items, of_dims = self._parts(resp, inner)
        return np.hstack([framed(items).tdot(of_items), framed(items).tseen(of_dims)])

    @abstractmethod
    def _parts(self, resp: Array, inner: Array) -> tuple[Array, Array]:
        """By what items, and the dimensions that they have, are multiplied in the sums, both (k, block)."""

    @abstractmethod
    def filled(self, means: Array, there: Array) -> Array:
        """Centres in the coordinates of the data (k, n_dims), where they are not ``there`` as the reference is."""

    def curvature(self, state: State, stats: Stats) -> Array:
        return halves(stats.sums)[1]

    def known(self, items: Items, index: Any) -> Array:
        # What is there, and where.
        return np.hstack([np.atleast_2d(part) for part in (self._data(items)[index], framed(items).there[index])])

    def _data(self, items: Items) -> Array:
        """What is there of items, in the coordinates of the data."""
        return framed(items).values

    def least_cost(self, points: Array, weight: Array) -> float:
        return float(self._rested(points, weight, np.zeros(len(points), dtype=np.intp)).cost.sum())

    def _rested(self, points: Array, weight: Array, labels: Labels) -> _Rest:
        """The best centres for labels of few items, given by what is ``known`` of them and their weights ω."""
        values, there = halves(points)
        n_components, mine = int(labels.max(initial=0)) + 1, (labels, np.arange(len(labels)))
        items, centers, before = self.items(MaskedRawRows(values, there > 0), weight), np.repeat(self.origin, n_components, axis=0), np.inf
        resp = np.zeros((n_components, len(labels)))
        resp[mine] = items.weight
        mass = np.maximum(resp.sum(axis=1), TINY)
        for _ in range(LEAST_STEPS):
            pairs = self.pairs(items, centers)
            cost = np.bincount(labels, items.weight * np.maximum(pairs.distance[mine], 0), n_components)
            sums = self.sums(items, resp, pairs.inner)
            if before - cost.sum() <= LEAST_FALL * cost.sum():
                break
            before, centers = cost.sum(), self.center(sums, mass)
        return _Rest(items, centers, pairs, sums, cost)


@dataclass(frozen=True)
class _Rest:
    """Few items with the best centres of their labels, what pairs them, the sums that make the centres, and the cost of each component."""

    items: Items
    centers: Array
    pairs: Pairs
    sums: Array
    cost: Array


class PartialSquares(Partial, ABC):
    """Squared differences over the numbers that are there."""

    def _measure(self) -> PartialSquared:
        return PartialSquared()

    def exact_moves(self, points: Array, weight: Array, moving: Array, labels: Labels, distance: Array) -> tuple[Array, Array]:
        # With r = θ (x̂ − θ m y) and n = Σ q θ² m, joining costs ω d − Σ ω² r² / (n + ω θ² m), leaving saves ω d + Σ ω² r² / (n − ω θ² m):
        # exact for means, and for directions at these scales.
        rest, there = self._rested(points, weight, labels), halves(points)[1]
        leave, join, theta = np.zeros(len(points)), np.zeros(distance.shape), rest.pairs.inner if self.scaled else np.ones(distance.shape)
        for j, (center, held) in enumerate(zip(rest.centers, halves(rest.sums)[1], strict=True)):
            mine, scale = labels == j, theta[j][:, None]
            pull = np.square(moving[:, None] * scale * (framed(rest.items).values - scale * there * center))
            own, away = moving[:, None] * np.square(scale) * there, moving * np.maximum(distance[j], 0)
            left = np.where(held - own > LEAST_LEFT_OVER * held, held - own, 0.0)
            join[j], leave[mine] = away - over(pull, held + own).sum(axis=1), (away + over(pull, left).sum(axis=1))[mine]
        return leave, join


class PartialEuclidean(PartialSquares, MovingMeans):
    """Frame: x − ref of what is there, with ref the mean of the numbers that are there."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        return cls(mean_there(engine))

    def items(self, raw: RawRows, weight: Array) -> Items:
        rows = as_partial(raw).present(None, self.ref)
        return Items(rows, weight, rows.sqnorms(), weight, self)

    def _data(self, items: Items) -> Array:
        return framed(items).values + framed(items).there * self.ref

    def points(self, items: Items, index: Any) -> Array:
        return np.atleast_2d(framed(items).take(index))

    def to_data(self, centers: Array) -> Array:
        return centers + self.ref

    def to_frame(self, centers: Array) -> Array:
        return centers - self.ref

    def filled(self, means: Array, there: Array) -> Array:
        return np.where(there, means, self.ref)

    def pairs(self, items: Items, centers: Array, labels: Labels | None = None) -> Pairs:
        # Σ_M (x − y)² = ‖x‖² − 2 x·y + Σ_M y²
        inner = items.products(centers, labels)
        return Pairs(items.sq - 2 * inner + seen(items, np.square(centers), labels), inner)

    def _parts(self, resp: Array, inner: Array) -> tuple[Array, Array]:
        return resp, resp

    def center(self, sums: Array, mass: Array) -> Array:
        own, there = halves(sums)
        return np.where(enough(there), over(own, there), 0.0)

    def retract(self, centers: Array) -> Array:
        return centers

    def slope(self, state: State, stats: Stats) -> Array:
        own, there = halves(stats.sums)
        return 2 * (there * state.centers - own)

    def tangent(self, vectors: Array, centers: Array) -> Array:
        return vectors

    def moved(self, centers: Array, directions: Array, step: Array) -> Array:
        return centers + step[:, None] * directions

    def projections(self, items: Items, centers: Array, directions: Array) -> Array:
        # Σ_M (x − y) ψ and Σ_M ψ²
        rows = framed(items)
        return np.stack([rows.dot(directions) - rows.seen(centers * directions), rows.seen(np.square(directions))])

    def change(self, inner: Array, projections: Array, step: Array, centers: Array, directions: Array) -> Array:
        along, reach = projections
        return step[:, None] * (step[:, None] * reach - 2 * along)

    def moments(self, items: Items, resp: Array, pairs: Pairs, centers: Array, directions: Array) -> Array:
        weighted = resp * self.projections(items, centers, directions)[0]
        spread = framed(items).tdot(weighted) - framed(items).tseen(weighted) * centers
        return np.stack([spread, np.zeros_like(spread)])

    def pencil(self, stats: Stats, centers: Array, directions: Array, moments: Array) -> tuple[Array, Array]:
        # N = Σ q m, R = 2 Σ q v vᵀ
        mass = np.maximum(stats.mass, TINY)[:, None]
        return stiff(halves(stats.sums)[1], mass) * directions, 2 * moments[0] / mass


class PartialLine(PartialSquares, MovingLines):
    """Frame: unit items as they are, and unit directions. Distances have the rounding of the items."""

    alike = "All items are equal up to their scale; to tell their scales apart, set scaling='none'."
    scaled = True
    framed = False

    def __init__(self, ref: Array) -> None:
        super().__init__(ref)
        self.origin = ref[None].copy()
        self.origin.flags.writeable = False

    @classmethod
    def of(cls, engine: Engine) -> Self:
        mean = mean_there(engine)
        size = np.linalg.norm(mean)
        return cls(mean / size if size > 0 else np.full_like(mean, 1 / np.sqrt(len(mean))))

    def items(self, raw: RawRows, weight: Array) -> Items:
        sq = raw.sqnorms()
        # A zero item has no direction: it weighs nothing and is at distance 0 from every line.
        rows = as_partial(raw).present(over(np.ones_like(sq), np.sqrt(sq)), np.zeros(len(self.ref)))
        own = (sq > 0).astype(np.float64)
        return Items(rows, own, own, weight * sq, self)

    def points(self, items: Items, index: Any) -> Array:
        values, there = (np.atleast_2d(part[index]) for part in (framed(items).values, framed(items).there))
        return self.retract(self.filled(values, there > 0))

    def to_data(self, centers: Array) -> Array:
        return centers

    def to_frame(self, centers: Array) -> Array:
        return self.retract(centers)

    def filled(self, means: Array, there: Array) -> Array:
        known = np.where(there, self.ref, 0.0)
        share = over(np.einsum("ij,ij->i", means, known), np.einsum("ij,ij->i", known, known))
        return np.where(there, means, share[:, None] * self.ref)

    def pairs(self, items: Items, centers: Array, labels: Labels | None = None) -> Pairs:
        # θ = x̂·u / Σ_M u² and d = 1 − θ x̂·u
        along, reach = items.products(centers, labels), seen(items, np.square(centers), labels)
        theta = over(along, reach)
        return Pairs(items.sq - theta * along, theta)

    def _parts(self, resp: Array, inner: Array) -> tuple[Array, Array]:
        return resp * inner, resp * np.square(inner)

    def center(self, sums: Array, mass: Array) -> Array:
        own, there = halves(sums)
        return self.retract(self.filled(over(own, there), enough(there)))

    def retract(self, centers: Array) -> Array:
        size = np.sqrt(np.einsum("ij,ij->i", centers, centers))[:, None]
        # A direction that vanished has no better replacement than the reference.
        return np.where(size > 0, centers / np.where(size > 0, size, 1.0), self.origin)

    def slope(self, state: State, stats: Stats) -> Array:
        # −2 Σ q θ (x̂ − θ m u)
        own, there = halves(stats.sums)
        return 2 * self.tangent(there * state.centers - own, state.centers)

    def tangent(self, vectors: Array, centers: Array) -> Array:
        return vectors - np.einsum("ij,ij->i", vectors, centers)[:, None] * centers

    def moved(self, centers: Array, directions: Array, step: Array) -> Array:
        return self.retract(centers + step[:, None] * directions)

    def projections(self, items: Items, centers: Array, directions: Array) -> Array:
        # x̂·ψ, Σ_M u ψ, Σ_M ψ² and Σ_M u²
        ways = (centers * directions, np.square(directions), np.square(centers))
        return np.stack([framed(items).dot(directions), *(framed(items).seen(way) for way in ways)])

    def change(self, inner: Array, projections: Array, step: Array, centers: Array, directions: Array) -> Array:
        # (x̂·u)² / Σ_M u² of u, less that of u + tψ
        (along, cross, beyond, reach), t = projections, step[:, None]
        product = inner * reach
        return inner * product - over(np.square(product + t * along), reach + t * (2 * cross + t * beyond))

    def moments(self, items: Items, resp: Array, pairs: Pairs, centers: Array, directions: Array) -> Array:
        along, cross, _, reach = self.projections(items, centers, directions)
        theta = pairs.inner
        turn = over(resp * (along - 2 * theta * cross), reach)
        pull = resp * np.square(theta) * (along - theta * cross)
        first = framed(items).tdot(turn) - 2 * framed(items).tseen(turn * theta) * centers
        return np.stack([first, framed(items).tdot(pull) - framed(items).tseen(pull * theta) * centers])

    def pencil(self, stats: Stats, centers: Array, directions: Array, moments: Array) -> tuple[Array, Array]:
        mass = np.maximum(stats.mass, TINY)[:, None]
        stiffness = stiff(halves(stats.sums)[1], mass) * directions - moments[0] / mass
        return self.tangent(stiffness, centers), self.tangent(2 * moments[1] / mass, centers)


def halves(sums: Array) -> tuple[Array, Array]:
    """Of sums: those of the items, and those of the dimensions that they have."""
    n_dims = sums.shape[1] // 2
    return sums[:, :n_dims], sums[:, n_dims:]


def framed(items: Items) -> PartialFrame:
    """What a block has, and where."""
    return cast(PartialFrame, items.rows)


def seen(items: Items, vectors: Array, labels: Labels | None) -> Array:
    """Σ_M of the vectors (k, n_dims), as ``Items.products``."""
    return framed(items).seen(vectors) if labels is None else framed(items).own_seen(vectors, labels)[None]


def enough(there: Array) -> Array:
    """Whether a component has enough of a dimension, by Σ q m, for a centre there."""
    return there > LEAST_LEFT_OVER * there.max(axis=1, keepdims=True)


def stiff(there: Array, mass: Array) -> Array:
    """Σ q m per mass; 1 where a component has nothing of a dimension, along which it does not give way."""
    return np.where(enough(there), there / mass, 1.0)


def mean_there(engine: Engine) -> Array:
    """The weighted mean of what is there of every dimension, in the scaled units of the engine."""
    found: PresenceSums = engine.run(None, Presence()).total
    return over(found.total, found.there)
