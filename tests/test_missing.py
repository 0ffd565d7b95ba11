"""Fits where numbers are missing: against brute force, and the laws that every fit obeys."""

import pickle
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import check_estimator

from orthonmf import ONMF, sources
from orthonmf.datasets import make_onmf
from orthonmf.distortion import PARTIAL
from orthonmf.exceptions import InvalidInputError
from orthonmf.search.partition import all_known

from .distortion.test_partial import build, framed, partly
from .test_counts import partitions

# Sums in another order differ by some hundred roundings.
ROUNDING = 1e-9


@pytest.fixture(params=sorted(PARTIAL), ids=" ".join)
def named(request):
    return request.param


@pytest.fixture(params=["samples", "features"])
def orthogonal(request):
    return request.param


def fit(X, named, n_components=3, *, weight=None, **parameters):
    model = ONMF(n_components, loss=named[0], scaling=named[1], missing="ignore", **parameters)
    return model.fit(X, sample_weight=weight)


def parts(named, *, share=0.2, n=60, seed=0):
    """Items of three clear components, of which some numbers are missing; and the exact ones."""
    made = make_onmf(n, 12, 3, noise=0.0, sizes=(3, 2, 1), item_scale=30.0 if named[1] == "item" else None, random_state=seed)
    rng = np.random.default_rng(seed)
    exact = 5 * made.X + 1e-3
    X = rng.poisson(10 * exact) / 10.0 if named[0] != "frobenius" else np.abs(exact + 0.05 * rng.standard_normal(exact.shape))
    hole = rng.random(X.shape) < share
    hole[np.arange(n), np.arange(n) % 12] = False
    return np.where(hole, np.nan, X), exact, made.labels


def oriented(X, orthogonal):
    return X if orthogonal == "samples" else np.ascontiguousarray(X.T)


def completed(model, X):
    return model.inverse_transform(model.transform(X))


def test_by_hand():
    # Lines (1, 2) and (3, 1): what is missing is what its line says.
    X = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 1.0], [np.nan, 2.0], [2.0, 4.0], [6.0, 2.0]])
    model = ONMF(2, missing="ignore", init=[0, 0, 1, 1, 0, 1]).fit(X)
    assert_allclose(model.reconstruction_err_, 0, atol=1e-7)
    found = completed(model, X)
    assert_allclose(found[~np.isnan(X)], X[~np.isnan(X)], atol=1e-7)
    assert found[1, 1] in (pytest.approx(4), pytest.approx(2 / 3))
    assert model.certificate_.lower_bound is None
    assert model.verify(X).holds


@pytest.mark.parametrize("capacity", [None, 3])
@pytest.mark.parametrize("seed", range(3))
def test_components_are_the_best_of_all(named, seed, capacity):
    X = partly(seed, n=7, p=5, share=0.2)
    engine = build(X)
    distortion, items = framed(engine, named)
    known = all_known(engine, distortion)

    @cache
    def least(mine):
        chosen = list(mine)
        return distortion.least_cost(known[chosen], items.weight[chosen])

    def cost(mine):
        return least(tuple(np.flatnonzero(mine)))

    allowed = (labels for labels in partitions(7, 3) if capacity is None or np.bincount(labels).max() <= capacity)
    best = min(sum(cost(labels == j) for j in range(3)) for labels in allowed)
    model = fit(X, named, capacity=capacity)
    # Centres are at rest where a step gains less than 1e-11 of the cost, and steps may gain ever less.
    assert_allclose(model.reconstruction_err_**distortion.power, best, rtol=1e-4, atol=1e-12)
    assert capacity is None or model.counts_.max() <= capacity


def test_nothing_missing_changes_nothing(named, orthogonal):
    X = oriented(parts(named, share=0.0)[0], orthogonal)
    found, expected = fit(X, named, orthogonal=orthogonal), ONMF(3, loss=named[0], scaling=named[1], orthogonal=orthogonal).fit(X)
    assert_array_equal(found.labels_, expected.labels_)
    assert_allclose(found.components_, expected.components_, rtol=1e-6, atol=1e-9)
    assert_allclose(found.reconstruction_err_, expected.reconstruction_err_, rtol=ROUNDING)
    assert_allclose(found.transform(X), expected.transform(X), rtol=1e-6, atol=1e-9)
    assert_allclose(found.score(X), expected.score(X), rtol=1e-6)


