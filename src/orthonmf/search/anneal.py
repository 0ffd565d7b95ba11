"""The annealing: raise β, settle, look for components that give way, split them.

At β ≈ 0 all components coincide at the centre. Each transition adds distinct ones, until there are as many as asked for or
no finite β brings another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._common.typing import Array
from ..distortion.base import Splitting
from ..engines.base import Engine
from ..passes.state import State
from ..progress import Note, Temperature
from .budget import BUDGET
from .gibbs import Settled, settle
from .partition import refilled
from .schedule import Schedule
from .transitions import (
    Child,
    Criticals,
    critical_values,
    distinct,
    elsewhere,
    halves,
    largest_distance,
    scan,
    with_children,
    with_far,
)

# A split must lower F by more than this per unit weight: less is rounding.
MIN_GAIN = 1e-7
# Just above a transition children part by steps that gain next to nothing. A split is settled this much more tightly, or it is taken for
# finished halfway and its halves split again: on 32 problems critical values then depended on the schedule by up to a factor of 9.
SPLIT_TOL = 1e-3
# Where the annealing starts, in units of the first critical value.
BELOW_FIRST = 1e-2
# A first critical value below this, in units of the mean distance, is rounding; elsewhere it is of order one.
ISOTROPIC = 1e-8
# The largest step in β where transitions far from all centres are looked for.
MAX_JUMP = 4.0
# Relative accuracy of a critical value where only the order of the splits depends on it.
ROUGH_TOL = 0.05
# Responsibilities are hard when their entropy per unit weight is below this.
HARD = 1e-6


@dataclass(frozen=True)
class Split:
    """One branch of the tree of components: at ``beta``, ``child`` left ``parent`` (names as in ``State.ids``)."""

    beta: float
    parent: int
    child: int


def tree(splits: list[Split], ids: tuple[int, ...]) -> list[Split]:
    """The splits that led to the components named ``ids``; those whose children did not last are left out."""
    kept, lasting = [], set(ids)
    for split in reversed(splits):
        if split.child in lasting:
            lasting.add(split.parent)
            kept.append(split)
    return kept[::-1]


@dataclass(frozen=True)
class _View:
    """A settled state, looked over for components that give way."""

    settled: Settled
    criticals: Criticals
    children: list[Child]

    @property
    def state(self) -> State:
        """Temperature, centres and masses."""
        return self.settled.state

    @property
    def beta(self) -> float:
        """The inverse temperature."""
        return self.settled.state.beta

    @property
    def paying(self) -> list[Child]:
        """Children that lower J, the most rewarding first."""
        return sorted((child for child in self.children if child.pays), key=lambda child: -child.excess)

    @property
    def onsets(self) -> Array:
        """The β at which each component gives way, as far as can be told from here."""
        return np.array([child.onset for child in self.children])


@dataclass
class Annealing:
    """A run of the annealing: what it needs, and what it leaves behind.

    Parameters
    ----------
    engine, distortion, schedule
        The data, the loss, and how β grows.
    tol : float
        A state is settled when a plain step gains less than this in F per unit weight.
    max_passes : int
        Bound on the passes at one temperature.
    max_beta : float
        Transitions beyond are rounding of the data.
    note : callable
        Told of every settled temperature.
    thorough : bool
        Whether discontinuous transitions are scanned for.

    Attributes
    ----------
    critical_betas : list of float
        The β at which 2, 3, … distinct components first exist.
    states : dict of int to State
        The last settled state with each number of components.
    splits : list of Split
    exhausted : bool
        No finite β brings another component.
    converged : bool
        Every temperature settled.
    refusals : int
        Splits in a row that did not lower J.
    next_id : int
        The name of the next child; those of refused splits are not given again.
    places : ndarray of shape (n_places, n_coordinates)
        Items far apart, where components far from all others are looked for.
    least_beta : float
        Half the inverse of the largest distance to one centre. Means have no transition below it. Lines have where items are
        orthogonal, at log ratios of their weights that say nothing about separation: such a transition counts from here.
    """

    engine: Engine
    distortion: Splitting
    schedule: Schedule
    tol: float
    max_passes: int
    max_beta: float
    note: Note
    thorough: bool = True
    critical_betas: list[float] = field(default_factory=list)
    states: dict[int, State] = field(default_factory=dict)
    splits: list[Split] = field(default_factory=list)
    exhausted: bool = False
    converged: bool = True
    refusals: int = 0
    next_id: int = 1
    places: Array = field(default_factory=lambda: np.zeros((0, 0)))
    least_beta: float = 0.0

    def run(self, n_components: int, *, beyond: bool = False) -> State:
        """Anneal until ``n_components`` are distinct; with ``beyond``, also locate the transition past them."""
        goal = min(n_components + beyond, self.engine.n_items)
        view = self._begin()
        while view.state.n_components < goal:
            reached = self._climb(view) if view.beta <= self.max_beta else None
            if reached is None:
                self.exhausted = True
                break
            before, view = reached
            onset = max(float(view.onsets.min()), before.beta, self.least_beta)
            settled = self._split(view, onset, room=goal - view.state.n_components)
            if settled.state.n_components >= goal:  # what gives way next need not be known
                break
            view = self._look(settled)
        self.exhausted |= max(self.states) >= self.engine.n_items
        return self.states[max(m for m in self.states if m <= n_components)]

    def harden(self, state: State) -> State:
        """Raise β at a fixed number of components until the responsibilities are hard."""
        while state.beta < self.max_beta:
            settled = self._settle(state)
            state = settled.state
            entropy = settled.stats.entropy(state) / settled.stats.weight
            if entropy <= HARD:
                break
            state = state.set(beta=self.schedule.next_beta(state.beta, np.array([state.beta])))
        return state

    # -- one temperature --------------------------------------------------------------------------------------------------------

    def _settle(self, state: State, *, tightly: float = 1.0) -> Settled:
        """Minimise J at the state's β over centres and masses, and keep only distinct components."""
        before = self.engine.passes
        while True:
            settled = self._rested(state, self.tol * tightly)
            for _ in range(BUDGET.split_rounds if tightly < 1 else 0):  # cut off on the way, where the residual may be up for a while
                settled = settled if settled.converged else self._rested(settled.state, self.tol)
            state = distinct(settled.state)
            if state is settled.state:
                break
        self.converged &= settled.converged
        self.states = {m: kept for m, kept in self.states.items() if m < state.n_components}
        self.states[state.n_components] = state
        del self.critical_betas[state.n_components - 1 :]
        self.note(_record(settled, self.engine.passes - before))
        return settled

    def _rested(self, state: State, tol: float) -> Settled:
        return settle(self.engine, self.distortion, state, tol=tol, max_passes=self.max_passes)

    def _look(self, settled: Settled, start: Array | None = None) -> _View:
        start = start if self.thorough else None
        return self._view(settled, critical_values(self.engine, self.distortion, settled, start=start, **self._accuracy))

    @property
    def _accuracy(self) -> dict[str, Any]:
        """How well critical values are to be known."""
        return {} if self.thorough else {"tol": ROUGH_TOL, "max_passes": 1}

    def _view(self, settled: Settled, criticals: Criticals) -> _View:
        if not self.thorough:
            return _View(settled, criticals, halves(self.distortion, settled, criticals))
        near = scan(self.engine, self.distortion, settled, criticals)
        far = elsewhere(self.engine, self.distortion, settled, self.places)
        return _View(settled, criticals, with_far(near, far, settled.state.beta))

    def _begin(self) -> _View:
        """One component, settled at a β well below its critical value."""
        origin = State(1.0, self.distortion.origin, np.zeros(1))
        settled = self._settle(origin)
        criticals = critical_values(self.engine, self.distortion, settled, **self._accuracy)  # of a single component: the same at every β
        first = criticals.beta[0]
        if self.thorough:
            self.least_beta = 0.5 / max(largest_distance(self.engine, self.distortion, settled.state), 1 / self.max_beta)
            self.places = refilled(self.engine, self.distortion, np.repeat(self.distortion.origin, BUDGET.child_places, axis=0))
        # Isotropic items give way at every temperature: their critical value is 0, or what rounding makes of it.
        usable = first < np.inf and first * settled.stats.distortion > ISOTROPIC * settled.stats.weight
        beta = BELOW_FIRST * float(first) if usable else 1.0
        if self.thorough and usable:
            beta = min(beta, self.least_beta / 2)
        return self._view(self._settle(origin.set(beta=float(beta), centers=self.states[1].centers)), criticals)

    # -- between temperatures ---------------------------------------------------------------------------------------------------

    def _climb(self, low: _View) -> tuple[_View, _View] | None:
        """Raise β until a child pays; return the views before and after, as close as the schedule asks."""
        high = low
        while not high.paying:
            low = high
            beta = self.schedule.next_beta(low.beta, low.onsets)
            if self.thorough:  # a component far from all others comes unannounced
                beta = min(beta, low.beta * MAX_JUMP)
            if beta > self.max_beta:
                return None
            high = self._look(self._settle(low.state.set(beta=beta)), low.criticals.directions)
        return self._locate(low, high)

    def _locate(self, low: _View, high: _View) -> tuple[_View, _View]:
        """Narrow the interval in which a child began to pay."""
        width = self.schedule.resolution
        for _ in range(BUDGET.max_looks):
            if high.beta <= low.beta * width or high.beta <= high.onsets.min() * width:
                break
            guess = float(high.onsets.min()) * (1 + (width - 1) / 2)
            inside = low.beta * 1.005 < guess < high.beta * 0.995
            beta = guess if inside else float(np.sqrt(low.beta * high.beta))
            view = self._look(self._settle(low.state.set(beta=beta)), low.criticals.directions)
            low, high = (low, view) if view.paying else (view, high)
        return low, high

    def _split(self, view: _View, onset: float, room: int) -> Settled:
        """Give the paying children a component each, if J then falls; else go on a little."""
        children = view.paying[:room]
        first_id, self.next_id = self.next_id, self.next_id + len(children)
        tightly = SPLIT_TOL if self.thorough else 1.0
        settled = self._settle(with_children(view.state, children, first_id), tightly=tightly)
        if view.settled.free_energy - settled.free_energy <= MIN_GAIN * settled.stats.weight:
            # Each refusal in a row goes twice as far, or items that differ but weigh nothing would be met at every step.
            self.refusals = min(self.refusals + 1, BUDGET.max_refusals)
            beta = view.beta * self.schedule.recovery**2 ** (self.refusals - 1)
            return self._settle(view.state.set(beta=beta))
        self.refusals = 0
        n_new = settled.state.n_components - 1 - len(self.critical_betas)
        self.critical_betas += [onset] * n_new
        self.splits += [Split(onset, view.state.ids[c.parent], first_id + i) for i, c in enumerate(children)]
        return settled


def _record(settled: Settled, passes: int) -> Temperature:
    """A converged state for the history."""
    state, stats = settled.state, settled.stats
    weight = stats.weight if stats.weight > 0 else 1.0
    return Temperature(
        beta=state.beta,
        n_components=state.n_components,
        free_energy=settled.free_energy / state.beta / weight,
        distortion=stats.distortion / weight,
        entropy=stats.entropy(state) / weight,
        passes=passes,
        centers=state.centers,
        ids=state.ids,
    )
