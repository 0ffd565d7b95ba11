"""HDF5: plain datasets, the files of the 10x pipelines, AnnData."""

import gzip

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite

from orthonmf.exceptions import InvalidInputError
from orthonmf.io import read

X = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])  # two cells, three genes
CELLS, GENES = ["AAAC-1", "AAAG-1"], ["CD4", "TBCE (ENSG2)", "TBCE (ENSG3)"]
FEATURES = [("ENSG1", "CD4"), ("ENSG2", "TBCE"), ("ENSG3", "TBCE")]


def check(data, X=X, rows=CELLS, columns=GENES):
    np.testing.assert_array_equal(data.X.toarray() if sparse.issparse(data.X) else data.X, X)
    assert data.row_names.tolist() == rows
    assert data.column_names.tolist() == columns


def test_the_only_dataset_or_the_one_named(tmp_path):
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        file["deep/X"], file["vector"] = X, np.arange(3)
    np.testing.assert_array_equal(read(path).X, X)
    with h5py.File(path, "a") as file:
        file["other"] = 2 * X
    np.testing.assert_array_equal(read(path, key="/other").X, 2 * X)
    with pytest.raises(InvalidInputError, match=r"holds several: deep/X, other\. Name one"):
        read(path)


def test_no_dataset(tmp_path):
    h5py.File(tmp_path / "data.hdf5", "w").close()
    with pytest.raises(InvalidInputError, match="holds no matrix of numbers"):
        read(tmp_path / "data.hdf5")


def test_10x_h5(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        by_cell = sparse.csc_array(X.T)
        group = file.create_group("matrix")
        group["data"], group["indices"], group["indptr"], group["shape"] = by_cell.data, by_cell.indices, by_cell.indptr, X.T.shape
        group["barcodes"] = np.array(CELLS, dtype="S")
        group["features/id"] = np.array([each for each, _ in FEATURES], dtype="S")
        group["features/name"] = np.array([each for _, each in FEATURES], dtype="S")
    check(read(tmp_path / "data.h5"))


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("features", ["features.tsv", "genes.tsv"])
def test_10x_folder(tmp_path, suffix, features):
    def put(name, content):
        (tmp_path / f"{name}{suffix}").write_bytes(gzip.compress(content) if suffix else content)

    mmwrite(tmp_path / "counts.mtx", sparse.coo_array(X.T))
    put("matrix.mtx", (tmp_path / "counts.mtx").read_bytes())
    put("barcodes.tsv", "\n".join(CELLS).encode())
    put(features, "".join(f"{id_}\t{name}\tGene Expression\n" for id_, name in FEATURES).encode())
    data = read(tmp_path)
    assert data.X.format == "csr"
    check(data)
    put("barcodes.tsv", CELLS[0].encode())
    with pytest.raises(InvalidInputError, match="has 1 names of rows for 2 rows"):
        read(tmp_path)


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"is a folder without matrix.mtx \(also \.gz\)"):
        read(tmp_path)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array], ids=["dense", "csr", "csc", "array"])
def test_h5ad_x_layer_and_raw(tmp_path, kind):
    adata = anndata.AnnData(kind(X), obs=pd.DataFrame(index=CELLS), var=pd.DataFrame(index=GENES))
    adata.raw = adata.copy()
    adata = adata[:, :2].copy()
    adata.layers["counts"] = kind(3 * X[:, :2])
    adata.write_h5ad(tmp_path / "data.h5ad")
    check(read(tmp_path / "data.h5ad"), X[:, :2], columns=GENES[:2])
    check(read(tmp_path / "data.h5ad", key="counts"), 3 * X[:, :2], columns=GENES[:2])
    check(read(tmp_path / "data.h5ad", key="raw"))
    with pytest.raises(InvalidInputError, match="holds no layer 'count'; it holds counts"):
        read(tmp_path / "data.h5ad", key="count")


def test_h5ad_raw_of_old_files(tmp_path):
    adata = anndata.AnnData(X, obs=pd.DataFrame(index=CELLS), var=pd.DataFrame(index=GENES))
    adata.raw = adata.copy()
    adata.X = X - 1.0
    adata.write_h5ad(tmp_path / "data.h5ad")
    with h5py.File(tmp_path / "data.h5ad", "r+") as file:  # as anndata wrote it before 0.7
        file.move("raw/X", "raw.X")
        file.move("raw/var", "raw.var")
        del file["raw"]
    check(read(tmp_path / "data.h5ad", key="raw"))


