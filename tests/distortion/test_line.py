"""Distance to a line: every formula against its definition."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import part_cost
from scipy.linalg import eigh, null_space

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam, engine_class
from orthonmf.engines.base import block_weight, weighted_mean
from orthonmf.passes.soft import soft
from orthonmf.passes.state import State
from orthonmf.search.gibbs import soft_pass

Line = REGISTRY["frobenius", "item"]
ROUNDING = 1e-12  # sums of some hundred float64 terms, with cancellation of one digit


def build(X, weight=None, kind="dense"):
    matrix = X if kind == "dense" else sp.csr_array(X)
    return engine_class(kind)(matrix, weight, team=ThreadTeam(1))


def framed(engine):
    """The distortion about the mean direction, and all items as one block."""
    distortion = Line.about(weighted_mean(engine))
    whole = slice(0, engine.n_items)
    return distortion, distortion.items(engine.rows(whole), block_weight(engine, whole))


def directions_in_frame(distortion, vectors):
    """Vectors of the data's space in the coordinates of the frame: (v·r, v − (v·r) r)."""
    along = vectors @ distortion.ref
    return np.column_stack([along, vectors - np.multiply.outer(along, distortion.ref)])


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def random_case(seed, n=60, p=5, k=3, kind="dense"):
    """Weighted items (the rows of X, for reference), and a soft state."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, p))
    engine = build(X, rng.gamma(1.0, size=n), kind)
    distortion, items = framed(engine)
    centers = distortion.to_frame(unit(rng.gamma(2.0, size=(k, p))))
    state = State(7.0, centers, np.log(rng.dirichlet(np.ones(k))), tuple(range(k)))
    return engine, X, distortion, items, state


def tangents(distortion, state, seed):
    """Random unit directions in which each centre may move."""
    rng = np.random.default_rng(seed)
    free = directions_in_frame(distortion, rng.normal(size=(state.n_components, len(distortion.ref))))
    return unit(distortion.tangent(free, state.centers))


def naive(X, centers):
    """‖x − (x·u) u‖² by explicit residuals in extended precision, shape (k, n)."""
    X, centers = X.astype(np.longdouble), centers.astype(np.longdouble)
    centers = centers / np.sqrt(np.sum(centers**2, axis=1))[:, None]
    scale = np.einsum("ip,kp->ki", X, centers)
    return np.sum((X[None] - scale[:, :, None] * centers[:, None]) ** 2, axis=2)


def test_by_hand():
    # About r = (1, 1)/√2 the item (2, 0) has s = 1/√2 and the rest (1, −1)/2; it weighs 4 and is at ½ from r.
    distortion, items = framed(build(np.array([[2.0, 0.0], [0.0, 2.0]])))
    root = np.sqrt(0.5)
    assert_allclose(distortion.ref, [root, root], rtol=1e-15)
    assert_allclose(items.along, [root, root], rtol=1e-15)
    assert_allclose(items.rows.take(np.array([0])), [[0.5, -0.5]], rtol=1e-15)
    assert_array_equal(items.weight, [4, 4])
    assert_allclose(distortion.pairs(items, distortion.origin).distance, [[0.5, 0.5]], rtol=1e-15)
    # the line through (3, 4)/5 is at 1 − 9/25 and 1 − 16/25
    centers = distortion.to_frame(np.array([[0.6, 0.8]]))
    assert_allclose(distortion.pairs(items, centers).distance, [[0.64, 0.36]], rtol=1e-14)
    # moving from r along (1, −1)/√2 by tan φ = 1 ends on the first item
    direction = directions_in_frame(distortion, np.array([[root, -root]]))
    moved = distortion.moved(distortion.origin, direction, np.ones(1))
    assert_allclose(distortion.to_data(moved), [[1, 0]], atol=1e-15)


class TestDistances:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_equal_the_definition(self, kind, seed):
        _, X, distortion, items, state = random_case(seed, kind=kind)
        expected = naive(X, distortion.to_data(state.centers)).astype(float) / np.sum(X**2, axis=1)
        found = distortion.pairs(items, state.centers)
        assert_allclose(found.distance, expected, rtol=1e-10, atol=1e-14)
        assert_allclose(found.inner, distortion.to_data(state.centers) @ unit(X).T, rtol=ROUNDING)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(
        ("dtype", "offset"),
        [(np.float32, 0), (np.float32, 1e4), (np.float64, 1e4), (np.float64, 1e8)],
    )
    def test_labels_far_from_the_origin_are_those_of_extended_precision(self, dtype, offset, seed):
        rng = np.random.default_rng(seed)
        centers = offset + 10 * rng.random((8, 6))
        X = np.abs(centers[rng.integers(8, size=200)] + rng.normal(size=(200, 6))).astype(dtype)
        engine = build(X)
        distortion, items = framed(engine)
        found = distortion.pairs(items, distortion.to_frame(unit(centers))).distance
        expected = naive(X, unit(centers)).astype(float)
        assert_array_equal(found.argmin(axis=0), expected.argmin(axis=0))
        # What is left is the rounding of numbers of the size of the spread, and of the items in float64.
        rounding = np.finfo(dtype).eps * expected.max() + np.finfo(np.float64).eps * offset
        assert_allclose(found * items.weight, expected, rtol=0, atol=30 * rounding)

    def test_zero_item_weighs_nothing_and_is_near_every_line(self):
        distortion, items = framed(build(np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]])))
        assert items.weight[0] == 0
        assert_array_equal(distortion.pairs(items, distortion.to_frame(np.eye(2))).distance[:, 0], 0)

    def test_items_become_centres_at_distance_zero(self):
        _, X, distortion, items, _ = random_case(0)
        points = distortion.points(items, np.array([4, 7]))
        assert_allclose(distortion.to_data(points), unit(X[[4, 7]]), rtol=ROUNDING)
        assert_allclose(distortion.pairs(items, points).distance[[0, 1], [4, 7]], 0, atol=1e-15)


class TestCenters:
    @pytest.mark.parametrize("seed", range(5))
    def test_round_trip(self, seed):
        _, _, distortion, _, state = random_case(seed)
        data = distortion.to_data(state.centers)
        assert_allclose(np.linalg.norm(data, axis=1), 1, rtol=1e-14)
        assert_allclose(distortion.to_frame(data), state.centers, rtol=1e-13, atol=1e-14)

    @pytest.mark.parametrize("seed", range(5))
    def test_center_never_raises_the_cost_and_ends_at_the_minimum(self, seed):
        _, X, distortion, items, state = random_case(seed)
        resp, pairs, _ = soft(items, state)
        centers, costs = state.centers, []
        for _ in range(60):
            pairs = distortion.pairs(items, centers)
            costs.append(np.sum(resp * pairs.distance, axis=1))
            centers = distortion.center(distortion.sums(items, resp, pairs.inner), resp.sum(axis=1))
        assert np.all(np.diff(costs, axis=0) <= 1e-14 * costs[0])
        for j, weight in enumerate(resp):
            # Σ q (1 − (x̂·u)²) is least at the leading eigenvector of Σ q x̂x̂ᵀ; the other eigenvalues are left
            second = (weight * unit(X).T) @ unit(X)
            assert_allclose(costs[-1][j], np.linalg.eigvalsh(second)[:-1].sum(), rtol=1e-10)

    def test_vanished_direction_becomes_the_reference(self):
        _, _, distortion, _, state = random_case(0)
        assert_array_equal(distortion.center(np.zeros_like(state.centers[:1]), np.ones(1)), distortion.origin)

    @pytest.mark.parametrize("seed", range(5))
    def test_slope_is_the_derivative(self, seed):
        engine, _, distortion, items, state = random_case(seed)
        resp = soft(items, state)[0]
        slope = distortion.slope(state, soft_pass(engine, distortion, state))
        assert_allclose(np.einsum("ij,ij->i", slope, state.centers), 0, atol=ROUNDING * np.abs(slope).max())
        for draw in range(8):
            directions = tangents(distortion, state, 100 * seed + draw)
            t = 1e-5 * np.ones(state.n_components)  # error t² and rounding / t, both about 1e-10
            up, down = (
                np.sum(
                    resp * distortion.pairs(items, distortion.moved(state.centers, directions, s)).distance,
                    axis=1,
                )
                for s in (t, -t)
            )
            expected = np.einsum("ij,ij->i", slope, directions)
            assert_allclose((up - down) / 2e-5, expected, rtol=1e-7, atol=1e-7)

    @pytest.mark.parametrize("seed", range(5))
    def test_step_along_the_slope_in_its_metric_is_the_new_center(self, seed):
        engine, _, distortion, _, state = random_case(seed)
        stats = soft_pass(engine, distortion, state)
        step = distortion.slope(state, stats) / (2 * distortion.curvature(state, stats))
        expected = distortion.center(stats.sums, stats.mass)
        assert_allclose(distortion.retract(state.centers - step), expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("seed", range(5))
def test_change_is_the_difference_of_distances(seed):
    _, _, distortion, items, state = random_case(seed)
    directions = tangents(distortion, state, seed)
    step = np.random.default_rng(seed).normal(size=state.n_components)
    pairs = distortion.pairs(items, state.centers)
    moved = distortion.moved(state.centers, directions, step)
    assert_allclose(np.linalg.norm(moved, axis=1), 1, rtol=1e-14)
    expected = distortion.pairs(items, moved).distance - pairs.distance
    projections = distortion.projections(items, state.centers, directions)
    assert_allclose(distortion.change(pairs.inner, projections, step, state.centers, directions), expected, rtol=1e-10, atol=1e-13)


def line_of(X, weight):
    """Leading direction, and the two largest eigenvalues of Σ w x xᵀ."""
    _, values, vectors = np.linalg.svd(np.sqrt(weight)[:, None] * X, full_matrices=False)
    return np.abs(vectors[:1]), values[0] ** 2, values[1] ** 2


class TestMoves:
    """Join and leave are differences of the costs of components with their best lines, to second order."""

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("n_members", [5, 20, 80, 320])
    @pytest.mark.parametrize("spread", [0.05, 0.3])
    def test_join_and_leave_are_right_to_second_order(self, spread, n_members, seed):
        # λ_max(A + ω x xᵀ) = λ + ω (x·u)² + ω² (x·u)² Σ_m (x·v_m)² / (λ − λ_m) + …: to stop here and to
        # take 0 for λ_m is wrong by the last term times ω / λ and λ_2 / λ.
        rng = np.random.default_rng(seed)
        members = rng.gamma(10.0, size=6) * (1 + spread * rng.normal(size=(n_members, 6)))
        X = np.abs(np.vstack([members, rng.gamma(10.0, size=6)]))
        weight = rng.gamma(10.0, 0.1, size=len(X))
        distortion, items = framed(build(X, weight))
        center, first, second = line_of(X[:-1], weight[:-1])
        cost = np.array([part_cost(X[:-1], "item", weight[:-1])])
        mass = np.array([first]) + cost
        pairs = distortion.pairs(items, distortion.to_frame(center))
        plain = items.weight * pairs.distance[0]

        joins = distortion.join(items, pairs, center, mass, cost)[0]
        joined = part_cost(X, "item", weight) - cost[0]
        error = 2 * (plain - joins)[-1] * (items.weight[-1] + second) / first
        assert abs(joins[-1] - joined) <= error

        leaves = distortion.leave(items, pairs, np.zeros(len(X), int), center, mass, cost)
        left = cost[0] - part_cost(X[1:-1], "item", weight[1:-1])
        error = 2 * (leaves - plain)[0] * (items.weight[0] + second) / (first - items.weight[0])
        assert abs(leaves[0] - left) <= error

    def test_last_item_takes_all_the_cost_with_it(self):
        X = np.array([[1.0, 2.0], [5.0, 5.0]])
        distortion, items = framed(build(X))
        center = distortion.to_frame(unit(X[:1]))
        pairs = distortion.pairs(items, center)
        assert distortion.leave(items, pairs, np.zeros(2, int), center, np.array([5.0]), np.array([0.0]))[0] == 0

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("spread", [0.0, 0.05, 0.5])
    def test_merge_bounds_the_rise_and_is_exact_for_rays(self, spread, seed):
        rng = np.random.default_rng(seed)
        labels, weight = np.arange(30) % 3, rng.gamma(1.0, size=30)
        X = rng.gamma(2.0, size=(3, 4))[labels] * rng.gamma(2.0, size=(30, 1))
        X *= np.abs(1 + spread * rng.normal(size=X.shape))
        distortion = Line.about(X.mean(axis=0))
        parts = [labels == j for j in range(3)]
        lines = [line_of(X[m], weight[m]) for m in parts]
        cost = np.array([part_cost(X[m], "item", weight[m]) for m in parts])
        mass = cost + [first for _, first, _ in lines]
        found = distortion.merge(distortion.to_frame(np.vstack([center for center, _, _ in lines])), mass, cost)
        for j, first in enumerate(parts):
            for other, second in enumerate(parts):
                if j != other:
                    union = first | second
                    rise = part_cost(X[union], "item", weight[union]) - cost[j] - cost[other]
                    assert found[j, other] >= rise * (1 - 1e-10)
                    if spread == 0:
                        assert_allclose(found[j, other], rise, rtol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_least_quotient_of_the_pencil_is_that_of_the_dense_problem(seed):
    engine, X, distortion, items, state = random_case(seed)
    resp, pairs, _ = soft(items, state)
    for _ in range(100):  # centres at rest for these responsibilities
        state = state.set(centers=distortion.center(distortion.sums(items, resp, pairs.inner), resp.sum(axis=1)))
        pairs = distortion.pairs(items, state.centers)
    stats = soft_pass(engine, distortion, state)
    resp, pairs, _ = soft(items, state)
    for j, center in enumerate(distortion.to_data(state.centers)):
        weight, cosine = resp[j] / resp[j].sum(), unit(X) @ center
        second = (weight * unit(X).T) @ unit(X)
        fourth = (weight * cosine**2 * unit(X).T) @ unit(X)
        basis = null_space(center[None])  # ψ ⟂ u
        stiff = center @ second @ center * np.eye(len(center) - 1) - basis.T @ second @ basis
        expected = 1 / eigh(2 * basis.T @ fourth @ basis, stiff, eigvals_only=True)[-1]

        axes = directions_in_frame(distortion, basis.T)
        found = []
        for axis in axes:
            directions = np.where(np.arange(state.n_components)[:, None] == j, axis, 0.0)
            moments = distortion.moments(items, resp, pairs, state.centers, directions)
            found.append([form[j] @ axes.T for form in distortion.pencil(stats, state.centers, directions, moments)])
        forms = np.swapaxes(found, 0, 1)
        assert_allclose(forms[0], stiff, rtol=1e-9, atol=1e-12)
        assert_allclose(1 / eigh(forms[1], forms[0], eigvals_only=True)[-1], expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_dims", [2, 5, 60])
def test_exact_moves_are_those_of_the_singular_values(seed, n_dims):
    rng = np.random.default_rng(seed)
    X, weight, labels = rng.gamma(1.0, size=(20, n_dims)), rng.integers(1, 4, size=20).astype(float), np.arange(20) % 3
    points = X / np.linalg.norm(X, axis=1)[:, None]

    def cost(chosen):
        values = np.linalg.svd(points[chosen] * np.sqrt(weight[chosen])[:, None], compute_uv=False) ** 2
        return values[1:].sum()

    members = [np.flatnonzero(labels == j) for j in range(3)]
    axes = [np.linalg.svd(points[mine] * np.sqrt(weight[mine])[:, None])[2][0] for mine in members]
    distance = 1 - (points @ np.array(axes).T).T ** 2
    distortion = Line.about(X.mean(axis=0))
    leave, join = distortion.exact_moves(points, weight, weight, labels, distance)
    for item in range(20):
        for j, mine in enumerate(members):
            if labels[item] == j:
                assert_allclose(leave[item], cost(mine) - cost(mine[mine != item]), rtol=1e-9, atol=1e-12)
            else:
                assert_allclose(join[j, item], cost(np.append(mine, item)) - cost(mine), rtol=1e-9, atol=1e-12)
