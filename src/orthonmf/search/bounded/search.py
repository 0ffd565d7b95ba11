"""The search under bounds: from the relaxed solution, and from free components, to the best labels within the bounds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..._common.typing import Array
from ...distortion.base import Annealed
from ...engines.base import Engine, sample
from ...progress import phase
from ..budget import BUDGET
from ..job import Job, Request
from ..partition import Free, Partition, labelled_pass, nearest_pass
from ..refine import refine, rehearsed
from ..run import Answer, Assign, Search, Stage
from ..status import Status
from . import bounded_solver
from .assigner import Bounded
from .base import Relaxed, loads
from .bounds import Bounds
from .dual import weighed
from .exhaustive import best_of_all

# Centres and prices from which to alternate.
Start = tuple[Array, Array | None]


def assigning(engine: Engine, distortion: Annealed, bounds: Bounds | None) -> Assign:
    """Who gives all items to components within the bounds, the roomiest first."""
    if bounds is None:
        return Free(engine, distortion).assigned
    ordered = bounds.taken(bounds.order)
    if engine.size is not None:
        return partial(_nearest_loads, engine, distortion, ordered)
    return partial(_assigned, Bounded(engine, distortion, ordered))


def _assigned(assigner: Bounded, centers: Array, prices: Array | None) -> Partition:
    """The best assignment under bounds."""
    return assigner.assigned(_for_each(assigner.bounds, centers), prices)


def _for_each(bounds: Bounds, centers: Array) -> Array:
    """A centre for each component; where there are fewer, some stand for several."""
    return centers[np.arange(len(bounds.upper)) % len(centers)]


def _nearest_loads(engine: Engine, distortion: Annealed, bounds: Bounds, centers: Array, prices: Array | None) -> Partition:
    """The nearest labels, with what their sums of sizes cost under soft bounds."""
    centers = _for_each(bounds, centers)
    found = Free(engine, distortion).assigned(centers)
    charge = bounds.charge(loads(engine, found.labels, len(centers)))
    return replace(found, prices=np.zeros(len(centers)) if prices is None else prices, charge=charge)


def placed(engine: Engine, distortion: Annealed, bounds: Bounds, centers: Array) -> Partition:
    """Every item in its nearest component, and the components in the order in which the fewest items are out of the bounds.

    Where there are fewer centres than components, some stand for several.
    """
    _, labels = nearest_pass(engine, distortion, centers)
    n_components = len(bounds.upper)
    sizes = loads(engine, labels, n_components)[:, None]
    outside = np.maximum(sizes - bounds.upper, 0) + np.maximum(bounds.lower - sizes, 0)
    place = linear_sum_assignment(outside)[1]
    placed = centers[np.argsort(place) % len(centers)]
    return Partition(place[labels], placed, labelled_pass(engine, distortion, placed, place[labels]), prices=np.zeros(n_components))


def search_within_bounds(job: Job, search: Search) -> Stage:
    """From the solver's relaxed solution, and from the free components made feasible, to the better of the two, refined.

    The roomiest component comes first, so that the order of the bounds does not matter. Without bounds the free components are the answer.
    """
    engine, distortion, request, bounds = job.items, job.distortion, job.request, search.run.bounds
    if bounds is None:
        search.put(best=Answer(search.run.centers), sketch=None)
        return Stage.GIVEN
    phase("meeting the bounds")
    order = bounds.order
    ordered = bounds.taken(order)
    free = placed(engine, distortion, ordered, search.run.centers)
    search.tried()
    solve = bounded_solver(request.solver)
    relaxed = solve(engine, distortion, ordered, search.temperature, request.solver_parameters, seed=request.seed, offer=search.offer)
    search.put(kkt_residual=relaxed.kkt_residual)
    if relaxed.status is not Status.CONVERGED:
        search.fault(relaxed.status)
    if engine.size is not None:
        found = weighed(engine, distortion, ordered, search.temperature, relaxed)
    elif request.rounding == "nearest":
        found = relaxed.nearest(engine, distortion)
        if over := int(np.maximum(found.stats.sizes - ordered.upper, 0).max()):
            search.remark(f"Rounded to the nearest: a capacity is exceeded by {over}.")
    else:
        found = _rounded(engine, distortion, request, ordered, relaxed, free, search)
        if job.start is not None:
            found = min(found, _from_given(job, search, ordered, job.start[order]), key=lambda part: part.cost)
    if not found.at_rest:
        search.fault(Status.ALTERNATION)
    if outside := bounds.soft * ordered.outside(loads(engine, found.labels, len(order))):
        unit = request.total_size / engine.n_items  # of the sizes that the user gave; 1 where items are counted
        whole = f"{engine.n_items} items are" if engine.size is None else f"a total size of {request.total_size:.6g} is"
        search.remark(f"{outside * unit:.6g} of {whole} out of the soft bounds.")
    search.put(best=Answer(found.centers, found.labels, found.prices, found.cost), sketch=None)
    return Stage.DONE


def _rounded(
    engine: Engine, distortion: Annealed, request: Request, bounds: Bounds, relaxed: Relaxed, free: Partition, search: Search
) -> Partition:
    """The relaxed solution, rounded exactly and refined together with the free components; these themselves where they are feasible."""
    assigner = Bounded(engine, distortion, bounds, keep=search.keep)
    starts = [(relaxed.centers, relaxed.prices), (free.centers, None)]
    if not request.refine:
        best = assigner.assigned(*starts[0])
    elif engine.n_items <= BUDGET.every_partition:
        best = best_of_all(engine, distortion, assigner)
    elif bounds.outside(free.stats.sizes) == 0 < free.stats.sizes.min():
        return free
    elif engine.n_items <= BUDGET.many_bounded_items:
        best = refine(engine, distortion, _better_of(assigner, starts, request.max_iter), assigner)
    else:
        best = _rehearsed(engine, distortion, request, assigner, starts, search)
    return assigner.settled(best, request.max_iter)


def _from_given(job: Job, search: Search, bounds: Bounds, centers: Array) -> Partition:
    """Where the start that was given leads within the bounds, refined where items are few enough."""
    phase("refining the given start")
    search.monitor.stage("refining the start that was given, within the bounds")
    assigner = Bounded(job.items, job.distortion, bounds, keep=search.keep)
    part = _better_of(assigner, [(centers, None)], job.request.max_iter)
    if job.request.refine and job.items.n_items <= BUDGET.many_bounded_items:
        part = refine(job.items, job.distortion, part, assigner)
    return assigner.settled(part, job.request.max_iter)


def _rehearsed(engine: Engine, distortion: Annealed, request: Request, assigner: Bounded, starts: list[Start], search: Search) -> Partition:
    """The better of the starts on samples that grow, of which the search keeps a sketch, and then on all items."""
    for size in _rehearsals(engine.n_items):
        small = sample(engine, size, request.seed)
        bounds = assigner.bounds.scaled(engine.n_items, small.n_items)
        steady = BUDGET.rehearsed * np.sqrt(len(bounds.upper) / small.n_items)
        rehearsal = Bounded(small, distortion, bounds, keep=search.sketching(), steady=max(steady, BUDGET.steady))
        best = _better_of(rehearsal, starts, request.max_iter)
        if len(starts) > 1 and (n_tries := min(engine.n_items // BUDGET.try_items, BUDGET.max_tries)):
            best = rehearsed(small, distortion, best, rehearsal, n_tries)
        starts = [(best.centers, best.prices)]
    return _better_of(assigner, starts, request.max_iter)


def _rehearsals(n_items: int) -> list[int]:
    """Sizes of the samples on which starts are compared, the smallest first: a share of the items, and parts of that."""
    sizes = [int(BUDGET.rehearsal_share * n_items)]
    while sizes[0] > BUDGET.rehearsal_items:
        sizes.insert(0, sizes[0] // BUDGET.rehearsal_growth)
    return sizes


def _better_of(assigner: Bounded, starts: list[Start], max_passes: int) -> Partition:
    """Where the best of some centres and prices leads; what will clearly end above another is given up."""
    found: list[Partition] = []
    for start in starts:
        bound = min((end.cost for end in found), default=np.inf)
        end = assigner.alternate(*start, bound=bound, max_passes=max_passes)
        found += [] if end is None else [end]
    return min(found, key=lambda end: end.cost)
