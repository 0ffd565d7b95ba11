"""The two other ways that the paper names to bound the sizes: a penalty, and SLSQP. For experiments only.

Both minimise the paper's free energy over the probabilities p of shape (n, k), with the centres at the weighted means,

    F(p) = Σ_ij p_ij (‖x_i − y_j(p)‖² + log(p_ij)/β),    ∂F/∂p_ij = ‖x_i − y_j‖² + (log(p_ij) + 1)/β,

at growing β, and give each item to its most probable component at the end, which may break the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, minimize
from scipy.special import softmax

from .._common.typing import Array, Labels

# β in units of one over the mean squared distance to the mean. The first splits nothing; at the last p is all but binary.
BETAS = tuple(0.5 * 4.0**step for step in range(7))
# Weight of the penalty at β = 1, in units of that distance per item too many, squared; it grows with β.
PENALTY = 0.1
# How far each starts from uniform p, in logits: at uniform p the gradient of every split vanishes. Both answers hang on it. Tried on the
# seven times, for the penalty: starts 0.01 and 0.1 with weights 0.01, 0.1, 1, and 0.5 with 0.1. For SLSQP: 0.5, and at T2 only 0.01, at its
# default tolerance; 0.01, 0.1 and 0.5 at a tighter one. These exceeded the bound least in sum.
PENALTY_START, SLSQP_START = 0.01, 0.5
SETTINGS = f"{BETAS} {PENALTY} {PENALTY_START} {SLSQP_START}"
# Log 0 is kept away.
_LEAST = 1e-12


@dataclass(frozen=True)
class Energy:
    """F and its gradient, in units of the mean squared distance to the mean of X."""

    X: Array
    n_components: int

    @property
    def unit(self) -> float:
        return float(np.square(self.X - self.X.mean(axis=0)).sum(axis=1).mean())

    def start(self, size: float) -> Array:
        """Nearly uniform logits of shape (n, k), always the same."""
        return size * np.random.default_rng(0).normal(size=(len(self.X), self.n_components))

    def __call__(self, p: Array, beta: float) -> tuple[float, Array]:
        p = np.maximum(p, _LEAST)
        Y = p.T @ self.X / p.sum(axis=0)[:, None]
        d = np.square(self.X[:, None, :] - Y[None]).sum(axis=2) / self.unit
        return float((p * (d + np.log(p) / beta)).sum()), d + (np.log(p) + 1) / beta


def penalty_method(X: Array, n_components: int, capacity: float) -> Labels:
    """F + ρ Σ_j max(0, Σ_i p_ij − capacity)² over the logits of p by L-BFGS."""
    energy = Energy(X, n_components)
    logits = energy.start(PENALTY_START)

    def penalised(flat: Array, beta: float) -> tuple[float, Array]:
        p = softmax(flat.reshape(logits.shape), axis=1)
        value, slope = energy(p, beta)
        excess = np.maximum(p.sum(axis=0) - capacity, 0)
        slope = slope + 2 * PENALTY * beta * excess
        return value + PENALTY * beta * float(excess @ excess), (p * (slope - (p * slope).sum(axis=1, keepdims=True))).ravel()

    for beta in BETAS:
        logits = minimize(penalised, logits.ravel(), (beta,), "L-BFGS-B", jac=True).x.reshape(logits.shape)
    return np.asarray(logits.argmax(axis=1), dtype=np.intp)


def slsqp(X: Array, n_components: int, capacity: float) -> Labels:
    """F over p itself, with rows that sum to one and columns within the capacity, by sequential quadratic programming."""
    energy = Energy(X, n_components)
    p = softmax(energy.start(SLSQP_START), axis=1)
    constraints = list(_constraints(len(X), n_components, capacity))

    def smooth(flat: Array, beta: float) -> tuple[float, Array]:
        value, slope = energy(flat.reshape(p.shape), beta)
        return value, slope.ravel()

    for beta in BETAS:
        found = minimize(smooth, p.ravel(), (beta,), "SLSQP", jac=True, bounds=Bounds(_LEAST, 1.0), constraints=constraints)
        p = np.clip(found.x, _LEAST, 1.0).reshape(p.shape)
    return np.asarray(p.argmax(axis=1), dtype=np.intp)


def _constraints(n: int, k: int, capacity: float) -> Iterator[LinearConstraint]:
    """Σ_j p_ij = 1 and Σ_i p_ij ≤ capacity, for p in one row."""
    yield LinearConstraint(np.kron(np.eye(n), np.ones(k)), 1.0, 1.0)
    yield LinearConstraint(np.kron(np.ones(n), np.eye(k)), -np.inf, capacity)
