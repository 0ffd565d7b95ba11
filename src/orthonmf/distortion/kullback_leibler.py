"""Kullback–Leibler divergence, D(x‖c) = Σ x log(x/c) − x + c: the loss of counts.

Scaling "none" (`Poisson`): components are means. Scaling "item" (`Profile`): X_i ≈ t_i c with Σ c = 1. The best t_i is |x_i| = Σ x_i,
which leaves |x_i| KL(x̂_i ‖ c) with x̂ = x / |x|, so that an item weighs ω = w |x|. In both, the best centre is the mean of what is seen of
the items.

Coordinates of a centre are y = √(2c). Near c the divergence is ‖Δy‖² to second order, as squared distances are, so that all that is said
in units of distances (widths, steps, separations) holds as it stands. With c = Σ q x / Σ q and z = (x − c) / y,

    ∂/∂y Σ q D = −2 Σ q z,   half the second derivative is Σ q,   β_cr = 1 / (2 λ_max(Cov z)) = 1 / λ_max(D^-½ Cov(x) D^-½),  D = diag(c).

Distances are taken about a reference g in the midst of the items, D(x‖c) = D(x‖g) − x·log(c/g) + |c| − |g|: products with logarithms over
the entries that items have, and D(x‖g) beside them. Where a centre has a zero and an item has none, it would be infinite: under the
logarithm no centre has less than ``LEAST`` g, in the fit as for new data. The centre of an item's own component never has less of what the
item has, but for entries below ``LEAST`` of all that there is of a feature.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._common.arithmetic import by_label, relative_entropy
from .._common.typing import Array, Labels
from ..engines.base import Engine, RawRows, Rows, as_counts, weighted_mean
from ..passes.state import State, Stats
from .base import FlowCost, Flowing, Items, Moving, Pairs, Splitting, each_center
from .few import DivergenceCost
from .measure import Deviance

TINY = float(np.finfo(float).tiny)
# Under the logarithm a centre has at least this share of the reference.
LEAST = 1e-9
# Of the reference, this share is even over all features: none is 0, so that also what no item of a fit had can be met later.
EVEN = 1e-3
# Exponents of a moved centre stay below this: beyond, it costs everything anyway.
LARGEST_EXPONENT = 150.0
# Sets of centres whose logarithms are kept: those of both halves of all components are needed by turns.
LOGARITHMS_KEPT = 2


class CountMeans(Splitting, Moving):
    """Frame: the items as they are, and √(2c) of centres; the reference is in the midst of the items, and nowhere 0."""

    power = 1
    framed = False
    flat = False
    blend = 0.5

    def __init__(self, ref: Array) -> None:
        super().__init__(ref)
        self.origin = np.sqrt(2 * ref)[None]
        self.origin.flags.writeable = False
        self._least = LEAST * ref
        self._known: tuple[tuple[Array, Array, Array], ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.ref,)

    def _measure(self) -> Deviance:
        return Deviance(LEAST * self.ref)

    @classmethod
    def about(cls, mean: Array) -> Self:
        """The frame for items with this weighted mean."""
        whole = float(mean.sum())
        return cls((1 - EVEN) * mean + EVEN * whole / len(mean) if whole > 0 else np.full(len(mean), 1 / len(mean)))

    @classmethod
    def of(cls, engine: Engine) -> Self:
        return cls.about(weighted_mean(engine))

    def items(self, raw: RawRows, weight: Array) -> Items:
        return Items(self._rows(raw), as_counts(raw).sums(), self._away(raw, np.ones_like(weight)), weight, self, renew=self._rows)

    def _rows(self, raw: RawRows) -> Rows:
        """What is seen of the items."""
        return raw.framed(None, np.zeros(len(raw)), np.zeros(len(self.ref)))

    def _away(self, raw: RawRows, scale: Array) -> Array:
        """D(x ‖ scale · g)."""
        return as_counts(raw).divergence(scale, np.zeros(len(raw), dtype=np.intp, like=scale), self.ref[None], self._least)

    def points(self, items: Items, index: Any) -> Array:
        return np.sqrt(2 * np.atleast_2d(items.rows.take(index)))

    def to_data(self, centers: Array) -> Array:
        return np.square(centers) / 2

    def to_frame(self, centers: Array) -> Array:
        return self.retract(np.sqrt(2 * np.maximum(centers, 0)))

    def _logarithms(self, centers: Array) -> tuple[Array, Array]:
        """log(c/g) (k, n_dims) and |c| − |g| (k,), which all blocks of a pass need."""
        for known, logs, offset in self._known:
            if np.array_equal(known, centers):
                return logs, offset
        means = self.to_data(centers)
        logs, offset = np.log(np.maximum(means, self._least) / self.ref), (means - self.ref).sum(axis=1)
        self._known = ((centers.copy(), logs, offset), *self._known[: LOGARITHMS_KEPT - 1])
        return logs, offset

    def pairs(self, items: Items, centers: Array, labels: Labels | None = None) -> Pairs:
        # D(x‖c) = D(x‖g) − x·log(c/g) + |c| − |g|
        logs, offset = self._logarithms(centers)
        inner = items.products(logs, labels)
        distance = items.sq.astype(inner.dtype) - inner
        distance += each_center(offset.astype(inner.dtype), labels)
        return Pairs(distance, inner)

    def sums(self, items: Items, resp: Array, inner: Array) -> Array:
        return items.rows.tdot(resp).astype(np.float64, copy=False)

    def center(self, sums: Array, mass: Array) -> Array:
        return self.retract(np.sqrt(2 * np.maximum(sums, 0) / mass[:, None]))

    def retract(self, centers: Array) -> Array:
        return np.abs(centers)

    def curvature(self, state: State, stats: Stats) -> Array:
        return stats.mass[:, None]

    def slope(self, state: State, stats: Stats) -> Array:
        # mass y − 2 Σ q x / y
        return self.tangent(stats.mass[:, None] * state.centers - 2 * stats.sums * self._inverse(state.centers), state.centers)

    def _inverse(self, centers: Array) -> Array:
        """1 / y; 0 for what a centre lacks, of which it gets none by moving a little."""
        return np.divide(1.0, centers, out=np.zeros_like(centers), where=self.to_data(centers) > self._least)

    def tangent(self, vectors: Array, centers: Array) -> Array:
        return np.where(self.to_data(centers) > self._least, vectors, 0.0)

    def moved(self, centers: Array, directions: Array, step: Array) -> Array:
        # c e^{tη} with η = 2 ψ / y
        return centers * np.exp(self._exponent(centers, directions, step))

    def _exponent(self, centers: Array, directions: Array, step: Array) -> Array:
        """tη / 2."""
        return np.minimum(step[:, None] * directions * self._inverse(centers), LARGEST_EXPONENT)

    def projections(self, items: Items, centers: Array, directions: Array) -> Array:
        # x·η
        return items.rows.dot(2 * directions * self._inverse(centers))

    def change(self, inner: Array, projections: Array, step: Array, centers: Array, directions: Array) -> Array:
        # −t x·η + Σ c (e^{tη} − 1)
        return self._growth(centers, self._exponent(centers, directions, step))[:, None] - step[:, None] * projections

    def _growth(self, centers: Array, exponent: Array) -> Array:
        """What a component costs all items alike when its centre becomes c e^{2 exponent}, (k,)."""
        return (self.to_data(centers) * np.expm1(2 * exponent)).sum(axis=1)

    def moments(self, items: Items, resp: Array, pairs: Pairs, centers: Array, directions: Array) -> Array:
        # Σ q a z with z = (x − c) / y and a = z·ψ
        means, inverse = self.to_data(centers), self._inverse(centers)
        along = items.rows.dot(directions * inverse)
        weighted = resp * (along - np.einsum("ij,ij->i", means, directions * inverse).astype(along.dtype)[:, None])
        spread = (items.rows.tdot(weighted) - weighted.sum(axis=1)[:, None] * means) * inverse
        return np.stack([spread, np.zeros_like(spread)]).astype(np.float64, copy=False)

    def pencil(self, stats: Stats, centers: Array, directions: Array, moments: Array) -> tuple[Array, Array]:
        # β_cr = 1 / (2 λ_max(Cov z)): N = I, R = 2 Cov z
        return directions, 2 * moments[0] / np.maximum(stats.mass, TINY)[:, None]

    # With S = Σ x log(x/c), joining costs ω D(x‖c′) + m D(c‖c′) with c′ = (m c + ω x) / (m + ω), which is
    #
    #     ω S + (ω |x| + m |c|) log(1 + ω/m) − Σ_x (m c + ω x) log(1 + ω x / (m c)),
    #
    # where the last sum is over the entries of the item; leaving saves as much with −ω for ω, and its sign changed.

    def join(self, items: Items, pairs: Pairs, centers: Array, mass: Array, cost: Array) -> Array:
        weight, size = items.weight, self.to_data(centers).sum(axis=1)[:, None]
        heavy = np.where(mass > 0, mass, 1.0)[:, None]
        own = weight * (np.maximum(pairs.distance, 0) + items.along - size)
        stirred = items.rows.growth(weight, heavy * np.maximum(self.to_data(centers), self._least))
        rise = own + (weight * items.along + heavy * size) * np.log1p(weight / heavy) - stirred
        return np.where(mass[:, None] > 0, np.maximum(rise, 0), 0.0)

    def leave(self, items: Items, pairs: Pairs, labels: Labels, centers: Array, mass: Array, cost: Array) -> Array:
        means, heavy, weight = self.to_data(centers), np.where(mass > 0, mass, 1.0), items.weight
        size, whole = by_label(means.sum(axis=1), labels), by_label(heavy, labels)
        # An item alone in its component leaves nothing behind.
        rest = np.maximum(1 - weight / whole, 1e-12)
        own = weight * (np.maximum(pairs.of(labels).distance[0], 0) + items.along - size)
        stirred = items.rows.growth(-weight, heavy[:, None] * np.maximum(means, self._least), labels)
        fall = own - (whole * size - weight * items.along) * np.log(rest) + stirred
        return np.minimum(np.maximum(fall, 0), by_label(cost, labels))

    def least_cost(self, points: Array, weight: Array) -> float:
        # An item without weight may have a count where all others have none, and be infinitely far from their mean.
        points, weight = points[weight > 0], weight[weight > 0]
        items = self.to_data(points)
        mean = weight @ items / max(float(weight.sum()), TINY)
        return float(weight @ (relative_entropy(items, mean) + np.where(items > 0, 0.0, mean)).sum(axis=1))

    def merge(self, centers: Array, mass: Array, cost: Array) -> Array:
        # m_j D(c_j‖c′) + m_l D(c_l‖c′): the weighted Jensen–Shannon divergence
        means, found = self.to_data(centers), np.empty((len(mass), len(mass)))
        for row, mean, own in zip(found, means, mass, strict=True):
            total = np.maximum(own + mass, TINY)[:, None]
            middle = np.maximum((own * mean + mass[:, None] * means) / total, TINY)  # also of components that weigh nothing
            row[:] = own * _divergence(mean, middle) + mass * _divergence(means, middle)
        return found


class CountProfiles(CountMeans):
    """The same with Σ c = 1, of items that are divided by their sums."""

    alike = "All items are equal up to their scale; to tell their scales apart, set scaling='none'."
    scaled = True

    @classmethod
    def about(cls, mean: Array) -> Self:
        """The frame for items with this weighted mean."""
        ref = super().about(mean).ref
        return cls(ref / ref.sum())

    def items(self, raw: RawRows, weight: Array) -> Items:
        size = as_counts(raw).sums()
        # A zero item has no profile: it weighs nothing and is at distance 0 from every centre.
        some = (size > 0).astype(np.float64)
        return Items(self._rows(raw), some, self._away(raw, size) * _inverse(size), weight * size, self, renew=self._rows)

    def _rows(self, raw: RawRows) -> Rows:
        return raw.framed(_inverse(as_counts(raw).sums()), np.zeros(len(raw)), np.zeros(len(self.ref)))

    def pairs(self, items: Items, centers: Array, labels: Labels | None = None) -> Pairs:
        # KL(x̂‖c) = KL(x̂‖g) − x̂·log(c/g)
        inner = items.products(self._logarithms(centers)[0], labels)
        return Pairs(items.sq.astype(inner.dtype) - inner, inner)

    def retract(self, centers: Array) -> Array:
        size = np.sqrt(np.square(centers).sum(axis=1) / 2)[:, None]
        # A profile of nothing has no better replacement than the reference.
        return np.where(size > 0, np.abs(centers) / np.where(size > 0, size, 1.0), self.origin)

    def tangent(self, vectors: Array, centers: Array) -> Array:
        kept = super().tangent(vectors, centers)
        whole = super().tangent(centers, centers)
        along = np.einsum("ij,ij->i", kept, whole) / np.maximum(np.einsum("ij,ij->i", whole, whole), TINY)
        return kept - along[:, None] * whole

    def moved(self, centers: Array, directions: Array, step: Array) -> Array:
        return self.retract(super().moved(centers, directions, step))

    def _growth(self, centers: Array, exponent: Array) -> Array:
        # log Σ c e^{tη}
        return np.log1p(super()._growth(centers, exponent))


class _Flows(CountMeans, Flowing):
    """With the costs of the barrier flow."""

    def flow_cost(self, points: Array, weight: Array) -> FlowCost:
        return DivergenceCost(points, weight, self.retract, self._least)


class Poisson(_Flows):
    """Counts and means of counts."""


class Profile(CountProfiles, _Flows):
    """Counts and profiles that add up to one."""


def _inverse(size: Array) -> Array:
    """1 / |x|; 0 for a zero item."""
    return np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)


def _divergence(means: Array, others: Array) -> Array:
    """D of rows (k, n_dims), or of one, from others that are positive where they are."""
    return (relative_entropy(means, others) + np.where(means > 0, 0.0, others)).sum(axis=1)
