"""rank, predict, verify and report: what is done with data and models."""

import json
import re

import numpy as np
import pytest

from orthonmf import ONMF
from orthonmf.cli import main
from orthonmf.datasets import make_nested
from orthonmf.io import read


def test_rank_by_hand(matrix, capfd):
    assert main(["rank", str(matrix)]) == 0
    out = capfd.readouterr().out.splitlines()
    assert out[0].split() == ["components", "BIC", "agreement", "p-value", "persistence"]
    assert [line.split()[0] for line in out[1:3]] == ["1", "2"]
    assert [line.endswith("  ←") for line in out[1:4]] == [False, True, False]
    model = ONMF().fit(read(matrix).X)
    assert out[2].split()[1:4] == ["0.0", f"{model.agreement_[1]:.2f}", f"{model.p_values_[1]:.2f}"]
    assert out[-1].startswith("Chosen: 2 components. Converged. 2 components stand out")


def test_rank_is_what_auto_takes(tmp_path, capfd):
    X = make_nested(64, 6, random_state=0).X
    np.save(tmp_path / "data.npy", X)
    assert main(["rank", str(tmp_path / "data.npy"), "--max-components", "8", "--scaling", "none", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    model = ONMF(max_components=8, scaling="none").fit(X)
    assert found["n_components"] == model.n_components_
    assert found["levels"] == model.levels_.tolist()
    rows = found["curve"]
    assert [row["n_components"] for row in rows] == list(range(1, 10))
    assert [row["critical_beta"] for row in rows[1:]] == model.critical_betas_.tolist()
    assert [row["persistence"] for row in rows[1:-1]] == model.persistence_.tolist()
    assert [row["agreement"] for row in rows[:8]] == model.agreement_.tolist()
    assert [row["bic"] for row in rows[:8]] == (model.bic_ - model.bic_.max()).tolist()
    assert {row["n_components"] for row in rows if row["p_value"] is not None} == set(np.flatnonzero(np.isfinite(model.p_values_)) + 1)
    assert [row["n_components"] for row in rows if row["mark"] == "answer"] == [model.n_components_]


def test_rank_of_noise_marks_nothing_but_one(tmp_path, capfd):
    np.save(tmp_path / "data.npy", 20 + np.random.default_rng(0).normal(size=(100, 5)))
    assert main(["rank", str(tmp_path / "data.npy"), "--max-components", "6"]) == 0
    told = capfd.readouterr()
    assert [line.split()[0] for line in told.out.splitlines() if "←" in line] in (["1"], [])  # none where nothing rises above noise
    assert "Nothing stands out" in told.out.splitlines()[-1]
    assert "warning: Nothing stands out" in told.err
    assert "█" not in told.out


def test_rank_of_data_that_never_split(tmp_path, capfd):
    np.save(tmp_path / "data.npy", np.ones((4, 2)))
    assert main(["rank", str(tmp_path / "data.npy")]) == 0
    assert capfd.readouterr().out.startswith("Chosen: 1 component. ")


def test_predict_agrees_with_the_fit(matrix, fitted, tmp_path, capfd):
    assert main(["predict", str(fitted), str(matrix)]) == 0
    assert capfd.readouterr().out == (fitted / "assignments.csv").read_text()
    for name in ("labels.csv", "labels.parquet"):
        assert main(["predict", str(fitted / "model.onmf"), str(matrix), "--out", str(tmp_path / name)]) == 0
        first = (tmp_path / name).read_bytes()
        assert main(["predict", str(fitted), str(matrix), "--out", str(tmp_path / name), "--force"]) == 0
        assert (tmp_path / name).read_bytes() == first
    assert (tmp_path / "labels.csv").read_text() == (fitted / "assignments.csv").read_text()


def test_predict_new_samples(fitted, tmp_path, capfd):
    (tmp_path / "new.csv").write_text("gene,a,b,c\nx,0,0,7\n")
    assert main(["predict", str(fitted), str(tmp_path / "new.csv"), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["sample"] == ["x"]
    assert found["component"] == [0]
    assert found["scale"][0] == pytest.approx(7, rel=1e-3)


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_predict_whatever_the_model_returns_in_python(orthogonal, matrix, tmp_path, capfd):
    X, told = read(matrix).X, []
    models = [ONMF(2, orthogonal=orthogonal, sparse_output=sparse).fit(X) for sparse in (False, False, True)]
    for model in [models[0], models[1].set_output(transform="pandas"), models[2]]:
        model.save(tmp_path / "model.onmf")
        assert main(["predict", str(tmp_path / "model.onmf"), str(matrix)]) == 0
        told.append(capfd.readouterr().out)
    assert told == told[:1] * 3


def test_predict_of_a_model_of_features_gives_the_weights(matrix, tmp_path, capfd):
    folder = tmp_path / "parts"
    assert main(["fit", str(matrix), "-k", "2", "--orthogonal", "features", "--out", str(folder), "--quiet"]) == 0
    assert main(["predict", str(folder), str(matrix), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    expected = ONMF(2, orthogonal="features").fit_transform(read(matrix).X)
    np.testing.assert_array_equal(np.transpose([found["component 0"], found["component 1"]]), expected)


def test_verify_in_words_and_for_scripts(matrix, fitted, capfd):
    assert main(["verify", str(fitted), str(matrix)]) == 0
    out = capfd.readouterr().out
    assert "[ok] each item belongs to one component" in out
    assert out.endswith("Every claim holds.\n")
    assert main(["verify", str(fitted), str(matrix), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["holds"] is True


def test_verify_fails_on_other_data_with_exit_code_3(fitted, tmp_path, capfd):
    other = tmp_path / "other.csv"
    other.write_text("gene,a,b,c\ng1,0,0,1\ng2,2,4,0\ng3,3,0,3\ng4,0,9,5\n")
    assert main(["verify", str(fitted), str(other)]) == 3
    out = capfd.readouterr().out
    assert "[FAILS] every item is in its nearest component" in out
    assert out.endswith("The certificate FAILS.\n")
    assert main(["verify", str(fitted), str(other), "--json"]) == 3
    assert json.loads(capfd.readouterr().out)["holds"] is False


def test_verify_says_when_the_rows_are_others(fitted, tmp_path, capfd):
    (tmp_path / "few.csv").write_text("gene,a,b,c\ng1,1,2,0\n")
    assert main(["verify", str(fitted), str(tmp_path / "few.csv")]) == 3
    assert "has 1 rows, the model was fitted on 4" in capfd.readouterr().err


def test_verify_says_when_the_numbers_are_others(fitted, matrix, capfd):
    assert main(["verify", str(fitted), str(matrix)]) == 0
    assert "in the fit" not in capfd.readouterr().err
    lines = matrix.read_text().splitlines()
    doubled = [",".join([row.split(",")[0], *(str(2 * float(value)) for value in row.split(",")[1:])]) for row in lines[1:]]
    matrix.write_text("\n".join([lines[0], *doubled]) + "\n")
    assert main(["verify", str(fitted), str(matrix)]) == 3
    told = capfd.readouterr()
    assert "[FAILS] what the model stores is what the data give" in told.out
    assert "in the fit: other data, or other weights" in told.err


@pytest.mark.parametrize("named", [True, False])
def test_whole_numbers_that_may_be_names_are_spoken_of(named, tmp_path, capfd):
    head = f"{'' if named else 'shop'},a,b"
    rows = [f"{100 + i},{i % 2 + 1},{(i + 1) % 2 * 3}" for i in range(12)]
    (tmp_path / "ids.csv").write_text("\n".join([head, *rows]) + "\n")
    assert main(["fit", str(tmp_path / "ids.csv"), "-k", "2", "--out", str(tmp_path / "parts"), "--quiet"]) == 0
    assert ("column 'shop' has another whole number in each row" in capfd.readouterr().err) == (not named)


@pytest.mark.parametrize("command", ["predict", "verify"])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("gene,a,b\ng1,1,2\n", "has no column 'c', which the model was fitted on"),
        ("gene,x\ng1,1\n", "has no column 'a', 'b', 'c', which the model was fitted on; add what is missing"),
        ("gene,a,b,c,b\ng1,1,2,0,4\n", "has the column 'b' more than once; give each a name of its own"),
        ("1,2\n2,3\n", "has 2 columns of numbers, the model was fitted on 3"),
    ],
)
def test_other_columns_are_refused(command, rows, message, fitted, tmp_path, capfd):
    (tmp_path / "other.csv").write_text(rows)
    assert main([command, str(fitted), str(tmp_path / "other.csv")]) == 2
    assert message in capfd.readouterr().err


def test_the_report_again_is_the_same_report(fitted, matrix, capfd):
    first = (fitted / "report.html").read_bytes()
    assert main(["report", str(fitted)]) == 2
    assert "report.html exists; add --force" in capfd.readouterr().err
    (fitted / "report.html").unlink()
    assert main(["report", str(fitted), str(matrix)]) == 0
    assert (fitted / "report.html").read_bytes() == first


def test_a_report_without_data_says_how_to_have_its_pictures(fitted):
    assert main(["report", str(fitted), "--force"]) == 0
    text = (fitted / "report.html").read_text(encoding="utf-8")
    assert "orthonmf report DIR DATA" in text
    assert 'id="items-plane"' not in text


def test_a_report_of_other_data_is_refused(fitted, matrix, tmp_path, capfd):
    lines = matrix.read_text().splitlines()
    (tmp_path / "other.csv").write_text("\n".join([lines[0], *lines[:0:-1]]))
    before = (fitted / "report.html").read_bytes()
    assert main(["report", str(fitted), str(tmp_path / "other.csv"), "--force"]) == 2
    assert "X is not the data of the fit: its digest differs; give the X of the fit" in capfd.readouterr().err
    assert (fitted / "report.html").read_bytes() == before


def test_a_report_elsewhere_with_another_title(fitted, tmp_path):
    assert main(["report", str(fitted), "--out", str(tmp_path / "talk.html"), "--title", "Cell cycle"]) == 0
    assert "Cell cycle" in (tmp_path / "talk.html").read_text(encoding="utf-8")


def test_a_report_without_tables_or_summary(fitted):
    before = (fitted / "report.html").read_bytes()
    (fitted / "assignments.csv").unlink()
    (fitted / "summary.json").write_text("[]")
    assert main(["report", str(fitted), "--force"]) == 0
    after = (fitted / "report.html").read_bytes()
    assert b"genes.csv" in before
    assert b"genes.csv" not in after


@pytest.mark.parametrize("content", ["", "sample,component,scale\ng1,0,1\n"])
def test_names_that_are_not_the_models_are_refused(fitted, content, capfd):
    (fitted / "assignments.csv").write_text(content)
    assert main(["report", str(fitted), "--force"]) == 2
    assert "items, the model has 4; run orthonmf fit again" in capfd.readouterr().err


@pytest.mark.parametrize(("name", "code"), [("assignments.csv", 2), ("summary.json", 0)])
def test_a_report_from_damaged_files_has_no_traceback(name, code, fitted, capfd):
    (fitted / name).write_bytes(b"[" * 100_000 + b"\n\xfc")
    assert main(["report", str(fitted), "--force"]) == code
    (fitted / name).write_bytes(b"[" * 100_000)
    assert main(["report", str(fitted), "--force"]) == code
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("command", [["predict", "{no}", "{data}"], ["verify", "{no}", "{data}"], ["report", "{no}"]])
def test_no_model_there(command, matrix, tmp_path, capfd):
    words = [word.format(no=tmp_path / "none", data=matrix) for word in command]
    assert main(words) == 2
    wanted = "is not a folder; expected one" if command[0] == "report" else "does not exist; expected a model"
    assert f"none {wanted} that orthonmf fit wrote" in capfd.readouterr().err
    (tmp_path / "none").mkdir()
    assert main(words) == 2
    assert "model.onmf does not exist" in capfd.readouterr().err


def test_a_damaged_model_is_refused(matrix, fitted, capfd):
    path = fitted / "model.onmf"
    path.write_bytes(path.read_bytes()[:-9])
    for command in (["predict", str(path), str(matrix)], ["verify", str(path), str(matrix)], ["report", str(fitted), "--force"]):
        assert main(command) == 2
        err = capfd.readouterr().err
        assert err.startswith("orthonmf: ")
        assert err.count("\n") == 1


def test_columns_that_the_model_does_not_know_may_hold_anything(tmp_path, capfd):
    (tmp_path / "plain.csv").write_text("a,b,c\n1,2,0\n2,4,0\n0,0,3\n0,0,1\n")
    (tmp_path / "more.csv").write_text("change,a,b,c\n-1,1,2,0\n-2,2,4,0\n3,0,0,3\n-4,0,0,1\n")
    assert main(["fit", str(tmp_path / "plain.csv"), "-k", "2", "--out", str(tmp_path / "parts"), "--quiet"]) == 0
    assert main(["verify", str(tmp_path / "parts"), str(tmp_path / "more.csv")]) == 0
    assert main(["predict", str(tmp_path / "parts"), str(tmp_path / "more.csv"), "--out", str(tmp_path / "labels.csv")]) == 0
    assert "has the column 'change', which the model does not know" in capfd.readouterr().err
    assert main(["fit", str(tmp_path / "more.csv"), "-k", "2", "--out", str(tmp_path / "other")]) == 2
    assert "column 1 ('change')" in capfd.readouterr().err


def test_python_loads_the_folder_of_a_fit(fitted):
    np.testing.assert_array_equal(ONMF.load(fitted).labels_, ONMF.load(fitted / "model.onmf").labels_)


def test_a_model_of_counts_is_a_start_for_others(tmp_path, capfd):
    counts = np.random.default_rng(0).poisson(np.repeat([[9.0, 1, 1], [1, 9, 1]], 20, axis=0))
    for name, rows in (("first", counts[::2]), ("second", counts)):
        (tmp_path / f"{name}.csv").write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in rows.tolist()))
    command = ["--loss", "kullback-leibler", "--out"]
    assert main(["fit", str(tmp_path / "first.csv"), "-k", "2", *command, str(tmp_path / "one")]) == 0
    assert re.search(r"Divergence 0\.\d+ for each count", capfd.readouterr().out)
    assert main(["fit", str(tmp_path / "second.csv"), "--init", str(tmp_path / "one"), *command, str(tmp_path / "two")]) == 0
    assert ONMF.load(tmp_path / "two").n_components_ == 2
