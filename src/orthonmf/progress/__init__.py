"""What a fit tells about itself while it runs: history, callbacks, and the time that is left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Self

import numpy as np

from .._common.typing import Array

__all__ = [
    "CallbackSupport",
    "Course",
    "Moment",
    "Monitor",
    "Note",
    "Reporter",
    "StopRequested",
    "Temperature",
    "at",
    "beat",
    "history",
    "listening",
    "phase",
    "plan",
    "plane",
    "under_way",
    "with_callbacks",
]


class StopRequested(Exception):
    """A callback asked the fit to stop; handled by the fit."""


#: Searches that go through temperatures; "" where it is not known which, as in models of older versions.
STAGES = ("", "annealing", "prices", "flow")


@dataclass(frozen=True)
class Temperature:
    """One settled temperature of the annealing.

    Attributes
    ----------
    beta : float
    n_components : int
        Distinct components.
    free_energy, distortion, entropy : float
        J, D and the entropy of the responsibilities, per unit weight.
    passes : int
        Over the items that are annealed, at this temperature alone: by which it settled, splits tried included; steps of a flow.
    centers : ndarray of shape (n_components, n_coordinates)
        In the frame of the distortion.
    ids : tuple of int
        Names of the components, as in the tree of splits.
    stage : str
        Which search it belongs to, one of ``STAGES``: the annealing of free components, or under bounds that of prices, or the flow.
    lyapunov : ndarray or None
        V along the trajectory, where the solver is a flow.
    """

    beta: float
    n_components: int
    free_energy: float
    distortion: float
    entropy: float
    passes: int
    centers: Array
    ids: tuple[int, ...]
    stage: str = "annealing"
    lyapunov: Array | None = None

    def in_units(self, unit: int) -> Temperature:
        """The same in the units of X, 2**−unit of the engine's; the centres stay in their frame."""
        return replace(
            self,
            beta=float(in_units(self.beta, 2 * unit)),
            free_energy=float(in_units(self.free_energy, -2 * unit)),
            distortion=float(in_units(self.distortion, -2 * unit)),
        )


@dataclass(frozen=True)
class Moment:
    """How far a fit is.

    Attributes
    ----------
    phase : str
        What it does, one of ``PHASES``.
    detail : str
        How far that is, such as "37 of 200 swaps"; empty where that is not known.
    share : float
        Of the whole fit that is done, as far as anyone can tell; it never falls.
    seconds : float
        Since the fit began.
    left : float or None
        Seconds that the rest of the whole fit would take at the pace so far; None while too little is done to tell.
    """

    phase: str
    detail: str
    share: float
    seconds: float
    left: float | None


#: Told of every settled temperature.
Note = Callable[[Temperature], None]
_StageListener = Callable[[str], None]
_MomentListener = Callable[[Moment], None]
_Listeners = tuple[Note | None, _StageListener | None, _MomentListener | None]
_listeners: ContextVar[tuple[_Listeners, ...]] = ContextVar("orthonmf_listeners", default=())


@contextmanager
def listening(
    on_temperature: Note | None = None, on_stage: _StageListener | None = None, on_moment: _MomentListener | None = None
) -> Iterator[None]:
    """Within the block, hear of every fit in this thread as it goes.

    Parameters
    ----------
    on_temperature : callable or None
        Called with the ``Temperature`` that has just settled, β in the units of X. It may raise ``StopRequested`` to end the fit with the
        best answer so far.
    on_stage : callable or None
        Called with a sentence when the annealing is over and another stage begins.
    on_moment : callable or None
        Called with a ``Moment`` when a phase begins, and about ten times a second while anything is computed.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.progress import listening
    >>> heard = []
    >>> with listening(lambda temperature: heard.append(temperature.n_components)):
    ...     model = ONMF().fit([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 3.0]])
    >>> heard[0], len(heard) == len(model.history_["beta"])
    (1, True)
    """
    token = _listeners.set((*_listeners.get(), (on_temperature, on_stage, on_moment)))
    try:
        yield
    finally:
        _listeners.reset(token)


