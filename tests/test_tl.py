"""Factorisations stored in an AnnData."""

import subprocess
import sys

import anndata
import numpy as np
import pytest
from scipy import sparse

import orthonmf
from orthonmf import ONMF
from orthonmf.datasets import make_onmf
from orthonmf.exceptions import InvalidInputError, MissingExtraError, UnitsWarning

DATA = make_onmf(30, 6, 3, noise=0.5, random_state=0)


def cells(X=DATA.X, **kwargs):
    adata = anndata.AnnData(X, **kwargs)
    adata.var_names = [f"gene{i}" for i in range(adata.n_vars)]
    adata.obs_names = [f"cell{i}" for i in range(adata.n_obs)]
    return adata


def test_by_hand():
    # Two programmes without a gene in common: cells 0 and 1 have the first, (3, 4, 0) / 5, and cell 2 the second.
    adata = cells(np.array([[3.0, 4.0, 0.0], [6.0, 8.0, 0.0], [0.0, 0.0, 2.0]]))
    assert orthonmf.tl.onmf(adata, 2) is None
    assert adata.obs["onmf"].tolist() == ["0", "0", "1"]
    np.testing.assert_allclose(adata.obsm["X_onmf"], [[5, 0], [10, 0], [0, 2]], atol=1e-12)
    np.testing.assert_allclose(adata.varm["onmf"], [[0.6, 0], [0.8, 0], [0, 1]], atol=1e-12)
    assert adata.uns["onmf"]["counts"].tolist() == [2, 1]
    assert adata.uns["onmf"]["params"]["n_components"] == 2
    assert adata.uns["onmf"]["certificate"]["holds"] is True


def test_stores_what_the_estimator_finds():
    adata, model = cells(), ONMF(max_components=5)
    T = model.fit_transform(DATA.X)
    orthonmf.tl.onmf(adata, max_components=5)
    np.testing.assert_array_equal(adata.obsm["X_onmf"], T)
    np.testing.assert_array_equal(adata.varm["onmf"], model.components_.T)
    np.testing.assert_array_equal(adata.obs["onmf"].cat.codes, model.labels_)
    np.testing.assert_array_equal(adata.obs["onmf_margin"], model.margin_)
    np.testing.assert_array_equal(adata.obs["onmf_probability"], model.predict_proba(DATA.X)[np.arange(30), model.labels_])
    stored = adata.uns["onmf"]
    assert (stored["n_components"], stored["status"], stored["error"]) == (3, model.status_, model.reconstruction_err_)
    for name in ("persistence", "levels", "bic", "agreement", "p_values", "stability"):
        np.testing.assert_array_equal(stored[name], getattr(model, f"{name}_"))


def test_genes_are_labelled_where_features_are_orthogonal():
    adata = cells()
    orthonmf.tl.onmf(adata, 2)
    orthonmf.tl.onmf(adata, 2, orthogonal="features")
    assert not set(adata.obs)  # nothing of the earlier run is left
    np.testing.assert_array_equal(adata.var["onmf"].cat.codes, ONMF(2, orthogonal="features").fit(DATA.X).labels_)


@pytest.mark.parametrize("as_column", [True, False], ids=["column", "array"])
def test_genes_outside_the_mask_have_no_weight_and_no_label(as_column):
    adata = cells()
    used = np.array([True, True, False, True, True, False])
    adata.var["highly_variable"] = used
    orthonmf.tl.onmf(adata, 2, orthogonal="features", mask_var="highly_variable" if as_column else used)
    model = ONMF(2, orthogonal="features").fit(DATA.X[:, used])
    assert (adata.varm["onmf"][~used] == 0).all()
    np.testing.assert_array_equal(adata.varm["onmf"][used], model.components_.T)
    assert adata.var["onmf"].isna().tolist() == (~used).tolist()
    np.testing.assert_array_equal(adata.var["onmf_margin"][used], model.margin_)
    assert adata.var["onmf_margin"].isna().tolist() == (~used).tolist()
    np.testing.assert_array_equal(adata.var["onmf"].cat.codes[used], model.labels_)


