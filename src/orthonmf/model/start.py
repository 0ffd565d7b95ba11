"""The parameter ``init``: where a fit begins as well, from centres, labels or a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.typing import Array
from ..distortion import loss_of
from ..engines.base import Engine
from ..exceptions import InvalidInputError
from ..search.start import Start
from .factors import p_root

__all__ = ["given_start", "plain_init"]

_EXPECTED = "expected centres (n_components, n_features), labels (n_samples,), a fitted ONMF, or None"


def given_start(model: Any, engine: Engine, item_size: Any) -> Start | None:
    """The start that an ONMF is given, checked against the items of its fit; ``data_digest_`` is already set."""
    if model.init is None:
        return None
    if model.rounding == "nearest" or item_size is not None:
        what = "rounding='nearest'" if item_size is None else "item_size"
        raise InvalidInputError(f"init is refined by exact assignments, which {what} excludes; leave out one of the two.")
    of_model = hasattr(model.init, "get_params")
    start = _of_model(model, model.init, engine) if of_model else _of_numbers(model, plain_init(model.init), engine)
    if start.n_components != model.n_components:
        raise InvalidInputError(
            f"init has {start.n_components} components, and n_components={model.n_components!r}; expected as many: set "
            f"n_components={start.n_components}, or another init."
        )
    return start


def plain_init(init: Any) -> Array | None:
    """A start as an array of numbers: of a fitted model its centres, or its labels where features are what is assigned."""
    if init is None:
        return None
    if hasattr(init, "get_params"):
        return init.labels_ if init.orthogonal == "features" else _centers(init)
    if isinstance(init, str):
        raise InvalidInputError(f"init={init!r} is not usable; {_EXPECTED}.")
    try:
        found: Array = np.asarray(init.toarray() if sp.issparse(init) else init)
    except ValueError as error:
        raise InvalidInputError(f"init is not usable: {error}; {_EXPECTED}.") from error
    if found.dtype.kind not in "fiu" or found.ndim not in (1, 2) or not found.size:
        hint = " For names of groups: np.unique(names, return_inverse=True)[1]." if found.dtype.kind in "OSUb" and found.ndim == 1 else ""
        raise InvalidInputError(f"init has shape {found.shape} and dtype {found.dtype}; {_EXPECTED}.{hint}")
    return found


def _centers(init: Any) -> Array:
    """The centres of a fitted model of samples, in the units of its data."""
    centers: Array = init.components_.astype(np.float64)
    return centers if loss_of(init).scaled else centers / p_root(init._weight, loss_of(init).power)[:, None]


def _of_numbers(model: Any, values: Any, engine: Engine) -> Start:
    if values.ndim == 1:
        return Start(labels=_checked_labels(model, values, engine.n_items))
    if model.orthogonal == "features":
        raise InvalidInputError(
            f"init has shape {values.shape}; with orthogonal='features' expected labels, one for each of the {engine.n_items} columns of "
            "X, or a fitted model."
        )
    return _start(model, values.astype(np.float64), engine)


def _start(model: Any, centers: Array, engine: Engine) -> Start:
    """From centres in the units of X."""
    if model.loss != "frobenius":
        raise InvalidInputError(f"init holds centres; with loss={model.loss!r} expected labels, such as those that a model predicts.")
    if centers.shape[1] != engine.n_dims:
        raise InvalidInputError(f"init has {centers.shape[1]} columns, X has {engine.n_dims} features; expected one column per feature.")
    usable = np.isfinite(centers) & (centers >= 0)
    if not usable.all():
        row, column = np.argwhere(~usable)[0]
        raise InvalidInputError(
            f"init holds {float(centers[row, column])!r} at row {row}, column {column}; centres are finite and nonnegative, as X is."
        )
    if loss_of(model).scaled:
        if (empty := np.flatnonzero(~centers.any(axis=1))).size:
            raise InvalidInputError(f"Row {empty[0]} of init is all zero; with scaling='item' a centre is a direction, and needs one.")
        return Start(centers=centers / centers.max(axis=1, keepdims=True))  # whose squares cannot overflow
    return Start(centers=np.ldexp(centers, engine.shift))


def _checked_labels(model: Any, labels: Array, n_items: int) -> Array:
    kind = "rows" if model.orthogonal == "samples" else "columns"
    if labels.shape != (n_items,):
        raise InvalidInputError(f"init has {len(labels)} labels, X has {n_items} {kind}; expected one label for each.")
    whole = np.where(np.isfinite(labels), labels, -1).astype(np.intp)
    if not (whole == labels).all():
        bad = int(np.argmax(whole != labels))
        raise InvalidInputError(f"init[{bad}]={labels[bad].item()!r} is no label; expected whole numbers from 0.")
    if (least := int(whole.min())) < 0:
        raise InvalidInputError(f"init[{int(whole.argmin())}]={least} is no label; expected whole numbers from 0.")
    if (most := int(whole.max())) >= n_items or (np.bincount(whole) == 0).any():
        missing = next(label for label in range(most + 1) if not (whole == label).any())
        raise InvalidInputError(
            f"init has labels up to {most} and none that is {missing}; expected 0, 1, … without gaps, as from "
            "np.unique(init, return_inverse=True)[1]."
        )
    return whole


def _of_model(model: Any, init: Any, engine: Engine) -> Start:
    """Its labels where it was fitted to the same data, or where features are assigned; else its centres."""
    if not hasattr(init, "data_digest_"):
        raise InvalidInputError(
            f"init is a {type(init).__name__}, and no fitted ONMF; fit it first, or of another model pass its labels or its centres."
        )
    if init.orthogonal != model.orthogonal:
        raise InvalidInputError(f"init has orthogonal={init.orthogonal!r}, and this model {model.orthogonal!r}; expected the same.")
    names, known = getattr(model, "feature_names_in_", None), getattr(init, "feature_names_in_", None)
    if names is not None and known is not None and len(names) == len(known) and not (names == known).all():
        place = int(np.argmax(names != known))
        raise InvalidInputError(
            f"Column {place} of X is {names[place]!r}, and was {known[place]!r} in the data of init; expected the same columns."
        )
    if init.n_features_in_ != model.n_features_in_:
        raise InvalidInputError(f"init was fitted to {init.n_features_in_} features, X has {model.n_features_in_}; expected the same.")
    if model.orthogonal == "features" or init.data_digest_ == model.data_digest_:
        return Start(labels=np.asarray(init.labels_))
    if init.scaling != model.scaling:
        raise InvalidInputError(
            f"init has scaling={init.scaling!r} and was fitted to other data; its centres say nothing for scaling={model.scaling!r}: pass "
            "init=model.predict(X), the labels that it gives to these."
        )
    return _start(model, _centers(init), engine)
