"""Compiled loops of the exact assignment: a case by hand, and the plain text as the oracle of each."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orthonmf import ONMF
from orthonmf.search.bounded import assignment
from orthonmf.search.bounded.assignment import HeldCosts, draft, transport
from tests.search.bounded.test_assignment import PROVEN, random_bounds, random_costs

CompiledCosts = pytest.importorskip("orthonmf.search.bounded.compiled").CompiledCosts
ROUNDING = 1e-12  # relative to the largest cost times the items: sums of some hundred float64 in another order


def test_the_cheapest_of_three_leaves():
    """Two places for three items that all want the first component: the one for which the second costs least more goes there."""
    found = transport(CompiledCosts(np.array([[0.0, 1], [0, 5], [0, 9]])), [0, 0], [2, 3])
    assert_array_equal(found.labels, [1, 0, 0])
    assert found.prices.tolist() == [1.0, 0.0]
    assert found.gap == 0


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["integers", "floats", "decades"])
@pytest.mark.parametrize("bounds", ["tight", "upper", "closed", "both"])
def test_equal_to_the_plain_text(kind, bounds, seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 150)), int(rng.integers(1, 8))
    costs, (lower, upper) = random_costs(rng, n, k, kind), random_bounds(rng, n, k, bounds)
    start = rng.normal(size=k) if seed % 2 else None
    plain, found = transport(costs, lower, upper, prices=start), transport(CompiledCosts(costs), lower, upper, prices=start)
    assert ((found.counts >= lower) & (found.counts <= upper)).all()
    assert abs(found.cost - plain.cost) <= ROUNDING * n * np.abs(costs).max()
    assert found.gap <= PROVEN * abs(found.cost)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ties", [False, True])
def test_ranking_and_slacks_are_the_same_numbers(seed, ties):
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 4, (1100, 6)).astype(float) if ties else rng.random((1100, 6))
    prices, quick = rng.integers(0, 2, 6) / 2, CompiledCosts(costs)
    problem = assignment._problem(HeldCosts(costs), [0] * 6, [1100] * 6)
    ranked = assignment._ranked(problem, prices)
    for one, other in zip(quick.two_cheapest(prices), ranked, strict=True):
        assert_array_equal(one, other)
    for one, other in zip(quick.nearest_slacks(*ranked, 5), assignment.nearest_slacks(6, *ranked, 5), strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["integers", "floats"])
@pytest.mark.parametrize("bounds", ["tight", "upper", "closed", "both"])
def test_surveys_are_the_same_numbers(kind, bounds, seed):
    """Integers tie: tied items go where there is room."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 150)), int(rng.integers(1, 8))
    costs, (lower, upper) = np.asarray(random_costs(rng, n, k, kind), dtype=float), random_bounds(rng, n, k, bounds)
    prices = rng.normal(size=k) if seed % 2 else np.zeros(k)
    one, other = (assignment._survey(assignment._problem(held(costs), lower, upper), prices) for held in (HeldCosts, CompiledCosts))
    for name in ("prices", "labels", "runner", "slack", "flow", "excess"):
        assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("seed", range(3))
def test_costs_in_any_order_of_memory(seed):
    costs = np.random.default_rng(seed).random((500, 5))
    one, other = (draft(CompiledCosts(order(costs)), [0] * 5, [110] * 5) for order in (np.ascontiguousarray, np.asfortranarray))
    assert_array_equal(one[0], other[0])
    assert_array_equal(one[1], other[1])


def test_many_prices_from_a_sample():
    """Far from the prices, more than sixteen hundred items are out of place: those of a sample come first."""
    rng = np.random.default_rng(0)
    costs = rng.random((6000, 4)) + np.array([0, 3, 3, 3])
    found = transport(CompiledCosts(costs), [0] * 4, [1500] * 4)
    assert found.cost == pytest.approx(transport(costs, [0] * 4, [1500] * 4).cost, rel=1e-12)
    assert found.relative_gap <= PROVEN


def test_equal_items_move_together():
    costs = np.repeat([[0.0, 1.0], [0.0, 2.0]], 4000, axis=0)
    asked = []
    found = transport(CompiledCosts(costs, lambda: asked.append(1)), [0, 0], [3000, 8000])
    assert found.cost == 4000 * 1 + 1000 * 2
    assert len(asked) < 50  # looks at the clock: one for each pass and for 256 moves


def test_a_fit_is_the_same_with_and_without():
    """The plain engine refuses compiled loops; both find the best labels for every centre, and these data have no ties."""
    X = np.random.default_rng(0).gamma(2.0, size=(2100, 4))
    plain, quick = (ONMF(6, scaling="none", capacity=380, engine=engine, max_iter=8).fit(X) for engine in ("dense", "auto"))
    assert quick.certificate_.holds
    assert quick.reconstruction_err_ == pytest.approx(plain.reconstruction_err_, rel=2e-3)  # ends may differ where rounding decides
    assert quick.counts_.max() <= 380
