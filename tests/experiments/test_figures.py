"""Figures are written, and something is drawn on them."""

import numpy as np
import pytest

from orthonmf.datasets import make_onmf
from orthonmf.experiments import criticals, figures
from orthonmf.experiments.render import save

pytest.importorskip("matplotlib")


def groups(seed):
    return make_onmf(40, 6, 3, noise=0.3, random_state=seed).X


def draw_criticals():
    return figures.criticals_figure({"groups": criticals.fitted([groups(0), groups(1)])})


def draw_metagenes():
    data = [groups(0), groups(1)]
    return figures.metagenes_figure(figures.fitted_metagenes(data, None), figures.fitted_metagenes(data, 0.35))


def draw_error_seconds():
    rows = [("onmf", 0.001, 0.1), ("nmf", 0.1, 10.0), ("nhl", None, None)]
    return figures.error_seconds_figure([{"dataset": "1", "method": name, "error": e, "seconds": s} for name, e, s in rows])


def draw_bifurcation():
    return figures.bifurcation_figure(figures.fitted_bifurcation(groups(0)), "groups")


@pytest.mark.parametrize("draw", [draw_criticals, draw_metagenes, draw_error_seconds, draw_bifurcation])
def test_figure_is_not_blank(draw, tmp_path):
    from matplotlib.image import imread

    with figures.styled():
        png, svg = save(draw(), tmp_path / "figure")
    pixels = imread(png)[..., :3]
    assert 0.01 < np.mean(np.any(pixels < 0.9, axis=2)) < 0.9
    assert svg.read_text(encoding="utf-8").startswith("<?xml")


def test_the_highest_ratio_is_at_the_number_of_groups():
    (model,) = criticals.fitted([make_onmf(60, 10, 3, noise=0.05, random_state=0).X])
    assert criticals.peak(model) == 3


def test_where_nothing_persists_there_is_no_number():
    noise = np.random.default_rng(0).gamma(10.0, size=(60, 10))
    models = criticals.fitted([noise])
    assert criticals.peak(models[0]) is None
    table = criticals.table({"noise": models * 7})
    assert all(cell.startswith("(") for cell in table.rows[1][1:])
    assert len(table.data) == 7 * len(models[0].persistence_)
