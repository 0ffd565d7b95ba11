"""The transportation problem: cases by hand, three oracles, and the proof at every scale."""

import doctest
import itertools
import math
import os
import tracemalloc
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import linear_sum_assignment

from orthonmf.exceptions import InfeasibleCapacityError, IntegrityError, InvalidInputError
from orthonmf.search.bounded import assignment
from orthonmf.search.bounded.assignment import certify, nearest, transport

ROUNDING = 1e-13  # relative: sums of a few hundred float64 in another order
PROVEN = 1e-9  # relative gap that the library promises


@dataclass
class Blocks:
    """Costs in blocks of ``size`` rows; every row a fresh copy, as an engine would compute it."""

    array: np.ndarray
    size: int
    passes: int = 0

    @property
    def n_items(self):
        return len(self.array)

    @property
    def n_components(self):
        return self.array.shape[1]

    def blocks(self):
        self.passes += 1
        for start in range(0, self.n_items, self.size):
            where = slice(start, min(start + self.size, self.n_items))
            yield where, self.array[where].copy()


def random_bounds(rng, n, k, kind):
    """Bounds that some assignment meets; "tight" leaves no choice of sizes, "closed" shuts a component."""
    sizes = np.bincount(rng.integers(k, size=n), minlength=k)
    if kind == "tight":
        return sizes, sizes
    if kind == "upper":
        return np.zeros(k, dtype=int), sizes + rng.integers(0, 2, k)
    if kind == "closed" and k > 1:
        sizes[1] += sizes[0]
        sizes[0] = 0
        return np.zeros(k, dtype=int), sizes
    return np.maximum(sizes - rng.integers(0, 3, k), 0), sizes + rng.integers(0, 3, k)


def random_costs(rng, n, k, kind):
    if kind == "integers":
        return rng.integers(-3, 4, (n, k)).astype(float)
    if kind == "floats":
        return rng.normal(size=(n, k))
    return 10.0 ** rng.uniform(-12, 12, (n, k))


def brute_force(costs, lower, upper):
    """The least cost, trying all k^n assignments."""
    n, k = costs.shape
    labels = np.array(list(itertools.product(range(k), repeat=n)))
    counts = (labels[:, :, None] == np.arange(k)).sum(axis=1)
    labels = labels[((counts >= lower) & (counts <= upper)).all(axis=1)]
    return min(math.fsum(costs[np.arange(n), one]) for one in labels)


def replicated(costs, upper):
    """The least cost by one column for each place, from scipy."""
    columns = np.repeat(costs, upper, axis=1)
    return math.fsum(columns[linear_sum_assignment(columns)])


def exact_gap(costs, lower, upper, result):
    """The gap as a rational number, from its formula."""
    prices = [Fraction(price) for price in result.prices]
    gap = Fraction(0)
    for row, label in zip(costs.tolist(), result.labels, strict=True):
        reduced = [Fraction(cost) + price for cost, price in zip(row, prices, strict=True)]
        gap += reduced[label] - min(reduced)
    for price, count, low, high in zip(prices, result.counts.tolist(), lower, upper, strict=True):
        gap += price * (int(high) - count) if price > 0 else -price * (count - int(low))
    return gap


def clusters(n, k=10, seed=0):
    """Squared distances of points in clusters of unequal sizes to all centres, (n, k)."""
    rng = np.random.default_rng(seed)
    centers, share = rng.normal(scale=2, size=(k, 4)), 0.7 ** np.arange(k)
    points = centers[rng.choice(k, n, p=share / share.sum())] + rng.normal(size=(n, 4))
    return ((points[:, None] - centers) ** 2).sum(axis=2)


def within(result, lower, upper):
    counts = np.bincount(result.labels, minlength=len(lower))
    assert_array_equal(counts, result.counts)
    return bool((counts >= lower).all() and (counts <= upper).all())


def test_two_of_three_fit_and_the_cheapest_leaves():
    # All three want component 0, which holds two. Leaving costs 1, 5 or 9: item 0 leaves. Any price of
    # component 0 between 1 and 5 makes that the cheapest choice of every item; the proof takes the least.
    result = transport([[0, 1], [0, 5], [0, 9]], lower=[0, 0], upper=[2, 3])
    assert_array_equal(result.labels, [1, 0, 0])
    assert_array_equal(result.counts, [2, 1])
    assert_array_equal(result.prices, [1, 0])
    assert (result.cost, result.gap, result.relative_gap) == (1, 0, 0)


