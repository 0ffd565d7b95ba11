"""What the projective methods, A ≈ W Wᵀ A, have in common."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from orthonmf.baselines import Nhl, Pnmf
from orthonmf.metrics import orthogonality

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_method = pytest.mark.parametrize("method", [Pnmf, Nhl])


@every_method
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_that_of_the_projection_and_falls(method, seed):
    A = np.random.default_rng(seed).random((30, 8))
    model = method(3, max_iter=500, tol=1e-6, random_state=seed)
    W = model.fit_transform(A)
    assert_allclose(model.components_, W.T @ A)
    assert_allclose(model.history_[-1], np.square(A - W @ W.T @ A).sum())
    assert np.linalg.norm(W, 2) == pytest.approx(1)
    assert model.history_[-1] < model.history_[0]


@every_method
def test_one_component_is_the_leading_singular_vector(method):
    # The best projection on a line; with one component the start does not matter.
    A = np.random.default_rng(0).random((12, 5))
    W = method(1, tol=1e-14, random_state=0).fit_transform(A)
    assert_allclose(W[:, 0], np.abs(np.linalg.svd(A)[0][:, 0]), atol=1e-5)


@every_method
@pytest.mark.parametrize("seed", range(3))
def test_separable_data_are_approached(method, seed):
    scale = 1 + np.random.default_rng(seed).random((10, 1))
    A = scale * np.kron(np.eye(2), np.ones((5, 3)))
    model = method(2, random_state=seed, tol=1e-12)
    T = model.fit_transform(A)
    # The overlap of multiplicative updates fades like the inverse of the iterations.
    assert model.reconstruction_err_ < 0.05 * np.linalg.norm(A)
    assert orthogonality(T) > 0.9


@every_method
def test_features_are_projected(method):
    A = np.random.default_rng(0).random((12, 5))
    model = method(2, orthogonal="features", tol=1e-6, random_state=0)
    assert_allclose(model.fit_transform(A), model.transform(A))