def test_a_layer_is_read_and_nothing_is_changed():
    adata = cells(np.full_like(DATA.X, -1.0), layers={"counts": sparse.csr_matrix(DATA.X)})
    orthonmf.tl.onmf(adata, 3, layer="counts")
    assert (adata.X == -1).all()
    np.testing.assert_array_equal(adata.layers["counts"].toarray(), DATA.X)
    assert adata.uns["onmf"]["params"]["layer"] == "counts"


def test_sparse_cells_stay_sparse_and_agree_with_dense(monkeypatch):
    dense, adata = cells(), cells(sparse.csr_matrix(DATA.X))
    orthonmf.tl.onmf(dense, 3)
    monkeypatch.setattr("orthonmf.engines.sparse.DENSE_NUMBERS", 0)  # as if they were many
    monkeypatch.setattr(sparse.csr_matrix, "toarray", lambda *_, **__: pytest.fail("the cells became dense"))
    orthonmf.tl.onmf(adata, 3)
    assert sparse.issparse(adata.X)
    assert adata.obs["onmf"].tolist() == dense.obs["onmf"].tolist()
    np.testing.assert_allclose(adata.varm["onmf"], dense.varm["onmf"], rtol=1e-9)


def test_a_copy_leaves_the_original_alone():
    adata = cells()
    copied = orthonmf.tl.onmf(adata, 3, key_added="parts", copy=True)
    assert set(copied.obsm) == {"X_parts"}
    assert "parts" in copied.obs
    assert "parts" in copied.uns
    assert len(adata.obsm) == len(adata.varm) == len(adata.uns) == len(adata.obs.columns) == 0


def test_a_view_becomes_an_object_of_its_own():
    adata = cells()
    view = adata[:, :4]
    with pytest.warns(anndata.ImplicitModificationWarning):
        orthonmf.tl.onmf(view, 2)
    assert view.varm["onmf"].shape == (4, 2)
    assert not adata.varm


def test_a_second_run_leaves_no_labels_of_the_first():
    adata = cells()
    orthonmf.tl.onmf(adata, 2)
    orthonmf.tl.onmf(adata, 2, orthogonal="features")
    assert "onmf" in adata.var
    assert "onmf" not in adata.obs


@pytest.mark.parametrize("found", [{"colours": "mine"}, "mine", None], ids=["dict", "text", "nothing"])
def test_a_column_of_the_user_is_not_dropped(found):
    adata = cells()
    adata.var["onmf"] = "mine"
    if found is not None:
        adata.uns["onmf"] = found
    orthonmf.tl.onmf(adata, 2)
    assert (adata.var["onmf"] == "mine").all()


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_results_survive_h5ad(tmp_path, orthogonal):
    adata = cells()
    capacity = [12, 12, 12] if orthogonal == "samples" else [2, 2, 2]
    orthonmf.tl.onmf(adata, 3, orthogonal=orthogonal, capacity=capacity, solver_options={"growth": 1.5})
    adata.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    items = "obs" if orthogonal == "samples" else "var"
    assert getattr(read, items)["onmf"].tolist() == getattr(adata, items)["onmf"].tolist()
    np.testing.assert_array_equal(read.obsm["X_onmf"], adata.obsm["X_onmf"])
    assert_same(read.uns["onmf"], adata.uns["onmf"])


def assert_same(read, written):
    """The same keys and values, whatever class of number they came back as."""
    if isinstance(written, dict):
        assert read.keys() == written.keys()
        for name in written:
            assert_same(read[name], written[name])
    else:
        np.testing.assert_array_equal(read, written)


def test_a_failed_fit_writes_nothing():
    adata = cells(-DATA.X)
    with pytest.raises(InvalidInputError, match="negative numbers, the least"):
        orthonmf.tl.onmf(adata)
    assert len(adata.uns) == len(adata.obsm) == 0


