"""Displays show what the model holds, on the axis that is given, and leave matplotlib as it was."""

import doctest
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from orthonmf import ONMF
from orthonmf.datasets import make_nested, make_onmf
from orthonmf.exceptions import InvalidInputError, MissingExtraError, NothingStandsOutWarning
from orthonmf.plot import (
    BifurcationDisplay,
    ComponentsDisplay,
    ErrorDisplay,
    HistoryDisplay,
    NumberDisplay,
    PersistenceDisplay,
    SizesDisplay,
)

mpl = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")

X = make_nested(64, 10, random_state=0).X
DISPLAYS = [BifurcationDisplay, ComponentsDisplay, HistoryDisplay, NumberDisplay, PersistenceDisplay, SizesDisplay]


@pytest.fixture(scope="module")
def nested():
    model = ONMF(scaling="none", schedule=1.3).fit(X)
    model.levels_ = np.array([16, 4])
    return model


@pytest.fixture(scope="module")
def digits():
    return ONMF(4, capacity=20, min_size=5).fit(load_digits().data[:60])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def bars(axis):
    return [patch for patch in axis.patches if hasattr(patch, "get_height")]


# -- persistence ---------------------------------------------------------------------------------------------------------------


def test_a_bar_for_every_number_of_components():
    display = PersistenceDisplay([1.0, 2.0, 16.0], np.log([2.0, 8.0]), chosen=3).plot()
    assert [bar.get_height() for bar in bars(display.ax_)] == pytest.approx(np.log([2, 8]))
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars(display.ax_)] == pytest.approx([2, 3])
    assert any("3 components: a factor 8" in text.get_text() for text in display.ax_.texts)


def test_the_chosen_bar_and_coarser_levels_have_colours():
    display = PersistenceDisplay([1, 4, 5, 40], np.log([4, 1.25, 8]), chosen=4, levels=[2]).plot()
    colours = [bar.get_facecolor() for bar in bars(display.ax_)]
    assert len(set(colours)) == 3


def test_the_staircase_climbs_at_the_critical_values(nested):
    display = PersistenceDisplay.from_estimator(nested, kind="staircase")
    (points,) = display.ax_.lines[-1:]
    np.testing.assert_array_equal(points.get_xdata(), nested.critical_betas_)
    np.testing.assert_array_equal(points.get_ydata(), np.arange(2, len(nested.critical_betas_) + 2))


def test_the_line_of_chance_is_the_longest_beyond_what_stands_out(nested):
    display = PersistenceDisplay.from_estimator(nested)
    assert display.chance == nested.persistence_[15:].max()
    assert display.levels == (4,)
    (line,) = display.ax_.lines
    assert list(line.get_ydata()) == [display.chance] * 2


def test_bars_that_chance_made_stay_below_half_of_the_picture():
    noise = 20 + np.random.default_rng(0).normal(size=(100, 5))
    with pytest.warns(NothingStandsOutWarning):
        display = PersistenceDisplay.from_estimator(ONMF(max_components=6).fit(noise))
    assert display.chance == max(bar.get_height() for bar in bars(display.ax_)) < display.ax_.get_ylim()[1] / 2
    assert len({bar.get_facecolor() for bar in bars(display.ax_)}) == 1
    assert any("nothing stands out" in text.get_text() for text in display.ax_.texts)


def test_infinite_persistence_has_no_bar():
    display = PersistenceDisplay([1.0, 2.0, np.inf], [np.log(2), np.inf]).plot()
    assert len(bars(display.ax_)) == 1


def test_one_component_has_no_persistence():
    with pytest.raises(InvalidInputError, match="n_components='auto'"):
        PersistenceDisplay.from_estimator(ONMF(1).fit(X))


# -- number --------------------------------------------------------------------------------------------------------------------


def test_bic_is_shown_relative_to_the_best_and_the_answer_is_marked():
    display = NumberDisplay([-9.0, -2.0, -5.0], [1.0, 0.9, 0.5], chosen=2, note="2 components").plot()
    above, below = display.axes_
    assert above.lines[0].get_ydata().tolist() == [-7.0, 0.0, -3.0]
    assert below.lines[0].get_ydata().tolist() == [1.0, 0.9, 0.5]
    assert [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in below.lines[1:2]] == [([2], [0.9])]


def test_numbers_that_were_not_compared_are_not_drawn():
    for asked in (3, "persistence"):
        with pytest.raises(InvalidInputError, match="fit with n_components='auto'"):
            NumberDisplay.from_estimator(ONMF(asked, max_components=5).fit(X))


# -- bifurcation and history ---------------------------------------------------------------------------------------------------


def test_forks_are_where_branches_part():
    display = BifurcationDisplay([1, 2, 4], [[0, 0, 1], [0, 0, -1]], [[0, 0, 0], [0, 0, 1]]).plot()
    forks = display.ax_.lines[-1]
    assert (forks.get_xdata(), forks.get_ydata()) == ([2.0], [0.0])


