"""Items to components under integer bounds on their sizes: the transportation problem, solved exactly.

n items, k components, costs c_ij, sizes l_j ≤ n_j ≤ u_j: minimise Σ_i c_{i, label(i)}. With prices π, labels
within the bounds are optimal iff every term of the gap vanishes::

    gap = Σ_i (c_{i, label(i)} + π_{label(i)} − min_j (c_ij + π_j)) + Σ_j π_j⁺ (u_j − n_j) + π_j⁻ (n_j − l_j)

1. *Prices.* The optimum of a sample of an eighth of the items, found in the same way, then Newton steps on
   the sizes n_j(π) when every item goes where c_ij + π_j is least. A step that leaves q items out of place is
   followed by one that leaves about √q. Where Newton's steps lead nowhere, one price at a time.
2. *Repair.* Those items travel along shortest paths of the residual graph, which has only k + 1 nodes: the
   arc j → l weighs min (c_il − c_ij) over the items i of j, and the last node, the *depot*, holds what the
   bounds leave free. The costs of the items near a border, the *pool*, are kept; a bound on all the others
   says when the pool has to grow.
3. *Proof.* One pass finds the weights of all arcs. Without a negative cycle the labels are optimal, and the
   distances are their prices.

Everything is a pass over blocks of items; nothing n × k is held. Lengths are sums of differences of costs,
never of prices carried along, so that costs of very different scales do no harm: with costs ≥ 0 no price of
the proof exceeds the cost of the assignment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise, product
from typing import Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._common.typing import Array, Labels
from ...exceptions import InfeasibleCapacityError, IntegrityError, InvalidInputError

__all__ = ["COSTS_PER_MOVE", "Assignment", "Costs", "HeldCosts", "Nearest", "Survey", "certify", "draft", "nearest", "transport"]

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Rows of a block of a plain array: with twenty components it fits a second-level cache.
BLOCK = 8192
# Smallest sample, and one in how many items is sampled.
SAMPLE, SAMPLING = 256, 8
# A pass reads this many costs in the time of one augmentation (0.1 ms): what a Newton step has to save.
COSTS_PER_MOVE = 65536
# Prices that leave a larger share of the items out of place are no start. Those of a sample are found at once then, and where Newton's
# steps leave as many moves to be made as take the time of so many passes: of 400 000 items, 14 677 moves took 33 s.
FAR_OUT, SAMPLE_MOVES = 1 / 16, 8
# On few items it is the number of steps, not of costs, that takes time: fewer items out of place than this are moved one by one.
NEWTON_MOVES = 8
# The share of the items out of place that a Newton step has to leave at most.
PROGRESS = 0.7
# Items of the pool for each component, and for each item out of place; most costs added at once (32 MiB).
POOL, POOL_PER_MOVE, POOL_COSTS = 512, 16, 2**22
# Of all items so many times as many are looked at first for those near a border: of a million in 20 components 35 ms, where a look at all
# items for each component took 91.
NEAR_TIMES = 4
# Stands for a border of width zero, where items tie; any number of items over it is finite.
TINY = 1e-280
EPS = float(np.finfo(np.float64).eps)


@runtime_checkable
class Costs(Protocol):
    """Costs that are read block by block, as often as needed; every pass gives each item once, in order."""

    @property
    def n_items(self) -> int:
        """How many items."""

    @property
    def n_components(self) -> int:
        """How many components."""

    def blocks(self) -> Iterable[tuple[slice, Array]]:
        """Yield the place of each block and its costs, (rows, n_components)."""
        ...


@runtime_checkable
class RankedCosts(Costs, Protocol):
    """Costs that know by themselves where every item is cheapest."""

    def two_cheapest(self, prices: Array) -> tuple[Labels, Labels, Array]:
        """Of every item the component where cost and price are least, the next, and what that costs more."""

    def nearest_slacks(self, labels: Labels, runner: Labels, slack: Array, size: int) -> tuple[Array, Array]:
        """Of the items between every two components: how many up to ``size``, and the most slack of those."""

    def taken(self, index: Labels) -> Costs:
        """The costs of some items, to rounding."""

    @property
    def moves_per_pass(self) -> float:
        """Items that are moved one by one in the time of a Newton step, which reads all costs."""


@runtime_checkable
class FarCosts(RankedCosts, Protocol):
    """Costs that are computed where the items are, and need not be brought here to say what labels are worth."""

    def arcs(self, labels: Labels) -> Array:
        """What moves between components cost at least, min (c_il − c_ij) over the items i of j, (k, k); inf where j has none."""

    def worth(self, labels: Labels, prices: Array) -> tuple[float, float]:
        """What the labels cost, and what they cost more at these prices than the cheapest components."""


@runtime_checkable
class QuickCosts(RankedCosts, Protocol):
    """Costs that have loops of their own for what takes longest."""

    def surveyed(self, prices: Array, bounds: tuple[Counts, Counts]) -> Survey:
        """Each item where it is cheapest at these prices, all moved by the constant at which their bounds can sum to n."""

    def repaired(self, survey: Survey, bounds: tuple[Counts, Counts]) -> Array:
        """Send the items out of place along shortest paths: labels, flow and excess in place. Then prices near those of the survey."""


@dataclass(frozen=True)
class Assignment:
    """An assignment and the proof of how good it is.

    Attributes
    ----------
    labels : ndarray of shape (n_items,)
    prices : ndarray of shape (n_components,)
        Positive only where the upper bound is met, negative only where the lower one is.
    cost : float
        Σ_i c_{i, labels_i}, correctly rounded where costs are read here.
    gap : float
        No assignment within the bounds costs less than ``cost - gap``.
    counts : ndarray of shape (n_components,)
    """

    labels: Labels
    prices: Array
    cost: float
    gap: float
    counts: Counts

    @property
    def relative_gap(self) -> float:
        """``gap / |cost|``, and 0 where the gap is."""
        if self.gap == 0:
            return 0.0
        return self.gap / abs(self.cost) if self.cost else math.inf


@dataclass(frozen=True)
class Nearest:
    """Each item in its cheapest component, and by how many items the worst component misses its bounds."""

    labels: Labels
    cost: float
    counts: Counts
    excess: int
    shortfall: int


def transport(costs: ArrayLike | Costs, lower: ArrayLike, upper: ArrayLike, *, prices: ArrayLike | None = None) -> Assignment:
    """Assign every item to one component at least cost, within bounds on the sizes.

    Parameters
    ----------
    costs : array-like of shape (n_items, n_components), or Costs
        Finite costs.
    lower, upper : array-like of int of shape (n_components,)
        Fewest and most items of each component.
    prices : array-like of shape (n_components,), optional
        Where to start. Any values lead to an optimum, good ones sooner.

    Returns
    -------
    Assignment

    Raises
    ------
    InfeasibleCapacityError
        If no assignment is within the bounds.

    Examples
    --------
    >>> result = transport([[0, 1], [0, 5], [0, 9]], lower=[0, 0], upper=[2, 3])
    >>> result.labels.tolist(), result.cost, result.prices.tolist(), result.gap
    ([1, 0, 0], 1.0, [1.0, 0.0], 0.0)
    """
    problem = _problem(costs, lower, upper)
    labels, _ = _drafted(problem, prices)
    return _prove(problem, labels)


def draft(
    costs: ArrayLike | Costs, lower: ArrayLike, upper: ArrayLike, *, prices: ArrayLike | None = None, loose: int = 0
) -> tuple[Labels, Array]:
    """Labels as ``transport`` gives them, up to rounding, and prices near theirs, without the proof: for use on the way.

    Up to ``loose`` items may be out of place: then each item is where it is cheapest at these prices.
    """
    return _drafted(_problem(costs, lower, upper), prices, loose)


def _drafted(problem: _Problem, prices: ArrayLike | None, loose: int = 0) -> tuple[Labels, Array]:
    start = np.zeros(problem.k) if prices is None else np.asarray(prices, dtype=np.float64)
    if start.shape != (problem.k,) or not np.isfinite(start).all():
        raise InvalidInputError(f"prices are {start}; expected {problem.k} finite numbers, or None.")
    survey = _settle(problem, start)
    return (survey.labels, survey.prices) if survey.misplaced <= loose else _repair(problem, survey)


def certify(costs: ArrayLike | Costs, lower: ArrayLike, upper: ArrayLike, *, labels: Labels, prices: Array) -> Assignment:
    """Cost, sizes and gap of ``labels`` (n_items,) at ``prices`` (n_components,); out of bounds it is inf."""
    return _certify(_problem(costs, lower, upper), np.asarray(labels), np.asarray(prices))


def nearest(costs: ArrayLike | Costs, lower: ArrayLike, upper: ArrayLike) -> Nearest:
    """Assign every item to its cheapest component (ties: the first); say how far that misses the bounds."""
    problem = _problem(costs, lower, upper)
    labels, chosen = np.empty(problem.n, dtype=np.intp), np.empty(problem.n)
    for where, block in problem.read():
        labels[where], chosen[where] = block.argmin(axis=1), block.min(axis=1)
    counts = problem.count(labels)
    over, under = int((counts - problem.upper).max()), int((problem.lower - counts).max())
    return Nearest(labels, math.fsum(chosen), counts, excess=max(over, 0), shortfall=max(under, 0))


# --- The problem, read in passes ---


def _nothing() -> None:
    """Nothing to check."""


@dataclass(frozen=True)
class HeldCosts:
    """Costs held as an array (n_items, n_components); ``check`` is called before each block, and may stop what asks for them."""

    array: Array
    check: Callable[[], None] = _nothing

    @property
    def n_items(self) -> int:
        return len(self.array)

    @property
    def n_components(self) -> int:
        return self.array.shape[1]

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        for start in range(0, self.n_items, BLOCK):
            self.check()
            where = slice(start, min(start + BLOCK, self.n_items))
            yield where, self.array[where]


@dataclass(frozen=True)
class _Problem:
    costs: Costs
    lower: Counts
    upper: Counts
    n: int
    k: int
    # The same costs, where they can do more.
    ranked: RankedCosts | None
    quick: QuickCosts | None
    far: FarCosts | None

    @property
    def moves_per_pass(self) -> float:
        """Items that are moved one by one in the time of a Newton step, which reads all costs."""
        return self.n * self.k / COSTS_PER_MOVE if self.ranked is None else self.ranked.moves_per_pass

    @property
    def few_moves(self) -> float:
        """Items out of place that are moved one by one sooner than a Newton step moves them."""
        return self.moves_per_pass + (NEWTON_MOVES if self.quick is None else 0)

    def read(self) -> Iterator[tuple[slice, Array]]:
        """One pass in float64; a cost that is not finite and a pass that is not complete are errors."""
        seen = 0
        for where, block in self.costs.blocks():
            if not np.isfinite(block).all():
                raise InvalidInputError(f"costs of items {where.start} to {where.stop - 1} are not finite.")
            seen += len(block)
            yield where, np.asarray(block, dtype=np.float64)
        if seen != self.n:
            raise IntegrityError(f"a pass over the costs gave {seen} items, expected {self.n}.")

    def take(self, index: Labels) -> Array:
        """Costs of the items ``index``, ascending; (len(index), k)."""
        rows = np.empty((len(index), self.k))
        for where, block in self.read():
            inside = slice(*np.searchsorted(index, (where.start, where.stop)))
            rows[inside] = block[index[inside] - where.start]
        return rows

    def taken(self, index: Labels) -> Costs:
        """The same, held as an array."""
        return HeldCosts(self.take(index)) if self.ranked is None else self.ranked.taken(index)

    def count(self, labels: Labels) -> Counts:
        return np.bincount(labels, minlength=self.k).astype(np.int64)


def _problem(costs: ArrayLike | Costs, lower: ArrayLike, upper: ArrayLike) -> _Problem:
    table = cast(Costs, costs) if hasattr(costs, "blocks") else _as_costs(np.asarray(costs))
    n, k = table.n_items, table.n_components
    low, high = np.asarray(lower, dtype=np.int64), np.asarray(upper, dtype=np.int64)
    if low.shape != (k,) or high.shape != (k,):
        raise InvalidInputError(f"bounds have shapes {low.shape} and {high.shape}; expected ({k},) for both.")
    if (low > high).any():
        j = int((low > high).argmax())
        raise InfeasibleCapacityError(f"component {j} takes at least {low[j]} and at most {high[j]} items.")
    low, high = np.clip(low, 0, None), np.minimum(high, n)  # the sums of the latter cannot overflow
    if (missing := n - high.sum()) > 0:
        raise InfeasibleCapacityError(f"upper bounds leave {missing} of {n} items without a place; raise them.")
    if (missing := low.sum() - n) > 0:
        raise InfeasibleCapacityError(f"lower bounds ask for {missing} more than {n} items; lower them.")
    # Asked for by one name each: to compare a protocol takes as long as to rank a hundred items.
    ranked = cast(RankedCosts, table) if hasattr(table, "two_cheapest") else None
    quick = cast(QuickCosts, table) if hasattr(table, "repaired") else None
    return _Problem(table, low, high, n, k, ranked, quick, cast(FarCosts, table) if hasattr(table, "worth") else None)


def _as_costs(array: Array) -> HeldCosts:
    if array.ndim != 2 or array.size == 0:
        raise InvalidInputError(f"costs have shape {array.shape}; expected (n_items, n_components).")
    return HeldCosts(array)


# --- Prices ---


@dataclass(frozen=True)
class Survey:
    """Each item where c_ij + π_j is least.

    ``slack`` (n,) is what the runner-up costs more; ``flow`` (k,) how many items each component hands to the
    depot, its upper bound at a positive price and its lower one at a negative price; ``excess`` (k + 1,) what
    each node holds too many, the depot last.
    """

    prices: Array
    labels: Labels
    runner: Labels
    slack: Array
    flow: Counts
    excess: Counts

    @cached_property
    def misplaced(self) -> int:
        """Items out of place; of a survey, before any is moved."""
        return int(self.excess[self.excess > 0].sum())


def _settle(problem: _Problem, prices: Array) -> Survey:
    """Prices at which few items are out of place: where Newton's steps from the given ones leave many, from those of a sample."""
    survey, samples = _survey(problem, prices), problem.n > SAMPLING * SAMPLE
    far = survey.misplaced > FAR_OUT * problem.n
    if not (samples and far):
        survey = _stepped(problem, survey)
    if samples and survey.misplaced > min(FAR_OUT * problem.n, SAMPLE_MOVES * problem.moves_per_pass):
        survey = _stepped(problem, _better(survey, _survey(problem, _sampled_prices(problem))))
    return _swept(problem, survey)


