"""One factorisation, from an engine to a result: frame, anneal, refine, order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._common.typing import Array, Labels
from ..distortion import REGISTRY
from ..distortion.base import Annealed, Distortion, Moving, Splitting, having
from ..engines.base import BLIND, Engine, block_weight, mean_sqnorm, sample
from ..engines.threads import TimeLimitReached
from ..passes.columns import Renamed, Shapes
from ..passes.hard import HardStats
from ..progress import Monitor, StopRequested, Temperature, plane
from .anneal import Annealing, Split, tree
from .bounded import bounded_solver, solver_needs
from .bounded.assigner import Bounded
from .bounded.base import Relaxed, loads
from .bounded.bounds import Bounds, parse_bounds, parse_loads
from .bounded.dual import weighed
from .bounded.exhaustive import best_of_all
from .budget import BUDGET
from .number import Number, number_of_components
from .number.cloud import effective_number
from .partition import (
    Free,
    Keep,
    Partition,
    alternate,
    finest,
    item_points,
    labelled_pass,
    nearest_pass,
    opened,
    refilled,
    sharpened,
    spread,
)
from .refine import gains, refine, rehearsed
from .run import Answer, Assign, Search
from .sampling import coreset, mergeable, merged, unweighted
from .schedule import Adaptive, Geometric, Schedule
from .span import Span, narrow
from .status import Status
from .transitions import MIN_PERSISTENCE, most_persistent, persistence

# max_components when it is not given.
MAX_COMPONENTS = 32


# Centres and prices from which to alternate.
Start = tuple[Array, Array | None]


@dataclass(frozen=True)
class Request:
    """What is asked of a factorisation; the parameters of the estimator, validated.

    ``n_components`` is None where the data decide, then between ``min_components`` and ``max_components``; ``persistence`` says that the
    number that persists longest is taken; ``penalty`` is ``capacity_penalty`` in the units of the engine.
    """

    n_components: int | None
    persistence: bool
    min_components: int
    max_components: int
    scaling: str
    growth: float | None
    refine: bool
    capacity: Any
    min_size: Any
    capacity_penalty: float | None
    total_size: float
    solver: str
    solver_parameters: Any
    rounding: str
    tol: float
    max_iter: int
    seed: int
    penalty: float = np.inf


@dataclass(frozen=True)
class Result:
    """A partition of the items, with the annealing that led to it.

    Attributes
    ----------
    distortion : Distortion
        The loss in its frame.
    centers : ndarray of shape (n_components, n_dims)
        In the scaled units of the engine, nonnegative.
    labels : column of shape (n_items,)
        Owned by the engine.
    critical_betas : ndarray of shape (m,)
        The β at which 2, 3, … components first exist.
    temperatures : list of Temperature
    splits : list of Split
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
    """

    distortion: Distortion
    centers: Array
    labels: Any
    critical_betas: Array
    temperatures: list[Temperature]
    splits: list[Split]
    plane: Array
    status: Status
    sentences: str
    bounds: Bounds | None = None
    prices: Array | None = None
    kkt_residual: float | None = None
    number: Number | None = None
    stability: Array = field(default_factory=lambda: np.zeros(0))


def factorize(engine: Engine, request: Request, monitor: Monitor) -> Result:
    """Anneal, refine and order the components; when the time is over or a callback says so, take the best answer so far."""
    team = engine.team
    with team.unhurried():  # without a first answer there is nothing to show
        request = replace(request, penalty=_penalty(engine, request))
        given = _distinct(engine)
        distortion = _able(REGISTRY[request.scaling].of(given), request)
        span = Span.of(engine, distortion) if narrow(engine, distortion) else None
        whole, distinct, frame = engine, given, distortion
        if span is not None:
            whole, distinct, frame = span.engine, _distinct(span.engine), _able(span.distortion, request)
        # Free components hold equal items together; bounds count every one.
        free = _bounds(whole, request, request.n_components or request.min_components) is None
        work = distinct if free else whole
        small = _small(distinct, frame, request)
        counted = small if span is None or request.n_components is not None else _small(given, distortion, request)
        search = _first_answer(work, small, frame, request)
        search.evidence = effective_number(block_weight(engine, slice(0, engine.n_items))) if small is distinct else None
    try:
        apart = spread(distinct, frame)
        if apart <= finest(distinct, frame, apart):
            search.centers = frame.origin
            search.remarks.append(distortion.alike)
        else:
            if request.n_components is None and not request.persistence:
                _number(counted, distortion, request, monitor, search)
            _anneal(small, frame, request, monitor, search)
        _settle(work, distinct, frame, request, monitor, search)
    except TimeLimitReached:
        search.fault(Status.TIME_LIMIT)
    except StopRequested:
        search.fault(Status.CALLBACK)
    with team.unhurried():
        search.tried()
        engine.passes += sum({other: other.passes for other in (given, whole, distinct) if other is not engine}.values())
        basis = plane(item_points(whole, frame, _spaced(whole.n_items, min(BUDGET.plane_items, 2 + BUDGET.plane_numbers // whole.n_dims))))
        if span is not None:
            search.best = replace(search.best, centers=span.lifted(search.best.centers))
        return _finished(engine, counted, distortion, search, monitor, basis)


def _able(distortion: Distortion, request: Request) -> Annealed:
    """The loss, if it has what every stage of this fit needs."""
    having(distortion, Splitting, "The annealing")
    if request.refine:
        having(distortion, Moving, "refine=True")
    if request.capacity is not None or request.min_size is not None:
        having(distortion, solver_needs(request.solver), f"solver={request.solver!r}")
    return cast(Annealed, distortion)


def _distinct(engine: Engine) -> Engine:
    """Equal items as one, where a copy of all is small."""
    return merged(engine)[0] if mergeable(engine) else engine


def _penalty(engine: Engine, request: Request) -> float:
    """What an item out of a soft bound costs, in the units of the engine; infinite where bounds are hard."""
    return np.inf if request.capacity_penalty is None else request.capacity_penalty * mean_sqnorm(engine)


def _small(engine: Engine, distortion: Annealed, request: Request) -> Engine:
    """The items that are annealed."""
    asked = request.n_components
    few = BUDGET.rank_items if asked is None else max(BUDGET.anneal_items, BUDGET.anneal_items_per_component * asked)
    return coreset(engine, distortion, few, request.seed)


def _first_answer(engine: Engine, small: Engine, distortion: Annealed, request: Request) -> Search:
    """As many components as asked for, far apart, within the bounds; and time kept back for what follows the search."""
    wanted = request.n_components or request.min_components
    centers = opened(small, distortion, distortion.origin, wanted)
    rough = alternate(small, distortion, centers, max_passes=BUDGET.loose_passes)
    centers = opened(engine, distortion, centers, wanted) if rough is None or len(centers) < wanted else rough.centers
    bounds = _bounds(engine, request, wanted)
    began = engine.team.clock()
    search = Search.of(bounds, *_within(engine, distortion, bounds, centers))
    seconds = engine.team.clock() - began
    grace = max(BUDGET.grace_seconds, BUDGET.grace * engine.team.left())
    engine.team.reserve = max(BUDGET.end_answers * seconds + BUDGET.end_passes * engine.pass_seconds - grace / 2, 0.0)
    return search


def _within(engine: Engine, distortion: Annealed, bounds: Bounds | None, centers: Array) -> tuple[Assign, Array]:
    """Who gives all items to components within the bounds, the roomiest first, and centres for them."""
    if bounds is None:
        return Free(engine, distortion).assigned, centers
    ordered = bounds.taken(bounds.order)
    placed = _placed(engine, distortion, ordered, centers).centers
    if engine.size is not None:
        return partial(_nearest_loads, engine, distortion, ordered), placed
    return partial(_assigned, Bounded(engine, distortion, ordered)), placed


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


def _anneal(small: Engine, distortion: Annealed, request: Request, monitor: Monitor, search: Search) -> None:
    """The start of the search: components that the annealing tells apart."""
    asked, reached = request.n_components, request.n_components or request.max_components
    careful = asked is None or request.growth is not None
    if search.number is not None:
        found = max(search.number.answer, request.min_components)
        reached = min(max(found + BUDGET.room, int(BUDGET.rooms * found)), request.max_components)
    annealing = Annealing(
        engine=small,
        distortion=distortion,
        schedule=_schedule(request),
        tol=request.tol**2 if careful else request.tol,
        max_passes=request.max_iter if careful else min(request.max_iter, BUDGET.loose_passes),
        max_beta=0.01 / max(finest(small, distortion), np.finfo(float).tiny),
        monitor=monitor,
        thorough=careful,
    )
    state = annealing.run(reached, beyond=asked is None)
    if careful:  # a leap of β past several transitions locates none of them
        search.critical_betas = np.sort(annealing.critical_betas)[:reached]
    if asked is None:
        if request.persistence:
            found = max(_most_persistent(annealing, search, small, request.min_components), request.min_components)
        state = annealing.states[max(m for m in annealing.states if m <= found)]
    if not request.refine:
        state = annealing.harden(state)
    search.splits = tree(annealing.splits, state.ids)
    if careful and not annealing.converged:
        search.fault(Status.ANNEALING)
    wanted = max(asked or found, request.min_components)
    search.centers = np.vstack([state.centers, *[state.centers[:1]] * (wanted - state.n_components)])


def _schedule(request: Request) -> Schedule:
    if request.growth is not None:
        return Geometric(request.growth)
    return Adaptive() if request.n_components is None else Adaptive(overshoot=3.0, locate=False)


def _number(engine: Engine, distortion: Annealed, request: Request, monitor: Monitor, search: Search) -> None:
    """The number of components that the data give, and a word about it."""
    least = request.min_components
    monitor.stage(f"asking {engine.n_items} items how many components they have, and how sure that is")
    asked = engine if search.evidence is not None else unweighted(engine)
    number = number_of_components(asked, distortion, request.max_components, search.evidence or float(asked.n_items), request.seed)
    search.number = number
    search.remarks.append(number.sentence)
    if number.answer < least:
        search.remarks.append(f"The capacities need {least} components. For {number.answer}, raise capacity.")


def _most_persistent(annealing: Annealing, search: Search, engine: Engine, least: int) -> int:
    """The number of components, at least ``least``, that persists longest, and a word about it."""
    found = len(search.critical_betas) + 1
    # As many components as distinct items say nothing, unless the items repeat; how often does not depend on the unit of the weights.
    repeated = (search.evidence or float(engine.n_items)) >= 2 * found
    endless = annealing.exhausted and (found == 1 or repeated)
    number = most_persistent(search.critical_betas, endless=endless, least=least)
    lengths = persistence(search.critical_betas)
    if least > max(number, 1):
        search.remarks.append(f"The capacities need {least} components; the data alone would give {number}.")
    elif endless and number > 1:
        search.remarks.append(f"There are {number} distinct items, repeated (differences below the rounding of the distances aside).")
    elif number == 1 and annealing.exhausted:
        search.remarks.append("No temperature splits the items: what differs weighs too little. To split them, set n_components.")
    elif 1 < (alone := most_persistent(search.critical_betas, endless=endless)) < least and lengths[alone - 2] >= MIN_PERSISTENCE:
        search.remarks.append(
            f"{alone} components persist longest, over a factor {np.exp(lengths[alone - 2]):.3g} in β, but the capacities need at least "
            f"{least}; of those, {number} last longest. For {alone}, raise capacity."
        )
    elif number == 1 or lengths[number - 2] < MIN_PERSISTENCE:
        longest = "fewer than two transitions were met"
        if number > 1:
            longest = f"the longest persistence is {lengths[number - 2]:.2f} at {number} components, below {MIN_PERSISTENCE:.2f}"
        search.remarks.append(
            f"Nothing persists: {longest}. The data may have no separate parts; look at persistence_, raise max_components, or set "
            "n_components."
        )
    else:
        search.remarks.append(f"{number} components persist longest, over a factor {np.exp(lengths[number - 2]):.3g} in β.")
    return number


def _settle(engine: Engine, distinct: Engine, distortion: Annealed, request: Request, monitor: Monitor, search: Search) -> None:
    """The end of the search, on all items; free components are sought on the ``distinct`` ones."""
    n_components = request.n_components or max(len(search.centers), request.min_components)
    bounds = _bounds(engine, request, n_components)
    if bounds is not None:
        search.under(bounds, *_within(engine, distortion, bounds, search.centers))
    if not request.refine:
        search.centers = refilled(engine, distortion, search.centers)
    elif bounds is None or not _far_out(engine, distortion, request, search, bounds):
        monitor.stage(f"refining {len(search.centers)} components on {engine.n_items} items")
        _free_search(distinct, distortion, request, search, bounds)
    if bounds is not None:
        _bound_search(engine, distortion, request, monitor, search, bounds)
    else:
        search.end(Answer(search.centers))


def _far_out(engine: Engine, distortion: Annealed, request: Request, search: Search, bounds: Bounds) -> bool:
    """Whether the free components of a sample are too far out of the bounds to become the answer; if so, they are kept."""
    if engine.n_items <= BUDGET.bounded_search_items:
        return False
    annealed = search.centers
    _improve(sample(engine, BUDGET.bounded_search_items, request.seed), distortion, request, search, BUDGET.max_tries)
    free = _placed(engine, distortion, bounds, search.centers)
    allowed = BUDGET.far_out if engine.n_items <= BUDGET.easy_items else BUDGET.hardly_out
    far = bounds.outside(loads(engine, free.labels, free.n_components)) > allowed * engine.n_items
    search.centers = search.centers if far else annealed
    return far


def _bounds(engine: Engine, request: Request, n_components: int) -> Bounds | None:
    """The bounds that were asked for; None where they exclude nothing, and no flow is to be seen under them."""
    if engine.size is not None:
        return parse_loads(request.capacity, request.min_size, n_components, engine.n_items, request.total_size, request.penalty)
    bounds = parse_bounds(request.capacity, request.min_size, n_components, engine.n_items, request.penalty)
    idle = bounds is not None and not bounds.bind(engine.n_items) and request.solver != "cbf"
    return None if idle else bounds


def _free_search(engine: Engine, distortion: Annealed, request: Request, search: Search, bounds: Bounds | None) -> None:
    """The best free components: by swaps on samples that grow, then on all items.

    What is better on a sample is tried on all items, and each stage begins at the best of them so far: more time is never worse.
    """
    free = search if bounds is None else Search(None, Free(engine, distortion).assigned, Answer(search.centers))
    for size in BUDGET.search_items:
        if size >= engine.n_items:
            break
        few = coreset(engine, distortion, size, request.seed, search.centers)
        gained = _sample_search(few, distortion, request, free, search.centers, engine.n_items)
        search.centers = free.best.centers
        if not gained:  # nor will larger samples gain much
            break
    whole = Free(engine, distortion, search.keep if bounds is None else search.sketching())
    part = _alternated(whole, request, search.centers)
    if part is not None and not part.at_rest:
        search.fault(Status.ALTERNATION)
    centers = refilled(engine, distortion, search.centers) if part is None else refine(engine, distortion, part, whole).centers
    search.centers = sharpened(engine, distortion, centers)


def _sample_search(few: Engine, distortion: Annealed, request: Request, search: Search, centers: Array, n_items: int) -> bool:
    """Whether swaps gain on a sample; they are tried on all items whenever that costs no more than what was done in between."""
    start = _alternated(Free(few, distortion), request, centers)
    if start is None:
        return False
    best, tried, passes = start, None, 0
    for best in gains(few, distortion, start):
        if (few.passes - passes) * few.n_items >= n_items:
            search.propose(best.centers)
            tried, passes = best, few.passes
    if best is not tried:
        search.propose(best.centers)
    return best is not start


def _improve(engine: Engine, distortion: Annealed, request: Request, search: Search, n_tries: int) -> None:
    """Better free components on the items of a sample, by swaps while one of ``n_tries`` gains."""
    assigner = Free(engine, distortion)
    part = _alternated(assigner, request, search.centers)
    if part is not None:
        search.centers = rehearsed(engine, distortion, part, assigner, n_tries).centers


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


# -- under bounds ---------------------------------------------------------------------------------------------------------------


def _bound_search(engine: Engine, distortion: Annealed, request: Request, monitor: Monitor, search: Search, bounds: Bounds) -> None:
    """From the solver's relaxed solution, and from the free components made feasible, to the better of the two, refined.

    The roomiest component comes first, so that the order of the bounds does not matter.
    """
    order = bounds.order
    ordered = bounds.taken(order)
    free = _placed(engine, distortion, ordered, search.centers)
    search.tried()
    solve = bounded_solver(request.solver)
    relaxed = solve(engine, distortion, ordered, monitor, request.solver_parameters, seed=request.seed, offer=search.offer)
    search.kkt_residual = relaxed.kkt_residual
    if relaxed.status is not Status.CONVERGED:
        search.fault(relaxed.status)
    if engine.size is not None:
        found = weighed(engine, distortion, ordered, monitor, relaxed)
    elif request.rounding == "nearest":
        found = relaxed.nearest(engine, distortion)
        over = int(np.maximum(found.stats.sizes - ordered.upper, 0).max())
        search.remarks += [f"Rounded to the nearest: a capacity is exceeded by {over}."] if over else []
    else:
        found = _rounded(engine, distortion, request, ordered, relaxed, free, search)
    if not found.at_rest:
        search.fault(Status.ALTERNATION)
    if outside := bounds.soft * ordered.outside(loads(engine, found.labels, len(order))):
        unit = request.total_size / engine.n_items  # of the sizes that the user gave; 1 where items are counted
        whole = f"{engine.n_items} items are" if engine.size is None else f"a total size of {request.total_size:.6g} is"
        search.remarks.append(f"{outside * unit:.6g} of {whole} out of the soft bounds.")
    search.end(Answer(found.centers, found.labels, found.prices, found.cost))


def _placed(engine: Engine, distortion: Annealed, bounds: Bounds, centers: Array) -> Partition:
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
        best = _rehearsed(engine, distortion, request, assigner, starts, search.sketching)
    return assigner.settled(best, request.max_iter)


def _rehearsed(
    engine: Engine, distortion: Annealed, request: Request, assigner: Bounded, starts: list[Start], keep: Callable[[], Keep]
) -> Partition:
    """The better of the starts on samples that grow, each told to a ``keep`` of its own, and then on all items."""
    size = BUDGET.rehearsal_items
    while 2 * size < engine.n_items:
        small = sample(engine, size, request.seed)
        rehearsal = Bounded(small, distortion, assigner.bounds.scaled(engine.n_items, small.n_items), keep=keep())
        best = _better_of(rehearsal, starts, request.max_iter)
        if len(starts) > 1 and (n_tries := min(engine.n_items // BUDGET.try_items, BUDGET.max_tries)):
            best = rehearsed(small, distortion, best, rehearsal, n_tries)
        starts, size = [(best.centers, best.prices)], size * BUDGET.rehearsal_growth
    return _better_of(assigner, starts, request.max_iter)


def _better_of(assigner: Bounded, starts: list[Start], max_passes: int) -> Partition:
    """Where the best of some centres and prices leads."""
    ends = (assigner.alternate(*start, max_passes=max_passes) for start in starts)
    return min((end for end in ends if end is not None), key=lambda end: end.cost)


def _nudged(engine: Engine, distortion: Distortion, centers: Array) -> Array:
    """One exact step, keeping components that would empty where they are."""
    stats, _ = nearest_pass(engine, distortion, centers)
    moved = distortion.center(stats.sums, np.maximum(stats.mass, np.finfo(float).tiny))
    return np.where(stats.mass[:, None] > 0, moved, centers)


def _finished(engine: Engine, small: Engine, distortion: Annealed, search: Search, monitor: Monitor, basis: Array) -> Result:
    """Nonnegative centres, ordered by mass, and the last labels."""
    best, bounds = search.best, search.bounds
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
        distortion=distortion,
        centers=centers[order],
        labels=_renamed(engine, labels, rank),
        critical_betas=search.critical_betas,
        temperatures=monitor.temperatures,
        splits=search.splits,
        plane=basis,
        status=search.status,
        sentences=search.sentences,
        bounds=bounds,
        prices=None if prices is None else prices[order],
        kkt_residual=search.kkt_residual,
        number=search.number,
        stability=_stability(small, distortion, search.number, centers[order]),
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
    first = engine.run(BLIND, Shapes(len(stats.mass)), {"labels": labels}).total.first
    used = np.flatnonzero(stats.sizes)
    return used[np.lexsort((first[used], -stats.mass[used]))]


def _spaced(n_items: int, count: int) -> Labels:
    return np.unique(np.linspace(0, n_items - 1, min(count, n_items)).astype(np.intp))