def test_missing_numbers_are_found_again(named, orthogonal):
    X, exact, labels = parts(named)
    given = oriented(X, orthogonal)
    model = fit(given, named, orthogonal=orthogonal)
    assert len(set(zip(model.labels_.tolist(), labels.tolist(), strict=True))) == 3
    found, hole = oriented(completed(model, given), orthogonal), np.isnan(X)
    assert np.isfinite(found).all()
    away = np.square(found - exact)
    known = np.square(X - exact)[~hole].mean()
    assert away[hole].mean() < known  # they are means of numbers as far off as that
    verified = model.verify(given)
    assert verified.holds
    assert verified.lower_bound is None


@pytest.mark.parametrize("n_components", [3, "persistence", "auto"])
def test_the_number_is_found(named, n_components):
    X, _, _ = parts(named, n=120)
    assert fit(X, named, n_components, max_components=6).n_components_ == 3


def test_nothing_stands_out_of_noise(named):
    X = np.random.default_rng(0).poisson(4.0, (120, 8)) + 1.0
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    with pytest.warns(UserWarning, match="Nothing stands out"):
        assert fit(X, named, "auto", max_components=5, refine=False).n_components_ == 1


@pytest.mark.parametrize("seed", range(2))
def test_what_ends_at_once_is_where_a_search_ends(named, seed, monkeypatch, capsys):
    X = parts(named, seed=seed)[0]
    model = fit(X, named, verbose=1)
    assert "a search of 60 items would end where it begins" in capsys.readouterr().err
    assert "No other partition" not in model.status_
    monkeypatch.setattr("orthonmf.search.factorize.best_at_once", lambda engine, request: None)
    searched = fit(X, named)
    assert_array_equal(model.labels_, searched.labels_)
    assert_allclose(model.components_, searched.components_, atol=1e-6)  # where alternation comes to rest


def test_weighted_vs_repeated(named):
    X, _, _ = parts(named)
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted, repeated = fit(X, named, weight=weight), fit(X.repeat(weight, axis=0), named)
    assert_array_equal(weighted.labels_.repeat(weight), repeated.labels_)
    assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-9)
    assert_allclose(weighted.reconstruction_err_, repeated.reconstruction_err_, rtol=ROUNDING)


def test_weights_of_samples_where_features_are_parted(named):
    X, _, _ = parts(named)
    weight = np.random.default_rng(1).integers(1, 4, X.shape[1])
    weighted = fit(X.T, named, weight=weight, orthogonal="features")
    repeated = fit(X.T.repeat(weight, axis=0), named, orthogonal="features")
    assert_array_equal(weighted.labels_, repeated.labels_)
    assert_allclose(weighted.reconstruction_err_, repeated.reconstruction_err_, rtol=ROUNDING)
    assert weighted.verify(X.T, sample_weight=weight).holds


@pytest.mark.parametrize("factor", [2.0**-300, 2.0**300])
def test_units_change_no_bit(named, factor):
    X, _, _ = parts(named)
    plain, scaled = fit(X, named), fit(X * factor, named)
    assert_array_equal(scaled.labels_, plain.labels_)
    power = PARTIAL[named].power
    assert scaled.reconstruction_err_ == plain.reconstruction_err_ * factor if power == 2 else True
    assert_array_equal(completed(scaled, X * factor), completed(plain, X) * factor)


def test_order_of_the_rows_changes_only_rounding(named):
    X, _, _ = parts(named)
    order = np.random.default_rng(0).permutation(len(X))
    plain, other = fit(X, named), fit(X[order], named)
    assert_array_equal(other.labels_, plain.labels_[order])
    assert_allclose(other.components_, plain.components_, rtol=1e-6, atol=1e-9)


def test_threads_and_float32(named):
    X, _, _ = parts(named)
    plain = fit(X, named)
    threads = fit(X, named, n_jobs=2)
    assert_array_equal(threads.components_, plain.components_)
    single = fit(X.astype(np.float32), named)
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    assert_array_equal(single.labels_, plain.labels_)
    assert single.verify(X.astype(np.float32)).holds


def test_bounds_hold(named, orthogonal):
    X = oriented(parts(named)[0], orthogonal)
    model = fit(X, named, orthogonal=orthogonal, capacity=24, min_size=12)
    assert model.counts_.max() <= 24
    assert model.counts_.min() >= 12
    assert model.verify(X).holds
    if orthogonal == "samples":
        assert np.bincount(model.assign(X, capacity=20)).max() <= 20


def test_a_model_is_what_it_was_after_a_journey(named, tmp_path):
    X, _, _ = parts(named)
    model = fit(X, named)
    model.save(tmp_path / "model.onmf")
    for other in (ONMF.load(tmp_path / "model.onmf"), pickle.loads(pickle.dumps(model))):
        assert other.missing == "ignore"
        assert_array_equal(other.transform(X), model.transform(X))
        assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        assert other.verify(X).holds
    changed = X.copy()
    changed[tuple(np.argwhere(np.isnan(X))[0])] = 1.0
    assert not model.verify(changed).holds


