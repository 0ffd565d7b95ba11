"""CSV and TSV: names, headers, quotes, separators and encodings, and the place of what is wrong."""

import gzip
import re

import numpy as np
import pandas as pd
import pytest

from orthonmf.exceptions import InvalidInputError
from orthonmf.io import read

ROWS = "gene,a,b\ng1,1,2.5\ng2,0,4\n"
X = [[1.0, 2.5], [0.0, 4.0]]


def written(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_names_and_numbers_of_a_csv(tmp_path):
    data = read(written(tmp_path, ROWS))
    np.testing.assert_array_equal(data.X, X)
    assert data.X.dtype == np.float64
    assert data.row_names.tolist() == ["g1", "g2"]
    assert data.column_names.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.tsv", ROWS.replace(",", "\t")),
        ("data.csv.gz", gzip.compress(ROWS.encode())),
        ("DATA.TSV.GZ", gzip.compress(ROWS.replace(",", "\t").encode())),
        ("data.txt", ROWS.replace(",", "\t")),
        ("data.csv", b"\xef\xbb\xbf" + ROWS.encode()),
        ("data.csv", ROWS.encode("utf-16")),
        ("data.csv", ROWS.replace("\n", "\r\n")),
        ("data.csv", ROWS.replace("\n", "\n\n")),
        ("data.csv", ROWS.rstrip("\n")),
        ("data.csv", ROWS.replace("gene,", ",")),
        ("data.csv", ROWS.replace("gene,", "")),
        ("data.csv", ROWS.replace("g1", '"g1"').replace("2.5", '"2.5"')),
        ("data.csv", ROWS.replace("2.5", " 2.5 ").replace(",b", ", b")),
        ("data.csv", ROWS.replace(",", ";")),
        ("data.csv", ROWS.replace(",", ";").replace(".", ",")),
        ("data.tsv", ROWS.replace(",", "\t").replace(".", ",")),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith(("v", "z", "t", "Z")) else "",
)
def test_every_way_to_write_the_same_table_is_read(tmp_path, name, content):
    data = read(written(tmp_path, content, name))
    np.testing.assert_array_equal(data.X, X)
    assert data.row_names.tolist() == ["g1", "g2"]
    assert data.column_names.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "rows", "columns", "X"),
    [
        ("1,2\n3,4\n", None, None, [[1, 2], [3, 4]]),  # numbers alone
        ("a,b\n1,2\n", None, ["a", "b"], [[1, 2]]),
        ("a\n1\n2\n", None, ["a"], [[1], [2]]),  # one column
        (",a\n0,5\n1,6\n", ["0", "1"], ["a"], [[5], [6]]),  # an index of numbers, as pandas writes it
        ("gene,1,2,3\ng,4,5,6\n", ["g"], ["1", "2", "3"], [[4, 5, 6]]),  # numbered columns
        ("s,400.5,401,401.5,402,402.5\nx,1,2,1,2,1\n", ["x"], ["400.5", "401", "401.5", "402", "402.5"], [[1, 2, 1, 2, 1]]),  # a spectrum
        ("s1,3,1,2\ns2,1,1,1\n", ["s1", "s2"], None, [[3, 1, 2], [1, 1, 1]]),  # names without a header
        ("s1,12,3\ns2,4,4\n", ["s1", "s2"], None, [[12, 3], [4, 4]]),  # which run down, as any two numbers run
        ("s1,9,4,1\ns2,4,4,4\n", ["s1", "s2"], None, [[9, 4, 1], [4, 4, 4]]),
        ("s1,7\ns2,4\n", ["s1", "s2"], None, [[7], [4]]),
        ("s1,7,7,7\ns2,4,4,4\n", ["s1", "s2"], None, [[7, 7, 7], [4, 4, 4]]),
        ("gene,1990,2000,2010\ng,4,5,6\n", ["g"], ["1990", "2000", "2010"], [[4, 5, 6]]),
        ("gene,2,1\ng,4,5\n", ["g"], ["2", "1"], [[4, 5]]),
        ("s1;1,5;1,5\ns2;2,0;3\n", ["s1", "s2"], None, [[1.5, 1.5], [2, 3]]),  # and with decimal commas
        ("1,5;2,5\n", None, None, [[1.5, 2.5]]),
        ('"name, first";b\n"Ann, A.";1.5\n', ["Ann, A."], ["b"], [[1.5]]),  # commas in names are not decimal ones
        ("id,a\n1_1,5\n1_2,6\n", ["1_1", "1_2"], ["a"], [[5], [6]]),  # for Python 1_1 is eleven
        ("a\tb\n1\t5\t6\n", ["1"], ["a", "b"], [[5, 6]]),  # R leaves the head of the names out
        ("g,NaN,2.5,b,c\nx,1,2,3,4\n", ["x"], ["NaN", "2.5", "b", "c"], [[1, 2, 3, 4]]),  # words that look like numbers
        ("a,b\n-0,1e-3\n", None, ["a", "b"], [[0, 1e-3]]),
        ('# by "x", on Monday\n\n # at noon\na,b\n1,2\n', None, ["a", "b"], [[1, 2]]),  # comments
        ("\ufeff# x\r\na,b\r\n1,2\r\n", None, ["a", "b"], [[1, 2]]),
        ("# made\n#OTU ID,s1,s2\nx,1,2\n", ["x"], ["s1", "s2"], [[1, 2]]),  # the last of them is the header
        ("# by x, of y, at z\nyear,1990,1991\nx,1,2\n", ["x"], ["1990", "1991"], [[1, 2]]),  # a sentence is none
        ("# a,b\n1,2\n", None, ["a", "b"], [[1, 2]]),  # of numpy
        ("# a,b\n# c\n1,2\n", None, None, [[1, 2]]),
        ("id,a\n#1,5\n", ["#1"], ["a"], [[5]]),  # under the header nothing is a comment
        ("a,b,c\nTRUE,false,3\nFalse,Yes,4\n", None, ["a", "b", "c"], [[1, 0, 3], [0, 1, 4]]),
        ("a,b\n1,yes\n2,no\n", None, ["a", "b"], [[1, 1], [2, 0]]),  # behind a number
        ("true,false\nfalse,true\n", None, None, [[1, 0], [0, 1]]),
        ("s1,true,2\ns2,no,3\n", ["s1", "s2"], None, [[1, 2], [0, 3]]),
        ("vote,yes,no\nno,1,2\n", ["no"], ["yes", "no"], [[1, 2]]),  # names
    ],
)
def test_what_is_a_name_and_what_a_number(tmp_path, content, rows, columns, X):
    data = read(written(tmp_path, content))
    assert (None if data.row_names is None else data.row_names.tolist()) == rows
    assert (None if data.column_names is None else data.column_names.tolist()) == columns
    np.testing.assert_array_equal(data.X, X)


