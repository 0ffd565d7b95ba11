"""Kullback–Leibler divergence: every formula against its definition."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import rel_entr

from orthonmf.distortion import REGISTRY
from orthonmf.distortion.base import carried
from orthonmf.distortion.kullback_leibler import EVEN, LEAST
from orthonmf.engines import ThreadTeam, engine_class
from orthonmf.engines.base import block_weight
from orthonmf.passes.soft import soft
from orthonmf.passes.state import State
from orthonmf.search.gibbs import Settled, soft_pass
from orthonmf.search.transitions import critical_values

ROUNDING = 1e-10  # sums of some hundred float64 terms, of which logarithms cancel


@pytest.fixture(params=["item", "none"])
def scaling(request):
    return request.param


@pytest.fixture(params=["dense", "sparse"])
def kind(request):
    return request.param


def build(X, weight=None, kind="dense"):
    matrix = np.asarray(X, dtype=float) if kind == "dense" else sp.csr_array(np.asarray(X, dtype=float))
    return engine_class(kind)(matrix, weight, team=ThreadTeam(1))


def framed(engine, scaling):
    """The loss about the mean of the items, and all items as one block."""
    distortion = REGISTRY["kullback-leibler", scaling].of(engine)
    whole = slice(0, engine.n_items)
    return distortion, distortion.items(engine.rows(whole), block_weight(engine, whole))


def divergence(X, Y):
    """Σ x log(x/y) − x + y along the last axis, by SciPy."""
    return (rel_entr(X, Y) - X + Y).sum(axis=-1)


def seen(X, scaling):
    """What the loss sees of items, and what it weighs them with."""
    return (X / X.sum(axis=1, keepdims=True), X.sum(axis=1)) if scaling == "item" else (X, np.ones(len(X)))


def counts(seed, n=40, p=6, mean=5.0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(1.0, mean, (3, p))[rng.integers(3, size=n)]).astype(float)
    X[:, 0] += X.sum(axis=1) == 0
    return X


def random_case(seed, scaling, kind="dense", n=40, p=6, k=3):
    """Weighted counts, a soft state with positive centres, and the counts."""
    rng, X = np.random.default_rng(seed), counts(seed, n, p)
    engine = build(X, rng.gamma(1.0, size=n), kind)
    distortion, items = framed(engine, scaling)
    means = rng.gamma(2.0, size=(k, p)) * (X.mean() if scaling == "none" else 1.0)
    state = State(0.7, distortion.to_frame(means), np.log(rng.dirichlet(np.ones(k))), tuple(range(k)))
    return engine, distortion, items, state, X


def test_by_hand():
    # Profiles (1/2, 1/2) and (1, 0); about c = (3/4, 1/4) the second is at log(4/3), the first at ½ log(2/3) + ½ log 2.
    engine = build([[2.0, 2.0], [4.0, 0.0]])
    distortion, items = framed(engine, "item")
    assert_allclose(distortion.ref, (1 - EVEN) * np.array([0.75, 0.25]) + EVEN / 2, rtol=1e-15)
    assert_array_equal(items.weight, [4, 4])
    centers = distortion.to_frame(np.array([[3.0, 1.0]]))
    assert_allclose(distortion.to_data(centers), [[0.75, 0.25]], rtol=1e-15)
    pairs = distortion.pairs(items, centers)
    assert_allclose(pairs.distance, [[0.5 * np.log(2 / 3) + 0.5 * np.log(2), np.log(4 / 3)]], rtol=1e-14)
    # Of the two items in one component, of cost 4 · both distances, each costs all of it by leaving: the other has none alone.
    cost = np.array([4 * pairs.distance.sum()])
    assert_allclose(distortion.leave(items, pairs, np.zeros(2, int), centers, np.array([8.0]), cost), [cost[0], cost[0]], rtol=1e-12)


class TestDistances:
    @pytest.mark.parametrize("seed", range(3))
    def test_equal_the_definition(self, kind, scaling, seed):
        _, distortion, items, state, X = random_case(seed, scaling, kind)
        part, _ = seen(X, scaling)
        expected = divergence(part, distortion.to_data(state.centers)[:, None])
        assert_allclose(distortion.pairs(items, state.centers).distance, expected, rtol=ROUNDING)
        labels = np.arange(len(X)) % 3
        own = distortion.pairs(items, state.centers, labels).distance
        assert_allclose(own[0], expected[labels, np.arange(len(X))], rtol=ROUNDING)

    def test_items_become_centres_at_distance_zero(self, kind, scaling):
        _, distortion, items, _, _ = random_case(0, scaling, kind)
        points = distortion.points(items, np.array([4, 7]))
        assert_allclose(distortion.pairs(items, points).distance[[0, 1], [4, 7]], 0, atol=1e-14)

    def test_a_zero_of_a_centre_is_far_but_finite(self, kind, scaling):
        # Σ x log(x/c) with LEAST · g for the zero of c.
        distortion, items = framed(build([[0.0, 3.0], [2.0, 1.0]], kind=kind), scaling)
        centers = distortion.to_frame(np.array([[1.0, 0.0]]))
        part, _ = seen(np.array([[0.0, 3.0], [2.0, 1.0]]), scaling)
        floored = np.array([1.0, LEAST * distortion.ref[1]])
        expected = rel_entr(part, floored).sum(axis=1) - part.sum(axis=1) + 1
        assert_allclose(distortion.pairs(items, centers).distance[0], expected, rtol=ROUNDING)

    def test_a_zero_item_weighs_nothing_and_is_everywhere(self, kind):
        distortion, items = framed(build([[0.0, 0.0], [1.0, 2.0]], kind=kind), "item")
        assert items.weight[0] == 0
        assert_array_equal(distortion.pairs(items, distortion.origin).distance[:, 0], [0.0])

    def test_all_zero(self, kind, scaling):
        distortion, items = framed(build(np.zeros((2, 3)), kind=kind), scaling)
        assert (distortion.ref > 0).all()
        assert np.isfinite(distortion.pairs(items, distortion.origin).distance).all()

    def test_nearly_equal_items_keep_their_digits(self, scaling):
        rng = np.random.default_rng(0)
        X = 10 + 1e-5 * rng.standard_normal((30, 6))
        engine = build(X)
        distortion, items = framed(engine, scaling)
        part, _ = seen(X.astype(np.longdouble), scaling)
        center = part.mean(axis=0)
        exact = (part * np.log(part / center) - part + center).sum(axis=1)
        found = distortion.pairs(items, distortion.to_frame(center.astype(float)[None])).distance[0]
        # A few ε of the item, over a distance of (1e-6)² of it.
        assert_allclose(found, exact.astype(float), rtol=1e-2)

    def test_a_frame_survives_its_journey(self, scaling):
        _, distortion, _, state, _ = random_case(0, scaling)
        distortion._logarithms(state.centers)
        other = pickle.loads(pickle.dumps(distortion))
        assert type(other) is type(distortion)
        assert_array_equal(other.ref, distortion.ref)

    def test_logarithms_are_those_of_the_centres_also_after_they_changed(self, scaling):
        _, distortion, items, state, X = random_case(0, scaling)
        centers = state.centers.copy()
        for _ in range(3):
            distortion.pairs(items, centers)
            centers[:] = distortion.retract(centers * 1.1 + 0.01)
            expected = divergence(seen(X, scaling)[0], distortion.to_data(centers)[:, None])
            assert_allclose(distortion.pairs(items, centers).distance, expected, rtol=ROUNDING)


class TestCenters:
    def test_round_trip(self, scaling):
        _, distortion, _, state, _ = random_case(1, scaling)
        assert_allclose(distortion.to_frame(distortion.to_data(state.centers)), state.centers, rtol=1e-14)
        if scaling == "item":
            assert_allclose(distortion.to_data(state.centers).sum(axis=1), 1, rtol=1e-14)

    @pytest.mark.parametrize("seed", range(3))
    def test_center_is_the_minimum(self, scaling, seed):
        _, distortion, items, state, _ = random_case(seed, scaling)
        resp, pairs, _ = soft(items, state)
        best = distortion.center(distortion.sums(items, resp, pairs.inner), resp.sum(axis=1))
        least = np.sum(resp * distortion.pairs(items, best).distance, axis=1)
        for direction in np.random.default_rng(seed).normal(size=(20, *best.shape)):
            other = carried(distortion, best + 0.05 * direction, resp.sum(axis=1))
            assert (np.sum(resp * distortion.pairs(items, other).distance, axis=1) > least).all()

    @pytest.mark.parametrize("seed", range(5))
    def test_slope_is_the_derivative(self, scaling, seed):
        check_slope(scaling, seed)

    @pytest.mark.long
    @pytest.mark.parametrize("seed", range(5, 150))
    def test_slope_is_the_derivative_at_length(self, scaling, seed):
        check_slope(scaling, seed)

    def test_curvature_is_half_the_second_derivative_at_the_best_centre(self, scaling):
        _, distortion, items, state, _ = random_case(2, scaling)
        resp, pairs, _ = soft(items, state)
        best = distortion.center(distortion.sums(items, resp, pairs.inner), resp.sum(axis=1))
        way = distortion.tangent(np.random.default_rng(0).normal(size=best.shape), best)
        way /= np.linalg.norm(way, axis=1, keepdims=True)

        def cost(step):
            return np.sum(resp * distortion.pairs(items, distortion.retract(best + step * way)).distance, axis=1)

        second = (cost(1e-3) - 2 * cost(0.0) + cost(-1e-3)) / 1e-6
        assert_allclose(second / 2, resp.sum(axis=1), rtol=1e-3)


def check_slope(scaling, seed):
    engine, distortion, items, state, _ = random_case(seed, scaling)
    resp = soft(items, state)[0]
    slope = distortion.slope(state, soft_pass(engine, distortion, state))
    way = distortion.tangent(np.random.default_rng(seed).normal(size=slope.shape), state.centers)
    way /= np.linalg.norm(way, axis=1, keepdims=True)

    def cost(step):
        return np.sum(resp * distortion.pairs(items, distortion.retract(state.centers + step * way)).distance, axis=1)

    found = (cost(1e-5) - cost(-1e-5)) / 2e-5
    # The error of the difference is 1e-10 of third derivatives, and 1e5 roundings.
    assert_allclose(found, np.einsum("ij,ij->i", slope, way), rtol=1e-5, atol=1e-6 * np.abs(slope).max())


class TestTransitions:
    @pytest.mark.parametrize("seed", range(5))
    def test_critical_value_is_that_of_the_covariance(self, scaling, seed):
        check_critical(scaling, seed)

    @pytest.mark.long
    @pytest.mark.parametrize("seed", range(5, 150))
    def test_critical_value_is_that_of_the_covariance_at_length(self, scaling, seed):
        check_critical(scaling, seed)

    @pytest.mark.parametrize("seed", range(20))
    def test_profiles_never_split_below_one(self, seed):
        X = counts(seed)
        engine = build(X)
        distortion, _ = framed(engine, "item")
        state = State(0.5, distortion.to_frame(X.sum(axis=0)[None]), np.zeros(1))
        settled = Settled(state, soft_pass(engine, distortion, state), 1, 0.0, True)
        assert critical_values(engine, distortion, settled, tol=1e-10, max_passes=100).beta[0] >= 1

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("step", [-0.7, 0.02, 1.5])
    def test_change_is_that_of_the_moved_centre(self, kind, scaling, step, seed):
        _, distortion, items, state, _ = random_case(seed, scaling, kind)
        way = distortion.tangent(np.random.default_rng(seed).normal(size=state.centers.shape), state.centers)
        way /= np.linalg.norm(way, axis=1, keepdims=True)
        steps, pairs = np.full(3, step), distortion.pairs(items, state.centers)
        projections = distortion.projections(items, state.centers, way)
        moved = distortion.moved(state.centers, way, steps)
        found = distortion.change(pairs.inner, projections, steps, state.centers, way)
        expected = distortion.pairs(items, moved).distance - pairs.distance
        assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())
        if scaling == "item":
            assert_allclose(distortion.to_data(moved).sum(axis=1), 1, rtol=1e-12)

    def test_a_step_is_a_distance(self, scaling):
        # KL(c ‖ c moved by t) is t² to second order.
        _, distortion, _, state, _ = random_case(0, scaling)
        way = distortion.tangent(np.ones(state.centers.shape) * np.arange(6), state.centers)
        way /= np.linalg.norm(way, axis=1, keepdims=True)
        moved = distortion.moved(state.centers, way, np.full(3, 1e-3))
        assert_allclose(divergence(distortion.to_data(state.centers), distortion.to_data(moved)), 1e-6, rtol=1e-2)


def check_critical(scaling, seed):
    """β at which the second derivative of F along its easiest direction is 0, by finite differences, and by eigenvalues."""
    X = counts(seed)
    weight = np.random.default_rng(seed).gamma(1.0, size=len(X))
    engine = build(X, weight)
    distortion, _ = framed(engine, scaling)
    part, size = seen(X, scaling)
    mass = weight * size
    center = mass @ part / mass.sum()
    used = center > 0
    state = State(1.0, distortion.to_frame(center[None]), np.zeros(1))
    settled = Settled(state, soft_pass(engine, distortion, state), 1, 0.0, True)
    found = critical_values(engine, distortion, settled, tol=1e-12, max_passes=200)
    rest = (part - center)[:, used] / np.sqrt(center[used])
    expected = 1 / np.linalg.eigvalsh((rest * mass[:, None]).T @ rest / mass.sum())[-1]
    assert_allclose(found.beta[0], expected, rtol=1e-6)
    # Two components, half the mass each, a step either way: F falls above β_cr and rises below.
    way = found.directions

    def free_energy(beta, step):
        both = np.vstack([distortion.retract(state.centers + sign * step * way) for sign in (-1, 1)])
        return -soft_pass(engine, distortion, State(beta, both, np.log([0.5, 0.5]))).log_partition

    for beta, sign in ((0.9 * expected, 1), (1.1 * expected, -1)):
        step = 0.02 / np.sqrt(beta)
        assert sign * (free_energy(beta, step) - free_energy(beta, 0.0)) > 0


class TestMoves:
    @pytest.mark.parametrize("seed", range(4))
    def test_join_and_leave_are_what_recomputation_says(self, kind, scaling, seed):
        rng, X = np.random.default_rng(seed), counts(seed, n=14, mean=1.0)
        weight, labels = rng.integers(1, 4, size=len(X)).astype(float), np.arange(len(X)) % 3
        distortion, items = framed(build(X, weight, kind), scaling)
        part, size = seen(X, scaling)
        omega = weight * size

        def cost(mine):
            center = omega[mine] @ part[mine] / max(omega[mine].sum(), 1e-300)
            return float(omega[mine] @ divergence(part[mine], center)) if mine.any() else 0.0

        members = [labels == j for j in range(3)]
        sums = np.array([omega[mine] @ part[mine] for mine in members])
        mass, costs = np.array([omega[mine].sum() for mine in members]), np.array([cost(mine) for mine in members])
        centers = distortion.center(sums, mass)
        pairs = distortion.pairs(items, centers)
        join = distortion.join(items, pairs, centers, mass, costs)
        leave = distortion.leave(items, pairs, labels, centers, mass, costs)
        for i in range(len(X)):
            one = np.arange(len(X)) == i
            for j in range(3):
                if labels[i] != j:
                    assert_allclose(join[j, i], cost(members[j] | one) - costs[j], rtol=1e-7, atol=1e-9 * costs.sum())
            expected = costs[labels[i]] - cost(members[labels[i]] & ~one)
            assert_allclose(leave[i], expected, rtol=1e-7, atol=1e-9 * costs.sum())
        merge = distortion.merge(centers, mass, costs)
        for j in range(3):
            for other in range(3):
                expected = cost(members[j] | members[other]) - costs[j] - costs[other] if j != other else 0.0
                assert_allclose(merge[j, other], expected, rtol=1e-9, atol=1e-9 * costs.sum())
            points = distortion.points(items, np.flatnonzero(members[j]))
            assert_allclose(distortion.least_cost(points, omega[members[j]]), costs[j], rtol=1e-9)

    def test_nothing_joins_an_empty_component_at_a_cost(self, scaling):
        _, distortion, items, state, _ = random_case(0, scaling)
        mass = np.array([0.0, 1.0, 2.0])
        join = distortion.join(items, distortion.pairs(items, state.centers), state.centers, mass, mass)
        assert_array_equal(join[0], 0)
        assert np.isfinite(distortion.merge(state.centers, mass, mass)).all()


class TestFlow:
    def test_cost_and_gradient(self, scaling):
        _, distortion, items, state, X = random_case(3, scaling)
        flow = distortion.flow_cost(distortion.points(items, np.arange(len(items))), items.weight)
        expected = divergence(seen(X, scaling)[0], distortion.to_data(state.centers)[:, None]).T
        assert_allclose(flow.cost(state.centers), expected, rtol=ROUNDING)
        resp = np.random.default_rng(0).dirichlet(np.ones(3), len(items))
        gradient = flow.center_gradient(resp, state.centers)
        way = distortion.tangent(np.random.default_rng(1).normal(size=gradient.shape), state.centers)

        def total(step):
            return float(items.weight @ (resp * flow.cost(flow.place(state.centers + step * way))).sum(axis=1))

        assert_allclose((total(1e-6) - total(-1e-6)) / 2e-6, np.vdot(gradient, way), rtol=1e-5)

    def test_spread_starts_at_the_best_centre(self, scaling):
        _, distortion, items, _, X = random_case(3, scaling)
        flow = distortion.flow_cost(distortion.points(items, np.arange(len(items))), items.weight)
        part, _ = seen(X, scaling)
        origin, directions = flow.spread(3)
        assert_allclose(distortion.to_data(origin[None])[0], items.weight @ part / items.weight.sum(), rtol=1e-12)
        assert_allclose(directions @ directions.T, np.eye(2), atol=1e-12)
