"""Bad input, degenerate data, numerical extremes, concurrency: what must happen, one test for each."""

import gc
import os
import re
import resource
import signal
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

from orthonmf import ONMF
from orthonmf._common import validation
from orthonmf.datasets import make_onmf
from orthonmf.engines import ThreadTeam, base, layout, threads
from orthonmf.engines.dense import DenseEngine
from orthonmf.engines.threads import TimeLimitReached
from orthonmf.exceptions import IntegrityError, InvalidInputError, OrthonmfError

FORMS = [(orthogonal, scaling) for orthogonal in ("samples", "features") for scaling in ("item", "none")]
every_form = pytest.mark.parametrize(("orthogonal", "scaling"), FORMS)
FEWER = "Found {} distinct components where {} were asked for"


def separated(scaling="item", *, n=60, p=6, seed=0):
    """Three clear components of different sizes."""
    item_scale = 30.0 if scaling == "item" else None
    return make_onmf(n, p, 3, noise=0.1, sizes=(3, 2, 1), item_scale=item_scale, random_state=seed).X


def oriented(items, orthogonal):
    return items if orthogonal == "samples" else np.ascontiguousarray(items.T)


def fit(items, orthogonal="samples", scaling="item", n_components=3, **parameters):
    model = ONMF(n_components, orthogonal=orthogonal, scaling=scaling, **parameters)
    return model.fit(oriented(np.asarray(items), orthogonal))


def assert_sound(model, items, orthogonal="samples"):
    """Finite, nonnegative, orthogonal, certified, and no component empty or repeated."""
    X = oriented(np.asarray(items), orthogonal)
    T = model.transform(X)
    for factor in (T, model.components_):
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()
    assert model.counts_.min() > 0
    assert len(np.unique(model.components_, axis=0)) == model.n_components_
    assert model.verify(X).holds, str(model.verify(X))


def same_partition(labels, others):
    """Whether two labellings differ by the names of the components alone."""
    pairs = {(int(a), int(b)) for a, b in zip(labels, others, strict=True)}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


# -- bad input ----------------------------------------------------------------------------------------------


def refuse(X, message, *, n_components=1, error=InvalidInputError, **parameters):
    model = ONMF(n_components, **parameters)
    with pytest.raises(error, match=message) as caught:
        model.fit(X)
    assert isinstance(caught.value, ValueError | TypeError)
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize(("value", "message"), [(np.nan, "contains NaN"), (np.inf, "contains infinity"), (-1.0, "Negative values in data")])
@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_bad_value_is_refused_and_its_place_named(value, message, orthogonal):
    X = np.ones((9, 4))
    X[7, 2] = value
    refuse(X, f"{message}.*row 7, column 2", orthogonal=orthogonal)
    refuse(X.astype(np.float32), f"{message}.*row 7, column 2", orthogonal=orthogonal)
    refuse(X.tolist(), f"{message}.*row 7, column 2", orthogonal=orthogonal)
    refuse(X.astype(object), f"{message}.*row 7, column 2", orthogonal=orthogonal)
    refuse(pd.DataFrame(X), f"{message}.*row 7, column 2", orthogonal=orthogonal)
    refuse(sparse.csr_array(X), f"{message}.*row 7, column 2", orthogonal=orthogonal)
    for store in (sparse.csc_matrix, sparse.coo_array, sparse.bsr_array, sparse.lil_array, sparse.dok_array):
        refuse(store(X), message, orthogonal=orthogonal)


def test_bad_value_in_one_block_of_many_is_named():
    X = np.ones((3 * validation.CHECK_ROWS, 2))
    X[2 * validation.CHECK_ROWS + 5, 1] = np.nan
    refuse(X, f"contains NaN at row {2 * validation.CHECK_ROWS + 5}, column 1")


@pytest.mark.parametrize("method", ["transform", "predict", "score", "verify"])
def test_bad_value_is_refused_after_the_fit_too(method):
    X = separated()
    model = ONMF(3).fit(X)
    X[3, 1] = np.nan
    with pytest.raises(InvalidInputError, match="row 3, column 1"):
        getattr(model, method)(X)