def test_h5ad_without_x_or_raw(tmp_path):
    anndata.AnnData(obs=pd.DataFrame(index=CELLS), var=pd.DataFrame(index=GENES)).write_h5ad(tmp_path / "data.h5ad")
    for key, message in ((None, "has no X; name a layer"), ("raw", "has no raw; leave key out"), ("a", "no layer 'a'; it holds none")):
        with pytest.raises(InvalidInputError, match=message):
            read(tmp_path / "data.h5ad", key=key)


def test_h5ad_names_stored_as_categories_or_records(tmp_path):
    path = tmp_path / "data.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = X
        file.create_dataset("obs", data=np.array([(b"AAAC-1", 1), (b"AAAG-1", 2)], dtype=[("index", "S6"), ("n", "i4")]))  # before 0.7
        var = file.create_group("var")
        var.attrs["_index"] = "gene"
        var["gene/categories"], var["gene/codes"] = np.array(GENES[::-1], dtype="S"), np.array([2, 1, 0])
    check(read(path))
    with h5py.File(path, "a") as file:
        del file["var/gene"]
        file["var/gene/values"], file["var/gene/mask"] = np.array(GENES, dtype="S"), np.zeros(3, dtype=bool)
    check(read(path))


def test_indices_out_of_range_are_refused(tmp_path):
    path = tmp_path / "data.h5ad"
    adata = anndata.AnnData(sparse.csr_matrix(X), obs=pd.DataFrame(index=CELLS), var=pd.DataFrame(index=GENES))
    adata.write_h5ad(path)
    with h5py.File(path, "a") as file:
        indices = file["X/indices"][()]
        del file["X/indices"]
        file["X/indices"] = indices + 0.5
    with pytest.raises(InvalidInputError, match="a sparse matrix with indices of dtype float64"):
        read(path)
    with h5py.File(path, "a") as file:
        del file["X/indices"]
        file["X/indices"] = indices + 999
    with pytest.raises(InvalidInputError, match=r"data\.h5ad: is damaged: the indices of a sparse matrix of shape \(2, 3\)"):
        read(path)


@pytest.mark.parametrize("name", ["data.h5", "data.h5ad"])
def test_truncated_hdf5_is_refused(tmp_path, name):
    path = tmp_path / name
    with h5py.File(path, "w") as file:
        file["X"] = X
    whole = path.read_bytes()
    for length in (1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InvalidInputError, match=f"{name} cannot be read"):
            read(path)


def test_h5ad_without_layers_says_so(tmp_path):
    anndata.AnnData(np.ones((2, 2))).write_h5ad(tmp_path / "data.h5ad")
    with h5py.File(tmp_path / "data.h5ad", "a") as file:
        file.pop("layers", None)
    with pytest.raises(InvalidInputError, match="holds no layer 'counts'; it holds none"):
        read(tmp_path / "data.h5ad", key="counts")


def test_a_name_that_is_missing_is_not_the_last_category(tmp_path):
    anndata.AnnData(np.ones((2, 2))).write_h5ad(tmp_path / "data.h5ad")
    with h5py.File(tmp_path / "data.h5ad", "a") as file:
        del file["obs/_index"]
        file["obs/_index/categories"] = ["a", "b"]
        file["obs/_index/codes"] = np.array([0, -1], dtype=np.int8)
    assert read(tmp_path / "data.h5ad").row_names.tolist() == ["a", "nan"]


# -- other files ----------------------------------------------------------------------------------------------------------------


def by_hand(path):
    """A dataset in a group."""
    with h5py.File(path, "w") as file:
        file["group/X"] = X


def of_10x(path):
    with h5py.File(path, "w") as file:
        by_cell = sparse.csc_array(X.T)
        file["matrix/data"], file["matrix/indices"], file["matrix/indptr"] = by_cell.data, by_cell.indices, by_cell.indptr
        file["matrix/shape"], file["matrix/barcodes"] = X.T.shape, np.array(CELLS, dtype="S")
        file["matrix/features/id"] = file["matrix/features/name"] = np.array(GENES, dtype="S")


