"""Options that several commands have, words of the command line, and completion."""

import inspect
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from orthonmf import ONMF
from orthonmf.cli import compare, fit, main, predict, rank, verify
from orthonmf.cli._options import spoken

TAKEN = ["--key", "--drop", "--keep", "--id-column", "--names", "--transpose"]


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("n_components=9 is more than the 6 rows of X", "-k 9 is more than the 6 rows of X"),
        ("raise max_components, or set n_components.", "raise --max-components, or set -k."),
        ("The capacities hold 3 items; raise capacity.", "The capacities hold 3 items; raise --capacity."),
        ("orthogonal='both' is not known", "--orthogonal 'both' is not known"),
        ("a capacity is exceeded by 2", "a capacity is exceeded by 2"),
        ("my_n_components stays", "my_n_components stays"),
    ],
)
def test_sentences_speak_of_options(sentence, words):
    assert spoken(sentence) == words


@pytest.mark.parametrize("command", ["fit", "predict", "verify", "rank", "compare"])
def test_what_is_taken_of_a_file_is_asked_alike(command, capfd):
    assert main([command, "--help"]) == 0
    told = capfd.readouterr().out
    assert [option for option in TAKEN if option not in told] == []


@pytest.mark.parametrize("module", [fit, predict, verify, rank, compare])
def test_the_options_stand_once(module):
    names = [name for name in ("id_column", "transpose") if f"{name}:" in inspect.getsource(inspect.getmodule(module))]
    assert names == []


def test_refusals_name_options_rows_and_columns(tmp_path, capfd):
    path = tmp_path / "data.csv"
    path.write_text("name,a,b\nx,1,2\ny,3,-4\nz,5,6\n")
    assert main(["fit", str(path)]) == 2
    assert "-4.0 at row 2 ('y'), column 2 ('b')" in capfd.readouterr().err
    path.write_text("name,a,b\nx,1,2\ny,3,4\nz,5,6\n")
    assert main(["fit", str(path), "-k", "9"]) == 2
    assert "orthonmf: -k 9 is more than the 3 rows" in capfd.readouterr().err
    assert main(["compare", str(path), "-k", "2", "--runs", "0"]) == 2
    assert "--runs 0 is not usable" in capfd.readouterr().err
    sparse.save_npz(tmp_path / "data.npz", sparse.csr_array([[1.0, 0.0], [0.0, -2.0]]))
    assert main(["rank", str(tmp_path / "data.npz")]) == 2
    assert "-2.0 at row 2, column 2" in capfd.readouterr().err


def test_report_is_told_as_json(matrix, fitted, tmp_path, capfd):
    assert main(["report", str(fitted), "--out", str(tmp_path / "page.html"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["files"] == [str(tmp_path / "page.html")]


# -- a start ----------------------------------------------------------------------------------------------------------------------


def test_a_fit_starts_from_a_model(matrix, fitted, tmp_path, capfd):
    assert main(["fit", str(matrix), "--init", str(fitted), "--out", str(tmp_path / "again"), "--json"]) == 0
    start, model = ONMF.load(fitted / "model.onmf"), ONMF.load(tmp_path / "again" / "model.onmf")
    assert json.loads(capfd.readouterr().out)["n_components"] == start.n_components_
    assert model.reconstruction_err_ <= start.reconstruction_err_ * (1 + 1e-12)
    np.testing.assert_array_equal(model.init, start.components_)


def test_a_start_of_other_data_is_refused(matrix, fitted, tmp_path, capfd):
    def refused(*words):
        assert main(["fit", str(matrix), *words, "--out", str(tmp_path / "other")]) == 2
        return capfd.readouterr().err

    assert "prepared in another way; leave --normalize out" in refused("--init", str(fitted), "--normalize", "max")
    assert main(["fit", str(matrix), "-k", "2", "--normalize", "max", "--out", str(tmp_path / "scaled"), "--quiet"]) == 0
    assert "add --normalize max" in refused("--init", str(tmp_path / "scaled"))
    assert "does not exist" in refused("--init", str(tmp_path / "none"))
    lines = matrix.read_text().splitlines()
    matrix.write_text("\n".join([lines[0].replace("b", "q"), *lines[1:]]) + "\n")
    assert "was fitted to other columns" in refused("--init", str(fitted))


# -- completion -------------------------------------------------------------------------------------------------------------------


def completed(words):
    """What a shell is told to offer for the last of some words."""
    environment = {**os.environ, "_ORTHONMF_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    ended = subprocess.run([sys.executable, "-m", "orthonmf"], env=environment, capture_output=True, text=True, check=False)
    return ended.stdout.split()


def test_commands_and_their_options_are_completed():
    assert completed("orthonmf ver") == ["verify"]
    assert completed("orthonmf fit --cap") == ["--capacity"]
    assert completed("orthonmf rank --norm") == ["--normalize"]
