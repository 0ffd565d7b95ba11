import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf.baselines import OnmfEm
from orthonmf.baselines.onmf_em import _lines


def test_one_line_by_hand():
    # The singular values of X are 3 and 1, the leading vector is (1, 1) / √2.
    model = OnmfEm(1)
    T = model.fit_transform([[2.0, 1.0], [1.0, 2.0]])
    assert_allclose(model.components_, [[0.5**0.5, 0.5**0.5]])
    assert_allclose(T, [[4.5**0.5], [4.5**0.5]])
    assert_allclose(model.reconstruction_err_, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_error_never_rises_and_is_the_objective(seed):
    A = np.random.default_rng(seed).random((60, 6))
    model = OnmfEm(5, random_state=seed).fit(A)
    assert (np.diff(model.history_) <= 1e-13 * np.square(A).sum()).all()
    assert_allclose(model.history_[-1], model.reconstruction_err_**2)


def test_separable_data_are_recovered_from_an_item_of_each_line():
    lines = np.eye(3)[[0, 1, 2, 0, 1, 2, 0]]
    A = np.arange(1.0, 8.0)[:, np.newaxis] * lines
    models = [OnmfEm(3, random_state=seed).fit(A) for seed in range(10)]
    exact = [model for model in models if model.reconstruction_err_ < 1e-14]
    assert exact  # a draw of two items of one line may stay there
    for model in exact:
        assert_array_equal(model.components_[model.labels_] > 0, lines > 0)


def test_a_line_without_items_stays():
    A, C = np.array([[1.0, 0.0], [2.0, 0.0]]), np.eye(2)
    assert_array_equal(_lines(A, np.array([0, 0]), C), C)


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_transform_gives_the_factor_of_the_fit(orthogonal):
    A = np.random.default_rng(0).random((30, 9))
    model = OnmfEm(3, orthogonal=orthogonal, random_state=0)
    assert_allclose(model.fit_transform(A), model.transform(A))
    if orthogonal == "features":
        assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_from_directions_far_apart_separable_data_are_recovered_always(seed):
    A = np.arange(1.0, 8.0)[:, np.newaxis] * np.eye(3)[[0, 1, 2, 0, 1, 2, 0]]
    assert OnmfEm(3, init="k-means++", random_state=seed).fit(A).reconstruction_err_ < 1e-14
