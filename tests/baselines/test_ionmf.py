import numpy as np
import pytest
from numpy.testing import assert_allclose

from orthonmf.baselines import Ionmf
from orthonmf.metrics import orthogonality

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_one_step_by_hand():
    # C = Tᵀ X / (Tᵀ T) = (2, 3); then T = (X Cᵀ + T) / (C Cᵀ + Tᵀ T) = (8 + 1, 18 + 1) / (13 + 2).
    T, C = Ionmf(1, alpha=1.0)._step(X, np.ones((2, 1)), np.ones((1, 2)))
    assert_allclose(C, [[2, 3]])
    assert_allclose(T, [[9 / 15], [19 / 15]])


def test_the_objective_is_error_and_penalty():
    A = np.random.default_rng(0).random((9, 5))
    model = Ionmf(2, alpha=0.7, random_state=0)
    T = model.fit_transform(A)
    expected = np.square(A - T @ model.components_).sum() + 0.35 * np.square(T.T @ T - np.eye(2)).sum()
    assert_allclose(model.history_[-1], expected)
    assert model.history_[-1] < model.history_[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_stationary_point_of_the_objective(seed):
    A = np.random.default_rng(seed).random((9, 5))
    model = Ionmf(2, alpha=0.7, random_state=seed, max_iter=50_000, tol=1e-15)
    T = model.fit_transform(A)
    C = model.components_
    gradient = 2 * (T @ C - A) @ C.T + 2 * 0.7 * T @ (T.T @ T - np.eye(2))
    # Where T is positive the gradient vanishes, elsewhere it does not point inwards.
    assert np.abs(T * gradient).max() < 1e-5
    assert gradient.min() > -1e-3


def test_a_larger_penalty_gives_less_overlap():
    A = np.random.default_rng(0).random((40, 8))
    low, high = (orthogonality(Ionmf(3, alpha=alpha, max_iter=2000, random_state=0).fit_transform(A)) for alpha in (1e-3, 1e3))
    assert low < high