def _stepped(problem: _Problem, survey: Survey) -> Survey:
    """Newton's steps, while they leave far fewer items out of place, and these are many."""
    limit = math.inf
    while problem.few_moves < survey.misplaced < limit:
        limit, target = PROGRESS * survey.misplaced, _newton(problem, survey)
        trial = _survey(problem, target)
        if trial.misplaced >= limit:
            trial = _better(trial, _survey(problem, (survey.prices + target) / 2))
        survey = _better(survey, trial)
    return survey


def _swept(problem: _Problem, survey: Survey) -> Survey:
    """Better prices where Newton's steps led nowhere: one at a time, while a sweep over all of them leaves fewer items out of place.

    Of heavy tails the densities at the borders say little: on 313 lognormal items in 12 components, 182 out of place became 24 and
    then none.
    """
    if problem.quick is not None or problem.n * problem.k > POOL_COSTS:
        return survey
    limit, dear, costs = math.inf, NEWTON_MOVES + problem.n * problem.k**2 / COSTS_PER_MOVE, None
    while dear < survey.misplaced < limit:
        limit, costs = PROGRESS * survey.misplaced, problem.take(np.arange(problem.n)) if costs is None else costs
        survey = _better(survey, _survey(problem, _one_by_one(problem, costs, survey)))
    return survey


