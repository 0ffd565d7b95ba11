"""Dense and sparse engines are one engine: the same items, sums and keys as a plain formula on the matrix."""

import threading
import time
from dataclasses import dataclass
from functools import reduce as fold
from operator import add

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import rel_entr
from threadpoolctl import threadpool_info

from orthonmf.distortion import REGISTRY
from orthonmf.engines import REGISTRY as ENGINES
from orthonmf.engines import ThreadTeam, base, engine_class, threads
from orthonmf.engines.base import MAX_BLOCK, block_weight, in_blocks, in_chunks, median, reweighted, weighted_mean
from orthonmf.engines.dense import DenseEngine
from orthonmf.engines.sparse import SparseEngine
from orthonmf.engines.threads import TimeLimitReached
from orthonmf.exceptions import IntegrityError
from orthonmf.passes.base import INDEX, Count, Found
from orthonmf.passes.hard import Costs
from orthonmf.passes.raw import Energy, Keys, Total
from orthonmf.search.partition import item_points
from orthonmf.search.refine import equal_items

ROUNDING = {np.float64: 1e-13, np.float32: 1e-5}  # sums of some hundred terms of size one
KINDS = tuple(name for name in ENGINES if name not in ("dask", "torch", "torch-sparse"))  # whose rows are arrays of this process


@dataclass(frozen=True)
class Liar:
    """A pass that counts its first item more or less often than once."""

    lie: int
    reads = (INDEX,)

    def __call__(self, items, columns):
        return Found(Count(len(items.rows) + self.lie * (columns[INDEX][0] == 0)))


@dataclass(frozen=True)
class Seen:
    """A pass that shows what it is given."""

    reads = ()

    def __call__(self, items, columns):
        rows = items.rows.take(np.arange(len(items)))
        return Found(Count(len(items)), {"rows": rows, "along": items.along, "sq": items.sq, "weight": items.weight})


def build(kind, X, weight=None, *, shift=0, team=None):
    """An engine of either kind on the rows of a dense array."""
    matrix = sp.csr_array(np.asarray(X)) if engine_class(kind).reads_sparse else np.asarray(X)
    return engine_class(kind).of(matrix, weight, None, shift, team or ThreadTeam(1))


def whole(engine):
    """All items as one block."""
    return engine.rows(slice(0, engine.n_items))


def data(seed, n=70, p=9, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.gamma(1.0, size=(n, p)) * (rng.random((n, p)) < 0.6)).astype(dtype)
    X[3] = 0
    return X, rng.gamma(1.0, size=n)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


class TestByHand:
    X = np.array([[1.0, 0.0], [3.0, 4.0]])

    def test_sums(self, kind):
        raw = whole(build(kind, self.X))
        assert_array_equal(raw.sqnorms(), [1, 25])
        assert_array_equal(raw.project(np.array([2.0, 1.0])), [2, 10])
        assert_array_equal(raw.total(np.array([1.0, 3.0])), [10, 12])
        assert_array_equal(raw.gram(np.array([1.0, 4.0]), None), [[37, 48], [48, 64]])
        # about (1, 0) the first item vanishes and the second is (2, 4)
        assert_array_equal(raw.gram(np.array([1.0, 4.0]), np.array([1.0, 0.0])), [[16, 32], [32, 64]])
        assert_array_equal(build(kind, self.X, np.array([1.0, 4.0])).outer(None), [[1, 6], [6, 100]])
        assert_array_equal(raw.inner(np.array([1, 0]), np.array([[2.0, 1.0], [5.0, 7.0]])), [5, 10])

    def test_weighted_mean(self, kind):
        assert_array_equal(weighted_mean(build(kind, self.X, np.array([1.0, 3.0]))), [2.5, 3])

    def test_a_mean_is_found_once_and_counted_each_time(self, kind, monkeypatch):
        engine = build(kind, self.X, np.array([1.0, 3.0]))
        assert_array_equal(weighted_mean(engine), [2.5, 3])
        assert_array_equal(weighted_mean(reweighted(engine, np.array([1.0, 1.0]))), [2, 2])
        monkeypatch.setattr(type(engine), "run", None)
        assert_array_equal(weighted_mean(engine), [2.5, 3])
        assert engine.passes == 2
        for other in (in_blocks(engine, 1), reweighted(engine, None), in_chunks(engine, np.array([0, 1, 2]))):
            assert other.seen == {}

    def test_frame(self, kind):
        # 2 (1, 0) − 1 (0, 1) = (2, −1) and ½ (3, 4) − 2 (0, 1) = (1.5, 0)
        rows = whole(build(kind, self.X)).framed(np.array([2.0, 0.5]), np.array([1.0, 2.0]), np.array([0.0, 1.0]))
        assert_array_equal(rows.take(np.array([0, 1])), [[2, -1], [1.5, 0]])
        assert_array_equal(rows.sqnorms(), [5, 2.25])
        assert_array_equal(rows.dot(np.array([[1.0, 1.0]])), [[1, 1.5]])
        assert_array_equal(rows.tdot(np.array([[1.0, 2.0]])), [[5, -1]])

    def test_residual(self, kind):
        # (1, 0) − 2 (0, 1) = (1, −2) and (3, 4) − 1 (3, 3) = (0, 1)
        components = np.array([[3.0, 3.0], [0.0, 1.0]])
        found = whole(build(kind, self.X)).residual_sq(np.array([2.0, 1.0]), np.array([1, 0]), components)
        assert_array_equal(found, [5, 1])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
