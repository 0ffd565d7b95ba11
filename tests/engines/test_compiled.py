"""Compiled passes find what the plain ones do, to rounding, and the same bits with any number of threads."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam, available, compiled, engine_class, kernels
from orthonmf.engines.base import doubled, reweighted
from orthonmf.engines.compiled import KERNELS, RAW_KERNELS, CompiledEngine, CompiledSparseEngine
from orthonmf.engines.dense import DenseEngine
from orthonmf.engines.layout import COMPILED_BOUNDED, COMPILED_ENTRIES, COMPILED_ITEMS, COMPILED_NUMBERS, Layout, automatic
from orthonmf.engines.sparse import SparseEngine
from orthonmf.exceptions import MissingExtraError
from orthonmf.passes.assigned import Arcs, Worth
from orthonmf.passes.base import host
from orthonmf.passes.hard import Costs, Labelled, Margins, Nearest, OwnAndOther, TwoCheapest
from orthonmf.passes.moves import MoveGains
from orthonmf.passes.raw import Coordinates, Residual, Subspace
from orthonmf.passes.samples import Shares
from orthonmf.passes.several import NearestInEach
from orthonmf.passes.soft import Gibbs
from orthonmf.passes.state import State
from orthonmf.passes.swaps import Sides, Swaps

SCALINGS = ("item", "none")
N_ITEMS, N_COMPONENTS = 700, 5


def groups(n_dims=7, spread=0.5, dtype=np.float64, seed=0):
    """Clouds of items whose norms differ, one of which is zero."""
    rng = np.random.default_rng(seed)
    centers = rng.gamma(2.0, 1.0, (N_COMPONENTS, n_dims))
    X = centers[rng.integers(N_COMPONENTS, size=N_ITEMS)] + spread * rng.random((N_ITEMS, n_dims))
    X *= rng.gamma(4.0, 1.0, (N_ITEMS, 1))
    X[7] = 0
    return X.astype(dtype), rng.gamma(1.0, 1.0, N_ITEMS)


def both(X, weight=None, *, scaling, team=None, **options):
    """A plain engine, a compiled one, and the frame of both."""
    team = team or ThreadTeam(1)
    plain, fast = (kind(X, weight, team=team, **options) for kind in (DenseEngine, CompiledEngine))
    return plain, fast, REGISTRY["frobenius", scaling].of(plain)


def chosen(frame, engine, count, start=0):
    """Items as centres."""
    rows = engine.rows(slice(start, start + count))
    return frame.points(frame.items(rows, np.ones(count)), np.arange(count))


def works(frame, engine):
    """Every pass that has a kernel, with the columns that it reads."""
    centers = chosen(frame, engine, N_COMPONENTS, 20)
    labels = np.random.default_rng(1).integers(N_COMPONENTS, size=engine.n_items)
    several = np.stack([centers, chosen(frame, engine, N_COMPONENTS, 50), chosen(frame, engine, N_COMPONENTS, 90)])
    stats = engine.run(frame, Labelled(centers), {"labels": labels}).total
    mass, cost = stats.mass, stats.cost
    away = engine.run(frame, OwnAndOther(centers), {"labels": labels}).columns
    state = State(3.0, centers, np.log(np.arange(1.0, 6.0) / 15))
    return {
        "nearest": (Nearest(centers), {"labels": labels}),
        "first labels": (Nearest(centers, labelled=False), {}),
        "one component": (Nearest(centers[:1], labelled=False), {}),
        "labelled": (Labelled(centers), {"labels": labels}),
        "each of several": (NearestInEach(several), {"labels": np.stack([labels] * 3, axis=1)}),
        "gibbs": (Gibbs(state), {}),
        "gibbs, cold": (Gibbs(State(1e4, centers, state.log_mass)), {}),
        "shares": (Shares(centers), {}),
        "costs": (Costs(centers), {}),
        "two cheapest": (TwoCheapest(centers, np.arange(5.0) * cost.sum() / len(labels)), {}),
        "arcs": (Arcs(centers), {"labels": labels}),
        "worth": (Worth(centers, np.arange(5.0) * cost.sum() / len(labels)), {"labels": labels}),
        "own and other": (OwnAndOther(centers), {"labels": labels}),
        "margins": (Margins(centers, 1e-9, 1e-14), {"labels": labels}),
        "moves": (MoveGains(centers, mass, cost, together=False, least=1e-9), {"labels": labels}),
        "moves together": (MoveGains(centers, mass, cost, together=True, least=1e-9), {"labels": labels, "together": mass[labels] / 90}),
        "sides": (Sides(several[:2]), {"labels": labels}),
        "swaps": (Swaps(several[1], np.array([3, 0, 0, 1, 4]), N_COMPONENTS), {"labels": labels, **away}),
    }


def assert_same(one, other, rtol):
    """The totals to rounding, each beside the largest of its kind; the columns equal."""
    for name in one.total.__dataclass_fields__:
        expected, found = np.asarray(getattr(other.total, name)), np.asarray(getattr(one.total, name))
        assert found.shape == expected.shape, name
        assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max(), err_msg=name)
    assert one.columns.keys() == other.columns.keys()
    for name, column in one.columns.items():
        expected, found = host(other.columns[name]), host(column)
        assert found.dtype.kind == expected.dtype.kind
        atol = 0.0 if found.dtype.kind == "i" else rtol * np.abs(expected).max()
        assert_allclose(found, expected, rtol=0.0, atol=atol, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n_dims", "scaling"), [(30, "item"), (30, "none")])
def test_sparse_items_as_plain(n_dims, scaling, dtype):
    X, weight = groups(n_dims, dtype=dtype)
    matrix = sp.csr_array(np.where(np.random.default_rng(5).random(X.shape) < 0.5, X, 0))
    plain, fast = (kind(matrix, weight, shift=3, team=ThreadTeam(1)) for kind in (SparseEngine, CompiledSparseEngine))
    frame = REGISTRY["frobenius", scaling].of(plain)
    for work, columns in works(frame, plain).values():
        assert_same(fast.run(frame, work, columns), plain.run(frame, work, columns), 1e-11)


def sparse_engines(dtype=np.float64):
    """A plain engine of sparse items and a compiled one."""
    X, weight = groups(30, dtype=dtype)
    matrix = sp.csr_array(np.where(np.random.default_rng(5).random(X.shape) < 0.5, X, 0))
    return (kind(matrix, weight, shift=-2, team=ThreadTeam(1)) for kind in (SparseEngine, CompiledSparseEngine))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scaling", SCALINGS)
def test_labels_that_are_followed_are_those_found_afresh(scaling, seed):
    _, followed = sparse_engines()
    frame, rng = REGISTRY["frobenius", scaling].of(followed), np.random.default_rng(seed)
    centers = chosen(frame, followed, N_COMPONENTS, 20)
    centers[-1] = centers[0]  # the first of equal ones is the nearest
    labels = np.zeros(N_ITEMS, dtype=np.intp)
    for step in (0.0, 1e-9, 1e-3, 0.1, 3.0, 1e-2, 0.0):
        some = rng.random((N_COMPONENTS, 1)) < 0.7
        centers = centers + some * step * rng.standard_normal(centers.shape) / np.sqrt(centers.shape[1])
        centers = frame.retract(centers) if frame.scaled else centers
        _, afresh = sparse_engines()
        one, other = (engine.run(frame, Nearest(centers), {"labels": labels}) for engine in (followed, afresh))
        labels = other.columns["labels"]
        assert_array_equal(one.columns["labels"], labels)
        for name in one.total.__dataclass_fields__:
            assert_array_equal(getattr(one.total, name), getattr(other.total, name), err_msg=name)


def test_a_copy_follows_nothing():
    _, followed = sparse_engines()
    frame = REGISTRY["frobenius", "item"].of(followed)
    followed.run(frame, Nearest(chosen(frame, followed, N_COMPONENTS, 20), labelled=False))
    assert followed._leads
    assert not reweighted(followed, None)._leads


@pytest.mark.parametrize("scaling", SCALINGS)
def test_what_is_followed_is_forgotten_in_another_frame_and_of_more_centres(scaling):
    _, followed = sparse_engines()
    frame = REGISTRY["frobenius", scaling].of(followed)
    other = type(frame)(frame.to_data(chosen(frame, followed, 1))[0])
    cases = [(one, n_centers) for one in (frame, other) for n_centers in (4, 5)]
    for each, n_centers in cases:
        centers = chosen(each, followed, n_centers, 20)
        _, afresh = sparse_engines()
        one, two = (engine.run(each, Nearest(centers, labelled=False)) for engine in (followed, afresh))
        assert_array_equal(one.columns["labels"], two.columns["labels"])
        assert_array_equal(one.total.sums, two.total.sums)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_items_are_sketched_as_plain(dtype):
    plain, fast = sparse_engines(dtype)
    rng = np.random.default_rng(6)
    vectors, about = rng.standard_normal((4, 30)), rng.random(30)
    works = {Subspace: Subspace(vectors, about), Coordinates: Coordinates(vectors, about)}
    assert set(works) == set(RAW_KERNELS)
    for work in works.values():
        assert_same(fast.run(None, work), plain.run(None, work), 1e-5)  # the compiled ones are float32
    assert fast.passes == len(works)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_sparse_items_are_compared_with_components_as_plain(scaling):
    plain, fast = sparse_engines()
    frame = REGISTRY["frobenius", scaling].of(plain)
    labels, scale = np.random.default_rng(1).integers(N_COMPONENTS, size=N_ITEMS), np.linspace(0, 2, N_ITEMS)
    components = frame.to_data(chosen(frame, plain, N_COMPONENTS, 20))
    residual = Residual(frame.measure, components), {"labels": labels, "scale": scale}
    assert_same(fast.run(None, *residual), plain.run(None, *residual), 1e-13)
    where = slice(0, N_ITEMS)
    one, other = (frame.items(engine.rows(where), np.ones(N_ITEMS)).rows for engine in (fast, plain))
    assert_allclose(one.dot(components), other.dot(components), rtol=1e-12, atol=1e-12)
    few = np.where(np.arange(N_COMPONENTS)[:, None] == labels, scale, 0)
    assert_allclose(one.tdot(few), other.tdot(few), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_sparse_runs_give_the_same_bits_for_any_number_of_threads(scaling, monkeypatch):
    monkeypatch.setattr(compiled, "RUN_BYTES", 1 << 12)
    monkeypatch.setattr(compiled, "RUN_DIMS", 0)
    X, weight = groups(30)
    matrix = sp.csr_array(np.where(np.random.default_rng(5).random(X.shape) < 0.5, X, 0))
    alone = CompiledSparseEngine(matrix, weight, team=ThreadTeam(1))
    frame = REGISTRY["frobenius", scaling].of(alone)
    whole = SparseEngine(matrix, weight, team=ThreadTeam(1))
    with ThreadTeam(2) as team:
        shared = CompiledSparseEngine(matrix, weight, team=team)
        assert len(shared._runs) > 10
        for work, columns in works(frame, alone).values():
            one, other = (engine.run(frame, work, columns) for engine in (shared, alone))
            for name in one.total.__dataclass_fields__:
                assert_array_equal(getattr(one.total, name), getattr(other.total, name))
            assert_same(one, whole.run(frame, work, columns), 1e-11)


def test_every_kernel_is_tested():
    _, fast, frame = both(groups()[0], scaling="item")
    assert {type(work) for work, _ in works(frame, fast).values()} == set(KERNELS)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n_dims", "scaling"), [(7, "item"), (7, "none"), (1, "none"), (70, "item")])
def test_as_plain(n_dims, scaling, dtype):
    X, weight = groups(n_dims, dtype=dtype)
    plain, fast, frame = both(X, weight, scaling=scaling)
    for work, columns in works(frame, plain).values():
        assert_same(fast.run(frame, work, columns), plain.run(frame, work, columns), 1e-11 if dtype == np.float64 else 1e-4)


LAYOUTS = {
    "another unit": lambda X: (X * 2.0**40, {"shift": -40}),
    "subnormal numbers": lambda X: (X * 2.0**-1050, {"shift": 1050}),
    "transposed": lambda X: (np.asfortranarray(X), {}),
    "every second item": lambda X: (np.repeat(X, 2, axis=0)[::2], {}),
    "dimensions with weights": lambda X: (X, {"dim_factor": np.arange(1.0, 8.0)}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scaling", SCALINGS)
def test_any_layout(scaling, layout):
    X, options = LAYOUTS[layout](groups()[0])
    plain, fast, frame = both(X, scaling=scaling, **options)
    rtol = 1e-3 if "subnormal" in layout else 1e-11
    for name, (work, columns) in works(frame, plain).items():
        if "subnormal" not in layout or name == "labelled":  # few digits are left: labels may differ
            assert_same(fast.run(frame, work, columns), plain.run(frame, work, columns), rtol)


def test_nothing_cancels_where_items_lie_close_together():
    X = (100 + 1e-3 * np.random.default_rng(3).random((N_ITEMS, 7))).astype(np.float32)  # they share five of seven digits
    exact, _, frame = both(X.astype(np.float64), scaling="item")
    single = CompiledEngine(X, team=ThreadTeam(1))
    size = np.sqrt(frame.items(exact.rows(slice(0, N_ITEMS)), np.ones(N_ITEMS)).sq.mean())
    passes = works(frame, exact)
    for work, columns in (passes[name] for name in ("labelled", "gibbs", "gibbs, cold")):
        expected = exact.run(frame, work, columns).total
        # Beside the reference, where digits would be lost; a sum in float32 errs by little of the size of what is summed.
        found = single.run(frame, work, columns).total.sums[:, 1:]
        assert_allclose(found, expected.sums[:, 1:], rtol=0, atol=1e-6 * size * expected.mass.max())


@pytest.mark.parametrize("scaling", SCALINGS)
def test_the_same_bits_for_any_number_of_threads(scaling, monkeypatch):
    monkeypatch.setattr(compiled, "RUN_BYTES", 7 * 8 * 64)
    X, weight = groups()
    plain, alone, frame = both(X, weight, scaling=scaling)
    with ThreadTeam(2) as team:
        shared = CompiledEngine(X, weight, team=team)
        assert len(shared._runs) == 11
        for work, columns in works(frame, alone).values():
            one, other = (engine.run(frame, work, columns) for engine in (shared, alone))
            for name in one.total.__dataclass_fields__:
                assert_array_equal(getattr(one.total, name), getattr(other.total, name))
            assert_same(one, plain.run(frame, work, columns), 1e-11)


def test_other_weights_and_another_precision_are_seen():
    X, weight = groups(dtype=np.float32)
    plain, fast, frame = both(X, scaling="item")
    work, columns = works(frame, plain)["labelled"]
    fast.run(frame, work, columns)
    assert_same(reweighted(fast, weight).run(frame, work, columns), reweighted(plain, weight).run(frame, work, columns), 2e-5)
    assert_same(doubled(fast).run(frame, work, columns), doubled(plain).run(frame, work, columns), 1e-11)


def test_exponentials_are_exact_to_rounding():
    x = -np.concatenate([[0.0], np.logspace(-16, np.log10(690), 20_000)])
    found, total = x.copy(), np.ones(len(x))
    kernels.exponentials(found[None], 0, len(x), np.zeros(len(x)), total)
    assert_allclose(found, np.exp(x), rtol=1e-15)
    assert_array_equal(total, 1 + found)
    far = np.array([0.0, -1e4, -1e300, -np.inf])
    kernels.exponentials(far[None], 0, 4, np.zeros(4), np.zeros(4))
    assert_array_equal(far, [1, 0, 0, 0])


@pytest.mark.parametrize("parameters", [{}, {"scaling": "none"}, {"capacity": 260}, {"orthogonal": "features"}], ids=str)
def test_a_fit_gives_the_same_labels(parameters):
    X, weight = groups()
    models = [ONMF(3, engine=engine, **parameters).fit(X, sample_weight=weight) for engine in ("dense", "compiled")]
    assert_array_equal(models[0].labels_, models[1].labels_)
    assert_allclose(models[0].components_, models[1].components_, rtol=1e-7)  # known to the root of FALL_TOL at worst
    assert all(model.certificate_.holds for model in models)
    assert models[1].verify(X, sample_weight=weight).holds


class TestChoice:
    def test_large_arrays_are_compiled(self):
        assert automatic(np.zeros((COMPILED_NUMBERS // 8, 8))) == "compiled"
        assert automatic(np.zeros((COMPILED_NUMBERS // 8 - 1, 8))) == "dense"

    @pytest.mark.parametrize(
        ("bounded", "n_items", "missing", "name"),
        [
            (True, 1024, 0, "compiled"),
            (True, 1024, 1, "dense"),
            (False, 1024, 0, "dense"),
            (True, COMPILED_ITEMS, 0, "compiled"),
            (True, COMPILED_ITEMS // 2, 0, "dense"),  # whose assignment is not compiled either
        ],
    )
    def test_smaller_arrays_are_compiled_under_bounds(self, bounded, n_items, missing, name):
        X = np.ones((n_items, COMPILED_BOUNDED // n_items - missing))
        for orthogonal, given in (("samples", X), ("features", X.T)):
            engine = Layout(orthogonal, "auto", bounded=bounded).build(given, None, ThreadTeam(1))
            assert type(engine) is engine_class(name)

    def test_sparse_matrices_of_many_entries_are_compiled_and_so_are_samples_of_them(self):
        matrix = sp.random_array((COMPILED_ENTRIES // 64, 640), density=0.1, rng=np.random.default_rng(0), format="csr")
        assert automatic(matrix) == "compiled-sparse"
        assert automatic(matrix[1:]) == "sparse"
        assert type(CompiledSparseEngine(matrix, team=ThreadTeam(1)).select(np.arange(200))) is CompiledSparseEngine

    def test_without_numba_arrays_are_dense_and_who_insists_is_told(self, monkeypatch):
        available.cache_clear()
        for name in ("orthonmf.engines.compiled", "orthonmf.engines.kernels"):
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "numba", None)
        monkeypatch.delattr("orthonmf.engines.kernels")
        try:
            assert automatic(np.zeros((COMPILED_NUMBERS // 8, 8))) == "dense"
            with pytest.raises(MissingExtraError, match=r"need numba.*orthonmf\[fast\].*engine='auto'"):
                ONMF(2, engine="compiled").fit(np.eye(4))
        finally:
            available.cache_clear()
