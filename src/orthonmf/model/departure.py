"""What a fitted model stores, against what its data and its parameters give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from math import inf
from typing import Any

import numpy as np

from ..distortion import loss_of
from ..distortion.base import Distortion
from ..engines.base import Engine, doubled, mean_size
from ..exceptions import InfeasibleCapacityError, InvalidInputError
from ..passes.base import host
from ..passes.hard import MeanReach, Reach
from ..search.bounded.bounds import Bounds, n_bounds, parse_bounds, parse_loads
from .certificate import CONSERVED, GAP, STATIONARY, Certificate
from .factors import weights

__all__ = ["asked_bounds", "departure"]

# Two errors of the same data agree to this fraction of them, and this many roundings of ‖X‖.
SAME, STORED_ROUNDINGS = 1e-6, 16.0
# A reference may be so many times as far from the items, on average, as their own: distances about it then have the digits they need.
FARTHER = 2.0


def asked_bounds(model: Any, engine: Engine | None = None) -> Bounds | None:
    """The bounds that the parameters of a fitted model ask for, whether any partition meets them or not.

    A penalty is in the units of an engine on the data; without one, it is that for items of norm one. None where nothing is asked for, or
    soft bounds exclude nothing.
    """
    n_items, n_components = len(model.labels_), model.n_components_
    soft = model.capacity_penalty is not None
    penalty = model.capacity_penalty * (1.0 if engine is None else mean_size(engine, loss_of(model).power)) if soft else inf
    if model._item_size is not None:
        return parse_loads(model.capacity, model.min_size, n_components, n_items, model._total_size, penalty)
    number = n_bounds(model.capacity, model.min_size, max(n_components, 0 if isinstance(model.n_components, str) else model.n_components))
    bounds = parse_bounds(model.capacity, model.min_size, number, n_items, 0.0)  # as if soft, so that their sum does not matter
    if bounds is None or (soft and not bounds.bind(n_items)):
        return None
    return replace(bounds, penalty=penalty)


def departure(model: Any, engine: Engine, found: Certificate) -> str | None:
    """The first number of a fitted ONMF that is not what its data give, in words; None where all are.

    ``engine`` is on the data of the fit, ``found`` the certificate recomputed from them, in the units of X.
    """
    exact = doubled(engine)
    checks = (
        _of_bounds(model, exact),
        _of_errors(model, found),
        _of_record(model, found),
        _of_margins(model, exact),
        _of_items(model, exact),
    )
    return next(chain.from_iterable(checks), None)


def _of_bounds(model: Any, engine: Engine) -> Iterator[str]:
    try:
        asked = asked_bounds(model, engine)
    except (InvalidInputError, InfeasibleCapacityError) as error:
        yield str(error).rstrip(".")
        return
    if not _same_bounds(asked, model._bounds):
        yield f"capacity={model.capacity!r} and min_size={model.min_size!r} are not the bounds of the fit"


def _same_bounds(one: Bounds | None, other: Bounds | None) -> bool:
    if one is None or other is None:
        return one is other
    arrays = np.array_equal(one.lower, other.lower) and np.array_equal(one.upper, other.upper)
    return arrays and one.named == other.named and bool(np.isclose(one.penalty, other.penalty, rtol=SAME, atol=0))


def _of_errors(model: Any, found: Certificate) -> Iterator[str]:
    eps = float(np.finfo(model.components_.dtype).eps)
    recorded = model.certificate_
    pairs = {
        "reconstruction_err_": (model.reconstruction_err_, found.error, found.norm),
        "the error of certificate_": (recorded.error, found.error, found.norm),
        "the relative error of certificate_": (recorded.relative_error, found.relative_error, 1.0),
        "the norm of certificate_": (recorded.norm, found.norm, found.norm),
        "the separation of certificate_": (_or_nan(recorded.separation), _or_nan(found.separation), 0.0),
        "the lower bound of certificate_": (_or_nan(recorded.lower_bound), _or_nan(found.lower_bound), found.norm),
    }
    if recorded.lower_bound is None:  # a fit need not have had the time for it
        del pairs["the lower bound of certificate_"]
    if recorded.separation is None:  # nor an older version have known of it
        del pairs["the separation of certificate_"]
    for name, (stored, true, size) in pairs.items():
        if not np.isclose(stored, true, rtol=SAME, atol=STORED_ROUNDINGS * eps * size, equal_nan=True):
            yield f"{name} is {stored:.6g}, and the data give {true:.6g}"


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _of_record(model: Any, found: Certificate) -> Iterator[str]:
    """The other numbers of the certificate of the fit, each to the tolerance of its claim."""
    recorded = model.certificate_
    for name in ("nonzeros_per_item", "nonnegative", "misplaced", "counts", "contradiction"):
        if getattr(recorded, name) != getattr(found, name):
            yield f"{name} of certificate_ is {getattr(recorded, name)!r:.60}, and the data give {getattr(found, name)!r:.60}"
    for name, tolerance in (("gap", GAP), ("stationarity", STATIONARY), ("scale_gap", GAP), ("conservation", CONSERVED)):
        stored, true = getattr(recorded, name), getattr(found, name)
        if not (stored == true or abs(stored - true) <= tolerance):
            yield f"{name} of certificate_ is {stored:.6g}, and the data give {true:.6g}"
    if found.loads is not None and not np.allclose(recorded.loads, found.loads, rtol=SAME, atol=0):
        yield "the loads of certificate_ are not those of the items"
    if not _same_bounds(recorded.bounds, model._bounds):
        yield "the bounds of certificate_ are not those of the model"


def _of_margins(model: Any, engine: Engine) -> Iterator[str]:
    if model.margin_ is None:  # of a model that an older version wrote
        return
    given = host(model._margins(engine, model.labels_))
    if not np.allclose(model.margin_, given, rtol=0, atol=max(SAME, STORED_ROUNDINGS * float(np.finfo(model.margin_.dtype).eps))):
        yield "margin_ is not what the data and components_ give"


def _of_items(model: Any, engine: Engine) -> Iterator[str]:
    """Scales, weights and reference; of features the laws of the model itself tell."""
    if model.orthogonal == "features":
        return
    factors, kind = model._factors, np.finfo(model.components_.dtype)
    scale = host(factors.assign(engine, model.labels_).scale)
    if loss_of(model).scaled and not np.allclose(
        model.scale_, scale, rtol=STORED_ROUNDINGS * float(kind.eps), atol=float(kind.smallest_subnormal)
    ):
        yield "scale_ is not what the data and components_ give"
    if not np.allclose(model._weight, weights(engine, model.labels_, model.n_components_), rtol=SAME, atol=0):
        yield "the weights of the components are not those of the samples"
    stored, own = factors.distortion(engine), loss_of(model).of(engine)
    if _mean_reach(engine, stored) > FARTHER * _mean_reach(engine, own) + STORED_ROUNDINGS * float(kind.eps) * float(
        np.linalg.norm(own.ref)
    ):
        yield "the reference is far from the samples"


def _mean_reach(engine: Engine, distortion: Distortion) -> float:
    """Mean distance ‖x'‖ of the items from the reference."""
    total: Reach = engine.run(distortion, MeanReach()).total
    return total.reach / total.weight if total.weight > 0 else 0.0
