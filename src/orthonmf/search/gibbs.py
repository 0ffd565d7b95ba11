"""Free components: p_ij ∝ α_j exp(−β d_ij), the paper's equations (5) and (6), accelerated.

What decreases at fixed β is F = β J = −Σ ω_i log Σ_j α_j exp(−β d_ij). The plain alternation (new masses, new centres) is a step along
the preconditioned gradient of F; just above a transition it needs thousands of passes. L-BFGS with that preconditioner as its first
Hessian starts with the plain step and needs tens.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from .._common.typing import Array
from ..distortion.base import Curved, Distortion, Items, Pairs
from ..engines.base import Engine
from ..passes.soft import Gibbs, soft
from ..passes.state import State, Stats, normalised_log

# Share of the weight below which a component is on its way out: its own metric would let L-BFGS leap to infinity.
LEAST_MASS = 1e-12
# Pairs of differences that L-BFGS keeps.
MEMORY = 8
# Armijo's constant, and how often a step is shortened before the plain step is taken instead.
SUFFICIENT, SHORTENINGS = 1e-4, 2


@dataclass(frozen=True)
class Settled:
    """A state at rest at its temperature, with the sums of its last pass.

    ``residual`` is the preconditioned squared gradient per unit weight: what one more plain step would gain in F.
    """

    state: State
    stats: Stats
    passes: int
    residual: float
    converged: bool

    @property
    def free_energy(self) -> float:
        """F = β J."""
        return -self.stats.log_partition

    def responsibilities(self, items: Items) -> tuple[Array, Pairs]:
        """ω_i p_ij (k, block) and the distances of a block."""
        resp, pairs, _ = soft(items, self.state)
        return resp, pairs


def soft_pass(engine: Engine, distortion: Distortion, state: State) -> Stats:
    """One pass: Gibbs responsibilities at ``state`` and the sums they make."""
    stats: Stats = engine.run(distortion, Gibbs(state)).total
    return stats


class _Gradient:
    """Gradient of F at a state, and the metric in which the plain step is the steepest descent."""

    def __init__(self, distortion: Curved, state: State, stats: Stats) -> None:
        least = LEAST_MASS * stats.weight
        mass = np.maximum(stats.mass, least)
        slope = state.beta * distortion.slope(state, stats)
        # dF/d log α_j = Σ ω α_j − mass_j
        mass_slope = stats.weight * np.exp(state.log_mass) - stats.mass
        self.flat = np.concatenate([slope.ravel(), mass_slope])
        stiffness = 2 * state.beta * np.maximum(distortion.curvature(state, stats), least)
        self.metric = np.concatenate([np.broadcast_to(stiffness, slope.shape).ravel(), mass])

    @property
    def size(self) -> float:
        return float(np.dot(self.flat, self.flat / self.metric))


class _Memory:
    """The two-loop recursion of L-BFGS."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)

    def add(self, move: Array, change: Array) -> None:
        curvature = float(np.dot(move, change))
        # The largest entry stands for the norm, whose squares overflow at β = 1e300.
        if curvature > 1e-12 * float(np.linalg.norm(move) * np.abs(change).max()):
            self._pairs.append((move, change, 1 / curvature))

    def direction(self, gradient: _Gradient) -> Array:
        step = -gradient.flat
        kept = []
        for move, change, inverse in reversed(self._pairs):
            kept.append(inverse * float(np.dot(move, step)))
            step = step - kept[-1] * change
        step = step / gradient.metric
        for (move, change, inverse), weight in zip(self._pairs, reversed(kept), strict=True):
            step = step + (weight - inverse * float(np.dot(change, step))) * move
        return step


def _moved(distortion: Curved, state: State, step: Array) -> State:
    shape = state.centers.shape
    centers = distortion.retract(state.centers + step[: state.centers.size].reshape(shape))
    log_mass = state.log_mass + step[state.centers.size :]
    return state.set(centers=centers, log_mass=log_mass - np.logaddexp.reduce(log_mass))


def plain_step(distortion: Distortion, state: State, stats: Stats) -> State:
    """The paper's alternation: masses and centres that are best at fixed responsibilities."""
    mass = np.maximum(stats.mass, np.finfo(float).tiny)
    return state.set(centers=distortion.center(stats.sums, mass), log_mass=normalised_log(mass))


def settle(engine: Engine, distortion: Curved, state: State, *, tol: float, max_passes: int) -> Settled:
    """Minimise F over centres and masses at the state's temperature; F never rises.

    Parameters
    ----------
    tol : float
        Stop when a plain step would gain less than ``tol`` per unit weight.
    max_passes : int
        Bound on the passes over the data.
    """
    stats = soft_pass(engine, distortion, state)
    memory, passes, exhausted = _Memory(), 1, False
    gradient = _Gradient(distortion, state, stats)
    while gradient.size > tol * stats.weight and passes < max_passes:
        step = memory.direction(gradient)
        slope = float(np.dot(gradient.flat, step))
        length, accepted = 1.0, False
        for _ in range(SHORTENINGS + 1 if slope < 0 else 0):
            trial = _moved(distortion, state, length * step)
            trial_stats = soft_pass(engine, distortion, trial)
            passes += 1
            accepted = -trial_stats.log_partition <= -stats.log_partition + SUFFICIENT * length * slope
            if accepted:
                break
            length /= 4
        if not accepted:
            memory = _Memory()
            trial = plain_step(distortion, state, stats)
            trial_stats = soft_pass(engine, distortion, trial)
            passes += 1
            exhausted = trial_stats.log_partition <= stats.log_partition
            if exhausted:
                break  # a plain step lowers F wherever F is not at rest: what is left is rounding
        trial_gradient = _Gradient(distortion, trial, trial_stats)
        if accepted:
            memory.add(length * step, trial_gradient.flat - gradient.flat)
        state, stats, gradient = trial, trial_stats, trial_gradient
    residual = gradient.size / stats.weight
    return Settled(state, stats, passes, residual, residual <= tol or exhausted)