def test_sparse_duplicates_that_hide_a_bad_value():
    # −1 and 2 at one place add to 1; 1e308 twice to infinity
    for data, message in (([-1.0, 2.0], "Negative values in data"), ([1e308, 1e308], "contains infinity")):
        X = sparse.csr_array((np.array(data), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
        refuse(X, message)


def test_negative_zero_is_zero():
    X = separated()
    X[X < 5] = 0.0
    signed = np.where(X == 0, -0.0, X)
    for store in (np.asarray, sparse.csr_array, lambda X: sparse.coo_array((X.ravel(), np.indices(X.shape).reshape(2, -1)))):
        plain, model = ONMF(3).fit(store(X)), ONMF(3).fit(store(signed))
        assert_array_equal(model.components_, plain.components_)
        assert_array_equal(model.labels_, plain.labels_)


@pytest.mark.parametrize(
    "X",
    [
        np.array([["1", "2"], ["3", "4"]]),
        [["1", "2"], ["3", "4"]],
        np.array([[b"1"], [b"2"]]),
        np.array([["2020-01-01"], ["2021-01-01"]], dtype="M8[D]"),
        np.ones((2, 2), dtype="m8[s]"),
        pd.DataFrame({"when": pd.to_datetime(["2020", "2021"]), "what": [1, 2]}),
    ],
    ids=["text", "list of text", "bytes", "dates", "durations", "frame with dates"],
)
def test_text_and_dates_are_refused(X):
    refuse(X, "X has dtype .*; numbers are expected")


def test_complex_numbers_are_refused():
    refuse(np.ones((2, 2)) * 1j, "Complex data not supported")


def test_objects_that_are_no_numbers_are_refused():
    refuse(np.array([[{}, 1.0], [2.0, 3.0]], dtype=object), "not 'dict'", error=TypeError)
    refuse(np.array([["a", 1.0], [2.0, 3.0]], dtype=object), "could not convert string")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 3)), r"0 sample\(s\)"),
        (np.zeros((3, 0)), r"0 feature\(s\)"),
        (sparse.csr_array((0, 3)), r"0 sample\(s\)"),
        (np.ones(3), "Reshape your data"),
        (np.ones((2, 2, 2)), "dim 3"),
        (3.0, "scalar"),
        (None, "scalar"),
        ([[1.0, 2.0], [3.0]], "inhomogeneous"),
    ],
    ids=["no rows", "no columns", "sparse without rows", "1-D", "3-D", "scalar", "None", "ragged"],
)
def test_what_is_no_matrix_is_refused(X, message):
    refuse(X, message)


@pytest.mark.parametrize("value", [0, -1, 2.0, True, None, "three", np.nan])
def test_number_of_components_must_be_a_count(value):
    refuse(np.ones((4, 3)), f"n_components={value!r} is not usable", n_components=value)


@pytest.mark.parametrize(
    ("parameter", "value", "meant"),
    [
        ("loss", "kl", "kullback-leibler"),
        ("loss", "Kullback_Leibler", "kullback-leibler"),
        ("orthogonal", "sample", "samples"),
        ("solver", "Dual", "dual"),
        ("missing", "ignored", "ignore"),
        ("engine", "compiled_sparse", "compiled-sparse"),
    ],
)
def test_the_choice_that_was_meant_is_named(parameter, value, meant):
    refuse(np.ones((4, 3)), f"{parameter}={value!r} is not known; expected one of ", n_components=1, **{parameter: value})
    refuse(np.ones((4, 3)), f". Did you mean {meant!r}?", n_components=1, **{parameter: value})


def test_nothing_is_suggested_for_what_resembles_no_choice():
    with pytest.raises(InvalidInputError, match=r"expected one of 'samples', 'features'\.$"):
        ONMF(1, orthogonal="rows").fit(np.ones((4, 3)))


def test_more_components_than_items_are_refused():
    refuse(np.ones((4, 3)), "n_components=5 is more than the 4 rows", n_components=5)
    refuse(np.ones((4, 3)), "n_components=4 is more than the 3 columns", n_components=4, orthogonal="features")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("max_components", 0),
        ("max_components", 2.5),
        ("orthogonal", "rows"),
        ("scaling", None),
        ("engine", "gpu"),
        ("engine", "sparse"),
        ("schedule", "fast"),
        ("schedule", 1.0),
        ("schedule", np.nan),
        ("tol", 0),
        ("tol", np.inf),
        ("max_iter", 0),
        ("time_limit", -1.0),
        ("n_jobs", "2"),
        ("n_jobs", 0),
        ("n_jobs", 1.5),
        ("n_jobs", np.nan),
        ("n_jobs", True),
        ("random_state", "seven"),
        ("random_state", -1),
        ("random_state", 1.5),
        ("solver_options", ["growth"]),
        ("solver_options", "growth"),
    ],
)
def test_parameter_out_of_range_is_named(parameter, value):
    refuse(np.ones((4, 3)), re.escape(f"{parameter}={value!r}"), **{parameter: value})


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0, 1.0], r"sample_weight\[1\]=.*-1\.0"),
        ([1.0, 1.0, np.nan], r"sample_weight\[2\]=.*nan"),
        ([np.inf, 1.0, 1.0], r"sample_weight\[0\]=.*inf"),
        ([0.0, 0.0, 0.0], "all zero"),
        ([1.0, 1.0], r"shape \(2,\); expected \(3,\)"),
        ([[1.0], [1.0], [1.0]], r"shape \(3, 1\); expected \(3,\)"),
        (["a", "b", "c"], "sample_weight"),
    ],
    ids=["negative", "NaN", "infinite", "all zero", "too short", "2-D", "text"],
)
def test_bad_weights_are_named(weight, message):
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(InvalidInputError, match=message):
        ONMF(1).fit(X, sample_weight=weight)
    model = ONMF(1).fit(X)
    with pytest.raises(InvalidInputError, match=message):
        model.verify(X, sample_weight=weight)


