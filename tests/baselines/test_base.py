"""What all compared methods have in common: the laws run over the registry."""

import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from orthonmf.baselines import REGISTRY, Baseline, Nhl, NmfMu, OnmfApx, OnmfDing, OnmfEm, Pnmf
from orthonmf.baselines.base import HardBaseline, leading_vector, nonnegative_least_squares, ratio, squared_error, squared_sum, unit_columns
from orthonmf.datasets import make_onmf
from orthonmf.exceptions import InvalidInputError
from orthonmf.metrics import reconstruction_error

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

every_method = pytest.mark.parametrize("name", REGISTRY)
both_ways = pytest.mark.parametrize("orthogonal", ["samples", "features"])


def made(name: str, **options) -> Baseline:
    return REGISTRY[name](n_components=3, **{"max_iter": 30, "random_state": 0, **options})


def data(seed: int = 0) -> np.ndarray:
    X = make_onmf(40, 12, 3, noise=0.1, item_scale=5.0, random_state=seed).X
    return X * (np.random.default_rng(seed).random(X.shape) > 0.3)  # so that a sparse copy has something to leave out


@every_method
@both_ways
def test_factors_are_nonnegative_and_their_error_is_reported(name, orthogonal):
    X, model = data(), made(name, orthogonal=orthogonal)
    T = model.fit_transform(X)
    assert T.shape == (40, 3)
    assert model.components_.shape == (3, 12)
    assert T.min() >= 0
    assert model.components_.min() >= 0
    assert model.reconstruction_err_ == reconstruction_error(X, T, model.components_, relative=False)
    assert_allclose(model.inverse_transform(T), T @ model.components_)
    assert model.n_components_ == 3
    assert 1 <= model.n_iter_ <= 30
    assert np.isfinite(model.history_).all()


@every_method
@both_ways
def test_sparse_equals_dense(name, orthogonal):
    X = data()
    dense, thin = made(name, orthogonal=orthogonal), made(name, orthogonal=orthogonal)
    # The sums are taken in another order; thirty iterations amplify the rounding.
    assert_allclose(thin.fit_transform(sparse.csr_array(X)), dense.fit_transform(X), rtol=1e-6, atol=1e-8)
    assert_allclose(thin.history_, dense.history_, rtol=1e-6, atol=1e-8)
    assert_allclose(thin.transform(sparse.csc_array(X)), dense.transform(X), rtol=1e-6, atol=1e-6)


@every_method
def test_features_are_the_samples_of_the_transpose(name):
    X = data()
    rows, columns = made(name), made(name, orthogonal="features")
    T = rows.fit_transform(X)
    columns.fit(np.ascontiguousarray(X.T))
    # A hard method makes C Cᵀ = I.
    assert_allclose(unit_columns(columns.components_.T)[0], unit_columns(T)[0], rtol=1e-6, atol=1e-8)
    assert columns.reconstruction_err_ <= rows.reconstruction_err_ * (1 + 1e-6)


@every_method
def test_the_same_random_state_gives_the_same_bits(name):
    X = data()
    first, second = (made(name, random_state=7).fit_transform(X) for _ in range(2))
    assert_array_equal(first, second)


@every_method
def test_float32_stays_float32(name):
    model = made(name)
    X = data().astype(np.float32)
    assert model.fit_transform(X).dtype == model.components_.dtype == model.transform(X).dtype == np.float32


@every_method
def test_zero_data_have_zero_error(name):
    assert made(name).fit(np.zeros((6, 4))).reconstruction_err_ == 0


@every_method
def test_labels_belong_to_hard_methods(name):
    model = made(name)
    T = model.fit_transform(data())
    assert hasattr(model, "labels_") == isinstance(model, HardBaseline)
    if hasattr(model, "labels_"):
        assert np.count_nonzero(T, axis=1).max() == 1
        assert_array_equal(T.argmax(axis=1), model.labels_)


