"""Figures of what an AnnData holds are those of the model that was fitted."""

import anndata
import matplotlib
import numpy as np
import pytest

import orthonmf
from orthonmf import ONMF
from orthonmf.datasets import make_onmf
from orthonmf.exceptions import InvalidInputError
from orthonmf.pl import _stored
from orthonmf.report import render
from orthonmf.tl import NUMBER

X = make_onmf(30, 6, 3, noise=0.5, random_state=0).X


@pytest.fixture
def plt():
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.fixture(scope="module", params=["samples", "features"])
def few_components(request, tmp_path_factory):
    """Cells whose number of components was found, one fit for all figures."""
    return cells(tmp_path_factory.mktemp("cells"), orthogonal=request.param, max_components=4)


def cells(tmp_path, **params):
    """Factorised cells after a round trip through a file."""
    adata = anndata.AnnData(X)
    adata.var_names = [f"gene{i}" for i in range(6)]
    orthonmf.tl.onmf(adata, **params)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return anndata.read_h5ad(tmp_path / "cells.h5ad")


def test_by_hand(tmp_path, plt):
    # Thirty cells in three parts of ten, with room for eleven in each.
    display = orthonmf.pl.sizes(cells(tmp_path, n_components=3, capacity=11))
    assert list(display.sizes) == [10, 10, 10]
    assert list(display.upper) == [11, 11, 11]


@pytest.mark.parametrize("name", ["persistence", "number", "bifurcation", "history", "sizes", "components"])
def test_draws_on_the_axis_given(few_components, plt, name):
    axis = plt.figure().subplots()
    assert getattr(orthonmf.pl, name)(few_components, ax=axis).ax_ is axis


@pytest.mark.parametrize(
    "params",
    [
        {"max_components": 5},
        {"n_components": 3, "sparse_output": True},
        {"n_components": 3, "schedule": 2.0},
        {"n_components": 3, "capacity": [12, 11, 10], "min_size": 5},
        {"n_components": 2, "orthogonal": "features", "scaling": "none"},
        {"n_components": 3, "capacity": 9, "capacity_penalty": 0.1},
    ],
    ids=["auto", "sparse", "schedule", "bounds", "features", "soft"],
)
def test_the_stored_model_is_the_fitted_one(tmp_path, params):
    model, stored = ONMF(**params).fit(X), _stored(cells(tmp_path, **params), "onmf")
    for name in ("components_", "labels_", "scale_", "counts_", *(f"{name}_" for name in NUMBER)):
        np.testing.assert_array_equal(getattr(stored, name), getattr(model, name))
    assert (stored.n_components_, stored.status_, stored.n_features_in_) == (model.n_components_, model.status_, 6)
    assert stored.history_.keys() == model.history_.keys()
    assert stored.history_["ids"] == model.history_["ids"]
    assert stored.history_["splits"] == model.history_["splits"]
    for got, expected in zip(stored.history_["projection"], model.history_["projection"], strict=True):
        np.testing.assert_array_equal(got, expected)
    assert str(stored.certificate_) == str(model.certificate_)
    assert stored.certificate_.claims == model.certificate_.claims


def test_genes_outside_the_mask_are_not_in_the_model(tmp_path):
    used = np.array([True, False, True, True, False, True])
    for orthogonal in ("samples", "features"):
        stored = _stored(cells(tmp_path, n_components=2, orthogonal=orthogonal, mask_var=used), "onmf")
        np.testing.assert_array_equal(stored.feature_names_in_, [f"gene{i}" for i in np.flatnonzero(used)])
        assert stored.components_.shape == (2, 4)


def test_cells_keep_their_component_where_others_are_left_out(tmp_path):
    adata = cells(tmp_path, n_components=3)
    rest = adata[adata.obs["onmf"] != "0"].copy()
    assert rest.obs["onmf"].cat.categories.tolist() == ["1", "2"]
    np.testing.assert_array_equal(_stored(rest, "onmf").labels_, rest.obs["onmf"].astype(int))


def test_components_that_were_renamed(tmp_path):
    adata = cells(tmp_path, n_components=3)
    labels = _stored(adata, "onmf").labels_
    adata.rename_categories("onmf", ["B", "T", "NK"])
    np.testing.assert_array_equal(_stored(adata, "onmf").labels_, labels)
    with pytest.raises(InvalidInputError, match=r"categories \['B', 'NK'\]; expected 3"):
        _stored(adata[adata.obs["onmf"] != "T"].copy(), "onmf")


def test_without_results_the_remedy_is_named():
    with pytest.raises(InvalidInputError, match=r"run orthonmf\.tl\.onmf"):
        orthonmf.pl.sizes(anndata.AnnData(X), key="parts")


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_the_report_is_that_of_the_model(orthogonal, tmp_path):
    adata = cells(tmp_path, n_components=3, orthogonal=orthogonal)
    page = orthonmf.pl.report(adata, tmp_path / "report.html", title="Cells").read_text(encoding="utf-8")
    model = ONMF(3, orthogonal=orthogonal).fit(adata.to_df())
    assert page == render(model, item_names=adata.obs_names if orthogonal == "samples" else adata.var_names, title="Cells")