@pytest.mark.parametrize("method", ["transform", "predict", "score", "verify"])
def test_another_width_is_refused(method):
    model = ONMF(3).fit(separated())
    with pytest.raises(InvalidInputError, match="X has 5 features, but ONMF is expecting 6 features"):
        getattr(model, method)(np.ones((4, 5)))


@every_form
def test_read_only_memmap_works(orthogonal, scaling, tmp_path):
    X = oriented(separated(scaling), orthogonal)
    np.save(tmp_path / "X.npy", X)
    model = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert_array_equal(model.components_, ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(X).components_)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint8, np.int64, bool, ">f4", np.longdouble])
@every_form
def test_other_dtypes_agree(orthogonal, scaling, dtype):
    items = (np.kron(np.eye(3), np.ones((8, 3)))[:, :8] * 3).round()
    items[::5, 0] += 1
    X = oriented(items, orthogonal).astype(dtype)
    model = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(X)
    exact = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(X.astype(np.float64))
    assert_array_equal(model.labels_, exact.labels_)
    assert model.components_.dtype == np.float64
    assert_array_equal(model.components_, exact.components_)


@every_form
def test_data_frames_agree(orthogonal, scaling):
    X = oriented(separated(scaling), orthogonal)
    plain = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(X)
    names = [f"column {j}" for j in range(X.shape[1])]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(frame)
        assert_array_equal(model.components_, plain.components_)
        # X Cᵀ adds in the order of the memory
        assert_allclose(model.transform(frame), plain.transform(X), rtol=1e-13)
        assert_array_equal(model.feature_names_in_, names)


@pytest.mark.thinned(3)
@every_form
def test_x_is_never_changed(orthogonal, scaling):
    X = oriented(separated(scaling), orthogonal)
    X[X < 5] = 0
    row = sparse.csr_array(X)
    doubled = sparse.csr_array((np.repeat(row.data / 2, 2), np.repeat(row.indices, 2)[::-1].copy(), row.indptr * 2), shape=X.shape)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    for given in (X, np.asfortranarray(X), row, row.tocsc(), row.tocoo(), doubled):
        arrays = (
            [given]
            if isinstance(given, np.ndarray)
            else [getattr(given, name) for name in ("data", "indices", "indptr", "coords") if hasattr(given, name)]
        )
        before = [np.array(array, copy=True) for array in arrays]
        model = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(given, sample_weight=weight)
        model.transform(given)
        model.verify(given, sample_weight=weight)
        for array, copy in zip(arrays, before, strict=True):
            assert_array_equal(array, copy)


# -- degenerate data ----------------------------------------------------------------------------------------


@every_form
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_all_zeros(orthogonal, scaling, store):
    X = store(np.zeros((5, 4)))
    model = ONMF(orthogonal=orthogonal, scaling=scaling).fit(X)
    assert model.n_components_ == 1
    assert model.status_.startswith("Converged. All items are equal")
    assert model.reconstruction_err_ == 0
    assert model.critical_betas_.size == 0
    assert np.isfinite(model.components_).all()
    assert_array_equal(model.inverse_transform(model.transform(X)), 0)
    assert model.verify(X).holds
    with pytest.warns(ConvergenceWarning, match=FEWER.format(1, 2)):
        assert ONMF(2, orthogonal=orthogonal, scaling=scaling).fit(X).n_components_ == 1


@every_form
@pytest.mark.parametrize("n", [7, 5000])
def test_all_items_equal(orthogonal, scaling, n):
    # a mean of equal numbers need not be that number
    items = np.tile([0.1, 0.7, 1 / 3], (n, 1))
    model = fit(items, orthogonal, scaling, "auto")
    assert model.n_components_ == 1
    assert model.status_.startswith("Converged. All items are equal")
    assert model.critical_betas_.size == 0, "without variance no finite temperature splits"
    assert model.certificate_.relative_error <= 1e-12
    assert_sound(model, items, orthogonal)


