"""Files read by a process of their own: the same data, and a process that may die."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import zipfile

import h5py
import numpy as np
import pytest
import zstandard
from scipy import sparse
from scipy.io import savemat

from orthonmf.exceptions import InvalidInputError
from orthonmf.io import Columns, apart, write_table
from orthonmf.io import read as read_here
from orthonmf.io.apart import read, read_names

X = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
posix = pytest.mark.skipif(sys.platform == "win32", reason="the kernel has no such limit")
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel keeps no such limit")


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["X"] = X
    return tmp_path / "data.h5"


def of_10x(path):
    path.mkdir()
    (path / "matrix.mtx").write_text("%%MatrixMarket matrix coordinate integer general\n3 2 3\n1 1 1\n2 1 2\n3 2 3\n")
    (path / "barcodes.tsv").write_text("cell\nzelle ä\n", encoding="utf-8")
    (path / "features.tsv").write_text("g1\tone\ng2\ttwo\ng3\tthree\n")


@pytest.mark.parametrize(
    ("name", "put"),
    [("data.mat", lambda path: savemat(path, {"X": X.astype(">f4")})), ("folder", of_10x)],
    ids=["dense by columns", "sparse with names"],
)
def test_what_is_read_apart_is_what_is_read_here(tmp_path, name, put):
    put(tmp_path / name)
    here, there = (reader(tmp_path / name) for reader in (read_here, read))
    assert sparse.issparse(there.X) == sparse.issparse(here.X)
    for one, other in zip(parts(here.X), parts(there.X), strict=True):
        np.testing.assert_array_equal(one, other)
        assert (one.dtype, one.strides) == (other.dtype, other.strides)
    for field in ("row_names", "column_names"):
        one, other = (getattr(data, field) for data in (here, there))
        assert (one is None and other is None) or one.tolist() == other.tolist()


def parts(X):
    return (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)


def test_names_of_a_table_read_apart(tmp_path):
    for suffix in ("csv", "parquet"):
        write_table(tmp_path / f"t.{suffix}", [("item", ["a, b", "ä"]), ("component", [0, 1])])
        assert read_names(tmp_path / f"t.{suffix}").tolist() == ["a, b", "ä"]


def test_a_key_and_an_error_pass_from_one_process_to_the_other(path):
    np.testing.assert_array_equal(read(path, key="X").X, X)
    with pytest.raises(InvalidInputError, match=r"data\.h5: holds no matrix 'Y'; it holds X\.$"):
        read(path, key="Y")


def test_no_process_is_started_for_text_for_npy_and_for_what_is_not_there(tmp_path, monkeypatch):
    def started(*args, **options):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", started)
    (tmp_path / "data.csv").write_text("1,2\n")
    np.save(tmp_path / "data.npy", X)
    assert read(tmp_path / "data.csv").X.tolist() == [[1, 2]]
    assert isinstance(read(tmp_path / "data.npy").X, np.memmap)
    with pytest.raises(InvalidInputError, match=r"none\.h5 does not exist"):
        read(tmp_path / "none.h5")


@posix
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGFPE", "SIGABRT", "SIGKILL"])
def test_a_reader_that_dies_is_an_error_that_says_of_what(path, monkeypatch, name):
    monkeypatch.setattr(apart, "PROGRAM", f"import os, signal; os.kill(os.getpid(), signal.{name})")
    with pytest.raises(InvalidInputError, match=rf"data\.h5 cannot be read: its reader died \({name}\)\. It is damaged, or needs"):
        read(path)


@pytest.mark.parametrize(
    ("size", "answer"),
    [(0, ""), (9, "{"), (33, '{"arrays": [["<f8", [9], false]]}'), (33, '{"arrays": [["|O8", [1], false]]}')],
    ids=["none", "a head cut off", "an array cut off", "objects"],
)
def test_an_answer_that_is_not_whole_is_no_answer(path, monkeypatch, size, answer):
    content = size.to_bytes(8, "big") + answer.encode()
    monkeypatch.setattr(apart, "PROGRAM", f"import os; os.write(1, {content!r}); os._exit(7)")
    with pytest.raises(InvalidInputError, match=r"its reader died \(exit code 7\)"):
        read(path)


@posix
def test_a_reader_that_hangs_is_ended(path, monkeypatch):
    monkeypatch.setattr(apart, "PROGRAM", with_reader("lambda *path, **key: time.sleep(600)"))
    monkeypatch.setenv("ORTHONMF_READ_SECONDS", "0.2")
    with pytest.raises(InvalidInputError, match=r"it took longer than 0\.2 s\. .* set ORTHONMF_READ_SECONDS to more"):
        read(path)


@linux
def test_a_reader_that_takes_too_much_memory_is_refused_it(path, monkeypatch):
    with h5py.File(path, "a") as file:
        file.create_dataset("large", (2**17, 2**10), "f4")  # half a GiB that nobody wrote
    monkeypatch.setenv("ORTHONMF_READ_GIB", "0.5")
    with pytest.raises(InvalidInputError, match=r"data\.h5 does not fit in memory: .*may take 0\.5 GiB; ORTHONMF_READ_GIB sets another"):
        read(path, key="large")


MIB = b"1\n" * 2**19


def archive(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("data.csv", content)
    return buffer.getvalue()


@linux
@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("data.csv.gz", lambda: gzip.compress(MIB, 1) * 256),
        ("data.csv.bz2", lambda: bz2.compress(MIB, 1) * 256),
        ("data.csv.xz", lambda: lzma.compress(MIB, preset=0) * 256),
        ("data.csv.zst", lambda: zstandard.compress(MIB * 256)),
        ("data.zip", lambda: archive(MIB * 256)),
    ],
)
def test_compressed_text_may_take_no_more_memory_than_others(tmp_path, monkeypatch, name, packed):
    (tmp_path / name).write_bytes(packed())
    monkeypatch.setenv("ORTHONMF_READ_GIB", "0.25")
    with pytest.raises(InvalidInputError, match=rf"{name} does not fit in memory: .*may take 0\.25 GiB; ORTHONMF_READ_GIB sets"):
        read(tmp_path / name)


@pytest.mark.parametrize("content", [b"id\ta\tb\n7\t1\t2\n", b"id,a,b\n7,1,2\n", b"# x\nid;a;b\n7;1,0;2\n"])
def test_a_dash_is_text_from_standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    data = read("-", columns=Columns(names="id"))
    assert (data.X.tolist(), data.row_names.tolist(), data.column_names.tolist()) == ([[1, 2]], ["7"], ["a", "b"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input: is empty; expected a matrix of numbers as text"),
        (b"a,b\n1,x\n", r"standard input: line 2, column 2 \('b'\) is 'x'"),
        (b"PK\3\4\0\0", "standard input: is not text"),
        (b"1,2\n", "standard input: its columns have no names"),
    ],
)
def test_what_is_wrong_with_standard_input_is_said(monkeypatch, content, message):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(InvalidInputError, match=message):
        read("-", columns=Columns(names="a"))


def test_standard_input_that_is_closed_is_empty(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InvalidInputError, match="standard input: is empty"):
        read("-")


@pytest.mark.parametrize("value", ["", "x", "0", "-1", "nan", "inf"])
@pytest.mark.parametrize("name", ["ORTHONMF_READ_SECONDS", "ORTHONMF_READ_GIB"])
def test_an_unusable_limit_is_refused_by_name(path, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInputError, match=f"{name}='{value}' is not usable; expected a number above 0"):
        read(path)


def test_a_module_beside_the_data_is_not_imported(path, monkeypatch):
    (path.parent / "h5py.py").write_text("open('imported', 'w')\n")
    monkeypatch.chdir(path.parent)
    np.testing.assert_array_equal(read(path.name).X, X)
    assert not (path.parent / "imported").exists()


def test_no_process_is_left_when_the_reading_is_interrupted(path, monkeypatch):
    processes = []

    class Noted(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            processes.append(self)

    def interrupted(stream):
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(apart, "PROGRAM", "import time; time.sleep(600)")
    monkeypatch.setattr(apart._Answer, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read(path)
    assert [process.returncode is None for process in processes] == [False]


def test_what_a_library_prints_does_not_break_into_the_answer(path, monkeypatch):
    monkeypatch.setattr(apart, "PROGRAM", with_reader("lambda *path, **key: (os.write(1, b'noise'), read_here(*path, **key))[1]"))
    np.testing.assert_array_equal(read(path).X, X)


def with_reader(reader):
    """The program of the process that reads, with another reader."""
    start, name, end = apart.PROGRAM.partition("serve(")
    lines = "import os, time", "from orthonmf.io import apart, read as read_here", f"apart.read_here = {reader}"
    return start + "\n".join(lines) + f"\n{name}{end}"
