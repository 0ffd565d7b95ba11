"""Annealed prices: a case by hand, the barrier flow as second opinion, and the laws of the dual."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import xlogy

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.base import block_weight, weighted_mean
from orthonmf.engines.dense import DenseEngine
from orthonmf.passes.priced import priced_soft
from orthonmf.search.bounded import dual
from orthonmf.search.bounded.bounds import Bounds
from orthonmf.search.bounded.dual import Dual, Priced
from orthonmf.search.bounded.flow import FlowParameters, relax

SCALINGS = ("item", "none")
# Prices end where counts miss their bounds by this fraction of the items: as near as sums of 1e3 floats come.
TIGHT = 1e-13


# What the laws are asked of.
ASKED = {"kind": Dual}


@pytest.fixture(autouse=True, params=["plain", "compiled"])
def kind(request, monkeypatch):
    """Every law holds of the plain text and of the compiled steps."""
    if request.param == "compiled":
        compiled_dual = pytest.importorskip("orthonmf.search.bounded.compiled_dual")
        monkeypatch.setitem(ASKED, "kind", compiled_dual.CompiledDual)


def build(X, upper, lower=None, scaling="none", weight=None, **options):
    engine = DenseEngine(np.asarray(X, dtype=float), weight, team=ThreadTeam(1))
    distortion = REGISTRY["frobenius", scaling].about(weighted_mean(engine))
    upper = np.asarray(upper)
    bounds = Bounds(np.zeros_like(upper) if lower is None else np.asarray(lower), upper, True)
    return ASKED["kind"](engine, distortion, bounds, [].append, **options)


def at(problem, centers, beta, prices=None):
    """One slot for each centre, given in the space of the data."""
    k = len(centers)
    prices = np.zeros(k) if prices is None else np.asarray(prices, dtype=float)
    slots = tuple((j,) for j in range(k))
    return Priced(beta, problem.distortion.to_frame(np.asarray(centers, dtype=float)), slots, prices)


def all_items(problem):
    engine = problem.engine
    whole = slice(0, engine.n_items)
    return problem.distortion.items(engine.rows(whole), block_weight(engine, whole))


def responsibilities(problem, priced):
    """p, shape (n_items, n_components)."""
    return priced_soft(all_items(problem), priced, problem.floor)[0].T


def random_problem(seed, scaling, lower=(0, 0, 14), upper=(6, 20, 20), **options):
    """Thirty weighted items, two of no weight, and centres among them."""
    rng = np.random.default_rng(seed)
    X, weight = rng.gamma(3.0, size=(30, 4)), rng.exponential(size=30)
    weight[:2] = 0
    problem = build(X, upper, lower, scaling, weight, **options)
    centers = X[5:8] if scaling == "none" else X[5:8] / np.linalg.norm(X[5:8], axis=1, keepdims=True)
    return problem, centers


def unit_beta(problem):
    """One over the mean cost about the reference, so that β is of the order of one."""
    items = all_items(problem)
    one = problem.distortion.pairs(items, problem.distortion.origin).distance
    return float(items.weight.sum() / (items.weight * one).sum())


def table_two(microarray, time):
    X = microarray[:, :, time]
    low, high = X.min(axis=0), X.max(axis=0)
    return 1 + 9 * (X - low) / (high - low)


def flow_setting(problem):
    """What the flow asks for: the cost in the same frame, and a strictly feasible start."""
    items = all_items(problem)
    cost = problem.distortion.flow_cost(problem.distortion.points(items, np.arange(len(items))), items.weight)
    lower, upper = problem.bounds.lower.astype(float), problem.bounds.upper.astype(float)
    n = len(items)
    share = lower + (upper - lower) * (n - lower.sum()) / (upper.sum() - lower.sum())
    return cost, np.tile(share / n, (n, 1)), lower, upper


class Pinned:
    """A cost whose centres do not move."""

    def __init__(self, cost):
        self.weights, self.cost = cost.weights, cost.cost

    def center_gradient(self, resp, centers):
        return np.zeros_like(centers)

    def place(self, centers):
        return centers


# -- by hand -------------------------------------------------------------------------------------------------


def test_two_items_that_prefer_one_component():
    # Both items lie on component 0, component 1 is at distance 1. Component 0 holds one of the two:
    # p = ½ needs equal costs, so that its price is 1, and F = 2·½·1 − (1/β)·2 log 2 with β = 2.
    problem = build([[0.0], [0.0]], [1, 2])
    priced, stats = problem.priced_out(at(problem, [[0.0], [1.0]], beta=2.0), TIGHT)
    assert_allclose(priced.prices, [1.0, 0.0], atol=1e-12)
    assert_allclose(stats.counts, [1.0, 1.0], atol=1e-12)
    assert_allclose(problem.value(priced, stats), 1 - np.log(2), atol=1e-12)
    assert_allclose(stats.distortion, 1.0, atol=1e-12)


def test_a_least_size_pays_items_to_come():
    # The same, and component 1 wants one item: it pays 1 for it.
    problem = build([[0.0], [0.0]], [2, 2], [0, 1])
    priced, stats = problem.priced_out(at(problem, [[0.0], [1.0]], beta=2.0), TIGHT)
    assert_allclose(priced.prices, [0.0, -1.0], atol=1e-12)
    assert_allclose(stats.counts, [1.0, 1.0], atol=1e-12)


def test_a_price_is_at_most_the_penalty():
    # p_0 = 1/(1 + exp(−β(1 − ¼))): the count stays above the bound.
    problem = build([[0.0], [0.0]], [1, 2], penalty=0.25)
    priced, stats = problem.priced_out(at(problem, [[0.0], [1.0]], beta=2.0), TIGHT)
    assert_allclose(priced.prices, [0.25, 0.0], atol=1e-12)
    assert_allclose(stats.counts[0], 2 / (1 + np.exp(-1.5)), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_larger_penalty_leaves_less_excess(scaling, seed):
    excess = []
    for share in (0.01, 0.1, 1.0):
        problem, centers = random_problem(seed, scaling, lower=(0, 0, 0))
        hard, _ = problem.priced_out(at(problem, centers, 8 * unit_beta(problem)), TIGHT)
        largest = np.abs(hard.prices).max()
        assert largest > 0
        problem.penalty = share * largest
        soft, stats = problem.priced_out(replace(hard, prices=np.zeros(3)), TIGHT)
        assert np.abs(soft.prices).max() <= problem.penalty
        excess.append(float(np.maximum(stats.counts - problem.bounds.upper, 0).max()))
    assert excess[0] > excess[1] > excess[2]
    assert excess[2] <= 1e-8 * 30


def test_slots_count_as_many_components():
    # One centre for three components is as likely as three there, and its bound is the sum of theirs.
    problem = build(np.arange(6.0)[:, None], [1, 2, 2, 4])
    pooled = Priced(0.3, np.array([[-1.0], [2.0]]), ((0, 1, 2), (3,)), np.array([0.1, 0.0]))
    apart = Priced(0.3, np.array([[-1.0]] * 3 + [[2.0]]), ((0,), (1,), (2,), (3,)), np.array([0.1, 0.1, 0.1, 0]))
    one, other = responsibilities(problem, pooled), responsibilities(problem, apart)
    assert_allclose(one, np.column_stack([other[:, :3].sum(axis=1), other[:, 3]]), rtol=1e-13)
    assert_allclose(pooled.pooled(problem.bounds.upper), [5, 4])


# -- the dual function ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_curvature_are_differences(scaling, seed):
    problem, centers = random_problem(seed, scaling)
    scale = 1 / unit_beta(problem)
    prices = scale * np.array([0.3, 0.2, -0.4])
    priced = at(problem, centers, 4 / scale, prices)
    stats = problem.stats(priced)
    bound = np.array([6, 20, 14])  # upper where the price is positive, lower where it is negative
    step = 1e-5 * scale

    def nearby(j, sign):
        moved = replace(priced, prices=prices + sign * step * np.eye(3)[j])
        found = problem.stats(moved)
        return problem.value(moved, found), found.counts

    for j in range(3):
        (value_up, counts_up), (value_down, counts_down) = nearby(j, 1), nearby(j, -1)
        # Central differences: ε/h of rounding and h² of truncation are both 1e-10 of the terms.
        assert_allclose((value_up - value_down) / (2 * step), (stats.counts - bound)[j], atol=1e-7 * 30)
        slope = (counts_up - counts_down) / (2 * step)
        assert_allclose(slope, -stats.curvature[j], atol=1e-6 * stats.curvature.max())
    assert_allclose(problem.violation(priced, stats), stats.counts - bound, rtol=1e-13)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_curvature_is_positive_and_knows_no_common_price(scaling):
    problem, centers = random_problem(0, scaling)
    curvature = problem.stats(at(problem, centers, 3 * unit_beta(problem))).curvature
    values = np.linalg.eigvalsh(curvature)
    assert_allclose(curvature.sum(axis=1), 0, atol=1e-12 * values[-1])
    assert values[0] >= -1e-12 * values[-1]
    assert values[1] > 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scaling", SCALINGS)
def test_free_energy_is_the_value_at_the_best_prices(scaling, seed):
    """No duality gap: g(π) = Σ ω p d + (1/β) Σ τ p log p."""
    problem, centers = random_problem(seed, scaling)
    priced, stats = problem.priced_out(at(problem, centers, 8 * unit_beta(problem)), TIGHT)
    resp, items = responsibilities(problem, priced), all_items(problem)
    tau = np.maximum(items.weight, problem.floor)
    entropy = -float(tau @ xlogy(resp, resp).sum(axis=1))
    primal = stats.distortion - entropy / priced.beta
    assert_allclose(problem.value(priced, stats), primal, rtol=1e-9)
    assert (stats.counts <= problem.bounds.upper + 1e-9).all()
    assert (stats.counts >= problem.bounds.lower - 1e-9).all()
    # Complementary: a price only where its bound is met.
    assert_allclose(stats.counts[priced.prices > 0], problem.bounds.upper[priced.prices > 0], atol=1e-9)
    assert_allclose(stats.counts[priced.prices < 0], problem.bounds.lower[priced.prices < 0], atol=1e-9)
    assert (priced.prices != 0).any()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scaling", SCALINGS)
def test_any_start_leads_to_the_same_responsibilities(scaling, seed):
    problem, centers = random_problem(seed, scaling)
    beta = 8 * unit_beta(problem)
    rng = np.random.default_rng(seed)
    starts = [np.zeros(3), *(rng.normal(size=(4, 3)) / unit_beta(problem))]
    ends = [problem.priced_out(at(problem, centers, beta, start), TIGHT)[0] for start in starts]
    for end in ends[1:]:
        assert_allclose(responsibilities(problem, end), responsibilities(problem, ends[0]), atol=1e-8)


def test_both_bounds_of_a_component_are_met_when_they_are_equal():
    problem, centers = random_problem(1, "none", lower=(6, 10, 14), upper=(6, 10, 14))
    _, stats = problem.priced_out(at(problem, centers, 20 * unit_beta(problem)), TIGHT)
    assert_allclose(stats.counts, [6, 10, 14], atol=1e-9)


# -- against the flow ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("beta", [0.5, 4.0, 32.0])
def test_fixed_centers_give_the_responsibilities_of_the_flow(scaling, seed, beta):
    """Strictly convex: both solvers must find the same p."""
    problem, centers = random_problem(seed, scaling)
    beta *= unit_beta(problem)
    priced, stats = problem.priced_out(at(problem, centers, beta), TIGHT)
    cost, start, lower, upper = flow_setting(problem)
    flow = relax(
        Pinned(cost),
        start,
        priced.centers,
        beta,
        upper,
        min_size=lower,
        parameters=FlowParameters(tol=1e-9, max_steps=3000),
    )
    assert flow.converged, flow.status
    assert_allclose(flow.resp, responsibilities(problem, priced), atol=1e-6)
    assert_allclose(flow.resp.sum(axis=0), stats.counts, atol=1e-6)


@pytest.mark.parametrize("time", range(7))
def test_moving_centers_end_at_small_residuals_of_one_functional(microarray, time):
    """Table II at a temperature at which bounds bind: each end is a KKT point in the other's measure."""
    problem = build(table_two(microarray, time), [18, 18, 18])
    beta = 8 * unit_beta(problem)
    origin = problem.distortion.to_data(problem.distortion.origin)
    spread = np.linalg.svd(table_two(microarray, time) - origin, full_matrices=False)[2][:2]
    start = at(problem, origin + np.array([[1, 0.5], [-1, 0.5], [0, -1.0]]) @ spread, beta)
    rested = problem.rest(start, tol=1e-10, alternations=3000)
    assert rested.residual <= 1e-10
    cost, even, _, upper = flow_setting(problem)
    parameters = FlowParameters(tol=1e-6, max_steps=5000)
    flow = relax(cost, even, start.centers, beta, upper, parameters=parameters)
    assert flow.converged, flow.status
    assert flow.kkt_residual <= 1e-6
    # The dual's end, in the flow's measure: the flow has nothing to do there.
    judged = relax(
        cost,
        responsibilities(problem, rested.priced),
        rested.priced.centers,
        beta,
        upper,
        parameters=parameters,
    )
    assert judged.kkt_residual <= 1e-6
    assert len(judged.lyapunov) == 1
    # The flow's end, in the dual's measure, with prices as exact as its own tolerance lets them be.
    there = replace(start, centers=flow.centers, prices=flow.prices - flow.prices.min())
    found, stats = problem.priced_out(there, TIGHT)
    assert problem.kkt_residual(found, stats) <= 1e-6


