"""Arrays of numpy, scipy and MATLAB."""

import io
from contextlib import suppress

import h5py
import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat, mmwrite, savemat

from orthonmf.exceptions import InvalidInputError
from orthonmf.io import read

X = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])


def same(found, expected=X):
    dense = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_array_equal(dense, expected)


@pytest.mark.parametrize("dtype", ["f8", ">f4", "i2", "?"])
def test_npy_is_read_as_it_is(tmp_path, dtype):
    np.save(tmp_path / "data.npy", X.astype(dtype))
    data = read(tmp_path / "data.npy")
    same(data.X, X.astype(dtype))
    assert isinstance(data.X, np.memmap)  # not loaded
    assert data.row_names is None
    assert data.column_names is None


def test_npz_of_scipy_is_sparse_and_that_of_numpy_is_not(tmp_path):
    sparse.save_npz(tmp_path / "sparse.npz", sparse.csc_array(X))
    np.savez_compressed(tmp_path / "dense.npz", X=X, y=np.arange(2))
    found = read(tmp_path / "sparse.npz").X
    assert found.format == "csr"
    same(found)
    same(read(tmp_path / "dense.npz").X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_npz_of_every_sparse_form(tmp_path, form):
    sparse.save_npz(tmp_path / "data.npz", sparse.coo_array(X).asformat(form))
    same(read(tmp_path / "data.npz").X)


@pytest.mark.parametrize(
    ("indices", "pointers"),
    [
        ([0, 1, 2], [0, 2, 99]),
        ([0, 1, 2], [0, 99, 3]),
        ([0, 1, 2], [1, 2, 3]),
        ([0, 1, 3], [0, 2, 3]),
        ([0, -1, 2], [0, 2, 3]),
        ([], [0, 99, 0]),  # of which scipy's own check says nothing
        ([0, 1, 2], [0, 3]),
    ],
)
def test_no_pointer_is_followed_out_of_a_sparse_matrix(tmp_path, indices, pointers):
    content = {"data": np.ones(len(indices)), "indices": np.array(indices, dtype=int), "indptr": np.array(pointers)}
    np.savez(tmp_path / "data.npz", format=b"csr", shape=(2, 3), **content)
    with pytest.raises(InvalidInputError, match=r"data\.npz"):
        read(tmp_path / "data.npz")


def test_of_several_arrays_one_is_named(tmp_path):
    np.savez(tmp_path / "data.npz", train=X, test=2 * X)
    same(read(tmp_path / "data.npz", key="test").X, 2 * X)
    with pytest.raises(InvalidInputError, match=r"holds several: test, train\. Name one with key"):
        read(tmp_path / "data.npz")
    with pytest.raises(InvalidInputError, match=r"holds no matrix 'tset'; it holds test, train\."):
        read(tmp_path / "data.npz", key="tset")


def test_objects_are_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    np.save(tmp_path / "data.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "data.npz", X=np.array([[Trap()]], dtype=object))
    for name in ("data.npy", "data.npz"):
        with pytest.raises(InvalidInputError, match=name):
            read(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


def test_nobody_is_told_to_unpickle(tmp_path):
    (tmp_path / "data.npy").write_bytes(b"no array" * 99)
    with pytest.raises(InvalidInputError, match=r"data\.npy cannot be read: the magic string .*Is it complete, and what its name says\?$"):
        read(tmp_path / "data.npy")


@pytest.mark.parametrize("suffix", ["npy", "npz", "mat"])
def test_every_truncation_is_refused(tmp_path, suffix):
    path = tmp_path / f"data.{suffix}"
    {"npy": lambda: np.save(path, X), "npz": lambda: np.savez(path, X=X), "mat": lambda: savemat(path, {"X": X})}[suffix]()
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InvalidInputError, match=f"data.{suffix}"):
            read(path)


def test_a_size_that_the_file_does_not_have_is_refused(tmp_path):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)})
    (tmp_path / "data.npy").write_bytes(head.getvalue() + bytes(64))
    with pytest.raises(InvalidInputError, match=r"data.npy"):
        read(tmp_path / "data.npy")


