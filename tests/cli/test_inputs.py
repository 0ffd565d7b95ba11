"""Data as they are: files of every kind, standard input, columns by name, matrices the other way round."""

import io
import json
import shlex
import sys
from glob import glob

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from orthonmf import ONMF
from orthonmf.cli import main
from orthonmf.io import read

pytest.importorskip("typer")

ROWS = "# a survey\nname,town,a,b,c\ng1,x,1,2,0\ng2,y,2,4,0\ng3,x,0,0,3\ng4,y,0,0.1,5\n"


@pytest.fixture
def survey(tmp_path):
    """The matrix of ``matrix`` with a column of words."""
    path = tmp_path / "survey.csv"
    path.write_text(ROWS)
    return path


def given(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def refused(capfd):
    """The one line on standard error."""
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("orthonmf: ")
    assert err.count("\n") == 1
    return err


def table(matrix):
    return pd.read_csv(matrix, index_col=0)


KINDS = {
    "genes.xlsx": lambda frame, path: frame.to_excel(path),
    "genes.feather": lambda frame, path: frame.to_feather(path),
    "genes.csv.bz2": lambda frame, path: frame.to_csv(path),
    "genes.tsv.xz": lambda frame, path: frame.to_csv(path, sep="\t"),
    "genes.csv.zst": lambda frame, path: frame.to_csv(path),
    "genes.csv.zip": lambda frame, path: frame.to_csv(path),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_fitted_and_verified_alike(name, matrix, fitted, tmp_path, capfd):
    path = tmp_path / name
    KINDS[name](table(matrix), path)
    assert main(["fit", str(path), "-k", "2", "--out", str(tmp_path / "again"), "--quiet"]) == 0
    assert (tmp_path / "again" / "assignments.csv").read_bytes() == (fitted / "assignments.csv").read_bytes()
    assert main(["verify", str(fitted), str(path)]) == 0


def test_standard_input_for_every_command(matrix, fitted, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    text = matrix.read_text()
    for command in (["fit", "-", "-k", "2"], ["rank", "-"], ["predict", "parts", "-"], ["verify", "parts", "-"]):
        given(monkeypatch, text)
        assert main([*command, "--json"]) == 0
        json.loads(capfd.readouterr().out)
    assert (tmp_path / "stdin-onmf" / "assignments.csv").read_bytes() == (fitted / "assignments.csv").read_bytes()
    assert json.loads((tmp_path / "stdin-onmf" / "summary.json").read_text())["data"] == "stdin"


def test_standard_input_that_is_no_matrix(monkeypatch, capfd):
    given(monkeypatch, "a,b\n1,NA\n")
    assert main(["rank", "-"]) == 2
    assert refused(capfd) == (
        "orthonmf: standard input: line 2, column 2 ('b') is 'NA': a missing value. Fill it, with 0 if that is meant, or fit what is "
        "there (on the command line, fit --missing ignore), or leave out its line, or its column with --drop b.\n"
    )


# -- columns ------------------------------------------------------------------------------------------------------------------


def test_what_the_refusal_says_to_type_helps(survey, tmp_path, capfd):
    command = ["fit", str(survey), "-k", "2", "--out", str(tmp_path / "out"), "--quiet"]
    assert main(command) == 2
    told = refused(capfd)
    assert "line 3, column 2 ('town') is 'x', not a number" in told
    option = told[told.index("--drop") :].split(", or")[0]
    assert main([*command, *shlex.split(option)]) == 0


@pytest.mark.parametrize(
    ("options", "rows", "columns"),
    [
        ("--drop town", ["g1", "g2", "g3", "g4"], ["a", "b", "c"]),
        ("--drop town,b", ["g1", "g2", "g3", "g4"], ["a", "c"]),
        ("--keep c,a", ["g1", "g2", "g3", "g4"], ["a", "c"]),
        ("--drop name --id-column town", ["x", "y", "x", "y"], ["a", "b", "c"]),
        ("--keep b,c --id-column a", ["1", "2", "0", "0"], ["b", "c"]),
    ],
)
def test_columns_by_name(options, rows, columns, survey, tmp_path):
    assert main(["fit", str(survey), "-k", "2", "--out", str(tmp_path / "out"), "--quiet", *options.split()]) == 0
    assert ONMF.load(tmp_path / "out" / "model.onmf").feature_names_in_.tolist() == columns
    assert pd.read_csv(tmp_path / "out" / "assignments.csv", dtype=str)["sample"].tolist() == rows


@pytest.mark.parametrize("command", ["fit", "rank", "predict", "verify", "compare"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--drop", "town,age"], "survey.csv: --drop: there is no column 'age'; there are 'name', 'town', 'a', 'b', 'c'."),
        (["--keep", "age"], "survey.csv: --keep: there is no column 'age'"),
        (["--id-column", "age"], "survey.csv: --id-column: there is no column 'age'"),
        (["--drop", ""], "--drop '' is not usable; expected names of columns with commas between (a,b)"),
        (["--keep", "a,,b"], "--keep 'a,,b' is not usable"),
        (["--drop", "town", "--names", "none.txt"], "--names none.txt does not exist"),
    ],
)
def test_columns_that_are_not_there(command, options, message, survey, fitted, tmp_path, capfd):
    models = [str(fitted)] if command in ("predict", "verify") else []
    more = {"fit": ["--out", str(tmp_path / "out")], "compare": ["-k", "2"]}.get(command, [])
    assert main([command, *models, str(survey), *more, *options]) == 2
    assert message in refused(capfd)


def test_a_comparison_of_some_columns_is_that_of_a_file_with_them(survey, matrix, tmp_path, monkeypatch, capfd):
    def errors(*words):
        assert main(["compare", *words, "-k", "2", "--methods", "onmf", "apx", "--runs", "1", "--json"]) == 0
        found = json.loads(capfd.readouterr().out)
        assert (found["n_components"], found["orthogonal"], found["runs"], found["files"]) == (2, "samples", 1, [])
        return {each["method"]: [value for name, value in each.items() if name.startswith("error")] for each in found["methods"]}

    expected = errors(str(matrix))
    assert set(expected) == {"onmf", "apx"}
    assert all(expected.values())
    assert errors(str(survey), "--drop", "town") == expected
    given(monkeypatch, matrix.read_text())
    assert errors("-") == expected
    table(matrix).T.to_csv(tmp_path / "turned.csv")
    assert errors(str(tmp_path / "turned.csv"), "--transpose") == expected
    np.savez(tmp_path / "two.npz", X=read(matrix).X, Y=np.eye(3))
    assert errors(str(tmp_path / "two.npz"), "--key", "X") == expected


def test_a_comparison_of_some_columns_goes_on_where_it_stopped(survey, tmp_path, monkeypatch, capfd):
    command = ["compare", str(survey), "--drop", "town", "-k", "2", "--methods", "apx", "--runs", "1", "--out", str(tmp_path / "out")]
    assert main([*command, "--json"]) == 0
    first = json.loads(capfd.readouterr().out)
    assert {path.rsplit(".")[-1] for path in first["files"]} >= {"csv", "md", "txt"}
    assert main([*command, "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == first  # the same seconds: nothing ran again


# -- rows and columns exchanged, and names from a file -------------------------------------------------------------------------


def test_a_transposed_file_is_the_same_fit(matrix, fitted, tmp_path, capfd):
    table(matrix).T.to_csv(tmp_path / "turned.csv")
    path, out = str(tmp_path / "turned.csv"), tmp_path / "again"
    assert main(["fit", path, "--transpose", "-k", "2", "--out", str(out), "--quiet"]) == 0
    assert (out / "assignments.csv").read_bytes() == (fitted / "assignments.csv").read_bytes()
    assert main(["verify", str(fitted), path, "--transpose"]) == 0
    capfd.readouterr()
    assert main(["predict", str(fitted), path, "--transpose"]) == 0
    assert capfd.readouterr().out == (fitted / "assignments.csv").read_text()


@pytest.mark.parametrize("name", ["plain.npy", "plain.mtx"])
def test_names_from_a_file(name, matrix, tmp_path, capfd):
    from scipy.io import mmwrite
    from scipy.sparse import coo_array

    X = read(matrix).X
    np.save(tmp_path / "plain.npy", X)
    mmwrite(tmp_path / "plain.mtx", coo_array(X))
    (tmp_path / "names.txt").write_text("a\nb, all\nc\n\n")
    out = tmp_path / "out"
    command = ["fit", str(tmp_path / name), "-k", "2", "--out", str(out), "--quiet", "--names", str(tmp_path / "names.txt")]
    assert main([*command, "--drop", '"b, all"']) == 0
    assert ONMF.load(out / "model.onmf").feature_names_in_.tolist() == ["a", "c"]
    assert main([*command, "--force", "--id-column", "a"]) == 0
    assert pd.read_csv(out / "assignments.csv")["sample"].tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb\n", "names.txt holds 2 names, {data} has 3 columns; expected one for each"),
        (b"a\n\nc\n", "names.txt: line 2 is blank; expected a name in each line"),
        (b"a\nb\na\n", "names.txt: the name 'a' stands in lines 1 and 3; give each column a name of its own"),
        (b"a\n\xff\nb\n", "names.txt is no text in UTF-8"),
        (None, "names.txt does not exist; expected a text file with a name in each line"),
    ],
)
def test_names_that_do_not_fit(content, message, tmp_path, capfd):
    data = tmp_path / "plain.npy"
    np.save(data, np.eye(3))
    if content is not None:
        (tmp_path / "names.txt").write_bytes(content)
    assert main(["rank", str(data), "--names", str(tmp_path / "names.txt")]) == 2
    assert message.format(data=data) in refused(capfd)


def test_names_for_columns_that_have_some(matrix, tmp_path, capfd):
    (tmp_path / "names.txt").write_text("x\ny\nz\n")
    assert main(["rank", str(matrix), "--names", str(tmp_path / "names.txt")]) == 2
    assert "has names of its columns ('a', 'b', 'c'); leave --names out" in refused(capfd)


def test_columns_without_names_cannot_be_dropped(tmp_path, capfd):
    np.save(tmp_path / "plain.npy", np.eye(3))
    assert main(["rank", str(tmp_path / "plain.npy"), "--drop", "a"]) == 2
    assert "its columns have no names, which --drop, --keep and --id-column ask for; name them with --names FILE" in refused(capfd)


def test_a_name_over_two_columns_is_told(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "twice.csv").write_text("name,a,b,a\ng1,1,2,0\ng2,2,4,0\ng3,0,0,3\ng4,0,0.1,5\n")
    assert main(["fit", "twice.csv", "-k", "2", "--quiet"]) == 0
    assert "note: 1 name of columns stands more than once, 'a' over columns 1 and 3 of numbers" in capfd.readouterr().err


def test_a_folder_of_texts_says_how_words_become_numbers(tmp_path, capfd, monkeypatch):
    for number, text in enumerate(["red green blue", "green blue red", "apple pear plum", "plum pear apple"]):
        (tmp_path / f"{number}.txt").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["fit", str(tmp_path)]) == 2
    told = refused(capfd)
    assert "is a folder of texts (4 that end in .txt or .md), not of numbers." in told
    line = told[told.index("make_pipeline(") :].rstrip(".\n").replace("ONMF()", "ONMF(2)")
    names = {"make_pipeline": make_pipeline, "TfidfVectorizer": TfidfVectorizer, "ONMF": ONMF, "glob": glob}
    assert eval(line, names)[-1].labels_.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])


