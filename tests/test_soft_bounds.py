"""Soft bounds: an item too many or too few has a price, and the assignment is the best at that price."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.base import weighted_mean
from orthonmf.engines.dense import DenseEngine
from orthonmf.exceptions import InvalidInputError
from orthonmf.search.bounded.assigner import Bounded, ItemCosts
from orthonmf.search.bounded.bounds import Bounds


@pytest.fixture(params=["item", "none"])
def scaling(request):
    return request.param


def three_groups(seed=0, sizes=(15, 10, 5)):
    """Groups of unequal size."""
    rng = np.random.default_rng(seed)
    return rng.gamma(10.0, size=(3, 6))[np.repeat(np.arange(3), sizes)] + rng.normal(scale=0.3, size=(sum(sizes), 6)).clip(-1, 1) + 1


def cheapest(costs, bounds):
    """The least cost of all assignments."""
    rows = np.arange(len(costs))
    found = np.inf
    for labels in product(range(costs.shape[1]), repeat=len(costs)):
        sizes = np.bincount(labels, minlength=costs.shape[1])
        outside = np.maximum(sizes - bounds.upper, 0).sum() + np.maximum(bounds.lower - sizes, 0).sum()
        found = min(found, costs[rows, list(labels)].sum() + bounds.penalty * outside)
    return found


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", [0.01, 0.3, 2.0, 100.0])
@pytest.mark.parametrize(("lower", "upper"), [([0, 0, 0], [2, 2, 2]), ([3, 1, 0], [3, 4, 1]), ([0, 4, 4], [8, 8, 8])])
def test_assignment_is_the_cheapest_of_all(scaling, lower, upper, penalty, seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(8, 3))
    engine = DenseEngine(X, team=ThreadTeam(1))
    distortion = REGISTRY["frobenius", scaling].about(weighted_mean(engine))
    bounds = Bounds(np.array(lower), np.array(upper), True, penalty)
    centers = distortion.to_frame(X[:3] if scaling == "none" else X[:3] / np.linalg.norm(X[:3], axis=1)[:, None])
    assigner = Bounded(engine, distortion, bounds, least=0)
    costs = ItemCosts(engine, distortion, centers).every
    labels, prices = assigner.assign(centers, None)
    cost = costs[np.arange(8), labels].sum() + bounds.charge(np.bincount(labels, minlength=3))
    assert_allclose(cost, cheapest(costs, bounds), rtol=1e-12)
    assert assigner.gap(centers, labels, prices) <= 1e-12
    # no price exceeds the penalty, and at the prices every item is where it is cheapest
    assert np.abs(prices).max() <= penalty * (1 + 1e-12)
    priced = costs + prices
    assert_allclose(priced[np.arange(8), labels], priced.min(axis=1), rtol=1e-12, atol=1e-12)
    worse = np.roll(labels, 1)
    if not np.isclose(costs[np.arange(8), worse].sum() + bounds.charge(np.bincount(worse, minlength=3)), cost):
        assert assigner.gap(centers, worse, prices) > 1e-9


def test_a_small_penalty_changes_nothing_and_a_large_one_is_hard(scaling):
    X = three_groups()
    free, hard = ONMF(3, scaling=scaling).fit(X), ONMF(3, scaling=scaling, capacity=11).fit(X)
    cheap = ONMF(3, scaling=scaling, capacity=11, capacity_penalty=1e-9).fit(X)
    dear = ONMF(3, scaling=scaling, capacity=11, capacity_penalty=100.0).fit(X)
    assert_array_equal(cheap.labels_, free.labels_)
    assert dear.counts_.max() <= 11
    assert_allclose(dear.reconstruction_err_, hard.reconstruction_err_, rtol=1e-9)


def test_more_penalty_means_less_excess_and_more_error(scaling):
    X = three_groups()
    models = [ONMF(3, scaling=scaling, capacity=9, min_size=7, capacity_penalty=p).fit(X) for p in (1e-6, 1e-2, 10)]
    outside = [int((np.maximum(m.counts_ - 9, 0) + np.maximum(7 - m.counts_, 0)).sum()) for m in models]
    assert outside == sorted(outside, reverse=True)
    assert outside[0] > outside[-1]
    errors = [m.reconstruction_err_ for m in models]
    assert np.all(np.diff(errors) >= -1e-9 * errors[0])
    for model in models:
        assert model.certificate_.holds, str(model.certificate_)
        assert model.verify(X).holds


def test_bounds_that_cannot_be_met_are_no_error_and_are_reported(scaling):
    X = three_groups()
    model = ONMF(3, scaling=scaling, capacity=5, capacity_penalty=5.0).fit(X)  # 15 places for 30 items
    assert model.counts_.sum() == 30
    assert "15 of 30 items are out of the soft bounds" in model.status_
    assert model.certificate_.holds


def test_units_do_not_matter(scaling):
    X = three_groups()
    one = ONMF(3, scaling=scaling, capacity=9, capacity_penalty=1e-2).fit(X)
    other = ONMF(3, scaling=scaling, capacity=9, capacity_penalty=1e-2).fit(X * 1024.0)
    assert_array_equal(one.labels_, other.labels_)


@pytest.mark.parametrize("penalty", [0, -1.0, np.nan, np.inf, "much", True])
def test_bad_penalties_are_refused(penalty):
    with pytest.raises(InvalidInputError, match="capacity_penalty"):
        ONMF(3, capacity=10, capacity_penalty=penalty).fit(three_groups())


def test_the_flow_has_no_soft_form():
    with pytest.raises(InvalidInputError, match="use solver='dual'"):
        ONMF(3, capacity=10, capacity_penalty=1.0, solver="cbf").fit(three_groups())


class TestSizes:
    """Soft bounds on sums of sizes."""

    def test_sizes_of_one_are_counts(self, scaling):
        X = three_groups()
        counted = ONMF(3, scaling=scaling, capacity=11 * 7.0, capacity_penalty=100.0).fit(X, item_size=np.full(30, 7.0))
        hard = ONMF(3, scaling=scaling, capacity=11).fit(X)
        assert np.bincount(counted.labels_).max() <= 11 + 1  # the relaxation may split one item of a component
        assert counted.reconstruction_err_ <= hard.reconstruction_err_ * 1.01
        assert counted.certificate_.holds

    @pytest.mark.parametrize("seed", range(3))
    def test_loads_are_kept_up_to_an_item(self, scaling, seed):
        X, size = three_groups(seed, (30, 20, 10)), np.random.default_rng(seed).uniform(0.5, 4.0, size=60)
        capacity = 0.4
        model = ONMF(3, scaling=scaling, capacity=capacity, capacity_penalty=50.0).fit(X, item_size=size)
        loads = np.bincount(model.labels_, size, 3)
        free = np.bincount(ONMF(3, scaling=scaling).fit(X).labels_, size, 3)
        assert free.max() > capacity * size.sum() + size.max()
        assert loads.max() <= capacity * size.sum() + size.max()
        assert_allclose(np.array(model.certificate_.loads) * size.mean(), loads, rtol=1e-12)
        assert model.certificate_.holds, str(model.certificate_)
        assert model.verify(X).holds

    def test_gap_is_that_of_the_best_assignment_at_most(self, scaling):
        # brute force over all labels at the centres that were found
        rng = np.random.default_rng(1)
        X, size = rng.gamma(2.0, size=(9, 3)), rng.uniform(0.5, 2.0, size=9)
        model = ONMF(2, scaling=scaling, capacity=0.5, capacity_penalty=0.5).fit(X, item_size=size)
        engine = DenseEngine(X, team=ThreadTeam(1))
        penalty = 0.5 * np.mean(np.sum(X**2, axis=1))
        distance = np.stack([np.sum((X - scale_to(X, row, scaling)) ** 2, axis=1) for row in centers_of(model, scaling)], axis=1)

        def cost(labels):
            over = np.maximum(np.bincount(labels, size / size.mean(), 2) - 0.5 * 9, 0).sum()
            return distance[np.arange(engine.n_items), labels].sum() + penalty * over

        best = min(cost(np.array(labels)) for labels in product(range(2), repeat=9))
        assert cost(model.labels_) - best <= model.certificate_.gap * cost(model.labels_) + 1e-9

    def test_hard_bounds_refuse_sizes(self):
        with pytest.raises(InvalidInputError, match=r"NP-hard.*capacity_penalty"):
            ONMF(3, capacity=0.4).fit(three_groups(), item_size=np.ones(30))

    @pytest.mark.parametrize("size", [np.ones(29), -np.ones(30), np.zeros(30), np.full(30, np.nan), ["a"] * 30])
    def test_bad_sizes_are_refused(self, size):
        with pytest.raises(InvalidInputError, match="item_size"):
            ONMF(3, capacity=0.4, capacity_penalty=1.0).fit(three_groups(), item_size=size)


def centers_of(model, scaling):
    """Unit lines, or means."""
    C = model.components_
    return C / (np.linalg.norm(C, axis=1)[:, None] if scaling == "item" else np.sqrt(model.counts_)[:, None])


def scale_to(X, center, scaling):
    return np.outer(X @ center, center) if scaling == "item" else center