@pytest.mark.parametrize("content", [np.arange(3.0), np.zeros((2, 2, 2)), np.array(1.0), np.array([["a"]]), np.ones((2, 2)) * 1j])
def test_only_a_matrix_of_numbers_will_do(tmp_path, content):
    np.save(tmp_path / "data.npy", content)
    with pytest.raises(InvalidInputError, match=r"expected a matrix \(2-D\) of numbers"):
        read(tmp_path / "data.npy")


@pytest.mark.parametrize("name", ["data.mtx", "data.mtx.gz"])
def test_matrix_market_sparse_and_dense(tmp_path, name):
    import gzip

    for matrix in (sparse.coo_array(X), X):
        buffer = io.BytesIO()
        mmwrite(buffer, matrix)
        (tmp_path / name).write_bytes(gzip.compress(buffer.getvalue()) if name.endswith("gz") else buffer.getvalue())
        found = read(tmp_path / name).X
        assert sparse.issparse(found) == sparse.issparse(matrix)
        same(found)


@pytest.mark.parametrize(
    "content",
    [
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.000000\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\0002 1 1\n",
    ],
    ids=["an entry missing", "a row too far", "a word", "a zero byte"],
)
def test_bad_matrix_market_is_refused(tmp_path, content):
    (tmp_path / "data.mtx").write_text(content)
    with pytest.raises(InvalidInputError, match=r"data\.mtx(: is not text| cannot be read: .*\. Is it complete)"):
        read(tmp_path / "data.mtx")


@pytest.mark.parametrize(
    ("banner", "body", "message"),
    [
        ("array real general", "0 1\n", "holds a matrix of 0 rows and 1 columns; expected at least one of each"),
        ("array real general", "0 1\n1.0\n", "holds a matrix of 0 rows and 1 columns"),
        ("array real general", "0 0\n", "holds a matrix of 0 rows and 0 columns"),
        ("coordinate real general", "0 3 0\n", "holds a matrix of 0 rows and 3 columns"),
        ("array real symmetric", "2 3\n1\n1\n1\n1\n1\n", "holds a symmetric matrix of 2 rows and 3 columns; expected as many"),
        ("array real skew-symmetric", "1 1\n1\n", "holds 'matrix array real skew-symmetric', which is not read"),
        ("array pattern general", "1 1\n1\n", "which is not read"),
        ("coordinate complex general", "1 1 1\n1 1 1 1\n", "'matrix coordinate complex general', which is not read"),
        ("coordinate real", "1 1 1\n1 1 1\n", "'matrix coordinate real', which is not read"),
        ("coordinate real general", "2 2 99999999999\n1 1 1\n", "99999999999 entries do not fit into 6 bytes"),
        ("array real general", "99999 99999\n1\n", "9999800001 entries do not fit into 2 bytes"),
        ("coordinate real general", "2 2\n1 1 1\n", "has the size '2 2'; expected the numbers of rows, columns and entries"),
        ("coordinate real general", "-2 2 1\n1 1 1\n", "has the size '-2 2 1'"),
        ("coordinate real general", f"{'9' * 19} 2 1\n1 1 1\n", "has the size '999"),
        ("coordinate real general", "% nothing\n\n", "is cut off: there is no line with the size"),
    ],
)
def test_what_would_end_the_reader_of_matrix_market_is_refused_before(tmp_path, banner, body, message):
    (tmp_path / "data.mtx").write_text(f"%%MatrixMarket matrix {banner}\n{body}")
    with pytest.raises(InvalidInputError, match=message):
        read(tmp_path / "data.mtx")


def test_matrix_market_without_a_banner_is_refused(tmp_path):
    (tmp_path / "data.mtx").write_text("1 2 3\n")
    with pytest.raises(InvalidInputError, match=r"is no MatrixMarket file: its first line does not start with %%MatrixMarket"):
        read(tmp_path / "data.mtx")