def test_as_many_branches_as_components(nested):
    display = BifurcationDisplay.from_estimator(nested)
    assert display.positions.shape == (16, len(display.beta))
    assert sorted(display.spans) == [4, 16]
    assert len(set(display.groups.tolist())) == 4
    assert len(np.unique(display.branches[:, 0])) == 1
    assert len(BifurcationDisplay.from_estimator(nested, n_components=4).positions) == 4


def test_under_bounds_the_bounded_annealing_is_drawn(digits):
    display = BifurcationDisplay.from_estimator(digits)
    assert len(display.positions) == 4
    assert display.spans == {}
    assert display.beta[-1] == digits.history_["beta"][-1]


def test_history_shows_the_last_rise_of_beta(nested):
    display = HistoryDisplay.from_estimator(nested)
    distortion, free_energy = display.axes_[0].lines[:2]
    assert (np.diff(distortion.get_xdata()) > 0).all()
    assert free_energy.get_ydata()[-1] == nested.history_["free_energy"][-1]
    assert display.axes_[2].lines[0].get_ydata()[0] == 1


@pytest.mark.parametrize("display", [BifurcationDisplay, HistoryDisplay])
def test_items_that_do_not_differ_have_no_history(display):
    with pytest.raises(InvalidInputError, match="0 temperatures"):
        display.from_estimator(ONMF().fit(np.ones((5, 3))))


# -- components ----------------------------------------------------------------------------------------------------------------


def test_the_heat_map_shows_leading_features_by_name_once_each():
    model = ONMF(2).fit(np.array([[4, 1, 0, 0], [8, 2, 0, 0], [0, 0, 1, 3], [0, 0, 1, 3]]))
    display = ComponentsDisplay.from_estimator(model, feature_names=["a", "b", "$c", "d" * 60], n_terms=1)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["a", "d" * 27 + "…"]
    np.testing.assert_array_equal(display.ax_.images[0].get_array(), [[1, 0], [0, 1]])
    everything = ComponentsDisplay.from_estimator(model, feature_names=["a", "b", "$c", "d$"])
    everything.figure_.canvas.draw()  # names are not formulas
    assert [label.get_text() for label in everything.ax_.get_xticklabels()] == ["a", "b", "d$", "$c"]


def test_pictures_hold_the_components(digits):
    display = ComponentsDisplay.from_estimator(digits, image_shape=(8, 8), captions=["a", "b", "c", "d"])
    assert [text.get_text() for text in display.ax_.texts] == ["a", "b", "c", "d"]
    for image, row in zip(display.ax_.images, digits.components_, strict=True):
        np.testing.assert_array_equal(image.get_array(), row.reshape(8, 8))


