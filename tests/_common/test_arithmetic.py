"""What numpy answers to underflow, overflow and the like is the user's affair outside, and ours inside: it changes no result."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from orthonmf import ONMF
from orthonmf._common.arithmetic import argmin_of_columns, shifted
from orthonmf.baselines import REGISTRY
from orthonmf.engines import base
from orthonmf.exceptions import InvalidInputError
from orthonmf.metrics import orthogonality, reconstruction_error, sparsity

FORMS = {
    "auto": {"n_components": "auto", "max_components": 3},
    "lines": {"n_components": 3},
    "means": {"n_components": 3, "scaling": "none"},
    "features": {"n_components": 2, "orthogonal": "features"},
    "bounded": {"n_components": 3, "capacity": 30},
    "soft": {"n_components": 3, "capacity": 25, "capacity_penalty": 1.0},
    "flow": {"n_components": 2, "capacity": 40, "solver": "cbf", "solver_options": {"max_steps": 20}},
    "float32": {"n_components": 3},
    "sparse": {"n_components": 3},
    "threads": {"n_components": 3, "n_jobs": 2},
}


def groups(seed, n=60):
    """Three groups whose entries span many orders of magnitude, so that probabilities and squares underflow."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(3, 4))[np.arange(n) % 3] + 1e-3 * rng.gamma(1.0, size=(n, 4))
    X[:5] *= 1e-170
    return X


def data(form, seed):
    X = groups(seed)
    return X.astype(np.float32) if form == "float32" else sp.csr_array(X) if form == "sparse" else X


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the flow is given few steps
@pytest.mark.parametrize("form", FORMS)
def test_fit_and_use_do_not_depend_on_the_answer(form, monkeypatch):
    monkeypatch.setattr(base, "MIN_BLOCK", 16)  # several blocks, for several threads
    monkeypatch.setattr(base, "MAX_BLOCK", 16)
    X = data(form, 0)
    expected = ONMF(**FORMS[form]).fit(X)
    T = expected.transform(X)
    with np.errstate(all="raise"):
        model = ONMF(**FORMS[form]).fit(X)
        assert_array_equal(model.transform(X), T)
        assert_array_equal(model.inverse_transform(T), expected.inverse_transform(T))
        assert str(model.verify(X)) == str(expected.verify(X))
        assert np.geterr() == dict.fromkeys(("divide", "over", "under", "invalid"), "raise")
    assert_array_equal(model.labels_, expected.labels_)
    assert_array_equal(model.components_, expected.components_)  # to the last bit
    assert model.reconstruction_err_ == expected.reconstruction_err_


@pytest.mark.parametrize("name", REGISTRY)
def test_baselines_do_not_depend_on_the_answer(name):
    X = groups(1, n=30)
    expected = REGISTRY[name](2, max_iter=5, tol=1e9, random_state=0).fit_transform(X)
    with np.errstate(all="raise"):
        model = REGISTRY[name](2, max_iter=5, tol=1e9, random_state=0)
        assert_array_equal(model.fit_transform(X), expected)
        model.transform(X)


def test_metrics_do_not_depend_on_the_answer():
    X, T, C = np.full((2, 2), 1e-300), np.array([[1e-200, 0.0], [0.0, 1.0]]), np.diag([1e-200, 1.0])
    expected = reconstruction_error(X, T, C), orthogonality(T + 1e-200), sparsity(T, threshold=1e-300)
    with np.errstate(all="raise"):
        assert (reconstruction_error(X, T, C), orthogonality(T + 1e-200), sparsity(T, threshold=1e-300)) == expected


def test_a_refusal_stays_ours():
    with np.errstate(all="raise"), pytest.raises(InvalidInputError, match="NaN"):
        ONMF(1).fit([[1.0, np.nan]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [-1100, -1000, -140, -60, -1, 0, 1, 60, 120, 1000, 1050])
def test_shifted_has_the_bits_of_ldexp(dtype, shift):
    rng = np.random.default_rng(0)
    exponents = np.finfo(dtype).minexp + np.arange(2000) % (np.finfo(dtype).maxexp - np.finfo(dtype).minexp)
    values = np.ldexp(rng.random(2000), exponents).astype(dtype)
    with np.errstate(all="ignore"):
        assert_array_equal(shifted(values, shift), np.ldexp(values, shift))


@pytest.mark.parametrize("shape", [(1, 1024), (3, 7), (20, 1023), (20, 1024), (300, 2000)])
@pytest.mark.parametrize("ties", [False, True])
def test_argmin_of_columns_is_that_of_numpy(shape, ties):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, shape).astype(np.float32) if ties else rng.random(shape)
    found = argmin_of_columns(values)
    assert_array_equal(found, values.argmin(axis=0))
    assert found.dtype == np.intp
