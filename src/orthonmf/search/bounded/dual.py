"""Bounded components by annealed prices: p_ij ∝ s_j exp(−β (ω_i d_ij + price_j) / τ_i).

Under bounds the masses are uniform, the paper's own free energy: minimise Σ ω_i p_ij d_ij + (1/β) Σ τ_i p_ij log p_ij over
responsibilities whose soft counts Σ_i p_ij stay within the bounds, with τ_i = max(ω_i, floor · mean ω) so that items of no weight do no
harm. The prices maximise a smooth concave dual

    g(π) = −(1/β) Σ τ_i log Σ_j s_j exp(−β (ω_i d_ij + π_j) / τ_i) − Σ_j (π_j⁺ U_j − π_j⁻ L_j)

(each item counting as one; of soft bounds on sums of sizes s_i, s_i π_j stands for π_j and s_i p_ij for p_ij)
with gradient Σ_i p_ij − U_j (or L_j where π_j < 0) and Hessian −β Σ (1/τ_i)(diag p_i − p_i p_iᵀ). While components coincide, one centre
stands for several *slots* s_j and has their bounds in common; a split divides the slots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._common.typing import Array
from ..._common.validation import check_positive
from ...distortion.base import Items, Pairs, Splitting
from ...engines.base import Engine, sample
from ...passes.hard import Weights
from ...passes.priced import Priced, PricedStats, PricedSums, priced_soft
from ...passes.state import State
from ...progress import Note, Temperature
from ..budget import BUDGET
from ..partition import Partition, finest, spread
from ..status import Status
from ..transitions import critical_values
from .base import Offer, Relaxed, forgo, loads
from .bounds import Bounds
from .options import LEAST_GROWTH, Options, option

# Least entropy weight of an item, as a fraction of the mean.
FLOOR = 1e-3
# The violation of a bound, as a fraction of the items, at which Newton's steps for the prices end: on the way, and at the last
# temperature.
PRICE_TOL, LAST_PRICE_TOL = 1e-4, 1e-9
# Relative fall of the Lagrangian at which the centres are at rest.
PRICED_TOL = 1e-5
# The last temperature is settled until the KKT residual is below this.
KKT_TOL = 1e-6
# The annealing starts below the first critical value and ends where responsibilities are hard.
START, GROWTH, STOP = 0.5, 1.5, 300.0
# Ridge of Newton's equations, relative to the largest curvature there can be.
RIDGE = 1e-10


@dataclass(frozen=True)
class DualParameters(Options):
    """Constants of the annealed prices.

    Parameters
    ----------
    growth : float
        The factor between temperatures, above 1.001.
    """

    growth: float = option(GROWTH, check_positive, above=LEAST_GROWTH)


@dataclass(frozen=True)
class _Resting:
    """Centres and prices at rest at their temperature, as ``critical_values`` wants them."""

    priced: Priced
    stats: PricedStats
    floor: float
    residual: float

    @property
    def state(self) -> State:
        """Temperature, centres and masses."""
        return State(self.priced.beta, self.priced.centers, self.priced.log_slots)

    def responsibilities(self, items: Items) -> tuple[Array, Pairs]:
        """ω_i p_ij (k, block) and the distances of a block."""
        resp, pairs, _, _ = priced_soft(items, self.priced, self.floor)
        return resp * items.weight, pairs


@dataclass
class Dual:
    """The annealing of prices and centres under bounds.

    Parameters
    ----------
    engine, distortion, bounds
    growth : float
        The factor by which β grows.
    note : callable
        Told of every settled temperature.
    penalty : float
        Largest price: inf makes the bounds hard.
    """

    engine: Engine
    distortion: Splitting
    bounds: Bounds
    note: Note
    growth: float = GROWTH
    penalty: float = np.inf

    def __post_init__(self) -> None:
        weights = self.engine.run(self.distortion, Weights()).columns["weight"]
        self.floor = FLOOR * float(weights.mean()) if weights.any() else 1.0
        self.mean_tau = float(np.maximum(weights, self.floor).mean())

    def stats(self, priced: Priced) -> PricedStats:
        """The sums of one pass."""
        found: PricedStats = self.engine.run(self.distortion, PricedSums(priced, self.floor)).total
        return found

    # -- prices -----------------------------------------------------------------------------------------------------------------

    def value(self, priced: Priced, stats: PricedStats) -> float:
        """The dual g(π): at its maximum the free energy of the best responsibilities for these centres."""
        bound = np.where(priced.prices > 0, priced.pooled(self.bounds.upper), priced.pooled(self.bounds.lower))
        return stats.soft_min - float(priced.prices @ bound)

    def violation(self, priced: Priced, stats: PricedStats) -> Array:
        """Supergradient of g: by how much each count exceeds (+) or misses (−) the bound its price stands for; 0 where all is well."""
        over = stats.counts - priced.pooled(self.bounds.upper)
        under = stats.counts - priced.pooled(self.bounds.lower)
        free = np.where(over > 0, over, np.where(under < 0, under, 0.0))
        wrong = np.where(priced.prices > 0, over, np.where(priced.prices < 0, under, free))
        at_limit = (np.abs(priced.prices) >= self.penalty) & (np.sign(wrong) == np.sign(priced.prices))
        return np.where(at_limit, 0.0, wrong)

    def priced_out(self, priced: Priced, tol: float) -> tuple[Priced, PricedStats]:
        """Prices that maximise the dual at fixed centres: projected Newton with a line search."""
        stats = self.stats(priced)
        for _ in range(BUDGET.price_steps):
            wrong = self.violation(priced, stats)
            if np.abs(wrong).max() <= tol * self.engine.n_items:
                break
            step = self._newton(priced, stats, wrong)
            length, moved = 1.0, None
            kink = self._kink(priced.prices, step)
            while moved is None and length > min(1e-6, kink / 8):
                trial = replace(priced, prices=self._projected(priced.prices, priced.prices + length * step))
                trial_stats = self.stats(trial)
                slope = float(wrong @ (trial.prices - priced.prices))
                if self.value(trial, trial_stats) >= self.value(priced, stats) + 1e-4 * min(slope, 0.0) - self._noise(stats):
                    moved = trial, trial_stats
                length = kink if length / 4 < kink < length else length / 4
            if moved is None:
                break
            priced, stats = moved
        return priced, stats

    def _noise(self, stats: PricedStats) -> float:
        return 1e-13 * (abs(stats.soft_min) + stats.distortion)

    def _newton(self, priced: Priced, stats: PricedStats, wrong: Array) -> Array:
        # A price at its limit that the bound would have beyond it stays there.
        active = (wrong != 0) | ((priced.prices != 0) & (np.abs(priced.prices) < self.penalty))
        # The curvature has the null vector 1 when all are active, and vanishes where responsibilities are hard.
        ridge = RIDGE * priced.beta * self.engine.n_items / self.mean_tau
        blocked = active
        while blocked.any():
            step = np.zeros_like(wrong)
            curvature = stats.curvature[np.ix_(active, active)]
            step[active] = np.linalg.solve(curvature + ridge * np.eye(len(curvature)), wrong[active])
            # A price at zero moves only as its own bound asks: the other way the other bound, and another slope, would hold.
            blocked = active & (priced.prices == 0) & (step * wrong < 0)
            active = active & ~blocked
        # Where responsibilities are hard the curvature vanishes: a price need never move by more than the costs differ.
        reach = 4 * max(stats.spread / self.engine.n_items, np.abs(priced.prices).max(initial=0.0), self.floor)
        return step * min(1.0, reach / max(float(np.abs(step).max()), np.finfo(float).tiny))

    @staticmethod
    def _kink(prices: Array, step: Array) -> float:
        """The length at which the first price reaches zero, where the slope jumps: a search that missed it would only creep there."""
        falling = prices * step < 0
        return float(np.min(-prices[falling] / step[falling], initial=np.inf)) * (1 + 1e-12)

    def _projected(self, before: Array, after: Array) -> Array:
        """A price that would change its sign stops at zero, where the other bound takes over."""
        crossed = before * after < 0
        return np.clip(np.where(crossed, 0.0, after), -self.penalty, self.penalty)

    # -- one temperature --------------------------------------------------------------------------------------------------------

    def rest(self, priced: Priced, *, tol: float | None = None, alternations: int = BUDGET.alternations) -> _Resting:
        """Alternate exact prices and centres; the Lagrangian never rises. With ``tol``, until the KKT residual is below it."""
        before = np.inf
        for _ in range(alternations):
            priced, stats = self.priced_out(priced, PRICE_TOL if tol is None else LAST_PRICE_TOL)
            value = self.value(priced, stats)
            residual = self.kkt_residual(priced, stats)
            done = before - value <= PRICED_TOL * abs(value) if tol is None else residual <= tol
            if done:
                break
            before = value
            centers = self.distortion.center(stats.sums, np.maximum(stats.mass, np.finfo(float).tiny))
            priced = replace(priced, centers=np.where(stats.mass[:, None] > 0, centers, priced.centers))
        return _Resting(priced, stats, self.floor, residual)

    def kkt_residual(self, priced: Priced, stats: PricedStats) -> float:
        """The larger of what one more centre step would move, relative to the spread, and what the counts miss, per item."""
        centers = self.distortion.center(stats.sums, np.maximum(stats.mass, np.finfo(float).tiny))
        step = np.sqrt(np.square(centers - priced.centers).sum(axis=1) @ stats.mass / max(stats.spread, np.finfo(float).tiny))
        return max(float(step), float(np.abs(self.violation(priced, stats)).max()) / self.engine.n_items)

    # -- annealing --------------------------------------------------------------------------------------------------------------

    def run(self) -> _Resting:
        """Anneal from one centre to one for each component."""
        n_components = len(self.bounds.upper)
        everything = (tuple(range(n_components)),)
        at = self.rest(Priced(1.0, self.distortion.origin, everything, np.zeros(1)))
        apart = spread(self.engine, self.distortion)
        if apart <= finest(self.engine, self.distortion, apart):  # items that do not differ have no transitions
            return at
        first = float(critical_values(self.engine, self.distortion, at, max_passes=6).beta[0])
        if not 0 < first < np.inf:
            return at
        beta = START * first
        while beta < STOP * first:
            before = self.engine.passes
            at = self._split(self.rest(replace(at.priced, beta=beta)))
            self._report(at, self.engine.passes - before)
            beta *= self.growth
        return self.rest(at.priced, tol=KKT_TOL, alternations=BUDGET.kkt_alternations)

    def _split(self, at: _Resting) -> _Resting:
        """Split every centre that is past its critical value and stands for several slots, where that lowers the free energy."""
        if all(len(slots) == 1 for slots in at.priced.slots):
            return at
        criticals = critical_values(self.engine, self.distortion, at, tol=0.05, max_passes=3)
        for group in np.argsort(criticals.beta, kind="stable"):
            slots = at.priced.slots[group]
            if criticals.beta[group] >= at.priced.beta or len(slots) == 1:
                continue
            trials = [self._divided(at.priced, int(group), criticals.directions[group], part) for part in self._parts(slots)]
            rested = min((self.rest(trial, alternations=3) for trial in trials), key=lambda r: self.value(r.priced, r.stats))
            if self.value(rested.priced, rested.stats) < self.value(at.priced, at.stats) * (1 - 1e-9):
                at = self.rest(rested.priced)
        return at

    def _parts(self, slots: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The few ways in which a split may divide the slots: evenly, or one apart, the roomiest here or there."""
        ordered = tuple(sorted(slots, key=lambda slot: (-self.bounds.upper[slot], slot)))
        cuts = sorted({1, len(slots) // 2, len(slots) - 1} - {0})
        return [(ordered[:cut], ordered[cut:]) for cut in cuts]

    def _divided(self, priced: Priced, group: int, direction: Array, parts: tuple[tuple[int, ...], tuple[int, ...]]) -> Priced:
        width = np.array([1 / np.sqrt(2 * priced.beta)])
        here = priced.centers[group : group + 1]
        sides = [self.distortion.moved(here, direction[None], sign * width) for sign in (-1.0, 1.0)]
        keep = [j for j in range(len(priced.slots)) if j != group]
        return Priced(
            priced.beta,
            np.vstack([priced.centers[keep], *sides]),
            (*(priced.slots[j] for j in keep), *parts),
            np.append(priced.prices[keep], [priced.prices[group]] * 2),
        )

    def _report(self, at: _Resting, passes: int) -> None:
        weight = max(float(at.stats.mass.sum()), np.finfo(float).tiny)
        self.note(
            Temperature(
                beta=at.priced.beta,
                n_components=len(at.priced.slots),
                free_energy=self.value(at.priced, at.stats) / weight,
                distortion=at.stats.distortion / weight,
                entropy=at.priced.beta * (at.stats.distortion - self.value(at.priced, at.stats)) / weight,
                passes=passes,
                centers=at.priced.centers,
                ids=tuple(slots[0] for slots in at.priced.slots),
                stage="prices",
            )
        )

    def expanded(self, at: _Resting) -> tuple[Array, Array]:
        """Centres (k, n_coordinates) and prices (k,) in the order of the components."""
        n_components = len(self.bounds.upper)
        centers = np.empty((n_components, at.priced.centers.shape[1]))
        prices = np.empty(n_components)
        for slots, center, price in zip(at.priced.slots, at.priced.centers, at.priced.prices, strict=True):
            centers[list(slots)], prices[list(slots)] = center, price
        return centers, prices


def _kind(engine: Engine) -> type[Dual]:
    """Who anneals the prices of few items: compiled where numba is there."""
    if not engine.compiles:
        return Dual
    from .compiled_dual import CompiledDual

    return CompiledDual


def solve(
    engine: Engine,
    distortion: Splitting,
    bounds: Bounds,
    note: Note,
    parameters: DualParameters,
    *,
    seed: int = 0,
    offer: Offer = forgo,
) -> Relaxed:
    """Anneal centres and prices under the bounds, on the sample of large data that ``seed`` draws; nothing is offered on the way."""
    few = max(BUDGET.sample_items, BUDGET.sample_per_component * len(bounds.upper))
    small = sample(engine, few, seed)
    here = bounds.scaled(engine.n_items, small.n_items)
    dual = _kind(small)(small, distortion, here, note, parameters.growth, bounds.penalty)
    at = dual.run()
    centers, prices = dual.expanded(at)
    return Relaxed(centers, prices, at.residual, at.priced.beta, Status.CONVERGED if at.residual <= KKT_TOL else Status.PRICES)


def weighed(engine: Engine, distortion: Splitting, bounds: Bounds, note: Note, relaxed: Relaxed) -> Partition:
    """Labels for soft bounds on the sums of sizes: prices at which these are met, each item where it is cheapest, best centres, in turn.

    With sizes the best assignment is a packing problem; the prices solve its relaxation, which splits fewer items than there are
    components.
    """
    dual = Dual(engine, distortion, bounds, note, penalty=bounds.penalty)
    priced = Priced(relaxed.beta, relaxed.centers, tuple((j,) for j in range(len(relaxed.prices))), relaxed.prices)
    best = None
    for _ in range(BUDGET.kkt_alternations):
        priced, _ = dual.priced_out(priced, PRICE_TOL)
        found = Relaxed(priced.centers, priced.prices, 0.0).nearest(engine, distortion)
        found = replace(found, prices=priced.prices, charge=bounds.charge(loads(engine, found.labels, len(bounds.upper))))
        if best is not None and found.cost >= best.cost * (1 - PRICED_TOL):
            break
        best = found
        priced = replace(priced, centers=found.centers)
    return found if best is None or found.cost < best.cost else best
