"""Fewer items that stand for all: merged items, and samples that see what weighs."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.dense import DenseEngine
from orthonmf.search import refine, stages
from orthonmf.search.budget import BUDGET
from orthonmf.search.partition import centered
from orthonmf.search.sampling import coreset, merged


@pytest.fixture(params=["item", "none"])
def scaling(request):
    return request.param


def build(X, weight=None):
    return DenseEngine(np.asarray(X), weight, team=ThreadTeam(1))


def rows_of(engine):
    whole = slice(0, engine.n_items)
    return engine.rows(whole).framed(None, None, np.zeros(engine.n_dims)).take(np.arange(engine.n_items))


def far_groups(n_main, n_rare, n_groups=5, seed=0):
    """One large group and small ones, 400 standard deviations from each other."""
    centers = np.vstack([np.full(8, 500.0)] + [500.0 + 400 * np.eye(8)[j] for j in range(n_groups)])
    labels = np.r_[np.zeros(n_main, int), np.repeat(range(1, n_groups + 1), n_rare)]
    return centers[labels] + np.random.default_rng(seed).standard_normal((len(labels), 8)), labels


class TestMerged:
    def test_by_hand(self):
        # 3, 1, 3, 2 with weights 1, 1, 5, 0: distinct items of any weight are 1 and 3, which weigh 1 and 6
        engine, index = merged(build([[3.0], [1.0], [3.0], [2.0]], np.array([1.0, 1.0, 5.0, 0.0])))
        assert_array_equal(rows_of(engine), [[1], [3]])
        assert_array_equal(engine.weight, [1, 6])
        assert_array_equal(index, [1, 0, 1, -1])

    def test_proportional_items_stay_apart(self):
        assert merged(build([[1.0, 2.0], [2.0, 4.0]]))[0].n_items == 2

    @pytest.mark.parametrize("seed", range(3))
    def test_index_leads_back(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, size=(40, 2)).astype(float)
        engine, index = merged(build(X))
        assert_array_equal(rows_of(engine)[index], X)
        assert engine.n_items == len(np.unique(X, axis=0))
        assert engine.weight.sum() == 40

    def test_float32_items_keep_their_roundings(self):
        engine = merged(build(np.ones((2, 2), dtype=np.float32)))[0]
        assert engine.dtype == np.float64
        assert engine.given_dtype == np.float32


class TestLaws:
    """What merging is for: the same computation, bit for bit."""

    @pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
    def test_weighted_vs_repeated(self, seed, scaling):
        rng = np.random.default_rng(seed)
        X = rng.gamma(1.0, size=(int(rng.integers(25, 90)), 4))
        weight = rng.integers(0, 4, size=len(X))
        k = int(rng.integers(3, 12))
        weighted = ONMF(k, scaling=scaling).fit(X, sample_weight=weight)
        repeated = ONMF(k, scaling=scaling).fit(np.repeat(X, weight, axis=0))
        assert_array_equal(weighted.components_, repeated.components_)
        assert_array_equal(np.repeat(weighted.labels_, weight), repeated.labels_)

    @pytest.mark.thinned(3)
    @pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
    def test_order_of_rows(self, seed, scaling):
        rng = np.random.default_rng(seed)
        X = rng.gamma(1.0, size=(int(rng.integers(25, 150)), 4))
        order, k = rng.permutation(len(X)), int(rng.integers(3, 12))
        model, other = (ONMF(k, scaling=scaling).fit(rows) for rows in (X, X[order]))
        # Components of equal mass are listed in the order of their first items.
        rank, other_rank = (np.lexsort(m.components_.T) for m in (model, other))
        assert_array_equal(model.components_[rank], other.components_[other_rank])
        assert_array_equal(np.argsort(rank)[model.labels_[order]], np.argsort(other_rank)[other.labels_])


class TestCoreset:
    def test_small_engines_are_their_own(self, scaling):
        engine = build(np.random.default_rng(0).gamma(1.0, size=(20, 3)))
        assert coreset(engine, REGISTRY["frobenius", scaling].of(engine), 20, 0) is engine

    def test_sums_are_those_of_all_on_average(self, scaling):
        rng = np.random.default_rng(0)
        X, weight = rng.lognormal(0, 1.5, (3000, 3)), rng.gamma(1.0, size=3000)
        engine = build(X, weight)
        distortion = REGISTRY["frobenius", scaling].of(engine)
        draws = [coreset(engine, distortion, 300, seed) for seed in range(40)]
        squares = [draw.weight @ np.square(rows_of(draw)) for draw in draws]
        # Forty draws of 300 with chances in proportion to what they add: a standard error below one in a hundred.
        assert_allclose(np.mean([draw.n_items for draw in draws]), 300, rtol=0.03)
        assert_allclose(np.mean([draw.weight.sum() for draw in draws]), weight.sum(), rtol=0.05)
        assert_allclose(np.mean(squares, axis=0), weight @ np.square(X), rtol=0.05)

    @pytest.mark.parametrize("seed", range(3))
    def test_small_groups_are_seen(self, seed):
        X, labels = far_groups(30_000, 8)
        engine = build(np.column_stack([X, labels]))  # the label is a ninth dimension, so that it can be read back
        found = rows_of(coreset(engine, REGISTRY["frobenius", "none"].of(engine), 512, seed))[:, -1]
        assert (np.bincount(found.astype(int), minlength=6)[1:] >= 4).all()

    def test_groups_that_components_hold_stay_in_the_sample(self):
        # About its own centre a group costs little; it is drawn for its part of what its component weighs.
        X, labels = far_groups(30_000, 8)
        engine = build(np.column_stack([X, labels]))
        distortion = REGISTRY["frobenius", "none"].of(engine)
        centers = np.vstack([np.append(X[labels == j].mean(axis=0), j) for j in range(6)])
        found = rows_of(coreset(engine, distortion, 512, 0, distortion.to_frame(centers)))[:, -1]
        assert_array_equal(np.bincount(found.astype(int), minlength=6)[1:], 8)  # 512 / 12 draws each: all of them


def test_small_groups_far_away_get_components():
    X, labels = far_groups(200_000, 50)
    model = ONMF(6, scaling="none").fit(X)
    assert_array_equal(model.counts_, np.bincount(labels))
    assert_allclose(model.reconstruction_err_**2, 8 * len(X), rtol=0.01)  # eight dimensions of variance one


def test_small_groups_far_away_are_counted():
    X, _ = far_groups(100_000, 40)
    assert ONMF(scaling="none").fit(X).n_components_ == 6


@pytest.mark.parametrize("seed", [2])
def test_samples_that_grow_lead_below_five_runs_of_k_means(monkeypatch, seed):
    """With the sizes of samples divided by 32; on the smallest sample alone it ends two per cent above."""
    few = replace(BUDGET, search_items=tuple(size // 32 for size in BUDGET.search_items), many_items=BUDGET.many_items // 32)
    for stage in (stages, refine):
        monkeypatch.setattr(stage, "BUDGET", few)
    X = np.random.default_rng(seed).gamma(1.0, size=(3000, 8))
    theirs = min(KMeans(20, n_init=1, random_state=state).fit(X).inertia_ for state in range(5))
    assert ONMF(20, scaling="none").fit(X).reconstruction_err_ ** 2 <= theirs


def test_gains_on_a_sample_are_larger_than_its_noise(scaling):
    X = np.random.default_rng(0).gamma(1.0, size=(400, 3))
    engine = build(X)
    distortion = REGISTRY["frobenius", scaling].of(engine)
    start = centered(engine, distortion, np.arange(400) % 8, np.repeat(distortion.origin, 8, 0))
    found = list(refine.gains(engine, distortion, start, BUDGET.sample_gain))
    assert found[0] is start
    assert len(found) > 3
    assert all(new.cost < old.cost * (1 - BUDGET.sample_gain) for old, new in itertools.pairwise(found))
