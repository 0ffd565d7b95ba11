import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf.baselines import Onmfs
from orthonmf.baselines.onmfs import _best_for
from orthonmf.metrics import orthogonality


def test_the_best_factor_for_given_directions_by_hand():
    T, labels = _best_for(np.array([[2.0, 1.0], [3.0, -1.0], [-1.0, 4.0], [-2.0, -1.0]]))
    assert_array_equal(labels[:3], [0, 0, 1])
    assert_allclose(T, [[2 / 13**0.5, 0], [3 / 13**0.5, 0], [0, 1], [0, 0]])


@pytest.mark.parametrize("seed", range(5))
def test_the_best_factor_for_given_directions_beats_every_partition(seed):
    a = np.random.default_rng(seed).random((5, 2))
    T, _ = _best_for(a)
    best = np.square((T * a).sum(axis=0)).sum()
    for code in range(2**5):
        inside = np.array([code >> i & 1 for i in range(5)], dtype=bool)
        assert np.square(a[inside, 0]).sum() + np.square(a[~inside, 1]).sum() <= best + 1e-15


@pytest.mark.parametrize("seed", range(5))
def test_separable_data_are_recovered(seed):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(3), 8)
    A = rng.uniform(1, 10, (24, 1)) * (np.kron(np.eye(3), np.ones(4)) * rng.uniform(1, 2, 12))[truth]
    model = Onmfs(3, rank=3, random_state=seed, max_iter=5000)
    T = model.fit_transform(A)
    assert model.reconstruction_err_ <= 1e-5 * np.linalg.norm(A)
    assert model.n_iter_ < 5000
    assert len(set(zip(truth, model.labels_, strict=True))) == 3
    assert orthogonality(T) == 1.0


def test_the_best_so_far_never_gets_worse():
    A = np.random.default_rng(0).random((40, 8))
    model = Onmfs(3, random_state=0)
    T = model.fit_transform(A)
    assert (np.diff(model.history_) <= 0).all()
    assert_allclose(T.T @ T, np.eye(3), atol=1e-14)
    assert_allclose(model.components_, T.T @ A)


def test_more_draws_are_no_worse():
    A = np.random.default_rng(0).random((40, 8))
    few, many = (Onmfs(3, max_iter=draws, random_state=0).fit(A).history_[-1] for draws in (10, 1000))
    assert many < few
