"""Laws of the exact assignment that hold for every problem, on examples that Hypothesis finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from orthonmf.search.bounded.assignment import nearest, transport

ROUNDING = 1e-12  # relative: sums of at most 40 float64


INTEGERS = st.integers(-20, 20)  # many ties, and equal costs are exactly equal
FLOATS = st.floats(-1e6, 1e6, allow_subnormal=False)


@st.composite
def problems(draw, elements=INTEGERS):
    """Costs (n, k), lower and upper bounds that some assignment meets."""
    n, k = draw(st.integers(1, 40)), draw(st.integers(1, 6))
    costs = draw(arrays(np.float64, (n, k), elements=elements))
    sizes = np.bincount(draw(arrays(np.intp, n, elements=st.integers(0, k - 1))), minlength=k)
    below, above = draw(arrays(np.intp, (2, k), elements=st.integers(0, 8)))
    return costs, np.maximum(sizes - below, 0), sizes + above


def test_a_case_by_hand():
    # One place each: 1 + 2 against 3 + 5.
    assert transport([[1, 3], [5, 2]], [1, 1], [1, 1]).cost == 3


@given(problems())
def test_bounds_hold_and_integers_are_proven_exactly(problem):
    costs, lower, upper = problem
    result = transport(costs, lower, upper)
    assert (result.counts >= lower).all()
    assert (result.counts <= upper).all()
    assert_array_equal(result.counts, np.bincount(result.labels, minlength=len(lower)))
    assert result.cost == costs[np.arange(len(costs)), result.labels].sum()
    assert result.gap == 0


@given(problems(FLOATS))
def test_gap_of_floats_is_rounding(problem):
    costs, lower, upper = problem
    assert transport(costs, lower, upper).gap <= ROUNDING * np.abs(costs).sum()


@given(problems())
def test_prices_are_complementary(problem):
    costs, lower, upper = problem
    result = transport(costs, lower, upper)
    assert (result.counts[result.prices > 0] == upper[result.prices > 0]).all()
    assert (result.counts[result.prices < 0] == lower[result.prices < 0]).all()
    reduced = costs + result.prices
    assert_array_equal(reduced[np.arange(len(costs)), result.labels], reduced.min(axis=1))


@given(problems(), st.data())
def test_more_capacity_never_raises_the_cost(problem, data):
    costs, lower, upper = problem
    more = upper + data.draw(arrays(np.intp, len(upper), elements=st.integers(0, 5)))
    less = np.maximum(lower - data.draw(arrays(np.intp, len(upper), elements=st.integers(0, 5))), 0)
    assert transport(costs, less, more).cost <= transport(costs, lower, upper).cost


@given(problems())
def test_capacity_for_all_equals_nearest(problem):
    costs, _, _ = problem
    n, k = costs.shape
    result, rounded = (
        transport(costs, np.zeros(k, int), np.full(k, n)),
        nearest(costs, np.zeros(k, int), np.full(k, n)),
    )
    assert_array_equal(result.labels, costs.argmin(axis=1))
    assert_array_equal(rounded.labels, result.labels)
    assert_array_equal(result.prices, 0)
    assert (rounded.cost, rounded.excess, rounded.shortfall) == (result.cost, 0, 0)


@given(problems(), st.randoms(use_true_random=False))
def test_permuted_components_permute_the_answer(problem, random):
    costs, lower, upper = problem
    order = random.sample(range(len(lower)), len(lower))
    result = transport(costs, lower, upper)
    permuted = transport(costs[:, order], lower[order], upper[order])
    assert permuted.cost == result.cost
    assert permuted.gap == 0


@pytest.mark.parametrize("seed", range(5))
def test_permuted_components_permute_the_labels_of_a_unique_answer(seed):
    rng = np.random.default_rng(seed)
    costs, order = rng.random((300, 6)), rng.permutation(6)  # continuous: no ties
    lower, upper = rng.integers(0, 30, 6), rng.integers(50, 60, 6)
    result, permuted = transport(costs, lower, upper), transport(costs[:, order], lower[order], upper[order])
    assert_array_equal(order[permuted.labels], result.labels)


@given(problems(), st.randoms(use_true_random=False))
def test_permuted_items_keep_the_cost(problem, random):
    costs, lower, upper = problem
    order = random.sample(range(len(costs)), len(costs))
    assert transport(costs[order], lower, upper).cost == transport(costs, lower, upper).cost


@given(problems(), st.integers(-300, 300))
def test_a_power_of_two_scales_the_answer_exactly(problem, exponent):
    costs, lower, upper = problem
    result, scaled = transport(costs, lower, upper), transport(costs * 2.0**exponent, lower, upper)
    assert scaled.cost == result.cost * 2.0**exponent
    assert scaled.gap == 0


@given(problems(), st.data())
def test_a_constant_for_an_item_adds_to_the_cost(problem, data):
    costs, lower, upper = problem
    extra = data.draw(arrays(np.float64, (len(costs), 1), elements=st.integers(-1000, 1000)))
    assert transport(costs + extra, lower, upper).cost == transport(costs, lower, upper).cost + extra.sum()


@given(problems(), st.data())
def test_any_warm_start_gives_the_same_cost(problem, data):
    costs, lower, upper = problem
    prices = data.draw(arrays(np.float64, len(lower), elements=st.floats(-1e9, 1e9)))
    assert transport(costs, lower, upper, prices=prices).cost == transport(costs, lower, upper).cost
