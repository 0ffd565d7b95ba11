import numpy as np
from numpy.testing import assert_allclose

from orthonmf.baselines import Pnmf

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_one_step_by_hand():
    # X Xᵀ W = (11.8, 26.6) and Wᵀ X Xᵀ W = 28.36 with Wᵀ W = 1.
    W, B = np.array([[0.6], [0.8]]), np.array([[11.8], [26.6]])
    assert_allclose(X @ X.T @ W, B)
    expected = [[0.6 * 23.6 / (0.6 * 28.36 + 11.8)], [0.8 * 53.2 / (0.8 * 28.36 + 26.6)]]
    assert_allclose(Pnmf(1)._rule(W, B, np.array([[28.36]])), expected)