def _one_by_one(problem: _Problem, costs: Array, survey: Survey) -> Array:
    """Prices, each of them such that its component keeps its bounds while the others stay; those farthest out of bounds come first."""
    prices = survey.prices.copy()
    for j in np.argsort(-np.abs(survey.excess[:-1]), kind="stable"):
        rivals = costs + prices
        rivals[:, j] = np.inf
        # An item comes to j while its price is below this.
        ceiling = np.sort(rivals.min(axis=1) - costs[:, j])
        at_zero = int(np.count_nonzero(ceiling > 0))
        wanted = int(np.clip(at_zero, problem.lower[j], problem.upper[j]))
        # Above the first that is to stay away, below the last that is to come; beyond the ends, a step as wide as they lie apart.
        fence = np.concatenate([[2 * ceiling[0] - ceiling[-1]], ceiling, [2 * ceiling[-1] - ceiling[0]]])
        prices[j] = 0.0 if wanted == at_zero else fence[problem.n - wanted : problem.n - wanted + 2].mean()
    return prices


def _better(one: Survey, other: Survey) -> Survey:
    return one if one.misplaced <= other.misplaced else other


def _survey(problem: _Problem, prices: Array) -> Survey:
    if problem.quick is not None:
        return problem.quick.surveyed(prices, (problem.lower, problem.upper))
    prices = _shift(problem, prices)
    labels, runner, slack = _ranked(problem, prices) if problem.ranked is None else problem.ranked.two_cheapest(prices)
    survey = Survey(prices, labels, runner, slack, *_imbalance(problem, prices, labels))
    if not 0 < survey.misplaced < 2 * np.count_nonzero(slack == 0):
        return survey
    _spread(problem, survey)
    return Survey(prices, labels, runner, slack, *_imbalance(problem, prices, labels))