class TestPlainFormula:
    def test_raw_rows(self, kind, dtype, seed):
        X, weight = data(seed, dtype=dtype)
        rng = np.random.default_rng(seed)
        raw, exact = whole(build(kind, X, weight)), X.astype(np.float64)
        ref = rng.random(X.shape[1])
        assert len(raw) == len(X)
        assert_allclose(raw.sqnorms(), np.sum(exact**2, axis=1), rtol=1e-13)
        assert_allclose(raw.project(ref), exact @ ref, rtol=ROUNDING[dtype], atol=ROUNDING[dtype])
        assert_allclose(raw.total(weight), weight @ exact, rtol=1e-13)

    @pytest.mark.parametrize("about", [None, 1.0])
    def test_gram_and_outer(self, kind, dtype, seed, about):
        X, weight = data(seed, dtype=dtype)
        raw, exact = whole(build(kind, X, weight)), X.astype(np.float64)
        ref = None if about is None else about * np.random.default_rng(seed).random(X.shape[1])
        rest = np.sqrt(weight)[:, None] * (exact - (0 if ref is None else ref))
        assert_allclose(raw.gram(weight, ref), rest.T @ rest, rtol=1e-12, atol=1e-12)
        assert_allclose(build(kind, X, weight).outer(ref), rest @ rest.T, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("plain", [True, False])
    def test_framed_rows(self, kind, dtype, seed, plain):
        X, _ = data(seed, dtype=dtype)
        rng = np.random.default_rng(seed)
        ref, vectors, weights = (
            rng.random(X.shape[1]),
            rng.normal(size=(4, X.shape[1])),
            rng.random((4, len(X))),
        )
        factor, along = (None, None) if plain else rng.random((2, len(X)))
        rows = whole(build(kind, X)).framed(factor, along, ref)
        framed = X.astype(np.float64) - ref if plain else factor[:, None] * X - np.multiply.outer(along, ref)
        near = {"rtol": ROUNDING[dtype], "atol": 30 * ROUNDING[dtype]}
        assert_allclose(rows.dot(vectors), vectors @ framed.T, **near)
        assert_allclose(rows.tdot(weights), weights @ framed, **near)
        assert_allclose(rows.sqnorms(), np.sum(framed**2, axis=1), **near)
        assert_allclose(rows.take(np.array([5, 0, 5])), framed[[5, 0, 5]], **near)

    def test_residual(self, kind, dtype, seed):
        X, _ = data(seed, dtype=dtype)
        rng = np.random.default_rng(seed)
        components = rng.random((4, X.shape[1])) * (rng.random((4, X.shape[1])) < 0.7)
        labels, scale = rng.integers(4, size=len(X)), rng.random(len(X))
        expected = np.sum((X - scale[:, None] * components[labels]) ** 2, axis=1, dtype=np.float64)
        assert_allclose(whole(build(kind, X)).residual_sq(scale, labels, components), expected, rtol=1e-12)

    def test_counts(self, kind, dtype, seed):
        X, weight = data(seed, dtype=dtype)
        rng, exact = np.random.default_rng(seed), X.astype(np.float64)
        components = rng.random((4, X.shape[1])) * (rng.random((4, X.shape[1])) < 0.7)
        labels, scale, least = rng.integers(4, size=len(X)), rng.random(len(X)) + 0.1, np.full(X.shape[1], 1e-6)
        raw = whole(build(kind, X))
        means, floored = components[labels] * scale[:, None], np.maximum(components[labels], least) * scale[:, None]
        assert_allclose(raw.sums(), exact.sum(axis=1), rtol=1e-12)
        expected = (rel_entr(exact, floored) - exact + means).sum(axis=1)
        assert_allclose(raw.divergence(scale, labels, components, least), expected, rtol=1e-11, atol=1e-12)
        expected = (np.square(exact - means) / floored).sum(axis=1)
        assert_allclose(raw.pearson(scale, labels, components, least), expected, rtol=1e-9)
        assert_allclose(raw.rooted().gram(weight, None), (np.sqrt(exact) * weight[:, None]).T @ np.sqrt(exact), rtol=1e-6, atol=1e-7)
        some = build(kind, X[:6], weight[:6])
        root = np.sqrt(exact[:6] * weight[:6, None])
        assert_allclose(some.outer(None, rooted=True), root @ root.T, rtol=1e-6, atol=1e-7)
        found = raw.times(scale, least)
        assert_allclose(found.toarray() if sp.issparse(found) else found, exact * scale[:, None] * least, rtol=1e-6)
        rows, vectors = raw.framed(scale, np.zeros(len(X)), np.zeros(X.shape[1])), components + 0.1
        part = exact * scale[:, None] * weight[:, None]
        expected = ((vectors[:, None] + part) * np.log1p(part / vectors[:, None])).sum(axis=2)
        assert_allclose(rows.growth(weight, vectors), expected, rtol=10 * ROUNDING[dtype], atol=1e-6 if dtype is np.float32 else 1e-12)
        own = expected[labels, np.arange(len(X))]
        assert_allclose(rows.growth(weight, vectors, labels), own, rtol=10 * ROUNDING[dtype], atol=1e-6 if dtype is np.float32 else 1e-12)


def test_blocks_of_sparse_items_outweigh_a_sum_of_all_dimensions():
    # 300 items of 10 000 dimensions, five numbers each: a sum over fewer than all of them would be mostly its own zeros.
    X = sp.random(300, 10_000, density=5e-4, random_state=0, format="csr")
    narrow = sp.random(30_000, 400, density=0.05, random_state=0, format="csr")
    assert len(SparseEngine(X, team=ThreadTeam(1)).slices) == 1
    assert len(SparseEngine(narrow, team=ThreadTeam(1)).slices) > 3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.0, 1e-17, 1e-9])
