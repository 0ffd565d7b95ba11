"""Laws that every form of the factorisation obeys: both orientations, both scalings, float32 where it matters.

Items are made once, as rows; ``oriented`` lays them out as the rows or the columns of X.
"""

import math
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from orthonmf import ONMF
from orthonmf._common import validation
from orthonmf.datasets import make_onmf
from orthonmf.engines import base, threads

# Sums in another order differ by some hundred roundings, a direction by as many over its spectral gap.
ROUNDING = 1e-12


@pytest.fixture(params=["samples", "features"])
def orthogonal(request):
    return request.param


@pytest.fixture(params=["item", "none"])
def scaling(request):
    return request.param


def separated_items(scaling, *, n=60, p=8, seed=0):
    """Three clear components of different sizes, so that their order by mass is no tie."""
    item_scale = 30.0 if scaling == "item" else None
    return make_onmf(n, p, 3, noise=0.1, sizes=(3, 2, 1), item_scale=item_scale, random_state=seed).X


def sparse_items(scaling, *, n=60, seed=0):
    """Three components with supports of their own, and zeros in each item."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.choice(3, n, p=[0.5, 0.3, 0.2]))
    center = np.kron(np.eye(3), np.ones(5)) + np.eye(3, 15, 7) * 0.2
    items = center[labels] * rng.uniform(0.9, 1.1, (n, 15)) * (rng.random((n, 15)) < 0.9)
    return items * rng.gamma(30.0, 1 / 30, n)[:, None] if scaling == "item" else items


def cloud_items(scaling, *, n=50, p=5, seed=0):
    """Items without separate parts: every decision of the search is a close one."""
    return np.random.default_rng(seed).gamma(2.0, size=(n, p))


def oriented(items, orthogonal):
    return items if orthogonal == "samples" else np.ascontiguousarray(items.T)


def fit(X, orthogonal, scaling, n_components=3, *, weight=None, **parameters):
    model = ONMF(n_components, orthogonal=orthogonal, scaling=scaling, **parameters)
    return model.fit(X, sample_weight=weight)


def assert_same_model(found, expected, rtol=ROUNDING):
    assert_array_equal(found.labels_, expected.labels_)
    assert_allclose(found.components_, expected.components_, rtol=rtol, atol=rtol * expected.components_.max())
    # The error is stationary in the components: their difference counts squared.
    assert_allclose(found.reconstruction_err_, expected.reconstruction_err_, rtol=1e-9)


def same_partition(labels, others):
    """Whether two labellings differ by the names of the components alone."""
    pairs = {(int(a), int(b)) for a, b in zip(labels, others, strict=True)}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


# -- weights and order --------------------------------------------------------------------------------------


def test_weighted_vs_repeated_by_hand():
    # Rows 1 and 5 with weights 3 and 1 are the rows 1, 1, 1, 5: mean 2, squared error 3 + 9.
    weighted = ONMF(1, scaling="none").fit([[1.0], [5.0]], sample_weight=[3, 1])
    repeated = ONMF(1, scaling="none").fit([[1.0], [1.0], [1.0], [5.0]])
    assert_allclose(weighted.reconstruction_err_, math.sqrt(12), rtol=ROUNDING)
    assert_allclose(repeated.reconstruction_err_, math.sqrt(12), rtol=ROUNDING)
    assert_allclose(weighted.components_, repeated.components_, rtol=ROUNDING)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("make", [separated_items, cloud_items])
@pytest.mark.parametrize("n_components", [3, "auto"])
def test_weighted_vs_repeated(orthogonal, scaling, make, n_components):
    if (orthogonal, scaling, n_components, make) == ("features", "none", "auto", cloud_items):
        pytest.xfail("What noise reaches depends on the number of rows, and repeating rows changes that where features are assigned.")
    X = oriented(make(scaling, n=40), orthogonal)
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = fit(X, orthogonal, scaling, n_components, weight=weight, max_components=6)
    repeated = fit(X.repeat(weight, axis=0), orthogonal, scaling, n_components, max_components=6)
    labels = weighted.labels_.repeat(weight) if orthogonal == "samples" else weighted.labels_
    assert_array_equal(labels, repeated.labels_)
    assert_allclose(weighted.components_, repeated.components_, rtol=ROUNDING, atol=ROUNDING * repeated.components_.max())
    assert_allclose(weighted.reconstruction_err_, repeated.reconstruction_err_, rtol=1e-9)
    # Critical values are located to 1 %, by iterations that stop at 1e-3.
    assert_allclose(weighted.critical_betas_, repeated.critical_betas_, rtol=0.03)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("make", [separated_items, cloud_items])
def test_common_weight_changes_nothing(orthogonal, scaling, make):
    X = oriented(make(scaling), orthogonal)
    plain = fit(X, orthogonal, scaling)
    for common in (0.25, 8.0):  # whose roots are exact
        model = fit(X, orthogonal, scaling, weight=np.full(len(X), common))
        assert_array_equal(model.labels_, plain.labels_)
        assert_allclose(model.reconstruction_err_, math.sqrt(common) * plain.reconstruction_err_, rtol=1e-9)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("exponent", [-1000, -500, 500, 1000])
@pytest.mark.parametrize("bounds", [{}, {"capacity": 0.6}], ids=["free", "bounded"])
def test_common_weight_of_any_size_changes_no_bit(orthogonal, scaling, bounds, exponent):
    # errors are multiplied by √4**e = 2**e, which is exact; so is √N in the components of samples without scales
    X = oriented(separated_items(scaling), orthogonal)
    weight = np.random.default_rng(0).uniform(0.3, 0.9, len(X))
    expected = fit(X, orthogonal, scaling, weight=weight, **bounds)
    found = fit(X, orthogonal, scaling, weight=np.ldexp(weight, exponent), **bounds)
    assert_array_equal(found.labels_, expected.labels_)
    root = exponent // 2 if (orthogonal, scaling) == ("samples", "none") else 0
    assert_array_equal(found.components_, np.ldexp(expected.components_, root))
    assert found.reconstruction_err_ == math.ldexp(expected.reconstruction_err_, exponent // 2)
    assert found.verify(X, sample_weight=np.ldexp(weight, exponent)).holds


@pytest.mark.thinned(7)
@pytest.mark.parametrize("make", [separated_items, cloud_items])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_order_of_rows_and_columns_changes_only_rounding(orthogonal, scaling, make, axis, seed):
    X = oriented(make(scaling, seed=seed), orthogonal)
    order = np.random.default_rng(seed).permutation(X.shape[axis])
    plain = fit(X, orthogonal, scaling)
    model = fit(X.take(order, axis=axis), orthogonal, scaling)
    items_axis = 0 if orthogonal == "samples" else 1
    labels = plain.labels_[order] if axis == items_axis else plain.labels_
    assert same_partition(model.labels_, labels)
    assert_allclose(model.reconstruction_err_, plain.reconstruction_err_, rtol=1e-9)
    if make is separated_items:  # the masses differ, so that the components keep their order
        components = plain.components_[:, order] if axis == 1 else plain.components_
        assert_array_equal(model.labels_, labels)
        assert_allclose(model.components_, components, rtol=ROUNDING, atol=ROUNDING * components.max())


# -- scale --------------------------------------------------------------------------------------------------


@pytest.mark.thinned(7)
@pytest.mark.parametrize("make", [separated_items, cloud_items])
@pytest.mark.parametrize("exponent", [-900, -3, 1, 40, 900])
def test_power_of_two_scale_changes_no_bit(orthogonal, scaling, make, exponent):
    X = oriented(make(scaling), orthogonal)
    plain = fit(X, orthogonal, scaling)
    model = fit(np.ldexp(X, exponent), orthogonal, scaling)
    assert_array_equal(model.labels_, plain.labels_)
    unit = exponent if (orthogonal, scaling) == ("samples", "none") else 0
    assert_array_equal(np.ldexp(model.components_, -unit), plain.components_)
    rest = exponent - unit
    assert_array_equal(np.ldexp(model.transform(np.ldexp(X, exponent)), -rest), plain.transform(X))
    assert_array_equal(np.ldexp(model.reconstruction_err_, -exponent), plain.reconstruction_err_)
    assert_array_equal(model.persistence_, plain.persistence_)


@pytest.mark.parametrize("exponent", [-90, 7, 90])
def test_power_of_two_scale_changes_no_bit_of_float32(orthogonal, scaling, exponent):
    X = oriented(separated_items(scaling), orthogonal).astype(np.float32)
    plain = fit(X, orthogonal, scaling)
    model = fit(np.ldexp(X, exponent), orthogonal, scaling)
    assert_array_equal(model.labels_, plain.labels_)
    unit = exponent if (orthogonal, scaling) == ("samples", "none") else 0
    assert_array_equal(np.ldexp(model.components_, -unit), plain.components_)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("factor", [1e-200, 1e200])
@pytest.mark.parametrize("make", [separated_items, cloud_items])
def test_any_scale_changes_only_rounding(orthogonal, scaling, make, factor):
    X = oriented(make(scaling), orthogonal)
    plain = fit(X, orthogonal, scaling)
    model = fit(X * factor, orthogonal, scaling)
    assert_array_equal(model.labels_, plain.labels_)
    unit = factor if (orthogonal, scaling) == ("samples", "none") else 1.0
    components = plain.components_ * unit
    assert_allclose(model.components_, components, rtol=1e-12, atol=1e-12 * components.max())
    assert_allclose(model.reconstruction_err_, plain.reconstruction_err_ * factor, rtol=1e-10)


# -- how X is stored ----------------------------------------------------------------------------------------


def unsorted(X):
    X = sparse.csr_array(X)
    rows = [np.arange(*bounds)[::-1] for bounds in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    order = np.concatenate(rows)
    return sparse.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)


def duplicated(X):
    X = sparse.csr_array(X)
    return sparse.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape)


def with_explicit_zeros(X):
    rows, columns = np.indices(X.shape)
    return sparse.coo_array((X.ravel(), (rows.ravel(), columns.ravel())), shape=X.shape).tocsr()


def with_int64_indices(X):
    X = sparse.csc_array(X)
    return sparse.csc_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


STORAGES = [
    sparse.csr_array,
    sparse.csr_matrix,
    sparse.csc_array,
    sparse.csc_matrix,
    sparse.coo_array,
    sparse.coo_matrix,
    sparse.bsr_array,
    sparse.bsr_matrix,
    unsorted,
    duplicated,
    with_explicit_zeros,
    with_int64_indices,
]


@pytest.mark.thinned(7)
@pytest.mark.parametrize("store", STORAGES)
def test_sparse_equals_dense(orthogonal, scaling, store):
    X = oriented(sparse_items(scaling), orthogonal)
    stored = store(X)
    dense, model = fit(X, orthogonal, scaling), fit(stored, orthogonal, scaling)
    assert_same_model(model, dense)
    assert_allclose(model.transform(stored), dense.transform(X), rtol=ROUNDING, atol=ROUNDING)
    assert_allclose(model.transform(X), model.transform(stored), rtol=ROUNDING, atol=ROUNDING)
    assert_allclose(model.score(stored), dense.score(X), rtol=1e-9)
    assert model.verify(stored).holds, str(model.verify(stored))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("n_components", [3, "auto"])
def test_sparse_equals_dense_with_weights(orthogonal, scaling, n_components):
    X = oriented(sparse_items(scaling), orthogonal)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    dense = fit(X, orthogonal, scaling, n_components, weight=weight, max_components=5)
    model = fit(sparse.csr_array(X), orthogonal, scaling, n_components, weight=weight, max_components=5)
    assert_same_model(model, dense)


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
}


def test_another_process_gives_the_same_bits():
    code = "import sys, numpy as np; from orthonmf import ONMF; X = np.random.default_rng(0).gamma(1.0, size=(40, 5)); "
    code += "sys.stdout.buffer.write(ONMF(3).fit(X).components_.tobytes())"
    once, again = (subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2))
    assert len(once) == 3 * 5 * 8
    assert once == again


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_in_memory_changes_no_bit(orthogonal, scaling, layout):
    X = oriented(separated_items(scaling), orthogonal)
    plain, model = fit(X, orthogonal, scaling), fit(LAYOUTS[layout](X), orthogonal, scaling)
    assert_array_equal(model.labels_, plain.labels_)
    assert_array_equal(model.components_, plain.components_)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_float32_agrees_with_float64(orthogonal, scaling, store):
    X = oriented(sparse_items(scaling), orthogonal)
    double = fit(store(X), orthogonal, scaling)
    single = fit(store(X.astype(np.float32)), orthogonal, scaling)
    assert single.components_.dtype == np.float32
    assert_array_equal(single.labels_, double.labels_)
    # Entries carry an error of 6e-8, and so do means and directions of them.
    assert_allclose(single.components_, double.components_, rtol=1e-4, atol=1e-6 * double.components_.max())
    assert_allclose(single.reconstruction_err_, double.reconstruction_err_, rtol=1e-4)
    assert single.certificate_.holds, str(single.certificate_)


# -- who computes -------------------------------------------------------------------------------------------


def cut_blocks(monkeypatch, size):
    """Blocks of ``size`` items, so that small data have many."""
    monkeypatch.setattr(base, "MIN_BLOCK", size)
    monkeypatch.setattr(base, "MAX_BLOCK", size)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("make", "store"), [(sparse_items, sparse.csr_array), (cloud_items, np.asarray)])
def test_result_equal_in_diff_n_threads(monkeypatch, orthogonal, scaling, make, store):
    cut_blocks(monkeypatch, 5)
    monkeypatch.setattr(threads, "n_cores", lambda: 8)
    X = store(oriented(make(scaling, n=40), orthogonal))
    n_components = 3 if make is sparse_items else 2
    one, *others = (fit(X, orthogonal, scaling, n_components, n_jobs=n_jobs) for n_jobs in (1, 2, 4, 8))
    for model in others:
        assert_array_equal(model.labels_, one.labels_)
        assert_array_equal(model.components_, one.components_)
        assert_array_equal(model.transform(X), one.transform(X))
        assert model.reconstruction_err_ == one.reconstruction_err_
        assert model.n_iter_ == one.n_iter_
        assert model.certificate_ == one.certificate_


def test_result_equal_in_diff_n_threads_of_real_blocks(scaling):
    X = separated_items(scaling, n=20_000)
    one, two = (fit(X, "samples", scaling, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_array_equal(two.labels_, one.labels_)
    assert_array_equal(two.components_, one.components_)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("size", [1, 7, 64])
def test_size_of_blocks_changes_only_rounding(monkeypatch, orthogonal, scaling, size):
    X = oriented(separated_items(scaling), orthogonal)
    whole = fit(X, orthogonal, scaling)
    cut_blocks(monkeypatch, size)
    assert_same_model(fit(X, orthogonal, scaling), whole)


def test_checking_in_blocks_changes_nothing(monkeypatch):
    X = separated_items("item")
    whole = fit(X, "samples", "item")
    monkeypatch.setattr(validation, "CHECK_ROWS", 7)
    assert_array_equal(fit(X, "samples", "item").components_, whole.components_)


# -- what is found ------------------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize("make", [separated_items, sparse_items, cloud_items])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_transform_of_the_training_data_reproduces_the_fit(orthogonal, scaling, make, store):
    X = store(oriented(make(scaling), orthogonal))
    model = fit(X, orthogonal, scaling)
    T = model.transform(X)
    assert_array_equal(T, ONMF(**model.get_params()).fit_transform(X))
    rest = (X.toarray() if sparse.issparse(X) else X) - model.inverse_transform(T)
    assert_allclose(np.linalg.norm(rest), model.reconstruction_err_, rtol=1e-10)
    if orthogonal == "samples":
        rows = np.arange(len(model.labels_))
        assert_array_equal(model.predict(X), model.labels_)
        assert_array_equal(T[rows, model.labels_], model.scale_)
        assert_array_equal(model.transform(X[:7]), T[:7])
    else:
        assert_array_equal(model.components_.argmax(axis=0), model.labels_)


@pytest.mark.thinned(7)
@pytest.mark.parametrize("seed", range(5))
def test_exact_data_are_recovered_up_to_permutation(orthogonal, scaling, seed):
    # Rows c_l, or θ c_l, with 4 directions c: the factorisation is unique up to the order of the components
    # and, where items have scales of their own, the length of each.
    item_scale = 2.0 if scaling == "item" else None
    data = make_onmf(80, 6, 4, sizes=(5, 3, 2, 1), item_scale=item_scale, random_state=seed)
    X = oriented(data.X, orthogonal)
    for n_components in (4, "auto"):
        model = fit(X, orthogonal, scaling, n_components)
        assert model.n_components_ == 4
        assert same_partition(model.labels_, data.labels)
        assert model.certificate_.relative_error <= 1e-12
        T = model.transform(X)
        found = model.components_ if orthogonal == "samples" else T.T
        if scaling == "none":
            found = found / np.sqrt(model.counts_)[:, None]
        first = [np.flatnonzero(model.labels_ == j)[0] for j in range(4)]
        true = data.centers[data.labels[first]]
        if scaling == "item":
            found = found / np.linalg.norm(found, axis=1, keepdims=True)
            true = true / np.linalg.norm(true, axis=1, keepdims=True)
        assert_allclose(found, true, rtol=1e-10)


# -- the certificate ----------------------------------------------------------------------------------------


@pytest.mark.thinned(7)
@pytest.mark.parametrize("make", [separated_items, sparse_items, cloud_items])
@pytest.mark.parametrize("n_components", [1, 3, "auto"])
def test_certificate_holds(orthogonal, scaling, make, n_components):
    X = oriented(make(scaling), orthogonal)
    model = fit(X, orthogonal, scaling, n_components, max_components=5)
    assert model.certificate_.holds, str(model.certificate_)
    assert model.verify(X) == model.certificate_


@pytest.mark.thinned(3)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_certificate_holds_for_many_components(orthogonal, scaling, dtype):
    X = oriented(cloud_items(scaling, n=120), orthogonal).astype(dtype)
    model = fit(X, orthogonal, scaling, 20)
    assert model.certificate_.holds, str(model.certificate_)


def turned(model):
    model.components_[0] = model.components_[0][::-1]


def stretched(model):
    model.components_ *= 1.01


def negative(model):
    model.components_[0, 0] = -model.components_[0].max()


def overlapping(model):
    model.components_ += model.components_[::-1] / 2


def replaced(model):
    model.components_[1] = model.components_[0]


def mislabelled(model):
    model.labels_ = model.labels_.copy()
    model.labels_[0] = (model.labels_[0] + 1) % 3


def shuffled(model):
    model.labels_ = model.labels_[::-1]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("tamper", [turned, stretched, negative, overlapping, replaced, mislabelled, shuffled])
@pytest.mark.parametrize("make", [separated_items, sparse_items])
def test_certificate_fails_for_a_model_that_was_tampered_with(orthogonal, scaling, make, tamper):
    X = oriented(make(scaling), orthogonal)
    model = fit(X, orthogonal, scaling)
    assert model.verify(X).holds
    tamper(model)
    assert not model.verify(X).holds


def test_certificate_fails_for_other_data(orthogonal, scaling):
    X = oriented(separated_items(scaling), orthogonal)
    model = fit(X, orthogonal, scaling)
    assert not model.verify(X[::-1, ::-1]).holds


def test_claims_that_fail_are_named():
    X = separated_items("item")
    model = fit(X, "samples", "item")
    mislabelled(model)
    certificate = model.verify(X)
    failed = [claim for claim, held in certificate.claims.items() if not held]
    assert "every item is in its nearest component" in failed
    assert all(f"[FAILS] {claim}" in str(certificate) for claim in failed)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("n", [30, 60])
@pytest.mark.parametrize("p", [4, 40])
def test_error_lies_above_the_lower_bound(orthogonal, scaling, n, p):
    # Eckart–Young by a full SVD; means leave one dimension fewer, about the mean of all items.
    items = cloud_items(scaling, n=n, p=p)
    model = fit(oriented(items, orthogonal), orthogonal, scaling, 3)
    values = np.linalg.svd(items - items.mean(axis=0) if scaling == "none" else items, compute_uv=False)
    expected = np.linalg.norm(values[2 if scaling == "none" else 3 :])
    assert_allclose(model.certificate_.lower_bound, expected, rtol=1e-10)
    assert expected <= model.reconstruction_err_