def test_a_lower_bound_pays_for_the_items_it_asks_for():
    # Component 1 must hold two: items 0 and 1 go, for 1 + 5. Paying 5 for each keeps item 1 and does not
    # tempt item 2.
    result = transport([[0, 1], [0, 5], [0, 9]], lower=[0, 2], upper=[3, 3])
    assert_array_equal(result.labels, [1, 1, 0])
    assert_array_equal(result.prices, [0, -5])
    assert (result.cost, result.gap) == (6, 0)


def test_a_chain_of_moves_beats_a_direct_one():
    # Sizes 1, 1, 1. Items 0 and 1 want component 0. Directly to 2 they cost 10 or 9; item 1 to component 1
    # for 1, and item 2 from there to component 2 for 2, makes 3.
    result = transport([[0, 9, 10], [0, 1, 9], [8, 0, 2]], lower=[1, 1, 1], upper=[1, 1, 1])
    assert_array_equal(result.labels, [0, 1, 2])
    assert (result.cost, result.gap) == (3, 0)


def test_certify_adds_up_every_term_of_the_gap():
    costs, bounds = [[0, 1], [0, 5], [0, 9]], ([0, 1], [2, 3])
    # Item 1 leaves instead of item 0: cost 5. At prices 3 and −1 reduced costs are (3, 0), (3, 4), (3, 8):
    # items 0 and 1 pay 3 and 1 too much. Component 0 is full and component 1 at its least: no more terms.
    wrong = certify(costs, *bounds, labels=np.array([0, 1, 0]), prices=np.array([3.0, -1.0]))
    assert (wrong.cost, wrong.gap, wrong.relative_gap) == (5, 4, 0.8)
    # All in component 1, cost 15, at prices 2 and −3: (2, −2), (2, 2), (2, 6) leave 0, 0 and 4; two unused
    # places at 2 and two items above the least at 3 make 10.
    wrong = certify(costs, *bounds, labels=np.array([1, 1, 1]), prices=np.array([2.0, -3.0]))
    assert (wrong.cost, wrong.gap) == (15, 14)
    out_of_bounds = certify(costs, *bounds, labels=np.array([0, 0, 0]), prices=np.zeros(2))
    assert (out_of_bounds.cost, out_of_bounds.gap) == (0, np.inf)


def test_nearest_reports_what_it_misses():
    result = nearest([[0, 1], [0, 5], [2, 2], [9, 3]], lower=[0, 2], upper=[2, 4])
    assert_array_equal(result.labels, [0, 0, 0, 1])  # the tie of item 2 goes to the first
    assert (result.cost, result.excess, result.shortfall) == (5, 1, 1)


def test_examples_in_docstrings_hold():
    assert doctest.testmod(assignment).failed == 0


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bounds", ["tight", "upper", "closed", "both"])
@pytest.mark.parametrize("kind", ["integers", "floats", "decades"])
def test_equal_to_brute_force(kind, bounds, seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    costs, (lower, upper) = random_costs(rng, n, k, kind), random_bounds(rng, n, k, bounds)
    result = transport(costs, lower, upper)
    assert within(result, lower, upper)
    assert result.cost == pytest.approx(brute_force(costs, lower, upper), rel=ROUNDING, abs=ROUNDING)
    # The prices are rounded once for each arc of a path, and the items that pay them are few.
    assert exact_gap(costs, lower, upper, result) <= ROUNDING * max(1.0, np.abs(costs).max())


def test_brute_force_with_eight_items_and_four_components():
    rng = np.random.default_rng(0)
    costs, lower, upper = rng.normal(size=(8, 4)), [1, 0, 2, 0], [2, 2, 3, 2]
    assert transport(costs, lower, upper).cost == pytest.approx(brute_force(costs, lower, upper), rel=ROUNDING)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [30, 300])
def test_equal_to_linear_sum_assignment_on_replicated_columns(n, seed):
    rng = np.random.default_rng(seed)
    costs, (lower, upper) = clusters(n, seed=seed), random_bounds(rng, n, 10, "upper")
    result = transport(costs, lower, upper)
    assert within(result, lower, upper)
    assert result.cost == pytest.approx(replicated(costs, upper), rel=ROUNDING)
    assert result.relative_gap <= ROUNDING


@pytest.mark.parametrize("seed", range(5))
def test_equal_to_linear_sum_assignment_when_the_pool_grows(monkeypatch, seed):
    for name, value in {"POOL": 1, "POOL_PER_MOVE": 0, "SAMPLE": 8, "PROGRESS": 0.0}.items():
        monkeypatch.setattr(assignment, name, value)
    rng = np.random.default_rng(seed)
    costs, (_, upper) = clusters(200, seed=seed), random_bounds(rng, 200, 10, "tight")
    result = transport(costs, upper, upper)
    assert result.cost == pytest.approx(replicated(costs, upper), rel=ROUNDING)
    assert result.relative_gap <= ROUNDING


