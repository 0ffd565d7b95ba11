"""Squared Euclidean distance, d = ‖x − y‖²: scaling "none", the strict form (Θ = I in the paper)."""

from __future__ import annotations

from abc import ABC
from typing import Any

import numpy as np

from .._common.arithmetic import by_label
from .._common.typing import Array, Labels
from ..engines.base import Engine, RawRows, median
from ..passes.state import State, Stats
from .base import FlowCost, Flowing, Items, Metric, Moving, Pairs, Splitting, between, each_center
from .few import EuclideanCost


class MovingMeans(Moving, ABC):
    """What moving items between means costs."""

    def join(self, items: Items, pairs: Pairs, centers: Array, mass: Array, cost: Array) -> Array:
        # ω m / (m + ω) ‖x − y‖²
        total = np.maximum(mass[:, None] + items.weight, np.finfo(float).tiny)
        return items.weight * np.maximum(pairs.distance, 0) * (mass[:, None] / total)

    def leave(self, items: Items, pairs: Pairs, labels: Labels, centers: Array, mass: Array, cost: Array) -> Array:
        # ω m / (m − ω) ‖x − y‖²; an item alone in its component leaves nothing behind
        least = by_label(np.maximum(1e-12 * mass, np.finfo(float).tiny), labels)
        own = by_label(mass, labels)
        rest = np.maximum(own - items.weight, least)
        return np.minimum(items.weight * np.maximum(pairs.of(labels).distance[0], 0) * own / rest, by_label(cost, labels))

    def merge(self, centers: Array, mass: Array, cost: Array) -> Array:
        # m_j m_l / (m_j + m_l) ‖y_j − y_l‖²
        total = np.maximum(mass[:, None] + mass, np.finfo(float).tiny)
        return mass[:, None] * mass / total * between(centers)


class Euclidean(Splitting, MovingMeans, Metric, Flowing):
    """Frame: x − ref, with ref in the midst of the items."""

    turnable = True

    @classmethod
    def about(cls, mean: Array) -> Euclidean:
        """The frame for items with this weighted mean."""
        return cls(mean)

    @classmethod
    def of(cls, engine: Engine) -> Euclidean:
        # Not the mean: one item far away would carry it off, and the others would lose their digits.
        return cls.about(median(engine))

    def items(self, raw: RawRows, weight: Array) -> Items:
        rows = raw.framed(None, None, self.ref)
        return Items(rows, weight, rows.sqnorms(), weight, self)

    def points(self, items: Items, index: Any) -> Array:
        return np.atleast_2d(items.rows.take(index))

    def to_data(self, centers: Array) -> Array:
        return centers + self.ref

    def to_frame(self, centers: Array) -> Array:
        return centers - self.ref

    def pairs(self, items: Items, centers: Array, labels: Labels | None = None) -> Pairs:
        # ‖x − y‖² = ‖x‖² − 2 x·y + ‖y‖²
        inner = items.products(centers, labels)
        distance = inner * inner.dtype.type(-2)
        distance += items.sq
        distance += each_center(np.einsum("ij,ij->i", centers, centers).astype(inner.dtype), labels)
        return Pairs(distance, inner)

    def sums(self, items: Items, resp: Array, inner: Array) -> Array:
        return items.rows.tdot(resp).astype(np.float64, copy=False)

    def center(self, sums: Array, mass: Array) -> Array:
        return sums / mass[:, None]

    def retract(self, centers: Array) -> Array:
        return centers

    def curvature(self, state: State, stats: Stats) -> Array:
        return stats.mass[:, None]

    def slope(self, state: State, stats: Stats) -> Array:
        # 2 mass_j (y_j − ȳ_j)
        return 2 * (stats.mass[:, None] * state.centers - stats.sums)

    def tangent(self, vectors: Array, centers: Array) -> Array:
        return vectors

    def moved(self, centers: Array, directions: Array, step: Array) -> Array:
        return centers + step[:, None] * directions

    def projections(self, items: Items, centers: Array, directions: Array) -> Array:
        inner = items.rows.dot(directions)
        return inner - np.einsum("ij,ij->i", centers, directions).astype(inner.dtype)[:, None]

    def change(self, inner: Array, projections: Array, step: Array, centers: Array, directions: Array) -> Array:
        # ‖x − y − tψ‖² − ‖x − y‖² = t (t − 2 (x − y)·ψ)
        return step[:, None] * (step[:, None] - 2 * projections)

    def moments(self, items: Items, resp: Array, pairs: Pairs, centers: Array, directions: Array) -> Array:
        # Σ q a (x − y) with a = (x − y)·ψ
        weighted = resp * self.projections(items, centers, directions)
        spread = items.rows.tdot(weighted) - weighted.sum(axis=1)[:, None] * centers
        return np.stack([spread, np.zeros_like(spread)]).astype(np.float64, copy=False)

    def pencil(self, stats: Stats, centers: Array, directions: Array, moments: Array) -> tuple[Array, Array]:
        # β_cr = 1 / (2 λ_max(Cov)): N = I, R = 2 Cov
        return directions, 2 * moments[0] / np.maximum(stats.mass, np.finfo(float).tiny)[:, None]

    def flow_cost(self, points: Array, weight: Array) -> FlowCost:
        return EuclideanCost(points, weight)

    def least_cost(self, points: Array, weight: Array) -> float:
        mean = weight @ points / max(float(weight.sum()), np.finfo(float).tiny)
        return float(weight @ np.square(points - mean).sum(axis=1))

    def apart(self, centers: Array) -> Array:
        return between(centers)
