"""Refinement: to the best partition of small problems, and of larger ones to one that no single move improves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import PROBLEMS, best_partition, part_cost, partition_cost, set_partitions, subset_costs

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.base import weighted_mean
from orthonmf.engines.dense import DenseEngine
from orthonmf.search.partition import alternate, centered, refilled
from orthonmf.search.refine import equal_items, refine, separated

ROUNDING = 1e-9  # of the cost: what a gain must exceed to count


@pytest.fixture(params=["item", "none"])
def scaling(request):
    return request.param


def build(X, scaling, weight=None):
    engine = DenseEngine(np.asarray(X, dtype=float), weight, team=ThreadTeam(1))
    return engine, REGISTRY["frobenius", scaling].about(weighted_mean(engine))


def started(engine, distortion, n_components):
    """A poor start: the items that are farthest from those before."""
    return alternate(engine, distortion, refilled(engine, distortion, np.repeat(distortion.origin, n_components, 0)))


def random_start(X, scaling, k, seed):
    engine, distortion = build(X, scaling)
    chosen = np.random.default_rng(seed).choice(len(X), k, replace=False)
    return (
        engine,
        distortion,
        alternate(engine, distortion, refilled(engine, distortion, distortion.to_frame(X[chosen]))),
    )


CLOUDS = {
    "gamma": lambda rng: rng.gamma(2.0, size=(40, 4)),
    "uniform": lambda rng: rng.random((60, 3)),
    "counts": lambda rng: rng.poisson(0.7, size=(50, 8)) + np.eye(50, 8),
    "repeated": lambda rng: rng.integers(1, 4, size=(50, 3)).astype(float),
    "groups": lambda rng: rng.gamma(5.0, size=(6, 12))[rng.integers(6, size=50)] * rng.gamma(9.0, 0.1, size=(50, 12)),
}


class TestBruteForce:
    """The oracle itself."""

    def test_three_points_by_hand(self):
        # 0, 1, 10: {0, 1} costs ½, the other pairs 40.5 and 50
        best = best_partition(subset_costs(np.array([[0.0], [1.0], [10.0]]), "none"), 2)
        assert_allclose(best.cost, 0.5, rtol=1e-15)
        assert sorted(best.parts) == [0b011, 0b100]

    def test_two_lines_by_hand(self):
        # (1, 0), (5, 0) and (0, 2): two axes hold all; one line leaves the smaller axis, 4
        costs = subset_costs(np.array([[1.0, 0.0], [5.0, 0.0], [0.0, 2.0]]), "item")
        assert_allclose(best_partition(costs, 2).cost, 0, atol=1e-30)
        assert_allclose(best_partition(costs, 1).cost, 4, rtol=1e-15)

    def test_number_of_partitions_is_stirlings(self):
        assert len(list(set_partitions(7, 3))) == 301
        assert len(set(set_partitions(8, 4))) == 1701

    @pytest.mark.parametrize("problem", PROBLEMS[::31], ids=str)
    def test_no_partition_is_better(self, problem):
        costs = [
            partition_cost(problem.X, np.array(labels), problem.scaling, problem.weight)
            for labels in set_partitions(len(problem.X), problem.n_components)
        ]
        assert_allclose(problem.best.cost, min(costs), rtol=1e-12, atol=1e-12)
        found = partition_cost(problem.X, problem.labels, problem.scaling, problem.weight)
        assert_allclose(found, problem.best.cost, rtol=1e-12, atol=1e-12)


class TestSmallProblems:
    @pytest.mark.thinned(7)
    @pytest.mark.parametrize("problem", PROBLEMS, ids=str)
    def test_refinement_from_a_poor_start_finds_the_optimum(self, problem):
        engine, distortion = build(problem.X, problem.scaling, problem.weight)
        start = started(engine, distortion, problem.n_components)
        found = refine(engine, distortion, start)
        assert found.cost <= start.cost
        assert_allclose(found.cost, problem.best.cost, rtol=ROUNDING, atol=1e-12 * np.sum(problem.X**2))

    @pytest.mark.thinned(5)
    @pytest.mark.parametrize("problem", PROBLEMS, ids=str)
    def test_fit_finds_the_optimum(self, problem):
        model = ONMF(problem.n_components, scaling=problem.scaling)
        model.fit(problem.X, sample_weight=problem.weight)
        assert model.n_components_ == problem.n_components
        error = model.reconstruction_err_**2
        assert_allclose(error, problem.best.cost, rtol=ROUNDING, atol=1e-12 * np.sum(problem.X**2))


def best_move(X, labels, scaling):
    """The least change of the cost, as a fraction, by moving one item with its equals."""
    members = [labels == j for j in range(labels.max() + 1)]
    costs = [part_cost(X[member], scaling) for member in members]
    changes = [0.0]
    for item in range(len(X)):
        source = labels[item]
        moved = members[source] & np.all(X[item] == X, axis=1)
        rest = members[source] & ~moved
        if not rest.any():
            continue
        left = part_cost(X[rest], scaling) - costs[source]
        changes += [left + part_cost(X[member | moved], scaling) - costs[goal] for goal, member in enumerate(members) if goal != source]
    return min(changes) / max(sum(costs), np.finfo(float).tiny)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("k", [3, 8])
@pytest.mark.parametrize("cloud", CLOUDS)
class TestClouds:
    @pytest.mark.thinned(3)
    def test_no_single_move_pays_and_equal_items_stay_together(self, scaling, cloud, k, seed):
        X = CLOUDS[cloud](np.random.default_rng(seed))
        model = ONMF(k, scaling=scaling).fit(X)
        assert best_move(X, model.labels_, scaling) >= -1e-8
        _, group = np.unique(X, axis=0, return_inverse=True)
        assert len(np.unique(np.column_stack([group, model.labels_]), axis=0)) == group.max() + 1
        assert len(model.counts_) == k
        assert model.counts_.min() > 0

    @pytest.mark.thinned(7)
    def test_refinement_is_monotone_repeatable_and_finished(self, scaling, cloud, k, seed):
        X = CLOUDS[cloud](np.random.default_rng(seed))
        engine, distortion, start = random_start(X, scaling, k, seed)
        found = refine(engine, distortion, start)
        assert found.cost <= start.cost * (1 + 1e-12)
        assert_allclose(found.cost, partition_cost(X, found.labels, scaling), rtol=1e-9)
        again = refine(*build(X, scaling), start)
        assert_array_equal(again.labels, found.labels)
        assert_array_equal(again.centers, found.centers)
        further = refine(engine, distortion, found)
        assert further.cost >= found.cost * (1 - ROUNDING)


def test_no_single_move_pays_on_wide_clouds():
    worst = []
    for seed in range(8):
        X = np.random.default_rng(seed).gamma(1.0, size=(30, 100))
        worst.append(best_move(X, ONMF(8).fit(X).labels_, "item"))
    assert min(worst) >= -1e-8


@pytest.mark.parametrize("seed", range(3))
def test_refined_cost_is_no_more_than_the_best_of_many_restarts(scaling, seed):
    X = CLOUDS["gamma"](np.random.default_rng(seed))
    restarts = [random_start(X, scaling, 5, restart)[2] for restart in range(60)]
    best = min(part.cost for part in restarts if part is not None)
    assert ONMF(5, scaling=scaling).fit(X).reconstruction_err_ ** 2 <= best * (1 + 1e-9)


class TestSeparated:
    @staticmethod
    def far_groups(seed):
        rng = np.random.default_rng(seed)
        centers = rng.gamma(10.0, size=(6, 8))
        labels = np.arange(90) % 6
        return centers[labels] + rng.uniform(0, 0.01, size=(90, 8)), labels

    @pytest.mark.parametrize("seed", range(5))
    def test_far_groups_come_back_unchanged(self, scaling, seed):
        X, labels = self.far_groups(seed)
        engine, distortion = build(X, scaling)
        start = alternate(engine, distortion, distortion.to_frame(X[:6]))
        assert_array_equal(start.labels, labels)
        assert separated(engine, distortion, start)
        assert refine(engine, distortion, start) is start

    @pytest.mark.parametrize("seed", range(5))
    def test_two_groups_in_one_component_are_not_taken_for_separated(self, scaling, seed):
        X, labels = self.far_groups(seed)
        engine, distortion = build(X, scaling)
        # group 0 in two components, groups 1 and 2 in one
        wrong = np.where(labels == 0, np.arange(len(X)) // 6 % 2, np.maximum(labels, 2))
        start = centered(engine, distortion, wrong, distortion.to_frame(X[[0, 6, 2, 3, 4, 5]]))
        assert not separated(engine, distortion, start)
        found = refine(engine, distortion, start)
        pairs = np.unique(np.column_stack([labels, found.labels]), axis=0)
        assert len(pairs) == 6

    def test_one_component_comes_back(self, scaling):
        X, _ = self.far_groups(0)
        engine, distortion = build(X, scaling)
        start = alternate(engine, distortion, distortion.origin)
        assert refine(engine, distortion, start) is start


def test_equal_items_have_one_group_number():
    X = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0], [-0.0, 1.0], [2.0, 1.0]])
    groups = equal_items(build(X, "none")[0])
    assert_array_equal(groups[[0, 1]], groups[[2, 3]])
    assert len(np.unique(groups)) == 3


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_repetition(scaling, seed):
    rng = np.random.default_rng(seed)
    X, times = rng.gamma(2.0, size=(25, 3)), rng.integers(1, 4, size=25)
    weighted = ONMF(4, scaling=scaling).fit(X, sample_weight=times)
    repeated = ONMF(4, scaling=scaling).fit(np.repeat(X, times, axis=0))
    assert_allclose(weighted.reconstruction_err_, repeated.reconstruction_err_, rtol=1e-9)
    assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
