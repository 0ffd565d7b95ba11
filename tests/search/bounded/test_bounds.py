"""Bounds on sizes: every form in which they are written, and every way in which they can be wrong."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orthonmf import ONMF
from orthonmf.exceptions import InfeasibleCapacityError, InvalidInputError
from orthonmf.search.bounded.bounds import Bounds, least_components, most_components, parse_bounds


def upper(capacity, n_components=3, n_items=100):
    return parse_bounds(capacity, None, n_components, n_items).upper.tolist()


def lower(min_size, n_components=3, n_items=100):
    return parse_bounds(None, min_size, n_components, n_items).lower.tolist()


@pytest.mark.parametrize(("min_size", "n_items", "n_components"), [([0, 4], 4, 1), ([0, 0, 3], 4, 2), ([5, 0], 5, 1)])
def test_least_size_zero_leaves_no_component_empty(min_size, n_items, n_components):
    # [0, 0, 3] of 4 items: 3 + 1 + 1 = 5 are needed, one too many
    with pytest.raises(InfeasibleCapacityError, match=f"no component is left empty.*set n_components to {n_components}"):
        parse_bounds(None, min_size, len(min_size), n_items)
    assert parse_bounds(None, min_size, len(min_size), n_items, empty=True).lower.tolist() == min_size
    assert parse_bounds(None, min_size, len(min_size), n_items + 1).lower.tolist() == min_size


def test_nothing_given_bounds_nothing():
    assert parse_bounds(None, None, 3, 10) is None


def test_an_int_counts_items():
    assert upper(40) == [40, 40, 40]
    assert lower(20) == [20, 20, 20]
    assert upper(np.int64(40)) == [40, 40, 40]


def test_a_whole_float_above_one_counts_items():
    assert upper(40.0) == [40, 40, 40]
    assert lower(2.0) == [2, 2, 2]


def test_one_is_an_item_and_one_point_zero_is_all():
    assert upper(1, n_components=100) == [1] * 100
    assert upper(1.0) == [100] * 3
    assert lower(1) == [1] * 3
    assert lower(1.0, n_components=1) == [100]


@pytest.mark.parametrize(
    ("fraction", "n_items", "floor", "ceil"),
    [(0.29, 100, 29, 29), (0.57, 100, 57, 57), (0.35, 53, 18, 19), (0.1, 30, 3, 3), (0.07, 1400, 98, 98)],
)
def test_fractions_are_exact_decimals(fraction, n_items, floor, ceil):
    # In binary 0.29 · 100 is 28.999999999999996 and 0.07 · 1400 is 98.00000000000001.
    assert upper(fraction, n_components=n_items, n_items=n_items)[0] == floor
    assert lower(fraction, n_components=1, n_items=n_items)[0] == ceil


def test_a_float32_means_the_decimal_that_it_shows():
    # As a double, np.float32(0.29) is 0.28999999165534973, of 100 items 28.
    assert upper(np.float32(0.29), n_components=4) == [29] * 4
    assert upper(np.array([0.29, 0.71], dtype=np.float32), n_components=2) == [29, 71]


@pytest.mark.parametrize("form", [list, tuple, np.array])
def test_one_value_per_component_in_its_place(form):
    bounds = parse_bounds(form([50, 30, 20]), form([1, 0, 2]), 3, 100)
    assert_array_equal(bounds.upper, [50, 30, 20])
    assert_array_equal(bounds.lower, [1, 0, 2])
    assert bounds.named
    assert not bounds.alike


def test_fractions_and_counts_mix_in_a_list():
    assert upper([0.5, 30, 1.0]) == [50, 30, 100]


def test_one_value_for_all_has_no_names():
    bounds = parse_bounds(40, 0.1, 3, 100)
    assert not bounds.named
    assert bounds.alike
    assert_array_equal(bounds.lower, [10] * 3)


def test_a_missing_bound_excludes_nothing():
    assert_array_equal(parse_bounds(40, None, 3, 100).lower, 0)
    assert_array_equal(parse_bounds(None, 10, 3, 100).upper, 100)


def test_capacity_above_n_is_n():
    assert upper(10**30) == [100] * 3
    assert upper([5, 10**30, 7]) == [5, 100, 7]


@pytest.mark.parametrize("nothing", [0, 0.0, [0, 0.0, 0]])
def test_a_least_size_of_nothing_is_fine(nothing):
    assert lower(nothing) == [0, 0, 0]


def test_sums_may_just_meet_the_number_of_items():
    assert upper([50, 30, 20]) == [50, 30, 20]
    assert lower([50, 30, 20]) == [50, 30, 20]


@pytest.mark.parametrize("value", [0, 0.0, -1, -0.5, np.nan, np.inf, -np.inf, 2.5, 1.0000001, "half", True, None, 1j])
@pytest.mark.parametrize("vector", [False, True])
def test_capacities_that_are_none(value, vector):
    if value is None and not vector:
        pytest.skip("None alone is no bound")
    with pytest.raises(InvalidInputError, match="capacity") as error:
        parse_bounds([50, value, 100] if vector else value, None, 3, 100)
    assert "expected" in str(error.value)


@pytest.mark.parametrize("value", [-1, -0.5, -1e-300, np.nan, np.inf, 2.5, "few", False, 1j])
@pytest.mark.parametrize("vector", [False, True])
def test_least_sizes_that_are_none(value, vector):
    with pytest.raises(InvalidInputError, match="min_size"):
        parse_bounds(None, [5, value, 10] if vector else value, 3, 100)


@pytest.mark.parametrize("name", ["capacity", "min_size"])
@pytest.mark.parametrize("values", [[50, 50], [50, 25, 20, 5], [], [[50, 25, 25]], [[50], [25, 25], 50]])
def test_wrong_shape_says_what_was_expected(name, values):
    with pytest.raises(InvalidInputError, match=rf"{name} has .*; expected one value, or 3"):
        parse_bounds(**{"capacity": None, "min_size": None, name: values}, n_components=3, n_items=100)


def test_a_fraction_of_no_item_is_an_error():
    with pytest.raises(InfeasibleCapacityError, match=r"capacity=0.05 of 10 items is no item"):
        parse_bounds(0.05, None, 3, 10)


def test_min_above_max_names_the_component():
    with pytest.raises(InvalidInputError, match=r"min_size 30 is above capacity 20 for component 1"):
        parse_bounds([60, 20, 20], [0, 30, 0], 3, 100)
    with pytest.raises(InvalidInputError, match="min_size 50 is above capacity 40"):
        parse_bounds(0.4, 0.5, 3, 100)


def test_too_little_capacity_says_how_much_is_missing():
    with pytest.raises(InfeasibleCapacityError, match=r"hold 90 items, 10 fewer than the 100"):
        parse_bounds(30, None, 3, 100)
    with pytest.raises(InfeasibleCapacityError, match=r"\[50, 30, 19\] hold 99 items, 1 fewer than the 100"):
        parse_bounds([50, 30, 19], None, 3, 100)


def test_fractions_rounded_down_are_told_apart_from_too_little():
    # 3 × 0.35 > 1, but 0.35 of 10 items is 3.
    with pytest.raises(InfeasibleCapacityError, match=r"hold 9 items .*rounded down.*, 1 fewer than the 10"):
        parse_bounds(0.35, None, 3, 10)
    with pytest.raises(InfeasibleCapacityError, match="rounded down"):
        parse_bounds([0.35, 0.35, 3], None, 3, 10)
    with pytest.raises(InfeasibleCapacityError) as error:
        parse_bounds(3, None, 3, 10)
    assert "rounded" not in str(error.value)


def test_too_large_least_sizes_say_by_how_much():
    with pytest.raises(InfeasibleCapacityError, match=r"ask for 105 items, 5 more than the 100"):
        parse_bounds(None, 35, 3, 100)
    with pytest.raises(InfeasibleCapacityError, match=r"ask for 12 items, 2 more than the 10"):
        parse_bounds(None, 0.35, 3, 10)


def test_sums_of_huge_bounds_do_not_overflow():
    bounds = parse_bounds([10**30] * 5, None, 5, 10)
    assert_array_equal(bounds.upper, 10)
    with pytest.raises(InvalidInputError, match="above capacity"):
        parse_bounds(None, 10**30, 3, 10)


def test_fewest_and_most_components():
    assert least_components(None, 10) == 1
    assert least_components(3, 10) == 4
    assert least_components(0.35, 10) == 4
    assert most_components(None, 10) == 10
    assert most_components(3, 10) == 3
    assert most_components(0, 10) == 10
    for ask in (least_components, most_components):
        with pytest.raises(InvalidInputError, match="one value per component"):
            ask([5, 5], 10)


@pytest.mark.parametrize(("n_items", "n_sample"), [(100, 10), (101, 7), (53, 53), (1000, 3)])
def test_bounds_of_a_sample_are_feasible(n_items, n_sample):
    for upper_, lower_ in (
        ([50, 30, 21], [50, 30, 20]),
        ([98, 1, 2], [0, 1, 1]),
        ([34, 34, 34], [33, 33, 33]),
    ):
        part = n_items / 100
        bounds = Bounds(np.floor(np.array(lower_) * part).astype(int), np.ceil(np.array(upper_) * part).astype(int), True)
        small = bounds.scaled(n_items, n_sample)
        assert small.upper.sum() >= n_sample >= small.lower.sum()
        assert (small.lower <= small.upper).all()
        assert (small.upper >= 1).all()
        assert small.named


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_the_estimator_counts_its_own_items_and_stays_unfitted(orthogonal):
    X = np.random.default_rng(0).gamma(2.0, size=(10, 20))
    n_items = 10 if orthogonal == "samples" else 20
    model = ONMF(3, orthogonal=orthogonal, capacity=n_items // 3)
    with pytest.raises(InfeasibleCapacityError, match=f"fewer than the {n_items} there are"):
        model.fit(X)
    assert not hasattr(model, "components_")
