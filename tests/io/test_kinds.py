"""The kinds of files that hold a table: every one is written by the library for it, and read to the same names and numbers."""

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zstandard

from orthonmf.exceptions import InvalidInputError
from orthonmf.io import Columns, Data, apart, read

FRAME = pd.DataFrame({"a": [1.0, 0.0], "b": [2.5, 1 / 3]}, index=pd.Index(["g1", "ä"], name="gene"))
TEXT = FRAME.to_csv().encode()


def zipped(*names, content=TEXT):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in names:
            archive.writestr(name, content)
    return buffer.getvalue()


def stream(path):
    table = pa.Table.from_pandas(FRAME)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


PACKERS = {
    ".csv.gz": gzip.compress,
    ".csv.bz2": bz2.compress,
    ".csv.xz": lzma.compress,
    ".csv.zst": zstandard.ZstdCompressor().compress,
    ".zip": lambda content: zipped("data.csv", content=content),
}
WRITERS = {
    **{suffix: lambda path, pack=pack: path.write_bytes(pack(TEXT)) for suffix, pack in PACKERS.items()},
    ".tsv.zst": lambda path: path.write_bytes(zstandard.compress(FRAME.to_csv(sep="\t").encode())),
    ".CSV.XZ": lambda path: path.write_bytes(lzma.compress(TEXT)),
    ".csv.zip": lambda path: FRAME.to_csv(path),
    ".of macOS.zip": lambda path: path.write_bytes(zipped("folder/data.csv", "__MACOSX/folder/._data.csv")),
    ".xlsx": FRAME.to_excel,
    ".feather": lambda path: FRAME.to_feather(path),
    ".zstd.feather": lambda path: FRAME.to_feather(path, compression="zstd"),
    ".arrow": stream,
    ".of polars.arrow": lambda path: pl.from_pandas(FRAME.reset_index()).write_ipc(path),
}


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("reader", [read, apart.read], ids=["here", "apart"])
def test_every_kind_holds_the_same_table(tmp_path, suffix, reader):
    path = tmp_path / f"data{suffix}"
    WRITERS[suffix](path)
    data = reader(path)
    np.testing.assert_array_equal(data.X, FRAME.to_numpy())
    assert (data.row_names.tolist(), data.column_names.tolist()) == (["g1", "ä"], ["a", "b"])


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT * 99)[:-9])
    with pytest.raises(InvalidInputError, match=rf"data{suffix} cannot be read: .*Is it complete"):
        read(path)


@pytest.mark.parametrize("suffix", [".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zst"])
def test_several_streams_in_a_file_are_one_text(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT[:9]) + PACKERS[suffix](TEXT[9:]))
    np.testing.assert_array_equal(read(path).X, FRAME.to_numpy())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped("a.csv", "b.csv"), r"holds 2 files \(a\.csv, b\.csv\); expected one"),
        (zipped(), r"holds 0 files \(none\); expected one"),
        (zipped("a.pkl"), r"holds 'a\.pkl'; expected a file in it that ends in \.csv, \.tsv, \.txt"),
    ],
)
def test_an_archive_without_one_table_is_refused(tmp_path, content, message):
    (tmp_path / "data.zip").write_bytes(content)
    with pytest.raises(InvalidInputError, match=rf"data\.zip: {message}"):
        read(tmp_path / "data.zip")


def test_an_archive_with_a_password_is_refused(tmp_path):
    content = bytearray(zipped("a.csv"))
    for sign, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(sign) + place] |= 1  # says that it is locked
    (tmp_path / "data.zip").write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"a\.csv in it is locked with a password; take it out first"):
        read(tmp_path / "data.zip")


# -- sheets -------------------------------------------------------------------------------------------------------------------


def sheet(path, *rows, **others):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for title, more in others.items():
        new = book.create_sheet(title)
        for row in more:
            new.append(row)
    book.save(path)
    return path


def test_the_first_sheet_or_the_one_that_is_asked_for(tmp_path):
    path = sheet(tmp_path / "data.xlsx", ["a", "b"], [1, 2], counts=[["c"], [7]])
    assert read(path).X.tolist() == [[1, 2]]
    assert read(path, key="counts").column_names.tolist() == ["c"]
    with pytest.raises(InvalidInputError, match=r"data\.xlsx: holds no sheet 'x'; it holds Sheet, counts"):
        read(path, key="x")


