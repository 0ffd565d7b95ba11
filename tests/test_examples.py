"""The examples of the documentation run, without a warning and without a window."""

import runpy
from pathlib import Path

import matplotlib
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


def test_by_hand():
    assert "plot_getting_started" in [path.stem for path in EXAMPLES]


@pytest.mark.long  # the documentation runs them, too, whenever it is built
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path):
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
