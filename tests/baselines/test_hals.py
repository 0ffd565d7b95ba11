import numpy as np
import pytest
from numpy.testing import assert_allclose

from orthonmf.baselines import Hals
from orthonmf.metrics import orthogonality

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = np.array([[2.0, 1.0], [0.0, 3.0]])


def test_one_step_by_hand():
    T, C = Hals(2, penalty=0.5)._step(X, np.ones((2, 2)), np.eye(2))
    # t_1 = [(2, 0) − 0.5 (1, 1)]₊ and t_2 = [(1, 3) − 0.5 t_1]₊.
    assert_allclose(T, [[1.5, 0.25], [0.0, 3.0]])
    # t_1 · t_2 = 0.375: c_1 is along Xᵀ t_1 − 0.375 (0, 1), c_2 along Xᵀ t_2 − 0.375 c_1.
    first = np.array([3, 1.5 - 0.375])
    first /= np.linalg.norm(first)
    second = np.array([0.5, 9.25]) - 0.375 * first
    assert_allclose(C, [first, second / np.linalg.norm(second)])


@pytest.mark.parametrize("penalty", [1e-4, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_rises(seed, penalty):
    A = np.random.default_rng(seed).random((30, 8))
    history = Hals(3, penalty=penalty, random_state=seed, tol=1e-9).fit(A).history_
    assert (np.diff(history) <= 1e-13 * np.square(A).sum()).all()


def test_the_objective_is_error_and_overlap():
    A = np.random.default_rng(0).random((9, 5))
    model = Hals(2, penalty=0.3, random_state=0)
    T = model.fit_transform(A)
    assert_allclose(model.history_[-1], np.square(A - T @ model.components_).sum() + 0.6 * T[:, 0] @ T[:, 1])
    assert_allclose(np.linalg.norm(model.components_, axis=1), 1)


def test_a_larger_penalty_gives_less_overlap():
    A = np.random.default_rng(0).random((60, 8))
    found = [orthogonality(Hals(3, penalty=penalty, random_state=0).fit_transform(A)) for penalty in (1e-6, 0.05, 1.0)]
    assert found == sorted(found)
    assert found[-1] == 1.0
