import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from orthonmf.baselines import OnmfApx
from orthonmf.metrics import orthogonality


def test_one_centroid_by_hand():
    # Directions (0.6, 0.8) and (0, 1) of weight 25: the centroid is (0.3, 0.9), the cost 2 · 25 · 0.1, and both scales are 4.5 / 0.9.
    model = OnmfApx(1, random_state=0)
    T = model.fit_transform([[3.0, 4.0], [0.0, 5.0]])
    assert_allclose(model.components_, [[0.3, 0.9]])
    assert_allclose(T, [[5], [5]])
    assert_allclose(model.history_, [5, 5])
    assert_allclose(model.reconstruction_err_, 5**0.5)


@pytest.mark.parametrize("seed", range(5))
def test_the_error_is_at_most_the_cost_of_kmeans(seed):
    A = np.random.default_rng(seed).random((60, 6)) * np.arange(1, 61)[:, np.newaxis]
    model = OnmfApx(5, random_state=seed).fit(A)
    cost, error = model.history_
    assert error <= cost
    assert_allclose(error, model.reconstruction_err_**2)
    sizes = np.linalg.norm(A, axis=1, keepdims=True)
    peer = KMeans(5, n_init=10, random_state=np.random.RandomState(seed)).fit(A / sizes, sample_weight=sizes.ravel() ** 2)
    assert_allclose(cost, peer.inertia_)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_separable_data_are_recovered(seed, double):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(3), 8)
    lines = np.kron(np.eye(3), np.ones(4)) * rng.uniform(1, 2, 12)
    A = rng.uniform(1, 100, (24, 1)) * lines[truth]
    model = OnmfApx(3, double=double, random_state=seed)
    T = model.fit_transform(A)
    assert model.reconstruction_err_ <= 1e-14 * np.linalg.norm(A)
    assert len(set(zip(truth, model.labels_, strict=True))) == 3
    assert orthogonality(T) == 1.0
    assert orthogonality(model.components_, axis=0) > 1 - 1e-14  # a mean of zeros may come back as 1e-17


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_two_orthogonal_factors(orthogonal):
    A = np.random.default_rng(0).random((30, 9))
    single, double = (OnmfApx(3, orthogonal=orthogonal, double=double, random_state=0) for double in (False, True))
    single.fit(A)
    T = double.fit_transform(A)
    assert orthogonality(T) == orthogonality(double.components_, axis=0) == 1.0
    assert_array_equal(single.labels_, double.labels_)
    assert double.reconstruction_err_ > single.reconstruction_err_


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_transform_gives_the_factor_of_the_fit(orthogonal):
    A = np.random.default_rng(0).random((30, 9))
    model = OnmfApx(3, orthogonal=orthogonal, random_state=0)
    assert_allclose(model.fit_transform(A), model.transform(A))