@every_form
def test_fewer_distinct_items_than_components(orthogonal, scaling):
    distinct = np.array([[1.0, 2.0, 0.1], [3.0, 0.3, 1.0], [0.2, 0.4, 0.9]])
    items = distinct[[0, 1, 2, 0, 1, 2, 1, 1, 0]]
    if scaling == "item":
        items = items * np.arange(1, 10)[:, None]
    with pytest.warns(ConvergenceWarning, match=FEWER.format(3, 6)):
        model = fit(items, orthogonal, scaling, 6)
    assert model.n_components_ == 3
    assert model.certificate_.relative_error <= 1e-12
    assert_sound(model, items, orthogonal)


@every_form
def test_zero_items_are_assigned_with_value_zero(orthogonal, scaling):
    items = np.vstack([np.zeros((2, 6)), separated(scaling), np.zeros((1, 6))])
    model = fit(items, orthogonal, scaling, 4)
    assert_sound(model, items, orthogonal)
    assert model.counts_.sum() == len(items)
    rebuilt = model.inverse_transform(model.transform(oriented(items, orthogonal)))
    rebuilt = rebuilt if orthogonal == "samples" else rebuilt.T
    if scaling == "item":  # any component times zero
        assert_array_equal(rebuilt[[0, 1, -1]], 0)
    else:  # a component of their own at the origin, which is a mean about a reference
        assert_allclose(rebuilt[[0, 1, -1]], 0, atol=1e-14 * items.max())
    if (orthogonal, scaling) == ("samples", "item"):
        assert_array_equal(model.scale_[[0, 1, -1]], 0)


@every_form
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("common", [0.0, 1.0])
def test_one_item_unlike_thousands_of_others(orthogonal, scaling, store, common):
    # No small sample of the items has it.
    items = np.full((5000, 3), common)
    items[3777] = [1.0, 2.0, 3.0]
    X = store(oriented(items, orthogonal))
    n_found = 1 if (scaling, common) == ("item", 0.0) else 2  # zero items have no direction of their own
    model = ONMF(n_found, orthogonal=orthogonal, scaling=scaling).fit(X)
    assert model.n_components_ == n_found
    assert model.certificate_.relative_error <= 1e-12
    assert model.verify(X).holds, str(model.verify(X))
    if n_found == 2:
        assert_array_equal(model.counts_, [4999, 1])


@every_form
def test_one_item(orthogonal, scaling):
    items = np.array([[0.1, 0.0, 0.7]])
    for n_components in (1, "auto"):
        model = fit(items, orthogonal, scaling, n_components)
        assert_array_equal(model.labels_, [0])
        assert model.certificate_.relative_error <= 1e-15
        assert_sound(model, items, orthogonal)


@every_form
@pytest.mark.parametrize("n", [2, 9])
def test_as_many_components_as_items(orthogonal, scaling, n):
    items = np.random.default_rng(n).gamma(2.0, size=(n, 5))
    model = fit(items, orthogonal, scaling, n)
    assert_array_equal(np.sort(model.labels_), np.arange(n))
    assert model.certificate_.relative_error <= 1e-12
    assert_sound(model, items, orthogonal)


@every_form
def test_as_many_components_as_items_of_very_different_size(orthogonal, scaling):
    items = np.diag([1.0, 1e-9, 1e-3]) + 1e-11
    model = fit(items, orthogonal, scaling, 3)
    assert_array_equal(np.sort(model.labels_), np.arange(3))
    assert_sound(model, items, orthogonal)


@every_form
def test_one_component(orthogonal, scaling):
    items = separated(scaling)
    model = fit(items, orthogonal, scaling, 1)
    assert_array_equal(model.labels_, 0)
    values = np.linalg.svd(items, compute_uv=False)
    best = np.linalg.norm(values[1:]) if scaling == "item" else np.linalg.norm(items - items.mean(axis=0))
    assert_allclose(model.reconstruction_err_, best, rtol=1e-10)
    assert_sound(model, items, orthogonal)


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_one_dimension(orthogonal):
    items = np.array([[1.0], [2.0], [9.0], [10.0]])
    model = fit(items, orthogonal, "none", 2)
    assert_array_equal(model.labels_, [0, 0, 1, 1])
    assert_allclose(model.reconstruction_err_, 1.0, rtol=1e-12)  # four times ½²
    assert_sound(model, items, orthogonal)
    # there is only one direction
    with pytest.warns(ConvergenceWarning, match=FEWER.format(1, 2)):
        model = fit(items, orthogonal, "item", 2)
    assert model.n_components_ == 1
    assert model.certificate_.relative_error <= 1e-15


@every_form
def test_fewer_items_than_dimensions(orthogonal, scaling):
    items = make_onmf(12, 200, 3, noise=0.1, sizes=(3, 2, 1), random_state=0)
    model = fit(items.X, orthogonal, scaling)
    assert same_partition(model.labels_, items.labels)
    assert_sound(model, items.X, orthogonal)


