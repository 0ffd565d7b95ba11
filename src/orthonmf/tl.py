"""Factorise an AnnData in place, in scanpy's manner.

Nothing here imports anndata or pandas before it is called: ``import orthonmf`` needs neither.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ._common.typing import Array, Labels
from .estimator import ONMF
from .exceptions import InvalidInputError, MissingExtraError, UnitsWarning
from .model.certificate import Certificate
from .model.preparation import Preparation
from .model.units import uneven

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["onmf"]

# Attributes of a model, less the underscore, that say how many components there are and how sure that is.
NUMBER = ("critical_betas", "persistence", "levels", "bic", "agreement", "p_values", "stability")


def onmf(
    adata: AnnData,
    n_components: int | str = "auto",
    *,
    layer: str | None = None,
    use_raw: bool = False,
    mask_var: Any = None,
    normalize: str | None = None,
    key_added: str = "onmf",
    copy: bool = False,
    **params: Any,
) -> AnnData | None:
    """Factorise the cells × genes matrix of an AnnData, X ≈ T C, and store the factors in it.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, genes in columns; nonnegative, in memory, dense or sparse (it stays sparse). Counts, or counts normalised and
        ``log1p``-transformed; not centred or scaled ones, which have negative entries.
    n_components : int, "auto" or "persistence", default="auto"
        Number of components, or how to find it; see `orthonmf.ONMF`.
    layer : str or None, default=None
        The layer to factorise; None takes ``adata.X``.
    use_raw : bool, default=False
        Whether to factorise ``adata.raw``, of the genes that ``adata`` has: there the numbers are before they were centred or scaled.
    mask_var : str, array-like of bool or None, default=None
        The genes to use: the name of a column of ``adata.var``, such as "highly_variable", or one bool for each gene. None takes all.
    normalize : str or None, default=None
        What is done to the numbers first: "max", "std", "l2", "log1p", "tfidf", or several joined by commas, in this order; see
        `orthonmf.model.preparation`.
    key_added : str, default="onmf"
        Under which name the results are stored.
    copy : bool, default=False
        Whether to return a copy with the results instead of writing them to ``adata``.
    **params
        Other parameters of `orthonmf.ONMF`, such as ``orthogonal``, ``capacity`` or ``scaling``.

    Returns
    -------
    AnnData or None
        The copy, or None. With the default ``key_added`` these are set:

        ``.obsm["X_onmf"]`` : (n_obs, n_components)
            T: how much of each component a cell has.
        ``.varm["onmf"]`` : (n_vars, n_components)
            Cᵀ: the weight of each gene in each component; 0 for genes that were not used.
        ``.obs["onmf"]`` or ``.var["onmf"]`` : categorical
            The component of each cell (``orthogonal="samples"``, the default) or of each gene ("features"; missing where not used).
        ``.obs["onmf_margin"]`` or ``.var["onmf_margin"]`` : float
            How clear that is, from 0 to 1: `margin_` of `orthonmf.ONMF` (missing where not used).
        ``.obs["onmf_probability"]`` : float
            How probable the component of each cell is, by `predict_proba`. Not for "features", nor after a fit that was stopped.
        ``.uns["onmf"]`` : dict
            ``params``, ``n_components``, ``counts``, ``critical_betas``, ``persistence``, ``levels``, ``bic``, ``agreement``,
            ``p_values``, ``stability``, ``history``, ``status``, ``data_digest``, ``error``, ``relative_error`` and ``certificate``.

    See Also
    --------
    orthonmf.pl : Figures of what is stored.
    orthonmf.ONMF : The parameters, and what they do.

    Examples
    --------
    >>> import anndata
    >>> import orthonmf
    >>> data = orthonmf.datasets.make_onmf(60, 8, 3, noise=0.5, random_state=0)
    >>> adata = anndata.AnnData(data.X)
    >>> orthonmf.tl.onmf(adata)
    >>> adata.obsm["X_onmf"].shape, adata.varm["onmf"].shape
    ((60, 3), (8, 3))
    >>> adata.obs["onmf"].cat.categories.tolist()
    ['0', '1', '2']
    >>> adata.uns["onmf"]["certificate"]["holds"]
    True
    """
    _check(adata)
    used = _used_genes(adata, mask_var)
    X = _matrix(adata, layer, use_raw=use_raw)
    model = ONMF(n_components, **params)
    chosen = X if used.all() else X[:, used]
    if normalize is not None:
        model._preparation, chosen = Preparation.of(normalize, chosen)
    elif model.loss == "frobenius" and (sentence := uneven(chosen, adata.var_names[used], "normalize='max', or 'std'")) is not None:
        warnings.warn(f"{sentence[0].upper()}{sentence[1:]}", UnitsWarning, stacklevel=2)
    T = model.fit_transform(chosen)
    target = adata.copy() if copy else adata
    _forget(target, key_added)
    target.obsm[f"X_{key_added}"] = T
    target.varm[key_added] = _spread(model.components_.T, used)
    if model.orthogonal == "samples":
        target.obs[key_added] = _categories(model.labels_, model.n_components_)
        for name, values in model._certainty(chosen, model.labels_).items():
            target.obs[f"{key_added}_{name}"] = values
    else:
        target.var[key_added] = _categories(_spread(model.labels_ + 1, used) - 1, model.n_components_)
        margin = model._certainty(chosen, model.labels_)["margin"]
        target.var[f"{key_added}_margin"] = np.where(used, _spread(margin, used), np.nan)
    target.uns[key_added] = _summary(model, {"layer": layer, "use_raw": use_raw or None, "mask_var": mask_var, "normalize": normalize})
    return target if copy else None


def _check(adata: Any) -> None:
    try:
        from anndata import AnnData
    except ImportError as error:
        raise MissingExtraError("orthonmf.tl needs anndata, which is not installed; pip install 'orthonmf[io]'.") from error
    if not isinstance(adata, AnnData):
        raise InvalidInputError(f"adata is {type(adata).__name__}; expected an AnnData. For a plain matrix use orthonmf.ONMF.")
    if adata.isbacked:
        raise InvalidInputError(f"adata is backed by {adata.filename}; expected one in memory. Pass adata.to_memory().")


def _matrix(adata: AnnData, layer: str | None, *, use_raw: bool) -> Any:
    """The numbers that are asked for, which must not be negative."""
    X = _found(adata, layer, use_raw=use_raw)
    if X.shape[0] and X.shape[1] and X.min() < 0:
        elsewhere = [f"layer={name!r}" for name in sorted(adata.layers) if name != layer]
        elsewhere += ["use_raw=True"] if adata.raw is not None and not use_raw else []
        raise InvalidInputError(
            f"adata has negative numbers, the least {float(X.min()):.3g}: it was centred or scaled. Nonnegative ones are expected; try "
            + (f"{' or '.join(elsewhere)}." if elsewhere else "the counts, or their log1p, from before that.")
        )
    return X


def _found(adata: AnnData, layer: str | None, *, use_raw: bool) -> Any:
    if use_raw:
        if layer is not None:
            raise InvalidInputError(f"use_raw=True and layer={layer!r} exclude each other; pass one of them.")
        if adata.raw is None:
            raise InvalidInputError("use_raw=True, but adata.raw is empty; pass a layer, or use_raw=False for adata.X.")
        return adata.raw[:, adata.var_names].X
    if layer is not None and layer not in adata.layers:
        raise InvalidInputError(f"layer={layer!r} is not in adata; expected one of {sorted(adata.layers)}, or None for adata.X.")
    X = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise InvalidInputError(f"adata.X is empty; name one of the layers, {sorted(adata.layers)}.")
    return X


def _used_genes(adata: AnnData, mask_var: Any) -> Array:
    """One bool for each gene."""
    if mask_var is None:
        return np.ones(adata.n_vars, dtype=bool)
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            raise InvalidInputError(f"mask_var={mask_var!r} is not in adata.var; expected one of {list(adata.var.columns)}.")
        mask_var = adata.var[mask_var]
    used = np.asarray(mask_var)
    if used.dtype != bool or used.shape != (adata.n_vars,):
        raise InvalidInputError(
            f"mask_var has shape {used.shape} and dtype {used.dtype}; expected {adata.n_vars} booleans, one for each gene."
        )
    if not used.any():
        raise InvalidInputError("mask_var selects no gene; expected at least one.")
    return used


def stored_summary(adata: AnnData, key: str) -> dict[str, Any] | None:
    """What an earlier run stored in ``uns`` under this key; None where nothing, or something else, is there."""
    summary = adata.uns.get(key)
    return summary if isinstance(summary, dict) and "certificate" in summary else None


def _forget(adata: AnnData, key: str) -> None:
    """Drop the labels of an earlier run under this key, which may have been those of the other axis."""
    if stored_summary(adata, key) is not None:
        for table in (adata.obs, adata.var):
            for name in {key, f"{key}_margin", f"{key}_probability"} & set(table):
                del table[name]


def _spread(values: Array, used: Array) -> Array:
    """Rows for all genes, 0 where a gene was not used."""
    if used.all():
        return values
    full = np.zeros((len(used), *values.shape[1:]), dtype=values.dtype)
    full[used] = values
    return full


def _categories(codes: Labels, n_components: int) -> Any:
    """Labels as scanpy has them: categories "0", "1", …; missing where the code is −1."""
    import pandas as pd

    return pd.Categorical.from_codes(codes, categories=[str(j) for j in range(n_components)])


def _summary(model: ONMF, asked: dict[str, Any]) -> dict[str, Any]:
    """What is stored in ``uns``: strings, numbers, arrays and dicts of them, which .h5ad can hold; what is None is left out."""
    params = {**model.get_params(), **asked}
    return {
        "params": {name: _storable(value) for name, value in params.items() if value is not None},
        "n_components": model.n_components_,
        "counts": model.counts_,
        **{name: getattr(model, f"{name}_") for name in NUMBER},
        "history": _flat(model.history_),
        "status": model.status_,
        "data_digest": model.data_digest_,
        "error": model.reconstruction_err_,
        "relative_error": model.certificate_.relative_error,
        "certificate": _plain(model.certificate_),
    }


def _storable(value: Any) -> Any:
    if isinstance(value, str | int | float | dict):
        return value
    array = np.asarray(value)
    return str(value) if array.dtype == object else array


def _flat(history: dict[str, Any]) -> dict[str, Array]:
    """The history with its lists of arrays end to end; ``n_components`` says where to cut."""
    columns = {
        name: np.asarray(history[name]) for name in ("beta", "n_components", "free_energy", "distortion", "entropy", "passes", "stage")
    }
    columns["projection"] = np.concatenate([np.zeros((0, 2)), *history["projection"]])
    columns["ids"] = np.array([name for ids in history["ids"] for name in ids], dtype=np.int64)
    columns["splits"] = np.array(history["splits"], dtype=np.float64).reshape(-1, 3)
    return columns


def _plain(certificate: Certificate) -> dict[str, Any]:
    """A certificate as a dict that .h5ad can hold."""
    fields = {name: value for name, value in asdict(certificate).items() if value is not None}
    for name in ("counts", "loads"):
        if name in fields:
            fields[name] = np.asarray(fields[name])
    return {**fields, "claims": certificate.claims, "holds": certificate.holds}
