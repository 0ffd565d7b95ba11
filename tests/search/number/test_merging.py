"""Balls that are pieces of one cloud are put together, others are not."""

import numpy as np
import pytest
from clouds import cloud_of_points, number_of

from orthonmf.search.number.balls import fitted, one_hot
from orthonmf.search.number.merging import Join, axes_of, decided


def needles(seed, n=240, length=8.0, far=40.0):
    """Two parallel needles in ten dimensions."""
    rng = np.random.default_rng(seed)
    X = 50 + rng.standard_normal((n, 10))
    X[:, 0] += length * rng.standard_normal(n)
    X[: n // 2, 1] += far
    return X


@pytest.mark.parametrize("seed", range(2))
def test_needles_cut_into_balls_are_put_together(seed):
    found = number_of(needles(seed))
    assert np.nanargmax(found.bic) + 1 > 2  # balls share them
    assert found.answer == 2


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("far", [4.0, 5.0])
def test_overlapping_balls_stay_apart(seed, far):
    # One long component explains two balls side by side almost as well as two do.
    rng = np.random.default_rng(seed)
    X = 20 + rng.standard_normal((300, 10))
    X[:150, 0] += far
    assert number_of(X).answer == 2


def test_axes_of_a_group_by_hand():
    # (±2, 0) and (0, ±1): variances 2 and ½ about 0.
    points = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    axes = axes_of(cloud_of_points(points), np.ones((4, 1)))
    np.testing.assert_allclose(axes.variance[0], [0.5, 2.0])
    np.testing.assert_allclose(np.abs(axes.direction[0]), [[0, 1], [1, 0]], atol=1e-12)
    assert axes.mass[0] == 4


@pytest.mark.parametrize("seed", range(3))
def test_axes_of_weights_equal_those_of_repetition(seed):
    rng = np.random.default_rng(seed)
    points, times = rng.standard_normal((30, 3)), rng.integers(1, 4, 30)
    few = axes_of(cloud_of_points(points, times.astype(float)), times[:, None].astype(float))
    many = axes_of(cloud_of_points(np.repeat(points, times, axis=0)), np.ones((times.sum(), 1)))
    np.testing.assert_allclose(few.variance, many.variance)
    np.testing.assert_allclose(few.center, many.center)


class TestHowManyJoins:
    def made(self, *gains):
        return decided([Join(len(gains) - i, gain, ()) for i, gain in enumerate(gains)])

    def test_none_where_balls_will_do(self):
        assert self.made(0.0, 12.0, 7.0, -50.0) == 0

    def test_some_where_they_gain_much_together(self):
        assert self.made(0.0, 12.0, 9.0, -50.0) == 2

    def test_as_many_as_gain_most(self):
        assert self.made(0.0, 25.0, -3.0, 8.0, -50.0, -60.0) == 3

    def test_on_while_little_is_lost(self):
        # 4.9 is no very strong evidence that two parts are apart; 5.1 is.
        assert self.made(0.0, 25.0, -4.9, -4.9, -5.1, -1.0) == 3

    def test_down_to_one(self):
        assert self.made(0.0, 25.0, -1.0) == 2


def test_one_hot_leaves_empty_labels_out():
    assert one_hot(np.array([5, 2, 5])).tolist() == [[0, 1], [1, 0], [0, 1]]
    assert fitted(cloud_of_points(np.eye(3)), one_hot(np.array([5, 2, 5]))).count == 2