def test_residual_of_exact_items_is_not_rounding_of_their_size(kind, noise, seed):
    # An annealed component has entries of the size of rounding where its items have none.
    rng = np.random.default_rng(seed)
    components = rng.gamma(2.0, size=(5, 200)) * (rng.random((5, 200)) < 0.3)
    labels, scale = rng.integers(5, size=100), rng.gamma(3.0, size=100)
    X = scale[:, None] * components[labels]
    noisy = components + noise * rng.random(components.shape) * (components == 0)
    expected = np.sum((X - scale[:, None] * noisy[labels]) ** 2, axis=1)
    found = whole(build(kind, X)).residual_sq(scale, labels, noisy)
    size = np.linalg.norm(X, axis=1)
    assert_allclose(np.sqrt(found), np.sqrt(expected), rtol=1e-6, atol=1e-15 * size.max())
    if noise < 1e-12:
        assert np.all(np.sqrt(found) <= 1e-12 * size)


class TestBlocks:
    @pytest.mark.parametrize("shape", [(1, 1), (255, 3), (257, 5000), (20_000, 2), (3, 100_000)])
    def test_cover_every_item_once(self, kind, shape):
        X = np.zeros(shape) if kind == "dense" else sp.csr_array(shape)
        engine = engine_class(kind)(X, team=ThreadTeam(1))
        covered = np.concatenate([np.arange(where.start, where.stop) for where in engine.slices])
        assert_array_equal(covered, np.arange(shape[0]))
        assert all(0 < where.stop - where.start <= MAX_BLOCK for where in engine.slices)

    @pytest.mark.parametrize("n_jobs", [1, 2, 5])
    def test_sum_does_not_depend_on_the_number_of_threads(self, kind, n_jobs):
        X = np.random.default_rng(0).gamma(1.0, size=(20_000, 3))
        means = []
        for team in (ThreadTeam(1), ThreadTeam(n_jobs)):
            with team:
                engine = build(kind, X, team=team)
                assert len(engine.slices) > 2
                means.append(weighted_mean(engine))
        assert_array_equal(*means)  # to the last bit
        assert_allclose(means[0], X.mean(axis=0), rtol=1e-13)

    def test_sums_over_blocks_are_sums_over_the_matrix(self, kind):
        X = np.random.default_rng(1).gamma(1.0, size=(20_000, 3))
        weight = np.random.default_rng(2).gamma(1.0, size=len(X))
        engine = build(kind, X, weight)
        found = engine.run(None, Keys())
        assert len(engine.slices) > 1
        assert found.total.count == len(X)
        assert_allclose(found.columns["sq"], np.sum(X**2, axis=1), rtol=1e-13)
        assert_allclose(engine.run(None, Energy()).total.total, weight @ np.sum(X**2, axis=1), rtol=1e-13)

    def test_lost_or_repeated_block_is_an_error(self, kind):
        engine = build(kind, np.ones((20_000, 3)))
        for lie in (-1, 1):
            with pytest.raises(IntegrityError, match="20000"):
                engine.run(None, Liar(lie))

    @pytest.mark.parametrize("scaling", ["item", "none"])
    def test_framed_items_are_the_same_when_kept(self, kind, scaling):
        X, weight = data(0)
        engine = build(kind, X, weight)
        distortion = REGISTRY["frobenius", scaling].about(weighted_mean(engine))
        first, second = (engine.run(distortion, Seen()).columns for _ in range(2))
        for name, values in first.items():
            assert_array_equal(values, second[name])


