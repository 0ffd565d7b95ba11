"""Squared Euclidean distance: every formula against its definition."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import part_cost
from scipy.linalg import eigh

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam, engine_class
from orthonmf.engines.base import block_weight, weighted_mean
from orthonmf.passes.soft import soft
from orthonmf.passes.state import State
from orthonmf.search.gibbs import soft_pass

Euclidean = REGISTRY["frobenius", "none"]
ROUNDING = 1e-12  # sums of some hundred float64 terms, with cancellation of one digit


def build(X, weight=None, kind="dense"):
    matrix = X if kind == "dense" else sp.csr_array(X)
    return engine_class(kind)(matrix, weight, team=ThreadTeam(1))


def framed(engine):
    """The distortion about the mean of the items, and all items as one block."""
    distortion = Euclidean.about(weighted_mean(engine))
    whole = slice(0, engine.n_items)
    return distortion, distortion.items(engine.rows(whole), block_weight(engine, whole))


def random_case(seed, n=60, p=5, k=3, kind="dense"):
    """Weighted items, a soft state, its sums, and responsibilities."""
    rng = np.random.default_rng(seed)
    engine = build(rng.gamma(2.0, size=(n, p)), rng.gamma(1.0, size=n), kind)
    distortion, items = framed(engine)
    centers = distortion.to_frame(rng.gamma(2.0, size=(k, p)))
    state = State(0.7, centers, np.log(rng.dirichlet(np.ones(k))), tuple(range(k)))
    return engine, distortion, items, state


def naive(X, centers):
    """‖x − y‖² in extended precision, shape (k, n)."""
    gap = X.astype(np.longdouble)[None] - centers.astype(np.longdouble)[:, None]
    return np.sum(gap * gap, axis=2)


def test_by_hand():
    # About the mean (2, 1) the items are (∓2, ∓1), and (2, 4) is the centre (0, 3).
    engine = build(np.array([[0.0, 0.0], [4.0, 2.0]]))
    distortion, items = framed(engine)
    assert_array_equal(distortion.ref, [2, 1])
    assert_array_equal(items.rows.take(np.array([0, 1])), [[-2, -1], [2, 1]])
    centers = distortion.to_frame(np.array([[2.0, 4.0]]))
    assert_array_equal(centers, [[0, 3]])
    assert_array_equal(distortion.pairs(items, centers).distance, [[20, 8]])
    # A component of mass 3 at distance² 8 takes an item of weight 1 for 3/4 · 8 and gives it up for 3/2 · 8.
    pairs = distortion.pairs(items, centers)
    assert_array_equal(distortion.join(items, pairs, centers, np.array([3.0]), np.array([100.0]))[:, 1], [6])
    assert_array_equal(distortion.leave(items, pairs, np.zeros(2, int), centers, np.array([3.0]), np.array([100.0]))[1], 12)


class TestDistances:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_equal_the_definition(self, kind, seed):
        engine, distortion, items, state = random_case(seed, kind=kind)
        X = items.rows.take(np.arange(engine.n_items)) + distortion.ref
        expected = naive(X, distortion.to_data(state.centers))
        assert_allclose(distortion.pairs(items, state.centers).distance, expected.astype(float), rtol=ROUNDING)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(
        ("dtype", "offset"),
        [(np.float32, 0), (np.float32, 1e4), (np.float32, 1e6), (np.float64, 1e4), (np.float64, 1e8)],
    )
    def test_labels_far_from_the_origin_are_those_of_extended_precision(self, dtype, offset, seed):
        rng = np.random.default_rng(seed)
        centers = offset + 10 * rng.random((8, 6))
        X = (centers[rng.integers(8, size=200)] + rng.normal(size=(200, 6))).astype(dtype)
        distortion, items = framed(build(X))
        found = distortion.pairs(items, distortion.to_frame(centers)).distance
        expected = naive(X, centers)
        assert_array_equal(found.argmin(axis=0), expected.argmin(axis=0))
        # Nothing but the rounding of numbers of the size of the spread is left.
        assert_allclose(found, expected.astype(float), rtol=0, atol=3e3 * np.finfo(dtype).eps)

    def test_items_become_centres_at_distance_zero(self):
        _, distortion, items, _ = random_case(0)
        points = distortion.points(items, np.array([4, 7]))
        assert_allclose(distortion.pairs(items, points).distance[[0, 1], [4, 7]], 0, atol=ROUNDING)


class TestCenters:
    @pytest.mark.parametrize("seed", range(5))
    def test_round_trip(self, seed):
        _, distortion, _, state = random_case(seed)
        assert_allclose(distortion.to_frame(distortion.to_data(state.centers)), state.centers, rtol=1e-14, atol=1e-14)

    @pytest.mark.parametrize("seed", range(5))
    def test_center_is_the_minimum(self, seed):
        _, distortion, items, state = random_case(seed)
        resp, pairs, _ = soft(items, state)
        best = distortion.center(distortion.sums(items, resp, pairs.inner), resp.sum(axis=1))

        def cost(centers):
            return np.sum(resp * distortion.pairs(items, centers).distance, axis=1)

        for direction in np.random.default_rng(seed).normal(size=(20, *best.shape)):
            # at the minimum of a parabola of second derivative 2 mass, exactly t² mass is added
            rise = cost(best + 0.1 * direction) - cost(best)
            expected = 0.01 * np.sum(direction**2, axis=1) * resp.sum(axis=1)
            assert_allclose(rise, expected, rtol=1e-9)

    @pytest.mark.parametrize("seed", range(5))
    def test_slope_is_the_derivative(self, seed):
        engine, distortion, items, state = random_case(seed)
        resp = soft(items, state)[0]
        slope = distortion.slope(state, soft_pass(engine, distortion, state))
        numeric = np.zeros_like(slope)
        for index in np.ndindex(*slope.shape):
            step = np.zeros_like(slope)
            step[index] = 1e-4  # central differences of a parabola are exact up to rounding / step
            up, down = (np.vdot(resp, distortion.pairs(items, state.centers + s).distance) for s in (step, -step))
            numeric[index] = (up - down) / 2e-4
        assert_allclose(slope, numeric, rtol=1e-7, atol=1e-7)

    @pytest.mark.parametrize("seed", range(5))
    def test_step_along_the_slope_in_its_metric_is_the_new_center(self, seed):
        engine, distortion, _, state = random_case(seed)
        stats = soft_pass(engine, distortion, state)
        step = distortion.slope(state, stats) / (2 * distortion.curvature(state, stats))
        assert_allclose(state.centers - step, distortion.center(stats.sums, stats.mass), rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("seed", range(5))
def test_change_is_the_difference_of_distances(seed):
    _, distortion, items, state = random_case(seed)
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=state.centers.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    step = rng.normal(size=state.n_components)
    pairs = distortion.pairs(items, state.centers)
    moved = distortion.moved(state.centers, directions, step)
    expected = distortion.pairs(items, moved).distance - pairs.distance
    projections = distortion.projections(items, state.centers, directions)
    assert_allclose(distortion.change(pairs.inner, projections, step, state.centers, directions), expected, rtol=1e-10, atol=1e-11)


class TestMoves:
    """Join, leave and merge are differences of the costs of whole components with their best centres."""

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("n_members", [2, 5, 20])
    def test_join_and_leave_are_exact(self, n_members, seed):
        rng = np.random.default_rng(seed)
        X, weight = rng.gamma(2.0, size=(n_members + 1, 4)), rng.gamma(1.0, size=n_members + 1)
        distortion, items = framed(build(X, weight))
        member = np.arange(n_members + 1) < n_members
        mass = np.array([weight[member].sum()])
        center = distortion.to_frame(np.average(X[member], axis=0, weights=weight[member])[None])
        cost = np.array([part_cost(X[member], "none", weight[member])])
        pairs = distortion.pairs(items, center)
        joined = part_cost(X, "none", weight) - cost[0]
        assert_allclose(distortion.join(items, pairs, center, mass, cost)[0, -1], joined, rtol=1e-10)
        left = cost[0] - part_cost(X[1:-1], "none", weight[1:-1])
        assert_allclose(distortion.leave(items, pairs, np.zeros(len(X), int), center, mass, cost)[0], left, rtol=1e-10)

    def test_last_item_takes_all_the_cost_with_it(self):
        X = np.array([[1.0, 2.0], [5.0, 5.0]])
        distortion, items = framed(build(X, np.array([2.0, 1.0])))
        center = distortion.to_frame(X[:1])
        pairs = distortion.pairs(items, center)
        assert distortion.leave(items, pairs, np.zeros(2, int), center, np.array([2.0]), np.array([0.0]))[0] == 0

    @pytest.mark.parametrize("seed", range(5))
    def test_merge_is_exact(self, seed):
        rng = np.random.default_rng(seed)
        X, weight, labels = rng.gamma(2.0, size=(30, 4)), rng.gamma(1.0, size=30), np.arange(30) % 3
        distortion = Euclidean.about(X.mean(axis=0))
        parts = [labels == j for j in range(3)]
        centers = distortion.to_frame(np.stack([np.average(X[m], axis=0, weights=weight[m]) for m in parts]))
        cost = np.array([part_cost(X[m], "none", weight[m]) for m in parts])
        found = distortion.merge(centers, np.bincount(labels, weight), cost)
        for j, first in enumerate(parts):
            for other, second in enumerate(parts):
                if j != other:
                    union = first | second
                    rise = part_cost(X[union], "none", weight[union]) - cost[j] - cost[other]
                    assert_allclose(found[j, other], rise, rtol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_least_quotient_of_the_pencil_is_half_the_inverse_of_the_largest_variance(seed):
    engine, distortion, items, state = random_case(seed)
    n_dims = engine.n_dims
    stats = soft_pass(engine, distortion, state)
    state = state.set(centers=distortion.center(stats.sums, stats.mass))
    stats = soft_pass(engine, distortion, state)
    resp, pairs, _ = soft(items, state)
    stiff, spread = np.empty((2, state.n_components, n_dims, n_dims))
    for axis, direction in enumerate(np.eye(n_dims)):
        directions = np.tile(direction, (state.n_components, 1))
        moments = distortion.moments(items, resp, pairs, state.centers, directions)
        stiff[:, axis], spread[:, axis] = distortion.pencil(stats, state.centers, directions, moments)
    X = items.rows.take(np.arange(engine.n_items)) + distortion.ref
    for j, center in enumerate(distortion.to_data(state.centers)):
        covariance = (resp[j] * (X - center).T) @ (X - center) / resp[j].sum()
        assert_allclose(spread[j], spread[j].T, rtol=ROUNDING, atol=ROUNDING)
        least = 1 / eigh(spread[j], stiff[j], eigvals_only=True)[-1]
        assert_allclose(least, 1 / (2 * np.linalg.eigvalsh(covariance)[-1]), rtol=1e-10)
