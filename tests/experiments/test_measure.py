"""The one measurement, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from orthonmf import ONMF
from orthonmf.experiments.measure import Measured, distortion, mean, measure, timed_fit

X = np.array([[3.0, 4.0], [0.0, 5.0]])
T = np.array([[1.0, 1e-9], [0.0, 1.0]])
C = np.array([[3.0, 0.0], [0.0, 5.0]])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_measures_by_hand(form):
    # The residual is 4 in one entry; ‖X‖² = 50. One exact zero of four, and one nearly zero.
    found = measure(form(X), T, C, seconds=2.5)
    assert_allclose(found.error, np.sqrt(16 / 50), rtol=1e-8)
    assert found.sparsity == 0.25
    assert found.sparsity_rounded == 0.5
    assert found.sparsity_coarse == 0.5
    assert_allclose(found.orthogonality, 1.0, atol=1e-8)
    assert found.seconds == 2.5


def test_the_third_sparsity_forgives_small_entries():
    found = measure(X, np.array([[1.0, 1e-4], [0.0, 1.0]]), C, seconds=0.0)
    assert (found.sparsity, found.sparsity_rounded, found.sparsity_coarse) == (0.25, 0.25, 0.5)


def test_with_features_the_right_factor_is_measured():
    C = np.array([[1.0, 1.0], [0.0, 1.0]])  # C Cᵀ = [[2, 1], [1, 1]]: O = 1 − √2/√7
    found = measure(X, np.ones((2, 2)), C, seconds=0.0, orthogonal="features")
    assert_allclose(found.orthogonality, 1 - np.sqrt(2 / 7))
    assert found.sparsity == 0.25


def test_factors_in_float32_are_measured_in_float64():
    tiny = np.float32(1e-30)  # its square vanishes in float32
    found = measure((tiny * X).astype(np.float32), (tiny * T).astype(np.float32), C.astype(np.float32), seconds=0.0)
    assert_allclose(found.error, np.sqrt(16 / 50), rtol=1e-6)


def test_a_fit_is_timed_and_measured():
    found = timed_fit(ONMF(2), X)
    assert 0 < found.seconds < 60
    assert found.orthogonality == 1.0
    assert found.error < 1e-12


def test_mean_is_taken_measure_by_measure():
    assert mean([Measured(1, 2, 3, 4, 5, 6), Measured(3, 4, 5, 6, 7, 8)]) == Measured(2, 3, 4, 5, 6, 7)


def test_distortion_by_hand():
    # Means 2 and 10: squares 1, 1, 0.
    assert_allclose(distortion(np.array([[1.0], [3.0], [10.0]]), np.array([0, 0, 2])), 2 / 3)
