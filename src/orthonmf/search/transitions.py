"""Phase transitions: where components stop being optimal, into what they split, and how long a number of components persists.

With masses, F = −Σ ω log Σ_j α_j exp(−β d_j) is convex in the distribution of the centres, so the present components are the global
minimum iff c(y) = Σ ω_i exp(−β d(x_i, y)) / Z_i ≤ Σ ω for every y. A transition is the β at which c first touches Σ ω: at y next to a
centre (continuous; the local critical value, an eigenvalue, says when), or far from all of them (discontinuous, and earlier).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._common.typing import Array
from ..distortion.base import Items, Pairs, Splitting, between
from ..engines.base import Engine
from ..passes.critical import Children, ChildSums, Farthest, Largest, MeanDistances, Moments, Scan, ScanSums, WorstExplained
from ..passes.state import State, normalised_log
from .budget import BUDGET
from .gibbs import Settled

# Relative change of a critical value at which its iteration stops.
CRITICAL_TOL = 1e-3
# Steps at which a child is tried, in units of 1/√(2β), on both sides of each centre: 0.3 · 1.5^s reaches 26 widths.
SCAN_STEPS = 0.3 * 1.5 ** np.arange(12)
# Up to this excess the slope of c tells where a child far from all centres began to pay.
KNOWN = 0.05
# Children with β‖y − y'‖² below this are one; and one that is nearer to a centre than this is the centre, give or take rounding.
ONE_PLACE, FAR = 1.0, 1e-2
# A child pays when c exceeds Σ ω by this; below, rounding and the residual of a settled state could do it.
EXCESS = 1e-4
# Components with β‖y_j − y_l‖² below this have not separated, and one with less than this mass is gone.
SEPARATION, MIN_MASS = 1e-4, 1e-9
# A number of components whose persistence log(β_{m+1} / β_m) stays below this does not stand out: a structureless cloud of points
# reaches about half of it.
MIN_PERSISTENCE = np.log(2.0)


@dataclass(frozen=True)
class Criticals:
    """Local critical values of the components of a state, and the direction in which each gives way.

    Attributes
    ----------
    beta : ndarray of shape (n_components,)
        Upper bounds that tighten with the passes spent; inf where a component has no spread.
    directions : ndarray of shape (n_components, n_coordinates)
    """

    beta: Array
    directions: Array


class _Rested(Protocol):
    """What a critical value is asked of: components at rest, with responsibilities and sums."""

    @property
    def state(self) -> State:
        """Temperature, centres and masses."""

    @property
    def stats(self) -> Any:
        """The sums of a pass at that state."""

    def responsibilities(self, items: Items) -> tuple[Array, Pairs]:
        """ω_i p_ij (k, block) and the distances of a block."""
        ...


def largest_distance(engine: Engine, distortion: Splitting, state: State) -> float:
    """The largest distance of a weighted item to its nearest centre."""
    farthest: Largest = engine.run(distortion, Farthest(state.centers)).total
    return farthest.value


def _pencil(engine: Engine, distortion: Splitting, at: _Rested, directions: Array) -> Array:
    """(ψ, N ψ, R ψ) of every component in one pass, shape (3, k, n_coordinates)."""
    moments = engine.run(distortion, Moments(at, directions)).total.moments
    return np.stack([directions, *distortion.pencil(at.stats, at.state.centers, directions, moments)])


def critical_values(
    engine: Engine,
    distortion: Splitting,
    at: _Rested,
    *,
    start: Array | None = None,
    tol: float = CRITICAL_TOL,
    max_passes: int = BUDGET.critical_passes,
) -> Criticals:
    """Least ψᵀNψ / ψᵀRψ of every component: a locally optimal iteration on three vectors, all components at once."""
    centers = at.state.centers
    if start is None or start.shape != centers.shape:
        start = engine.run(distortion, WorstExplained(at)).total.points - centers
    fresh = _directions(distortion, start, centers)
    best = last = _pencil(engine, distortion, at, fresh)
    beta, weights = _ritz(best[:, :, None])
    for _ in range(max_passes):
        usable = np.where(np.isfinite(beta), beta, 0.0)[:, None]
        fresh = _directions(distortion, usable * best[2] - best[1], centers)
        space = np.stack([best, _pencil(engine, distortion, at, fresh), last], axis=2)
        before = beta
        beta, weights = _ritz(space)
        best, last = np.einsum("kb,akbd->akd", weights, space), best
        with np.errstate(invalid="ignore"):
            if not (before - beta > tol * beta).any():
                break
    return Criticals(beta, _directions(distortion, best[0], centers))


def _directions(distortion: Splitting, vectors: Array, centers: Array) -> Array:
    """Unit tangent directions; projected twice, since a vector that is mostly rounding is not tangent after the first time."""
    return _unit(distortion.tangent(_unit(distortion.tangent(vectors, centers)), centers))


def _unit(vectors: Array) -> Array:
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, size, out=np.zeros_like(vectors), where=size > 0)


def _ritz(space: Array) -> tuple[Array, Array]:
    """Least ψᵀNψ / ψᵀRψ within the span of each component's basis, and the weights of its minimiser.

    ``space`` holds (ψ, Nψ, Rψ) with shape (3, k, basis, n_coordinates). The value is 0 where N is not positive (the centre is a minimum
    at no temperature) and inf where R vanishes (no spread).
    """
    gram, stiff, spread = np.einsum("kbd,akcd->akbc", space[0], space)
    size, axes = np.linalg.eigh(gram)
    keep = size > 1e-12 * np.maximum(size[:, -1:], np.finfo(float).tiny)
    whiten = axes * np.where(keep, 1 / np.sqrt(np.where(keep, size, 1.0)), 0.0)[:, None, :]
    # Directions that were dropped get stiffness one and no spread: they never win.
    dropped = np.where(keep, 0.0, 1.0)[:, :, None] * np.eye(gram.shape[1])
    stiff, spread = (np.swapaxes(whiten, 1, 2) @ form @ whiten for form in (stiff, spread))
    rigid, axes = np.linalg.eigh((stiff + np.swapaxes(stiff, 1, 2)) / 2 + dropped)
    firm = rigid > 0
    ease = axes * np.where(firm, 1 / np.sqrt(np.where(firm, rigid, 1.0)), 0.0)[:, None, :]
    inverse, modes = np.linalg.eigh(np.swapaxes(ease, 1, 2) @ spread @ ease)
    loose = ~firm[:, 0]
    top = np.where(loose[:, None], axes[:, :, 0], (ease @ modes)[:, :, -1])
    with np.errstate(divide="ignore", over="ignore"):
        beta = 1 / np.maximum(inverse[:, -1], 0.0)
    return np.where(loose, 0.0, beta), np.einsum("kij,kj->ki", whiten, top)


@dataclass(frozen=True, eq=False)
class Child:
    """Where a new component pays most along the direction of one component.

    Attributes
    ----------
    parent : int
    excess : float
        max c(y) / Σω − 1: positive where the present components are not optimal.
    onset : float
        Guess of the β at which the excess began.
    center : ndarray of shape (n_coordinates,)
    mass : float
        Newton's step for its mass.
    unrest : float
        The excess at the parent's own centre, which is none at rest.
    """

    parent: int
    excess: float
    onset: float
    center: Array
    mass: float
    unrest: float = 0.0

    @property
    def pays(self) -> bool:
        """Whether a component here would lower J."""
        return self.excess > EXCESS + self.unrest


def scan(engine: Engine, distortion: Splitting, at: Settled, criticals: Criticals) -> list[Child]:
    """The best child of each component along ± its direction.

    Newton's step for the mass of a child at y is (c − Σω) / Σ ω (exp(−βd)/Z − 1)², and c changes in β by Σ ω exp(−βd)/Z (D_i − d), with
    D_i the mean distance of item i, which says where c touched Σ ω.
    """
    state = at.state
    reach = SCAN_STEPS / np.sqrt(2 * state.beta)
    steps = np.concatenate([-reach[::-1], reach])
    total: ScanSums = engine.run(distortion, Scan(state, criticals.directions, steps)).total
    rows, best = np.arange(state.n_components), total.first.argmax(axis=1)
    excess, slope = total.first[rows, best] - at.stats.weight, total.slope[rows, best]
    mass = excess / np.maximum(total.second[rows, best], np.finfo(float).tiny)
    newton = state.beta - np.divide(excess, slope, out=np.zeros_like(excess), where=slope > 0)
    unrest = _unrest(at)
    pays = excess > (EXCESS + unrest) * at.stats.weight
    onset = np.where(pays, np.minimum(newton, criticals.beta), criticals.beta)
    centers = distortion.moved(state.centers, criticals.directions, steps[best])
    return [
        Child(
            parent=int(j),
            excess=float(excess[j] / at.stats.weight),
            onset=max(float(onset[j]), 0.0),
            center=centers[j],
            mass=float(mass[j]),
            unrest=float(unrest[j]),
        )
        for j in rows
    ]


def elsewhere(engine: Engine, distortion: Splitting, at: Settled, places: Array) -> Child | None:
    """The best child near one of some ``places`` (m, n_coordinates), where it pays and is far from all centres.

    Lines to items that are orthogonal to a centre have no slope there: only a look from afar finds them. From each place, fixed-point
    steps climb c(y): its maxima are the best centres for the weights ω exp(−β d)/Z.
    """
    state = at.state
    survey = engine.run(distortion, MeanDistances(state)).columns
    for _ in range(BUDGET.place_steps):
        gains: ChildSums = engine.run(distortion, Children(state.beta, places), survey).total
        places = distortion.center(gains.sums, np.maximum(gains.mass, np.finfo(float).tiny))
    gains = engine.run(distortion, Children(state.beta, places), survey).total
    best = int(gains.mass.argmax())
    excess, slope = gains.mass[best] - at.stats.weight, gains.slope[best]
    # c grows exponentially: far past the transition its tangent says nothing about where it was.
    known = slope > 0 and excess < KNOWN * at.stats.weight
    onset = state.beta - excess / slope if known else 0.0
    away = np.square(places[best] - state.centers).sum(axis=1)
    child = Child(
        parent=int(away.argmin()),
        excess=float(excess / at.stats.weight),
        onset=max(float(onset), 0.0),
        center=places[best],
        mass=float(excess / max(gains.second[best], np.finfo(float).tiny)),
        unrest=float(_unrest(at).max()),
    )
    return child if child.pays and state.beta * away.min() >= FAR else None


def with_far(near: list[Child], far: Child | None, beta: float) -> list[Child]:
    """Children beside their parents and one elsewhere; of two that pay in one place the better."""
    if far is None:
        return near
    same = [child for child in near if child.pays and beta * np.square(child.center - far.center).sum() < ONE_PLACE]
    if any(child.excess >= far.excess for child in same):
        return near
    return [child for child in near if child not in same] + [far]


def _unrest(at: Settled) -> Array:
    """The excess at each centre: c is mass_j / α_j there, which is Σ ω at rest; a mass still on its way is no reason to split."""
    return np.maximum(at.stats.mass / np.exp(at.state.log_mass) / at.stats.weight - 1, 0.0)


def halves(distortion: Splitting, at: Settled, criticals: Criticals) -> list[Child]:
    """One child for each component past its local critical value, a standard deviation away along its direction.

    What ``scan`` finds without looking: enough where the split is refined afterwards.
    """
    with np.errstate(divide="ignore"):
        spread = np.minimum(1 / np.sqrt(2 * criticals.beta), 1 / np.sqrt(at.state.beta))
        excess = np.where(criticals.beta > 0, at.state.beta / criticals.beta, np.inf) - 1
    centers = distortion.moved(at.state.centers, criticals.directions, spread)
    mass = np.exp(at.state.log_mass) / 2
    return [Child(j, float(excess[j]), float(criticals.beta[j]), centers[j], float(mass[j])) for j in range(len(mass))]


def with_children(state: State, children: list[Child], next_id: int) -> State:
    """The state with more components; the others give up their mass in proportion."""
    for offset, child in enumerate(children):
        mass = min(max(child.mass, 1e-6), 0.5)
        state = state.set(
            centers=np.vstack([state.centers, child.center]),
            log_mass=np.append(state.log_mass + np.log1p(-mass), np.log(mass)),
            ids=(*state.ids, next_id + offset),
        )
    return state


def distinct(state: State) -> State:
    """The state with coincident components joined and massless ones dropped; the same object when there are none."""
    mass = np.exp(state.log_mass)
    close = state.beta * between(state.centers) < SEPARATION
    keep: list[int] = []
    joined = np.zeros_like(mass)
    for j in np.flatnonzero(mass >= MIN_MASS):
        home = next((kept for kept in keep if close[j, kept]), None)
        if home is None:
            keep.append(int(j))
        joined[j if home is None else home] += mass[j]
    if len(keep) == state.n_components:
        return state
    return state.set(
        centers=state.centers[keep],
        log_mass=normalised_log(joined[keep]),
        ids=tuple(state.ids[j] for j in keep),
    )


def persistence(critical_betas: Array) -> Array:
    """log(β_{m+1} / β_m) for m = 2, 3, …, from the β at which 2, 3, … components first exist."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.diff(np.log(critical_betas))


def most_persistent(critical_betas: Array, *, endless: bool, least: int = 2) -> int:
    """The m ≥ 2 and ≥ ``least`` with the largest persistence; 1 where there is none.

    ``endless`` says that the last number of components never splits again and that this counts.
    """
    lengths = persistence(critical_betas)
    if endless:
        return len(critical_betas) + 1
    first = max(least, 2) - 2
    return int(lengths[first:].argmax()) + first + 2 if lengths.size > first else 1