@pytest.mark.parametrize("name", ["ding", "onmf-a", "pnmf", "nhl", "hals", "ionmf", "nmf-mu"])
def test_too_few_iterations_are_reported(name):
    model = made(name, max_iter=2, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 iterations; raise max_iter"):
        model.fit(data())
    assert not model.converged_
    assert model.n_iter_ == 2
    assert len(model.history_) == 3


@pytest.mark.parametrize("method", [Pnmf, Nhl, OnmfApx, OnmfDing, OnmfEm, NmfMu])
def test_nothing_of_the_size_of_items_squared_is_formed(method):
    n = 4000
    X = np.random.default_rng(0).random((n, 5))
    tracemalloc.start()
    try:
        method(2, max_iter=2, random_state=0).fit(X)
        assert tracemalloc.get_traced_memory()[1] < n * n * 8 / 4
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"orthogonal": "rows"}, "orthogonal='rows'"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": -1.0}, r"tol=-1\.0"),
        ({"n_components": 41}, "n_components=41 is more than n_samples=40"),
        ({"n_components": 13, "orthogonal": "features"}, "n_components=13 is more than n_features=12"),
    ],
)
@every_method
def test_a_bad_parameter_is_named(name, options, message):
    with pytest.raises(InvalidInputError, match=message):
        clone(made(name)).set_params(**options).fit(data())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("apx", {"n_init": 0}, "n_init=0"),
        ("apx", {"double": 1}, "double=1"),
        ("apx", {"double": True, "n_components": 13}, "at most 12"),
        ("ding", {"init": "nndsvd"}, "init='nndsvd'"),
        ("ding", {"double": True, "n_components": 13}, "at most 12"),
        ("hals", {"penalty": 0}, "penalty=0"),
        ("ionmf", {"alpha": -1}, "alpha=-1"),
        ("onmfs", {"rank": 0}, "rank=0"),
    ],
)
def test_a_bad_parameter_of_one_method_is_named(name, options, message):
    with pytest.raises(InvalidInputError, match=message):
        made(name).set_params(**options).fit(data())


def test_bad_data_are_named():
    model = Pnmf(2)
    with pytest.raises(NotFittedError):
        model.transform(data())
    with pytest.raises(InvalidInputError, match=r"passed to Pnmf: .* at row 0, column 1"):
        model.fit([[1.0, -1.0], [1.0, 1.0]])
    model.fit(data())
    with pytest.raises(InvalidInputError, match="12 features"):
        model.transform(np.ones((2, 3)))
    with pytest.raises(InvalidInputError, match="3 columns; expected 2"):
        model.inverse_transform(np.ones((2, 3)))


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = Pnmf(2, max_iter=5, random_state=0).fit(data())
    before = model.components_.copy()
    with pytest.raises(InvalidInputError):
        model.set_params(n_components=50).fit(np.ones((3, 2)))
    assert model.n_features_in_ == 12
    assert_array_equal(model.components_, before)


@pytest.mark.parametrize("seed", range(3))
def test_least_squares_equal_those_of_each_row(seed):
    rng = np.random.default_rng(seed)
    X, C = rng.random((10, 6)), rng.random((4, 6))
    assert_allclose(nonnegative_least_squares(X, C), [nnls(C.T, x)[0] for x in X], atol=1e-12)


def test_least_squares_with_more_components_than_features():
    rng = np.random.default_rng(0)
    X, C = rng.random((10, 3)), np.vstack([np.eye(3), rng.random((4, 3))])
    assert_allclose(nonnegative_least_squares(X, C) @ C, X, atol=1e-12)


def test_squared_error_equals_the_sum_over_entries():
    rng = np.random.default_rng(0)
    X, T, C = rng.random((7, 5)), rng.random((7, 2)), rng.random((2, 5))
    assert_allclose(squared_error(X, squared_sum(X), T, C), np.square(X - T @ C).sum())


def test_a_ratio_to_zero_is_finite():
    assert np.isfinite(ratio(np.ones((1, 2)), np.array([[0.0, 1.0]]))).all()
    assert_array_equal(ratio(np.zeros((1, 2)), np.zeros((1, 2))), 0)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (520, 510)])
def test_leading_vector_is_that_of_the_svd(shape):
    A = np.random.default_rng(0).random(shape)
    for given in (A, sparse.csr_array(A)):
        assert_allclose(leading_vector(given), np.abs(np.linalg.svd(A)[2][0]), atol=1e-8)
    assert_array_equal(leading_vector(A[:0]), 0)


def test_silent_where_it_converges():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert OnmfEm(3, random_state=0).fit(data()).converged_
