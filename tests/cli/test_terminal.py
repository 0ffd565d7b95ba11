"""What is printed: names that would act on a terminal, streams that are closed, exit codes that are documented."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from orthonmf._common.visible import visible
from orthonmf.cli import main
from orthonmf.cli.app import CODES

EVIL = "\x1b]0;owned\x07\x1b[2J\u202eexe\u2066\x9b31m\x7f"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain β █ ä 遺伝子", "plain β █ ä 遺伝子"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\tb\nc", "a\\tb\\nc"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        ("می\u200cروم", "می\u200cروم"),  # Persian needs the joiner
        ("a\u00a0b\u202fc", "a\u00a0b\u202fc"),
    ],
)
def test_by_hand(text, expected):
    assert visible(text) == expected


@pytest.fixture
def evil(tmp_path):
    """A table whose names would act on a terminal."""
    path = tmp_path / f"data{EVIL}.csv"
    rows = [f"{EVIL}{i}" for i in range(4)]
    values = ["1,2,0", "2,4,0", "0,0,3", "0,0.1,5"]
    head = ",".join(["gene", *(f"{EVIL}{letter}" for letter in "abc")])
    lines = [head, *(f"{name},{row}" for name, row in zip(rows, values, strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_says_when_the_number_is_asked(matrix, monkeypatch):
    told = io.StringIO()
    console = Console(file=told, force_terminal=True, width=120)
    monkeypatch.setattr("orthonmf.cli._progress.Console", lambda **_: console)
    assert main(["rank", str(matrix)]) == 0
    assert "counting components" in told.getvalue()
    assert main(["fit", str(matrix), "-k", "2", "--out", str(matrix.parent / "parts")]) == 0
    assert "writing tables and report" in told.getvalue()


def test_no_command_prints_a_name_raw(evil, tmp_path, capfd, monkeypatch):
    folder = tmp_path / f"parts{EVIL}"
    other = tmp_path / f"other{EVIL}.csv"
    other.write_text(f"gene,{EVIL}a,{EVIL}b\nx,1,2\n", encoding="utf-8")
    for words, code in (
        (["fit", evil, "-k", "2", "--out", folder], 0),
        (["fit", evil, "-k", "2", "--out", folder], 2),
        (["fit", evil, "-k", "2", "--out", folder, "--force", "--json"], 0),
        (["rank", evil], 0),
        (["verify", folder, evil], 0),
        (["verify", folder, other], 2),
        (["predict", folder, evil, "--json"], 0),
        (["predict", folder, tmp_path / f"none{EVIL}.csv"], 2),
        (["report", folder, "--force"], 0),
        (["report", folder, "--out", tmp_path / EVIL / "x.html"], 2),
        (["compare", evil, "-k", "2", "--methods", EVIL], 2),
        (["fit", evil, "--capacity", EVIL], 2),
        (["fit", evil, f"--{EVIL}"], 2),
        (["fit", evil, "--time-limit", EVIL], 2),
        ([EVIL], 2),
    ):
        assert main([str(word) for word in words]) == code
        out, err = capfd.readouterr()
        assert RAW.findall(out + err) == []
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["predict", str(folder), str(evil)]) == 0
    assert RAW.findall(terminal.getvalue()) == []
    assert "\\x1b]0;owned" in terminal.getvalue()


def test_a_table_for_another_program_is_the_bytes_of_the_file(evil, tmp_path, capfd):
    assert main(["fit", str(evil), "-k", "2", "--out", str(tmp_path / "parts"), "--quiet"]) == 0
    assert main(["predict", str(tmp_path / "parts"), str(evil)]) == 0
    assert capfd.readouterr().out == (tmp_path / "parts" / "assignments.csv").read_text(encoding="utf-8")


def test_a_fault_of_ours_shows_no_name_raw(evil, tmp_path, capfd, monkeypatch):
    def fault(*args, **kwargs):
        raise RuntimeError(EVIL)

    monkeypatch.setattr("orthonmf.cli.fit.fitted", fault)
    assert main(["fit", str(evil), "--out", str(tmp_path / "parts")]) == 1
    err = capfd.readouterr().err
    assert "Traceback" in err
    assert RAW.findall(err) == []


def test_output_that_is_closed_is_an_error(matrix, fitted, monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdout", None)
    for words in (["predict", str(fitted), str(matrix)], ["verify", str(fitted), str(matrix)], ["--version"], ["--help"]):
        assert main(words) == 2
        err = capfd.readouterr().err
        assert err.startswith("orthonmf: standard output is closed")
        assert err.count("\n") == 1
    assert sys.stdout is None
    assert main(["predict", str(fitted), str(matrix), "--out", str(matrix.parent / "labels.csv")]) == 0  # it prints nothing


@pytest.mark.parametrize(
    ("streams", "code", "lines"), [(">&-", 2, 1), ("2>&-", 0, 0), ("<&- >&- 2>&-", 2, 0), ("> /dev/full", 2, 1), ("1< /dev/null", 2, 1)]
)
def test_streams_that_take_nothing(streams, code, lines):
    command = f"exec {sys.executable} -m orthonmf --version {streams}"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (code, lines), ended.stderr


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path):
    code = "import os, sys; from orthonmf.cli import main; main(['--version']); open(sys.argv[1], 'w').write(str(os.open(os.devnull, 0)))"
    command = f'exec {sys.executable} -c "{code}" {tmp_path / "number"} <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    assert int((tmp_path / "number").read_text()) > 2


def test_every_exit_code_is_documented(capfd):
    assert main(["--help"]) == 0
    told = capfd.readouterr().out
    documented = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    codes = re.findall(r"^ +(\d+) ", CODES, re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "129", "130", "141", "143"]
    for code in codes:
        assert re.search(rf"^    {code} ", told, re.MULTILINE)
        assert f"| {code} |" in documented


def test_help_imports_no_numerical_library():
    code = "import sys; from orthonmf.cli import main; main(['--help']); sys.exit(bool({'sklearn', 'scipy', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
