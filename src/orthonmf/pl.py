"""Figures of a factorisation that `orthonmf.tl.onmf` stored in an AnnData, in scanpy's manner.

Each function draws one of the displays of `orthonmf.plot` and returns it: ``display.ax_`` and ``display.figure_`` are matplotlib's.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._common.typing import Array, Labels
from .estimator import ONMF
from .exceptions import InvalidInputError
from .model.certificate import Certificate
from .search.bounded.bounds import Bounds
from .tl import NUMBER, stored_summary

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["bifurcation", "components", "history", "number", "persistence", "report", "sizes"]


def persistence(adata: AnnData, *, key: str = "onmf", ax: Any = None, **kwargs: Any) -> Any:
    """How long each number of components lasts as β grows.

    Parameters
    ----------
    adata : AnnData
        In which `orthonmf.tl.onmf` stored its results.
    key : str, default="onmf"
        The ``key_added`` they were stored under.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a figure.
    **kwargs
        Passed to `orthonmf.plot.PersistenceDisplay.from_estimator`.

    Returns
    -------
    orthonmf.plot.PersistenceDisplay

    Examples
    --------
    >>> import anndata
    >>> import orthonmf
    >>> adata = anndata.AnnData(orthonmf.datasets.make_onmf(60, 8, 3, noise=0.5, random_state=0).X)
    >>> orthonmf.tl.onmf(adata, max_components=6)
    >>> display = orthonmf.pl.persistence(adata)
    >>> display.figure_.savefig("persistence.png")  # doctest: +SKIP
    """
    from .plot import PersistenceDisplay

    return PersistenceDisplay.from_estimator(_stored(adata, key), ax=ax, **kwargs)


def number(adata: AnnData, *, key: str = "onmf", ax: Any = None, **kwargs: Any) -> Any:
    """What speaks for each number of components: the likelihood, and the agreement of halves of the cells.

    Parameters are those of `persistence`; others go to `orthonmf.plot.NumberDisplay.from_estimator`.

    Returns
    -------
    orthonmf.plot.NumberDisplay

    Examples
    --------
    >>> import anndata
    >>> import orthonmf
    >>> adata = anndata.AnnData(orthonmf.datasets.make_onmf(60, 8, 3, noise=0.5, random_state=0).X)
    >>> orthonmf.tl.onmf(adata, max_components=6)
    >>> display = orthonmf.pl.number(adata)
    """
    from .plot import NumberDisplay

    return NumberDisplay.from_estimator(_stored(adata, key), ax=ax, **kwargs)


def bifurcation(adata: AnnData, *, key: str = "onmf", ax: Any = None, **kwargs: Any) -> Any:
    """The centres as β grows: every fork is a phase transition.

    Parameters are those of `persistence`; others go to `orthonmf.plot.BifurcationDisplay.from_estimator`.

    Returns
    -------
    orthonmf.plot.BifurcationDisplay

    Examples
    --------
    >>> import anndata
    >>> import orthonmf
    >>> adata = anndata.AnnData(orthonmf.datasets.make_onmf(60, 8, 3, noise=0.5, random_state=0).X)
    >>> orthonmf.tl.onmf(adata, max_components=6)
    >>> display = orthonmf.pl.bifurcation(adata)
    """
    from .plot import BifurcationDisplay

    return BifurcationDisplay.from_estimator(_stored(adata, key), ax=ax, **kwargs)


def history(adata: AnnData, *, key: str = "onmf", ax: Any = None, **kwargs: Any) -> Any:
    """Free energy, distortion, entropy and the number of components against β.

    Parameters are those of `persistence`; others go to `orthonmf.plot.HistoryDisplay.from_estimator`.

    Returns
    -------
    orthonmf.plot.HistoryDisplay

    Examples
    --------
    >>> import anndata
    >>> import orthonmf
    >>> adata = anndata.AnnData(orthonmf.datasets.make_onmf(60, 8, 3, noise=0.5, random_state=0).X)
    >>> orthonmf.tl.onmf(adata, max_components=6)
    >>> display = orthonmf.pl.history(adata)
    """
    from .plot import HistoryDisplay

    return HistoryDisplay.from_estimator(_stored(adata, key), ax=ax, **kwargs)


def sizes(adata: AnnData, *, key: str = "onmf", ax: Any = None, **kwargs: Any) -> Any:
    """Cells (or genes) in each component, against the bounds where there are any.

    Parameters are those of `persistence`; others go to `orthonmf.plot.SizesDisplay.from_estimator`.

    Returns
    -------
    orthonmf.plot.SizesDisplay

    Examples
    --------
    >>> import anndata
    >>> import orthonmf
    >>> adata = anndata.AnnData(orthonmf.datasets.make_onmf(60, 8, 3, noise=0.5, random_state=0).X)
    >>> orthonmf.tl.onmf(adata, 3, capacity=25)
    >>> display = orthonmf.pl.sizes(adata)
    >>> display.upper
    array([25, 25, 25])
    """
    from .plot import SizesDisplay

    return SizesDisplay.from_estimator(_stored(adata, key), ax=ax, **kwargs)


def components(adata: AnnData, *, key: str = "onmf", ax: Any = None, **kwargs: Any) -> Any:
    """The weights of the genes in each component, by name.

    Parameters are those of `persistence`; others go to `orthonmf.plot.ComponentsDisplay.from_estimator`.

    Returns
    -------
    orthonmf.plot.ComponentsDisplay

    Examples
    --------
    >>> import anndata
    >>> import orthonmf
    >>> adata = anndata.AnnData(orthonmf.datasets.make_onmf(60, 8, 3, noise=0.5, random_state=0).X)
    >>> orthonmf.tl.onmf(adata, max_components=6)
    >>> display = orthonmf.pl.components(adata)
    """
    from .plot import ComponentsDisplay

    return ComponentsDisplay.from_estimator(_stored(adata, key), ax=ax, **kwargs)


def report(adata: AnnData, path: str | os.PathLike[str], *, key: str = "onmf", title: str | None = None) -> Path:
    """The whole factorisation as one HTML page; see `orthonmf.report.write_report`.

    Parameters
    ----------
    adata : AnnData
        In which `orthonmf.tl.onmf` stored its results.
    path : path-like
    key : str, default="onmf"
    title : str or None, default=None

    Returns
    -------
    path : Path

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import anndata
    >>> import orthonmf
    >>> adata = anndata.AnnData(orthonmf.datasets.make_onmf(60, 8, 3, noise=0.5, random_state=0).X)
    >>> orthonmf.tl.onmf(adata, max_components=6)
    >>> with TemporaryDirectory() as folder:
    ...     orthonmf.pl.report(adata, f"{folder}/report.html").name
    'report.html'
    """
    from .report import write_report

    model = _stored(adata, key)
    names = adata.obs_names if model.orthogonal == "samples" else model.feature_names_in_
    return write_report(model, path, item_names=names, title=title)


def _stored(adata: AnnData, key: str) -> ONMF:
    """The fitted model as far as figures need it, from what `orthonmf.tl.onmf` stored."""
    summary = stored_summary(adata, key)
    if summary is None:
        raise InvalidInputError(f"adata.uns[{key!r}] holds no factorisation; run orthonmf.tl.onmf(adata, key_added={key!r}) first.")
    known = ONMF().get_params()
    model = ONMF(**{name: value for name, value in summary["params"].items() if name in known})
    table = adata.obs if model.orthogonal == "samples" else adata.var
    codes = _codes(table[key], int(summary["n_components"]))
    loadings = np.asarray(adata.varm[key])
    used = _used(loadings, codes, model.orthogonal, masked="mask_var" in summary["params"])
    model.components_ = loadings[used].T
    model.labels_ = codes[codes >= 0]
    margin = table.get(f"{key}_margin")  # an older version stored none
    model.margin_ = None if margin is None else np.asarray(margin)[codes >= 0]
    factor = adata.obsm[f"X_{key}"] if model.orthogonal == "samples" else model.components_.T
    model.scale_ = np.asarray(factor.sum(axis=1)).ravel()  # the only nonzero of an item; T may be sparse
    model.feature_names_in_ = adata.var_names[used].to_numpy(dtype=object)
    model.n_features_in_ = int(used.sum())
    model.n_components_ = int(summary["n_components"])
    model.counts_ = np.asarray(summary["counts"])
    for name in NUMBER:
        setattr(model, f"{name}_", np.asarray(summary[name]))
    model.history_ = _listed(summary["history"])
    model.status_ = str(summary["status"])
    model.data_digest_ = summary.get("data_digest")  # an older version stored none
    model.reconstruction_err_ = float(summary["error"])
    model.certificate_ = _certificate(summary["certificate"])
    model._bounds = model.certificate_.bounds
    return model


def _codes(column: Any, n_components: int) -> Labels:
    """The component of each item, −1 where it has none. AnnData drops categories that a selection leaves without items, so their
    names tell, and their places only where all of them were renamed."""
    categories, names = column.cat.categories.tolist(), [str(j) for j in range(n_components)]
    if set(categories) <= set(names):
        return np.array([*map(int, categories), -1], dtype=np.intp)[column.cat.codes]
    if len(categories) != n_components:
        raise InvalidInputError(f"{column.name!r} has the categories {categories[:12]}; expected {n_components}, one for each component.")
    return np.asarray(column.cat.codes, dtype=np.intp)


def _used(loadings: Array, codes: Labels, orthogonal: str, *, masked: bool) -> Array:
    """The genes that were factorised: those with a label; where cells have the labels, those with a weight."""
    if orthogonal == "features":
        return np.asarray(codes >= 0)
    return np.asarray(loadings.any(axis=1)) if masked else np.ones(len(loadings), dtype=bool)


def _listed(flat: dict[str, Array]) -> dict[str, Any]:
    """A history as a fitted model has it, from the one stored end to end."""
    ends = np.cumsum(flat["n_components"], dtype=np.intp)
    each = [slice(end - int(count), end) for end, count in zip(ends, flat["n_components"], strict=True)]
    return {
        **flat,
        "projection": [flat["projection"][where] for where in each],
        "ids": [tuple(flat["ids"][where].tolist()) for where in each],
        "splits": [(float(beta), int(parent), int(child)) for beta, parent, child in flat["splits"]],
        "lyapunov": [None] * len(flat["beta"]),
    }


def _certificate(fields: dict[str, Any]) -> Certificate:
    """A certificate from the dict that was stored; `claims` and `holds` follow from the rest."""
    known = {name: value for name, value in fields.items() if name not in ("claims", "holds")}
    bounds = fields.get("bounds")
    known["bounds"] = None if bounds is None else Bounds(**bounds)
    known["counts"] = tuple(np.asarray(fields["counts"]).tolist())
    return Certificate(**{"lower_bound": None, **known})
