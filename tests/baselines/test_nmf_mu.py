import numpy as np
import pytest
from numpy.testing import assert_allclose

from orthonmf.baselines import NmfMu

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_one_step_by_hand():
    # T = X Cᵀ / (C Cᵀ) = (3, 7) / 2, then C = Tᵀ X / (Tᵀ T) = (12, 17) / 14.5.
    T, C = NmfMu(1)._step(X, np.ones((2, 1)), np.ones((1, 2)))
    assert_allclose(T, [[1.5], [3.5]])
    assert_allclose(C, [[12 / 14.5, 17 / 14.5]])


@pytest.mark.parametrize("seed", range(3))
def test_the_error_never_rises(seed):
    A = np.random.default_rng(seed).random((30, 8))
    history = NmfMu(3, max_iter=2000, tol=1e-6, random_state=seed).fit(A).history_
    # Rounding of ‖A‖² − 2⟨A, T C⟩ + ‖T C‖²: some units of ‖A‖².
    assert (np.diff(history) <= 1e-14 * np.square(A).sum()).all()
    assert history[-1] < history[0] / 2


def test_data_of_rank_one_are_recovered():
    A = np.outer([1.0, 2.0, 3.0], [1.0, 0.0, 4.0])
    assert NmfMu(1, random_state=0).fit(A).reconstruction_err_ < 1e-6