#: What a fit does, in this order, and a guess at the share of its time that each takes where it takes place. ``benchmarks silence`` says
#: how far off they are, which is why the time left is "about".
PHASES = {
    "reading": 1.0,
    "counting components": 60.0,
    "annealing": 10.0,
    "searching on samples": 25.0,
    "refining": 40.0,
    "meeting the bounds": 60.0,
    "refining the given start": 40.0,
    "certifying": 4.0,
}
# Seconds between two moments, at least: what the eye can follow. While less than this share is done, the time left is not told.
TOLD_EVERY, TOO_LITTLE = 0.1, 0.02


class Course:
    """How far one fit has come, told of by those who work and passed on to those who listen.

    Parameters
    ----------
    listeners : tuple of callables
        Told of every ``Moment``.
    """

    def __init__(self, listeners: tuple[_MomentListener, ...] = ()) -> None:
        self._listeners, self._began, self._told = listeners, monotonic(), -np.inf
        self._plan, self._phase, self._detail, self._part, self._share = dict(PHASES), "reading", "", 0.0, 0.0

    def plan(self, skipped: Iterable[str]) -> None:
        """Say which phases there will not be."""
        for each in skipped:
            self._plan.pop(each, None)

    def enter(self, phase: str) -> None:
        """Begin a phase."""
        if phase != self._phase:
            self._phase, self._detail, self._part = phase, "", 0.0
            self._tell()

    def at(self, part: float, detail: str) -> None:
        """So large a part of a phase is done; what begins anew does not fall back."""
        self._part, self._detail = max(self._part, min(part, 1.0)), detail
        self.beat()

    def beat(self) -> None:
        """Something was computed."""
        if self._listeners and monotonic() - self._told >= TOLD_EVERY:
            self._tell()

    def _tell(self) -> None:
        self._told = monotonic()
        seconds, whole = self._told - self._began, sum(self._plan.values())
        names = list(PHASES)
        before = sum(self._plan.get(name, 0.0) for name in names[: names.index(self._phase)])
        share = (before + self._part * self._plan.get(self._phase, 0.0)) / whole
        self._share = max(self._share, share)
        left = seconds * (1 - self._share) / self._share if self._share >= TOO_LITTLE else None
        for listener in self._listeners:
            listener(Moment(self._phase, self._detail, self._share, seconds, left))


# That of the fit in this thread; the threads that compute its blocks have none.
_NONE = Course()
_course: ContextVar[Course] = ContextVar("orthonmf_course", default=_NONE)


@contextmanager
def under_way() -> Iterator[Course]:
    """Within the block, what is computed in this thread is one fit for those who listen."""
    course = Course(tuple(listener for _, _, listener in _listeners.get() if listener is not None))
    token = _course.set(course)
    try:
        yield course
    finally:
        _course.reset(token)


def plan(skipped: Iterable[str]) -> None:
    """Say which phases the fit in this thread will not have."""
    _course.get().plan(skipped)


def phase(name: str) -> None:
    """Begin a phase of the fit in this thread, one of ``PHASES``."""
    _course.get().enter(name)


def at(part: float, detail: str) -> None:
    """So large a part of its phase the fit in this thread has done, and in words."""
    _course.get().at(part, detail)


def beat() -> None:
    """Something was computed for the fit in this thread."""
    _course.get().beat()