@pytest.mark.thinned(3)
@every_form
def test_hundred_thousand_dimensions_and_ten_items(orthogonal, scaling):
    data = make_onmf(10, 100_000, 2, noise=1.0, sizes=(3, 2), random_state=0)
    model = fit(data.X, orthogonal, scaling, 2)
    assert same_partition(model.labels_, data.labels)
    assert_sound(model, data.X, orthogonal)


@pytest.mark.thinned(3)
@every_form
def test_mirror_symmetric_and_isotropic_data(orthogonal, scaling):
    # a square and its centre's mirror images: every direction is as good as another
    square = np.array([[2.0, 1.0], [0.0, 1.0], [1.0, 2.0], [1.0, 0.0]])
    axes = np.eye(6)
    rng = np.random.default_rng(0)
    cloud = rng.gamma(2.0, size=(8, 3))
    mirrored = np.vstack([cloud, cloud[:, ::-1]])
    for items in (square, axes, mirrored):
        model = fit(items, orthogonal, scaling, 2)
        assert_sound(model, items, orthogonal)
        assert_array_equal(model.labels_, fit(items, orthogonal, scaling, 2).labels_)
        auto = fit(items, orthogonal, scaling, "auto", max_components=3)
        assert np.isfinite(auto.critical_betas_).all()
        assert (auto.critical_betas_ > 0).all()


def test_ties_go_to_the_lowest_index():
    # (1, 1) is as far from (2, 0) as from (0, 2)
    model = ONMF(2, scaling="none").fit([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]])
    assert_array_equal(model.predict([[1.0, 1.0], [0.0, 0.0]]), [0, 0])
    assert_array_equal(model.labels_, [0, 0, 1, 1])


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rank_one(orthogonal, dtype):
    items = np.outer([0.1, 0.2, 0.7, 1 / 3, 5.0], [1.0, 5.3, 2.0, 0.7, 1 / 7]).astype(dtype)
    model = fit(items, orthogonal, "item", "auto")
    assert model.n_components_ == 1
    assert model.certificate_.relative_error <= 10 * np.finfo(dtype).eps
    assert_sound(model, items, orthogonal)
    with pytest.warns(ConvergenceWarning, match=FEWER.format(1, 3)):
        assert fit(items, orthogonal, "item", 3).n_components_ == 1


@every_form
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_data_of_the_exact_form(orthogonal, scaling, seed, store):
    item_scale = 0.5 if scaling == "item" else None
    data = make_onmf(100, 12, 5, item_scale=item_scale, center_shape=0.3, random_state=seed)
    X = store(oriented(data.X, orthogonal))
    model = ONMF(5, orthogonal=orthogonal, scaling=scaling).fit(X)
    assert same_partition(model.labels_, data.labels)
    assert model.certificate_.relative_error <= 1e-12
    assert model.verify(X).holds, str(model.verify(X))


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_one_outlier_far_away(orthogonal):
    items = separated("none", p=3)
    alone = fit(items, orthogonal, "none", 3)
    for size in (1e6, 1e12):
        far = np.vstack([items, [[size, 0.5 * size, 0.3 * size]]])
        model = fit(far, orthogonal, "none", 2)
        assert_array_equal(model.labels_, [0] * len(items) + [1])
        assert_sound(model, far, orthogonal)
        # The others are found as if it were not there.
        model = fit(far, orthogonal, "none", 4)
        assert model.counts_[model.labels_[-1]] == 1
        assert same_partition(model.labels_[:-1], alone.labels_)
        assert_allclose(model.reconstruction_err_, alone.reconstruction_err_, rtol=1e-9)
        assert_sound(model, far, orthogonal)


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_one_outlier_among_directions(orthogonal):
    items = separated("item", p=3)
    alone = fit(items, orthogonal, "item", 3)
    far = np.vstack([items, [[1e12, 0.5e12, 0.3e12]]])
    model = fit(far, orthogonal, "item", 4)
    assert same_partition(model.labels_[:-1], alone.labels_)
    assert_sound(model, far, orthogonal)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_ten_items_repeated_a_hundred_thousand_times(scaling):
    distinct = np.random.default_rng(0).gamma(2.0, size=(10, 3))
    X = np.repeat(distinct, 100_000, axis=0)
    with pytest.warns(ConvergenceWarning, match=FEWER.format(10, 11)):
        model = ONMF(11, scaling=scaling).fit(X)
    assert_array_equal(np.sort(model.counts_), 100_000)
    assert model.certificate_.relative_error <= 1e-12
    auto = ONMF(scaling=scaling).fit(X[::10])
    assert auto.n_components_ == 10
    assert auto.status_.startswith("Converged. 10 components stand out")


