"""``--missing ignore``: what says that it is missing is read so, by fit and by all that use its model."""

import json

import numpy as np
import pytest

from orthonmf import ONMF
from orthonmf.cli import main
from orthonmf.exceptions import InvalidInputError
from orthonmf.io import Columns, read

LINES = ["who,a,b,c", "p1,1,2,", "p2,2,NA,0.2", "p3,0,1,3", "p4,.,2,6", "p5,3,6,0.3"]


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_fit_predict_verify_and_report(answers, tmp_path, capfd):
    out = tmp_path / "parts"
    assert main(["fit", str(answers), "-k", "2", "--missing", "ignore", "--out", str(out), "--quiet"]) == 0
    assert json.loads((out / "summary.json").read_text())["asked"]["missing"] == "ignore"
    model = ONMF.load(out / "model.onmf")
    assert model.missing == "ignore"
    np.testing.assert_array_equal(model.labels_, [0, 0, 1, 1, 0])
    capfd.readouterr()
    assert main(["verify", str(out), str(answers)]) == 0
    assert "Every claim holds." in capfd.readouterr().out
    assert main(["predict", str(out), str(answers)]) == 0
    assert [line.split(",")[1] for line in capfd.readouterr().out.splitlines()[1:]] == ["0", "0", "1", "1", "0"]
    assert main(["report", str(out), str(answers), "--force"]) == 0
    assert "Missing numbers" in (out / "report.html").read_text()


def test_without_the_option_they_are_refused(answers, tmp_path, capfd):
    assert main(["fit", str(answers), "-k", "2", "--out", str(tmp_path / "parts")]) == 2
    assert "line 2, column 4 ('c') is '': a missing value." in (told := capfd.readouterr().err)
    assert "--missing ignore" in told


@pytest.mark.parametrize("steps", ["l2", "max,tfidf"])
def test_steps_that_need_every_number_are_refused(answers, tmp_path, capfd, steps):
    command = ["fit", str(answers), "-k", "2", "--missing", "ignore", "--normalize", steps, "--out", str(tmp_path / "parts")]
    assert main(command) == 2
    assert f"{steps.split(',')[-1]!r} needs every number of a row" in capfd.readouterr().err


def test_a_scale_of_each_feature_is_that_of_what_is_there(answers, tmp_path):
    command = ["fit", str(answers), "-k", "2", "--missing", "ignore", "--normalize", "max", "--out", str(tmp_path / "parts"), "--quiet"]
    assert main(command) == 0
    np.testing.assert_array_equal(ONMF.load(tmp_path / "parts" / "model.onmf")._preparation.numbers, [[3, 6, 6]])


def test_read_gives_nan_where_it_is_asked_for(answers):
    with pytest.raises(InvalidInputError, match="a missing value"):
        read(answers)
    data = read(answers, columns=Columns(missing=True))
    np.testing.assert_array_equal(data.X, [[1, 2, np.nan], [2, np.nan, 0.2], [0, 1, 3], [np.nan, 2, 6], [3, 6, 0.3]])
    assert data.row_names.tolist() == ["p1", "p2", "p3", "p4", "p5"]
    kept = read(answers, columns=Columns(keep=("b",), names="who", missing=True))
    np.testing.assert_array_equal(kept.X[:, 0], [2, np.nan, 1, 2, 6])


def test_a_first_line_with_holes_is_no_header(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text("1,,2\n3,4,5\n")
    data = read(path, columns=Columns(missing=True))
    assert data.column_names is None
    np.testing.assert_array_equal(data.X, [[1, np.nan, 2], [3, 4, 5]])


def test_tables_of_arrow(tmp_path):
    pyarrow, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    feather.write_feather(pyarrow.table({"a": [1.0, None], "b": [2, 3]}), str(tmp_path / "t.feather"))
    with pytest.raises(InvalidInputError, match="--missing ignore"):
        read(tmp_path / "t.feather")
    np.testing.assert_array_equal(read(tmp_path / "t.feather", columns=Columns(missing=True)).X, [[1, 2], [np.nan, 3]])
