"""Distance to a line, d = 1 − (x̂·u)² on unit items: scaling "item", the relaxed form (Ĥ Θ in the paper).

Eliminating the scale θ of an item leaves min_θ ‖x − θu‖² = ‖x‖² − (x·u)² = ‖x‖² (1 − (x̂·u)²), so an item weighs ω = w ‖x‖². In float
arithmetic 1 − (x̂·u)² is all rounding when the items lie close together, so items and centres are held as a coordinate along a
reference direction r and a rest, x̂ = s r + x_⊥ and u = c r + u_⊥, and

    d = ‖x_⊥‖² + s² ‖u_⊥‖² − 2 s c (x_⊥·u_⊥) − (x_⊥·u_⊥)².
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array
from ..engines.base import Engine, RawRows, weighted_mean
from ..state import State, Stats
from .base import Distortion, Items, Pairs, between


class Line(Distortion):
    """Frame: (c, u_⊥) about the unit direction ref; centres have unit norm."""

    @classmethod
    def about(cls, mean: Array) -> Line:
        size = np.linalg.norm(mean)
        return cls(mean / size if size > 0 else np.full_like(mean, 1 / np.sqrt(len(mean))))

    @classmethod
    def of(cls, engine: Engine) -> Line:
        return cls.about(weighted_mean(engine))

    def mean_of(self, engine: Engine) -> None:
        return None

    def origin(self) -> Array:
        return np.eye(1, len(self.ref) + 1)

    def items(self, raw: RawRows, weight: Array) -> Items:
        sq = raw.sqnorms()
        # A zero item has no direction: it weighs nothing and is at distance 0 from every line.
        inverse = np.divide(1.0, np.sqrt(sq), out=np.zeros_like(sq), where=sq > 0)
        along = raw.project(self.ref) * inverse
        rows = raw.framed(inverse, along, self.ref)
        return Items(rows, along, rows.sqnorms(), weight * sq)

    def points(self, items: Items, index: Any) -> Array:
        rest = np.atleast_2d(items.rows.take(index))
        return self.retract(np.column_stack([np.atleast_1d(items.along[index]), rest]))

    def to_data(self, centers: Array) -> Array:
        return centers[:, :1] * self.ref + centers[:, 1:]

    def to_frame(self, centers: Array) -> Array:
        cosine = centers @ self.ref
        return self.retract(np.column_stack([cosine, centers - np.multiply.outer(cosine, self.ref)]))

    def pairs(self, items: Items, centers: Array) -> Pairs:
        cosine, rest = centers[:, 0], centers[:, 1:]
        inner = items.rows.dot(rest)
        dtype = inner.dtype
        parallel = np.multiply.outer(cosine.astype(dtype), items.along.astype(dtype, copy=False))
        full = inner + parallel
        parallel += full
        parallel *= inner  # (x_⊥·u_⊥)(2 s c + x_⊥·u_⊥)
        rest_sq = np.einsum("ij,ij->i", rest, rest).astype(dtype)
        distance = np.multiply.outer(rest_sq, np.square(items.along).astype(dtype, copy=False))
        distance += items.sq
        distance -= parallel
        return Pairs(distance, full)

    def sums(self, items: Items, resp: Array, inner: Array) -> Array:
        return self._accumulate(items, resp * inner)

    def _accumulate(self, items: Items, weights: Array) -> Array:
        """Σ weights_ji x̂_i in the frame's coordinates."""
        rest = items.rows.tdot(weights)
        sums = np.empty((len(rest), rest.shape[1] + 1))
        sums[:, 0], sums[:, 1:] = weights @ items.along, rest
        return sums

    def center(self, sums: Array, mass: Array) -> Array:
        return self.retract(sums)

    def retract(self, centers: Array) -> Array:
        size = np.sqrt(np.einsum("ij,ij->i", centers, centers))[:, None]
        # A direction that vanished has no better replacement than the reference.
        return np.where(size > 0, centers / np.where(size > 0, size, 1.0), self.origin())

    def curvature(self, state: State, stats: Stats) -> Array:
        return np.einsum("ij,ij->i", stats.sums, state.centers)

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

    def change(self, inner: Array, projections: Array, step: Array) -> Array:
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
        top = np.einsum("ij,ij->i", stats.sums, centers) / stats.mass
        second, fourth = moments / stats.mass[:, None]
        stiffness = top[:, None] * directions - second
        return self.tangent(stiffness, centers), self.tangent(2 * fourth, centers)

    def flow_cost(self, points: Array, weight: Array) -> Any:
        from ..solvers.flow import LineCost

        return LineCost(points, weight)

    def join(self, items: Items, pairs: Pairs, mass: Array, cost: Array) -> Array:
        return items.weight * np.maximum(pairs.distance, 0) - self._turn(items, pairs, mass, cost)

    def leave(self, items: Items, pairs: Pairs, mass: Array, cost: Array) -> Array:
        return np.minimum(items.weight * np.maximum(pairs.distance, 0) + self._turn(items, pairs, mass, cost), cost[:, None])

    def _turn(self, items: Items, pairs: Pairs, mass: Array, cost: Array) -> Array:
        """What turning the line after one item gains, to second order: ω² (x̂·u)² d / λ with λ = Σ ω (x̂·u)² = mass − cost."""
        explained = np.maximum(mass - cost, np.finfo(float).tiny)[:, None]
        return items.weight**2 * np.square(pairs.inner) * np.maximum(pairs.distance, 0) / explained

    def merge(self, centers: Array, mass: Array, cost: Array) -> Array:
        # λ_j + λ_l − λ_max(λ_j u_j u_jᵀ + λ_l u_l u_lᵀ), written without cancellation
        explained = np.maximum(mass - cost, 0)
        sq = between(centers)
        sine_sq = sq * (1 - sq / 4)
        product = explained[:, None] * explained * sine_sq
        half = (explained[:, None] + explained) / 2
        root = np.sqrt(np.maximum(half**2 - product, 0))
        return np.divide(product, half + root, out=np.zeros_like(product), where=half > 0)