def _ranked(problem: _Problem, prices: Array) -> tuple[Labels, Labels, Array]:
    """Of every item the cheapest component, the next, and what that costs more."""
    labels, runner = np.empty(problem.n, dtype=np.intp), np.empty(problem.n, dtype=np.intp)
    slack = np.empty(problem.n)
    for where, block in problem.read():
        reduced, rows = block + prices, np.arange(len(block))
        first = reduced.argmin(axis=1)
        least = reduced[rows, first]
        reduced[rows, first] = np.inf
        second = reduced.argmin(axis=1)
        labels[where], runner[where], slack[where] = first, second, reduced[rows, second] - least
    return labels, runner, slack


def _shift(problem: _Problem, prices: Array) -> Array:
    """Add to all prices the constant at which the bounds that they call for can sum to n."""
    order = np.argsort(-prices, kind="stable")
    # The dearest components at their upper bounds, the others at their lower ones, hold:
    room = problem.lower.sum() + np.cumsum((problem.upper - problem.lower)[order])
    return prices - prices[order[np.searchsorted(room, problem.n)]]


def _imbalance(problem: _Problem, prices: Array, labels: Labels) -> tuple[Counts, Counts]:
    """Flow into the depot, (k,), and excess of every node, (k + 1,)."""
    counts = problem.count(labels)
    flow = np.clip(counts, problem.lower, problem.upper)
    flow = np.where(prices > 0, problem.upper, np.where(prices < 0, problem.lower, flow))
    return flow, np.append(counts - flow, flow.sum() - problem.n)


