"""The command: tables on the terminal, files in a folder, errors in a line."""

import sys

import pytest

import orthonmf.cli
from orthonmf.cli import joined, main

pytest.importorskip("typer")
pytest.importorskip("matplotlib")


def test_several_values_become_one():
    assert joined(["reproduce", "table1", "--datasets", "1", "2", "--runs", "2"]) == [
        "reproduce",
        "table1",
        "--datasets",
        "1,2",
        "--runs",
        "2",
    ]
    assert joined(["--methods", "onmf", "apx"]) == ["--methods", "onmf,apx"]


def test_table1_end_to_end_writes_every_file_and_resumes(tmp_path, capfd):
    command = ["reproduce", "table1", "--datasets", "1", "--methods", "onmf", "em", "--runs", "1", "--out", str(tmp_path)]
    assert main(command) == 0
    first = capfd.readouterr()
    written = {path.name for path in tmp_path.iterdir()}
    tables = {f"table1.{suffix}" for suffix in ("txt", "md", "csv", "png", "svg")}
    assert written == tables | {"error-seconds.png", "error-seconds.svg", "cells"}
    assert len(list((tmp_path / "cells").iterdir())) == 2
    assert "ONMF (ours)" in first.out
    assert first.err == ""  # no bar where there is no terminal
    assert main(command) == 0
    assert capfd.readouterr().out == first.out  # the same seconds: nothing ran again


def test_compare_on_a_csv_with_names(matrix, capfd):
    assert main(["compare", str(matrix), "-k", "2", "--methods", "onmf", "apx", "--runs", "1"]) == 0
    out = capfd.readouterr().out
    assert "genes.csv, 2 components, orthogonal samples" in out
    rows = [line for line in out.splitlines() if line.startswith("ONMF")]
    assert [line.split("  ")[0] for line in rows] == ["ONMF (ours)", "ONMF-apx"]
    assert all(line.split()[-6:-2] == ["100", "50", "50", "50"] for line in rows)  # O, S, S~, S≈


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{folder}/none.csv", "-k", "2"], "none.csv does not exist"),
        (["{matrix}", "-k", "9"], "-k 9 is not usable; expected 1 to 4, the number of samples"),
        (["{matrix}", "-k", "0"], "-k 0 is not usable"),
        (["{matrix}", "-k", "2", "--methods", "nmff"], "method 'nmff' is not known"),
        (["{matrix}", "-k", "2", "--orthogonal", "rows"], "--orthogonal 'rows' is not known"),
        (["{matrix}", "-k", "2", "--runs", "0"], "--runs 0 is not usable"),
        (["{matrix}", "-k", "2", "--limit", "-1"], "limit=-1.0 is not usable"),
    ],
)
def test_errors_are_a_line_and_exit_code_2(arguments, message, matrix, capfd):
    words = [word.format(folder=matrix.parent, matrix=matrix) for word in arguments]
    assert main(["compare", *words]) == 2
    err = capfd.readouterr().err
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n", "there is no line under the header"),
        ("a,b\n1,x\n", "line 2, column 2 ('b') is 'x', not a number"),
        ("a,b\n1,2\n3\n", "line 3 has 1 columns, those before 2"),
        ("a,b\n1,-2\n", "Negative values in data"),
    ],
)
def test_a_bad_matrix_is_named(content, message, matrix, capfd):
    matrix.write_text(content, encoding="utf-8")
    assert main(["compare", str(matrix), "-k", "1"]) == 2
    assert message in capfd.readouterr().err


@pytest.mark.parametrize("command", [["reproduce", "table3"], ["compare"], ["nothing"]])
def test_bad_usage_is_exit_code_2(command, capfd):
    assert main(command) == 2
    assert capfd.readouterr().err


def test_without_the_extra_the_remedy_is_named(monkeypatch, capsys):
    monkeypatch.setattr(orthonmf.cli, "find_spec", lambda name: None)
    assert main([]) == 2
    assert "pip install 'orthonmf[cli,plot]'" in capsys.readouterr().err


def test_importing_the_library_does_not_import_the_extra():
    import subprocess

    code = "import sys, orthonmf, orthonmf.cli; assert not {'typer', 'matplotlib'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_comparison_that_cannot_be_drawn_is_refused_before_any_work(matrix, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("orthonmf.cli.reproduce.find_spec", lambda name: None)
    assert main(["compare", str(matrix), "-k", "2", "--out", str(tmp_path / "table")]) == 2
    assert "matplotlib, which is not installed" in capfd.readouterr().err
    assert not (tmp_path / "table").exists()