def test_a_pipeline_names_its_features():
    frame = pytest.importorskip("pandas").DataFrame({"first": [1, 2, 0], "second": [0, 0, 5]})
    display = ComponentsDisplay.from_estimator(make_pipeline(MaxAbsScaler(), ONMF(2)).fit(frame))
    assert {label.get_text() for label in display.ax_.get_xticklabels()} == {"first", "second"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"image_shape": (8, 9)}, "72 pixels; expected 64"),
        ({"captions": ["a"]}, "1 entries; expected 4"),
        ({"feature_names": ["a"]}, "feature_names"),
    ],
)
def test_what_does_not_fit_the_components_is_refused(digits, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        ComponentsDisplay.from_estimator(digits, **arguments)


# -- sizes and errors ----------------------------------------------------------------------------------------------------------


def test_sizes_stand_against_their_bounds(digits):
    display = SizesDisplay.from_estimator(digits)
    assert [bar.get_height() for bar in bars(display.ax_)] == digits.counts_.tolist()
    assert display.upper.tolist() == [20] * 4
    assert display.lower.tolist() == [5] * 4
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["capacity", "least size"]


def test_without_bounds_only_sizes_are_shown():
    display = SizesDisplay.from_estimator(ONMF(3).fit(X))
    assert (display.lower, display.upper) == (None, None)
    assert display.ax_.get_legend() is None


def test_sums_of_sizes_are_shown_where_items_have_sizes():
    model = ONMF(3, capacity=0.4, capacity_penalty=1.0).fit(X, item_size=np.arange(1.0, 65))
    display = SizesDisplay.from_estimator(model)
    assert display.sizes.sum() == pytest.approx(64)
    assert "mean items" in display.ax_.get_ylabel()


def test_the_error_of_each_number_is_that_of_its_own_fit():
    data = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    display = ErrorDisplay.from_estimator(ONMF(3).fit(data), data)
    assert display.n_components.tolist() == [1, 2, 3, 4, 5]
    assert display.error[2] == pytest.approx(ONMF(3).fit(data).certificate_.relative_error, rel=1e-12)
    assert (display.lower_bound <= display.error * (1 + 1e-6)).all()
    models = [ONMF(k).fit(data) for k in (2, 1)]
    assert ErrorDisplay.from_models(models, chosen=2).error.tolist() == display.error[:2].tolist()


def test_history_in_the_place_of_an_axis_outside_any_grid(nested):
    axis = plt.figure(layout="none").add_axes((0.2, 0.3, 0.6, 0.5))
    display = HistoryDisplay.from_estimator(nested, ax=axis)
    assert display.ax_ is axis
    boxes = [each.get_position() for each in display.axes_]
    np.testing.assert_allclose([boxes[0].x0, boxes[-1].y0, boxes[0].x1, boxes[0].y1], [0.2, 0.3, 0.8, 0.8], rtol=1e-12)  # rounding


@pytest.mark.parametrize("image_shape", [None, (2, 5)])
def test_captions_and_names_with_dollars_are_no_formulas(image_shape):
    model = ONMF(2).fit(X)
    display = ComponentsDisplay.from_estimator(model, captions=["$_$"] * 2, feature_names=["$_$"] * 10, image_shape=image_shape)
    display.figure_.canvas.draw()


def test_errors_only_of_numbers_that_can_be_asked_for():
    few = X[:4]
    assert ErrorDisplay.from_estimator(ONMF(3).fit(few), few).n_components.tolist() == [1, 2, 3, 4]
    some = X[:9]
    bounded = ONMF(3, capacity=[4, 3, 2]).fit(some)
    assert ErrorDisplay.from_estimator(bounded, some).n_components.tolist() == [3]


def test_numbers_that_the_bounds_rule_out_are_passed_over():
    display = ErrorDisplay.from_estimator(ONMF(4, capacity=20), X, n_components=range(2, 6))
    assert display.n_components.tolist() == [4, 5]
    with pytest.raises(InvalidInputError, match="No number of components"):
        ErrorDisplay.from_estimator(ONMF(4, capacity=20), X, n_components=[1])


def test_an_exact_fit_can_be_drawn():
    data = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    display = ErrorDisplay.from_estimator(ONMF(2).fit(data), data, n_components=[1, 2])
    display.figure_.canvas.draw()
    assert np.isfinite(display.ax_.get_ylim()).all()


# -- all of them ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("display", DISPLAYS)
def test_ax_in_ax_out_and_settings_as_before(display, nested):
    figure, axis = plt.subplots()
    with mpl.rc_context({"font.size": 7.5, "axes.titlesize": 9.5}):
        before = dict(mpl.rcParams)
        drawn = display.from_estimator(nested, ax=axis)
        after = dict(mpl.rcParams)
    assert drawn.ax_ is axis
    assert drawn.figure_ is figure
    assert after == before
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("display", DISPLAYS)
def test_the_figure_is_not_blank_and_nothing_is_cut_off(display, nested, tmp_path):
    drawn = display.from_estimator(nested)
    drawn.figure_.savefig(tmp_path / "figure.png")
    pixels = plt.imread(tmp_path / "figure.png")[..., :3]
    assert 0.01 < np.mean(np.any(pixels < 0.9, axis=2)) < 0.9
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    assert (edge == 1).all()


@pytest.mark.long
@pytest.mark.parametrize("display", [*DISPLAYS, ErrorDisplay])
def test_examples_run(display):
    assert doctest.testmod(sys.modules[display.__module__]).failed == 0


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_model_must_be_fitted(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(ONMF())


def test_without_matplotlib_the_extra_is_named(monkeypatch, nested):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"orthonmf\[plot\]"):
        SizesDisplay.from_estimator(nested)


def test_persistence_that_was_not_measured_is_not_drawn():
    X = make_onmf(30, 6, 3, noise=0.5, random_state=0).X
    for display in (PersistenceDisplay, BifurcationDisplay):
        with pytest.raises(InvalidInputError, match=r"n_components=3 was given.*fit with n_components='auto'"):
            display.from_estimator(ONMF(3).fit(X))
    assert PersistenceDisplay.from_estimator(ONMF(3, schedule=1.1).fit(X)).ax_ is not None


def test_few_components_have_a_colour_each():
    # Two pairs of groups: both 2 and 4 components last, and 4 are few enough.
    centers = np.repeat([[1.0, 1.0], [3.0, 1.0], [30.0, 1.0], [32.0, 1.0]], 10, axis=0)
    X = centers + np.random.default_rng(0).uniform(0, 0.01, centers.shape)
    model = ONMF(max_components=6, scaling="none").fit(X)
    model.levels_ = np.array([4, 2])
    display = BifurcationDisplay.from_estimator(model)
    assert set(display.spans) == {2, 4}
    assert len(np.unique(display.groups)) == 4
