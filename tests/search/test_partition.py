"""Hard assignments: nearest labels, best centres, and where their alternation ends."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import part_cost, partition_cost

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.base import weighted_mean
from orthonmf.engines.dense import DenseEngine
from orthonmf.search import partition
from orthonmf.search.budget import BUDGET
from orthonmf.search.partition import (
    Momentum,
    Partition,
    alone,
    alternate,
    centered,
    distances,
    item_points,
    labelled_pass,
    nearest_pass,
    refilled,
    sharpened,
    steps,
)

ROUNDING = 1e-10  # of the cost; centres are at rest when it falls by less than 1e-11


@pytest.fixture(params=["item", "none"])
def scaling(request):
    return request.param


def build(X, scaling, weight=None):
    engine = DenseEngine(np.asarray(X, dtype=float), weight, team=ThreadTeam(1))
    return engine, REGISTRY["frobenius", scaling].about(weighted_mean(engine))


def random_case(seed, scaling, n=60, p=4, k=5):
    rng = np.random.default_rng(seed)
    X, weight = rng.gamma(2.0, size=(n, p)), rng.gamma(1.0, size=n)
    engine, distortion = build(X, scaling, weight)
    return X, weight, engine, distortion, distortion.to_frame(X[rng.choice(n, k, replace=False)])


def test_by_hand():
    # 0, 1, 5, 7 about 0 and 4: labels 0 0 1 1, costs 0 + 1 and 1 + 9; then about ½ and 6, costs ½ and 2.
    engine, distortion = build([[0.0], [1.0], [5.0], [7.0]], "none")
    stats, labels = nearest_pass(engine, distortion, distortion.to_frame(np.array([[0.0], [4.0]])))
    assert_array_equal(labels, [0, 0, 1, 1])
    assert_allclose(stats.cost, [1, 10], rtol=1e-14)
    assert_array_equal(stats.mass, [2, 2])
    assert_array_equal(stats.sizes, [2, 2])
    assert stats.changed == 4
    found = alternate(engine, distortion, distortion.to_frame(np.array([[0.0], [4.0]])))
    assert_allclose(distortion.to_data(found.centers), [[0.5], [6]], rtol=1e-14)
    assert_allclose(found.stats.cost, [0.5, 2], rtol=1e-12)
    assert found.at_rest


def test_ties_go_to_the_lowest_index():
    engine, distortion = build([[0.0], [2.0], [1.0]], "none")
    _, labels = nearest_pass(engine, distortion, distortion.to_frame(np.array([[0.0], [2.0]])))
    assert_array_equal(labels, [0, 1, 0])


class TestPasses:
    @pytest.mark.parametrize("seed", range(3))
    def test_sums_are_those_of_the_definition(self, scaling, seed):
        X, weight, engine, distortion, centers = random_case(seed, scaling)
        stats, labels = nearest_pass(engine, distortion, centers)
        data = distortion.to_data(centers)
        omega = weight * (1 if scaling == "none" else np.sum(X**2, axis=1))
        if scaling == "none":
            cost = weight[:, None] * np.sum((X[:, None] - data) ** 2, axis=2)
        else:
            cost = weight[:, None] * np.sum((X[:, None] - (X @ data.T)[:, :, None] * data) ** 2, axis=2)
        assert_array_equal(labels, cost.argmin(axis=1))
        assert_allclose(stats.total, cost.min(axis=1).sum(), rtol=1e-12)
        assert_allclose(stats.mass, np.bincount(labels, omega, 5), rtol=1e-13)
        assert_array_equal(stats.sizes, np.bincount(labels, minlength=5))
        again = labelled_pass(engine, distortion, centers, labels)
        assert_array_equal(again.cost, stats.cost)
        away = distances(engine, distortion, Partition(labels, centers, stats))
        two = np.sort(cost / omega[:, None], axis=1)
        assert_allclose(away.own, two[:, 0], rtol=1e-9, atol=1e-12)
        assert_allclose(away.second, two[:, 1], rtol=1e-9, atol=1e-12)
        assert_allclose(away.weight, omega, rtol=1e-13)

    def test_items_as_centres_cost_nothing(self, scaling):
        X, _, engine, distortion, _ = random_case(0, scaling)
        index = np.array([3, 3, 41])
        points = distortion.to_data(item_points(engine, distortion, index))
        expected = X[index] if scaling == "none" else X[index] / np.linalg.norm(X[index], axis=1, keepdims=True)
        assert_allclose(points, expected, rtol=1e-13)

    def test_all_items_in_one_component(self):
        X, weight, engine, distortion, _ = random_case(0, "none")
        assert_allclose(alone(engine, distortion).total, part_cost(X, "none", weight), rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
class TestAlternation:
    def test_cost_never_rises(self, scaling, seed):
        _, _, engine, distortion, centers = random_case(seed, scaling)
        costs = [alternate(engine, distortion, centers, max_passes=passes).cost for passes in range(1, 40)]
        assert np.all(np.diff(costs) <= 1e-14 * costs[0])

    def test_ends_at_a_fixed_point(self, scaling, seed):
        X, weight, engine, distortion, centers = random_case(seed, scaling)
        found = alternate(engine, distortion, centers)
        assert found.at_rest
        _, labels = nearest_pass(engine, distortion, found.centers)
        assert_array_equal(labels, found.labels)
        # with the best centres for its labels, as an independent formula has them
        assert_allclose(found.cost, partition_cost(X, found.labels, scaling, weight), rtol=ROUNDING)

    def test_best_centres_for_given_labels(self, scaling, seed):
        X, weight, engine, distortion, centers = random_case(seed, scaling)
        labels = np.arange(len(X)) % 5
        found = centered(engine, distortion, labels, centers)
        assert_array_equal(found.labels, labels)
        # A hundred power steps on items without a line in common leave one part in 1e6.
        best = partition_cost(X, labels, scaling, weight)
        assert best * (1 - ROUNDING) <= found.cost <= best * (1 + (1e-6 if scaling == "item" else ROUNDING))


@pytest.mark.parametrize("seed", range(3))
class TestSharpening:
    """Centres come to rest for labels that stay what they are."""

    def sharp(self, seed, scaling):
        _, _, engine, distortion, centers = random_case(seed, scaling, n=400)
        part = alternate(engine, distortion, centers, max_passes=3)
        before = engine.passes
        found = sharpened(engine, distortion, part)
        return (
            engine,
            distortion,
            Partition(part.labels, found, labelled_pass(engine, distortion, found, part.labels)),
            engine.passes - before,
        )

    def test_to_rounding(self, scaling, seed):
        _, distortion, found, _ = self.sharp(seed, scaling)
        assert_allclose(distortion.center(found.stats.sums, found.stats.mass), found.centers, atol=1e-15)

    def test_of_many_items_until_a_step_gains_nothing(self, scaling, seed, monkeypatch):
        *_, exact, passes = self.sharp(seed, scaling)
        monkeypatch.setattr(partition, "BUDGET", replace(BUDGET, many_items=0))
        engine, distortion, found, fewer = self.sharp(seed, scaling)
        assert fewer <= passes - (scaling == "item")
        assert steps(engine, distortion, found).max() <= BUDGET.still
        assert exact.cost * (1 - ROUNDING) <= found.cost <= exact.cost * (1 + BUDGET.still**2)


class TestMomentum:
    """On many items a slow alternation is carried on the way that it goes."""

    def carried(self, monkeypatch, scaling, brief_items):
        monkeypatch.setattr(partition, "BUDGET", replace(BUDGET, brief_items=brief_items))
        X = np.random.default_rng(0).random((20_000, 20))
        engine, distortion = build(X, scaling)
        costs = []
        found = alternate(engine, distortion, distortion.to_frame(X[:4]), max_passes=2000, keep=lambda part: costs.append(part.cost))
        assert found.at_rest
        return engine, distortion, found, np.array(costs)

    def test_fewer_passes_to_a_fixed_point_that_costs_no_more(self, scaling, monkeypatch):
        *_, plain, _ = without = self.carried(monkeypatch, scaling, 10**9)
        engine, distortion, found, costs = self.carried(monkeypatch, scaling, 1000)
        assert engine.passes < 0.6 * without[0].passes
        assert found.cost <= plain.cost
        assert (np.diff(costs) <= ROUNDING * costs[0]).all()
        _, labels = nearest_pass(engine, distortion, found.centers)
        assert_array_equal(labels, found.labels)
        assert_allclose(centered(engine, distortion, labels, found.centers).cost, found.cost, rtol=ROUNDING)

    def test_cost_never_rises_wherever_it_is_cut_off(self, scaling, monkeypatch):
        monkeypatch.setattr(partition, "BUDGET", replace(BUDGET, brief_items=100, slow=0.1))
        engine, distortion = build(np.random.default_rng(8).gamma(1.0, 1.0, (400, 4)), scaling)
        centers = item_points(engine, distortion, np.arange(7))
        costs = [alternate(engine, distortion, centers, max_passes=passes).cost for passes in range(1, 40)]
        assert (np.diff(costs) <= ROUNDING * costs[0]).all()

    def test_goes_back_where_the_best_centres_turn(self):
        _, distortion = build(np.eye(2), "none")
        momentum, mass = Momentum(distortion), np.ones(1)
        assert_array_equal(momentum.step(np.array([[0.0, 0]]), np.array([[1.0, 0]]), mass), [[1, 0]])
        beyond = momentum.step(np.array([[1.0, 0]]), np.array([[2.0, 0]]), mass)
        assert momentum.carried
        assert beyond[0, 0] > 2
        turned = momentum.step(beyond, np.array([[2.1, 0]]), mass)  # behind where it was carried to
        assert not momentum.carried
        assert_array_equal(turned, [[2.1, 0]])


def test_alternation_ends_where_a_component_empties():
    engine, distortion = build([[0.0], [1.0], [2.0]], "none")
    assert alternate(engine, distortion, distortion.to_frame(np.array([[1.0], [50.0]]))) is None


def test_alternation_that_stays_above_the_bound_is_given_up(scaling):
    _, _, engine, distortion, centers = random_case(0, scaling)
    found = alternate(engine, distortion, centers)
    assert alternate(engine, distortion, centers, bound=found.cost / 10) is None
    assert_allclose(alternate(engine, distortion, centers, bound=found.cost).cost, found.cost, rtol=1e-15)


def test_alternation_that_is_cut_off_says_so(scaling):
    _, _, engine, distortion, centers = random_case(0, scaling)
    found = alternate(engine, distortion, centers, max_passes=2)
    assert not found.at_rest
    # what it returns belongs together all the same
    stats = labelled_pass(engine, distortion, found.centers, found.labels)
    assert_array_equal(stats.cost, found.stats.cost)


class TestRefilled:
    def test_empty_components_move_to_the_items_explained_worst(self):
        # One centre at 0 and two far away: first 9 (cost 81), then 5 (cost 16 to the nearer of 0 and 9).
        engine, distortion = build([[0.0], [1.0], [5.0], [9.0]], "none")
        found = refilled(engine, distortion, distortion.to_frame(np.array([[0.0], [99.0], [99.0]])))
        assert_allclose(distortion.to_data(found), [[0], [9], [5]], atol=1e-14)

    @pytest.mark.parametrize("seed", range(5))
    def test_no_component_is_empty(self, scaling, seed):
        _, _, engine, distortion, centers = random_case(seed, scaling)
        found = refilled(engine, distortion, np.repeat(centers[:1], 12, axis=0))
        assert len(found) == 12
        assert np.all(nearest_pass(engine, distortion, found)[0].sizes > 0)

    def test_centres_without_empty_components_stay(self, scaling):
        X, _, engine, distortion, _ = random_case(0, scaling)
        centers = distortion.to_frame(X[[3, 17, 30]])
        assert_array_equal(refilled(engine, distortion, centers), centers)

    def test_no_more_components_than_distinct_items(self, scaling):
        rows = np.array([[1.0, 2.0], [3.0, 1.0], [5.0, 5.0]])
        engine, distortion = build(rows[[0, 1, 2, 2, 1, 0, 0]], scaling)
        found = refilled(engine, distortion, np.repeat(distortion.origin, 6, axis=0))
        assert len(found) == 3
        data = distortion.to_data(found)
        expected = rows if scaling == "none" else rows / np.linalg.norm(rows, axis=1, keepdims=True)
        assert_allclose(np.sort(data, axis=0), np.sort(expected, axis=0), rtol=1e-12)

    def test_items_without_weight_open_no_component(self, scaling):
        X = np.array([[1.0, 1.0], [1.0, 1.0], [9.0, 1.0]])
        engine, distortion = build(X, scaling, np.array([1.0, 1.0, 0.0]))
        assert len(refilled(engine, distortion, np.repeat(distortion.origin, 2, axis=0))) == 1