def test_what_people_leave_in_sheets(tmp_path):
    path = sheet(tmp_path / "data.xlsx", ["# measured on Monday"], [], ["id", "a", "on", None], [7, 0.1, True, " "], [], ["8", "2", False])
    data = read(path, columns=Columns(names="id"))
    assert (data.X.tolist(), data.row_names.tolist(), data.column_names.tolist()) == ([[0.1, 1], [2, 0]], ["7", "8"], ["a", "on"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["a", "b"], [1, 2], [3, None]], r"line 3, column 2 \('b'\) is '': a missing value"),
        ([["a", "b"], [1, "#N/A"]], r"line 2, column 2 \('b'\) is '#N/A': a missing value"),
        ([["a", "b"], [1, "=A2+1"]], r"line 2, column 2 \('b'\) is '': a missing value"),  # never calculated
        ([["a", "b"], [1, "#DIV/0!"]], r"line 2, column 2 \('b'\) is '#DIV/0!', not a number"),
        ([["a"], [1, 2, 3]], "line 2 has 3 columns, those before 1"),
        ([], "only blank lines"),
    ],
)
def test_cells_that_are_no_numbers_are_named(tmp_path, rows, message):
    with pytest.raises(InvalidInputError, match=message):
        read(sheet(tmp_path / "data.xlsx", *rows))


# -- columns ------------------------------------------------------------------------------------------------------------------


MIXED = pd.DataFrame({"id": [7, 9], "a": [1.0, 2.0], "kind, all": ["x", "y"], "b": [3.0, 4.0]})
PUT = {
    ".csv": lambda path: MIXED.to_csv(path, index=False),
    ".xlsx": lambda path: MIXED.to_excel(path, index=False),
    ".parquet": lambda path: MIXED.to_parquet(path),
    ".feather": lambda path: MIXED.to_feather(path),
}


@pytest.mark.parametrize("suffix", PUT)
@pytest.mark.parametrize(
    ("columns", "rows", "names", "X"),
    [
        (Columns(drop=("kind, all",)), None, ["id", "a", "b"], [[7, 1, 3], [9, 2, 4]]),
        (Columns(drop=("kind, all",), names="id"), ["7", "9"], ["a", "b"], [[1, 3], [2, 4]]),
        (Columns(drop=("id",), names="kind, all"), ["x", "y"], ["a", "b"], [[1, 3], [2, 4]]),
        (Columns(keep=("b", "a")), None, ["a", "b"], [[1, 3], [2, 4]]),
        (Columns(keep=("b",), names="kind, all"), ["x", "y"], ["b"], [[3], [4]]),
    ],
)
@pytest.mark.parametrize("reader", [read, apart.read], ids=["here", "apart"])
def test_columns_are_chosen_by_name(tmp_path, suffix, columns, rows, names, X, reader):
    PUT[suffix](tmp_path / f"data{suffix}")
    data = reader(tmp_path / f"data{suffix}", columns=columns)
    np.testing.assert_array_equal(data.X, X)
    assert data.column_names.tolist() == names
    assert (None if data.row_names is None else data.row_names.tolist()) == rows


@pytest.mark.parametrize("suffix", PUT)
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(), r"column .*'kind, all'.* --drop '\"kind, all\"', or .* --id-column '\"kind, all\"'"),
        (Columns(drop=("c", "a", "d")), "--drop: there is no column 'c', 'd'; there are 'id', 'a', 'kind, all', 'b'"),
        (Columns(keep=("c",)), "--keep: there is no column 'c'"),
        (Columns(names="c"), "--id-column: there is no column 'c'"),
        (Columns(keep=("a",), drop=("a",)), "no column of numbers is left; take fewer names into --drop, or more into --keep"),
    ],
)
def test_columns_that_cannot_be_chosen_are_refused(tmp_path, suffix, columns, message):
    PUT[suffix](tmp_path / f"data{suffix}")
    with pytest.raises(InvalidInputError, match=message):
        read(tmp_path / f"data{suffix}", columns=columns)


def test_a_name_over_two_columns_chooses_neither(tmp_path):
    (tmp_path / "data.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(InvalidInputError, match="--drop: the name 'a' stands over columns 1 and 3; give each a name of its own"):
        read(tmp_path / "data.csv", columns=Columns(drop=("a",)))


@pytest.mark.parametrize("name", ["data.npy", "data.csv"])
def test_columns_without_names_cannot_be_chosen(tmp_path, name):
    (tmp_path / "data.csv").write_text("1,2\n")
    np.save(tmp_path / "data.npy", np.eye(2))
    with pytest.raises(InvalidInputError, match=rf"{name}: its columns have no names.*--names FILE"):
        read(tmp_path / name, columns=Columns(drop=("a",)))


@pytest.mark.parametrize(("values", "names"), [([1.0, 20.0], ["1", "20"]), ([0.5, 1.0], ["0.5", "1.0"])])
def test_numbers_as_names(values, names):
    X = np.column_stack([values, [3, 4]])
    assert Columns(names="a").of(Data(X, column_names=["a", "b"])).row_names.tolist() == names