# -- rest, split, run ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("beta", [1.0, 10.0, 100.0])
def test_the_lagrangian_never_rises(scaling, seed, beta):
    problem, centers = random_problem(seed, scaling)
    values = []
    priced = at(problem, centers, beta * unit_beta(problem))
    for _ in range(15):
        rested = problem.rest(priced, tol=0.0, alternations=1)
        values.append(problem.value(rested.priced, rested.stats))
        stats = rested.stats
        moved = problem.distortion.center(stats.sums, np.maximum(stats.mass, np.finfo(float).tiny))
        priced = replace(rested.priced, centers=moved)
    # Prices are exact to 1e-9 of the items, which is worth that times the largest price.
    slack = 1e-8 * 30 * max(np.abs(priced.prices).max(), 1 / unit_beta(problem))
    assert (np.diff(values) <= slack).all()
    assert values[0] - values[-1] > 1e3 * slack


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize(("lower", "upper"), [((0,) * 4, (10,) * 4), ((0, 2, 5, 1), (3, 9, 30, 12)), ((10,) * 4, (10,) * 4)])
def test_run_keeps_the_slots_a_partition_and_ends_at_rest(scaling, lower, upper, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.gamma(10.0, size=(4, 5))[rng.integers(4, size=40)] + rng.uniform(0, 1, size=(40, 5))
    problem = build(X, upper, lower, scaling)
    seen = []
    rest = problem.rest

    def watched(priced, **options):
        seen.append(priced.slots)
        return rest(priced, **options)

    monkeypatch.setattr(problem, "rest", watched)
    end = problem.run()
    for slots in [*seen, end.priced.slots]:
        assert sorted(slot for group in slots for slot in group) == [0, 1, 2, 3]
    assert len(end.priced.slots) == 4
    assert end.residual <= dual.KKT_TOL
    order = [slot for (slot,) in end.priced.slots]
    assert (end.stats.counts <= np.array(upper)[order] + 1e-6 * 40).all()
    assert (end.stats.counts >= np.array(lower)[order] - 1e-6 * 40).all()
    centers, prices = problem.expanded(end)
    for (slot,), center, price in zip(end.priced.slots, end.priced.centers, end.priced.prices, strict=True):
        assert (centers[slot] == center).all()
        assert prices[slot] == price


def test_a_split_divides_the_slots_in_few_ways():
    problem = build(np.arange(12.0)[:, None], [2, 5, 3, 4])
    for slots in [(0, 1), (0, 2, 3), (0, 1, 2, 3)]:
        parts = problem._parts(slots)
        assert 1 <= len(parts) <= 3
        for one, other in parts:
            assert sorted(one + other) == sorted(slots)
            assert one
            assert other


def test_children_inherit_the_price():
    problem = build(np.arange(12.0)[:, None], [3, 3, 3, 3])
    parent = Priced(1.0, np.array([[-3.0], [3.0]]), ((0, 2), (1, 3)), np.array([0.5, 0.25]))
    child = problem._divided(parent, 1, np.ones(1), ((3,), (1,)))
    assert child.slots == ((0, 2), (3,), (1,))
    assert_allclose(child.prices, [0.5, 0.25, 0.25])
    assert_allclose(child.centers.ravel(), [-3, 3 - np.sqrt(0.5), 3 + np.sqrt(0.5)])


def test_equal_items_stay_together():
    problem = build(np.ones((10, 2)), [5, 5])
    end = problem.run()
    assert end.priced.slots == ((0, 1),)
    centers, prices = problem.expanded(end)
    assert centers.shape[0] == 2
    assert_allclose(prices, 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("penalty", [np.inf, 0.3])
def test_items_of_all_sizes_have_the_same_prices_in_both_texts(seed, penalty):
    rng, found = np.random.default_rng(seed), []
    X, weight, size = rng.gamma(3.0, size=(30, 4)), rng.exponential(size=30), rng.uniform(0.2, 2.0, 30)
    bounds = Bounds(np.array([0.0, 0.0, 10.0]), np.array([4.5, 20.0, 20.0]), True)
    for text in (Dual, ASKED["kind"]):
        engine = DenseEngine(X, weight, team=ThreadTeam(1))
        engine.size = size
        problem = text(engine, REGISTRY["frobenius", "none"].about(weighted_mean(engine)), bounds, [].append, penalty=penalty)
        found.append(problem.priced_out(at(problem, X[5:8], 8 * unit_beta(problem)), TIGHT))
    (plain, stats), (quick, other) = found
    assert_allclose(quick.prices, plain.prices, atol=1e-9 / unit_beta(problem))
    for name in ("counts", "mass", "sums", "curvature", "soft_min", "distortion", "spread"):
        expected = getattr(stats, name)
        assert_allclose(getattr(other, name), expected, atol=1e-9 * np.abs(expected).max())