@dataclass(frozen=True)
class Monitor:
    """Passes on what a fit tells.

    Parameters
    ----------
    verbose : int
        1 reports each temperature on standard error.
    listener : callable or None
        Called with each temperature; raises ``StopRequested`` to stop the fit.
    unit : int
        What is passed on is in the units of X, 2**−unit of the engine's.
    """

    verbose: int = 0
    listener: Note | None = None
    unit: int = 0

    def temperature(self, record: Temperature) -> None:
        """Tell of a settled temperature."""
        record = record.in_units(self.unit)
        if self.verbose:
            self._say(f"beta {record.beta:.4g}  components {record.n_components}  J {record.free_energy:.6g}  passes {record.passes}")
        for listener in (*(each for each, _, _ in _listeners.get()), self.listener):
            if listener is not None:
                listener(record)

    def stage(self, text: str) -> None:
        """Tell of a stage of the fit."""
        if self.verbose:
            self._say(text)
        for _, listener, _ in _listeners.get():
            if listener is not None:
                listener(text)

    @staticmethod
    def _say(text: str) -> None:
        sys.stderr.write(f"[ONMF] {text}\n")


def plane(points: Array) -> Array:
    """Two orthonormal directions (n_coordinates, 2) in which a sample of points spreads most."""
    spread = points - points.mean(axis=0)
    basis = np.zeros((points.shape[1], 2))
    if len(points) < points.shape[1]:  # from their inner products: of a hundred points in 20 000 dimensions, in a fiftieth of the time
        directions = np.linalg.qr(spread.T @ np.linalg.eigh(spread @ spread.T)[1][:, ::-1][:, :2])[0].T
    else:
        directions = np.linalg.svd(spread, full_matrices=False)[2][:2]
    basis[:, : len(directions)] = directions.T
    return basis


def in_units(values: Any, exponent: int) -> Any:
    """values · 2**exponent; infinite where that is no float, as the β of items of size 1e-200."""
    with np.errstate(over="ignore"):
        return np.ldexp(values, exponent)


def history(temperatures: tuple[Temperature, ...], splits: tuple[Any, ...], basis: Array, unit: int) -> dict[str, Any]:
    """The annealing as arrays, one entry per temperature, in the units of X (2**−unit of the engine's).

    Keys: ``beta``, ``n_components``, ``free_energy``, ``distortion``, ``entropy``, ``passes`` (arrays; passes over the annealed items at
    that temperature alone); ``stage`` (array of str, see ``STAGES``); ``projection`` (list of arrays of shape (n_components, 2), the
    centres in a fixed plane); ``ids`` (list of tuples, names of the components); ``lyapunov`` (list, the flow's V or None); ``splits``
    (list of (β, parent, child)).
    """
    columns: dict[str, Any] = {
        name: np.array([getattr(record, name) for record in temperatures])
        for name in ("beta", "n_components", "free_energy", "distortion", "entropy", "passes")
    }
    columns["beta"] = in_units(columns["beta"], 2 * unit)
    for name in ("free_energy", "distortion"):
        columns[name] = in_units(columns[name], -2 * unit)
    columns["projection"] = [in_units(record.centers @ basis, -unit) for record in temperatures]
    columns["lyapunov"] = [None if record.lyapunov is None else in_units(record.lyapunov, -2 * unit) for record in temperatures]
    columns["ids"] = [record.ids for record in temperatures]
    columns["stage"] = np.array([record.stage for record in temperatures], dtype=f"U{max(map(len, STAGES))}")
    columns["splits"] = [(float(in_units(split.beta, 2 * unit)), split.parent, split.child) for split in splits]
    return columns


try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupport:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Stand in where scikit-learn has no callbacks."""
        return method


class Reporter:
    """Passes each temperature of a fit to scikit-learn's callbacks, as one subtask; a callback may stop the fit."""

    def __init__(self, estimator: Any, X: Any) -> None:
        self._estimator, self._X = estimator, X
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=None)

    def __enter__(self) -> Self:
        if self._context is not None:
            self._context.call_on_fit_task_begin(estimator=self._estimator, X=self._X)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._context is not None and exc_info[0] is None:
            self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X)

    def __call__(self, record: Temperature) -> None:
        if self._context is None:
            return
        name = f"beta {record.beta:.4g}, {record.n_components} components"
        task = self._context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=self._estimator, X=self._X)
        if task.call_on_fit_task_end(estimator=self._estimator, X=self._X):
            raise StopRequested
