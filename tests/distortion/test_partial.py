"""Losses over the numbers that are there: formulas against their definitions, and against the complete losses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import rel_entr

from orthonmf.distortion import PARTIAL, REGISTRY
from orthonmf.distortion.base import Flowing, Metric
from orthonmf.engines import ThreadTeam, engine_class
from orthonmf.engines.base import block_weight
from orthonmf.passes.soft import soft
from orthonmf.passes.state import State
from orthonmf.search.gibbs import Settled, soft_pass
from orthonmf.search.partition import all_known, centered
from orthonmf.search.transitions import critical_values

ROUNDING = 1e-9  # sums of some hundred float64 terms that cancel


@pytest.fixture(params=sorted(PARTIAL), ids=" ".join)
def named(request):
    return request.param


def build(X, weight=None):
    return engine_class("masked")(np.asarray(X, dtype=float), weight, team=ThreadTeam(1))


def framed(engine, named, losses=PARTIAL):
    """The loss, and all items as one block."""
    distortion = losses[named].of(engine)
    whole = slice(0, engine.n_items)
    return distortion, distortion.items(engine.rows(whole), block_weight(engine, whole))


def partly(seed, n=40, p=6, share=0.3, k=3):
    """Positive numbers of three components, of which some are missing; each row and column has some."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(5.0, rng.gamma(1.0, 1.0, (k, p))[rng.integers(k, size=n)] / 5 + 0.1) * rng.gamma(4.0, size=(n, 1))
    hole = rng.random((n, p)) < share
    hole[np.arange(n), np.arange(n) % p] = False
    return np.where(hole, np.nan, X)


def case(seed, named, share=0.3):
    """Weighted items, some soft state, and the numbers."""
    rng, X = np.random.default_rng(seed), partly(seed, share=share)
    engine = build(X, rng.gamma(1.0, size=len(X)))
    distortion, items = framed(engine, named)
    means = rng.gamma(2.0, size=(3, X.shape[1])) * np.nanmean(X) / 2
    state = State(
        0.7 / (1 if named[1] == "item" else np.nanmean(X)), distortion.to_frame(means), np.log(rng.dirichlet(np.ones(3))), (0, 1, 2)
    )
    return engine, distortion, items, state, X


def costs(x, center, named):
    """What a center costs an item, by the definition: over the numbers that are there, with the best scale."""
    there = ~np.isnan(x)
    x, center = x[there], center[there]
    if named[0] == "frobenius":
        scale = x @ center / (center @ center) if named[1] == "item" else 1.0
        return float(np.sum((x - scale * center) ** 2))
    scale = x.sum() / center.sum() if named[1] == "item" else 1.0
    return float((rel_entr(x, scale * center) - x + scale * center).sum())


def total(distortion, items, resp, centers):
    """Σ ω p d of every component."""
    return np.sum(resp * distortion.pairs(items, centers).distance, axis=1)