class TestShift:
    @pytest.mark.parametrize("shift", [-30, 7])
    def test_items_are_scaled_by_a_power_of_two(self, kind, shift):
        X, weight = data(0)
        shifted = build(kind, X, weight, shift=shift)
        everything = np.arange(len(X))
        rows = whole(shifted).framed(None, None, np.zeros(X.shape[1]))
        assert_array_equal(rows.take(everything), X * 2.0**shift)
        assert_array_equal(weighted_mean(shifted), weighted_mean(build(kind, X, weight)) * 2.0**shift)

    def test_dimension_factor_multiplies_every_item(self):
        X, _ = data(0)
        factor = np.arange(1.0, X.shape[1] + 1)
        engine = DenseEngine(X, dim_factor=factor, shift=2, team=ThreadTeam(1))
        assert_array_equal(whole(engine).values, 4 * X * factor)
        assert_array_equal(whole(engine.select(np.array([2, 0]))).values, (4 * X * factor)[[2, 0]])

    def test_transposed_view_is_the_same_as_its_copy(self):
        X, _ = data(0)
        view, copy = (DenseEngine(items, team=ThreadTeam(1)) for items in (X.T, np.ascontiguousarray(X.T)))
        assert_array_equal(whole(view).values, whole(copy).values)


class TestSelect:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("shift", [0, 3])
    def test_is_the_engine_on_those_items_in_float64(self, kind, dtype, shift):
        X, weight = data(0, dtype=dtype)
        index = np.array([6, 3, 3, 0])
        chosen = build(kind, X, weight, shift=shift).select(index)
        assert chosen.dtype == np.float64
        assert chosen.n_items == 4
        rows = whole(chosen).framed(None, None, np.zeros(X.shape[1]))
        assert_array_equal(rows.take(np.arange(4)), X[index].astype(np.float64) * 2.0**shift)
        assert_array_equal(block_weight(chosen, slice(0, 4)), weight[index])

    @pytest.mark.parametrize("shape", [(4, 1), (1, 4), (1, 1)])
    def test_rows_keep_their_shape_in_one_dimension(self, kind, shape):
        rows = whole(build(kind, np.ones(shape))).framed(None, None, np.zeros(shape[1]))
        assert rows.take(np.arange(shape[0])).shape == shape


