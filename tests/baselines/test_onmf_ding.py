import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf.baselines import OnmfDing
from orthonmf.baselines.base import squared_error, squared_sum
from orthonmf.metrics import orthogonality

X = np.array([[1.0, 2.0], [3.0, 4.0]])
BLOCKS = np.kron(np.eye(2), np.ones((6, 3))) + 0.01 * np.random.default_rng(0).random((12, 6))


def test_one_step_by_hand():
    # X Cᵀ = (3, 7) and Tᵀ X Cᵀ = 7.4: the squares of T are (1.8, 5.6) / 7.4, of sum 1; then C = Tᵀ X.
    T, C = OnmfDing(1)._step(X, np.array([[0.6], [0.8]]), np.ones((1, 2)))
    assert_allclose(T, np.sqrt([[1.8 / 7.4], [5.6 / 7.4]]))
    assert_allclose(C, T.T @ X)


def test_one_step_of_three_factors_by_hand(monkeypatch):
    F, G = np.array([[0.6], [0.8]]), np.array([[0.8], [0.6]])
    monkeypatch.setattr(OnmfDing, "_start", lambda self, A, rng: (F if A is X else G, None))
    model = OnmfDing(1, double=True, max_iter=1, tol=1e-12)
    with pytest.warns(match="did not converge"):
        T = model.fit_transform(X)
    # Xᵀ F = (3, 4.4) and Gᵀ Xᵀ F = 5.04 (S cancels): the squares of G are (2.4, 2.64) / 5.04.
    G = np.sqrt([[2.4 / 5.04], [2.64 / 5.04]])
    B = X @ G
    F = np.sqrt(F * B / (F.T @ B))
    S = np.sqrt(5.04 * F.T @ X @ G)  # S was Fᵀ X G = 5.04, and F and G have unit norm
    assert_allclose(T, F)
    assert_allclose(model.components_, S * G.T)


@pytest.mark.parametrize("seed", range(3))
def test_one_step_of_three_factors_is_the_published_rule(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    A, F, G = rng.random((5, 4)), rng.random((5, 2)), rng.random((4, 2))
    monkeypatch.setattr(OnmfDing, "_start", lambda self, given, rng: (F if given is A else G, None))
    model = OnmfDing(2, double=True, max_iter=1, tol=1e-12)
    with pytest.warns(match="did not converge"):
        T = model.fit_transform(A)
    S = F.T @ A @ G
    G = G * np.sqrt((A.T @ F @ S) / (G @ G.T @ A.T @ F @ S))
    F = F * np.sqrt((A @ G @ S.T) / (F @ F.T @ A @ G @ S.T))
    S = S * np.sqrt((F.T @ A @ G) / (F.T @ F @ S @ G.T @ G))
    assert_allclose(T, F)
    assert_allclose(model.components_, S @ G.T)


@pytest.mark.parametrize("seed", range(3))
def test_the_update_of_components_never_raises_the_error(seed):
    rng = np.random.default_rng(seed)
    A, T, C = rng.random((9, 5)), rng.random((9, 2)), rng.random((2, 5))
    for _ in range(50):
        T_next, C_next = OnmfDing(2)._step(A, T, C)
        before, after = (squared_error(A, squared_sum(A), T_next, c) for c in (C, C_next))
        assert after <= before + 1e-13
        T, C = T_next, C_next


def test_starts_from_the_clusters_of_kmeans():
    T, C = OnmfDing(2)._start(BLOCKS, np.random.RandomState(0))
    assert_array_equal(np.unique(T), [0.2, 1.2])
    assert_array_equal(T[:6], T[[0] * 6])
    assert_allclose(C[T[0].argmax()], BLOCKS[:6].mean(axis=0))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("init", ["kmeans", "random"])
@pytest.mark.parametrize("double", [False, True])
def test_blocks_are_approached(init, double):
    model = OnmfDing(2, double=double, init=init, tol=1e-9, random_state=0)  # three factors linger at a start
    T = model.fit_transform(BLOCKS)
    assert model.reconstruction_err_ < 0.05 * np.linalg.norm(BLOCKS)
    assert orthogonality(T) > 0.99
    if double:
        assert orthogonality(model.components_, axis=0) > 0.95
