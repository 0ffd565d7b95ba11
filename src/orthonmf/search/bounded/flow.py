r"""The barrier flow: the paper's Algorithm 1, deterministic annealing under capacities as a controlled flow.

With costs ω_i d_ij and entropy weights τ_i = max(ω_i, floor · mean ω), so that items of no weight do no harm,
the paper's free energy for uniform masses, divided by Ω = Σ ω_i, is

    F = (1/Ω) Σ_ij ω_i p_ij d_ij + (1/(βΩ)) Σ_ij τ_i p_ij log p_ij.

The entropy of a row is at most log k. So V = F + (log k/β) Σ τ_i/Ω, for τ = ω the paper's F + log k/β, is

    V = (1/Ω) Σ_ij ω_i p_ij d_ij + (1/(βΩ)) Σ_ij τ_i p_ij log(k p_ij) ≥ 0,

a cost and a relative entropy, neither negative. At each state the quadratic programme of ``qp`` gives
velocities along which V falls, rows of p keep their sum and counts their capacity; p and the centres follow
by Euler steps. A step is as long as Malitsky and Mishchenko say, 1/(2L) with L the local Lipschitz constant
of the velocities, but stays inside the box, is at most 1/λ (then ψ(t + dt) ≥ (1 − λ dt) ψ ≥ 0), and is
halved until V does not rise. At rest ω_i d_ij + (τ_i/β) log p_ij + price_j + ν_i = 0 with price_j = Ω κ_j/η:
the dual solution p_ij ∝ exp(−β(ω_i d_ij + price_j)/τ_i).

The paper leaves two units open. Its objective Σ v² + Σ ‖u‖² adds probabilities to lengths; a unit of length
ℓ with ℓ² = center_rate · k τ̄/(2βΩ) lets centres and responsibilities move at comparable rates, and q in
units of βΩ/(τ̄V) makes 1/γ the time in which they relax. And Σ v² is stiff: an entry relaxes to its p* in a
time ∝ p*, so Euler steps would have to be as short as the least p*. With ``metric="fisher"`` the objective
is Σ (τ_i/τ̄) v_ij²/p_ij + Σ k mass_j ‖u_j‖², the curvature of V itself; fixed points, descent and barriers
stay, and all entries relax alike. ``metric="euclidean"`` is the paper's. (30 items, 3 fixed centres, β = 4
over the mean cost: p is within 1e-9 of the dual solution after 40 steps, against 2e-5 after 5000.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from ..._common.typing import Array
from ..._common.validation import check_choice, check_count, check_positive
from ...distortion.base import FlowCost, between
from ...exceptions import InfeasibleCapacityError, InvalidInputError
from ..status import Status
from .options import LEAST_GROWTH, Options, option
from .qp import VelocityProblem, VelocitySolution, box_bound, solve_velocities

__all__ = [
    "FlowParameters",
    "FlowRecord",
    "FlowResult",
    "barrier_flow",
    "relax",
]

# Bounds on p: the logarithm of the smallest is finite, the largest is the last float below 1.
_SMALLEST, _LARGEST = 1e-300, 1.0 - 2.0**-53
# Share of the way to the boundary of the box that one step may go.
_INSIDE = 0.99
# Relative rounding of V, a sum of nonnegative terms, that does not count as a rise.
_ROUNDING = 1e-15
_MAX_HALVINGS = 60
# Counts are steered to 1e-12 of n, the tolerance of the programme being 1e-10, and held to 1e-9 of n.
_COUNT_UNIT, _EXCESS = 1e-2, 1e-9
# Arrays of n × k numbers alive at the peak, those of the quadratic programme included (measured: 25).
_LIVE_ARRAYS = 26


@dataclass(frozen=True)
class FlowParameters(Options):
    """Constants of the flow, all positive.

    Parameters
    ----------
    descent_rate : float
        γ of the paper: the flow asks for dV/dt ≤ −γV. It sets the unit of time.
    capacity_rate : float
        λ: a margin ψ below a capacity shrinks no faster than exp(−λt). Steps are at most 1/λ.
    box_rate : float
        μ: p(1 − p) shrinks no faster than exp(−μt).
    slack_weight : float
        q, the weight of the slack in the descent, in units of βΩ/(τ̄V).
    beta_start, beta_stop, growth : float
        β_0, β_max and the factor α > 1.001 between temperatures, with β in units of one over the mean distortion
        about the best single centre. Up to 0.5 Euclidean components coincide, as β_cr = 1/(2 λ_max(Cov)).
    step_size : float
        dt of the first step at each temperature.
    max_steps : int
        Steps at each temperature.
    tol : float
        KKT residual at which a temperature has converged; see `FlowResult`.
    metric : {"fisher", "euclidean"}
        Norm of the velocities in the quadratic programme; the paper's is "euclidean".
    center_rate : float
        Speed of the centres relative to the responsibilities; sets the unit of length.
    perturbation : float
        How far coincident centres are moved apart at the start of a temperature, in units of β^(−1/2).
    entropy_floor : float
        Least entropy weight of an item, relative to the mean item weight.
    max_bytes : int
        Memory above which the flow refuses to start.
    """

    descent_rate: float = option(1.0, check_positive)
    capacity_rate: float = option(2.0, check_positive)
    box_rate: float = option(2.0, check_positive)
    slack_weight: float = option(3.0, check_positive)
    beta_start: float = option(0.5, check_positive)
    beta_stop: float = option(1e6, check_positive)
    growth: float = option(2.0, check_positive, above=LEAST_GROWTH)
    step_size: float = option(0.1, check_positive)
    max_steps: int = option(1000, check_count, least=1)
    tol: float = option(1e-4, check_positive)
    metric: Literal["fisher", "euclidean"] = option("fisher", check_choice, choices=("fisher", "euclidean"))
    center_rate: float = option(4.0, check_positive)
    perturbation: float = option(1e-2, check_positive)
    entropy_floor: float = option(1e-3, check_positive)
    max_bytes: int = option(2 * 2**30, check_count, least=1)


@dataclass(frozen=True)
class FlowRecord:
    """One temperature: β, V at the start and after every step, and where the flow stood at the end."""

    beta: float
    lyapunov: Array
    distortion: float
    kkt_residual: float
    converged: bool


@dataclass(frozen=True)
class FlowResult:
    """Where the flow ended.

    Attributes
    ----------
    resp : ndarray of shape (n_items, n_components)
        Entries in (0, 1), rows that sum to one, column sums within the bounds.
    centers : ndarray of shape (n_components, n_dims)
    beta : float
        Of the last temperature, as is all below; in the units of the cost.
    prices : ndarray of shape (n_components,)
        Multipliers of the bounds on the counts, Ω κ_j/η: positive for a capacity, negative for a lower bound.
    kkt_residual : float
        Largest of Σ_ij p_ij |∂V/∂p_ij + price_j/Ω + ν_i|, of the gradient in the centres times the thermal
        length, and of price times margin, in units of the temperature.
    converged : bool
        Whether ``kkt_residual`` is at most ``tol``.
    status : Status
        Why the flow ended.
    history : tuple of FlowRecord
        One for each temperature.
    """

    resp: Array
    centers: Array
    beta: float
    prices: Array
    kkt_residual: float
    converged: bool
    status: Status
    history: tuple[FlowRecord, ...]

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return sum(len(record.lyapunov) - 1 for record in self.history)

    @property
    def lyapunov(self) -> Array:
        """V along the whole trajectory; it falls within a temperature, not between two."""
        return np.concatenate([record.lyapunov for record in self.history])


def _nothing(*_: Any) -> None:
    """Neither ends a flow nor notes where it is."""


def barrier_flow(
    cost: FlowCost,
    capacity: Array,
    *,
    min_size: Array | None = None,
    parameters: FlowParameters | None = None,
    each: Callable[[FlowResult], None] = _nothing,
    check: Callable[[], None] = _nothing,
) -> FlowResult:
    """Anneal from coincident centres to a nearly hard assignment within the bounds: Algorithm 1.

    Parameters
    ----------
    cost : FlowCost
    capacity, min_size : ndarray of shape (n_components,)
        Bounds on the soft counts Σ_i p_ij; no lower ones by default.
    parameters : FlowParameters, optional
    each : callable, optional
        Called with the result at each temperature, when it has ended.
    check : callable, optional
        Called before each velocity problem; what it raises ends the flow.

    Returns
    -------
    FlowResult
    """
    parameters = FlowParameters() if parameters is None else parameters
    bounds = _Bounds.checked(len(cost.weights), min_size, capacity)
    _refuse_large(len(cost.weights), len(capacity), parameters.max_bytes)
    resp = np.tile(bounds.starting_row(len(cost.weights)), (len(cost.weights), 1))
    origin, directions = cost.spread(len(capacity))
    centers, pattern = np.tile(origin, (len(capacity), 1)), _pattern(len(capacity), directions)
    # Where all items are alike the distortion is zero, every β is as good, and nothing parts the centres.
    unit = cost.weights @ cost.cost(origin[None])[:, 0] / cost.weights.sum()
    history: tuple[FlowRecord, ...] = ()
    beta = parameters.beta_start
    while True:
        distance = parameters.perturbation * np.sqrt(unit / beta)
        centers = cost.place(centers + _nudge(centers, pattern, distance))
        scale = beta / unit if unit > 0 else beta
        result = _follow(_Landscape(cost, bounds, scale, parameters, check), resp, centers)
        each(result)
        resp, centers, history = result.resp, result.centers, history + result.history
        beta *= parameters.growth
        if beta > parameters.beta_stop:
            return replace(result, history=history)


def relax(
    cost: FlowCost,
    resp: Array,
    centers: Array,
    beta: float,
    capacity: Array,
    *,
    min_size: Array | None = None,
    parameters: FlowParameters | None = None,
) -> FlowResult:
    """Follow the flow at one temperature to a KKT point: the inner loop of Algorithm 1.

    Parameters
    ----------
    cost : FlowCost
    resp : ndarray of shape (n_items, n_components)
        Feasible start, every entry in (0, 1).
    centers : ndarray of shape (n_components, n_dims)
    beta : float
        Inverse temperature, in the units of the cost.
    capacity, min_size : ndarray of shape (n_components,)
    parameters : FlowParameters, optional

    Returns
    -------
    FlowResult
        With one record in its history.
    """
    parameters = FlowParameters() if parameters is None else parameters
    if not 0 < beta < np.inf:
        raise InvalidInputError(f"beta must be positive and finite, got {beta}.")
    bounds = _Bounds.checked(len(cost.weights), min_size, capacity)
    bounds.check(resp)
    return _follow(_Landscape(cost, bounds, beta, parameters), resp, centers)


def _follow(landscape: _Landscape, resp: Array, centers: Array) -> FlowResult:
    """Euler steps until the KKT residual is small, nothing is left to gain, or the steps are used up."""
    parameters = landscape.parameters
    state = landscape.solved(landscape.point(resp, centers), None)
    trace, length, previous = [state.point.lyapunov], parameters.step_size, 0.0
    status = Status.CONVERGED
    while not state.converged(parameters.tol):
        if not state.solution.solved:
            status = Status.FLOW_PROGRAM
            break
        if len(trace) > parameters.max_steps:
            status = Status.FLOW_STEPS
            break
        following, taken = _advance(landscape, state, length)
        if following is None:
            status = Status.FLOW_ROUNDING
            break
        # dt ← min(√(1 + dt/dt_previous) dt, 1/(2L))
        growth = np.sqrt(1.0 + taken / previous) if previous else np.inf
        length = min(growth * taken, 0.5 / landscape.lipschitz(state, following))
        state, previous = following, taken
        trace.append(state.point.lyapunov)
    return landscape.leave(state, np.array(trace), status)


def _advance(landscape: _Landscape, state: _State, length: float) -> tuple[_State | None, float]:
    """One Euler step of at most ``length``, halved until V does not rise and the next programme is solved.

    The barrier keeps the bounds on the counts, but for the accuracy of the programme: that is checked.
    """
    solution, (resp, centers, *_) = state.solution, state.point
    # p + dt v ≥ 0.01 p; as velocities of an item sum to zero, 1 − p keeps a hundredth too.
    decay = float(np.max(-solution.resp_velocity / resp))
    length = min(length, 1.0 / landscape.parameters.capacity_rate, _INSIDE / decay if decay > 0 else np.inf)
    for _ in range(_MAX_HALVINGS):
        moved = np.clip(resp + length * solution.resp_velocity, _SMALLEST, _LARGEST)
        shifted = centers + length * state.lengths * solution.center_velocity
        point = landscape.point(moved, landscape.cost.place(shifted))
        if landscape.bounds.hold(moved) and point.lyapunov <= state.point.lyapunov * (1.0 + _ROUNDING):
            following = landscape.solved(point, solution)
            if following.solution.solved:
                return following, length
        length *= 0.5
    return None, length


class _Point(NamedTuple):
    """A state and its height: p, centres, ω_i d_ij/Ω, log(k p), V."""

    resp: Array
    centers: Array
    cost: Array
    log_resp: Array
    lyapunov: float


class _State(NamedTuple):
    """A point, velocities there, the units of length of the centres, prices/Ω, and the KKT residual."""

    point: _Point
    solution: VelocitySolution
    mobility: Array
    lengths: Array
    prices: Array
    residual: float

    def converged(self, tol: float) -> bool:
        return self.solution.solved and self.residual <= tol


class _Landscape:
    """V at one temperature, its quadratic programme and its KKT conditions."""

    def __init__(
        self, cost: FlowCost, bounds: _Bounds, beta: float, parameters: FlowParameters, check: Callable[[], None] = _nothing
    ) -> None:
        self.cost, self.bounds, self.beta, self.parameters, self.check = cost, bounds, beta, parameters, check
        weights = cost.weights
        tau = np.maximum(weights, parameters.entropy_floor * weights.mean())
        self.share, self.temper = weights / weights.sum(), tau / (beta * weights.sum())

    def point(self, resp: Array, centers: Array) -> _Point:
        # V = Σ_ij p_ij (ω_i d_ij/Ω + τ_i/(βΩ) log(k p_ij))
        cost = self.share[:, None] * self.cost.cost(centers)
        log_resp = np.log(resp.shape[1] * resp)
        height = np.einsum("ij,ij->", resp, cost) + self.temper @ np.einsum("ij,ij->i", resp, log_resp)
        return _Point(resp, centers, cost, log_resp, max(float(height), 0.0))

    def solved(self, point: _Point, neighbour: VelocitySolution | None) -> _State:
        """Velocities at a point, starting from the multipliers of a neighbour. Energies are in units of V."""
        self.check()
        height = point.lyapunov if point.lyapunov > 0 else 1.0
        slope = point.cost + self.temper[:, None] * (1.0 + point.log_resp)
        center_slope = self.cost.center_gradient(point.resp, point.centers) / self.cost.weights.sum()
        lengths = self._lengths(point.resp)
        problem = self._problem(point, slope / height, center_slope * (lengths / height), height)
        start = None
        if neighbour is not None:
            start = np.append(neighbour.descent_multiplier, neighbour.count_multipliers)
        solution = solve_velocities(problem, start=start)
        eta = solution.descent_multiplier
        prices = solution.count_multipliers * (height / eta) if eta > 0 else np.zeros(len(center_slope))
        residual = self._residual(point.resp, slope, center_slope, prices)
        return _State(point, solution, problem.mobility, lengths, prices, residual)

    def _lengths(self, resp: Array) -> Array:
        """Units ℓ_j in which the centres move, shape (n_components, 1): the metric of mass, or all alike."""
        mass = np.full(resp.shape[1], 1.0 / resp.shape[1])
        if self.parameters.metric == "fisher":
            mass = np.maximum(self.share @ resp, _SMALLEST)
        return np.sqrt(self.parameters.center_rate * self.temper.mean() / (2.0 * mass))[:, None]

    def _problem(self, point: _Point, slope: Array, center_slope: Array, height: float) -> VelocityProblem:
        rates, resp = self.parameters, point.resp
        counts = resp.sum(axis=0)
        mean = self.temper.mean()
        fisher = rates.metric == "fisher"
        return VelocityProblem(
            resp_gradient=slope,
            center_gradient=center_slope,
            decrease=rates.descent_rate * point.lyapunov / height,
            count_lower=-rates.capacity_rate * np.maximum(counts - self.bounds.lower, 0.0),
            count_upper=rates.capacity_rate * np.maximum(self.bounds.upper - counts, 0.0),
            lower=box_bound(resp, rates.box_rate),
            mobility=resp * (mean / self.temper)[:, None] if fisher else np.ones_like(slope),
            slack_weight=rates.slack_weight * height / mean,
            count_unit=_COUNT_UNIT * rates.capacity_rate * len(slope),
        )

    def _residual(self, resp: Array, slope: Array, center_slope: Array, prices: Array) -> float:
        """Largest of the three defects of a KKT point, in units of the temperature Σ_i τ_i/(βΩ)."""
        temperature, counts = self.temper.sum(), resp.sum(axis=0)
        tilt = slope + prices
        tilt -= np.einsum("ij,ij->i", resp, tilt)[:, None]
        margin = np.where(prices > 0, self.bounds.upper - counts, counts - self.bounds.lower)
        stationarity = np.einsum("ij,ij->", resp, np.abs(tilt))
        centrality = np.sqrt(temperature) * np.linalg.norm(center_slope, axis=1).sum()
        complementarity = np.abs(prices) @ np.maximum(margin, 0.0)
        return float(max(stationarity, centrality, complementarity) / temperature)

    def lipschitz(self, before: _State, after: _State) -> float:
        """L = ‖Δ(v, u)‖/‖Δ(p, y)‖ in the norm of the programme."""
        shift = (after.point.centers - before.point.centers) / after.lengths
        change = _norm(after.point.resp - before.point.resp, after.mobility, shift)
        turn = after.solution.center_velocity - before.solution.center_velocity
        swing = _norm(after.solution.resp_velocity - before.solution.resp_velocity, after.mobility, turn)
        return max(swing, _SMALLEST) / max(change, _SMALLEST)

    def leave(self, state: _State, trace: Array, status: Status) -> FlowResult:
        point, converged = state.point, state.converged(self.parameters.tol)
        distortion = float(np.einsum("ij,ij->", point.resp, point.cost))
        return FlowResult(
            resp=point.resp,
            centers=point.centers,
            beta=self.beta,
            prices=state.prices * self.cost.weights.sum(),
            kkt_residual=state.residual,
            converged=converged,
            status=status,
            history=(FlowRecord(self.beta, trace, distortion, state.residual, converged),),
        )


class _Bounds(NamedTuple):
    """Lower and upper bounds on the counts."""

    lower: Array
    upper: Array

    @classmethod
    def checked(cls, n_items: int, lower: Array | None, upper: Array) -> _Bounds:
        lower = np.zeros_like(upper) if lower is None else lower
        if lower.shape != upper.shape or not ((lower >= 0) & (lower <= upper) & (upper > 0)).all():
            raise InvalidInputError(f"Expected 0 <= min_size <= capacity > 0, got {lower} and {upper}.")
        if not lower.sum() <= n_items <= upper.sum():
            raise InfeasibleCapacityError(
                f"{n_items} items cannot be counted between min_size and capacity, which sum to {lower.sum():g} and {upper.sum():g}."
            )
        return cls(lower, upper)

    def starting_row(self, n_items: int) -> Array:
        """One row for all items, in proportion between the bounds: without lower ones p_ij = c_j/Σc."""
        room = self.upper.sum() - self.lower.sum()
        filled = (n_items - self.lower.sum()) / room if room > 0 else 0.0
        return np.clip((self.lower + filled * (self.upper - self.lower)) / n_items, _SMALLEST, _LARGEST)

    def hold(self, resp: Array) -> bool:
        counts, slack = resp.sum(axis=0), _EXCESS * len(resp)
        return bool(((counts >= self.lower - slack) & (counts <= self.upper + slack)).all())

    def check(self, resp: Array) -> None:
        if not ((resp > 0).all() and (np.abs(resp.sum(axis=1) - 1.0) <= 1e-9).all()):
            raise InvalidInputError("Expected positive responsibilities whose rows sum to one.")
        if not self.hold(resp):
            counts = resp.sum(axis=0)
            raise InvalidInputError(f"Counts {counts} of the start are not in {self.lower}, {self.upper}.")


def _pattern(n_components: int, directions: Array) -> Array:
    """A displacement for each component, all different, none longer than one: cosines along directions."""
    order = np.arange(1, len(directions) + 1)
    waves = np.cos(np.pi * np.outer(np.arange(n_components) + 0.5, order) / n_components)
    pattern = waves @ directions
    return pattern / max(1.0, np.linalg.norm(pattern, axis=1).max())


def _nudge(centers: Array, pattern: Array, distance: float) -> Array:
    """Displacements that part the centres closer to another than a few times ``distance``; others stay."""
    offset = centers - centers.mean(axis=0)
    squared = between(offset)
    np.fill_diagonal(squared, np.inf)
    return np.where(squared.min(axis=1, keepdims=True) < (4.0 * distance) ** 2, distance * pattern, 0.0)


def _norm(resp_part: Array, mobility: Array, center_part: Array) -> float:
    squared = np.einsum("ij,ij->", resp_part, resp_part / mobility)
    return float(np.sqrt(squared + np.einsum("jd,jd->", center_part, center_part)))


def _refuse_large(n_items: int, n_components: int, max_bytes: int) -> None:
    needed = _LIVE_ARRAYS * 8 * n_items * n_components
    if needed > max_bytes:
        raise InvalidInputError(
            f"The barrier flow holds {n_items} × {n_components} responsibilities and would need about "
            f"{needed / 2**30:.2f} GiB, more than max_bytes = {max_bytes / 2**30:.2f} GiB: "
            "allow more or use another solver."
        )