class TestKeys:
    def test_equal_rows_have_equal_keys_in_every_engine(self):
        X, _ = data(0)
        X = np.vstack([X, X[::2]])
        first, *others = (whole(build(kind, X)).keys() for kind in KINDS)
        for other in others:
            assert_array_equal(first, other)
        assert_array_equal(first[70:], first[:70:2])

    def test_minus_zero_and_stored_zero_are_zero(self):
        X = np.array([[0.0, 1.0, 0.0], [-0.0, 1.0, -0.0]])
        stored = sp.csr_array((X.ravel(), np.tile(np.arange(3), 2), [0, 3, 6]), shape=X.shape)
        keys = [whole(DenseEngine(X, team=ThreadTeam(1))).keys()]
        keys.append(whole(SparseEngine(stored, team=ThreadTeam(1))).keys())
        assert len(np.unique(keys)) == 1

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize(
        "rows",
        [
            (np.arange(1 << 14)[:, None] >> np.arange(14)) & 1,  # all rows of zeros and ones
            np.unique(np.random.default_rng(0).poisson(1.0, (5000, 30)), axis=0),  # counts
            np.unique(np.random.default_rng(1).permuted(np.tile(np.arange(8), (9000, 1)), axis=1), axis=0),
            2.0 ** np.arange(-60, 60)[:, None] * [1.0, 3.0],
            np.eye(3000),
            np.random.default_rng(2).gamma(1.0, size=(5000, 2)),
        ],
        ids=["binary", "counts", "permutations", "powers", "one-hot", "gamma"],
    )
    def test_different_rows_have_different_keys(self, kind, rows, dtype):
        engine = build(kind, rows.astype(dtype))
        assert len(np.unique(equal_items(engine))) == len(rows)


def workers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("orthonmf")]


def slow(task):
    time.sleep(0.02)  # long enough that every worker of a pool is started
    return task