def test_latin_1_where_it_is_not_utf_8(tmp_path):
    data = read(written(tmp_path, "Gen,größe\nä,1\n".encode("latin-1")))
    assert (data.row_names[0], data.column_names[0]) == ("ä", "größe")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n", "there is no line under the header"),
        ("\n \n", "only blank lines and comments"),
        ("a,b\n1,x\n", r"line 2, column 2 \('b'\) is 'x', not a number; .* leave it out with --drop b, or .* --id-column b"),
        ("a,b\n1,2\n\n\n3,x\n", r"line 5, column 2 \('b'\) is 'x'"),  # blank lines count
        ("g,a\ns,1\nt,\n", r"line 3, column 2 \('a'\) is '': a missing value. Fill it, with 0"),
        ("0.5,x,3\n1,2,3\n", "line 1, column 2 is 'x'"),  # and not a header
        ("a,b\n1,2\nx,3\n", r"line 3, column 1 \('a'\) is 'x'"),
        ("a,b\nNA,2\n3,4\n", r"line 2, column 1 \('a'\) is 'NA'"),  # missing, and no name
        ("a,b\n,2\n3,4\n", r"line 2, column 1 \('a'\) is ''"),
        ("a,b\n1,2\n3\n", "line 3 has 1 columns, those before 2"),
        ("a,b\n1,5,2,5\n", "line 2 has 4 columns, those before 2; expected the same number in each. If its numbers have decimal commas"),
        ("a\n1,5\n2,5\n", "line 2 has 2 columns, those before 1; expected the same number in each. If its numbers have decimal commas"),
        ('a,b\n"1,5","2,5"\n', r"line 2, column 1 \('a'\) is '1,5', not a number; write a decimal comma as a point"),
        ("a;b\n1,5;2.5\n", r"line 2, column 2 \('b'\) is '2.5', not a number; write all numbers with a decimal point"),
        ("a;b\n1.234,5;2\n", r"line 2, column 1 \('a'\) is '1.234,5'"),
        ("a,b\n1,nan\n", r"line 2, column 2 \('b'\) is 'nan': a missing value"),
        ("g,a\ns,1\nt,1e400\n", r"line 3, column 2 \('a'\) is no finite number \(inf\)"),
        *(
            (
                f"g,a b,c\ns,1,2\nt,3,{sign}\n",
                rf"line 3, column 3 \('c'\) is '{re.escape(sign)}': a missing value. Fill it.* with --drop c\.$",
            )
            for sign in ("NA", "N/A", "n/a", "NULL", "null", "None", "", ".", "-", "?", "#N/A", "<NA>")
        ),
        ("g,a b\ns,1\nt,NaN\n", r"line 3, column 2 \('a b'\) is 'nan': a missing value.*, or its column with --drop 'a b'\.$"),
        (
            "1,2\n3,NA\n",
            r"line 2, column 2 is 'NA': a missing value. Fill it, with 0 if that is meant, .*or leave out its line or its column\.$",
        ),
        ("# x\n\n# y\na,b\n1,x\n", r"line 5, column 2 \('b'\) is 'x'"),  # comments count
        ("# x\n#a,b\n1,x\n", r"line 3, column 2 \('b'\) is 'x'"),
        ("# x\n# y\n", "only blank lines and comments"),
        ("a,b\n1,1_000\n", r"line 2, column 2 \('b'\) is '1_000'"),
        ('a,b\n1,"2\n', "line 2: unexpected end of data; are the quotes in pairs"),
        ("a\nx\n", "no column of numbers beside the names"),
        ("a b\n1.0 2.0e+00\n", "line 2 has spaces between its columns, it seems"),
        (b"a,b\n\0\1\0\n", "is not text"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_column(tmp_path, content, message):
    with pytest.raises(InvalidInputError, match=f"data.csv: .*{message}"):
        read(written(tmp_path, content))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("index", [True, False])
def test_what_pandas_writes_is_read_to_the_bit(tmp_path, seed, index):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.lognormal(sigma=20, size=(30, 5)), columns=list("abcde"))
    frame.to_csv(tmp_path / "data.csv", index=index)
    data = read(tmp_path / "data.csv")
    np.testing.assert_array_equal(data.X, frame.to_numpy())
    assert (data.row_names is not None) == index
