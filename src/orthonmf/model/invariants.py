"""What holds of every fitted model, whatever the data: checked before one is written, before one that was read is handed out, and by
``verify``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from .._common.encoding import unfit
from .._common.typing import Array
from ..distortion import loss_of
from ..exceptions import InfeasibleCapacityError, InvalidInputError
from ..search.bounded.bounds import Bounds
from ..search.transitions import persistence
from .certificate import Certificate
from .departure import asked_bounds
from .factors import p_root
from .posterior import Mixture

__all__ = ["ARRAYS", "OPTIONAL", "contradiction", "malformed", "misfit"]

# Kinds of numbers and lengths of each fitted array; lengths of one letter agree: k components, p features, n items.
ARRAYS = {
    "components_": ("f", "kp"),
    "labels_": ("i", "n"),
    "scale_": ("f", "n"),
    "counts_": ("i", "k"),
    "critical_betas_": ("f", "c"),
    "persistence_": ("f", "q"),
    "levels_": ("i", "v"),
    "bic_": ("f", "m"),
    "agreement_": ("f", "m"),
    "p_values_": ("f", "m"),
    "stability_": ("f", "k"),
    "_weight": ("f", "k"),
    "_reference": ("f", "d"),
}
# The same of those that not every model has.
OPTIONAL = {"_prices": ("f", "k"), "_item_size": ("f", "n"), "margin_": ("f", "n")}


def misfit(arrays: Mapping[str, Any], specs: Mapping[str, tuple[str, str]]) -> str | None:
    """The first of some arrays that is not of the kind and lengths that are specified for it, in words; None where all are."""
    lengths = {"2": 2}
    for name, array in arrays.items():
        kinds, letters = specs[name]
        if not isinstance(array, np.ndarray):
            return f"{name} is a {type(array).__name__}, and no array"
        agree = array.ndim == len(letters) and all(lengths.setdefault(*pair) == pair[1] for pair in zip(letters, array.shape, strict=True))
        # An annealing without temperatures has arrays without entries, and these are floats.
        if not agree or ((array.size or array.dtype.kind == "O") and array.dtype.kind not in kinds):
            return f"array {name} has shape {array.shape} and dtype {array.dtype}, which does not fit the others"
    return None


def malformed(model: Any) -> str | None:
    """The first thing about a fitted ONMF with which nothing could be computed, in words; None where there is none."""
    # Each law may rely on those before it, so that nothing is looked at beyond the first that is broken.
    laws = (_of_types, _of_arrays, _of_shapes, _of_numbers, _of_sizes, _of_parameters, _of_history)
    return next(chain.from_iterable(law(model) for law in laws), None)


def contradiction(model: Any) -> str | None:
    """The first law that a fitted ONMF breaks, in words; None where all hold."""
    laws = (_of_factors, _of_scales, _of_bounds, _of_margins, _of_mixture, _of_claims, _of_transitions, _of_confidence)
    return malformed(model) or next(chain.from_iterable(law(model) for law in laws), None)


# -- what is needed to compute anything -------------------------------------------------------------------------------------------


def _of_types(model: Any) -> Iterator[str]:
    if type(model._mixture) not in (Mixture, type(None)):
        yield f"the probabilities are a {type(model._mixture).__name__}"
    if type(model.certificate_) is not Certificate or type(model._bounds) not in (Bounds, type(None)):
        yield f"certificate_ is a {type(model.certificate_).__name__}, and the bounds are a {type(model._bounds).__name__}"
    if complaint := unfit(model.certificate_):
        yield f"of certificate_, {complaint}"
    if type(model.n_components_) is not int or type(model.reconstruction_err_) is not float:
        yield f"n_components_ is {model.n_components_!r:.60} and reconstruction_err_ {model.reconstruction_err_!r:.60}"


def _of_arrays(model: Any) -> Iterator[str]:
    given = {name: getattr(model, name) for name in ARRAYS}
    optional = {name: array for name in OPTIONAL if (array := getattr(model, name)) is not None}
    if complaint := misfit({**given, **optional}, {**ARRAYS, **OPTIONAL}):
        yield complaint
    if model._mixture is not None:
        parts = {"components_": model.components_, "centers": model._mixture.centers, "share": model._mixture.share}
        if complaint := misfit(parts, {"components_": ("f", "kp"), "centers": ("f", "kp"), "share": ("f", "k")}):
            yield f"of the probabilities, {complaint}"
    if model._bounds is not None:
        kinds = "i" if model._item_size is None else "f"
        if complaint := misfit(
            {"lower": model._bounds.lower, "upper": model._bounds.upper}, {"lower": (kinds, "b"), "upper": (kinds, "b")}
        ):
            yield f"of the bounds on the sizes, {complaint}"


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
    if len(model._reference) != (model.n_features_in_ if model.orthogonal == "samples" else 0):
        yield f"the reference has {len(model._reference)} entries for {model.n_features_in_} features"
    if len(model.persistence_) != max(len(model.critical_betas_) - 1, 0):
        yield f"persistence_ has {len(model.persistence_)} entries for {len(model.critical_betas_)} critical values"


def _of_numbers(model: Any) -> Iterator[str]:
    for name in ("components_", "scale_", "_weight", "_reference"):
        if not np.isfinite(getattr(model, name)).all():
            yield f"{name.strip('_')} has entries that are not finite"
    if (model._weight < 0).any():
        yield "weight has entries that are negative"
    if model._prices is not None and not np.isfinite(model._prices).all():
        yield "a price of the bounds is not finite"
    if model.labels_.min() < 0 or model.labels_.max() >= model.n_components_:
        yield f"labels_ goes from {model.labels_.min()} to {model.labels_.max()}, with {model.n_components_} components"
    if model.scale_.dtype != model.components_.dtype:
        yield f"scale_ has dtype {model.scale_.dtype}, and components_ {model.components_.dtype}"
    if model.orthogonal == "samples" and loss_of(model).scaled and abs(_length(model, model._reference) - 1) > ROUNDED:
        yield f"the reference has norm {_length(model, model._reference):.6g} instead of 1"
    if np.isnan(model.critical_betas_).any() or (model.critical_betas_ < 0).any():
        yield "critical_betas_ has entries below 0"


# A number near 1 that is 1 but for rounding: far above what the norm of a vector errs by, far below a change that matters.
ROUNDED = 1e-9


def _of_sizes(model: Any) -> Iterator[str]:
    size, bounds = model._item_size, model._bounds
    if size is not None and (not _nonnegative(size) or abs(size.mean() - 1) > ROUNDED):
        yield "the sizes of the items are negative, not finite, or their mean is not 1"
    if size is not None and not (model._total_size is not None and 0 < model._total_size < np.inf):
        yield f"the sum of the sizes of the items is {model._total_size}"
    if model._prices is not None and size is None:
        yield "there are prices of the bounds, and no sizes of items"
    if bounds is None:
        return
    if not _nonnegative(bounds.lower) or not _nonnegative(bounds.upper) or not (bounds.lower <= bounds.upper).all():
        yield "the bounds exclude each other"
    if not bounds.penalty > 0 or bounds.soft != (model.capacity_penalty is not None):
        yield f"the penalty of the bounds is {bounds.penalty}, which that of the parameters excludes"
    limit = bounds.penalty * (1 + ROUNDED)
    if model._prices is not None and (len(model._prices) != len(bounds.upper) or (np.abs(model._prices) > limit).any()):
        yield "the prices of the bounds are not one for each, up to the penalty"


def _of_parameters(model: Any) -> Iterator[str]:
    try:
        asked_bounds(model)
    except InfeasibleCapacityError:
        return  # they can be understood
    except InvalidInputError as error:
        yield str(error).rstrip(".")


def _of_history(model: Any) -> Iterator[str]:
    history = model.history_
    sizes = [history["n_components"].tolist(), *([len(each) for each in history[name]] for name in ("ids", "projection"))]
    if sizes[0] != sizes[1] or sizes[0] != sizes[2] or any(len(set(ids)) < len(ids) for ids in history["ids"]):
        yield "a temperature of the history has other components than it counts"
    if np.isnan(history["beta"]).any() or (history["beta"] < 0).any():
        yield "a temperature of the history is below 0"
    if any(not np.isfinite(points).all() for points in history["projection"]):
        yield "a centre of the history is nowhere"
    # Names are given in order, so that no branch of the tree comes back to itself.
    if any(child <= parent for _, parent, child in history["splits"]):
        yield "a component of the history is older than the one it comes from"


# -- what its numbers say of each other -------------------------------------------------------------------------------------------


def _of_factors(model: Any) -> Iterator[str]:
    for name in ("components_", "scale_"):
        if not _nonnegative(getattr(model, name)):
            yield f"{name.strip('_')} has entries that are negative"
    if not np.array_equal(np.bincount(model.labels_, minlength=model.n_components_), model.counts_):
        yield "counts_ does not count labels_"
    if model.orthogonal == "features" and np.count_nonzero(model.components_, axis=0).max() > 1:
        yield "a feature belongs to two components"
    if model.orthogonal == "features" or loss_of(model).scaled:
        norms = _length(model, model.components_[model.counts_ > 0].astype(np.float64))
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
    elif not loss_of(model).scaled and not np.array_equal(model.scale_, _shared_scales(model)):
        yield "scale_ is not one over the root of the weight of the component"


def _shared_scales(model: Any) -> Array:
    """N^{-1/2} of the component of each item, or 1/N of counts."""
    with np.errstate(divide="ignore"):
        return (1 / p_root(model._weight, loss_of(model).power))[model.labels_].astype(model.scale_.dtype)


def _of_bounds(model: Any) -> Iterator[str]:
    bounds = model._bounds
    if bounds is None or bounds.soft or model.rounding != "exact":  # these may exceed them, and say so
        return
    if bounds.outside(model.counts_) > 0:
        yield f"the sizes {model.counts_.tolist()[:30]} are not within their bounds"


def _of_margins(model: Any) -> Iterator[str]:
    if model.margin_ is None:
        return
    least, most = model.margin_.min(), model.margin_.max()
    if not -1 <= least <= most <= 1:
        yield f"margin_ goes from {least} to {most}, which are not between −1 and 1"
    if model.n_components_ == 1 and least < 1:
        yield "margin_ tells items of the only component from those of another"
    # Without bounds every sample is in its nearest component, of two as near in either; features have centres that their labels make.
    if model.orthogonal == "samples" and model._bounds is None and least < -float(np.finfo(model.margin_.dtype).eps):
        yield f"margin_ has the entry {least}, although no bound keeps a sample out of its nearest component"


def _of_mixture(model: Any) -> Iterator[str]:
    mixture = model._mixture
    if mixture is None:
        return
    if model.orthogonal == "features":
        yield "there are probabilities of samples, and features are assigned"
    if not _nonnegative(mixture.share) or abs(mixture.share.sum() - 1) > ROUNDED:
        yield f"the shares of the components add up to {mixture.share.sum():.6g} instead of 1, or one is below 0"
    if not 0 <= mixture.deviation < np.inf or not np.isfinite(mixture.centers).all():
        yield f"the components have the width {mixture.deviation}, or centres that are not finite"
    if loss_of(model).scaled and (np.abs(_length(model, mixture.centers) - 1) > ROUNDED).any():
        yield "a direction of the probabilities has another norm than 1"


def _of_claims(model: Any) -> Iterator[str]:
    claims = model.certificate_
    if (claims.n_items, claims.n_components) != (len(model.labels_), model.n_components_) or claims.counts != tuple(model.counts_.tolist()):
        yield "the certificate is of other sizes"
    if not claims.orthogonal:
        yield f"the certificate says that an item belongs to {claims.nonzeros_per_item} components"
    if not (0 <= claims.error < np.inf) or claims.error != model.reconstruction_err_:
        yield f"the error of the certificate is {claims.error}, that of the model {model.reconstruction_err_}"
    if len(() if claims.loads is None else claims.loads) != (0 if model._item_size is None else model.n_components_):
        yield "the certificate has loads of other components"
    if not all(0 <= load < np.inf for load in claims.loads or ()):
        yield f"the loads of the certificate are {claims.loads!r:.60}"
    if claims.kkt_residual is not None and not 0 <= claims.kkt_residual <= np.inf:
        yield f"the KKT residual of the certificate is {claims.kkt_residual}"


def _of_transitions(model: Any) -> Iterator[str]:
    """How long each number of components lasts follows from where they first exist."""
    expected = persistence(model.critical_betas_)
    known = np.isfinite(expected)  # in the units of X a critical value can be beyond all numbers
    if not np.allclose(model.persistence_[known], expected[known], rtol=ROUNDED, atol=ROUNDED):
        yield "persistence_ does not follow from critical_betas_"


def _of_confidence(model: Any) -> Iterator[str]:
    levels = model.levels_
    if levels.size and (levels.min() < 1 or (np.diff(levels) >= 0).any() or levels[0] > model.n_components_):
        yield f"levels_ is {levels.tolist()[:30]}, with {model.n_components_} components"
    for name in ("p_values_", "stability_"):
        values = np.asarray(getattr(model, name), dtype=np.float64)
        if not ((values >= 0) & (values <= 1) | np.isnan(values)).all():
            yield f"{name} has entries outside 0 to 1"
    agreement, bic = (np.asarray(getattr(model, name), dtype=np.float64) for name in ("agreement_", "bic_"))
    if (agreement > 1 + ROUNDED).any() or np.isinf(agreement).any() or np.isinf(bic).any():
        yield "agreement_ or bic_ has entries that cannot be"


def _length(model: Any, rows: Array) -> Any:
    """The norm in which rows of the factors have length one: the Euclidean one, or the sum of the entries for counts."""
    return np.linalg.norm(rows, ord=loss_of(model).power, axis=-1)


def _nonnegative(values: Array) -> bool:
    return bool(np.isfinite(values).all() and (values >= 0).all())
