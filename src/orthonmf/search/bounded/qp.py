r"""The quadratic programme of the barrier flow, solved by its structure.

At a state (p, y) the flow needs the velocities v (n, k) of the responsibilities and u (k, d) of the centres
that solve

    min  Σ v_ij²/m_ij + Σ ‖u_j‖² + q δ²                      m = 1 in the paper
    s.t. ⟨g, v⟩ + ⟨h, u⟩ − δ ≤ −γV                           descent, g = ∂V/∂p, h = ∂V/∂y; η ≥ 0
         Σ_j v_ij = 0                                        rows of p go on summing to one; ν_i
         −λ(Σ_i p_ij − l_j) ≤ Σ_i v_ij ≤ λ(c_j − Σ_i p_ij)   ψ̇ ≥ −λψ for margins of counts; κ_j, signed
         (1 − 2p_ij) v_ij ≥ −μ p_ij(1 − p_ij)                ξ̇ ≥ −μξ for the box: a bound on each v_ij

with the multipliers named last.

A library solver sees n k + k d + 1 variables. But for given (η, κ) the Lagrangian falls apart into items,

    v_i = argmin Σ_j (v_j + ½ m_ij(η g_ij + κ_j))²/m_ij  over  Σ_j v_j = 0, v ≥ lower_i,
    u_j = −½ η h_j,   δ = η/(2q),

so only the concave dual in the k + 1 unknowns z = (η, κ) is left. With s(z) = (⟨g, v⟩ + ⟨h, u⟩ − δ, Σ_i
v_ij), its gradient is s − upper where z > 0, s − lower where z < 0, and at z = 0 the part of s outside
[lower, upper]. It is piecewise quadratic: a semismooth Newton step that starts from the right piece is
exact, so a few steps of O(n k) do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._common.typing import Array
from ...exceptions import InvalidInputError

__all__ = ["VelocityProblem", "VelocitySolution", "box_bound", "project_items", "solve_velocities"]

# Eigenvalue of the Newton matrix, scaled to a unit diagonal, below which a direction is flat: rounding leaves
# 1e-15. A diagonal this far below that of a free column counts as none.
_FLAT, _VANISHING = 1e-13, 1e-20
# Share of the largest gradient below which one along a flat direction is rounding.
_NOISE = 1e-6
# Constraints met to this share of the tolerance are left alone.
_MENDED = 0.01
# Share of the predicted rise that a step must deliver (Armijo), and the relative rounding that is forgiven.
_ARMIJO, _SUM_ROUNDING = 1e-4, 1e-14
# Two units in the last place.
_ULP = 2.0**-51
# A search along a ray ends where this share of the slope is left, or after so many trials.
_SLOPE_LEFT, _MAX_TRIALS = 0.1, 60


@dataclass(frozen=True)
class VelocityProblem:
    """One instance of the quadratic programme.

    Parameters
    ----------
    resp_gradient : ndarray of shape (n_items, n_components)
        g = ∂V/∂p.
    center_gradient : ndarray of shape (n_components, n_dims)
        h = ∂V/∂y.
    decrease : float
        γV ≥ 0, the rate of descent asked for.
    count_lower, count_upper : ndarray of shape (n_components,)
        Bounds on Σ_i v_ij: −λ(Σ_i p_ij − l_j) ≤ 0 and λ(c_j − Σ_i p_ij) ≥ 0, infinite where there is none.
    lower : ndarray of shape (n_items, n_components)
        Bounds v_ij ≥ lower_ij ≤ 0, −∞ where there is none; see ``box_bound``.
    mobility : ndarray of shape (n_items, n_components)
        m > 0; ones for the paper's programme.
    slack_weight : float
        q > 0.
    count_unit : float
        Rate of a count relative to which, besides the speeds of the items, a defect in the counts is judged.
    """

    resp_gradient: Array
    center_gradient: Array
    decrease: float
    count_lower: Array
    count_upper: Array
    lower: Array
    mobility: Array
    slack_weight: float
    count_unit: float = 0.0

    def __post_init__(self) -> None:
        n, k = self.resp_gradient.shape
        shapes = {"lower": (n, k), "mobility": (n, k), "count_lower": (k,), "count_upper": (k,)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidInputError(f"{name} has shape {getattr(self, name).shape}, expected {shape}.")
        if len(self.center_gradient) != k:
            raise InvalidInputError(f"center_gradient has {len(self.center_gradient)} rows, expected {k}.")
        bounds = ("count_lower", "count_upper", "lower")
        for name in set(vars(self)).difference(bounds):
            if not np.isfinite(getattr(self, name)).all():
                raise InvalidInputError(f"{name} of a velocity problem must be finite.")
        for name, least in (("decrease", self.decrease), ("count_unit", self.count_unit)):
            if least < 0:
                raise InvalidInputError(f"{name} must not be negative, got {least}.")
        for name, least in (("slack_weight", self.slack_weight), ("mobility", self.mobility.min())):
            if least <= 0:
                raise InvalidInputError(f"{name} must be positive, got {least}.")
        # NaN fails every comparison, so it is refused here too.
        if not ((self.lower <= 0).all() and (self.count_lower <= 0).all() and (self.count_upper >= 0).all()):
            raise InvalidInputError("Zero velocity must be feasible: expected lower <= 0 <= upper, no NaN.")


@dataclass(frozen=True)
class VelocitySolution:
    """Velocities, multipliers and the evidence that they are optimal.

    Attributes
    ----------
    resp_velocity : ndarray of shape (n_items, n_components)
    center_velocity : ndarray of shape (n_components, n_dims)
    slack : float
        δ = η/(2q).
    descent_multiplier : float
        η.
    count_multipliers : ndarray of shape (n_components,)
        κ: positive where an upper bound on the count holds the flow back, negative where a lower one does.
    objective : float
    kkt_residual : float
        Largest violation of feasibility or complementarity of the k + 1 coupling constraints, each relative
        to the size of the terms that it sums. Stationarity, row sums and bounds hold by construction, to
        rounding.
    n_iter : int
    solved : bool
        Whether ``kkt_residual`` is at most the tolerance, or no multipliers in floating point have a smaller
        one.
    """

    resp_velocity: Array
    center_velocity: Array
    slack: float
    descent_multiplier: float
    count_multipliers: Array
    objective: float
    kkt_residual: float
    n_iter: int
    solved: bool


def box_bound(resp: Array, box_rate: float) -> Array:
    """Lower bounds on v_ij that ξ̇ ≥ −μξ, ξ = p(1 − p), amounts to.

    For p < ½ it reads v ≥ −μ f(p) with f(p) = p(1 − p)/(1 − 2p), for p > ½ v ≤ μ f(1 − p). The latter
    follows from the others of the row, since f is convex and f(0) = 0:

        v_j = −Σ_{l≠j} v_l ≤ μ Σ_{l≠j} f(p_l) ≤ μ f(Σ_{l≠j} p_l) = μ f(1 − p_j).

    Parameters
    ----------
    resp : ndarray of shape (n_items, n_components)
        Rows that sum to one.
    box_rate : float
        μ.

    Returns
    -------
    ndarray of shape (n_items, n_components)
        −∞ where p ≥ ½.
    """
    slope = 1.0 - 2.0 * resp
    bounded = slope > 0
    return np.where(bounded, -box_rate * resp * (1.0 - resp) / np.where(bounded, slope, 1.0), -np.inf)


def project_items(target: Array, lower: Array, mobility: Array) -> tuple[Array, Array]:
    """Nearest point v to each column of ``target``, in Σ_j v_j²/m_j, with sum zero and v ≥ lower.

    The answer is max(target − m t_i, lower), where Σ_j max(·) = 0 is a convex piecewise linear equation in
    t_i. Solve it on the free entries and fix those that fall below their bound: that raises the sum, so t_i
    can only grow and they stay fixed (Michelot). Exact, in at most k rounds.

    Parameters
    ----------
    target, lower, mobility : ndarray of shape (n_components, n_items)
        Items along the fast axis; lower ≤ 0, mobility m > 0.

    Returns
    -------
    nearest : ndarray of shape (n_components, n_items)
    free : ndarray of shape (n_components, n_items)
        The mobility of the entries that no bound holds, 0 at the others.
    """
    values, free = target, mobility
    while True:
        total = free.sum(axis=0)
        moved = values - free * (values.sum(axis=0) / np.where(total > 0, total, 1.0))
        below = moved < lower
        if not below.any():
            # Once more, now that all is small: the first differences were of the size of the target.
            return moved - free * (moved.sum(axis=0) / np.where(total > 0, total, 1.0)), free
        values = np.where(below, lower, moved)
        free = np.where(below, 0.0, free)


def solve_velocities(problem: VelocityProblem, *, start: Array | None = None, tol: float = 1e-10, max_iter: int = 100) -> VelocitySolution:
    """Solve the programme by semismooth Newton steps on its dual, within an orthant of the multipliers.

    Parameters
    ----------
    problem : VelocityProblem
    start : ndarray of shape (n_components + 1,), optional
        Multipliers (η, κ) of a neighbouring problem.
    tol : float
        Largest ``kkt_residual`` that counts as solved.
    max_iter : int

    Returns
    -------
    VelocitySolution
        Check ``solved``: an unsolved programme comes back with its residual, never disguised as a zero
        velocity.
    """
    dual = _Dual(problem)
    piece = dual.at(dual.admissible(start))
    n_iter, solved = 0, piece.residual <= tol
    while not solved and n_iter < max_iter:
        matrix = dual.newton_matrix(piece.free)
        # No multipliers in floating point do better: their own rounding moves the constraints by this much.
        if _within(piece, _SUM_ROUNDING * (np.abs(matrix) @ np.abs(piece.z))):
            solved = True
            break
        before, piece = piece, _improve(dual, piece, _steps(dual, matrix, piece, tol))
        n_iter, solved = n_iter + 1, piece.residual <= tol
        # Stuck at a kink: there an entry, free or not, hangs on the last place of η g + κ.
        if piece.residual >= before.residual:
            solved |= _within(piece, _ULP * dual.peak * dual.longest(piece.z))
    if not solved and start is not None:
        return solve_velocities(problem, tol=tol, max_iter=max_iter)
    return _solution(problem, piece, n_iter, solved)


def _within(piece: _Piece, noise: Array) -> bool:
    return bool((np.abs(piece.gradient) <= noise).all())


class _Piece(NamedTuple):
    """The dual at z = (η, κ): velocities and free mobilities (k, n), s(z), its gradient, residual and value.

    ``terms`` is the size of what each coupling constraint sums, ``rounding`` what is lost in the value.
    """

    z: Array
    velocity: Array
    free: Array
    sums: Array
    gradient: Array
    terms: Array
    residual: float
    value: float
    rounding: float


class _Dual:
    """The concave dual of a problem, its arrays turned so that items run along the fast axis."""

    def __init__(self, problem: VelocityProblem) -> None:
        slope, h = np.ascontiguousarray(problem.resp_gradient.T), problem.center_gradient
        self.mobility = np.ascontiguousarray(problem.mobility.T)
        self.box = np.ascontiguousarray(problem.lower.T)
        # Of an item only differences of η g + κ count. Taken to its most mobile entry, they keep the
        # accuracy of the others.
        self.anchor = self.mobility.argmax(axis=0)
        self.slope = slope - np.take_along_axis(slope, self.anchor[None], axis=0)
        # Bounds on s(z): (−∞, −γV) for the descent, then those of the counts.
        self.lower = np.concatenate([[-np.inf], problem.count_lower])
        self.upper = np.concatenate([[-problem.decrease], problem.count_upper])
        # −∂/∂η of ⟨h, u⟩ − δ at u = −½ η h, δ = η/(2q)
        self.curvature = 0.5 * (_dot(h, h) + 1.0 / problem.slack_weight)
        self.count_unit = problem.count_unit
        self.steepest = float(np.abs(self.slope).max())
        self.peak = np.concatenate([[self.steepest], self.mobility.max(axis=1)])
        self.stiffness = np.concatenate([[self.curvature], self.mobility.sum(axis=1)])

    def admissible(self, start: Array | None) -> Array:
        """The starting multipliers, without a sign that an absent lower bound forbids."""
        if start is None:
            return np.zeros(len(self.upper))
        return np.where((start < 0) & np.isinf(self.lower), 0.0, start)

    def longest(self, z: Array) -> float:
        """Largest η g + κ there can be: no piece begins further off."""
        return float(z[0] * self.steepest + np.abs(z[1:]).max())

    def at(self, z: Array) -> _Piece:
        """Solve the items at z; the dual is Σ v²/m + ‖u‖² + qδ² + zᵀ(s − bound), its gradient s − bound."""
        eta, kappa = z[0], z[1:]
        target = -0.5 * self.mobility * (eta * self.slope + (kappa[:, None] - kappa[self.anchor]))
        velocity, free = project_items(target, self.box, self.mobility)
        sums = np.concatenate([[_dot(self.slope, velocity) - self.curvature * eta], velocity.sum(axis=1)])
        within = np.minimum(np.maximum(sums, self.lower), self.upper)
        gradient = sums - np.where(z > 0, self.upper, np.where(z < 0, self.lower, within))
        terms, defect = self._terms(np.abs(velocity)), np.abs(gradient)
        residual = np.max(np.divide(defect, terms, out=np.zeros_like(defect), where=defect > 0))
        control = _dot(velocity, velocity / self.mobility) + 0.5 * self.curvature * eta**2
        value, size = float(control + z @ gradient), float(control + np.abs(z) @ terms)
        return _Piece(z, velocity, free, sums, gradient, terms, float(residual), value, _SUM_ROUNDING * size)

    def _terms(self, speed: Array) -> Array:
        """Size of what each coupling constraint sums: γV + Σ|g v|; for a count, the speeds of all items."""
        terms = np.full(len(self.upper), self.count_unit + speed.max(axis=0).sum())
        terms[0] = _dot(np.abs(self.slope), speed) - self.upper[0]
        return terms

    def newton_matrix(self, free: Array) -> Array:
        """M = −∂s/∂z where free entries follow −½ m(η g + κ), less the mean that keeps the sum of their item.

        With f the mobility of free entries, F_i = Σ_j f_ij, and g̃ = g − Σ_j f g/F the gradients less the
        same mean

            2M = [ Σ f g̃² + ‖h‖² + 1/q    Σ_i f_ij g̃_ij                       ]
                 [ (same)                 diag(Σ_i f_ij) − Σ_i f_i f_iᵀ/F_i   ]

        where the last block is the Laplacian of the graph that links components through items.
        """
        total = free.sum(axis=0)
        share = free / np.where(total > 0, total, 1.0)
        centred = self.slope - (share * self.slope).sum(axis=0)
        dragged = free * centred
        links = share @ free.T
        np.fill_diagonal(links, 0.0)
        matrix = np.empty((len(free) + 1, len(free) + 1))
        matrix[0, 0] = _dot(dragged, centred) + 2.0 * self.curvature
        matrix[0, 1:] = matrix[1:, 0] = dragged.sum(axis=1)
        matrix[1:, 1:] = np.diag(links.sum(axis=1)) - links
        return 0.5 * matrix

    def best_gauge(self, z: Array) -> Array:
        """Add the constant to κ that the dual likes best: ν absorbs it, so only zᵀbound changes."""
        shifted = z[1:] - np.append(0.0, z[1:])[:, None]
        with np.errstate(invalid="ignore"):
            bound = np.where(shifted > 0, self.upper[1:], self.lower[1:])
            support = np.where(shifted != 0, shifted * bound, 0.0).sum(axis=1)
        return np.concatenate([z[:1], shifted[np.argmin(support)]])


def _dot(a: Array, b: Array) -> float:
    # Not BLAS: its threads cost more than these sums.
    return float(np.einsum("ij,ij->", a, b))


class _Steps(NamedTuple):
    """Where to go from a piece: a Newton step, and the gradient where the dual has no curvature."""

    newton: Array
    flat: Array


def _steps(dual: _Dual, matrix: Array, piece: _Piece, tol: float) -> _Steps:
    """Newton step on the unknowns off zero or pushed off it, towards the constraints not yet met.

    Flat are shifts of the κ_j of components that no free item links to the others: there the dual is a
    straight line up to the next piece. No piece begins further off than the largest |η g + κ|, so no step
    is longer.
    """
    z = piece.z
    gradient = np.where(np.abs(piece.gradient) > _MENDED * tol * piece.terms, piece.gradient, 0.0)
    bends = np.diag(matrix) > _VANISHING * dual.stiffness
    scale = np.sqrt(np.where(bends, np.diag(matrix), dual.stiffness))
    moving = ((z != 0) | (gradient != 0)) & bends
    while True:
        steps = _solve(matrix, gradient, scale, moving)
        # At zero an unknown moves the way it is pushed, or not at all.
        wrong = (z == 0) & (steps.newton * gradient < 0)
        if not wrong.any():
            break
        moving &= ~wrong
    flat = np.where(bends, steps.flat, gradient / dual.stiffness)
    flat = np.where((z == 0) & (flat * gradient <= 0), 0.0, flat)
    longest = dual.longest(z)
    length, reach = np.abs(steps.newton[1:]).max(), np.abs(flat).max()
    shorten, lengthen = (min(1.0, longest / length) if length else 1.0), (longest / reach if reach else 0.0)
    return _Steps(steps.newton * shorten, flat * lengthen)


def _solve(matrix: Array, gradient: Array, scale: Array, moving: NDArray[np.bool_]) -> _Steps:
    """Newton step and flat part of the gradient on the moving unknowns, in unknowns of unit curvature."""
    curvature, basis = np.linalg.eigh((matrix / np.outer(scale, scale))[np.ix_(moving, moving)])
    slope = basis.T @ (gradient / scale)[moving]
    is_flat = curvature < _FLAT
    rising = is_flat & (np.abs(slope) > _NOISE * np.abs(slope).max(initial=0.0))
    newton, flat = np.zeros(len(scale)), np.zeros(len(scale))
    newton[moving] = basis @ np.where(is_flat, 0.0, slope / np.where(is_flat, 1.0, curvature))
    flat[moving] = basis @ np.where(rising, slope, 0.0)
    newton, flat[1:], flat[0] = newton / scale, flat[1:] / scale[1:], 0.0
    if moving.all():  # a common shift of κ is for ``best_gauge``
        common = flat[1:].mean()
        flat[1:] = np.where(np.abs(flat[1:] - common) > _NOISE * abs(common), flat[1:] - common, 0.0)
    return _Steps(newton, flat)


def _improve(dual: _Dual, piece: _Piece, steps: _Steps) -> _Piece:
    """The flat step if it promises more and delivers; else the Newton step, and then the flat one."""
    if piece.gradient @ steps.newton < piece.gradient @ steps.flat:
        landed = _follow(dual, piece, steps.flat)
        if landed.value > piece.value + piece.rounding:
            return landed
    landed = _leap(dual, piece, steps.newton)
    # On another piece the flat direction may be bent: following it could undo the step.
    same = bool(((landed.free > 0) == (piece.free > 0)).all())
    return _follow(dual, landed, steps.flat) if same else landed


def _leap(dual: _Dual, piece: _Piece, step: Array) -> _Piece:
    """A whole step, unknowns about to change their sign stopped at zero, or what of it raises the dual.

    A rise too small for the rounding of the value shows in the slope, which must be nearly spent.
    """
    aim = piece.z + step
    candidate = dual.at(dual.best_gauge(np.where(aim * piece.z < 0, 0.0, aim)))
    change = candidate.z - piece.z
    promised, left = piece.gradient @ change, candidate.gradient @ change
    if candidate.value >= piece.value + _ARMIJO * promised - piece.rounding or abs(left) <= _SLOPE_LEFT * promised:
        return candidate
    return _follow(dual, piece, step)


def _follow(dual: _Dual, piece: _Piece, ray: Array) -> _Piece:
    """Follow a ray until the slope of the dual along it is nearly spent or an unknown comes to zero.

    The slope falls along the ray and is piecewise linear: its zero is found by the Illinois method.
    """
    z = piece.z
    side = np.where(np.where(z != 0, z, ray) > 0, dual.upper, dual.lower)
    bound = np.where(ray != 0, side, 0.0)
    ends = np.full(len(z), np.inf)
    np.divide(-z, ray, out=ends, where=z * ray < 0)
    enough = _SLOPE_LEFT * float((piece.sums - bound) @ ray)
    if not enough > 0:
        return piece
    low, low_slope, high = 0.0, enough / _SLOPE_LEFT, min(1.0, float(ends.min()))
    trial = dual.at(np.where(ends <= high, 0.0, z + high * ray))
    high_slope = slope = float((trial.sums - bound) @ ray)
    previous = 0.0
    for _ in range(_MAX_TRIALS if slope < -enough else 0):
        middle = high - high_slope * (high - low) / (high_slope - low_slope)
        trial = dual.at(z + middle * ray)
        slope = float((trial.sums - bound) @ ray)
        if abs(slope) <= enough or not low < middle < high:
            break
        if slope > 0:
            low, low_slope, high_slope = middle, slope, high_slope * (0.5 if previous > 0 else 1.0)
        else:
            high, high_slope, low_slope = middle, slope, low_slope * (0.5 if previous < 0 else 1.0)
        previous = slope
    return dual.at(dual.best_gauge(trial.z))


def _solution(problem: VelocityProblem, piece: _Piece, n_iter: int, solved: bool) -> VelocitySolution:
    eta, q = float(piece.z[0]), problem.slack_weight
    resp_velocity = np.ascontiguousarray(piece.velocity.T)
    center_velocity = -0.5 * eta * problem.center_gradient
    slack = eta / (2.0 * q)
    control = _dot(resp_velocity, resp_velocity / problem.mobility) + _dot(center_velocity, center_velocity)
    return VelocitySolution(
        resp_velocity=resp_velocity,
        center_velocity=center_velocity,
        slack=slack,
        descent_multiplier=eta,
        count_multipliers=piece.z[1:],
        objective=control + q * slack**2,
        kkt_residual=piece.residual,
        n_iter=n_iter,
        solved=solved,
    )
