import doctest

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf.datasets import make_nested, nested
from orthonmf.exceptions import InvalidInputError


def test_examples_in_docstrings_hold():
    assert doctest.testmod(nested).failed == 0


def test_without_spread_all_samples_are_their_group_center():
    data = make_nested(8, 3, n_groups=2, n_clusters=2, cluster_spread=0, noise_spread=0, random_state=0)
    assert_array_equal(data.X, data.group_centers[data.group_labels])
    assert_array_equal(data.X, data.cluster_centers[data.cluster_labels])


@pytest.mark.parametrize("seed", range(5))
def test_nonnegative_with_zero_attained(seed):
    data = make_nested(200, 5, random_state=seed)
    assert min(data.X.min(), data.cluster_centers.min(), data.group_centers.min()) == 0.0


@pytest.mark.parametrize(("n_groups", "n_clusters"), [(4, 4), (3, 5), (1, 1)])
def test_levels_are_nested_and_balanced(n_groups, n_clusters):
    data = make_nested(77, 2, n_groups=n_groups, n_clusters=n_clusters, random_state=0)
    assert_array_equal(data.group_labels, data.cluster_labels // n_clusters)
    assert np.ptp(np.bincount(data.cluster_labels, minlength=n_groups * n_clusters)) <= 1
    assert data.cluster_centers.shape == (n_groups * n_clusters, 2)


def test_spreads_are_those_given():
    data = make_nested(5000, 20, n_groups=50, n_clusters=10, random_state=0)
    within_group = data.cluster_centers - data.group_centers.repeat(10, axis=0)
    noise = data.X - data.cluster_centers[data.cluster_labels]
    # 1 000, 10 000 and 100 000 draws: known to σ / √(2 draws), that is 2.2, 0.7 and 0.22 %; four times each.
    assert_allclose(data.group_centers.std(), 10.0, rtol=0.09)
    assert_allclose(within_group.std(), 2.0, rtol=0.028)
    assert_allclose(noise.std(), 0.2, rtol=0.009)


@pytest.mark.parametrize("seed", range(5))
def test_both_levels_are_recovered_by_the_nearest_center(seed):
    data = make_nested(320, 20, random_state=seed)
    for centers, labels in [
        (data.group_centers, data.group_labels),
        (data.cluster_centers, data.cluster_labels),
    ]:
        distances = np.linalg.norm(data.X[:, None] - centers, axis=2)
        assert_array_equal(distances.argmin(axis=1), labels)


def test_same_seed_same_data():
    first, second, other = (make_nested(20, 3, random_state=seed) for seed in (5, 5, 6))
    assert_array_equal(first.X, second.X)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_samples": 15}, r"n_groups \* n_clusters=16, expected an integer from 1 to 15"),
        ({"n_groups": 0}, "n_groups=0, expected an integer >= 1"),
        ({"n_clusters": 1.5}, "n_clusters=1.5"),
        ({"group_spread": -1}, "group_spread=-1, expected a finite number >= 0"),
        ({"noise_spread": float("nan")}, "noise_spread=nan"),
    ],
)
def test_invalid_arguments_are_named(wrong, message):
    with pytest.raises(InvalidInputError, match=message):
        make_nested(**{"n_samples": 100, "n_features": 2, **wrong})