def of_anndata(path):
    with h5py.File(path, "w") as file:
        by_cell = sparse.csr_array(X)
        for place in ("X", "layers/counts"):
            group = file.create_group(place)
            group["data"], group["indices"], group["indptr"] = by_cell.data, by_cell.indices, by_cell.indptr
            group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", X.shape
        for table, names in (("obs", CELLS), ("var", GENES)):
            file.create_group(table).attrs["_index"] = "names"
            file[f"{table}/names/categories"], file[f"{table}/names/codes"] = np.array(names, dtype="S"), np.arange(len(names))


def of_matlab(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        columns = sparse.csc_array(X)
        file.create_group("X").attrs["MATLAB_sparse"] = np.uint64(X.shape[0])
        file["X/data"], file["X/ir"], file["X/jc"] = columns.data, columns.indices.astype("u8"), columns.indptr.astype("u8")
    banner = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    path.write_bytes(banner.ljust(512, b"\0") + path.read_bytes()[512:])


def external(file, place, values, outside):
    values.tofile(outside)
    file.create_dataset(place, values.shape, values.dtype, external=[(str(outside), 0, values.nbytes)])


def virtual(file, place, values, outside):
    with h5py.File(outside, "w") as other:
        other["x"] = values
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[...] = h5py.VirtualSource(str(outside), "x", values.shape)
    file.create_virtual_dataset(place, layout)


def linked(file, place, values, outside):
    with h5py.File(outside, "w") as other:
        other["x"] = values
    file[place] = h5py.ExternalLink(str(outside), "/x")


def linked_softly(file, place, values, outside):
    linked(file, "elsewhere", values, outside)
    file[place] = h5py.SoftLink("/elsewhere")


@pytest.mark.parametrize(
    ("lead", "message"),
    [
        (external, "{!r} is external: its numbers lie in another file"),
        (virtual, "{!r} is a virtual dataset, put together from other files"),
        (linked, "{!r} is a link to another file"),
        (linked_softly, "'elsewhere' is a link to another file"),
    ],
)
@pytest.mark.parametrize(
    ("name", "put", "place", "key"),
    [
        ("data.h5", by_hand, "group/X", None),
        ("data.hdf5", by_hand, "group/X", "group/X"),
        ("data.h5", of_10x, "matrix/data", None),
        ("data.h5", of_10x, "matrix/shape", None),
        ("data.h5", of_10x, "matrix/barcodes", None),
        ("data.h5", of_10x, "matrix/features/name", None),
        ("data.h5ad", of_anndata, "X/indices", None),
        ("data.h5ad", of_anndata, "layers/counts/data", "counts"),
        ("data.h5ad", of_anndata, "obs/names/categories", None),
        ("data.h5ad", of_anndata, "var/names/codes", None),
        ("data.mat", of_matlab, "X/ir", None),
    ],
)
def test_no_other_file_is_read(tmp_path, name, put, place, key, lead, message):
    path = tmp_path / name
    put(path)
    found = read(path, key=key).X
    np.testing.assert_array_equal(found.toarray() if sparse.issparse(found) else found, X)
    with h5py.File(path, "a") as file:
        values = file[place][()]
        del file[place]
        lead(file, place, values, tmp_path / "outside")
    with pytest.raises(InvalidInputError, match=f"{name}: {message.format(place)}; only what lies in the file itself is read"):
        read(path, key=key)


def test_bytes_of_another_file_do_not_come_back_as_numbers(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(range(64)))
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file.create_dataset("x", (8, 8), "u1", external=[(str(tmp_path / "secret"), 0, 64)])
    with pytest.raises(InvalidInputError, match="'x' is external"):
        read(tmp_path / "data.h5")


def test_links_within_a_file_are_followed(tmp_path):
    path = tmp_path / "data.h5ad"
    of_anndata(path)
    with h5py.File(path, "a") as file:
        del file["layers/counts"]
        file["layers/counts"] = h5py.SoftLink("/X")
        file["round"] = file["/"]
        file["nowhere"] = h5py.SoftLink("/no/such/thing")
    check(read(path, key="counts"))
