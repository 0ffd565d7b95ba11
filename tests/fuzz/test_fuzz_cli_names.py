"""Names made of what terminals obey and spreadsheets calculate: shown written out, stored as words, read back as they were."""

import csv
import json
import random
import re
import unicodedata

import numpy as np
import pytest

pytest.importorskip("typer")

from orthonmf._common.visible import visible
from orthonmf.cli import main
from orthonmf.io import as_csv, read, read_names, write_table

PIECES = [
    *"=+-@'\"\t\r\n,; ab1.\\|/<&",
    *("\x1b[31m", "\x1b]0;t\x07", "\x9b2J", "\x7f", "\x08", "\u202e", "\u2066", "\u200e", "\u2028", "\ufeff", "\u00ad", "\U000e0041"),
    *("＝", "＋", "－", "＠", "β", "遺", "\U0001f9ec", "\u0301", "\u200d", "-5", "=1+1", "@SUM(A1)", "nan", "1e5", "'=", "''+"),
]
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def names(draw, n):
    return ["".join(draw.choices(PIECES, k=draw.randint(0, 5))) for _ in range(n)]


def check_table(seed, tmp_path):
    draw = random.Random(seed)
    rows, heads = names(draw, 6), names(draw, 3)
    numbers = [np.round(np.random.default_rng(seed).normal(size=6), 3) for _ in heads]
    columns = [("item", np.array(rows)), *zip(heads, numbers, strict=True)]
    path = tmp_path / "t.csv"
    write_table(path, columns)
    with path.open(newline="", encoding="utf-8") as file:
        cells = list(csv.reader(file))
    assert all(len(row) == 4 for row in cells)
    words = [row[0] for row in cells] + cells[0]
    assert [word for word in words if re.match(r"[=+\-@\t\r\n＝＋－＠]", word) and not NUMBER.fullmatch(word)] == []
    assert [[float(cell) for cell in row[1:]] for row in cells[1:]] == np.transpose(numbers).tolist()
    assert read_names(path).tolist() == rows
    assert path.read_bytes().decode() == as_csv(columns)


def check_visible(seed):
    (name,) = names(random.Random(seed), 1)
    shown = visible(name)
    assert all(unicodedata.category(each) not in ("Cc", "Cs", "Zl", "Zp") for each in shown)
    assert RAW.findall(shown) == []
    assert name.isprintable() <= (shown == name)


def check_commands(seed, tmp_path, capfd):
    """A fit, its use and its mistakes with names of the worst kind: through Parquet, which keeps every name."""
    pytest.importorskip("pyarrow")
    draw = random.Random(seed)
    rows = [f"{name}r{i}" for i, name in enumerate(names(draw, 5))]
    heads = [f"{name}h{i}" for i, name in enumerate(names(draw, 3))]
    X = np.random.default_rng(seed).gamma(0.5, size=(5, 3))
    write_table(tmp_path / "data.parquet", [("item", np.array(rows)), *zip(heads, X.T, strict=True)])
    folder = tmp_path / ("out" + visible(heads[0]).replace("/", "-"))
    for words in (
        ["fit", str(tmp_path / "data.parquet"), "-k", "2", "--out", str(folder)],
        ["predict", str(folder), str(tmp_path / "data.parquet"), "--json"],
        ["verify", str(folder), str(tmp_path / "data.parquet")],
        ["report", str(folder), "--force", "--title", rows[0]],
        ["predict", str(folder), str(tmp_path / "other.parquet")],
    ):
        if "other" in words[-1]:
            write_table(tmp_path / "other.parquet", [("item", np.array(rows)), *zip([*heads[:2], rows[0]], X.T, strict=True)])
        code = main(words)
        out, err = capfd.readouterr()
        assert code == (2 if "other" in words[-1] else 0), err
        assert RAW.findall(out + err) == []
        if "--json" in words:
            assert json.loads(out)["sample"] == rows
    assert read_names(folder / "assignments.csv").tolist() == rows
    found = read(folder / "components.csv").column_names.tolist()[-3:]
    assert all(name == head for name, head in zip(found, heads, strict=True) if head == head.strip())  # ends are trimmed


@pytest.mark.parametrize("seed", range(40))
def test_tables(seed, tmp_path):
    check_table(seed, tmp_path)
    check_visible(seed)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(4))
def test_commands(seed, tmp_path, capfd):
    check_commands(seed, tmp_path, capfd)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_many_tables(seed, tmp_path):
    for each in range(1000 * (seed + 1), 1000 * (seed + 1) + 500):
        check_table(each, tmp_path)
        check_visible(each)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_commands(seed, tmp_path, capfd):
    check_commands(seed, tmp_path, capfd)