class TestThreadTeam:
    @pytest.mark.parametrize("n_jobs", [1, 2, 3, -1, None])
    def test_results_come_in_the_order_of_the_tasks(self, n_jobs):
        with ThreadTeam(n_jobs) as team:
            assert list(team.map(lambda task: task**2, range(50))) == [task**2 for task in range(50)]
        assert workers() == []

    def test_overlapping_teams_share_the_cores(self, monkeypatch):
        # With 5 cores, two callers and the two workers of a team of 3 leave one for the next; when it ends there are 2 again.
        monkeypatch.setattr(threads, "n_cores", lambda: 5)
        with ThreadTeam(4) as second:
            with ThreadTeam(3) as first:
                list(first.map(slow, range(12)))
                assert len(workers()) == 2
                list(second.map(slow, range(12)))
                assert len(workers()) == 3
            with ThreadTeam(5) as third:
                list(third.map(slow, range(12)))
                assert len(workers()) == 3
        assert workers() == []

    def test_calling_thread_takes_its_share(self):
        with ThreadTeam(2) as team:
            names = list(team.map(lambda task: slow(threading.current_thread().name), range(8)))
        assert set(names) == {threading.current_thread().name, "orthonmf_0"}

    def test_team_without_a_free_core_still_works(self, monkeypatch):
        monkeypatch.setattr(threads, "n_cores", lambda: 2)
        with ThreadTeam(2) as first, ThreadTeam(2) as second:
            assert list(first.map(slow, range(4))) == list(second.map(slow, range(4))) == [0, 1, 2, 3]

    def test_declared_threads_bound_the_default(self, monkeypatch):
        monkeypatch.setattr(threads, "n_cores", lambda: 8)
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        assert (threads.usable_threads(None), threads.usable_threads(5), threads.usable_threads(-2)) == (
            2,
            5,
            7,
        )
        monkeypatch.delenv("OMP_NUM_THREADS")
        assert threads.usable_threads(None) == 8

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_no_block_begins_after_the_deadline(self, monkeypatch, n_jobs):
        clock = iter(range(100)).__next__  # one second for every look at it
        monkeypatch.setattr(threads, "monotonic", clock)
        begun = []
        with ThreadTeam(n_jobs, deadline=2.5) as team, pytest.raises(TimeLimitReached):
            list(team.map(begun.append, range(50)))
        assert len(begun) == 3

    def test_deadline_stops_a_pass(self, kind):
        with ThreadTeam(1, deadline=time.monotonic() - 1) as team, pytest.raises(TimeLimitReached):
            weighted_mean(build(kind, np.ones((20_000, 3)), team=team))

    def test_blas_limit_is_set_once_and_restored(self):
        def blas():
            return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

        before = blas()
        with ThreadTeam(1):
            assert set(blas()) == {1}
            with pytest.raises(ZeroDivisionError), ThreadTeam(2) as team:
                list(team.map(lambda task: 1 // task, range(4)))
            assert set(blas()) == {1}  # the inner team was not the last
        assert blas() == before


@pytest.mark.parametrize("n_items", [16, 17, 64, 70])
def test_totals_are_added_within_chunks_then_across(monkeypatch, n_items):
    monkeypatch.setattr(base, "MIN_BLOCK", 8)
    monkeypatch.setattr(base, "MAX_BLOCK", 8)
    monkeypatch.setattr(base, "CHUNK_ITEMS", 30)  # four blocks of eight
    X = np.random.default_rng(0).gamma(1.0, size=(n_items, 3))
    engine = build("dense", X)
    blocks = [float(np.ones(len(part)) @ np.einsum("ij,ij->i", part, part)) for part in np.split(X, range(8, n_items, 8))]
    chunks = [fold(add, blocks[start : start + 4]) for start in range(0, len(blocks), 4)]
    assert engine.run(None, Energy()).total.total == fold(add, chunks)


@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_items_framed_from_what_was_kept_are_the_same_bits(scaling, dtype, monkeypatch):
    """Many wide items near the reference are not kept in their frame, but what frames them is; another frame has its own."""
    rng = np.random.default_rng(0)
    X, weight = (100 + rng.random((300, 40))).astype(dtype), rng.random(300)
    with ThreadTeam(1) as team:
        fresh = DenseEngine(X, weight, team=team)
        frames = [REGISTRY["frobenius", scaling].of(fresh), REGISTRY["frobenius", scaling].about(np.linspace(1, 1.01, 40) * 100)]
        expected = [fresh.run(frame, Seen()).columns for frame in frames]
        monkeypatch.setattr(base, "KEEP_BYTES", 0)
        engine = base.in_blocks(fresh, 64)
        for frame, columns in [*zip(frames, expected, strict=True)] * 2:
            for found in (engine.run(frame, Seen()).columns for _ in range(3)):
                for name, values in columns.items():
                    assert_array_equal(found[name], values)
        assert len(engine._kept) == len(engine.slices)  # of the last frame alone


@pytest.mark.parametrize("n_items", [1, 2, 7, 8])
def test_the_median_of_equal_weights_is_the_lower_one(n_items):
    X = np.random.default_rng(0).integers(0, 4, (n_items, 5)).astype(float)
    assert_array_equal(median(DenseEngine(X, np.full(n_items, 2.0), team=ThreadTeam(1))), np.sort(X, axis=0)[(n_items - 1) // 2])


def test_the_median_weighted_vs_repeated():
    X, weight = np.random.default_rng(0).integers(0, 4, (7, 5)).astype(float), np.array([2.0, 1, 1, 3, 2, 1, 1])
    repeated = np.repeat(X, weight.astype(int), axis=0)
    assert_array_equal(median(DenseEngine(X, weight, team=ThreadTeam(1))), median(DenseEngine(repeated, team=ThreadTeam(1))))


@dataclass(frozen=True)
class Computed:
    """All that is computed of the items of a frame: inner products, weighted sums, and the items themselves."""

    vectors: np.ndarray
    reads = ()

    def __call__(self, items, columns):
        dot, labels = items.rows.dot(self.vectors), np.arange(len(items)) % len(self.vectors)
        sums = Total(len(items), total=items.rows.tdot(dot.astype(items.rows.values.dtype)), weight=0.0)
        found = {"dot": dot.T, "own": items.rows.own(self.vectors, labels), "taken": items.rows.take(np.arange(len(items)))}
        return Found(sums, found | {"sq": items.rows.sqnorms()})


@pytest.mark.parametrize("power", [0, 20, 60])
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_items_that_are_not_formed_give_what_formed_ones_do(scaling, dtype, power, monkeypatch):
    """Loosely about the reference, to ε of their length, which is at most 1 / LOOSE of the rest; also in units that are not theirs."""
    rng = np.random.default_rng(power)
    X, vectors = rng.gamma(1.0, size=(300, 40)), rng.normal(size=(5, 40))
    X[7] = 0
    with ThreadTeam(1) as team:
        exact = DenseEngine(X, rng.random(300), team=team)
        frame = REGISTRY["frobenius", scaling].of(exact)
        expected = exact.run(frame, Computed(vectors))
        monkeypatch.setattr(base, "KEEP_BYTES", 0)
        engine = base.in_blocks(DenseEngine(np.ldexp(X, power).astype(dtype), exact.weight, shift=-power, team=team), 60)
        found = [engine.run(frame, Computed(vectors)) for _ in range(2)]
    assert all(how.rows.loosely for _, how in engine._kept.values())
    length = np.linalg.norm(X, axis=1) + np.linalg.norm(frame.ref) if scaling == "none" else np.ones(len(X))
    reach = np.linalg.norm(vectors, axis=1).max()
    bound = 40 * np.finfo(dtype).eps * length[:, None] * reach  # of products with 40 terms
    for each in found:
        assert (np.abs(each.columns["dot"] - expected.columns["dot"]) <= bound).all()
        assert (np.abs(each.columns["own"] - expected.columns["own"]) <= bound[:, 0]).all()
        assert (np.abs(each.columns["taken"] - expected.columns["taken"]) <= bound).all()
        assert (np.abs(each.columns["sq"] - expected.columns["sq"]) <= bound[:, 0] * length).all()
        assert_allclose(each.total.total, expected.total.total, rtol=0, atol=(bound[:, 0] * length).sum() * reach)
    assert_array_equal(found[0].columns["dot"], found[1].columns["dot"])


@pytest.mark.parametrize("scaling", ["item", "none"])
def test_items_near_the_reference_are_formed(scaling, monkeypatch):
    """In float32, of items within a thousandth of each other the distances are those of float64, to a few ε of themselves."""
    monkeypatch.setattr(base, "KEEP_BYTES", 0)
    X = (1000 + np.random.default_rng(0).random((300, 40))).astype(np.float32)
    with ThreadTeam(1) as team:
        engine, exact = DenseEngine(X, team=team), DenseEngine(X.astype(np.float64), team=team)
        frame = REGISTRY["frobenius", scaling].of(exact)
        centers = item_points(exact, frame, np.arange(5))
        for _ in range(2):
            found = engine.run(frame, Costs(centers)).columns["costs"]
            assert_allclose(found, exact.run(frame, Costs(centers)).columns["costs"], rtol=1e-4, atol=1e-5 * found.max())
    assert not any(how.rows.loosely for _, how in engine._kept.values())
