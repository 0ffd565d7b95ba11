"""Fits of counts by the Kullback–Leibler loss: against brute force, and the laws that every fit obeys."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import rel_entr

from orthonmf import ONMF
from orthonmf.exceptions import InvalidInputError

# Sums in another order differ by some hundred roundings.
ROUNDING = 1e-9


@pytest.fixture(params=["item", "none"])
def scaling(request):
    return request.param


@pytest.fixture(params=["samples", "features"])
def orthogonal(request):
    return request.param


def counts(seed, n=8, p=5, k=3, mean=3.0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(1.0, mean, (k, p))[rng.integers(k, size=n)]).astype(float)
    X[:, 0] += X.sum(axis=1) == 0
    return X


def parts(seed=0, n=90, p=12):
    """Counts of three clear components of different sizes, of which each lacks features."""
    rng = np.random.default_rng(seed)
    profile = np.kron(np.eye(3), np.ones(p // 3)) * 6 + 0.2
    profile[0, -1] = 0
    return rng.poisson(profile[np.sort(rng.choice(3, n, p=[0.5, 0.3, 0.2]))]).astype(float)


def part_cost(X, scaling, weight):
    """What items cost as one component, from the definition."""
    if scaling == "none":
        model = np.broadcast_to(weight @ X / weight.sum(), X.shape)
    else:
        model = np.outer(X.sum(axis=1), weight @ X / max(weight @ X.sum(axis=1), 1e-300))
    return float(weight @ (rel_entr(X, model) - X + model).sum(axis=1))


def cost(X, labels, scaling, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    return sum(part_cost(X[labels == j], scaling, weight[labels == j]) for j in np.unique(labels))


def partitions(n, k):
    """All labels in which a component is named when it first comes."""
    for labels in itertools.product(range(k), repeat=n - 1):
        labels = (0, *labels)
        if all(label <= max(labels[:i]) + 1 for i, label in enumerate(labels) if i) and max(labels) == k - 1:
            yield np.array(labels)


def fit(X, n_components=3, **parameters):
    weight = parameters.pop("weight", None)
    return ONMF(n_components, loss="kullback-leibler", **parameters).fit(X, sample_weight=weight)


def oriented(X, orthogonal):
    return X if orthogonal == "samples" else np.ascontiguousarray(X.T)


def test_by_hand():
    # Two profiles, (1, 3) / 4 and (1, 1) / 2, at several lengths: each sample is its sum times its profile.
    X = np.array([[1.0, 3.0], [2.0, 6.0], [5.0, 5.0], [3.0, 3.0], [1.0, 1.0]])
    model = fit(X, 2)
    assert_array_equal(model.labels_, [1, 1, 0, 0, 0])
    assert_allclose(model.components_, [[0.5, 0.5], [0.25, 0.75]], rtol=1e-12)
    assert_allclose(model.scale_, [4, 8, 10, 6, 2], rtol=1e-12)
    assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=1e-12)
    assert model.reconstruction_err_ < 1e-12
    assert model.certificate_.holds


class TestBruteForce:
    @pytest.mark.parametrize("seed", range(8))
    def test_free_components_are_the_best_of_all(self, scaling, seed):
        X = counts(seed)
        weight = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float) if seed % 2 else np.ones(len(X))
        best = min(cost(X, labels, scaling, weight) for labels in partitions(len(X), 3))
        model = fit(X, scaling=scaling, weight=weight)
        assert_allclose(model.reconstruction_err_, best, rtol=ROUNDING)
        assert_allclose(cost(X, model.labels_, scaling, weight), best, rtol=ROUNDING)

    @pytest.mark.parametrize("solver", ["dual", "cbf"])
    @pytest.mark.parametrize("seed", range(2))
    def test_bounded_components_are_the_best_of_all(self, scaling, solver, seed):
        X = counts(seed)
        best = min(cost(X, labels, scaling) for labels in partitions(len(X), 3) if np.bincount(labels).max() <= 3)
        model = fit(X, scaling=scaling, capacity=3, solver=solver)
        assert model.counts_.max() <= 3
        assert_allclose(model.reconstruction_err_, best, rtol=ROUNDING)
        assert model.verify(X).holds

    @pytest.mark.parametrize("seed", range(3))
    def test_the_lower_bound_is_one(self, scaling, seed):
        X = counts(seed, n=20, p=9)
        model = fit(X, scaling=scaling)
        values = np.linalg.svd(np.sqrt(X), compute_uv=False)
        assert_allclose(model.certificate_.lower_bound, np.sum(values[3:] ** 2), rtol=1e-9)
        assert model.certificate_.lower_bound <= model.reconstruction_err_

    def test_prices_and_flow_agree_on_more_items(self, scaling):
        X = parts()
        free, dual, flow = (fit(X, scaling=scaling, **bounds) for bounds in ({}, {"capacity": 35}, {"capacity": 35, "solver": "cbf"}))
        assert dual.counts_.max() <= 35 >= flow.counts_.max()
        assert dual.certificate_.holds
        assert free.reconstruction_err_ < dual.reconstruction_err_
        assert_allclose(dual.reconstruction_err_, flow.reconstruction_err_, rtol=1e-6)


class TestLaws:
    def test_weights_equal_repetition(self, orthogonal, scaling):
        X, rng = parts(1, n=60), np.random.default_rng(0)
        if orthogonal == "features":
            X = X.T
        weight = rng.integers(1, 4, len(X))
        weighted = fit(X, orthogonal=orthogonal, scaling=scaling, weight=weight.astype(float))
        repeated = fit(np.repeat(X, weight, axis=0), orthogonal=orthogonal, scaling=scaling)
        assert_allclose(weighted.reconstruction_err_, repeated.reconstruction_err_, rtol=ROUNDING)
        labels = repeated.labels_ if orthogonal == "features" else repeated.labels_[np.cumsum(weight) - 1]
        assert_array_equal(weighted.labels_, labels)

    def test_order_plays_no_part(self, orthogonal, scaling):
        X, rng = parts(2), np.random.default_rng(0)
        rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
        one = fit(oriented(X, orthogonal), orthogonal=orthogonal, scaling=scaling)
        other = fit(oriented(X[rows][:, columns], orthogonal), orthogonal=orthogonal, scaling=scaling)
        assert_array_equal(one.labels_[rows], other.labels_)
        assert_allclose(one.reconstruction_err_, other.reconstruction_err_, rtol=ROUNDING)

    @pytest.mark.parametrize("factor", [1e-6, 3.0, 2.0**40])
    def test_the_cost_grows_with_the_scale_of_x(self, orthogonal, scaling, factor):
        X = oriented(parts(3), orthogonal)
        one, other = (fit(each, orthogonal=orthogonal, scaling=scaling) for each in (X, factor * X))
        assert_array_equal(one.labels_, other.labels_)
        assert_allclose(other.reconstruction_err_, factor * one.reconstruction_err_, rtol=ROUNDING)
        assert_allclose(other.certificate_.lower_bound, factor * one.certificate_.lower_bound, rtol=1e-6)
        assert_allclose(other.score(factor * X), factor * one.score(X), rtol=ROUNDING)
        if orthogonal == "samples":
            assert_allclose(other.predict_proba(factor * X), one.predict_proba(X), atol=1e-6)

    @pytest.mark.parametrize("factor", [1e-3, 4.0])
    def test_the_temperatures_are_in_the_units_of_x(self, factor):
        X = parts(3)
        one, other = (ONMF("persistence", max_components=4, scaling="none", loss="kullback-leibler").fit(each) for each in (X, factor * X))
        assert_allclose(other.critical_betas_ * factor, one.critical_betas_, rtol=1e-3)
        first = 1 / np.linalg.eigvalsh(np.cov((X / np.sqrt(X.mean(axis=0))).T, bias=True))[-1]
        # A transition is located to a few per cent, and may come before its local value.
        assert one.critical_betas_[0] <= first * 1.03

    def test_dense_equals_sparse(self, orthogonal, scaling):
        X = oriented(parts(4), orthogonal)
        dense, sparse = (fit(each, orthogonal=orthogonal, scaling=scaling) for each in (X, sp.csr_array(X)))
        assert_array_equal(dense.labels_, sparse.labels_)
        assert_allclose(dense.components_, sparse.components_, rtol=ROUNDING, atol=1e-12)
        assert_allclose(dense.certificate_.lower_bound, sparse.certificate_.lower_bound, rtol=1e-6)
        assert sparse.verify(sp.csr_array(X)).holds

    def test_single_precision(self, orthogonal, scaling):
        X = oriented(parts(4), orthogonal)
        one, other = (fit(each, orthogonal=orthogonal, scaling=scaling) for each in (X, X.astype(np.float32)))
        assert other.components_.dtype == np.float32
        assert_array_equal(one.labels_, other.labels_)
        assert_allclose(one.reconstruction_err_, other.reconstruction_err_, rtol=1e-5)
        assert other.certificate_.holds

    def test_fit_and_what_follows_agree(self, orthogonal, scaling):
        X = oriented(parts(5), orthogonal)
        model = fit(X, orthogonal=orthogonal, scaling=scaling)
        assert_allclose(model.fit_transform(X), model.transform(X), rtol=1e-12)
        rest = model.inverse_transform(model.transform(X))
        expected = float((rel_entr(X, rest) - X + rest).sum())
        assert_allclose(model.reconstruction_err_, expected, rtol=1e-9)
        assert_allclose(model.score(X), -expected, rtol=1e-9)
        assert model.verify(X).holds
        if orthogonal == "samples":
            assert_array_equal(model.predict(X), model.labels_)
        else:
            assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-12)

    @pytest.mark.parametrize("orthogonal_", ["samples", "features"])
    def test_a_file_keeps_it(self, tmp_path, scaling, orthogonal_):
        X = oriented(parts(5), orthogonal_)
        model = fit(X, orthogonal=orthogonal_, scaling=scaling)
        model.save(tmp_path / "counts.onmf")
        other = ONMF.load(tmp_path / "counts.onmf")
        assert other.loss == "kullback-leibler"
        assert_array_equal(other.transform(X), model.transform(X))
        assert other.verify(X).holds

    def test_what_was_tampered_with_is_found(self):
        X = parts(5)
        model = fit(X)
        model.components_ = model.components_[::-1]
        assert not model.verify(X).holds


class TestZeros:
    def test_new_samples_with_what_no_component_has(self, scaling):
        X = parts(0)
        X[:, 5] = 0
        model = fit(X, scaling=scaling)
        new = X[:4].copy()
        new[:, 5] = 1
        assert_array_equal(model.predict(new), model.labels_[:4])
        assert np.isfinite(model.score(new))
        assert np.isfinite(model.predict_proba(new)).all()

    def test_components_lack_what_their_items_lack(self):
        X = parts(0)
        model = fit(X)
        own = np.array([X[model.labels_ == j].sum(axis=0) for j in range(3)])
        assert_array_equal(model.components_ == 0, own == 0)
        assert (own == 0).any()

    def test_samples_that_are_zero(self, scaling):
        X = parts(0)
        X[7] = 0
        model = fit(X, scaling=scaling)
        assert np.isfinite(model.reconstruction_err_)
        assert model.verify(X).holds

    def test_all_zero(self, scaling):
        with pytest.warns(UserWarning):  # noqa: PT030  (one component where two are asked for)
            model = fit(np.zeros((5, 3)), 2, scaling=scaling)
        assert model.reconstruction_err_ == 0

    def test_identity(self, scaling):
        # Every item has one feature of its own: as far from each other as items can be.
        model = fit(3 * np.eye(6), 3, scaling=scaling)
        best = min(cost(3 * np.eye(6), labels, scaling) for labels in partitions(6, 3))
        assert_allclose(model.reconstruction_err_, best, rtol=ROUNDING)


class TestProbabilities:
    def test_longer_samples_are_surer(self):
        rng = np.random.default_rng(0)
        profile = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
        X = rng.poisson(20 * profile[np.arange(200) % 2]).astype(float)
        model = fit(X, 2)
        short, long = model.predict_proba([[5.0, 3.0, 2.0], [50.0, 30.0, 20.0]])
        assert 0.5 < short.max() < long.max() <= 1

    def test_the_dispersion_of_poisson_counts_is_one(self, scaling):
        rng = np.random.default_rng(1)
        X = rng.poisson(rng.gamma(2.0, 10.0, (3, 20))[np.arange(600) % 3]).astype(float)
        model = fit(X, scaling=scaling)
        assert_allclose(2 * model._mixture.deviation**2, 1, rtol=0.05)

    def test_they_are_those_of_the_mixture_that_made_the_counts(self):
        # Two overlapping profiles, one three times as frequent: Bayes' rule with the true means.
        rng = np.random.default_rng(2)
        means, share = np.array([[4.0, 3.0, 3.0], [3.0, 3.0, 5.0]]) * 6, np.array([0.75, 0.25])
        X = rng.poisson(means[rng.choice(2, 6000, p=share)]).astype(float)
        model = fit(X, 2, scaling="none")
        found = model.predict_proba(X)
        logits = X @ np.log(means).T - means.sum(axis=1) + np.log(share)
        exact = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
        order = [0, 1] if np.corrcoef(found[:, 0], exact[:, 0])[0, 1] > 0 else [1, 0]
        assert np.abs(found[:, order] - exact).mean() < 0.05


def test_counts_are_parted_where_squares_are_not():
    # One feature with large counts that vary a lot decides the squares; the others tell the parts.
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 3
    X = np.column_stack([rng.poisson(4000, 120), rng.poisson(np.eye(3)[labels] * 12 + 3)]).astype(float)

    def agreement(model):
        table = np.zeros((3, 3))
        np.add.at(table, (labels, model.labels_), 1)
        return table.max(axis=0).sum() / len(labels)

    assert agreement(fit(X, scaling="none")) > 0.95 > 0.7 > agreement(ONMF(3, scaling="none").fit(X))


def test_an_unknown_loss_is_refused_by_name():
    with pytest.raises(InvalidInputError, match="loss='poisson'"):
        ONMF(2, loss="poisson").fit(np.ones((3, 2)))


def test_float32_verifies_itself():
    rng = np.random.default_rng(0)
    X = np.repeat([[10.0, 20, 30, 40], [13, 17, 33, 37]], 20, axis=0) * (1 + 2e-3 * rng.random((40, 4))) * 1000
    X = np.round(X).astype(np.float32)
    certificate = ONMF(2, loss="kullback-leibler").fit(X).verify(X)
    assert certificate.holds, certificate.contradiction


def test_items_without_weight_under_bounds():
    model = ONMF(2, loss="kullback-leibler", capacity=2).fit([[1, 0], [0, 2], [3, 0]], sample_weight=[1, 0, 1])
    assert model.counts_.max() <= 2
    assert model.certificate_.holds