def test_backed_cells_are_refused_with_the_remedy(tmp_path):
    cells().write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(InvalidInputError, match=r"to_memory\(\)"):
        orthonmf.tl.onmf(backed)
    backed.file.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": "counts"}, "layer='counts' is not in adata"),
        ({"mask_var": "variable"}, "mask_var='variable' is not in adata.var"),
        ({"mask_var": [True, False]}, "expected 6 booleans"),
        ({"mask_var": [1, 0, 1, 0, 1, 0]}, "expected 6 booleans"),
        ({"mask_var": np.zeros(6, dtype=bool)}, "selects no gene"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        orthonmf.tl.onmf(cells(), 2, **options)


def test_a_matrix_is_no_anndata():
    with pytest.raises(InvalidInputError, match="expected an AnnData"):
        orthonmf.tl.onmf(DATA.X)


def test_no_matrix_is_refused():
    with pytest.raises(InvalidInputError, match=r"adata\.X is empty"):
        orthonmf.tl.onmf(anndata.AnnData(layers={"counts": DATA.X}))


def test_without_anndata_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'orthonmf\[io\]'"):
        orthonmf.tl.onmf(DATA.X)


def test_importing_the_package_imports_no_extra():
    code = "import sys, orthonmf.tl, orthonmf.pl; print([m for m in ('anndata', 'polars', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


class TestWhatIsFactorised:
    @pytest.fixture
    def scaled(self):
        """Counts in .raw and in a layer, and what was centred in .X."""
        counts = anndata.AnnData(np.random.default_rng(0).poisson(np.repeat([[1, 9, 1, 1], [9, 1, 1, 3]], 20, axis=0)).astype(float))
        adata = counts.copy()
        adata.raw, adata.layers["counts"] = counts, counts.X.copy()
        adata.X = counts.X - counts.X.mean(axis=0)
        return adata

    def test_negative_numbers_are_refused_with_where_others_are(self, scaled):
        with pytest.raises(InvalidInputError, match=r"centred or scaled.*try layer='counts' or use_raw=True\."):
            orthonmf.tl.onmf(scaled, 2)

    def test_raw(self, scaled):
        raw, layer = orthonmf.tl.onmf(scaled, 2, use_raw=True, copy=True), orthonmf.tl.onmf(scaled, 2, layer="counts", copy=True)
        np.testing.assert_array_equal(raw.obsm["X_onmf"], layer.obsm["X_onmf"])
        assert raw.uns["onmf"]["params"]["use_raw"]

    def test_raw_of_the_genes_that_are_there(self, scaled):
        assert orthonmf.tl.onmf(scaled[:, 1:3].copy(), 2, use_raw=True, copy=True).varm["onmf"].shape == (2, 2)

    def test_raw_that_is_not_there_or_beside_a_layer(self, scaled):
        with pytest.raises(InvalidInputError, match="exclude each other"):
            orthonmf.tl.onmf(scaled, 2, use_raw=True, layer="counts")
        del scaled.raw
        with pytest.raises(InvalidInputError, match=r"adata\.raw is empty"):
            orthonmf.tl.onmf(scaled, 2, use_raw=True)

    def test_genes_in_other_units(self, scaled):
        scaled.layers["counts"][:, 2] *= 1e4
        with pytest.warns(UnitsWarning, match=r"Feature '2' holds 100% of the squared numbers.*normalize='max'"):
            orthonmf.tl.onmf(scaled, 2, layer="counts")
        orthonmf.tl.onmf(scaled, 2, layer="counts", normalize="max")
        assert scaled.uns["onmf"]["params"]["normalize"] == "max"
        labels = scaled.obs["onmf"].cat.codes.to_numpy()
        assert len(set(labels[:20])) == len(set(labels[20:])) == 1
        assert labels[0] != labels[20]


def test_counts_have_a_loss_of_their_own():
    X = np.random.default_rng(0).poisson(np.kron(np.eye(2), np.ones((20, 3))) * 5 + 1).astype(float)
    X[:, 0] *= 100  # one gene that would decide alone by its squares, of which nothing is said here
    adata = anndata.AnnData(X)
    orthonmf.tl.onmf(adata, 2, loss="kullback-leibler", scaling="item")
    assert np.allclose(adata.obsm["X_onmf"].sum(axis=1), X.sum(axis=1))
