"""Command lines that nobody would type: an exit code that is documented, a line that says why, and nothing lost or left."""

import os
import random
import re

import pytest

pytest.importorskip("typer")

from orthonmf.cli import main

RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
COMMANDS = ["fit", "rank", "predict", "verify", "report"]
SLOW = ["compare", "reproduce", "demo"]  # they start processes, or compute for a while
OPTIONS = [
    *("-k", "--components", "--capacity", "--min-size", "--orthogonal", "--scaling", "--max-components", "--time-limit", "--key"),
    *("--format", "--out", "--force", "--json", "--quiet", "--title", "--help", "--version", "--methods", "--runs", "--", "-", "--no"),
]
VALUES = [
    *(
        "2",
        "0",
        "-1",
        "auto",
        "1e3",
        "0.5",
        "nan",
        "inf",
        "1,2",
        ",",
        "",
        " ",
        "samples",
        "features",
        "item",
        "none",
        "csv",
        "parquet",
        "x",
    ),
    *("9" * 400, "١", "\x1b[31m", "\u202e", "\n", "=1", "..", ".", "/", "/dev/null", "/dev/full", "-k"),
    *("genes.csv", "genes.npy", "broken.csv", "empty.csv", "none.csv", "folder", "fitted", "fitted/model.onmf", "new", "deep/new"),
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder with data, a fit, and something that is not ours."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "genes.csv").write_text("gene,a,b,c\ng1,1,2,0\ng2,2,4,0\ng3,0,0,3\ng4,0,0.1,5\n")
    (tmp_path / "broken.csv").write_text("a,b\n1\n")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "genes.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "precious").write_text("mine")
    assert main(["fit", "genes.csv", "-k", "2", "--out", "fitted", "--quiet"]) == 0
    return tmp_path


def line(draw, commands):
    words = [draw.choice([*commands, *commands, draw.choice(VALUES)])]
    for _ in range(draw.randint(0, 7)):
        words.append(draw.choice(draw.choice([OPTIONS, VALUES])))
    return words


def check(words, place, capfd):
    data = {name: (place / name).read_bytes() for name in ("genes.csv", "broken.csv", "empty.csv", "genes.npy", "folder/precious")}
    code = main(words)
    out, err = capfd.readouterr()
    assert code in (0, 2, 3), (words, err)
    assert "Traceback" not in err, words
    assert code != 2 or err, words
    assert RAW.findall(out + err) == [], words
    assert {name: (place / name).read_bytes() for name in data} == data, words
    assert list(place.rglob(".*")) == [], words  # drafts and locks


@pytest.mark.parametrize("seed", range(40))
def test_lines(seed, place, capfd):
    draw = random.Random(seed)
    for _ in range(3):
        check(line(draw, COMMANDS), place, capfd)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_many_lines(seed, place, capfd):
    draw = random.Random(seed)
    for _ in range(20):
        check(line(draw, [*COMMANDS, *COMMANDS, "compare"]), place, capfd)


@pytest.mark.parametrize("command", [*COMMANDS, *SLOW])
def test_options_without_a_command_and_commands_without_options(command, place, capfd):
    for words in ([command, "--help"], [command, "--none"], ["--none", command], [command, "\x1b[2J", "--out"]):
        check(words, place, capfd)


def test_no_command_at_all(place, capfd):
    assert os.listdir(place)
    check([], place, capfd)
