import numpy as np
import pytest
from numpy.testing import assert_allclose

from orthonmf.baselines import Pnmf
from orthonmf.metrics import orthogonality

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_one_step_by_hand():
    # X Xᵀ W = (11.8, 26.6) and Wᵀ X Xᵀ W = 28.36 with Wᵀ W = 1.
    W, B = np.array([[0.6], [0.8]]), np.array([[11.8], [26.6]])
    assert_allclose(X @ X.T @ W, B)
    expected = [[0.6 * 23.6 / (0.6 * 28.36 + 11.8)], [0.8 * 53.2 / (0.8 * 28.36 + 26.6)]]
    assert_allclose(Pnmf(1)._rule(W, B, np.array([[28.36]])), expected)


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_that_of_the_projection_and_falls(seed):
    A = np.random.default_rng(seed).random((30, 8))
    model = Pnmf(3, max_iter=500, tol=1e-6, random_state=seed)
    W = model.fit_transform(A)
    assert_allclose(model.components_, W.T @ A)
    assert_allclose(model.history_[-1], np.square(A - W @ W.T @ A).sum())
    assert np.linalg.norm(W, 2) == pytest.approx(1)
    assert model.history_[-1] < model.history_[0]


def test_one_component_is_the_leading_singular_vector():
    # The best projection on a line; with one component the start does not matter.
    A = np.random.default_rng(0).random((12, 5))
    W = Pnmf(1, tol=1e-14, random_state=0).fit_transform(A)
    assert_allclose(W[:, 0], np.abs(np.linalg.svd(A)[0][:, 0]), atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_separable_data_are_approached(seed):
    scale = 1 + np.random.default_rng(seed).random((10, 1))
    A = scale * np.kron(np.eye(2), np.ones((5, 3)))
    model = Pnmf(2, random_state=seed, tol=1e-12)
    T = model.fit_transform(A)
    # The overlap of multiplicative updates fades like the inverse of the iterations.
    assert model.reconstruction_err_ < 0.05 * np.linalg.norm(A)
    assert orthogonality(T) > 0.9


def test_features_are_projected():
    A = np.random.default_rng(0).random((12, 5))
    model = Pnmf(2, orthogonal="features", tol=1e-6, random_state=0)
    assert_allclose(model.fit_transform(A), model.transform(A))
