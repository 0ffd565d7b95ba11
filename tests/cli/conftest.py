"""A small table, and a model fitted to it by the command."""

import pytest

pytest.importorskip("typer")

from orthonmf.cli import main

ROWS = "gene,a,b,c\ng1,1,2,0\ng2,2,4,0\ng3,0,0,3\ng4,0,0.1,5\n"


@pytest.fixture
def matrix(tmp_path):
    """Four genes in two groups: g1 and g2 along (1, 2, 0), g3 and g4 along (0, 0, 1)."""
    path = tmp_path / "genes.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.fixture
def fitted(matrix, tmp_path):
    """The folder of a fit."""
    folder = tmp_path / "parts"
    assert main(["fit", str(matrix), "-k", "2", "--out", str(folder), "--quiet"]) == 0
    return folder