def test_comments_blank_lines_and_capitals_of_matrix_market(tmp_path):
    text = "%%MatrixMarket MATRIX Coordinate Pattern symmetric\r\n% one\r\n\r\n% two\r\n  2\t2 1\r\n2 1\r\n"
    (tmp_path / "data.mtx").write_text(text, newline="")
    same(read(tmp_path / "data.mtx").X, [[0, 1], [1, 0]])
    (tmp_path / "data.mtx").write_text(text.replace("\n2 1\r", "\n2 9\r"), newline="")
    with pytest.raises(InvalidInputError, match="Line 6"):  # as the user counts
        read(tmp_path / "data.mtx")


def test_a_matrix_market_file_cut_off_anywhere_never_ends_the_process(tmp_path):
    buffer = io.BytesIO()
    mmwrite(buffer, sparse.coo_array(X))
    whole = buffer.getvalue().rstrip() + b" \n"
    for length in range(1, len(whole)):
        (tmp_path / "data.mtx").write_bytes(whole[:length])
        with suppress(InvalidInputError):
            same(read(tmp_path / "data.mtx").X)


@pytest.mark.parametrize("options", [{"format": "4"}, {}, {"do_compression": True}], ids=["4", "5", "7"])
def test_mat_of_every_version(tmp_path, options):
    savemat(tmp_path / "dense.mat", {"X": X, "note": "words"}, **options)
    savemat(tmp_path / "sparse.mat", {"X": sparse.csc_matrix(X), "t": np.arange(3.0)}, **options)
    same(read(tmp_path / "dense.mat").X)
    same(read(tmp_path / "sparse.mat", key="X").X)
    with pytest.raises(InvalidInputError, match="holds several: X, t"):
        read(tmp_path / "sparse.mat")


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
def test_mat_of_every_kind_of_number(tmp_path, dtype):
    values = np.arange(15).reshape(3, 5).astype(dtype)
    others = {"z": values * 1j, "cell": np.array([1, "a"], dtype=object), "struct": {"a": values}, "cube": np.zeros((2, 2, 2))}
    savemat(tmp_path / "data.mat", {"long name": values, **others})
    np.testing.assert_array_equal(read(tmp_path / "data.mat").X, values)
    assert read(tmp_path / "data.mat").X.dtype == loadmat(tmp_path / "data.mat")["long name"].dtype


@pytest.mark.parametrize("value", [0, 177, 255])
@pytest.mark.parametrize("matrix", [X, sparse.csc_matrix(X)], ids=["dense", "sparse"])
def test_a_damaged_mat_is_refused_or_read_but_never_ends_the_process(tmp_path, matrix, value):
    path = tmp_path / "data.mat"
    savemat(path, {"X": matrix})
    whole = path.read_bytes()
    for at in range(124, len(whole)):
        path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
        with suppress(InvalidInputError):
            assert read(path).X.shape != ()


def test_mat_of_version_7_3_is_transposed_back(tmp_path):
    path = tmp_path / "data.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["dense"] = X.T  # MATLAB's columns come first
        columns = sparse.csc_array(X)
        group = file.create_group("sparse")
        group.attrs["MATLAB_sparse"] = np.uint64(X.shape[0])
        group["data"], group["ir"], group["jc"] = columns.data, columns.indices.astype("u8"), columns.indptr.astype("u8")
        empty = file.create_group("empty")
        empty.attrs["MATLAB_sparse"] = np.uint64(2)
        empty["jc"] = np.zeros(4, dtype="u8")
        file.create_group("#refs#")
    banner = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    path.write_bytes(banner.ljust(512, b"\0") + path.read_bytes()[512:])
    same(read(path, key="dense").X)
    same(read(path, key="sparse").X)
    same(read(path, key="empty").X, np.zeros((2, 3)))
