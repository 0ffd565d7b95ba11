import numpy as np
from numpy.testing import assert_allclose

from orthonmf.baselines import Nhl

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_one_step_by_hand():
    # X Xᵀ W = (11.8, 26.6) and Wᵀ X Xᵀ W = 28.36: W becomes X Xᵀ W / 28.36.
    W, B = np.array([[0.6], [0.8]]), np.array([[11.8], [26.6]])
    assert_allclose(X @ X.T @ W, B)
    assert_allclose(Nhl(1)._rule(W, B, W.T @ B), [[11.8 / 28.36], [26.6 / 28.36]])
