"""How the noise of counts lies about a mean, by hand and as drawn, and the number of components that it tells."""

import numpy as np
import pytest

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.dense import DenseEngine
from orthonmf.search.number import number_of_components
from orthonmf.search.number.shape import Ball, Counted


def test_by_hand():
    # √g = (1, 2), and a centre at √g + (3, 0): the mean is (4, 4), four times g and once.
    shape = Counted.of(np.eye(2), np.array([1.0, 2.0]), np.array([1.0, 2.0]), profiles=False)
    distance, logs = shape.seen(np.array([[5.0, 0.0], [3.0, 2.0]]), np.array([[3.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(distance, [[1.0, 25.0], [4.0, 13.0]], rtol=1e-12)
    np.testing.assert_allclose(logs, [np.log(4.0), 0.0], atol=1e-12)


@pytest.mark.parametrize("profiles", [False, True])
def test_it_is_the_covariance_of_counts(profiles):
    rng = np.random.default_rng(0)
    mean, other = rng.gamma(2.0, 1.0, (2, 6))
    root = np.sqrt((mean + other) / 2)
    directions = np.linalg.qr(rng.standard_normal((6, 3)))[0].T
    if profiles:
        mean, root = mean / mean.sum(), root / np.linalg.norm(root)
        drawn = rng.multinomial(1, mean, 200_000)
    else:
        drawn = rng.poisson(mean, (200_000, 6))

    def covariance(ratio, along):
        return (directions * ratio) @ directions.T - profiles * np.outer(along, along)

    expected = covariance(mean / root**2, directions @ (mean / root))
    np.testing.assert_allclose(np.cov((drawn / root) @ directions.T, rowvar=False), expected, atol=0.02)
    # What the mean has beside the directions is not seen, nor what it adds to the noise.
    center = directions @ (mean / root - root)
    seen = root + center @ directions
    rounded, logs = Counted.of(directions, root, root, profiles=profiles).rounded(np.eye(3), center)
    np.testing.assert_allclose(rounded @ rounded.T, np.linalg.inv(covariance(seen / root, directions @ seen)), rtol=1e-9)
    assert logs == pytest.approx(np.linalg.slogdet(covariance(seen / root, directions @ seen))[1])


def test_without_a_slope_it_is_a_ball():
    rng = np.random.default_rng(1)
    points, centers = rng.standard_normal((20, 3)), rng.standard_normal((4, 3))
    flat = Counted(np.eye(3), np.zeros((3, 3, 3)), None)
    for seen, expected in zip(flat.seen(points, centers), Ball().seen(points, centers), strict=True):
        np.testing.assert_allclose(seen, expected, atol=1e-12)


def found(X, scaling):
    """How many components counts have."""
    with ThreadTeam(1) as team:
        engine = DenseEngine(X.astype(float), None, shift=0, team=team)
        return number_of_components(engine, REGISTRY["kullback-leibler", scaling].of(engine), 12, float(len(X))).answer


@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize(("p", "k", "seed"), [(50, 5, 0), (50, 5, 1), (200, 3, 1), (200, 5, 0)])
def test_as_many_as_there_are(p, k, seed, scaling):
    # With noise of one shape everywhere, scaling "none" had one or two too many of each of these.
    rng = np.random.default_rng([k, p, 200, seed])
    profile = rng.gamma(2.0, 1.0, (k, p))
    profile /= profile.sum(axis=1, keepdims=True)
    assert found(rng.poisson(2 * p * profile[np.arange(600) % k]), scaling) == k


@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("p", [50, 200])
def test_one_profile_is_one_component(p, scaling):
    rng = np.random.default_rng([1, p, 5, 100])
    profile = rng.gamma(2.0, 1.0, p)
    assert found(rng.poisson(p / 20 * profile / profile.sum(), (600, p)), scaling) == 1
