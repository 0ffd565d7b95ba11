"""``orthonmf fit``: from a matrix to a model, tables, a summary and a report."""

import json
import re
import warnings

import numpy as np
import pytest
from rich.progress import Progress
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from orthonmf import ONMF
from orthonmf.cli import main
from orthonmf.cli._output import as_json
from orthonmf.io import read
from orthonmf.search.status import Status

FILES = ["assignments.csv", "components.csv", "features.csv", "model.onmf", "report.html", "summary.json"]


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_two_groups_by_hand(matrix, tmp_path, capfd):
    assert main(["fit", str(matrix), "--out", str(tmp_path / "parts")]) == 0
    assert sorted(contents(tmp_path / "parts")) == FILES
    rows = [line.split(",") for line in (tmp_path / "parts" / "assignments.csv").read_text().splitlines()]
    assert [row[:2] for row in rows] == [["sample", "component"], ["g1", "1"], ["g2", "1"], ["g3", "0"], ["g4", "0"]]
    assert float(rows[1][2]) == pytest.approx(np.sqrt(5))  # (1, 2, 0) along (1, 2, 0)/√5
    components = (tmp_path / "parts" / "components.csv").read_text().splitlines()
    assert components[0] == "component,a,b,c"
    np.testing.assert_allclose([float(x) for x in components[2].split(",")], [1, 1 / np.sqrt(5), 2 / np.sqrt(5), 0], atol=1e-9)
    out, err = capfd.readouterr()
    assert "4 × 3: 2 components of samples. Converged. 2 components stand out" in out
    assert "2 samples   b, a" in out
    assert "10 of 10 claims" in out
    assert out.endswith(f"open {tmp_path / 'parts' / 'report.html'}\n")
    assert err == ""  # no bar where there is no terminal


def test_the_table_says_how_sure_each_item_is(tmp_path):
    X = np.random.default_rng(0).gamma(2.0, size=(30, 4))
    (tmp_path / "cloud.csv").write_text("a,b,c,d\n" + "\n".join(",".join(map(repr, row)) for row in X.tolist()))
    assert main(["fit", str(tmp_path / "cloud.csv"), "-k", "3", "--out", str(tmp_path / "parts"), "--quiet"]) == 0
    head, *rows = [line.split(",") for line in (tmp_path / "parts" / "assignments.csv").read_text().splitlines()]
    assert head == ["sample", "component", "scale", "margin", "probability"]
    model = ONMF(3).fit(X)
    np.testing.assert_allclose([float(row[3]) for row in rows], model.margin_, rtol=1e-12)
    own = model.predict_proba(X)[np.arange(30), model.labels_]
    np.testing.assert_allclose([float(row[4]) for row in rows], own, rtol=1e-9)


def test_the_model_is_that_of_python(matrix, fitted):
    model, expected = ONMF.load(fitted / "model.onmf"), ONMF(2).fit(read(matrix).X)
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]


