"""What holds of every fitted model, whatever the data: checked before one is written, and before one that was read is handed out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from ._typing import Array

__all__ = ["contradiction"]


def contradiction(model: Any) -> str | None:
    """The first law that a fitted ONMF breaks, in words; None where all hold."""
    # Each law may rely on those before it, so that nothing is looked at beyond the first that is broken.
    laws = (_of_shapes, _of_factors, _of_scales, _of_bounds, _of_claims, _of_history)
    return next(chain.from_iterable(law(model) for law in laws), None)


def _of_shapes(model: Any) -> Iterator[str]:
    n_items, shape = len(model.labels_), model.components_.shape
    if min(n_items, *shape) < 1:
        yield f"there are {n_items} items and components of shape {shape}"
    if shape != (model.n_components_, model.n_features_in_):
        yield f"components_ has shape {shape}, and there are {model.n_components_} components of {model.n_features_in_} features"
    names = getattr(model, "feature_names_in_", None)
    if names is not None and len(names) != model.n_features_in_:
        yield f"there are {len(names)} names of {model.n_features_in_} features"
    if model.orthogonal == "features" and n_items != model.n_features_in_:
        yield f"labels_ has {n_items} entries for {model.n_features_in_} features"
    if model.orthogonal == "samples" and len(model._reference) != model.n_features_in_:
        yield f"the reference has {len(model._reference)} entries for {model.n_features_in_} features"
    if len(model.persistence_) != max(len(model.critical_betas_) - 1, 0):
        yield f"persistence_ has {len(model.persistence_)} entries for {len(model.critical_betas_)} critical values"
    if np.isnan(model.critical_betas_).any() or (model.critical_betas_ < 0).any():
        yield "critical_betas_ has entries below 0"


def _of_factors(model: Any) -> Iterator[str]:
    for name in ("components_", "scale_", "_weight"):
        if not _nonnegative(getattr(model, name)):
            yield f"{name.strip('_')} has entries that are negative or not finite"
    if not np.isfinite(model._reference).all():
        yield "the reference has entries that are not finite"
    if model.labels_.min() < 0 or model.labels_.max() >= model.n_components_:
        yield f"labels_ goes from {model.labels_.min()} to {model.labels_.max()}, with {model.n_components_} components"
    if not np.array_equal(np.bincount(model.labels_, minlength=model.n_components_), model.counts_):
        yield "counts_ does not count labels_"
    if model.orthogonal == "features" and np.count_nonzero(model.components_, axis=0).max() > 1:
        yield "a feature belongs to two components"
    if model.orthogonal == "features" or model.scaling == "item":
        norms = np.linalg.norm(model.components_[model.counts_ > 0].astype(np.float64), axis=1)
        # Far above rounding, far below a change that matters. A component without items has no direction.
        if (np.abs(norms - 1) > np.sqrt(np.finfo(model.components_.dtype).eps)).any():
            yield f"a row of components_ has norm {norms[np.abs(norms - 1).argmax()]:.6g} instead of 1"


def _of_scales(model: Any) -> Iterator[str]:
    if model.orthogonal == "features":
        own = model.components_[model.labels_, np.arange(len(model.labels_))]
        if not np.array_equal(model.scale_, own) or np.count_nonzero(own) != np.count_nonzero(model.components_):
            yield "scale_ is not the one nonzero of each feature"
        if not np.array_equal(model._weight, model.counts_):
            yield "the weights of the components do not count features"
    elif model.scaling == "none" and not np.array_equal(model.scale_, _shared_scales(model)):
        yield "scale_ is not one over the root of the weight of the component"


def _shared_scales(model: Any) -> Array:
    """N^{-1/2} of the component of each item."""
    with np.errstate(divide="ignore"):
        return (1 / np.sqrt(model._weight))[model.labels_].astype(model.scale_.dtype)


def _of_bounds(model: Any) -> Iterator[str]:
    bounds = model._bounds
    if model._item_size is not None and not _nonnegative(model._item_size):
        yield "a size of an item is negative or not finite"
    if bounds is None:
        return
    if not _nonnegative(bounds.lower) or not (bounds.lower <= bounds.upper).all() or not bounds.penalty > 0:
        yield "the bounds exclude each other"
    hard = not bounds.soft and model.rounding == "exact"  # the other rounding may exceed them, and says so
    if hard and bounds.outside(model.counts_) > 0:
        yield f"the sizes {model.counts_.tolist()[:30]} are not within their bounds"


def _of_claims(model: Any) -> Iterator[str]:
    claims = model.certificate_
    if (claims.n_items, claims.n_components) != (len(model.labels_), model.n_components_) or claims.counts != tuple(model.counts_.tolist()):
        yield "the certificate is of other sizes"
    if not claims.orthogonal:
        yield f"the certificate says that an item belongs to {claims.nonzeros_per_item} components"
    if not (0 <= claims.error < np.inf) or claims.error != model.reconstruction_err_:
        yield f"the error of the certificate is {claims.error}, that of the model {model.reconstruction_err_}"
    if (claims.loads is None) != (model._item_size is None) or len(claims.loads or claims.counts) != model.n_components_:
        yield "the certificate has loads of other components"


def _of_history(model: Any) -> Iterator[str]:
    history = model.history_
    sizes = [history["n_components"].tolist(), *([len(each) for each in history[name]] for name in ("ids", "projection"))]
    if sizes[0] != sizes[1] or sizes[0] != sizes[2] or any(len(set(ids)) < len(ids) for ids in history["ids"]):
        yield "a temperature of the history has other components than it counts"
    if np.isnan(history["beta"]).any() or (history["beta"] < 0).any():
        yield "a temperature of the history is below 0"
    if any(np.isnan(points).any() for points in history["projection"]):
        yield "a centre of the history is nowhere"
    # Names are given in order, so that no branch of the tree comes back to itself.
    if any(child <= parent for _, parent, child in history["splits"]):
        yield "a component of the history is older than the one it comes from"


def _nonnegative(values: Array) -> bool:
    return bool(np.isfinite(values).all() and (values >= 0).all())
