"""Distance to a line, d = 1 − (x̂·u)² on unit items: scaling "item", the relaxed form (Ĥ Θ in the paper).

Eliminating the scale θ of an item leaves min_θ ‖x − θu‖² = ‖x‖² − (x·u)² = ‖x‖² (1 − (x̂·u)²), so an item weighs ω = w ‖x‖². In float
arithmetic 1 − (x̂·u)² is all rounding when the items lie close together, so items and centres are held as a coordinate along a
reference direction r and a rest, x̂ = s r + x_⊥ and u = c r + u_⊥, and

    d = ‖x_⊥‖² + s² ‖u_⊥‖² − 2 s c (x_⊥·u_⊥) − (x_⊥·u_⊥)².
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any

import numpy as np

from .._common.arithmetic import by_label
from .._common.typing import Array, Labels
from ..engines.base import Engine, RawRows, weighted_mean
from ..passes.state import State, Stats
from .base import FlowCost, Flowing, Items, Metric, Moving, Pairs, Splitting, between, each_center
from .few import LineCost

TINY = float(np.finfo(float).tiny)
BISECTIONS = 60


class MovingLines(Moving, ABC):
    """What moving items between lines costs, to second order."""

    def join(self, items: Items, pairs: Pairs, centers: Array, mass: Array, cost: Array) -> Array:
        return items.weight * np.maximum(pairs.distance, 0) - self._turn(items, pairs, np.maximum(mass - cost, TINY)[:, None])

    def leave(self, items: Items, pairs: Pairs, labels: Labels, centers: Array, mass: Array, cost: Array) -> Array:
        own, explained = pairs.of(labels), by_label(np.maximum(mass - cost, TINY), labels)[None]
        return np.minimum(items.weight * np.maximum(own.distance, 0) + self._turn(items, own, explained), by_label(cost, labels))[0]

    def _turn(self, items: Items, pairs: Pairs, explained: Array) -> Array:
        """What turning the line after one item gains, to second order: ω² (x̂·u)² d / λ with λ = Σ ω (x̂·u)² = mass − cost."""
        return items.weight**2 * np.square(pairs.inner) * np.maximum(pairs.distance, 0) / explained

    def merge(self, centers: Array, mass: Array, cost: Array) -> Array:
        # λ_j + λ_l − λ_max(λ_j u_j u_jᵀ + λ_l u_l u_lᵀ), written without cancellation
        explained = np.maximum(mass - cost, 0)
        product = explained[:, None] * explained * squared_sines(centers)
        half = (explained[:, None] + explained) / 2
        root = np.sqrt(np.maximum(half**2 - product, 0))
        return np.divide(product, half + root, out=np.zeros_like(product), where=half > 0)


class Line(Splitting, MovingLines, Metric, Flowing):
    """Frame: (c, u_⊥) about the unit direction ref; centres have unit norm."""

    alike = "All items are equal up to their scale; to tell their scales apart, set scaling='none'."
    scaled = True
    turnable = True

    @classmethod
    def about(cls, mean: Array) -> Line:
        """The frame for items with this weighted mean."""
        size = np.linalg.norm(mean)
        return cls(mean / size if size > 0 else np.full_like(mean, 1 / np.sqrt(len(mean))))

    @classmethod
    def of(cls, engine: Engine) -> Line:
        return cls.about(weighted_mean(engine))

    def items(self, raw: RawRows, weight: Array) -> Items:
        sq = raw.sqnorms()
        # A zero item has no direction: it weighs nothing and is at distance 0 from every line.
        inverse = np.divide(1.0, np.sqrt(sq), out=np.zeros_like(sq), where=sq > 0)
        along = raw.project(self.ref) * inverse
        rows = raw.framed(inverse, along, self.ref)
        return Items(rows, along, rows.sqnorms(), weight * sq, self)

    def points(self, items: Items, index: Any) -> Array:
        rest = np.atleast_2d(items.rows.take(index))
        return self.retract(np.column_stack([np.atleast_1d(items.along[index]), rest]))

    def to_data(self, centers: Array) -> Array:
        return centers[:, :1] * self.ref + centers[:, 1:]

    def to_frame(self, centers: Array) -> Array:
        cosine = centers @ self.ref
        return self.retract(np.column_stack([cosine, centers - np.multiply.outer(cosine, self.ref)]))

    def pairs(self, items: Items, centers: Array, labels: Labels | None = None) -> Pairs:
        cosine, rest = centers[:, 0], centers[:, 1:]
        inner = items.products(rest, labels)
        dtype = inner.dtype
        parallel = each_center(cosine.astype(dtype), labels) * items.along.astype(dtype, copy=False)
        full = inner + parallel
        parallel += full
        parallel *= inner  # (x_⊥·u_⊥)(2 s c + x_⊥·u_⊥)
        rest_sq = np.einsum("ij,ij->i", rest, rest).astype(dtype)
        distance = each_center(rest_sq, labels) * np.square(items.along).astype(dtype, copy=False)
        distance += items.sq
        distance -= parallel
        return Pairs(distance, full)

    def sums(self, items: Items, resp: Array, inner: Array) -> Array:
        return self._accumulate(items, resp * inner)

    def _accumulate(self, items: Items, weights: Array) -> Array:
        """Σ weights_ji x̂_i in the frame's coordinates."""
        rest = items.rows.tdot(weights)
        sums = np.empty((len(rest), rest.shape[1] + 1), like=rest)
        sums[:, 0], sums[:, 1:] = weights @ items.along, rest
        return sums

    def center(self, sums: Array, mass: Array) -> Array:
        return self.retract(sums)

    def retract(self, centers: Array) -> Array:
        size = np.sqrt(np.einsum("ij,ij->i", centers, centers))[:, None]
        # A direction that vanished has no better replacement than the reference.
        return np.where(size > 0, centers / np.where(size > 0, size, 1.0), self.origin)

    def curvature(self, state: State, stats: Stats) -> Array:
        return np.einsum("ij,ij->i", stats.sums, state.centers)[:, None]

    def slope(self, state: State, stats: Stats) -> Array:
        # −2 Σ q (x̂·u) x̂, tangent to the sphere
        return -2 * self.tangent(stats.sums, state.centers)

    def tangent(self, vectors: Array, centers: Array) -> Array:
        return vectors - np.einsum("ij,ij->i", vectors, centers)[:, None] * centers

    def moved(self, centers: Array, directions: Array, step: Array) -> Array:
        return self.retract(centers + step[:, None] * directions)

    def projections(self, items: Items, centers: Array, directions: Array) -> Array:
        inner = items.rows.dot(directions[:, 1:])
        inner += np.multiply.outer(directions[:, 0].astype(inner.dtype), items.along.astype(inner.dtype, copy=False))
        return inner

    def change(self, inner: Array, projections: Array, step: Array, centers: Array, directions: Array) -> Array:
        # With tan φ = step: (x̂·u)² − (x̂·u cos φ + x̂·ψ sin φ)²
        cosine = 1 / np.sqrt(1 + step * step)[:, None]
        sine = step[:, None] * cosine
        return sine * (sine * (inner + projections) * (inner - projections) - 2 * cosine * inner * projections)

    def moments(self, items: Items, resp: Array, pairs: Pairs, centers: Array, directions: Array) -> Array:
        # S ψ and M ψ share one x̂·ψ
        weighted = resp * self.projections(items, centers, directions)
        second = self._accumulate(items, weighted)
        weighted *= np.square(pairs.inner)
        return np.stack([second, self._accumulate(items, weighted)])

    def pencil(self, stats: Stats, centers: Array, directions: Array, moments: Array) -> tuple[Array, Array]:
        # β_cr = min over ψ ⟂ u of (uᵀSu − ψᵀSψ) / (2 ψᵀMψ)
        mass = np.maximum(stats.mass, np.finfo(float).tiny)
        top = np.einsum("ij,ij->i", stats.sums, centers) / mass
        second, fourth = moments / mass[:, None]
        stiffness = top[:, None] * directions - second
        return self.tangent(stiffness, centers), self.tangent(2 * fourth, centers)

    def flow_cost(self, points: Array, weight: Array) -> FlowCost:
        return LineCost(points, weight)

    def least_cost(self, points: Array, weight: Array) -> float:
        # ‖A‖² − σ₁(A)² for the rows √ω x̂
        return float(np.sum(np.linalg.svd(points * np.sqrt(weight)[:, None], compute_uv=False)[1:] ** 2))

    def exact_moves(self, points: Array, weight: Array, moving: Array, labels: Labels, distance: Array) -> tuple[Array, Array]:
        leave, join = np.zeros(len(points)), np.zeros(distance.shape)
        for j, away in enumerate(np.maximum(distance, 0)):
            mine = labels == j
            _, root, axes = np.linalg.svd(points[mine] * np.sqrt(weight[mine])[:, None], full_matrices=False)
            parts = np.square(points @ axes.T)
            gap = root[:1] ** 2 - root[1:] ** 2
            join[j] = moving * away - _turn_to(moving, away, parts, gap, float(root[0] ** 2))
            leave[mine] = moving[mine] * away[mine] + _turn_from(moving[mine], parts[mine], gap)
        return leave, join

    def apart(self, centers: Array) -> Array:
        return squared_sines(centers)


