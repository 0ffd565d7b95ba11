"""Alternations side by side: each is what it would be alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.dense import DenseEngine
from orthonmf.search.batch import alternate_each, at_once, far_apart
from orthonmf.search.partition import alternate


def build(X, scaling, weight=None):
    engine = DenseEngine(np.asarray(X, dtype=float), weight, team=ThreadTeam(1))
    return engine, REGISTRY["frobenius", scaling].of(engine)


@pytest.fixture(params=["item", "none"])
def scaling(request):
    return request.param


class TestAlternateEach:
    def test_by_hand(self):
        # 0, 1, 10, 11: from (0, 10) to means 0.5 and 10.5, cost 4 · 1/4. From (0, 1), 1 takes 10 and 11 with it,
        # then gives 1 back: the same. From (−50, 5), nothing is nearest to −50.
        engine, distortion = build([[0.0], [1.0], [10.0], [11.0]], "none")
        starts = np.stack([distortion.to_frame(np.array(start)) for start in ([[0.0], [10.0]], [[0.0], [1.0]], [[-50.0], [5.0]])])
        first, second, empty = alternate_each(engine, distortion, starts, np.inf)
        for part in (first, second):
            assert_array_equal(part.labels, [0, 0, 1, 1])
            assert_allclose(distortion.to_data(part.centers), [[0.5], [10.5]])
            assert_allclose(part.stats.cost, [0.5, 0.5])
            assert_array_equal(part.stats.sizes, [2, 2])
        assert empty is None

    @pytest.mark.parametrize(("n_items", "seed"), [(60, 0), (60, 1), (700, 0)])  # in one block and in several
    def test_each_is_what_it_is_alone(self, scaling, n_items, seed):
        rng = np.random.default_rng(seed)
        engine, distortion = build(rng.gamma(1.0, size=(n_items, 250 if n_items > 60 else 4)), scaling, rng.gamma(1.0, size=n_items))
        starts = np.stack(list(far_apart(engine, distortion, 5, 8, seed)))
        bound = float(np.median([part.cost for start in starts if (part := alternate(engine, distortion, start)) is not None]))
        for limit in (np.inf, bound):
            alone = [alternate(engine, distortion, start, bound=limit) for start in starts]
            for together, part in zip(alternate_each(engine, distortion, starts, limit), alone, strict=True):
                assert (together is None) == (part is None)
                if together is not None:
                    assert_array_equal(together.labels, part.labels)
                    assert_allclose(together.cost, part.cost, rtol=1e-10)  # sums in another order
                    assert_allclose(together.stats.sums, part.stats.sums, atol=1e-9 * np.abs(part.stats.sums).max())


class TestFarApart:
    def test_groups_far_away_are_all_drawn(self, scaling):
        # Six directions, a thousand times farther from each other than items of one: each is drawn once.
        X = 100 * np.eye(6)[np.arange(60) % 6] + np.random.default_rng(0).uniform(0, 0.1, (60, 6))
        engine, distortion = build(X, scaling)
        for start in far_apart(engine, distortion, 6, 20, 0):
            assert_array_equal(np.sort(distortion.to_data(start).argmax(axis=1)), np.arange(6))

    def test_weightless_items_are_not_drawn(self, scaling):
        X = np.random.default_rng(0).gamma(1.0, size=(30, 3))
        engine, distortion = build(X, scaling, (np.arange(30) < 4).astype(float))
        known = distortion.to_frame(X[:4] if scaling == "none" else X[:4] / np.linalg.norm(X[:4], axis=1, keepdims=True))
        for start in far_apart(engine, distortion, 4, 10, 0):
            assert_allclose(start[np.lexsort(start.T)], known[np.lexsort(known.T)], atol=1e-12)


def test_many_at_once_where_they_are_small():
    assert at_once(build(np.ones((100, 2)), "none")[0], 5) > 1
    assert at_once(build(np.ones((2000, 2)), "none")[0], 100) == 1


def test_a_fit_is_no_worse_than_a_hundred_restarts_where_one_start_is_not_enough():
    # Noise without structure: one annealing followed by swaps ended 1.5e-3 above the best restart.
    rng = np.random.default_rng(19)
    n_items, k, p = int(rng.integers(20, 301)), int(rng.integers(2, 13)), int(rng.integers(2, 21))
    X = rng.random((n_items, p))
    engine, distortion = build(X, "item")
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    starts = np.stack([distortion.to_frame(unit[np.random.default_rng(seed).permutation(n_items)[:k]]) for seed in range(100)])
    best = min(part.cost for part in alternate_each(engine, distortion, starts, np.inf) if part is not None)
    assert ONMF(k).fit(X).reconstruction_err_ ** 2 <= best * (1 + 1e-6)
