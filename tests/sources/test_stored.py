"""A matrix on disk gives the bits that it gives in memory, whatever kind it is of, in pieces of any size, and holds few of them."""

import sys
import threading

import anndata
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from numpy.testing import assert_array_equal
from scipy import sparse

from orthonmf import ONMF, estimator
from orthonmf.distortion.euclidean import Euclidean
from orthonmf.distortion.line import Line
from orthonmf.engines import ThreadTeam
from orthonmf.engines.base import digest
from orthonmf.engines.layout import Layout
from orthonmf.exceptions import InvalidInputError
from orthonmf.sources import Stored, StoredColumns, StoredRows, base, pieces, stored, turned


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Few bytes are many."""
    monkeypatch.setattr(base, "PIECE_BYTES", 4096)
    monkeypatch.setattr(base, "HELD_BYTES", 16384)
    monkeypatch.setattr(estimator, "FEW_BYTES", 0)


def matrix(n_items=700, n_dims=20, dtype=np.float32):
    rng = np.random.default_rng(0)
    centers = rng.gamma(1, 1, (5, n_dims))
    return (centers[rng.integers(5, size=n_items)] * rng.gamma(5, 0.2, (n_items, 1)) + 0.1 * rng.random((n_items, n_dims))).astype(dtype)


def counts():
    rng = np.random.default_rng(1)
    return sparse.csr_array(rng.poisson(rng.gamma(0.3, 1, (5, 40))[rng.integers(5, size=900)]).astype(np.float32))


def as_npy(folder, X):
    np.save(folder / "X.npy", X)
    return folder / "X.npy"


def as_map(folder, X):
    return np.load(as_npy(folder, X), mmap_mode="r")


def as_part_of_map(folder, X):
    return np.load(as_npy(folder, np.vstack([X[:13] + 1, X])), mmap_mode="r")[13:]


def as_hdf5(folder, X):
    file = h5py.File(folder / "X.h5", "w")
    return file.create_dataset("group/X", data=X, chunks=(50, 7), compression="lzf")


def as_plain_hdf5(folder, X):
    return h5py.File(folder / "X.h5", "w").create_dataset("X", data=X)


def as_zarr(folder, X):
    array = zarr.create_array(folder / "X.zarr", shape=X.shape, chunks=(37, 9), dtype=X.dtype)
    array[:] = X
    return array


def as_zarr_path(folder, X):
    as_zarr(folder, X)
    return folder / "X.zarr"


def as_parquet(folder, X):
    for number, part in enumerate(np.array_split(X, 3)):
        pq.write_table(pa.table({f"c{j}": part[:, j] for j in range(X.shape[1])}), folder / f"{number}.parquet", row_group_size=60)
    return folder


def as_anndata(folder, X):
    anndata.AnnData(X).write_h5ad(folder / "X.h5ad")
    return anndata.read_h5ad(folder / "X.h5ad", backed="r").X


KINDS = (as_npy, as_map, as_part_of_map, as_hdf5, as_plain_hdf5, as_zarr, as_zarr_path, as_parquet, as_anndata)
NAMES = [kind.__name__.removeprefix("as_") for kind in KINDS]


def assert_same(one, other):
    for name in ("labels_", "components_", "scale_", "margin_", "critical_betas_", "counts_", "stability_"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert (str(one.certificate_), one.status_, one.n_iter_, one.data_digest_) == (
        str(other.certificate_),
        other.status_,
        other.n_iter_,
        other.data_digest_,
    )


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_slices_are_those_of_the_array(kind, tmp_path):
    X, found = matrix(), stored(kind(tmp_path, matrix()))
    assert isinstance(found, Stored)
    assert (found.shape, found.dtype, len(found), found.size) == (X.shape, X.dtype, len(X), X.size)
    for where in (slice(0, 1), slice(13, 14), slice(0, 700), slice(333, 512), slice(690, 900), slice(5, 5)):
        assert_array_equal(found[where], X[where])
    index = np.random.default_rng(0).integers(700, size=150)
    assert_array_equal(found[index], X[index])
    assert_array_equal(found[:, 3:8], X[:, 3:8])
    assert_array_equal(np.asarray(found), X)
    assert found.max() == X.max()


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_bits_of_the_fit_in_memory(kind, tmp_path):
    X, source = matrix(), kind(tmp_path, matrix())
    model = ONMF(5).fit(X)
    assert_same(ONMF(5).fit(source), model)
    assert_array_equal(model.predict(source), model.predict(X))
    assert_array_equal(model.transform(source), model.transform(X))
    assert_array_equal(model.predict_proba(source), model.predict_proba(X))
    assert model.verify(source).holds
    assert model.score(source) == model.score(X)


@pytest.mark.parametrize(
    "parameters",
    [{"n_components": 4, "scaling": "none"}, {"n_components": 5, "capacity": 150}, {"max_components": 8}, {"n_components": 5, "n_jobs": 3}],
    ids=str,
)
@pytest.mark.parametrize("engine", ["dense", "compiled"])
def test_bits_of_every_kind_of_fit(parameters, engine, tmp_path):
    X = matrix(dtype=np.float64)
    assert_same(ONMF(**parameters, engine=engine).fit(as_npy(tmp_path, X)), ONMF(**parameters, engine=engine).fit(X))


def test_bits_with_weights_of_which_some_are_zero(tmp_path):
    X, weight = matrix(), np.random.default_rng(2).random(700)
    weight[X.max(axis=1).argmax()] = 0
    assert_same(ONMF(5).fit(as_npy(tmp_path, X), sample_weight=weight), ONMF(5).fit(X, sample_weight=weight))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, bool])
def test_numbers_of_other_types(dtype, tmp_path):
    X = (matrix() > 1 if dtype is bool else 3 * matrix()).astype(dtype)
    assert_same(ONMF(4).fit(as_npy(tmp_path, X)), ONMF(4).fit(X))


@pytest.mark.parametrize("parameters", [{"n_components": 5}, {"n_components": 5, "capacity": 200}, {"max_components": 8}], ids=str)
@pytest.mark.parametrize("engine", ["sparse", "compiled-sparse"])
def test_sparse_rows_of_anndata(parameters, engine, tmp_path):
    X = counts()
    source = as_anndata(tmp_path, sparse.csr_matrix(X))
    assert isinstance(stored(source), StoredRows)
    model = ONMF(**parameters, engine=engine).fit(X)
    assert_same(ONMF(**parameters, engine=engine).fit(source), model)
    assert_array_equal(model.predict(source), model.predict(X))
    assert model.verify(source).holds


def test_sparse_columns_are_loaded_where_few_and_refused_where_many(tmp_path, monkeypatch):
    X = counts()
    source = as_anndata(tmp_path, sparse.csc_matrix(X))
    assert_array_equal(ONMF(5).fit(source).labels_, ONMF(5).fit(X).labels_)
    monkeypatch.setattr("orthonmf.sources.hdf5.FEW_ENTRIES", 10)
    with pytest.raises(InvalidInputError, match="stored by columns"):
        ONMF(5).fit(source)


def test_other_way_round(tmp_path):
    X, path = matrix(300, 40), as_npy(tmp_path, matrix(300, 40))
    with pytest.raises(InvalidInputError, match=r"stored by rows.*orthonmf\.sources\.turned"):
        ONMF(4, orthogonal="features").fit(path)
    turned(path, tmp_path / "turned.npy")
    assert isinstance(stored(tmp_path / "turned.npy"), StoredColumns)
    model = ONMF(4, orthogonal="features").fit(tmp_path / "turned.npy")
    assert_same(model, ONMF(4, orthogonal="features").fit(X))
    np.testing.assert_allclose(model.transform(tmp_path / "turned.npy"), model.transform(X), rtol=1e-6)
    with pytest.raises(InvalidInputError, match="stored by columns"):
        ONMF(4).fit(tmp_path / "turned.npy")
    turned(tmp_path / "turned.npy", tmp_path / "again.npy")
    assert_array_equal(np.load(tmp_path / "again.npy"), X)


@pytest.mark.parametrize("kind", [as_npy, as_zarr_path], ids=["npy", "zarr"])
def test_entries_are_read_once_a_pass_and_few_are_held(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(pieces.os, "cpu_count", lambda: 2)
    X = matrix()
    found = stored(kind(tmp_path, X))
    assert len(found.borders) > 10
    for _ in range(3):
        for start in range(0, 700, 30):
            found[start : start + 30]
    assert found.entries_read == 3 * 700  # none is still held when the next pass begins, and none is read twice
    if kind is as_zarr_path:
        assert len(found._source._pieces) <= base.HELD_BYTES // (37 * X[0].nbytes)


def asked_first(engine, frame):
    """What is asked of items before any search: whether they are sound, their digest, and what the frame is about."""
    return digest(engine), frame.of(engine).ref


@pytest.mark.parametrize("frame", [Line, Euclidean])
@pytest.mark.parametrize("kind", [as_npy, as_zarr_path], ids=["npy", "zarr"])
def test_read_once_before_the_search(kind, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECES_AHEAD", 0)  # what is read ahead for another thread may be gone when that thread comes
    X = matrix()
    X[0] *= 8  # the largest numbers come first
    path = kind(tmp_path, X)
    with ThreadTeam(1) as team:
        apart = stored(path)
        apart.check("ONMF")
        expected = asked_first(Layout("samples", "dense").build(apart, None, team), frame)
        assert apart.entries_read >= 2.9 * len(X)  # some rows of a .npy are read by themselves

        together = stored(path)
        together.watch("ONMF")
        found = asked_first(Layout("samples", "dense").first_seen(together, None, team), frame)
    peeked = base.HELD_BYTES // 2 // X[0].nbytes if kind is as_npy else 0
    assert together.entries_read == len(X) + peeked
    assert found[0] == expected[0]
    assert_array_equal(found[1], expected[1])


def test_pieces_of_a_plain_file_are_the_slices_in_which_it_is_read(tmp_path):
    X = matrix(20_000)
    X[0] *= 8
    found = stored(as_npy(tmp_path, X))
    with ThreadTeam(1) as team:
        engine = Layout("samples", "dense").first_seen(found, None, team)
    assert any((found.medium.borders == each.stop).sum() == 0 for each in engine.slices)  # other pieces would lie in two slices
    assert found.entries_read == len(X) + base.HELD_BYTES // 2 // X[0].nbytes


def test_first_pieces_that_mislead(tmp_path):
    """The power of two by which numbers are scaled is read from the first pieces, and put right where others are larger."""
    X = matrix()
    X[400:] *= 1000
    source = as_npy(tmp_path, X)
    with ThreadTeam(1) as team:
        found = stored(source)
        asked_first(Layout("samples", "dense").first_seen(found, None, team), Line)
    assert found.entries_read == 2 * len(X) + base.HELD_BYTES // 2 // X[0].nbytes
    for scaling in ("item", "none"):
        assert_same(ONMF(5, scaling=scaling).fit(source), ONMF(5, scaling=scaling).fit(X))


@pytest.mark.parametrize("kind", [as_npy, as_zarr_path], ids=["npy", "zarr"])
def test_buffers_are_used_again_but_never_while_somebody_looks(kind, tmp_path):
    X = matrix()
    found = stored(kind(tmp_path, X))
    looked_at, places = [found[0:30], found[40:60][3:5, 2:9]], set()
    before = [each.copy() for each in looked_at]
    for start in [*range(30, 700, 30), *range(0, 700, 30)]:
        part = found[start : start + 30]
        places.add(part.ctypes.data)
        assert_array_equal(part, X[start : start + 30])
    for each, copied in zip(looked_at, before, strict=True):
        assert_array_equal(each, copied)
    if kind is as_npy:
        assert len(places) <= 2 + 1  # two that take turns, and at first what is left of those that are looked at


def test_many_threads_see_the_same(tmp_path):
    X, wrong = matrix(), []
    found = stored(as_npy(tmp_path, X))

    def look(seed):
        for start in np.random.default_rng(seed).integers(650, size=300):
            if not np.array_equal(found[start : start + 50], X[start : start + 50]):
                wrong.append(start)

    threads = [threading.Thread(target=look, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(("value", "words"), [(-1.0, "Negative"), (np.nan, "NaN"), (np.inf, "infinity")])
def test_bad_numbers_are_named_with_their_place(value, words, tmp_path):
    X = matrix()
    X[612, 7] = value
    with pytest.raises(InvalidInputError, match=rf"{words}.* row 612, column 7 of X\.npy"):
        ONMF(3).fit(as_npy(tmp_path, X))


def test_bad_sparse_numbers_are_named_with_their_place(tmp_path):
    X = sparse.csr_matrix(counts())
    entry = X.indptr[612]
    X.data[entry] = -1
    with pytest.raises(InvalidInputError, match=rf"Negative.* row 612, column {X.indices[entry]} of"):
        ONMF(3).fit(as_anndata(tmp_path, X))


def test_columns_out_of_order_are_refused(tmp_path):
    X = sparse.csr_matrix(counts())
    first, last = X.indptr[20:22]
    X.indices[first:last] = X.indices[first:last][::-1].copy()
    with h5py.File(tmp_path / "bad.h5ad", "w") as file:
        anndata.io.write_elem(file, "X", X)
        with pytest.raises(InvalidInputError, match=r"Row 20 .*out of order"):
            ONMF(3).fit(anndata.io.sparse_dataset(file["X"]))


def test_file_that_ends_too_soon(tmp_path):
    path = as_npy(tmp_path, matrix())
    found = stored(path)
    with path.open("r+b") as file:
        file.truncate(20_000)
    with pytest.raises(InvalidInputError, match=r"X\.npy ends in row \d+; 700 rows are expected"):
        ONMF(3).fit(found)


@pytest.mark.parametrize(
    ("name", "words"), [("none.npy", "no such file"), ("X.csv", r"cannot be read piece by piece.*\.npy"), ("", "holds no .parquet file")]
)
def test_paths_that_cannot_be_read(name, words, tmp_path):
    (tmp_path / "X.csv").write_text("1,2\n")
    with pytest.raises(InvalidInputError, match=words):
        ONMF(2).fit(str(tmp_path / name) if name else tmp_path)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.array([[object()]]), "Python objects"),
        (np.ones(3), r"it holds an array of shape \(3,\) and dtype float64; expected a matrix \(2-D\)"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.array([["a", "b"]]), "dtype <U1; expected a matrix .* of numbers"),
        (np.ones((3, 2), ">f8"), "dtype >f8; .* in this machine's byte order"),
    ],
    ids=["objects", "vector", "cube", "text", "bytes the other way"],
)
def test_what_a_npy_holds_is_named_where_it_is_no_matrix(values, words, tmp_path):
    np.save(tmp_path / "X.npy", values, allow_pickle=True)
    with pytest.raises(InvalidInputError, match=rf"X='.*X\.npy' cannot be read: .*{words}"):
        ONMF(2).fit(tmp_path / "X.npy")


def test_nobody_is_told_to_unpickle(tmp_path):
    (tmp_path / "X.npy").write_bytes(b"no array" * 99)
    with pytest.raises(InvalidInputError, match=r"magic string.*Is it complete, and what its name says\?$"):
        ONMF(2).fit(tmp_path / "X.npy")


def test_missing_values_of_parquet_are_nan(monkeypatch, tmp_path):
    pq.write_table(pa.table({"a": [1.0, None, 3.0], "b": [1, 2, None], "c": [True, False, None]}), tmp_path / "X.parquet")
    path = tmp_path / "X.parquet"
    with pytest.raises(InvalidInputError, match=r"contains NaN at row 1, column 0 of X\.parquet; .*missing='ignore'"):
        ONMF(1).fit(path)
    monkeypatch.setattr(estimator, "FEW_BYTES", 1 << 20)
    with pytest.raises(InvalidInputError, match=r"contains NaN at row 1, column 0; .*missing='ignore'"):
        ONMF(1).fit(path)
    X = np.array([[1, 1, 1], [np.nan, 2, 0], [3, np.nan, np.nan]])
    assert_array_equal(np.asarray(stored(path)), X)
    assert_array_equal(ONMF(1, missing="ignore").fit(path).components_, ONMF(1, missing="ignore").fit(X).components_)


def test_text_in_parquet_is_refused_unless_it_is_the_index(tmp_path):
    frame = pd.DataFrame(matrix()[:, :3], columns=list("abc")).assign(who="x")
    frame.to_parquet(tmp_path / "text.parquet")
    with pytest.raises(InvalidInputError, match=r"column 'who' of text\.parquet is of type .*string; .*set_index\('who'\)"):
        ONMF(2).fit(tmp_path / "text.parquet")
    for name, index in (("named", frame.set_index("who")), ("numbered", frame.drop(columns="who").set_index(np.arange(len(frame))[::-1]))):
        index.to_parquet(tmp_path / f"{name}.parquet")
        found = ONMF(2).fit(tmp_path / f"{name}.parquet")
        assert_array_equal(found.components_, ONMF(2).fit(np.ascontiguousarray(index)).components_)


def test_no_thread_is_left(tmp_path):
    ONMF(4).fit(as_npy(tmp_path, matrix()))
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("orthonmf")] == []


def test_files_are_closed(tmp_path):
    import os

    if sys.platform != "linux":
        pytest.skip("counts /proc/self/fd")
    path = as_npy(tmp_path, matrix())
    ONMF(3).fit(path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        ONMF(3).fit(path)
    assert len(os.listdir("/proc/self/fd")) <= before