def min_cost_flow(costs, lower, upper):
    """The least cost from OR-tools: an arc of negative cost makes each lower bound pay."""
    try:
        from ortools.graph.python import min_cost_flow as ortools
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("OR-tools is not installed")
    (n, k), reward = costs.shape, 10**9
    items, nodes = np.arange(n), n + np.arange(k)
    solver = ortools.SimpleMinCostFlow()
    add = solver.add_arcs_with_capacity_and_unit_cost
    add(np.repeat(items, k), np.tile(nodes, n), np.ones(n * k, dtype=int), costs.astype(np.int64).ravel())
    add(nodes, np.full(k, n + k), np.asarray(lower), np.full(k, -reward))
    add(nodes, np.full(k, n + k), np.subtract(upper, lower), np.zeros(k, dtype=int))
    solver.set_nodes_supplies(np.arange(n + k + 1), np.r_[np.ones(n, dtype=int), np.zeros(k, dtype=int), -n])
    assert solver.solve() == solver.OPTIMAL
    return solver.optimal_cost() + reward * int(np.sum(lower))


@pytest.mark.parametrize("bounds", ["upper", "both", "tight"])
@pytest.mark.parametrize(("n", "levels"), [(3000, 5), (3000, 10**6), (30_000, 10**6)])
def test_equal_to_min_cost_flow_in_integers(n, levels, bounds):
    costs = clusters(n)
    costs = np.rint(costs * (levels / costs.max()))
    share = n / 10
    lower, upper = np.full(10, int(0.8 * share)), np.full(10, int(1.1 * share))
    lower = {"upper": 0 * lower, "both": lower, "tight": np.full(10, n // 10)}[bounds]
    upper = np.full(10, n // 10) if bounds == "tight" else upper
    result = transport(costs, lower, upper)
    assert within(result, lower, upper)
    assert result.cost == min_cost_flow(costs, lower, upper)
    assert result.gap == 0  # integers below 2^53: nothing is rounded


@pytest.mark.parametrize("exponent", range(-6, 10, 3))
def test_gap_is_proven_at_every_scale(exponent):
    costs = clusters(5000) * 10.0**exponent
    result = transport(costs, np.full(10, 300), np.full(10, 550))
    assert within(result, np.full(10, 300), np.full(10, 550))
    assert result.relative_gap <= PROVEN
    assert result.relative_gap <= ROUNDING  # and far below


@pytest.mark.parametrize("spread", ["entries", "items", "components"])
def test_gap_is_proven_over_24_decades(spread):
    rng = np.random.default_rng(0)
    shape = {"entries": (2000, 8), "items": (2000, 1), "components": (1, 8)}[spread]
    costs = clusters(2000, 8) * 10.0 ** rng.uniform(-12, 12, shape)
    lower, upper = np.full(8, 150), np.full(8, 260)
    result = transport(costs, lower, upper)
    assert within(result, lower, upper)
    assert result.relative_gap <= PROVEN
    exact = exact_gap(costs, lower, upper, result)
    assert exact <= PROVEN * result.cost
    assert result.gap == pytest.approx(float(exact), abs=ROUNDING * result.cost)


def test_differences_far_below_the_prices_still_decide():
    # Components 1 and 2 ask for all light items and a few heavy ones, so that their prices are near −1e12,
    # where float64 cannot see the light items' costs of 1e-6. Still no exchange of two light items may pay.
    rng = np.random.default_rng(0)
    costs = np.zeros((2000, 3))
    costs[:1000, 1:] = 1e-6 * rng.random((1000, 2))
    costs[1000:, 1:] = 1e12 * (1 + rng.random((1000, 2)))
    result = transport(costs, [0, 510, 510], [2000] * 3)
    assert result.prices[1] < -1e12
    light, labels = costs[:1000], result.labels[:1000]
    there = (light[:, 2] - light[:, 1])[labels == 1].min()
    back = (light[:, 1] - light[:, 2])[labels == 2].min()
    assert (labels == 1).any()
    assert (labels == 2).any()
    assert there + back >= 0


def forbid(monkeypatch, name):
    def fail(*_):
        raise AssertionError(f"{name} should not be needed here")

    monkeypatch.setattr(assignment, name, fail)


@pytest.mark.parametrize("seed", range(5))
def test_shortest_paths_alone_reach_the_optimum(monkeypatch, seed):
    # Cycles are cancelled only where rounding hides them; integers are not rounded.
    forbid(monkeypatch, "_cancel")
    monkeypatch.setattr(assignment, "PROGRESS", 0.0)  # no Newton steps: more paths
    costs = np.rint(clusters(400, seed=seed) * 1000)
    assert transport(costs, np.full(10, 35), np.full(10, 42)).gap == 0


@pytest.mark.parametrize("n", [7, 1000, 20_000])
def test_equal_costs_fill_the_first_components_without_a_path(monkeypatch, n):
    forbid(monkeypatch, "_push")
    upper = np.full(5, -(-n // 4))
    result = transport(np.ones((n, 5)), np.zeros(5, dtype=int), upper)
    assert within(result, 0 * upper, upper)
    assert (result.cost, result.gap) == (n, 0)
    assert result.counts[4] == max(n - 4 * upper[0], 0)


def test_repeated_items_are_moved_together(monkeypatch):
    pushes = []
    original = assignment._push
    monkeypatch.setattr(assignment, "_push", lambda *args: pushes.append(1) or original(*args))
    rng = np.random.default_rng(0)
    costs = rng.integers(0, 10**6, (10, 8)).astype(float)[rng.integers(10, size=20_000)]
    lower, upper = np.zeros(8, dtype=int), np.full(8, 2600)
    result = transport(costs, lower, upper)
    assert result.cost == min_cost_flow(costs, lower, upper)
    assert result.gap == 0
    assert len(pushes) < 500  # k³ at each of a few prices is the worst case, not 20 000


def test_zero_items_fill_what_the_others_leave():
    costs = clusters(4000) * (np.arange(4000) % 5 > 0)[:, None]
    lower, upper = np.zeros(10, dtype=int), np.full(10, 405)
    result = transport(costs, lower, upper)
    assert within(result, lower, upper)
    assert result.relative_gap <= ROUNDING


@pytest.mark.parametrize("size", [1, 7, 1000, 5000])
def test_blocks_and_array_give_identical_answers(size):
    costs, bounds = np.rint(clusters(5000) * 20), (np.full(10, 300), np.full(10, 550))
    whole, blocks = transport(costs, *bounds), transport(Blocks(costs, size), *bounds)
    assert_array_equal(whole.labels, blocks.labels)
    assert_array_equal(whole.prices, blocks.prices)
    assert (whole.cost, whole.gap) == (blocks.cost, blocks.gap)


def test_nearest_in_blocks_equals_nearest_of_the_array():
    costs, bounds = clusters(5000), (np.zeros(10, dtype=int), np.full(10, 550))
    whole, blocks = nearest(costs, *bounds), nearest(Blocks(costs, 7), *bounds)
    assert_array_equal(whole.labels, blocks.labels)
    assert (whole.cost, whole.excess) == (blocks.cost, blocks.excess)


def test_memory_stays_below_the_table_of_costs():
    costs = Blocks(clusters(100_000, 40), 2000)
    tracemalloc.start()
    result = transport(costs, np.zeros(40, dtype=int), np.full(40, 2600))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.relative_gap <= ROUNDING
    assert peak < costs.array.nbytes / 2


@pytest.mark.parametrize("prices", ["optimal", "random", "absurd"])
def test_warm_start_gives_the_same_cost(prices):
    costs, bounds = clusters(5000), (np.full(10, 300), np.full(10, 550))
    cold = transport(costs, *bounds)
    start = {"optimal": cold.prices, "random": np.arange(10.0), "absurd": 1e15 * np.arange(10.0)}[prices]
    warm = transport(costs, *bounds, prices=start)
    assert warm.cost == pytest.approx(cold.cost, rel=ROUNDING)
    assert warm.relative_gap <= ROUNDING


def test_warm_start_from_the_solution_saves_passes():
    table, bounds = Blocks(clusters(20_000), 5000), (np.full(10, 1200), np.full(10, 2200))
    prices = transport(table, *bounds).prices
    cold, table.passes = table.passes, 0
    transport(table, *bounds, prices=prices)
    assert table.passes < cold


@pytest.mark.parametrize("change", [np.asfortranarray, np.float32, ">f8", "int", "read-only", "list"])
def test_layout_and_dtype_do_not_matter(change):
    costs, bounds = np.rint(clusters(600) * 100), (np.zeros(10, dtype=int), np.full(10, 70))
    expected = transport(costs, *bounds)
    given = change(costs) if change is np.asfortranarray else costs.copy()
    if change == "list":
        given = costs.tolist()
    elif change == "read-only":
        given.flags.writeable = False
    elif change is not np.asfortranarray:
        given = costs.astype(change)
    result = transport(given, *bounds)
    assert_array_equal(result.labels, expected.labels)
    assert result.cost == expected.cost


@pytest.mark.parametrize(
    ("lower", "upper", "deficit"),
    [([0, 0], [2, 2], "1 of 5"), ([3, 4], [9, 9], "2 more than 5"), ([3, 0], [2, 9], "0")],
)
def test_infeasible_bounds_name_the_deficit(lower, upper, deficit):
    with pytest.raises(InfeasibleCapacityError, match=deficit):
        transport(np.ones((5, 2)), lower, upper)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_costs_that_are_not_finite_name_their_block(bad):
    costs = np.ones((10, 2))
    costs[7, 1] = bad
    with pytest.raises(InvalidInputError, match="items 6 to 8"):
        transport(Blocks(costs, 3), [0, 0], [10, 10])


@pytest.mark.parametrize(
    "arguments",
    [
        {"costs": np.ones(4)},
        {"costs": np.ones((0, 2))},
        {"upper": [9, 9, 9]},
        {"prices": [1.0]},
        {"prices": [np.nan, 0.0]},
    ],
)
def test_wrong_shapes_are_errors(arguments):
    with pytest.raises(InvalidInputError):
        transport(**{"costs": np.ones((4, 2)), "lower": [0, 0], "upper": [9, 9]} | arguments)


@pytest.mark.parametrize("lost", [True, False])
def test_a_block_lost_or_counted_twice_is_an_error(lost):
    class Broken(Blocks):
        def blocks(self):
            first, *rest = super().blocks()
            return rest if lost else [first, first, *rest]

    with pytest.raises(IntegrityError, match="expected 10"):
        transport(Broken(np.ones((10, 2)), 3), [0, 0], [10, 10])


def test_huge_capacities_do_not_overflow():
    huge = np.full(2, np.iinfo(np.int64).max)
    assert_array_equal(transport(np.eye(2), [0, 0], huge).labels, [1, 0])


def test_input_is_not_changed():
    costs, lower, upper, prices = clusters(500), np.full(10, 30), np.full(10, 60), np.arange(10.0)
    before = [one.copy() for one in (costs, lower, upper, prices)]
    transport(costs, lower, upper, prices=prices)
    for one, copy in zip((costs, lower, upper, prices), before, strict=True):
        assert_array_equal(one, copy)


class TestOnePriceAtATime:
    def test_by_hand(self):
        # All three items are at home in component 0, which takes one: 5, 6 and 7 is what it costs them to leave.
        problem = assignment._problem([[0.0, 5.0], [0.0, 6.0], [0.0, 7.0]], [0, 0], [1, 3])
        survey = assignment._survey(problem, np.zeros(2))
        assert_array_equal(assignment._one_by_one(problem, problem.take(np.arange(3)), survey), [6.5, 0.0])

    @pytest.mark.parametrize("seed", [0, 1, 2, 4])
    def test_few_items_stay_out_of_place_under_heavy_tails(self, seed):
        # Newton's steps alone leave 23 to 36 of these items out of place.
        rng = np.random.default_rng(seed)
        X = rng.lognormal(0.0, 1.4, (313, 7))
        costs = np.square(X[:, None] - X[rng.choice(313, 12, replace=False)]).sum(axis=2)
        problem = assignment._problem(costs, np.full(12, 19), np.full(12, 313))
        assert assignment._settle(problem, np.zeros(12)).misplaced <= 12


@pytest.mark.parametrize("seed", range(3))
def test_items_near_a_border_are_the_same_whether_few_or_all_are_looked_at(seed, monkeypatch):
    """Also where they tie, and where one component has few items near another."""
    rng = np.random.default_rng(seed)
    n, k = 40_000, 3
    labels = rng.choice(k, size=n, p=[0.6, 0.3, 0.1])
    runner = (labels + 1 + rng.integers(k - 1, size=n)) % k
    slack = np.round(rng.random(n) * np.array([1.0, 0.1, 99.0])[labels], 3)
    problem = assignment._problem(np.zeros((n, k)), np.zeros(k), np.full(k, n))
    excess = np.append(np.bincount(labels, minlength=k) - n // k, 0) // 1000
    survey = assignment.Survey(np.zeros(k), labels, runner, slack, np.zeros(k), excess)
    few = assignment._near_borders(problem, survey)
    monkeypatch.setattr(assignment, "NEAR_TIMES", n)
    for found, expected in zip(few, assignment._near_borders(problem, survey), strict=True):
        assert_array_equal(found, expected)