@pytest.mark.thinned(7)
@every_form
@pytest.mark.parametrize("seed", range(5))
def test_component_that_empties_is_refilled(orthogonal, scaling, seed):
    # Nearly as many components as items, of sizes over six decades.
    rng = np.random.default_rng(seed)
    items = rng.gamma(0.5, size=(14, 4)) * 10.0 ** rng.uniform(-3, 3, (14, 1))
    model = fit(items, orthogonal, scaling, 12)
    assert model.n_components_ == 12
    assert_sound(model, items, orthogonal)
    assert model.components_.max(axis=1).min() > 0, "a component lies at the origin"


# -- numerical extremes -------------------------------------------------------------------------------------


@every_form
def test_subnormal_numbers(orthogonal, scaling):
    # whole numbers of the smallest subnormal: scaling them up is exact
    items = np.round(separated(scaling) * 1000)
    plain = fit(items, orthogonal, scaling)
    model = fit(items * 5e-324, orthogonal, scaling)
    assert_array_equal(model.labels_, plain.labels_)
    if scaling == "item":
        assert_array_equal(model.components_, plain.components_)
    assert np.isfinite(model.transform(oriented(items * 5e-324, orthogonal))).all()


@every_form
@pytest.mark.parametrize("factor", [1e20, 1e-30])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_float32_whose_squares_are_no_float32(orthogonal, scaling, factor, store):
    X = oriented(separated(scaling), orthogonal).astype(np.float32)
    plain = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(store(X))
    scaled = store(X * np.float32(factor))
    model = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(scaled)
    assert_array_equal(model.labels_, plain.labels_)
    unit = factor if (orthogonal, scaling) == ("samples", "none") else 1.0
    # the product with the factor rounds every entry
    assert_allclose(model.components_ / unit, plain.components_, rtol=1e-5, atol=1e-6)
    assert_allclose(model.reconstruction_err_, plain.reconstruction_err_ * factor, rtol=1e-4)
    assert model.verify(scaled).holds, str(model.verify(scaled))


def nearest_in_extended_precision(items, centers, scaling):
    items, centers = items.astype(np.longdouble), centers.astype(np.longdouble)
    if scaling == "none":
        return np.square(items[:, None] - centers).sum(axis=2).argmin(axis=1)
    unit = centers / np.sqrt(np.square(centers).sum(axis=1))[:, None]
    along = items @ unit.T
    return np.square(items[:, None] - along[:, :, None] * unit).sum(axis=2).argmin(axis=1)


def centers_in_extended_precision(items, labels, scaling):
    items = items.astype(np.longdouble)
    groups = [items[labels == j] for j in range(labels.max() + 1)]
    means = np.array([group.mean(axis=0) for group in groups])
    if scaling == "none":
        return means
    for _ in range(50):  # the leading singular vector
        means = np.array([group.T @ (group @ mean) for group, mean in zip(groups, means, strict=True)])
        means /= np.sqrt(np.square(means).sum(axis=1))[:, None]
    return means


@pytest.mark.thinned(5)
@every_form
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("dtype", "offset", "size"), [(np.float64, 1e8, 1.0), (np.float32, 1e6, 100.0)])
def test_offset_leaves_the_labels_of_extended_precision(orthogonal, scaling, seed, dtype, offset, size):
    # At these offsets an entry has 26 bits left for its differences in float64, 10 in float32.
    cloud = size * np.random.default_rng(seed).gamma(2.0, size=(150, 3))
    items = (cloud + offset).astype(dtype)
    model = fit(items, orthogonal, scaling, 4)
    labels = model.labels_
    if orthogonal == "samples":  # the components, as they are given
        root = 1.0 if scaling == "item" else np.sqrt(model.counts_.astype(np.longdouble))[:, None]
        centers = model.components_.astype(np.longdouble) / root
        assert_array_equal(nearest_in_extended_precision(items, centers, scaling), labels)
    if dtype == np.float64:  # a fixed point of the alternation
        centers = centers_in_extended_precision(items, labels, scaling)
        assert_array_equal(nearest_in_extended_precision(items, centers, scaling), labels)
    if scaling == "none":  # distances do not know the offset
        moved = fit(items.astype(np.float64) - offset, orthogonal, scaling, 4)
        assert same_partition(labels, moved.labels_)


@every_form
@pytest.mark.parametrize("offset", [1e3, 1e4, 1e5])
def test_sparse_float32_far_from_zero_is_told_apart_as_dense(orthogonal, scaling, offset):
    # four groups 1 to 5 apart with noise of 0.1, of which float32 keeps 0.01 at 1e5
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 4
    items = (offset + rng.uniform(0, 5, (4, 6))[labels] + 0.1 * rng.standard_normal((80, 6))).astype(np.float32)
    X = oriented(items, orthogonal)
    model = ONMF(4, orthogonal=orthogonal, scaling=scaling).fit(sparse.csr_array(X))
    assert same_partition(model.labels_, labels)
    assert model.verify(sparse.csr_array(X)).holds
    assert model.components_.dtype == np.float32


