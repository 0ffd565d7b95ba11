import doctest
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf.datasets import make_onmf, onmf
from orthonmf.exceptions import InvalidInputError


def test_examples_in_docstrings_hold():
    assert doctest.testmod(onmf).failed == 0


@pytest.mark.parametrize("seed", range(3))
def test_without_noise_every_sample_is_its_scaled_center(seed):
    data = make_onmf(30, 5, 4, item_scale=10, random_state=seed)
    assert data.X.shape == (30, 5)
    assert data.centers.shape == (4, 5)
    assert_array_equal(data.X, data.scale[:, None] * data.centers[data.labels])


@pytest.mark.parametrize(
    ("n_samples", "n_components", "sizes", "counts"),
    [
        (12, 4, None, [3, 3, 3, 3]),
        (14, 4, None, [4, 4, 3, 3]),
        (26, 3, (20, 5, 1), [20, 5, 1]),
        (51, 5, (20, 5, 1), [20, 5, 1, 20, 5]),
        (10, 2, (1, 3), [3, 7]),  # 2.5 and 7.5: the tie goes to the first
        (10, 3, (1000, 1, 1), [8, 1, 1]),
        (3, 3, (1000, 1, 1), [1, 1, 1]),
        (26, 3, (1.6e308, 4e307, 8e306), [20, 5, 1]),  # whose sum is infinite
    ],
)
def test_counts_follow_sizes(n_samples, n_components, sizes, counts):
    data = make_onmf(n_samples, 2, n_components, sizes=sizes, random_state=0)
    assert_array_equal(np.bincount(data.labels), counts)


@given(
    sizes=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6),
    n_repeats=st.integers(1, 3),
    n_spare=st.integers(0, 50),
)
def test_counts_are_positive_and_sum_to_n_samples(sizes, n_repeats, n_spare):
    k = n_repeats * len(sizes)
    labels = make_onmf(k + n_spare, 1, k, sizes=sizes, random_state=0).labels
    assert len(labels) == k + n_spare
    assert np.bincount(labels, minlength=k).min() >= 1


def test_noise_is_gaussian_with_the_given_deviation():
    data = make_onmf(4000, 10, 3, noise=0.5, center_shape=100, random_state=0)
    noise = data.X - data.centers[data.labels]
    # 40 000 draws: the deviation is known to 0.5 / √80000 = 0.0018, the mean to 0.0025; four times each.
    assert_allclose(noise.std(), 0.5, atol=0.0072)
    assert_allclose(noise.mean(), 0.0, atol=0.01)


def test_noise_is_clipped_at_zero():
    data = make_onmf(200, 10, 3, noise=20.0, random_state=0)
    assert data.X.min() == 0.0


def test_scales_have_mean_one_and_variance_one_over_shape():
    scale = make_onmf(20000, 1, 2, item_scale=10, random_state=0).scale
    # 20 000 draws of variance 0.1: mean known to 0.0022, variance to about 0.0011; four times each.
    assert_allclose(scale.mean(), 1.0, atol=0.009)
    assert_allclose(scale.var(), 0.1, atol=0.0045)
    assert_array_equal(make_onmf(5, 1, 2, random_state=0).scale, np.ones(5))


def test_centers_are_gamma_of_the_given_shape():
    centers = make_onmf(200, 100, 200, center_shape=3.0, random_state=0).centers
    # Mean and variance of Gamma(3, 1) are 3; 20 000 draws: known to 0.0122 and 0.042; four times each.
    assert_allclose(centers.mean(), 3.0, atol=0.05)
    assert_allclose(centers.var(), 3.0, atol=0.17)


def test_same_seed_same_data():
    first, second, other = (make_onmf(20, 3, 2, noise=1.0, random_state=seed) for seed in (5, 5, 6))
    assert_array_equal(first.X, second.X)
    assert not np.array_equal(first.X, other.X)
    assert_array_equal(make_onmf(20, 3, 2, noise=1.0, random_state=np.random.default_rng(5)).X, first.X)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_samples": 0}, "n_samples=0, expected an integer >= 1"),
        ({"n_features": 2.5}, "n_features=2.5, expected an integer >= 1"),
        ({"n_components": 11}, r"n_components=11, expected an integer from 1 to 10 \(n_samples\)"),
        ({"n_components": True}, "n_components=True"),
        ({"noise": -1.0}, "noise=-1.0, expected a finite number >= 0"),
        ({"noise": math.inf}, "noise=inf"),
        ({"center_shape": 0}, "center_shape=0, expected a finite number > 0"),
        ({"item_scale": 0.0}, "item_scale=0.0, expected a finite number > 0"),
        ({"item_scale": "a"}, "item_scale='a', expected a finite number > 0"),
        ({"sizes": ()}, r"sizes=\(\), expected 1 to 3"),
        ({"sizes": (1, 2, 3, 4)}, r"sizes=\(1, 2, 3, 4\), expected 1 to 3"),
        ({"sizes": (1, 0)}, r"sizes=\(1, 0\), expected 1 to 3 \(n_components\) positive"),
        ({"sizes": (1, math.nan)}, r"sizes=\(1, nan\), expected"),
    ],
)
def test_invalid_arguments_are_named(wrong, message):
    with pytest.raises(InvalidInputError, match=message):
        make_onmf(**{"n_samples": 10, "n_features": 2, "n_components": 3, **wrong})