def test_features_are_assigned_by_name(matrix, tmp_path):
    assert main(["fit", str(matrix), "-k", "2", "--orthogonal", "features", "--out", str(tmp_path / "parts"), "--quiet"]) == 0
    rows = [line.split(",") for line in (tmp_path / "parts" / "assignments.csv").read_text().splitlines()]
    assert [row[0] for row in rows] == ["feature", "a", "b", "c"]
    assert rows[0] == ["feature", "component", "scale", "margin"]
    assert rows[1][1] == rows[2][1] != rows[3][1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--capacity", "2"], 2),
        (["--capacity", "0.5"], 0.5),
        (["--capacity", "1,3"], [1, 3]),
        (["--capacity", "0.25,3"], [0.25, 3]),
        (["--min-size", "2"], None),
    ],
)
def test_bounds_are_what_was_written(matrix, tmp_path, options, expected, capfd):
    assert main(["fit", str(matrix), "-k", "2", *options, "--out", str(tmp_path / "parts"), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["asked"]["capacity"] == expected
    assert type(found["asked"]["capacity"]) is type(expected)
    assert sorted(found["counts"]) == ([1, 3] if isinstance(expected, list) else [2, 2])


def test_every_option_reaches_the_estimator(matrix, tmp_path, monkeypatch):
    seen = {}

    def fit(self, X):
        seen.update(self.get_params())
        raise ValueError("seen")

    monkeypatch.setattr(ONMF, "fit", fit)
    options = "-k auto --capacity 3 --min-size 1 --orthogonal features --scaling none --max-components 3 --time-limit 9"
    assert main(["fit", str(matrix), *options.split(), "--out", str(tmp_path / "parts")]) == 1
    expected = {"n_components": "auto", "capacity": 3, "min_size": 1, "orthogonal": "features", "scaling": "none", "max_components": 3}
    assert {**seen, **expected, "time_limit": 9.0} == seen


def test_the_reading_of_the_paper_can_be_asked_for(matrix, tmp_path, capfd):
    assert main(["fit", str(matrix), "-k", "persistence", "--out", str(tmp_path / "parts"), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["asked"]["n_components"] == "persistence"
    assert "persist" in found["status"]
    assert found["levels"] == []
    assert len(found["stability"]) == found["n_components"]


def test_json_is_one_object_and_the_summary(matrix, tmp_path, capfd):
    assert main(["fit", str(matrix), "--out", str(tmp_path / "parts"), "--json"]) == 0
    out, err = capfd.readouterr()
    found = json.loads(out)
    assert err == ""
    assert found.pop("folder") == str(tmp_path / "parts")
    assert found == json.loads((tmp_path / "parts" / "summary.json").read_text())
    assert found["n_components"] == 2
    assert found["certificate"]["holds"]
    assert found["files"] == FILES


def test_json_has_no_number_that_json_does_not_know():
    assert json.loads(as_json({"a": np.inf, "b": [np.nan, 1.0], "c": np.array([np.inf])})) == {"a": None, "b": [None, 1.0], "c": [None]}


def test_quiet_says_nothing(matrix, tmp_path, capfd):
    assert main(["fit", str(matrix), "--out", str(tmp_path / "parts"), "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_same_command_twice_writes_the_same_bytes(matrix, tmp_path, form):
    folder = tmp_path / "parts"
    command = ["fit", str(matrix), "--out", str(folder), "--format", form, "--quiet", "--force"]
    assert main(command) == 0
    first = contents(folder)
    other = tmp_path / "elsewhere"
    other.mkdir()
    moved = other / matrix.name
    moved.write_bytes(matrix.read_bytes())
    assert main([*command[:1], str(moved), *command[2:]]) == 0  # nor does the place of the data matter
    assert contents(folder) == first
    assert not any(str(tmp_path).encode() in content for content in first.values())


def test_tables_of_the_other_form_do_not_stay(matrix, fitted):
    assert main(["fit", str(matrix), "--out", str(fitted), "--format", "parquet", "--force", "--quiet"]) == 0
    assert sorted(contents(fitted)) == [
        "assignments.parquet",
        "components.parquet",
        "features.parquet",
        "model.onmf",
        "report.html",
        "summary.json",
    ]
    assert read(fitted / "components.parquet").column_names.tolist()[-3:] == ["a", "b", "c"]


def test_without_names_there_are_numbers(tmp_path):
    X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])
    sparse.save_npz(tmp_path / "data.npz", sparse.csr_array(X))
    assert main(["fit", str(tmp_path / "data.npz"), "-k", "2", "--out", str(tmp_path / "parts"), "--quiet"]) == 0
    lines = (tmp_path / "parts" / "assignments.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["sample", "0", "1", "2"]
    assert (tmp_path / "parts" / "components.csv").read_text().startswith("component,0,1,2\n")


def test_the_folder_is_named_after_the_data(matrix, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "genes.csv", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["folder"] == "genes-onmf"
    assert sorted(contents(tmp_path / "genes-onmf")) == FILES


def test_a_warning_is_a_line(tmp_path, capfd):
    np.save(tmp_path / "data.npy", np.ones((4, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert main(["fit", str(tmp_path / "data.npy"), "-k", "2", "--out", str(tmp_path / "parts")]) == 0
    err = capfd.readouterr().err
    assert err.startswith("orthonmf: warning: Found 1 distinct components where 2 were asked for")
    assert err.count("\n") == 1


def test_a_terminal_sees_beta_and_components(matrix, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    # The annealing of four samples is over before it is told of, and before the bar is drawn again.
    monkeypatch.setattr("orthonmf.progress.TOLD_EVERY", 0.0)
    update = Progress.update
    monkeypatch.setattr(Progress, "update", lambda *args, **values: update(*args, **{**values, "refresh": True}))
    assert main(["fit", str(matrix), "--out", str(tmp_path / "parts")]) == 0
    err = capfd.readouterr().err
    assert re.search(r"annealing: β [\d.e+]+, \d of 4 components", err)
    assert main(["fit", str(matrix), "--out", str(tmp_path / "parts"), "--force", "--quiet"]) == 0
    assert capfd.readouterr().err == ""


def test_a_failed_certificate_is_spoken_of_with_quiet_too(matrix, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("orthonmf.model.certificate.Certificate.holds", False)
    command = ["fit", str(matrix), "-k", "2", "--out", str(tmp_path / "parts"), "--quiet"]
    assert main(command) == 3
    assert "the certificate fails; orthonmf verify says where" in capfd.readouterr().err
    assert (tmp_path / "parts" / "model.onmf").is_file()
    assert main([*command, "--force", "--allow-uncertified"]) == 0
    assert main(["fit", str(matrix), "-k", "2", "--out", str(tmp_path / "parts"), "--force", "--json"]) == 3
    assert json.loads(capfd.readouterr().out)["certificate"]["holds"] is False


def test_stopped_fit_is_written_within_its_bounds(tmp_path):
    """As soon as it has begun: two features in a component at most, and the page says that the sizes are within their bounds."""
    data, folder = tmp_path / "gamma.npy", tmp_path / "parts"
    np.save(data, np.random.default_rng(0).gamma(1.0, size=(40, 6)))
    options = "-k 4 --capacity 2 --orthogonal features --scaling none --time-limit 1e-9 --quiet"
    assert main(["fit", str(data), *options.split(), "--out", str(folder)]) == 0
    assert sorted(ONMF.load(folder / "model.onmf").counts_.tolist()) == [1, 1, 2, 2]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["status"].startswith(Status.TIME_LIMIT.sentence)
    assert "every size is within its bounds" in (folder / "report.html").read_text().lower()


def test_the_report_names_the_command_without_what_does_not_matter(matrix, tmp_path):
    words = ["fit", str(matrix), "-k", "2", "--min-size", "0.2", "--out", str(tmp_path / "parts"), "--force", "--quiet"]
    assert main(words) == 0
    summary = json.loads((tmp_path / "parts" / "summary.json").read_text())
    assert summary["provenance"] == {"Command": f"orthonmf fit {matrix.name} --components 2 --min-size 0.2"}
    assert summary["provenance"]["Command"] in (tmp_path / "parts" / "report.html").read_text(encoding="utf-8")


def test_a_stamp_is_written_where_it_is_asked_for(matrix, tmp_path):
    assert main(["fit", str(matrix), "-k", "2", "--out", str(tmp_path / "parts"), "--quiet", "--stamp"]) == 0
    made = json.loads((tmp_path / "parts" / "summary.json").read_text())["provenance"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", made["Date"])
    assert float(made["Seconds"]) >= 0
    report = tmp_path / "parts" / "report.html"
    before = report.read_text(encoding="utf-8")
    assert made["Date"] in before
    assert main(["report", str(tmp_path / "parts"), str(matrix), "--force"]) == 0
    assert report.read_text(encoding="utf-8") == before


def test_counts_by_their_own_loss(matrix, tmp_path, capfd):
    parts = tmp_path / "parts"
    assert main(["fit", str(matrix), "-k", "2", "--loss", "kullback-leibler", "--out", str(parts), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["asked"]["loss"] == "kullback-leibler"
    rows = [line.split(",") for line in (parts / "assignments.csv").read_text().splitlines()]
    assert [float(row[2]) for row in rows[1:]] == pytest.approx([3, 6, 3, 5.1])  # the sum of each
    report = (parts / "report.html").read_text()
    assert "Kullback–Leibler divergence, for counts" in report
    assert "divergence for each count" in report
    assert "relative error" not in report
    assert main(["verify", str(parts), str(matrix)]) == 0
    assert main(["fit", str(matrix), "--loss", "poisson", "--out", str(parts), "--force"]) == 2
    assert "--loss 'poisson'" in capfd.readouterr().err