def test_methods_agree(named):
    X, _, _ = parts(named)
    model = fit(X, named)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.fit_transform(X), model.transform(X))
    assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-12)
    assert_array_equal(model.predict_proba(X).argmax(axis=1), model.labels_)
    part = ONMF(3, loss=named[0], scaling=named[1], missing="ignore").fit(X)
    residual = (completed(part, X) - X)[~np.isnan(X)]
    if named[0] == "frobenius":
        assert_allclose(model.reconstruction_err_, np.linalg.norm(residual), rtol=ROUNDING)
    assert_allclose(model.score(X), -model.reconstruction_err_, rtol=ROUNDING)


def test_a_start_is_refined(named):
    X, _, labels = parts(named)
    free = fit(X, named)
    assert fit(X, named, init=labels).reconstruction_err_ <= free.reconstruction_err_ * (1 + ROUNDING)
    assert fit(X, named, init=free).reconstruction_err_ <= free.reconstruction_err_ * (1 + ROUNDING)


class TestRefusals:
    def test_the_default_names_the_option(self):
        with pytest.raises(InvalidInputError, match=r"NaN at row 0, column 1.*missing='ignore'"):
            ONMF(1).fit([[1.0, np.nan]])

    @pytest.mark.parametrize(
        ("parameters", "complaint"),
        [
            ({"solver": "cbf", "capacity": 2}, "missing='ignore' use solver='dual'"),
            ({"engine": "sparse"}, "reads no missing numbers"),
        ],
    )
    def test_what_knows_nothing_of_missing_numbers(self, parameters, complaint):
        with pytest.raises(InvalidInputError, match=complaint):
            ONMF(1, missing="ignore", **parameters).fit([[1.0, np.nan], [2.0, 3.0]])

    @pytest.mark.parametrize(
        ("X", "complaint"),
        [
            ([[1.0, np.nan], [np.nan, np.nan]], "Nothing is there of row 1"),
            ([[1.0, np.nan], [2.0, np.nan]], "Nothing is there of column 1"),
            ([[1.0, np.inf], [2.0, np.nan]], "infinity at row 0, column 1"),
            ([[1.0, np.nan], [-2.0, 1.0]], "-2.0 at row 1, column 0"),
            (sp.csr_array([[1.0, 2.0]]), "what a sparse matrix does not store is 0"),
        ],
    )
    def test_numbers_that_cannot_be(self, X, complaint):
        with pytest.raises(InvalidInputError, match=complaint):
            ONMF(1, missing="ignore").fit(X)

    def test_chunks_and_matrices_on_disk_that_are_large(self, monkeypatch, tmp_path):
        X = np.where(np.eye(6) > 0, np.nan, 1.0)
        np.save(tmp_path / "x.npy", X)
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
        assert_array_equal(ONMF(1, missing="ignore").fit(mapped).labels_, np.zeros(6))
        assert_array_equal(ONMF(1, missing="ignore").fit(tmp_path / "x.npy").labels_, np.zeros(6))
        monkeypatch.setattr("orthonmf.estimator.FEW_BYTES", 10)
        with pytest.raises(InvalidInputError, match=r"lies on disk; .*expected an array in memory, orthonmf.sources.stored\(X\).loaded"):
            ONMF(1, missing="ignore").fit(tmp_path / "x.npy")
        assert_array_equal(ONMF(1, missing="ignore").fit(sources.stored(tmp_path / "x.npy").loaded()).labels_, np.zeros(6))
        with pytest.raises(InvalidInputError, match=r"lies with a cluster; .*expected an array in memory, X.compute\(\)"):
            ONMF(1, missing="ignore").fit(pytest.importorskip("dask.array").from_array(X))

    def test_an_unknown_word(self):
        with pytest.raises(InvalidInputError, match="missing='skip' is not known; expected one of 'error', 'ignore'"):
            ONMF(1, missing="skip").fit([[1.0]])

    def test_new_samples_may_lack_columns_but_not_everything(self):
        model = ONMF(1, missing="ignore").fit([[1.0, 2.0], [np.nan, 4.0]])
        assert_allclose(completed(model, [[3.0, np.nan]]), [[3.0, 6.0]], rtol=1e-6)
        with pytest.raises(InvalidInputError, match="Nothing is there of row 0"):
            model.transform([[np.nan, np.nan]])


@pytest.mark.long
def test_scikit_learn_checks():
    check_estimator(ONMF(missing="ignore"), on_skip=None)
