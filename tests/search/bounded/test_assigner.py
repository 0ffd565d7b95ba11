"""Bounded fits: an exact fixed point at the end, no worse than free ones that are feasible, the optimum of few items."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import subset_costs
from sklearn.exceptions import ConvergenceWarning

from benchmarks._bounded import any_size, small
from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.dense import DenseEngine
from orthonmf.search.bounded import assignment
from orthonmf.search.bounded.assigner import Bounded, ItemCosts
from orthonmf.search.bounded.assignment import RankedCosts
from orthonmf.search.bounded.bounds import parse_bounds
from orthonmf.search.budget import BUDGET
from orthonmf.search.partition import labelled_pass, steps

SCALINGS = ("item", "none")


def assigner_of(X, scaling, weight=None, **bounds):
    engine = DenseEngine(np.asarray(X, dtype=float), weight, team=ThreadTeam(1))
    distortion = REGISTRY["frobenius", scaling].of(engine)
    n_components = bounds.pop("n_components")
    return Bounded(engine, distortion, parse_bounds(bounds.get("capacity"), bounds.get("min_size"), n_components, len(X)))


def random_centers(assigner, X, n_components, seed):
    chosen = np.random.default_rng(seed).choice(len(X), n_components, replace=False)
    rows = np.asarray(X, dtype=float)[chosen]
    if type(assigner.distortion) is REGISTRY["frobenius", "item"]:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return assigner.distortion.to_frame(rows)


def least_cost(X, scaling, n_components, lower, upper, weight=None):
    """The least cost of all partitions with lower_j to upper_j items in part j, one part after the other."""
    costs, whole = subset_costs(X, scaling, weight), 2 ** len(X) - 1
    best = {0: 0.0}
    for j in range(n_components):
        extended = {}
        for done, cost in best.items():
            rest = part = whole ^ done
            while part:
                if lower[j] <= part.bit_count() <= upper[j]:
                    extended[done | part] = min(extended.get(done | part, np.inf), cost + costs[part])
                part = (part - 1) & rest
        best = extended
    return best[whole]


class TestFewItems:
    def test_five_points_by_hand(self):
        # Either the 4.403 is alone, or one of the two has at most three of the five: {4.403} and the rest cost 3.43.
        X = np.array([0.167, 4.403, 1.962, 1.919, 0.0186])[:, None]
        rest = X[[0, 2, 3, 4], 0]
        model = ONMF(2, scaling="none", min_size=1, capacity=[5, 3]).fit(X)
        assert_allclose(model.reconstruction_err_**2, np.square(rest - rest.mean()).sum(), rtol=1e-12)
        assert_array_equal(model.counts_, [4, 1])

    @pytest.mark.parametrize("seed", range(24))
    def test_fit_finds_the_optimum_under_bounds(self, seed):
        rng = np.random.default_rng(seed)
        n_items, scaling = int(rng.integers(4, BUDGET.every_partition)), SCALINGS[seed % 2]
        n_components = int(rng.integers(2, min(n_items, 4) + 1))
        X = rng.gamma(1.0, 2.0, (n_items, int(rng.integers(2, 4)))).round(2) + 0.01
        weight = rng.gamma(1.0, size=n_items) if seed % 3 == 0 else None
        sizes = rng.multinomial(n_items - n_components, np.full(n_components, 1 / n_components)) + 1
        upper = sizes + rng.integers(0, 3, n_components)
        lower = np.maximum(sizes - rng.integers(0, 3, n_components), 1)
        model = ONMF(n_components, scaling=scaling, capacity=upper.tolist(), min_size=lower.tolist()).fit(X, sample_weight=weight)
        best = least_cost(X, scaling, n_components, lower, upper, weight)
        assert_allclose(model.reconstruction_err_**2, best, rtol=1e-9, atol=1e-12 * np.sum(X**2))
        assert model.certificate_.holds, str(model.certificate_)

    @pytest.mark.parametrize("scaling", SCALINGS)
    def test_soft_bounds_are_charged(self, scaling):
        # With a charge of nothing the sizes are free, with a large one they are kept.
        X = np.vstack([np.eye(3)[[0, 0, 0, 0, 0]] * [[1], [1.1], [1.2], [1.3], [1.4]], np.eye(3)[[1]]])
        loose = ONMF(2, scaling=scaling, capacity=3, capacity_penalty=1e-9).fit(X)
        tight = ONMF(2, scaling=scaling, capacity=3, capacity_penalty=1e3).fit(X)
        assert_array_equal(np.sort(loose.counts_), [1, 5])
        assert_array_equal(tight.counts_, [3, 3])


class TestFreeAnswer:
    @pytest.mark.parametrize("scaling", SCALINGS)
    @pytest.mark.parametrize("seed", range(2))
    def test_bounds_that_the_free_answer_meets_change_nothing(self, scaling, seed):
        X = np.random.default_rng(seed).gamma(1.0, size=(150, 2))
        free = ONMF(6, scaling=scaling).fit(X)
        met = ONMF(6, scaling=scaling, capacity=int(free.counts_.max()), min_size=int(free.counts_.min())).fit(X)
        assert_array_equal(met.labels_, free.labels_)
        assert_array_equal(met.components_, free.components_)

    def test_bounds_that_the_free_answer_meets_change_nothing_on_more_items(self):
        X = np.random.default_rng(2).gamma(1.0, size=(600, 2))
        free = ONMF(10).fit(X)
        met = ONMF(10, capacity=int(free.counts_.max())).fit(X)
        assert met.reconstruction_err_ <= free.reconstruction_err_ * (1 + 1e-12)

    def test_named_bounds_go_to_the_free_components_that_meet_them(self):
        X = np.vstack([np.full((n, 2), value) + np.arange(n)[:, None] * 1e-3 for n, value in ((3, 1.0), (20, 5.0), (9, 9.0))])
        model = ONMF(3, scaling="none", capacity=[4, 9, 25], min_size=[3, 5, 10]).fit(X)
        assert_array_equal(model.counts_, [3, 9, 20])
        assert_array_equal(model.labels_, np.repeat([0, 2, 1], [3, 20, 9]))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_costs_rank_by_a_pass_as_they_do_as_numbers(scaling):
    X = np.random.default_rng(0).random((300, 4))
    assigner = assigner_of(X, scaling, np.linspace(0.5, 2, 300), n_components=5, capacity=80)
    costs = ItemCosts(assigner.engine, assigner.distortion, random_centers(assigner, X, 5, 0))
    assert isinstance(costs, RankedCosts)
    prices = np.array([0.1, 0, 0.02, -0.1, 0])
    reduced = np.concatenate([block for _, block in costs.blocks()]) + prices
    labels, runner, slack = costs.two_cheapest(prices)
    order, every = np.argsort(reduced, axis=1, kind="stable"), np.arange(300)
    assert_array_equal(labels, order[:, 0])
    assert_array_equal(runner, order[:, 1])
    assert_array_equal(slack, reduced[every, runner] - reduced[every, labels])


@pytest.mark.parametrize("scaling", SCALINGS)
def test_labels_are_worth_by_a_pass_what_they_are_as_numbers(scaling):
    """Also where a component has no items."""
    X = np.random.default_rng(0).random((300, 4))
    assigner = assigner_of(X, scaling, np.linspace(0.5, 2, 300), n_components=5, capacity=80)
    assigner.engine._cut(70)
    costs = ItemCosts(assigner.engine, assigner.distortion, random_centers(assigner, X, 5, 0))
    held, prices = np.concatenate([block for _, block in costs.blocks()]), np.array([0.1, 0, 0.02, -0.1, 0])
    labels = np.random.default_rng(1).integers(4, size=300)
    every, rise = np.arange(300), held - held[np.arange(300), labels][:, None]
    expected = [rise[labels == j].min(axis=0, initial=np.inf) for j in range(5)]
    assert_array_equal(costs.arcs(labels), expected)
    cost, excess = costs.worth(labels, prices)
    reduced = held + prices
    assert cost == pytest.approx(held[every, labels].sum(), rel=1e-14)
    assert excess == pytest.approx((reduced[every, labels] - reduced.min(axis=1)).sum(), rel=1e-14)
    whole = assignment.certify(held, [0] * 5, [300] * 5, labels=labels, prices=prices)
    far = assignment.certify(costs, [0] * 5, [300] * 5, labels=labels, prices=prices)
    assert (far.cost, far.gap) == pytest.approx((whole.cost, whole.gap), rel=1e-14)


class TestFixedPoint:
    @pytest.mark.parametrize("scaling", SCALINGS)
    @pytest.mark.parametrize("seed", range(3))
    def test_settled_labels_and_centres_are_the_best_for_each_other(self, scaling, seed):
        X = np.random.default_rng(seed).gamma(1.0, size=(120, 4))
        assigner = assigner_of(X, scaling, n_components=5, capacity=26, min_size=15)
        start = assigner.assigned(random_centers(assigner, X, 5, seed))
        found = assigner.settled(start)
        assert found.at_rest
        assert found.cost <= start.cost
        assert assigner.gap(found.centers, found.labels, found.prices) <= 1e-12
        assert steps(assigner.engine, assigner.distortion, found).max() <= 1e-3

    def test_not_at_rest_when_there_is_no_time_for_it(self):
        X = np.random.default_rng(0).gamma(1.0, size=(120, 4))
        assigner = assigner_of(X, "none", n_components=5, capacity=26)
        assert not assigner.settled(assigner.assigned(random_centers(assigner, X, 5, 0)), max_passes=1).at_rest

    @pytest.mark.parametrize("scaling", SCALINGS)
    def test_loose_assignments_cost_no_more_than_exact_ones(self, scaling):
        # With items out of place at their price the cost is the value of the dual problem: a lower bound.
        X = np.random.default_rng(1).gamma(1.0, size=(300, 3))
        assigner = assigner_of(X, scaling, n_components=6, capacity=50)
        centers = random_centers(assigner, X, 6, 1)
        loose, exact = assigner.assigned(centers, loose=30), assigner.assigned(centers)
        assert loose.cost <= exact.cost * (1 + 1e-12)
        assert loose.cost >= 0.99 * exact.cost
        assert np.maximum(loose.stats.sizes - 50, 0).sum() <= 30

    @pytest.mark.parametrize("scaling", SCALINGS)
    def test_steps_are_relative_to_the_spread_of_their_component(self, scaling):
        X = np.random.default_rng(2).gamma(3.0, size=(40, 3))
        assigner = assigner_of(X, scaling, n_components=2, capacity=20)
        part = assigner.settled(assigner.assigned(random_centers(assigner, X, 2, 0)))
        moved = part.centers.copy()
        moved[1] = assigner.distortion.retract(
            moved[1:] + 0.1 * np.sqrt(part.stats.cost[1] / part.stats.mass[1]) / np.sqrt(moved.shape[1])
        )[0]
        stats = labelled_pass(assigner.engine, assigner.distortion, moved, part.labels)
        found = steps(assigner.engine, assigner.distortion, type(part)(part.labels, moved, stats))
        assert found[0] <= 1e-3
        assert 0.02 <= found[1] <= 0.2

    def test_converged_on_items_that_are_many_under_a_lower_bound(self):
        X = np.random.default_rng(0).gamma(1.0, size=(20_000, 30))
        model = ONMF(10, min_size=1900).fit(X)
        assert model.converged_
        assert model.certificate_.holds, str(model.certificate_)

    @pytest.mark.parametrize("seed", range(3))
    def test_converged_implies_the_claims(self, seed):
        problem = any_size(seed, 80)
        model = ONMF(**problem.parameters).fit(problem.X, sample_weight=problem.weight)
        assert model.converged_
        assert model.certificate_.holds, str(model.certificate_)

    @pytest.mark.long
    @pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
    @pytest.mark.parametrize("seed", range(3, 53))
    def test_converged_implies_the_claims_on_more_problems(self, seed):
        problem = any_size(seed, 6000)
        model = ONMF(**problem.parameters).fit(problem.X, sample_weight=problem.weight)
        assert model.certificate_.holds or not model.converged_, str(model.certificate_)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_search_goes_on_while_it_gains(seed):
    """Continuous data without groups: as good as the best of some restarts."""
    problem = small(seed)
    model = ONMF(**problem.parameters).fit(problem.X)
    assigner = assigner_of(problem.X, **problem.parameters)
    starts = [random_centers(assigner, problem.X, model.n_components, restart) for restart in range(8)]
    best = min(end.cost for end in map(assigner.alternate, starts) if end is not None)
    assert model.reconstruction_err_**2 <= best * (1 + 2e-6)


class TestManyItems:
    def test_items_near_a_border_find_what_all_do(self, monkeypatch):
        X = np.random.default_rng(0).gamma(1.0, size=(24_000, 3))
        assigner = assigner_of(X, "none", n_components=4, capacity=6300)
        costs = ItemCosts(assigner.engine, assigner.distortion, random_centers(assigner, X, 4, 0))
        bounds = np.ones(4, dtype=int), np.full(4, 6300)
        found, few = [], assignment._repaired_among_few

        def noted(*given):
            found.append(few(*given))
            return found[-1]

        monkeypatch.setattr(assignment, "_repaired_among_few", noted)
        labels, prices = assignment.draft(costs, *bounds)
        assert found[0] is not None
        assert np.count_nonzero(labels != costs.two_cheapest(np.zeros(4))[0]) > 100
        held = assignment.certify(costs.every, *bounds, labels=labels, prices=prices)
        assert held.relative_gap < 1e-12
        assert_allclose(held.cost, assignment.transport(costs.every, *bounds).cost, rtol=1e-12)