@pytest.mark.parametrize("fault", ["lost", "twice"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_block_lost_or_counted_twice_raises(monkeypatch, fault, n_jobs):
    class Faulty(DenseEngine):
        """Goes wrong once, in the middle of a fit."""

        def run(self, frame, work, columns=None):
            if self.passes == 0:  # later passes are over the distinct items
                blocks = self.slices
                self.slices = blocks[:-1] if fault == "lost" else [*blocks, blocks[0]]
            return super().run(frame, work, columns)

    monkeypatch.setattr(base, "MIN_BLOCK", 8)
    monkeypatch.setattr(base, "MAX_BLOCK", 8)
    monkeypatch.setattr(layout, "engine_class", lambda name: Faulty)
    model = ONMF(3, n_jobs=n_jobs)
    seen = {"lost": 56, "twice": 68}[fault]
    with pytest.raises(IntegrityError, match=f"saw {seen} items; expected 60"):
        model.fit(separated())
    assert not model.__sklearn_is_fitted__()


def test_errors_are_of_one_family():
    for error in (InvalidInputError, IntegrityError):
        assert issubclass(error, OrthonmfError)


# -- resources ----------------------------------------------------------------------------------------------


def test_time_limit_is_honoured_within_one_block():
    done = []
    with ThreadTeam(1, deadline=time.monotonic() + 0.05) as team, pytest.raises(TimeLimitReached):
        for _ in team.map(lambda block: done.append(block) or time.sleep(0.03), range(100)):
            pass
    assert len(done) <= 2  # the one that was running when the time was over, and the one before


def resident_bytes():
    """Memory that this process holds, or has held where only that is known."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_two_hundred_fits_leave_nothing_behind():
    X = separated(n=40)

    def held():
        gc.collect()
        return len(os.listdir("/dev/fd")), threading.active_count(), resident_bytes()

    def fits(count):
        for _ in range(count):
            ONMF(3, n_jobs=2).fit(X).transform(X)

    fits(20)
    files, running, resident = held()
    fits(200)
    assert held()[:2] == (files, running)
    assert held()[2] - resident < 4 << 20  # 20 kB a fit; X and its factors alone are 5 kB, 1 MB in 200 fits


# -- concurrency --------------------------------------------------------------------------------------------


@pytest.fixture
def many_blocks(monkeypatch):
    """Blocks of 16 items and eight cores, so that small data keep several threads busy."""
    monkeypatch.setattr(base, "MIN_BLOCK", 16)
    monkeypatch.setattr(base, "MAX_BLOCK", 16)
    monkeypatch.setattr(threads, "n_cores", lambda: 8)


def workers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("orthonmf")]


def blas_threads():
    return [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()]


def test_eight_threads_fitting_at_once_equal_serial(many_blocks):
    data = [separated(seed=seed, n=80) for seed in range(8)]
    serial = [ONMF(3, n_jobs=4).fit(X) for X in data]
    before = blas_threads()
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda X: ONMF(3, n_jobs=4).fit(X), data))
    for one, other in zip(serial, together, strict=True):
        assert_array_equal(one.labels_, other.labels_)
        assert_array_equal(one.components_, other.components_)
        assert one.certificate_ == other.certificate_
    assert blas_threads() == before
    assert not workers()


def test_fits_that_overlap_use_no_more_threads_than_cores(many_blocks, monkeypatch):
    most, lock = [], threading.Lock()

    class Watched(DenseEngine):
        def rows(self, where):
            with lock:
                most.append(len(workers()))
            return super().rows(where)

    monkeypatch.setattr(layout, "engine_class", lambda name: Watched)
    monkeypatch.setattr(base, "KEEP_BYTES", 0)
    X = separated(n=80)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: ONMF(3, n_jobs=8).fit(X), range(4)))
    assert 1 < max(most) <= 8 + 3  # a fit that finds no core free has one thread for its blocks


def test_inside_joblib_workers_count_one_thread(monkeypatch):
    monkeypatch.setattr(threads, "n_cores", lambda: 8)
    assert threads.usable_threads(None) <= 8
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as joblib's and dask's workers have it
    assert threads.usable_threads(None) == 1
    assert threads.usable_threads(3) == 3
    assert threads.usable_threads(-2) == 7


def test_inside_joblib_threads_equals_serial():
    data = [separated(seed=seed) for seed in range(4)]
    found = joblib.Parallel(n_jobs=2, prefer="threads")(joblib.delayed(ONMF(3).fit_predict)(X) for X in data)
    for X, labels in zip(data, found, strict=True):
        assert_array_equal(labels, ONMF(3).fit(X).labels_)


def test_fork_after_a_fit_then_fit_in_the_child_finishes(many_blocks):
    X = separated(n=80)
    expected = ONMF(3, n_jobs=4).fit(X).components_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS are alive, as in any program with numpy
        child = os.fork()
    if child == 0:  # no assertion may leave the child
        code = 1
        try:
            code = 0 if np.array_equal(ONMF(3, n_jobs=4).fit(X).components_, expected) else 2
        finally:
            os._exit(code)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


@pytest.fixture
def interruptible():
    """Python's own answer to SIGINT, which a process started in the background does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("n_jobs", [1, 4])
def test_interrupt_in_the_middle_of_a_fit_leaves_no_threads(many_blocks, monkeypatch, n_jobs):
    class Interrupting(DenseEngine):
        def run(self, frame, work, columns=None):
            if self.passes == 0:
                signal.raise_signal(signal.SIGINT)
            return super().run(frame, work, columns)

    monkeypatch.setattr(layout, "engine_class", lambda name: Interrupting)
    X, before = separated(n=80), blas_threads()
    model = ONMF(3, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert not model.__sklearn_is_fitted__()
    assert not workers()
    assert blas_threads() == before


@pytest.mark.usefixtures("interruptible")
def test_interrupt_while_threads_are_at_work_leaves_none(many_blocks, monkeypatch):
    class Interrupted(DenseEngine):
        def rows(self, where):
            if self.passes == 1 and where.start == 16:
                signal.raise_signal(signal.SIGINT)  # in a worker; the handler runs in the main thread
            return super().rows(where)

    monkeypatch.setattr(layout, "engine_class", lambda name: Interrupted)
    monkeypatch.setattr(base, "KEEP_BYTES", 0)
    with pytest.raises(KeyboardInterrupt):
        ONMF(3, n_jobs=4).fit(separated(n=80))
    assert not workers()


def test_no_threads_are_left_after_a_fit(many_blocks):
    # Threads that Python did not start are listed on after their end.
    def started():
        return {thread for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)}

    before = started()
    model = ONMF(3, n_jobs=4).fit(separated(n=80))
    model.transform(separated(n=80))
    for thread in started() - before:  # one that sees the workers end may be at its last line
        thread.join(timeout=10)
    assert started() <= before
    assert not workers()


def test_error_in_a_thread_is_raised_and_leaves_none(many_blocks, monkeypatch):
    class Broken(DenseEngine):
        def rows(self, where):
            if self.passes == 1 and where.start == 32:
                raise OSError("disk gone")
            return super().rows(where)

    monkeypatch.setattr(layout, "engine_class", lambda name: Broken)
    monkeypatch.setattr(base, "KEEP_BYTES", 0)
    before = blas_threads()
    with pytest.raises(OSError, match="disk gone"):
        ONMF(3, n_jobs=4).fit(separated(n=80))
    assert not workers()
    assert blas_threads() == before


@pytest.mark.thinned(3)
@every_form
def test_global_state_is_as_before(orthogonal, scaling):
    np.random.seed(5)  # noqa: NPY002 - the state that must not be touched
    before = (np.random.get_state()[1].tolist(), np.random.get_state()[2])  # noqa: NPY002
    filters, errors, config = list(warnings.filters), np.geterr(), sklearn.get_config()
    pools = blas_threads()
    model = fit(separated(scaling), orthogonal, scaling, "auto", random_state=3)
    model.verify(oriented(separated(scaling), orthogonal))
    after = np.random.get_state()  # noqa: NPY002
    assert (after[1].tolist(), after[2]) == before
    assert warnings.filters == filters
    assert np.geterr() == errors
    assert sklearn.get_config() == config
    assert blas_threads() == pools


class TestNothingToWeigh:
    """Items without weight and components without items, under bounds."""

    def test_zeros_under_soft_bounds(self):
        model = ONMF(2, capacity=1, capacity_penalty=0.5).fit(np.zeros((4, 3)))
        assert model.certificate_.holds

    def test_equal_items_one_for_each(self):
        model = ONMF(4, capacity=[1] * 4, min_size=[1] * 4).fit(np.full((4, 3), 0.25))
        assert model.counts_.tolist() == [1, 1, 1, 1]
        assert model.converged_

    @pytest.mark.parametrize("orthogonal", ["samples", "features"])
    def test_a_component_that_rounding_leaves_empty_keeps_its_centre(self, orthogonal):
        X = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        X = X if orthogonal == "samples" else X.T
        model = ONMF(3, capacity=2, rounding="nearest", scaling="none", orthogonal=orthogonal).fit(X)
        assert sorted(model.counts_) == [0, 2, 3]
        assert model.certificate_.nonnegative
        assert np.isfinite(model.components_).all()
        assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-12)
