"""One factorisation, from an engine to a result: what the stages of the search find, ordered."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Annealed, Distortion
from ..engines.base import BLIND, Engine
from ..engines.journal import Journal
from ..engines.threads import TimeLimitReached
from ..passes.columns import ByLabel, Renamed
from ..passes.hard import HardStats
from ..progress import Monitor, StopRequested, Temperature, plan, plane
from .anneal import Split
from .bounded.bounds import Bounds
from .budget import BUDGET
from .direct import Direct, best_at_once
from .job import Job, Request
from .number import Number
from .partition import item_points, labelled_pass, nearest_pass, spaced
from .run import Run, Search, Stage
from .stages import begun, continued, stages
from .status import Status


@dataclass(frozen=True)
class Result:
    """A partition of the items, with the annealing that led to it.

    Attributes
    ----------
    distinct : Engine
        The items, equal ones as one where a copy of all is small.
    distortion : Distortion
        The loss in its frame.
    centers : ndarray of shape (n_components, n_dims)
        In the scaled units of the engine, nonnegative.
    labels : column of shape (n_items,)
        Owned by the engine.
    critical_betas : ndarray of shape (m,)
        The β at which 2, 3, … components first exist.
    temperatures : tuple of Temperature
    splits : tuple of Split
    plane : ndarray of shape (n_coordinates, 2)
        Directions onto which the centres of the history are projected.
    status : Status
        Why it ended.
    sentences : str
        The same in words, with what else there is to say.
    bounds : Bounds or None
        On the sizes of the components.
    prices : ndarray of shape (n_components,) or None
        Under bounds, the prices at which the labels are optimal.
    kkt_residual : float or None
        Of the relaxed problem at the last temperature, under bounds.
    number : Number or None
        What speaks for the number of components, where the data decided.
    stability : ndarray of shape (n_components,)
        How often each component comes back in halves of the items; NaN where unknown.
    certain : bool
        Whether the labels stay what they are however the centres are rounded.
    """

    distinct: Engine
    distortion: Distortion
    centers: Array
    labels: Any
    critical_betas: Array
    temperatures: tuple[Temperature, ...]
    splits: tuple[Split, ...]
    plane: Array
    status: Status
    sentences: str
    bounds: Bounds | None = None
    prices: Array | None = None
    kkt_residual: float | None = None
    number: Number | None = None
    stability: Array = field(default_factory=lambda: np.zeros(0))
    certain: bool = False


@dataclass(frozen=True)
class Progress:
    """How far a fit has come, and the passes that took: over all items, and over samples as well.

    Attributes
    ----------
    run : Run
    passes, all_passes : int
    """

    run: Run
    passes: int
    all_passes: int


def factorize(
    engine: Engine,
    request: Request,
    monitor: Monitor,
    progress: Progress | None = None,
    keep: Callable[[Progress], None] | None = None,
    journal: Journal | None = None,
) -> Result:
    """Anneal, refine and order the components; when the time is over or a callback says so, take the best answer so far.

    ``progress`` that was written down is continued, on the same items and for the same request. ``keep`` is told of it after every stage;
    with it, an interrupt ends the search as the time limit does. ``journal`` answers passes that were made from there on before.
    """
    team = engine.team
    with team.unhurried():  # without a first answer there is nothing to show
        if progress is None and (direct := best_at_once(engine, request)) is not None:
            monitor.stage(direct.sentence)
            return _at_once(direct)
        job = Job.of(engine, request)
        search = begun(job, monitor) if progress is None else continued(job, monitor, progress.run)
    if progress is not None:
        _count_from(job, progress)
    plan(_skipped(job))
    try:
        with nullcontext() if journal is None else journal.attached(team):
            for run in stages(job, search):
                if keep is not None:
                    keep(Progress(run, job.passes, team.passes))
    except TimeLimitReached:
        search.fault(Status.TIME_LIMIT)
    except StopRequested:
        search.fault(Status.CALLBACK)
    except KeyboardInterrupt:
        if keep is None:
            raise
        search.fault(Status.INTERRUPTED)
    with team.unhurried():
        search.tried()
        if job.start is not None and search.run.stage is not Stage.DONE:  # stopped before it was its turn
            _offer_start(search, job.start)
        engine.passes = job.passes
        n_points = min(BUDGET.plane_items, 2 + BUDGET.plane_numbers // job.spanned.n_dims)
        basis = plane(item_points(job.spanned, job.distortion, spaced(engine.n_items, n_points)))
        best = search.run.best
        if job.span is not None:
            best = replace(best, centers=job.span.lifted(best.centers))
        return _finished(job, replace(search.run, best=best), basis)


def _offer_start(search: Search, start: Array) -> None:
    """Take the start that was given where it costs less than the best answer, whose cost a search that ended need not have noted."""
    best = search.run.best
    if np.isinf(best.cost):
        search.put(best=replace(best, cost=search.assign(best.centers, best.prices).cost))
    search.offer(start if search.run.bounds is None else start[search.run.bounds.order], None)


def _skipped(job: Job) -> list[str]:
    """The phases that this fit will not have, for the time that is left."""
    request, free = job.request, job.bounds(job.wanted) is None
    few = job.distinct.n_items <= BUDGET.search_items[0]
    phases = {
        "counting components": request.n_components is None and not request.persistence,
        "searching on samples": request.refine and not few,
        "refining": request.refine,
        "meeting the bounds": not free,
        "refining the given start": job.start is not None,
    }
    return [name for name, takes_place in phases.items() if not takes_place]


def _count_from(job: Job, progress: Progress) -> None:
    """Count passes as if the fit had never been stopped: those that only began it again were made before."""
    for other in (job.merged, job.spanned, job.distinct):
        other.passes = 0
    job.engine.passes, job.engine.team.passes = progress.passes, progress.all_passes


def _at_once(best: Direct) -> Result:
    """The components of a partition that no search led to, ordered by mass; it has no temperatures."""
    engine, distortion, part = best.engine, best.distortion, best.part
    order = _by_mass(engine, part.labels, part.stats)
    return Result(
        distinct=engine,
        distortion=distortion,
        centers=np.abs(distortion.to_data(part.centers))[order],
        labels=_renamed(engine, part.labels, np.argsort(order)),
        critical_betas=np.zeros(0),
        temperatures=(),
        splits=(),
        plane=np.zeros((part.centers.shape[1], 2)),
        status=Status.CONVERGED,
        sentences=Status.CONVERGED.sentence,
        certain=best.certain,
        stability=np.full(part.n_components, np.nan),
    )


def _finished(job: Job, run: Run, basis: Array) -> Result:
    """Nonnegative centres, ordered by mass, and the last labels."""
    engine, distortion, best, bounds = job.engine, job.given_distortion, run.best, run.bounds
    centers, labels, prices = np.abs(distortion.to_data(best.centers)), best.labels, best.prices
    if bounds is None or labels is None:
        stats, labels = nearest_pass(engine, distortion, distortion.to_frame(centers))
    else:
        place = np.argsort(bounds.order)
        centers, labels, prices = centers[place], _renamed(engine, labels, bounds.order), None if prices is None else prices[place]
        stats = labelled_pass(engine, distortion, distortion.to_frame(centers), labels)
    order = _by_mass(engine, labels, stats)
    if bounds is not None and (bounds.named or len(order) < len(centers)):
        order = np.arange(len(centers))
    rank = np.zeros(len(centers), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return Result(
        distinct=job.merged,
        distortion=distortion,
        centers=centers[order],
        labels=_renamed(engine, labels, rank),
        critical_betas=run.critical_betas,
        temperatures=run.temperatures,
        splits=run.splits,
        plane=basis,
        status=run.status,
        sentences=run.sentences,
        bounds=bounds,
        prices=None if prices is None else prices[order],
        kkt_residual=run.kkt_residual,
        number=run.number,
        stability=_stability(job.counted, distortion, run.number, centers[order]),
    )


def _stability(small: Engine, distortion: Annealed, number: Number | None, centers: Array) -> Array:
    """How often each component comes back in halves of the items on which the number was found; NaN where none were drawn."""
    if number is None or not number.partitions:
        return np.full(len(centers), np.nan)
    _, labels = nearest_pass(small, distortion, distortion.to_frame(centers))
    return number.stability(labels, len(centers))


def _renamed(engine: Engine, labels: Any, names: Labels) -> Any:
    """The labels with label j as names[j]."""
    return engine.run(BLIND, Renamed(names), {"labels": labels}).columns["labels"]


def _by_mass(engine: Engine, labels: Any, stats: HardStats) -> Labels:
    """Components that have items, the heaviest first; of equal ones, that whose first item (of any weight) comes first."""
    first = engine.run(BLIND, ByLabel(len(stats.mass)), {"labels": labels}).total.first
    used = np.flatnonzero(stats.sizes)
    return used[np.lexsort((first[used], -stats.mass[used]))]
