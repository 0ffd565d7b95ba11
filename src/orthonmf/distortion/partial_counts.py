"""The Kullback–Leibler divergence over the numbers that are there, with M_i the dimensions of which item i has a number.

Means (`PartialPoisson`): d = Σ_M x log(x/c) − x + c. Profiles (`PartialProfile`): the best size of an item is |x| / Σ_M c, which leaves
d = Σ_M x̂ log(x̂/c) + log Σ_M c of items that are divided by their sums, so that an item weighs ω = w |x|; Σ c = 1, but any multiple of c
is as near. With τ = 1 / Σ_M c (1 for means), sums over the items have the halves Σ q x̂ and Σ q τ m, whose quotient is the best centre at
these sizes. In the coordinates y = √(2c), with v = −½ ∂d/∂y = x̂/y − ½ τ m y, a component is stable along ψ until
β_cr = min Σ q d″ / Σ q (d′)² over ψ, where d′ = −2 v·ψ and

    means:     ½ d″ = Σ_M ψ²
    profiles:  ½ d″ = τ Σ_M ψ² − ½ (τ Σ_M y ψ)².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._common.typing import Array, Labels
from ..engines.base import Engine, PartialFrame, RawRows, as_counts, as_partial
from ..passes.state import State, Stats
from .base import Items, Pairs
from .kullback_leibler import LEAST, CountMeans, CountProfiles
from .measure import PartialDeviance, over
from .partial import Partial, enough, framed, halves, mean_there, seen, stiff

TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Tilted:
    """What a step along η costs items: x·η (k, block), and the items, whose Σ_M c (e^{tη} − 1) depends on the step."""

    along: Array
    rows: PartialFrame


class PartialPoisson(Partial, CountMeans):
    """Counts and means of counts, of the numbers that are there."""

    def _measure(self) -> PartialDeviance:
        return PartialDeviance(LEAST * self.ref)

    @classmethod
    def of(cls, engine: Engine) -> Self:
        return cls.about(mean_there(engine))

    def _rows(self, raw: RawRows) -> PartialFrame:
        return as_partial(raw).present(None, np.zeros(len(self.ref)))

    def points(self, items: Items, index: Any) -> Array:
        values, there = (np.atleast_2d(part[index]) for part in (framed(items).values, framed(items).there))
        return self.to_frame(self.filled(values, there > 0))

    def filled(self, means: Array, there: Array) -> Array:
        return np.where(there, means, self.ref)

    def _floored(self, centers: Array) -> Array:
        """Centres in the coordinates of the data, of which none has less than it has under the logarithm."""
        return np.maximum(self.to_data(centers), self._least)

    def pairs(self, items: Items, centers: Array, labels: Labels | None = None) -> Pairs:
        # d(x‖c) = d(x‖g) − x·log(c/g) + Σ_M c − g
        inner = items.products(self._logarithms(centers)[0], labels)
        return Pairs(items.sq - inner + seen(items, self.to_data(centers) - self.ref, labels), inner)

    def _parts(self, resp: Array, inner: Array) -> tuple[Array, Array]:
        return resp, resp

    def center(self, sums: Array, mass: Array) -> Array:
        own, there = halves(sums)
        return self.to_frame(self.filled(over(own, there), enough(there)))

    def slope(self, state: State, stats: Stats) -> Array:
        # Σ q τ m y − 2 Σ q x̂ / y
        own, there = halves(stats.sums)
        return self.tangent(there * state.centers - 2 * own * self._inverse(state.centers), state.centers)

    def projections(self, items: Items, centers: Array, directions: Array) -> Any:
        return Tilted(framed(items).dot(2 * directions * self._inverse(centers)), framed(items))

    def change(self, inner: Array, projections: Any, step: Array, centers: Array, directions: Array) -> Array:
        # −t x·η + Σ_M c (e^{tη} − 1)
        growth = projections.rows.seen(self._floored(centers) * np.expm1(2 * self._exponent(centers, directions, step)))
        return self._grown(growth, inner) - step[:, None] * projections.along

    def _grown(self, growth: Array, inner: Array) -> Array:
        """What the growth of Σ_M c costs items."""
        return growth

    def _sizes(self, inner: Array) -> Array:
        """τ."""
        return np.ones_like(inner)

    def moments(self, items: Items, resp: Array, pairs: Pairs, centers: Array, directions: Array) -> Array:
        # Σ q τ² Σ_M(y ψ) m, and Σ q a v with a = v·ψ
        inverse, tau = self._inverse(centers), self._sizes(pairs.inner)
        within = tau * framed(items).seen(centers * directions)
        weighted = resp * (framed(items).dot(directions * inverse) - within / 2)
        spread = framed(items).tdot(weighted) * inverse - framed(items).tseen(weighted * tau) * centers / 2
        return np.stack([framed(items).tseen(resp * tau * within), spread])

    def pencil(self, stats: Stats, centers: Array, directions: Array, moments: Array) -> tuple[Array, Array]:
        mass = np.maximum(stats.mass, TINY)[:, None]
        return stiff(halves(stats.sums)[1], mass) * directions, 2 * moments[1] / mass

    # As without missing numbers, of items x / τ that weigh ω τ, with Σ_M c in the place of Σ c. A component is taken to have all its mass
    # in every dimension: joining then costs no less than is said, and leaving saves no less.

    def join(self, items: Items, pairs: Pairs, centers: Array, mass: Array, cost: Array) -> Array:
        heavy, within = np.where(mass > 0, mass, 1.0)[:, None], framed(items).seen(self._floored(centers))
        weight, size = items.weight * self._sizes(pairs.inner), self._counted(items, within)
        own = weight * (self._unscaled(pairs, within) + size - within)
        stirred = framed(items).growth(items.weight, heavy * self._floored(centers))
        rise = own + (weight * size + heavy * within) * np.log1p(weight / heavy) - stirred
        return np.where(mass[:, None] > 0, np.maximum(rise, 0), 0.0)

    def leave(self, items: Items, pairs: Pairs, labels: Labels, centers: Array, mass: Array, cost: Array) -> Array:
        heavy, within, own = np.where(mass > 0, mass, 1.0)[labels], framed(items).own_seen(self._floored(centers), labels), pairs.of(labels)
        weight, size = items.weight * self._sizes(own.inner)[0], self._counted(items, within)
        # An item alone in its component leaves nothing behind.
        rest = np.maximum(1 - weight / heavy, 1e-12)
        floored = np.where(mass > 0, mass, 1.0)[:, None] * self._floored(centers)
        stirred = framed(items).growth(-items.weight, floored, labels)
        fall = weight * (self._unscaled(own, within)[0] + size - within) - (heavy * within - weight * size) * np.log(rest) + stirred
        return np.minimum(np.maximum(fall, 0), cost[labels])

    def _counted(self, items: Items, within: Array) -> Array:
        """|x| / τ."""
        return items.along

    def _unscaled(self, pairs: Pairs, within: Array) -> Array:
        """d / τ."""
        return np.maximum(pairs.distance, 0)


class PartialProfile(PartialPoisson, CountProfiles):
    """Counts and profiles that add up to one, of the numbers that are there."""

    def items(self, raw: RawRows, weight: Array) -> Items:
        size, within = as_counts(raw).sums(), as_partial(raw).within(np.zeros(len(raw), dtype=np.intp), self.ref[None])
        # A zero item has no profile: it weighs nothing and is at distance 0 from every centre.
        some, away = (size > 0).astype(np.float64), self._away(raw, over(size, within))
        return Items(self._rows(raw), some, over(away, size), weight * size, self, renew=self._rows)

    def _rows(self, raw: RawRows) -> PartialFrame:
        size = as_counts(raw).sums()
        return as_partial(raw).present(over(np.ones_like(size), size), np.zeros(len(self.ref)))

    def filled(self, means: Array, there: Array) -> Array:
        share = over(np.where(there, means, 0.0).sum(axis=1), np.where(there, self.ref, 0.0).sum(axis=1))
        return np.where(there, means, share[:, None] * self.ref)

    def pairs(self, items: Items, centers: Array, labels: Labels | None = None) -> Pairs:
        # d(x̂‖c) = d(x̂‖g) − x̂·log(c/g) + log(Σ_M c / Σ_M g)
        inner = items.products(self._logarithms(centers)[0], labels)
        within = seen(items, self._floored(centers), labels)
        return Pairs(items.sq - inner + items.along * np.log(within / framed(items).seen(self.ref[None])), 1 / within)

    def _parts(self, resp: Array, inner: Array) -> tuple[Array, Array]:
        return resp, resp * inner

    def _grown(self, growth: Array, inner: Array) -> Array:
        return np.log1p(growth * inner)

    def _sizes(self, inner: Array) -> Array:
        return inner

    def pencil(self, stats: Stats, centers: Array, directions: Array, moments: Array) -> tuple[Array, Array]:
        stiffness, spread = super().pencil(stats, centers, directions, moments)
        stiffness = stiffness - centers * moments[0] / (2 * np.maximum(stats.mass, TINY)[:, None])
        return self.tangent(stiffness, centers), self.tangent(spread, centers)

    def _counted(self, items: Items, within: Array) -> Array:
        return within

    def _unscaled(self, pairs: Pairs, within: Array) -> Array:
        return np.maximum(pairs.distance, 0) * within
