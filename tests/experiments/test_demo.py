"""The demonstration: a table that can be read, figures, and a plain word where matplotlib is missing."""

import os
import sys
from pathlib import Path

import pytest

from orthonmf.experiments import demo

FIGURES = {
    "nested-persistence.png",
    "nested-bifurcation.png",
    "nested-error.png",
    "digits-components.png",
    "digits-pixels.png",
}
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def matplotlib() -> None:
    """Skip where matplotlib is not installed, except in CI."""
    if os.environ.get("CI") == "true":
        import matplotlib  # noqa: F401
    else:
        pytest.importorskip("matplotlib", reason="the figures need orthonmf[plot]")


def test_table_aligns_words_left_and_figures_right() -> None:
    row = ("ab", "1 × 2", "samples", "auto", "16", "9–11", "1.00%", "100%", "94%", "0.1", "holds")
    header, rule, line = demo.table([row]).splitlines()
    ends = [i for i in range(len(rule) + 1) if rule[i - 1 : i] == "-" and rule[i : i + 1] != "-"]
    assert len(ends) == len(row) == len(demo.HEADER)
    assert line.startswith("ab  ")
    assert header.index("certificate") == line.index("holds")
    assert header[: ends[6]].endswith("error")
    assert line[: ends[6]].endswith("1.00%")


@pytest.mark.long  # `make demo` runs it whole
@pytest.mark.usefixtures("matplotlib")
def test_demo_prints_every_fit_and_writes_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--quick", "--out", str(tmp_path / "out")]) == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    fits = lines[2 : 2 + len(demo.cases(quick=True))]
    assert lines[0].split()[:2] == ["data", "set"]
    assert all(line.endswith("holds") for line in fits)
    # Four groups of four clusters: the number of components is found, by either schedule.
    assert [line.split("samples")[1].split()[:2] for line in fits[:2]] == [["auto", "16"]] * 2
    assert {path.name for path in (tmp_path / "out").iterdir()} == FIGURES
    for name in FIGURES:
        assert (tmp_path / "out" / name).read_bytes().startswith(PNG)
        assert str(tmp_path / "out" / name) in output.out
    assert "nested clusters" in output.err


def test_demo_without_matplotlib_says_how_to_install_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    one = {"digits": demo.cases(quick=True)["digits"]}
    monkeypatch.setattr(demo, "cases", lambda *, quick: one)
    assert demo.main(["--quick", "--out", str(tmp_path)]) == 0
    assert "pip install 'orthonmf[plot]'" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_demo_fails_when_a_certificate_does(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    one = {"digits": demo.cases(quick=True)["digits"]}
    monkeypatch.setattr(demo, "cases", lambda *, quick: one)
    monkeypatch.setattr("orthonmf.model.certificate.Certificate.holds", False)
    assert demo.main(["--out", str(tmp_path)]) == 3
    assert "fails" in capsys.readouterr().out