# λ_max(S ± ω x̂ x̂ᵀ) = λ₁ ± δ with S = Σ λ_i v_i v_iᵀ, z_i = v_i·x̂ and ρ² what x̂ has outside the v_i solves the secular equation
#
#     1 = ω (z₁²/δ + Σ_{i>1} z_i² / (δ ± (λ₁ − λ_i)) + ρ²/(δ ± λ₁)),
#
# solved for the turn t = ±(δ − ω z₁²), which does not cancel.


def _turn_to(weight: Array, away: Array, parts: Array, gap: Array, top: float) -> Array:
    """What turning a line to one more item gains, of items with squared parts z² along the line's axes."""
    first, rest = weight * parts[:, 0], parts[:, 1:]
    outside = np.maximum(away - rest.sum(axis=1), 0)

    def excess(turn: Array) -> Array:
        step = (first + turn)[:, None]
        pull = (rest / np.maximum(gap + step, TINY)).sum(axis=1) + outside / np.maximum(top + step[:, 0], TINY)
        return turn - step[:, 0] * weight * pull

    return _root(excess, weight * away)


def _turn_from(weight: Array, parts: Array, gap: Array) -> Array:
    """What turning a line away from an item that left it gains."""
    first, rest = weight * parts[:, 0], parts[:, 1:]

    def excess(turn: Array) -> Array:
        step = (first - turn)[:, None]
        room = gap - step
        pull = (rest / np.maximum(room, TINY)).sum(axis=1)
        return np.where((room > 0).all(axis=1), turn - step[:, 0] * weight * pull, -1.0)

    return _root(excess, first)


def _root(rising: Callable[[Array], Array], high: Array) -> Array:
    """The least x in [0, high] at which a function that crosses once is no longer negative."""
    low = np.zeros_like(high)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = rising(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def squared_sines(directions: Array) -> Array:
    """Of the angles between unit vectors, shape (k, k)."""
    # sin², which is ‖uuᵀ − vvᵀ‖², from ‖u − v‖ = 2 sin of half of it
    sq = between(directions)
    return np.maximum(sq * (1 - sq / 4), 0)
