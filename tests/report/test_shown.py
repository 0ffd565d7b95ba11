"""What the report draws of the data: dots at their exact places, blocks that are means, and an even choice where there are many."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from orthonmf import ONMF
from orthonmf.exceptions import InvalidInputError
from orthonmf.model.terms import distinctiveness
from orthonmf.report import render
from orthonmf.report.heat import COLUMNS, ROWS, Heat
from orthonmf.report.pictures import MARK_SIZE, _apart
from orthonmf.report.plane import Plane
from orthonmf.report.shown import MOST_ITEMS, Shown, evenly

X = load_digits().data[:200]


@pytest.fixture(scope="module")
def model():
    return ONMF(4, scaling="none").fit(X)


def plane_of(model, data):
    return Plane.of(model, Shown.of(model, model, data))


def gaps(points):
    return np.linalg.norm(points[:, None] - points[None], axis=2)


# -- the plane -----------------------------------------------------------------------------------------------------------------


def test_a_plane_worked_by_hand():
    # Means at (0, 0), (10, 0) and (0, 8), two items each at ± 1 along the third direction, which the plane does not show: of the squares
    # around the mean (10/3, 8/3, 0), 2 · (200/3 + 128/3) between the means, 6 · 1 within.
    middles = np.repeat([[0.0, 0.0, 5.0], [10.0, 0.0, 5.0], [0.0, 8.0, 5.0]], 2, axis=0)
    data = middles + np.tile([[0, 0, 1], [0, 0, -1]], (3, 1))
    plane = plane_of(ONMF(3, scaling="none").fit(data), data)
    np.testing.assert_allclose(gaps(plane.points) * data.max(), gaps(middles), atol=1e-9)
    between = 2 * (200 + 128) / 3
    assert plane.share == pytest.approx(between / (between + 6))
    assert plane.between == pytest.approx(1)


def test_the_plane_is_that_of_the_scatter_between_components(model):
    labels, data = model.labels_, X / X.max()
    mean = data.mean(axis=0)
    scatter = sum(np.sum(labels == j) * np.outer(y, y) for j in range(4) for y in [data[labels == j].mean(axis=0) - mean])
    values, vectors = np.linalg.eigh(scatter)
    plane = plane_of(model, X)
    np.testing.assert_allclose(np.abs(plane.points), np.abs((data - mean) @ vectors[:, :-3:-1]), atol=1e-9)
    assert plane.between == pytest.approx(values[-2:].sum() / values.sum())
    assert plane.share == pytest.approx(np.square(plane.points).sum() / np.square(data - mean).sum())


@pytest.mark.parametrize("k", [1, 2])
def test_of_few_components_the_items_give_the_other_directions(k):
    model = ONMF(k, scaling="none").fit(X)
    plane, data = plane_of(model, X), X / X.max()
    centred = data - data.mean(axis=0)
    largest = np.linalg.svd(centred, compute_uv=False)
    seen = np.square(plane.points).sum(axis=0)
    assert abs(plane.points[:, 0] @ plane.points[:, 1]) < 1e-3 * seen.sum() or k == 2
    # No plane shows more than the two principal components; of one component, the power steps come close to them.
    assert seen.sum() <= np.square(largest[:2]).sum() * (1 + 1e-9)
    assert k == 2 or seen.sum() > 0.97 * np.square(largest[:2]).sum()


@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_sparse_and_dense_data_have_one_picture(orthogonal, scaling):
    model = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(X)
    dense, thin = (Shown.of(model, model, data) for data in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(Plane.of(model, dense).points, Plane.of(model, thin).points, atol=1e-9)
    np.testing.assert_allclose(Heat.of(model, dense).means, Heat.of(model, thin).means, atol=1e-12)
    assert len(Plane.of(model, dense).points) == len(model.labels_)


def test_items_of_one_direction_lie_in_one_place():
    data = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    model = ONMF(2).fit(data)
    points = plane_of(model, data).points
    np.testing.assert_allclose(points[0], points[1], atol=1e-12)
    assert np.isfinite(points).all()


@pytest.mark.parametrize("data", [np.ones((5, 3)), np.arange(1.0, 7.0).reshape(6, 1), X[:12] * 1e-200, X[:12] * 1e200])
def test_all_data_have_a_page(data):
    text = render(ONMF(2 if data[0, 0] != 1 else 1, scaling="none").fit(data), X=data)
    assert not re.search(r"\bnan\b|\binf\b", re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S))
    assert 'id="items-plane"' in text


# -- the heat map --------------------------------------------------------------------------------------------------------------


def test_a_heat_map_worked_by_hand():
    data = np.array([[2.0, 0.0], [4.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    model = ONMF(2).fit(data, sample_weight=[2, 2, 1, 1])
    heat = Heat.of(model, Shown.of(model, model, data))
    np.testing.assert_array_equal(heat.features, [0, 1])
    np.testing.assert_array_equal(heat.parts, [0, 1])
    np.testing.assert_array_equal(heat.groups, [0, 0, 1, 1])  # a block for each sample: there is room
    np.testing.assert_allclose(heat.means, [[0.5, 1, 0, 0], [0, 0, 1 / 3, 1]])


def test_cells_are_means_over_blocks_of_one_component(model):
    heat = Heat.of(model, Shown.of(model, model, X))
    assert heat.sizes.sum() == len(X)
    assert len(heat.sizes) <= COLUMNS + model.n_components_
    stops = np.cumsum(heat.sizes)
    order = np.concatenate(
        [own[np.argsort(-model.margin_[own], kind="stable")] for own in (np.flatnonzero(model.labels_ == j) for j in range(4))]
    )
    means = np.array([X[order[stop - size : stop]][:, heat.features].mean(axis=0) for stop, size in zip(stops, heat.sizes, strict=True)]).T
    np.testing.assert_allclose(heat.means, means / means.max(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_array_equal(heat.groups, model.labels_[order[stops - 1]])


def test_features_stand_under_the_component_that_they_tell_most(model):
    heat = Heat.of(model, Shown.of(model, model, X))
    assert len(heat.features) <= ROWS
    assert len(set(heat.features.tolist())) == len(heat.features)
    np.testing.assert_array_equal(distinctiveness(model.components_)[:, heat.features].argmax(axis=0), heat.parts)
    assert (np.diff(heat.parts) >= 0).all()


def test_where_features_are_assigned_each_stands_under_its_own():
    model = ONMF(3, orthogonal="features").fit(X)
    heat = Heat.of(model, Shown.of(model, model, X))
    np.testing.assert_array_equal(model.labels_[heat.features], heat.parts)
    assert heat.sizes.sum() == len(X)


# -- many items ----------------------------------------------------------------------------------------------------------------


def test_a_choice_has_the_same_part_of_every_component():
    labels = np.random.default_rng(0).choice(4, size=30_000, p=[0.6, 0.3, 0.09, 0.01])
    chosen = evenly(labels, 1000)
    assert len(chosen) == len(set(chosen.tolist())) == 1000
    np.testing.assert_allclose(np.bincount(labels[chosen]), np.bincount(labels) / 30, atol=1)
    np.testing.assert_array_equal(evenly(labels[:1000], 1000), np.arange(1000))


def test_fifty_thousand_items_take_less_than_three_megabytes():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 8, 50_000)
    data = (rng.gamma(0.3, size=(8, 60))[labels] + 0.02 * rng.random((50_000, 60))).astype(np.float32)
    model = ONMF(8, refine=False).fit(data)
    names = [f"a name of some length, number {i}" for i in range(50_000)]
    text = render(model, X=data, item_names=names, feature_names=[f"a feature with a long name {i}" for i in range(60)])
    assert len(text.encode()) < 3_000_000
    assert "Shown are 10\u202f000 of 50\u202f000, of every component the same part." in text
    assert "samples of 10\u202f000 of 50\u202f000 samples, evenly taken" in text
    assert text.count("h0") >= MOST_ITEMS


def test_data_on_disk_and_in_chunks_are_drawn_as_those_in_memory(model, tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr("orthonmf.report.shown.MOST_ITEMS", 50)
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr("orthonmf.estimator.FEW_BYTES", 0)
    expected = render(model, X=X)
    assert render(model, X=np.load(tmp_path / "X.npy", mmap_mode="r")) == expected
    assert render(model, X=da.from_array(X, chunks=(64, -1))) == expected


# -- whose data ----------------------------------------------------------------------------------------------------------------


def test_other_data_are_refused(model):
    with pytest.raises(InvalidInputError, match="X has 199 rows, the model was fitted on 200; give the X of the fit"):
        render(model, X=X[1:])
    with pytest.raises(InvalidInputError, match="X is not the data of the fit: its digest differs; give the X of the fit"):
        render(model, X=X[::-1])


def test_a_pipeline_prepares_its_data():
    pipeline = make_pipeline(MaxAbsScaler(), ONMF(3)).fit(X)
    assert render(pipeline, X=X) == render(pipeline[-1], X=pipeline[:-1].transform(X))


def test_without_data_a_line_says_how_to_have_the_pictures(model):
    text = render(model)
    assert text.count("write_report(model, path, X=X)") == 2
    assert 'id="items-plane"' not in text


def test_the_same_data_give_the_same_bytes(model):
    assert render(model, X=X) == render(model, X=X.copy())


# -- the picture ---------------------------------------------------------------------------------------------------------------


def test_every_item_is_one_dot_in_the_colour_of_its_component(model):
    found = re.findall(r'class="items depth\d hue(\d+)" data-component="(\d+)"[^>]*d="([^"]*)"', render(model, X=X))
    counts = np.zeros(4, dtype=int)
    for hue, component, dots in found:
        assert hue == component
        counts[int(component)] += dots.count("M")
    np.testing.assert_array_equal(counts, model.counts_)


def test_the_paler_the_smaller_the_margin(model):
    found = re.findall(r'class="items depth(\d)[^>]*d="([^"]*)"', render(model, X=X))
    drawn = [sum(dots.count("M") for depth, dots in found if depth == str(level)) for level in range(4)]
    assert drawn == np.histogram(model.margin_, [-np.inf, 0.1, 0.3, 0.6, np.inf])[0].tolist()


def test_numbers_do_not_cover_one_another():
    apart = gaps(_apart(np.full((6, 2), 200.0)))
    assert apart[np.triu_indices(6, 1)].min() > 0.9 * MARK_SIZE