def test_by_hand():
    # (3, ?) and (1, 2): about the mean (2, 2) of what is there; over what is there the first is 1 away from (2, 0), the second 1 + 4.
    engine = build([[3.0, np.nan], [1.0, 2.0]])
    distortion, items = framed(engine, ("frobenius", "none"))
    assert_array_equal(distortion.ref, [2, 2])
    center = distortion.to_frame(np.array([[2.0, 0.0]]))
    assert_array_equal(distortion.pairs(items, center).distance, [[1, 5]])
    # The best centre is (2, 2): of the second dimension only one item says anything.
    resp = np.ones((1, 2))
    best = distortion.center(distortion.sums(items, resp, resp), np.array([2.0]))
    assert_array_equal(distortion.to_data(best), [[2, 2]])
    # As lines: (3, ?) lies on every line; (1, 2) on the diagonal has the scale 3/2 and is ½ of 5 away.
    distortion, items = framed(engine, ("frobenius", "item"))
    pairs = distortion.pairs(items, distortion.to_frame(np.ones((1, 2))))
    assert_array_equal(items.weight, [9, 5])
    assert_allclose(pairs.distance, [[0, 0.1]], atol=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_distances_equal_the_definition(named, seed):
    engine, distortion, items, state, X = case(seed, named)
    weight = items.weight / engine.weight
    data = distortion.to_data(state.centers)
    expected = np.array([[costs(x, center, named) for x in X] for center in data])
    assert_allclose(distortion.pairs(items, state.centers).distance * weight, expected, rtol=ROUNDING, atol=ROUNDING)
    labels = np.arange(len(X)) % 3
    own = distortion.pairs(items, state.centers, labels)
    assert_allclose(own.distance[0] * weight, expected[labels, np.arange(len(X))], rtol=ROUNDING, atol=ROUNDING)


def test_nothing_missing_is_the_complete_loss(named):
    engine, distortion, items, state, X = case(0, named, share=0.0)
    complete = REGISTRY[named].about(np.average(X, axis=0, weights=engine.weight))
    others = complete.items(engine.rows(slice(0, len(X))), engine.weight)
    centers = complete.to_frame(distortion.to_data(state.centers))
    pairs, expected = distortion.pairs(items, state.centers), complete.pairs(others, centers)
    assert_allclose(pairs.distance, expected.distance, rtol=ROUNDING, atol=ROUNDING)
    resp = soft(items, state)[0]
    moved = distortion.to_data(distortion.center(distortion.sums(items, resp, pairs.inner), resp.sum(axis=1)))
    assert_allclose(moved, complete.to_data(complete.center(complete.sums(others, resp, expected.inner), resp.sum(axis=1))), rtol=ROUNDING)
    one = np.average(X, axis=0, weights=engine.weight)[None]
    found, known = (critical(engine, loss, loss.to_frame(one)).beta[0] for loss in (distortion, complete))
    assert_allclose(found, known, rtol=1e-6)


def critical(engine, loss, center):
    """The critical value of one component with all items, its centre at rest."""
    center = centered(engine, loss, np.zeros(engine.n_items, dtype=int), center, max_passes=10_000).centers
    state = State(1.0, center, np.zeros(1))
    return critical_values(engine, loss, Settled(state, soft_pass(engine, loss, state), 1, 0.0, True), tol=1e-13, max_passes=500)


@pytest.mark.parametrize("seed", range(3))
def test_centres_lower_the_cost_and_end_where_it_is_least(named, seed):
    _, distortion, items, state, _ = case(seed, named)
    resp, centers = soft(items, state)[0], state.centers
    before = total(distortion, items, resp, centers)
    for _ in range(500):
        pairs = distortion.pairs(items, centers)
        centers = distortion.center(distortion.sums(items, resp, pairs.inner), resp.sum(axis=1))
        after = total(distortion, items, resp, centers)
        assert (after <= before * (1 + 1e-13)).all()
        before = after
    for direction in np.random.default_rng(seed).normal(size=(20, *centers.shape)):
        assert (total(distortion, items, resp, distortion.retract(centers + 0.02 * direction * np.abs(centers).mean())) > before).all()


@pytest.mark.parametrize("seed", range(3))
def test_slope_is_the_derivative(named, seed):
    check_slope(named, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 75))
def test_slope_is_the_derivative_at_length(named, seed):
    check_slope(named, seed)


def check_slope(named, seed):
    engine, distortion, items, state, _ = case(seed, named)
    resp = soft(items, state)[0]
    slope = distortion.slope(state, soft_pass(engine, distortion, state))
    way = distortion.tangent(np.random.default_rng(seed).normal(size=slope.shape), state.centers)
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    ends = [total(distortion, items, resp, distortion.retract(state.centers + step * way)) for step in (1e-5, -1e-5)]
    # The error of the difference is 1e-10 of third derivatives, and 1e5 roundings.
    assert_allclose((ends[0] - ends[1]) / 2e-5, np.einsum("ij,ij->i", slope, way), rtol=1e-5, atol=1e-5 * np.abs(slope).max())


@pytest.mark.parametrize("step", [-0.3, 0.02, 0.8])
@pytest.mark.parametrize("seed", range(2))
def test_change_is_that_of_the_moved_centre(named, step, seed):
    _, distortion, items, state, _ = case(seed, named)
    way = distortion.tangent(np.random.default_rng(seed).normal(size=state.centers.shape), state.centers)
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    steps, pairs = np.full(3, step), distortion.pairs(items, state.centers)
    found = distortion.change(pairs.inner, distortion.projections(items, state.centers, way), steps, state.centers, way)
    expected = distortion.pairs(items, distortion.moved(state.centers, way, steps)).distance - pairs.distance
    assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(3))
def test_critical_value_is_where_two_halves_begin_to_pay(named, seed):
    check_critical(named, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 75))
def test_critical_value_is_where_two_halves_begin_to_pay_at_length(named, seed):
    check_critical(named, seed)


