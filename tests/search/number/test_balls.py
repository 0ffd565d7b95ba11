"""Mixtures of balls."""

import numpy as np
import pytest
from clouds import cloud_of_points
from scipy.cluster.hierarchy import fcluster, ward

from orthonmf.search.number.balls import PRIOR_ITEMS, fitted, one_hot, ward_labels
from orthonmf.search.number.confidence import adjusted_rand


def mixture(seed, n=150, k=4, d=3, far=3.0):
    rng = np.random.default_rng(seed)
    return far * rng.standard_normal((k, d))[rng.integers(0, k, n)] + rng.standard_normal((n, d))


class TestWard:
    @pytest.mark.parametrize("seed", range(4))
    def test_partitions_are_those_of_scipy(self, seed):
        points = mixture(seed)
        tree = ward(points)
        for labels in ward_labels(points, np.ones(len(points)), 12):
            count = len(np.unique(labels))
            expected = fcluster(tree, count, "maxclust") - 1
            assert adjusted_rand(one_hot(labels).argmax(axis=1), expected, np.ones(len(points))) == pytest.approx(1.0)

    def test_numbers_fall_by_one_down_to_one(self):
        counts = [len(np.unique(labels)) for labels in ward_labels(mixture(0), np.ones(150), 7)]
        assert counts == [7, 6, 5, 4, 3, 2, 1]

    @pytest.mark.parametrize("seed", range(3))
    def test_weights_equal_repetition(self, seed):
        rng = np.random.default_rng(seed)
        points, times = mixture(seed, n=40), rng.integers(1, 4, 40)
        repeated = np.repeat(points, times, axis=0)
        few = ward_labels(points, times.astype(float), 8)
        many = ward_labels(repeated, np.ones(len(repeated)), 8)
        for one, other in zip(few, many, strict=True):
            same = adjusted_rand(one_hot(np.repeat(one, times)).argmax(axis=1), one_hot(other).argmax(axis=1), np.ones(len(other)))
            assert same == pytest.approx(1.0)


class TestFit:
    def test_one_ball_by_hand(self):
        # Two points at ±1: mean 0, variance 1, which the prior of one item of the same variance leaves; log N(±1) = −½ log 2π − ½.
        balls = fitted(cloud_of_points(np.array([[-1.0], [1.0]])), np.ones((2, 1)))
        assert balls.log_likelihood == pytest.approx(-np.log(2 * np.pi) - 1)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("count", [2, 4, 8])
    def test_likelihood_falls_by_no_more_than_the_prior_moves_it(self, seed, count):
        points = cloud_of_points(mixture(seed, far=1.5))
        (labels,) = [part for part in ward_labels(points.points, points.weight, count) if len(np.unique(part)) == count]
        path = [fitted(points, one_hot(labels), steps).log_likelihood for steps in range(1, 16)]
        # The prior is worth so many items for each ball: it may hold back some of what they would gain.
        assert np.diff(path).min() >= -0.1 * PRIOR_ITEMS * count

    @pytest.mark.parametrize("seed", range(3))
    def test_weights_equal_repetition(self, seed):
        rng = np.random.default_rng(seed)
        points, times = mixture(seed, n=60), rng.integers(1, 4, 60)
        start = rng.dirichlet(np.ones(3), 60)
        few = fitted(cloud_of_points(points, times.astype(float)), start)
        many = fitted(cloud_of_points(np.repeat(points, times, axis=0)), np.repeat(start, times, axis=0))
        assert few.log_likelihood == pytest.approx(many.log_likelihood, rel=1e-9)
        np.testing.assert_allclose(np.repeat(few.resp, times, axis=0), many.resp, atol=1e-7)
