import doctest
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf.datasets import make_paper_synthetic, paper
from orthonmf.exceptions import InvalidInputError
from orthonmf.metrics import orthogonality, reconstruction_error, sparsity

SHAPES = {1: (1000, 10), 2: (2000, 20), 3: (4000, 50), 4: (10000, 100)}


def true_factors(data):
    """T and C of the true partition with the best scales: T[i, label] = x·u, u the unit mean."""
    n, k = len(data.X), len(data.centers)
    sums = np.zeros_like(data.centers)
    np.add.at(sums, data.labels, data.X)
    C = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    T = np.zeros((n, k))
    T[np.arange(n), data.labels] = np.einsum("ij,ij->i", data.X, C[data.labels])
    return T, C


def test_examples_in_docstrings_hold():
    assert doctest.testmod(paper).failed == 0


def test_draws_in_the_stated_order():
    rng = np.random.default_rng(7)
    centers = rng.gamma(10.0, 1.0, (20, 10))
    labels = rng.integers(20, size=1000)
    data = make_paper_synthetic(1, 7)
    assert_array_equal(data.labels, labels)
    assert_array_equal(data.X, centers[labels] + rng.uniform(0, 0.01, (1000, 10)))


@pytest.mark.parametrize("which", SHAPES)
def test_shape_and_noise_are_those_stated(which):
    data = make_paper_synthetic(which, seed=0)
    noise = data.X - data.centers[data.labels]
    assert data.X.shape == SHAPES[which]
    assert data.centers.shape == (20, SHAPES[which][1])
    assert_array_equal(np.unique(data.labels), np.arange(20))
    assert_array_equal(data.scale, np.ones(len(data.X)))
    rounding = 1e-14  # of the subtraction, at centres up to about 30
    assert -rounding <= noise.min() < 1e-4
    assert 0.0099 < noise.max() <= 0.01 + rounding


@pytest.mark.parametrize("which", SHAPES)
def test_true_partition_has_the_errors_of_the_paper(which):
    data = make_paper_synthetic(which, seed=0)
    T, C = true_factors(data)
    floor = 0.0276e-2 * math.sqrt(1 - 1 / SHAPES[which][1])
    assert_allclose(reconstruction_error(data.X, T, C), floor, rtol=0.03)  # the printed table has two digits
    assert orthogonality(T) == 1.0
    assert_allclose(sparsity(T), 0.95, rtol=1e-14)  # one of 20 entries, to rounding


def test_seeds_differ():
    assert not np.array_equal(make_paper_synthetic(1, 0).X, make_paper_synthetic(1, 1).X)


@pytest.mark.parametrize("which", [0, 5, "1"])
def test_unknown_data_set_is_named(which):
    with pytest.raises(InvalidInputError, match=f"which={which!r}, expected 1, 2, 3 or 4"):
        make_paper_synthetic(which)