def _spread(problem: _Problem, survey: Survey) -> None:
    """Give each tied item to the first of its components that needs items, else the first that has room."""
    loose, prices = survey.slack == 0, survey.prices
    counts = problem.count(survey.labels[~loose])
    need = np.where(prices > 0, problem.upper, problem.lower) - counts
    spare = np.where(prices == 0, problem.upper - np.maximum(problem.lower, counts), 0)
    for where, block in problem.read():
        items = np.flatnonzero(loose[where])
        reduced = block[items] + prices
        tied = reduced == reduced.min(axis=1, keepdims=True)
        for room, j in product((need, spare), range(problem.k)):
            taken = np.flatnonzero(tied[:, j])[: max(room[j], 0)]
            survey.labels[where.start + items[taken]] = j
            tied[taken] = False
            room[j] -= len(taken)


def _sampled_prices(problem: _Problem) -> Array:
    n = problem.n
    size = min(max(SAMPLE, n // SAMPLING), POOL_COSTS // problem.k)
    chosen = np.sort(np.random.default_rng(0).choice(n, size, replace=False, shuffle=False))
    lower, upper = problem.lower * size // n, -(-problem.upper * size // n)
    return draft(problem.taken(chosen), lower, upper)[1]


def _newton(problem: _Problem, survey: Survey) -> Array:
    """One step on the sizes n(π); their derivative is minus the Laplacian of the densities at the borders."""
    prices, excess = survey.prices, survey.excess[:-1]
    tied = np.bincount(survey.labels[survey.slack == 0], minlength=len(prices))
    # A component at price zero that holds too many items only because they tie stays there.
    free = (prices != 0) | (excess < 0) | (excess > tied)
    density = _densities(problem, survey, max(4, survey.misplaced // len(prices)))
    laplacian = (np.diag(density.sum(axis=1)) - density)[np.ix_(free, free)]
    # Densities of heavy and of light items differ by orders of magnitude: unit diagonal.
    scale = 1 / np.sqrt(np.maximum(laplacian.diagonal(), TINY))
    step = np.linalg.lstsq(laplacian * scale * scale[:, None], scale * excess[free], rcond=None)[0]
    moved = prices.copy()
    moved[free] += scale * step
    # A price that would change its sign calls for the other bound: it stops at zero.
    sign = np.where(prices != 0, np.sign(prices), np.sign(excess))
    return np.where(moved * sign > 0, moved, 0.0)


def _densities(problem: _Problem, survey: Survey, size: int) -> Array:
    """Items per unit of price at the border of every two components, from the ``size`` nearest; (k, k)."""
    between = survey.labels, survey.runner, survey.slack, size
    count, reach = nearest_slacks(problem.k, *between) if problem.ranked is None else problem.ranked.nearest_slacks(*between)
    density = count / np.maximum(2 * reach, TINY)
    np.fill_diagonal(density, 0.0)  # tied items that were given to their runner-up
    return density + density.T


def nearest_slacks(k: int, labels: Labels, runner: Labels, slack: Array, size: int) -> tuple[Array, Array]:
    """Of the items between every two components: how many up to ``size``, and the most slack of those; (k, k), the lower one first."""
    count, reach = np.zeros((2, k, k))
    pair = np.minimum(labels, runner) * k + np.maximum(labels, runner)
    order = np.argsort(pair.astype(np.min_scalar_type(k * k)), kind="stable")  # a radix sort up to 16 bits
    for code, run in _runs(pair[order]):
        near = slack[order[run]]
        last = min(size, len(near)) - 1
        count.flat[code], reach.flat[code] = last + 1, np.partition(near, last)[last]
    return count, reach


def _runs(ordered: Labels) -> Iterator[tuple[int, slice]]:
    """Each value of an ordered array and where it stands."""
    edges = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
    return ((int(ordered[first]), slice(first, stop)) for first, stop in pairwise(edges))


# --- The residual graph ---


def _residual(problem: _Problem, weight: Array, flow: Counts) -> Array:
    """Weights of the arcs between components and depot, (k + 1, k + 1); inf where there is none."""
    k = problem.k
    graph = np.full((k + 1, k + 1), np.inf)
    graph[:k, :k] = weight
    graph[:k, k][flow < problem.upper] = 0.0
    graph[k, :k][flow > problem.lower] = 0.0
    np.fill_diagonal(graph, np.inf)
    return graph


def _arcs(problem: _Problem) -> Mask:
    """All arcs between components, (k, k)."""
    return ~np.eye(problem.k, dtype=bool)


def _relax(graph: Array, start: Array) -> tuple[Array, list[Labels]]:
    """Distances by Bellman and Ford, and the predecessors in each round; unsettled if rounds = nodes."""
    dist, nodes, rounds = start, np.arange(len(start)), []
    incoming = np.ascontiguousarray(graph.T)
    for _ in nodes:
        through = incoming + dist
        before = through.argmin(axis=1)
        length = through[nodes, before]
        better = length < dist
        if not better.any():
            break
        dist = np.where(better, length, dist)
        rounds.append(np.where(better, before, nodes))
    return dist, rounds


def _walk(graph: Array, rounds: list[Labels], node: int) -> list[int]:
    """The shortest path to ``node``, or a negative cycle met on the way."""
    walk = [node]
    for before in reversed(rounds):
        if before[walk[-1]] != walk[-1]:
            walk.append(int(before[walk[-1]]))
    path: list[int] = []
    for node in reversed(walk):
        if node in path:
            cycle = [*path[path.index(node) :], node]
            lengths = [float(graph[arc]) for arc in pairwise(cycle)]
            # Each length was rounded once. Beyond that the cost falls for certain: no cycle comes back.
            if math.fsum(lengths) < -EPS * math.fsum(map(abs, lengths)):
                return cycle
            path = path[: path.index(node)]
        path.append(node)
    return path


# --- Repair ---


class _Pool:
    """The items near a border, with their costs as columns.

    ``weight[j, l]`` is min (c_il − c_ij) over the items i of j in the pool; over those outside it is at least
    ``bound[j, l]``.
    """

    def __init__(self, problem: _Problem, labels: Labels, bound: Array) -> None:
        self.problem, self.labels, self.bound = problem, labels, bound
        self.index: Labels = np.empty(0, dtype=np.intp)
        self.rows: Array = np.empty((problem.k, 0))
        self.weight = np.full((problem.k, problem.k), np.inf)
        self.sharp = False

    def sharpen(self) -> None:
        """The bounds as high as they can be: with what prices say, far components seem to be next door."""
        outside = np.ones(self.problem.n, dtype=bool)
        outside[self.index] = False
        self.bound, self.sharp = _margins(self.problem, self.labels, outside), True

    def widen(self, wanted: Mask) -> None:
        """Add the items that come next on the ``wanted`` arcs, (k, k): c_il − c_ij least above its bound."""
        keys, offset = np.empty(self.problem.n), np.where(wanted, self.bound, -np.inf)
        for where, block in self.problem.read():
            own = self.labels[where]
            keys[where] = (block - offset[own]).min(axis=1) - block[np.arange(len(block)), own]
        keys[self.index] = np.inf
        self.add(keys, wanted, max(POOL * self.problem.k, len(self.index)))

    def add(self, keys: Array, wanted: Mask, size: int) -> None:
        """Add the items of least key, as many from each tail; a key is at most c_il − c_ij less its bound."""
        tails = np.flatnonzero(wanted.any(axis=1)).tolist()
        share = -(-min(size, POOL_COSTS // self.problem.k) // len(tails))
        chosen = []
        for j in tails:
            mine = np.flatnonzero((self.labels == j) & (keys < np.inf))
            first, beyond = _smallest(keys[mine], share)
            chosen.append(mine[first])
            self.bound[j, wanted[j] | (beyond == np.inf)] += beyond
        added = np.sort(np.concatenate(chosen))
        self.index = np.append(self.index, added)
        self.rows = np.concatenate([self.rows, self.problem.take(added).T], axis=1)
        self.owner = self.labels[self.index]
        for j in tails:
            self._weigh(j, np.arange(self.problem.k))

    def add_all(self) -> None:
        """Add every item: nothing is left outside."""
        self.index = np.arange(self.problem.n)
        self.rows = np.ascontiguousarray(self.problem.take(self.index).T)
        self.owner = self.labels.copy()
        self.weight = _margins(self.problem, self.labels)
        self.bound = np.full_like(self.weight, np.inf)

    def graph(self, flow: Counts) -> Array:
        """The residual graph, with the bound where an item outside may be better than all in the pool."""
        return _residual(self.problem, np.minimum(self.weight, self.bound), flow)

    def _weigh(self, j: int, heads: Labels) -> None:
        mine = np.flatnonzero(self.owner == j)
        lengths = self.rows[np.ix_(heads, mine)] - self.rows[j, mine]
        self.weight[j, heads] = lengths.min(axis=1, initial=np.inf)

    def cheapest(self, j: int, head: int) -> Labels:
        """Places in the pool of the items of ``j`` that cost least to move to ``head``: all that tie."""
        mine = np.flatnonzero(self.owner == j)
        return mine[self.rows[head, mine] - self.rows[j, mine] == self.weight[j, head]]

    def move(self, places: Labels, j: int, head: int) -> None:
        """Relabel items; of the weights of ``j`` only those that they determined change."""
        self.owner[places] = head
        self.labels[self.index[places]] = head
        rows = self.rows[:, places]
        self._weigh(j, np.flatnonzero((rows - rows[j]).min(axis=1) == self.weight[j]))
        self.weight[head] = np.minimum(self.weight[head], (rows - rows[head]).min(axis=1))


def _smallest(keys: Array, size: int) -> tuple[Labels, float]:
    """Places of the ``size`` smallest keys (ties: the first), and a lower bound on the others."""
    if len(keys) <= size:
        return np.arange(len(keys)), math.inf
    beyond = np.partition(keys, size)[size]
    below = np.flatnonzero(keys < beyond)
    return np.append(below, np.flatnonzero(keys == beyond)[: size - len(below)]), float(beyond)


def _repair(problem: _Problem, survey: Survey) -> tuple[Labels, Array]:
    """Send the items out of place along shortest paths; the labels stay optimal for their own sizes. Also prices near theirs."""
    if not survey.excess.any():
        return survey.labels, survey.prices
    if problem.quick is not None:
        return survey.labels, problem.quick.repaired(survey, (problem.lower, problem.upper))
    flow, excess = survey.flow.copy(), survey.excess.copy()
    if problem.ranked is not None and problem.n > BLOCK and (found := _repaired_among_few(problem, problem.ranked, survey)) is not None:
        return found
    pool = _Pool(problem, survey.labels, survey.prices[:, None] - survey.prices)
    size = max(POOL * problem.k, POOL_PER_MOVE * survey.misplaced)
    if problem.n <= min(size, BLOCK):
        pool.add_all()
    else:
        pool.add(survey.slack, _arcs(problem), size)
    while excess.any():
        graph = pool.graph(flow)
        dist, rounds = _relax(graph, np.where(excess > 0, 0.0, np.inf))
        sink = int(np.where(excess < 0, dist, np.inf).argmin())
        _follow(pool, _walk(graph, rounds, sink), graph + dist[:, None] <= dist, flow, excess)
    return pool.labels, _prices_near(pool.graph(flow), survey.prices)


def _prices_near(graph: Array, prices: Array) -> Array:
    """Prices that agree with all lengths of the residual graph, as near to the given ones as they allow."""
    dist, _ = _relax(graph, np.append(-prices, 0.0))
    return dist[-1] - dist[:-1]


def _repaired_among_few(problem: _Problem, costs: RankedCosts, survey: Survey) -> tuple[Labels, Array] | None:
    """The same from the items near a border, and those that the prices found tempt away; all others stay where they are.

    None where that takes a large share of the items.
    """
    near, beyond = _near_borders(problem, survey)
    while len(near) < problem.n // 2 and len(near) * problem.k <= POOL_COSTS:
        staying = problem.count(survey.labels) - problem.count(survey.labels[near])
        if (staying > problem.upper).any():
            return None
        few = _problem(costs.taken(near), problem.lower - staying, problem.upper - staying)
        found, _ = _drafted(few, survey.prices)
        labels = survey.labels.copy()
        labels[near] = found
        prices = _prices_near(_residual(problem, _margins(few, found), problem.count(labels)), survey.prices)
        rise = prices - survey.prices
        if (rise - rise.min() <= beyond).all():
            return labels, prices
        tempted = np.setdiff1d(np.flatnonzero(costs.two_cheapest(prices)[0] != labels), near)
        if not tempted.size:
            return labels, prices
        near = np.union1d(near, tempted)
    return None


def _first(slack: Array, size: int) -> Labels:
    """Places of the items of least slack: about so many, and all that tie with the last; none where that is half of all."""
    return np.flatnonzero(slack <= np.partition(slack, size)[size]) if 2 * size < len(slack) else np.empty(0, dtype=np.intp)


def _near_borders(problem: _Problem, survey: Survey) -> tuple[Labels, Array]:
    """Of each component the items of least slack that leave it first and that join it first; and the least slack of the others, (k,)."""
    size, excess = max(POOL, POOL_PER_MOVE * survey.misplaced // problem.k), survey.excess[:-1]
    chosen = np.zeros(problem.n, dtype=bool)
    first = _first(survey.slack, NEAR_TIMES * 2 * size * problem.k)
    for side, going in ((survey.labels, excess), (survey.runner, -excess)):
        early = side[first]
        for j, wanted in enumerate(size + 2 * np.maximum(going, 0)):
            mine = first[early == j]
            mine = mine if len(mine) > wanted else np.flatnonzero(side == j)
            chosen[mine[_smallest(survey.slack[mine], wanted)[0]]] = True
    others = ~chosen
    beyond = np.full(problem.k, np.inf)
    np.minimum.at(beyond, survey.labels[others], survey.slack[others])
    return np.flatnonzero(chosen), beyond


def _cancel(problem: _Problem, labels: Labels, weight: Array) -> None:
    """Cancel negative cycles: what rounding hid where prices are large and differences of costs small."""
    pool = _Pool(problem, labels, weight)
    pool.widen(_arcs(problem))
    flow = problem.count(labels)
    while True:
        graph = pool.graph(flow)
        dist, rounds = _relax(graph, np.zeros(len(graph)))
        cycle = _negative_cycle(graph, rounds)
        if not cycle:
            return
        _follow(pool, cycle, graph + dist[:, None] <= dist, flow, np.zeros(len(graph), dtype=np.int64))


def _follow(pool: _Pool, path: list[int], tight: Mask, flow: Counts, excess: Counts) -> None:
    """Send items along ``path`` if the pool knows its arcs, else widen it, on all ``tight`` arcs at once."""
    unsure = pool.bound < pool.weight
    wanted = np.zeros_like(unsure)
    for j, head in pairwise(path):
        if max(j, head) < len(unsure):
            wanted[j, head] = unsure[j, head]
    if wanted.any() and not pool.sharp:
        pool.sharpen()
    elif wanted.any():
        wanted |= unsure & tight[:-1, :-1]
        pool.widen(np.logical_and.outer(wanted.any(axis=1), wanted.any(axis=0)) & _arcs(pool.problem))
    else:
        _push(pool, path, flow, excess)


def _push(pool: _Pool, path: list[int], flow: Counts, excess: Counts) -> None:
    """Send along ``path`` as many items as ties, bounds and the excess at its ends allow."""
    problem, source, sink = pool.problem, path[0], path[-1]
    depot = problem.k
    room = [] if source == sink else [excess[source], -excess[sink]]
    moves = []
    for j, head in pairwise(path):
        if head == depot:
            room.append(problem.upper[j] - flow[j])
        elif j == depot:
            room.append(flow[head] - problem.lower[head])
        else:
            moves.append((pool.cheapest(j, head), j, head))
            room.append(len(moves[-1][0]))
    amount = min(room)
    for places, j, head in moves:
        pool.move(places[:amount], j, head)
    for j, head in pairwise(path):
        if head == depot:
            flow[j] += amount
        elif j == depot:
            flow[head] -= amount
    excess[source] -= amount
    excess[sink] += amount


# --- Proof ---


def _prove(problem: _Problem, labels: Labels) -> Assignment:
    while True:
        weight, counts = _margins(problem, labels), problem.count(labels)
        graph = _residual(problem, weight, counts)
        dist, rounds = _relax(graph, np.zeros(len(graph)))
        if not _negative_cycle(graph, rounds):
            break
        _cancel(problem, labels, weight)
    return _certify(problem, labels, dist[-1] - dist[:-1])


def _margins(problem: _Problem, labels: Labels, among: Mask | None = None) -> Array:
    """min (c_il − c_ij) over the items i of j, (k, k), or over some ``among`` them; inf where j has none."""
    if problem.far is not None and among is None:
        return problem.far.arcs(labels)
    weight = np.full((problem.k, problem.k), np.inf)
    for where, block in problem.read():
        own = labels[where]
        if among is not None:
            own, block = own[among[where]], block[among[where]]
        order = np.argsort(own, kind="stable")
        rows = (block - block[np.arange(len(block)), own][:, None])[order]
        starts = np.flatnonzero(np.diff(own[order], prepend=-1))
        present = own[order[starts]]
        weight[present] = np.minimum(weight[present], np.minimum.reduceat(rows, starts, axis=0))
    return weight


def _negative_cycle(graph: Array, rounds: list[Labels]) -> list[int]:
    """A negative cycle, or nothing."""
    if len(rounds) < len(graph):
        return []
    late = np.flatnonzero(rounds[-1] != np.arange(len(graph)))
    walks = (_walk(graph, rounds, int(node)) for node in late)
    return next((walk for walk in walks if len(walk) > 1 and walk[0] == walk[-1]), [])


def _certify(problem: _Problem, labels: Labels, prices: Array) -> Assignment:
    cost, excess = (partial(_worth, problem) if problem.far is None else problem.far.worth)(labels, prices)
    counts = problem.count(labels)
    unused = np.where(prices > 0, problem.upper - counts, counts - problem.lower)
    within = (counts >= problem.lower) & (counts <= problem.upper)
    gap = excess + math.fsum(np.abs(prices) * unused) if within.all() else math.inf
    return Assignment(labels, prices, cost, gap, counts)


def _worth(problem: _Problem, labels: Labels, prices: Array) -> tuple[float, float]:
    """What the labels cost, and what they cost more at these prices than the cheapest components; each correctly rounded."""
    chosen, slack = np.empty(problem.n), np.empty(problem.n)
    for where, block in problem.read():
        rows, own, reduced = np.arange(len(block)), labels[where], block + prices
        chosen[where] = block[rows, own]
        slack[where] = reduced[rows, own] - reduced.min(axis=1)
    return math.fsum(chosen), math.fsum(slack[slack > 0])
