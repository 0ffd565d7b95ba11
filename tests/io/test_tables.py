"""Parquet in, tables out."""

import csv

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orthonmf.exceptions import InvalidInputError
from orthonmf.io import as_csv, read, read_names, write_table
from orthonmf.io.table import guarded, unguarded

FRAME = pd.DataFrame({"a": [1.0, 0.0], "b": [2.5, 4.0]}, index=["g1", "g2"])
COLUMNS = [("item", np.array(["x, y", 'q"'])), ("component", np.array([0, 1])), ("scale", np.array([0.1, 1e-300]))]


def test_a_table_by_hand():
    assert as_csv(COLUMNS) == 'item,component,scale\n"x, y",0,0.1\n"q""",1,1e-300\n'
    assert as_csv([("a", np.float32([0.1]))]) == "a\n0.1\n"  # and not 0.10000000149011612


def test_parquet_of_pandas_with_words_or_numbers_as_index(tmp_path):
    path = tmp_path / "data.parquet"
    for frame, rows in ((FRAME, ["g1", "g2"]), (FRAME.reset_index(drop=True), None), (FRAME.set_index(pd.Index([7, 9])), ["7", "9"])):
        frame.to_parquet(path)
        data = read(path)
        np.testing.assert_array_equal(data.X, FRAME.to_numpy())
        assert data.column_names.tolist() == ["a", "b"]
        assert (None if data.row_names is None else data.row_names.tolist()) == rows


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (pd.Index(["g1", "g2"], name="gene"), ["g1", "g2"]),
        (pd.Index([9, 4], name="patient"), ["9", "4"]),
        (pd.MultiIndex.from_tuples([("T1", 9), ("T1", 4)], names=["time", "patient"]), ["T1, 9", "T1, 4"]),
    ],
    ids=["words", "numbers", "levels"],
)
def test_an_index_of_pandas_with_a_name_is_no_column_of_the_matrix(tmp_path, index, rows):
    FRAME.set_index(index).to_parquet(tmp_path / "data.parquet")
    data = read(tmp_path / "data.parquet")
    np.testing.assert_array_equal(data.X, FRAME.to_numpy())
    assert (data.row_names.tolist(), data.column_names.tolist()) == (rows, ["a", "b"])


def test_parquet_of_polars(tmp_path):
    pl.DataFrame({"gene": ["g1", "g2"], "n": [1, 2], "on": [True, False]}).write_parquet(tmp_path / "data.parquet")
    data = read(tmp_path / "data.parquet")
    np.testing.assert_array_equal(data.X, [[1, 1], [2, 0]])
    assert (data.row_names.tolist(), data.column_names.tolist()) == (["g1", "g2"], ["n", "on"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0], "b": ["x"]}, "column 'b' is of type"),
        ({"a": [1.0, None]}, "column 'a' has no value in row 2; fill it, .* --drop a"),
        ({"a": ["x"]}, "there is no column of numbers"),
    ],
)
def test_parquet_of_anything_else_is_refused(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    with pytest.raises(InvalidInputError, match=message):
        read(tmp_path / "data.parquet")


def test_truncated_parquet_is_refused(tmp_path):
    FRAME.to_parquet(tmp_path / "data.parquet")
    whole = (tmp_path / "data.parquet").read_bytes()
    (tmp_path / "data.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInputError, match=r"data\.parquet cannot be read"):
        read(tmp_path / "data.parquet")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_table_reads_back_to_the_bit_and_writes_the_same_bytes(tmp_path, suffix, dtype):
    values = np.random.default_rng(0).lognormal(sigma=9, size=(20, 3)).astype(dtype)
    names = [f"i{j}" for j in range(20)]
    paths = [tmp_path / f"{i}.{suffix}" for i in range(2)]
    for path in paths:
        write_table(path, [("item", names), *((str(name), values[:, j]) for j, name in enumerate("abc"))])
    data = read(paths[0])
    np.testing.assert_array_equal(data.X.astype(dtype), values)
    assert data.row_names.tolist() == names
    assert read_names(paths[0]).tolist() == names
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_names_are_read_back_as_text(tmp_path):
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"table.{suffix}"
        for names in (["x, y", 'q"'], ["0", "1"]):
            write_table(path, [("item", names), *COLUMNS[1:]])
            assert read_names(path).tolist() == names


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_names_with_ends_of_lines_are_read_back(tmp_path, suffix):
    names = ["a\rb", "c\nd", "e\r\n", "", " f", '"', ";"]
    write_table(tmp_path / f"t.{suffix}", [("item", names), ("component", np.arange(7))])
    assert read_names(tmp_path / f"t.{suffix}").tolist() == names


@pytest.mark.parametrize(
    ("name", "content"), [("t.csv", b"item\nM\xfcller\n"), ("t.csv", b"item\n" + b"x" * 140_000), ("t.parquet", b"PAR1")]
)
def test_names_of_a_damaged_table_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=rf"{name} is no table that can be read"):
        read_names(tmp_path / name)


def test_blank_lines_are_no_names(tmp_path):
    (tmp_path / "t.csv").write_text("item,component\na,0\n\nb,1\n\n")
    assert read_names(tmp_path / "t.csv").tolist() == ["a", "b"]


def test_a_name_that_repeats_is_numbered_in_parquet(tmp_path):
    write_table(tmp_path / "t.parquet", [("a", [1]), ("a", [2]), ("a.1", [3]), ("a", [4])])
    assert pq.read_table(tmp_path / "t.parquet").column_names == ["a", "a.1", "a.1.1", "a.2"]


def test_a_table_of_another_kind_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"t\.xlsx is no name for a table; expected one that ends in \.csv or \.parquet"):
        write_table(tmp_path / "t.xlsx", COLUMNS)
    assert not list(tmp_path.iterdir())


DANGEROUS = ["=1+1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "'=1", "''-x", "-", "-inf", "+1e5x", 'a;=1"', "b\t=1"]


@pytest.mark.parametrize("name", DANGEROUS)
def test_no_cell_of_words_is_a_formula_and_every_name_is_read_back(tmp_path, name):
    path = tmp_path / "t.csv"
    write_table(path, [("item", [name, "z"]), (name, np.array([-1.5, 2.0])), ("b", np.array([1, 2]))])
    with path.open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[0] in "=+-@\t\r\n＝＋－＠" and cell != "-1.5"]
    assert read_names(path).tolist() == [name, "z"]
    data = read(path)
    if name == name.strip():  # the ends of names are trimmed where a matrix is read
        assert (data.row_names[0], data.column_names[0]) == (name, name)
    np.testing.assert_array_equal(data.X, [[-1.5, 1], [2, 2]])


@pytest.mark.parametrize("name", ["-5", "+0.5", "-1e-3", "12", "O'Brien", "'quoted'", "a=b", "x-1"])
def test_numbers_and_harmless_words_are_written_as_they_are(name):
    assert as_csv([("item", [name])]) == f"item\n{name}\n"


def test_what_another_separator_would_part_is_in_quotes():
    assert as_csv([("item", ["a;=1", "b\t=1"])]) == 'item\n"a;=1"\n"b\t=1"\n'


@pytest.mark.parametrize("name", ["'=1", "''=1", "=1", "'a", "'-5", "-5"])
def test_apostrophes_are_kept_apart(name):
    assert unguarded(guarded(name)) == name
