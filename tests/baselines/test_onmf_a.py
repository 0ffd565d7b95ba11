import numpy as np
import pytest
from numpy.testing import assert_allclose

from orthonmf.baselines import OnmfA
from orthonmf.metrics import orthogonality

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_one_step_by_hand():
    # X Cᵀ = (3, 7) and C Xᵀ T = 7.4, so T = (3, 7) / 7.4; then C = Tᵀ X / (Tᵀ T) = (24, 34) · 7.4 / 58.
    T, C = OnmfA(1)._step(X, np.array([[0.6], [0.8]]), np.ones((1, 2)))
    assert_allclose(T, [[3 / 7.4], [7 / 7.4]])
    assert_allclose(C, [[24 * 7.4 / 58, 34 * 7.4 / 58]])


@pytest.mark.parametrize("seed", range(3))
def test_orthonormal_factors_are_fixed(seed):
    rng = np.random.default_rng(seed)
    T = np.zeros((6, 2))
    T[:3, 0], T[3:, 1] = rng.random(3), rng.random(3)
    T /= np.linalg.norm(T, axis=0)
    C = rng.random((2, 5))
    next_T, next_C = OnmfA(2)._step(T @ C, T, C)
    assert_allclose(next_T, T, atol=1e-14)
    assert_allclose(next_C, C, atol=1e-14)


def test_the_error_falls_and_components_part():
    A = np.kron(np.eye(2), np.ones((10, 3))) + 0.01 * np.random.default_rng(0).random((20, 6))
    model = OnmfA(2, random_state=0)
    T = model.fit_transform(A)
    assert model.history_[-1] < 1e-3 * model.history_[0]
    assert orthogonality(T) > 0.99
