"""The stages of a fit: each carries a run on, from its first answer to the last, and says what comes next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .._common.typing import Array
from ..distortion.base import Distortion
from ..engines.base import Engine, sample
from ..progress import Monitor, Temperature, at, phase
from .anneal import Annealing, tree
from .batch import far_apart
from .bounded.base import loads
from .bounded.bounds import Bounds
from .bounded.search import assigning, placed, search_within_bounds
from .budget import BUDGET
from .job import Job, Request
from .number import counted
from .partition import Free, Partition, alternate, finest, many, nearest_pass, opened, refilled, sharpened, spread
from .refine import gains, moved, refine, rehearsed, separated
from .run import Answer, Run, Search, Stage
from .sampling import coreset, unweighted
from .schedule import Adaptive, Geometric, Schedule
from .sketch import Sketch, wide
from .status import Status
from .transitions import MIN_PERSISTENCE, most_persistent, persistence


def begun(job: Job, monitor: Monitor) -> Search:
    """A search with its first answer: as many components as are asked for, far apart, within the bounds."""
    bounds, centers = job.bounds(job.wanted), _far_apart(job)
    if bounds is not None:
        centers = placed(job.items, job.distortion, bounds.taken(bounds.order), centers).centers
    search = Search(Run(Answer(centers), bounds), assigning(job.items, job.distortion, bounds), monitor)
    search.keep(_timed(job, search))
    return search


def continued(job: Job, monitor: Monitor, run: Run) -> Search:
    """A search that goes on from a run that was written down."""
    search = Search(run, assigning(job.items, job.distortion, run.bounds), monitor)
    _timed(job, search)
    return search


def _timed(job: Job, search: Search) -> Partition:
    """All items given to the components of the answer; and as much time kept back as what follows the search will take."""
    team, best = job.items.team, search.run.best
    began = team.clock()
    part = search.assign(best.centers, best.prices)
    seconds = team.clock() - began
    grace = max(BUDGET.grace_seconds, BUDGET.grace * team.left())
    team.reserve = max(BUDGET.end_answers * seconds + BUDGET.end_passes * job.items.pass_seconds - grace / 2, 0.0)
    return part


def _far_apart(job: Job) -> Array:
    """As many centres as are asked for, far apart."""
    centers = opened(job.annealed, job.distortion, job.distortion.origin, job.wanted)
    rough = alternate(job.annealed, job.distortion, centers, max_passes=BUDGET.loose_passes)
    return opened(job.items, job.distortion, centers, job.wanted) if rough is None or len(centers) < job.wanted else rough.centers


def stages(job: Job, search: Search) -> Iterator[Run]:
    """Carry a run on to its end, stage by stage; any of the runs on the way can be continued."""
    steps = {
        Stage.NUMBER: _number,
        Stage.ANNEALING: _anneal,
        Stage.PLACES: _place,
        Stage.SAMPLES: _sample,
        Stage.ALL_ITEMS: _all_items,
        Stage.WITHIN_BOUNDS: search_within_bounds,
        Stage.GIVEN: _given,
    }
    while search.run.stage is not Stage.DONE:
        search.put(stage=steps[search.run.stage](job, search))
        yield search.run


# -- how many ---------------------------------------------------------------------------------------------------------------------


def _number(job: Job, search: Search) -> Stage:
    """The number of components that the data give, where they decide, and a word about it."""
    request, engine = job.request, job.counted
    if not _differ(job):
        search.put(centers=job.distortion.origin)
        search.remark(job.given_distortion.alike)
        return Stage.PLACES
    if request.n_components is None and not request.persistence:
        phase("counting components")
        search.monitor.stage(f"asking {engine.n_items} items how many components they have, and how sure that is")
        asked = engine if job.evidence is not None else unweighted(engine)
        evidence = job.evidence or float(asked.n_items)
        number = counted(asked, job.given_distortion, request.max_components, evidence, request.seed)
        search.put(number=number)
        search.remark(number.sentence)
        if number.answer < request.min_components:
            search.remark(f"The capacities need {request.min_components} components. For {number.answer}, raise capacity.")
    return Stage.ANNEALING


def _differ(job: Job) -> bool:
    """Whether items differ by more than rounding: those that are annealed, or where they do not, any."""
    for engine in dict.fromkeys((job.annealed, job.distinct)):
        apart = spread(engine, job.distortion)
        if apart > finest(job.distinct, job.distortion, apart):
            return True
    return False


def _anneal(job: Job, search: Search) -> Stage:
    """The start of the search: components that the annealing tells apart."""
    phase("annealing")
    small, distortion, request = job.annealed, job.distortion, job.request
    if _sketchable(job, search, job.wanted) and request.n_components is not None and request.growth is None:
        return _sketched(job, search, Stage.ANNEALING)
    asked, reached = request.n_components, request.n_components or request.max_components
    careful = asked is None or request.growth is not None
    if search.run.number is not None:
        found = max(search.run.number.answer, request.min_components)
        reached = min(max(found + BUDGET.room, int(BUDGET.rooms * found)), request.max_components)

    def note(record: Temperature) -> None:
        search.temperature(record)
        at(record.n_components / (reached + 1), f"β {record.beta:.4g}, {record.n_components} of {reached} components")

    annealing = Annealing(
        engine=small,
        distortion=distortion,
        schedule=_schedule(request),
        tol=request.tol**2 if careful else request.tol,
        max_passes=request.max_iter if careful else min(request.max_iter, BUDGET.loose_passes),
        max_beta=0.01 / max(finest(small, distortion), np.finfo(float).tiny),
        note=note,
        thorough=careful,
    )
    state = annealing.run(reached, beyond=asked is None)
    if careful:  # a leap of β past several transitions locates none of them
        search.put(critical_betas=np.sort(annealing.critical_betas)[:reached])
    if asked is None:
        if request.persistence:
            found = max(_most_persistent(annealing, job, search), request.min_components)
        state = annealing.states[max(m for m in annealing.states if m <= found)]
    if not request.refine:
        state = annealing.harden(state)
    search.put(splits=tuple(tree(annealing.splits, state.ids)))
    if careful and not annealing.converged:
        search.fault(Status.ANNEALING)
    wanted = max(asked or found, request.min_components)
    search.put(centers=np.vstack([state.centers, *[state.centers[:1]] * (wanted - state.n_components)]))
    return Stage.PLACES


def _schedule(request: Request) -> Schedule:
    if request.growth is not None:
        return Geometric(request.growth)
    return Adaptive() if request.n_components is None else Adaptive(overshoot=3.0, locate=False)


def _most_persistent(annealing: Annealing, job: Job, search: Search) -> int:
    """The number of components, as many as the capacities need at least, that persists longest, and a word about it."""
    betas, least = search.run.critical_betas, job.request.min_components
    found = len(betas) + 1
    # As many components as distinct items say nothing, unless the items repeat; how often does not depend on the unit of the weights.
    repeated = (job.evidence or float(job.annealed.n_items)) >= 2 * found
    endless = annealing.exhausted and (found == 1 or repeated)
    number = most_persistent(betas, endless=endless, least=least)
    lengths = persistence(betas)
    if least > max(number, 1):
        search.remark(f"The capacities need {least} components; the data alone would give {number}.")
    elif endless and number > 1:
        search.remark(f"There are {number} distinct items, repeated (differences below the rounding of the distances aside).")
    elif number == 1 and annealing.exhausted:
        search.remark("No temperature splits the items: what differs weighs too little. To split them, set n_components.")
    elif 1 < (alone := most_persistent(betas, endless=endless)) < least and lengths[alone - 2] >= MIN_PERSISTENCE:
        search.remark(
            f"{alone} components persist longest, over a factor {np.exp(lengths[alone - 2]):.3g} in β, but the capacities need at least "
            f"{least}; of those, {number} last longest. For {alone}, raise capacity."
        )
    elif number == 1 or lengths[number - 2] < MIN_PERSISTENCE:
        longest = "fewer than two transitions were met"
        if number > 1:
            longest = f"the longest persistence is {lengths[number - 2]:.2f} at {number} components, below {MIN_PERSISTENCE:.2f}"
        search.remark(
            f"Nothing persists: {longest}. The data may have no separate parts; look at persistence_, raise max_components, or set "
            "n_components."
        )
    else:
        search.remark(f"{number} components persist longest, over a factor {np.exp(lengths[number - 2]):.3g} in β.")
    return number


# -- free components --------------------------------------------------------------------------------------------------------------


def _place(job: Job, search: Search) -> Stage:
    """What the bounds make of the components, now that their number is known; and whether better free ones are worth a search."""
    engine, distortion, request, centers = job.items, job.distortion, job.request, search.run.centers
    bounds = job.bounds(request.n_components or max(len(centers), request.min_components))
    if bounds is not None:
        search.under(bounds, assigning(engine, distortion, bounds), placed(engine, distortion, bounds.taken(bounds.order), centers).centers)
    if not request.refine:
        search.put(centers=refilled(engine, distortion, centers))
        return Stage.WITHIN_BOUNDS
    if bounds is not None and _far_out(job, search, bounds):
        return Stage.WITHIN_BOUNDS
    search.monitor.stage(f"refining {len(search.run.centers)} components on {engine.n_items} items")
    return _sketched(job, search, Stage.PLACES) if _sketchable(job, search, len(centers)) else Stage.SAMPLES


def _sketchable(job: Job, search: Search, n_components: int) -> bool:
    """Whether free components are sought in a sketch of the items first."""
    return job.request.refine and search.run.bounds is None and n_components > 1 and wide(job.distinct, job.distortion, n_components)


def _sketched(job: Job, search: Search, begin: Stage) -> Stage:
    """The best components in a sketch of the items, which has the same stages, from ``begin`` on; what is left is to refine them."""
    run, wanted = search.run, job.wanted if begin is Stage.ANNEALING else len(search.run.centers)
    sketch = Sketch.of(job.distinct, job.distortion, wanted, job.request.seed)
    small = Job.of(sketch.engine, replace(job.request, n_components=wanted), rough=True)
    found = begun(small, search.monitor)
    found.put(stage=begin)
    if begin is Stage.PLACES:
        found.put(centers=small.distortion.to_frame(sketch.seen(run.centers)))

    def lifted(centers: Array) -> Array:
        return sketch.lifted(small.distortion.to_data(centers))

    try:
        for rough in stages(small, found):
            if rough.stage is Stage.ALL_ITEMS:
                break
    finally:  # where the fit is stopped, this is what it has found
        search.put(sketch=(lifted(found.run.best.centers), None))
    temperatures = tuple(replace(each, centers=lifted(each.centers)) for each in rough.temperatures)
    search.put(centers=lifted(rough.centers), temperatures=run.temperatures + temperatures, splits=run.splits + rough.splits)
    return Stage.ALL_ITEMS


def _far_out(job: Job, search: Search, bounds: Bounds) -> bool:
    """Whether free components, refined on a sample, leave too many items out of the bounds; if so, the search within them begins there."""
    engine, distortion = job.items, job.distortion
    if engine.n_items <= BUDGET.bounded_search_items:
        return False
    few = sample(engine, BUDGET.bounded_search_items, job.request.seed)
    assigner, centers = Free(few, distortion), search.run.centers
    part = _alternated(assigner, job.request, centers)
    if part is not None:
        centers = rehearsed(few, distortion, part, assigner, BUDGET.max_tries).centers
    free = placed(engine, distortion, bounds, centers)
    allowed = BUDGET.far_out if engine.n_items <= BUDGET.easy_items else BUDGET.hardly_out
    far = bounds.outside(loads(engine, free.labels, free.n_components)) > allowed * engine.n_items
    if far:
        search.put(centers=centers)
    return far


def _sample(job: Job, search: Search) -> Stage:
    """Better free components by swaps on a sample, of which the next is larger.

    What is better on a sample is tried on all items, and each sample begins at the best of them so far: more time is never worse.
    """
    engine, distortion, run = job.distinct, job.distortion, search.run
    if not _sampled(job, run.n_samples, len(run.centers)):
        return Stage.ALL_ITEMS
    phase("searching on samples")
    free = search if run.bounds is None else Search(Run(run.free or Answer(run.centers)), Free(engine, distortion).assigned, search.monitor)
    few = coreset(engine, distortion, BUDGET.search_items[run.n_samples], job.request.seed, run.centers)
    at(run.n_samples / len(BUDGET.search_items), f"{few.n_items} of {engine.n_items} items")
    gained = _sample_search(few, job, free, run.centers, first=run.n_samples == 0)
    best = free.run.best
    search.put(centers=best.centers, free=None if run.bounds is None else best, n_samples=run.n_samples + 1)
    return Stage.SAMPLES if gained else Stage.ALL_ITEMS  # nor will larger samples gain much


def _sampled(job: Job, n_samples: int, n_components: int) -> bool:
    """Whether a sample comes next: a sketch is searched even where it has no more items, and only the first sample at any price."""
    if n_samples == len(BUDGET.search_items):
        return False
    n_items, first = BUDGET.search_items[n_samples], n_samples == 0
    dear = n_items * n_components * (job.distinct.n_dims + 10) > BUDGET.sample_work
    return (n_items < job.distinct.n_items or (job.rough and first)) and (first or not dear)


def _sample_search(few: Engine, job: Job, search: Search, centers: Array, *, first: bool) -> bool:
    """Whether swaps gain on a sample; they are tried on all items whenever that costs no more than what was done in between.

    What gains on the sample and, again and again, not on all items is its noise: the search goes on elsewhere.

    The first sample also sees starts that owe nothing to the annealing: where noise has many dimensions, that tells few parts apart, and
    what is opened beside a part that holds almost everything stays alone.
    """
    start = _alternated(Free(few, job.distortion), job.request, centers)
    if start is None:
        return False
    if first and not separated(few, job.distortion, start):
        start = _fresh(few, job, search, start) or start
    best, tried, passes, in_vain = start, None, 0, 0
    for best in gains(few, job.distortion, start, BUDGET.sketch_gain if job.rough else BUDGET.sample_gain):
        if (few.passes - passes) * few.n_items >= job.distinct.n_items:
            before = search.run.best
            search.propose(best.centers)
            tried, passes = best, few.passes
            in_vain = in_vain + 1 if best is not start and search.run.best is before else 0
            if in_vain == BUDGET.sample_vain:
                break
    if best is not tried:
        search.propose(best.centers)
    return best is not start


def _fresh(few: Engine, job: Job, search: Search, start: Partition) -> Partition | None:
    """Where alternation leads from items that are far apart, if on a sample that is below where the annealing led.

    What a sample says then is little, so that all items are looked at first, unless they are many.
    """
    for centers in far_apart(few, job.distortion, start.n_components, BUDGET.sample_starts, job.request.seed):
        part = alternate(few, job.distortion, centers, max_passes=job.request.max_iter)
        if part is not None and part.cost < start.cost:
            if job.rough or many(job.distinct):
                return part
            whole = _alternated(Free(job.distinct, job.distortion, search.keep), job.request, centers)
            return None if whole is None else _alternated(Free(few, job.distortion), job.request, whole.centers)
    return None


def _all_items(job: Job, search: Search) -> Stage:
    """The best free components, on all items."""
    phase("refining")
    engine, distortion, centers = job.distinct, job.distortion, search.run.centers
    assigner = Free(engine, distortion, search.keep if search.run.bounds is None else search.sketching())
    part = _alternated(assigner, job.request, centers)
    if part is not None and not part.at_rest:
        search.fault(Status.ALTERNATION)
    better = moved if _sketchable(job, search, len(centers)) else refine  # a sketch was searched for swaps
    part = assigner.assigned(refilled(engine, distortion, centers)) if part is None else better(engine, distortion, part, assigner)
    search.put(centers=sharpened(engine, distortion, part))
    return Stage.WITHIN_BOUNDS


def _given(job: Job, search: Search) -> Stage:
    """The free components to which the start that was given leads, where they cost less than those that were found without it."""
    engine, distortion, best = job.distinct, job.distortion, search.run.best
    if job.start is None or len(best.centers) < job.wanted:  # or items have no more distinct positions
        return Stage.DONE
    phase("refining the given start")
    search.monitor.stage("refining the start that was given")
    assigner = Free(engine, distortion, search.keep)
    best = replace(best, cost=assigner.assigned(best.centers).cost)
    search.put(best=best)
    part = _alternated(assigner, job.request, job.start)
    if part is not None and job.request.refine:
        part = refine(engine, distortion, part, assigner)
    if part is not None and part.cost < best.cost:
        best = Answer(sharpened(engine, distortion, part))
        if not part.at_rest:
            search.fault(Status.ALTERNATION)
    search.put(best=best, sketch=None)
    return Stage.DONE


def _alternated(assigner: Free, request: Request, centers: Array) -> Partition | None:
    """Where alternation leads; None where components empty again and again."""
    engine, distortion = assigner.engine, assigner.distortion
    part = assigner.alternate(centers, max_passes=request.max_iter)
    if part is None:
        centers = refilled(engine, distortion, centers)
        part = assigner.alternate(centers, max_passes=request.max_iter)
    if part is None:  # a component emptied on the way: fill it from where the alternation was going
        centers = refilled(engine, distortion, _nudged(engine, distortion, centers))
        part = assigner.alternate(centers, max_passes=request.max_iter)
    return part


def _nudged(engine: Engine, distortion: Distortion, centers: Array) -> Array:
    """One exact step, keeping components that would empty where they are."""
    stats, _ = nearest_pass(engine, distortion, centers)
    moved = distortion.center(stats.sums, np.maximum(stats.mass, np.finfo(float).tiny))
    return np.where(stats.mass[:, None] > 0, moved, centers)