def check_critical(named, seed):
    """F of two components of half the mass, a step either way: above β_cr it falls, below it rises, at the rate that makes β_cr."""
    X = partly(seed)
    engine = build(X, np.random.default_rng(seed).gamma(1.0, size=len(X)))
    distortion, _ = framed(engine, named)
    found = critical(engine, distortion, distortion.origin)
    center = centered(engine, distortion, np.zeros(len(X), dtype=int), distortion.origin, max_passes=10_000).centers

    def free_energy(beta, step):
        both = np.vstack([distortion.moved(center, sign * found.directions, np.array([step])) for sign in (-1.0, 1.0)])
        return -soft_pass(engine, distortion, State(beta, both, np.log([0.5, 0.5]))).log_partition

    def bend(beta):
        step = 1e-3 / np.sqrt(beta)
        return (free_energy(beta, step) - free_energy(beta, 0.0)) / (beta * step**2)

    # The bend falls evenly with β, and is 0 at the critical value; differences of it err by 1e6 roundings of F.
    low, high = 0.8 * found.beta[0], 1.2 * found.beta[0]
    one, other = bend(low), bend(high)
    assert one > 0 > other
    assert_allclose(low + (high - low) * one / (one - other), found.beta[0], rtol=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_least_cost_is_that_of_a_minimiser(named, seed):
    X = partly(seed, n=6, p=4, share=0.2)
    engine = build(X)
    distortion, items = framed(engine, named)
    found = distortion.least_cost(all_known(engine, distortion), items.weight)

    def cost(logs):
        return sum(costs(x, np.exp(logs), named) for x in X)

    starts = np.random.default_rng(seed).normal(size=(8, X.shape[1]))
    ends = [minimize(cost, start, method="L-BFGS-B", bounds=[(-20, 20)] * 4, options={"ftol": 1e-15, "gtol": 1e-9}) for start in starts]
    assert_allclose(found, min(end.fun for end in ends), rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_moves_gain_no_less_than_is_said(seed):
    # Of means, exactly where nothing is missing: a component is taken to have its mass in every dimension.
    for name in ("frobenius", "kullback-leibler"):
        for share, same in ((0.0, True), (0.4, False)):
            check_moves((name, "none"), seed, share, same)


def check_moves(named, seed, share, same):
    X = partly(seed, n=15, share=share)
    engine, labels = build(X), np.arange(15) % 3
    distortion, items = framed(engine, named)
    part = centered(engine, distortion, labels, np.repeat(distortion.origin, 3, axis=0))
    pairs, mass, cost = distortion.pairs(items, part.centers), part.stats.mass, part.stats.cost
    join = distortion.join(items, pairs, part.centers, mass, cost)
    leave = distortion.leave(items, pairs, labels, part.centers, mass, cost)
    known = all_known(engine, distortion)

    def least(mine):
        return distortion.least_cost(known[mine], items.weight[mine])

    for i in range(15):
        one = np.arange(15) == i
        for j in range(3):
            mine = labels == j
            said = leave[i] if mine[i] else join[j, i]
            found = cost[j] - least(mine & ~one) if mine[i] else least(mine | one) - cost[j]
            slack = 1e-7 * cost.sum()
            assert (said <= found + slack) if mine[i] else (said >= found - slack)
            if same:
                assert_allclose(said, found, atol=slack)


@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("seed", range(3))
def test_exact_moves_of_squares(scaling, seed):
    # Of means exactly; of lines at the scales that items have now, which is no less for joining and no more for leaving.
    engine, labels = build(partly(seed, n=15, share=0.3)), np.arange(15) % 3
    distortion, items = framed(engine, ("frobenius", scaling))
    part = centered(engine, distortion, labels, np.repeat(distortion.origin, 3, axis=0), max_passes=10_000)
    known, cost = all_known(engine, distortion), part.stats.cost
    distance = distortion.pairs(items, part.centers).distance
    leave, join = distortion.exact_moves(known, items.weight, items.weight, labels, distance)
    for i, j in np.ndindex(15, 3):
        mine, one = labels == j, np.arange(15) == i
        chosen = mine & ~one if mine[i] else mine | one
        gap = (cost[j] - leave[i] if mine[i] else cost[j] + join[j, i]) - distortion.least_cost(known[chosen], items.weight[chosen])
        assert gap >= -1e-6 * cost.sum()
        if scaling == "none":
            assert_allclose(gap, 0, atol=1e-7 * cost.sum())


def test_what_no_item_of_a_component_has_is_as_the_reference(named):
    X = np.array([[1.0, 3.0, np.nan], [2.0, 6.5, np.nan], [4.0, 4.0, 2.0]])
    engine = build(X)
    distortion, _ = framed(engine, named)
    centers = centered(engine, distortion, np.array([0, 0, 1]), np.repeat(distortion.origin, 2, axis=0)).centers
    found, ref = distortion.to_data(centers)[0], distortion.to_data(distortion.origin)[0]
    if named == ("frobenius", "none"):
        assert_allclose(found[2], 2)
    elif named[1] == "none":
        assert_allclose(found[2], distortion.ref[2])
    elif named[0] == "frobenius":  # in the proportion in which the rest is the reference
        assert_allclose(found[2] / ref[2], found[:2] @ ref[:2] / (ref[:2] @ ref[:2]))
    else:
        assert_allclose(found[2] / ref[2], found[:2].sum() / ref[:2].sum())


def test_proofs_and_the_flow_are_not_for_them(named):
    assert not issubclass(PARTIAL[named], Metric | Flowing)