# -- columns of a model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["predict", "verify"])
def test_columns_are_matched_by_name(command, matrix, fitted, tmp_path, capfd):
    assert main([command, str(fitted), str(matrix)]) == 0
    expected = capfd.readouterr()
    assert expected.err == ""
    frame = table(matrix)
    frame[["c", "a", "b"]].to_csv(tmp_path / "other.csv")
    assert main([command, str(fitted), str(tmp_path / "other.csv")]) == 0
    assert capfd.readouterr() == expected
    frame.assign(d=1, e=2)[["e", "c", "a", "d", "b"]].to_csv(tmp_path / "more.csv")
    assert main([command, str(fitted), str(tmp_path / "more.csv")]) == 0
    told = capfd.readouterr()
    assert told.out == expected.out
    assert told.err == (
        f"orthonmf: note: {tmp_path / 'more.csv'} has the column 'e', 'd', which the model does not know and which is left out.\n"
    )


def test_cells_that_were_centred(tmp_path, capfd, monkeypatch):
    import anndata

    monkeypatch.chdir(tmp_path)
    counts = anndata.AnnData(np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.1, 5.0]]))
    cells = counts.copy()
    cells.raw, cells.X = counts, counts.X - 1.0
    cells.write_h5ad("cells.h5ad")
    assert main(["fit", "cells.h5ad", "-k", "2"]) == 2
    assert "cells.h5ad has negative numbers, the least -1: they were centred or scaled. Take those from before, --key raw" in refused(capfd)
    assert main(["fit", "cells.h5ad", "-k", "2", "--key", "raw", "--quiet"]) == 0
