"""What was asked and what is claimed, in plain words."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ..certificate import GAP, STATIONARY, Certificate
from ..track import located
from ..transitions import MIN_PERSISTENCE
from .text import count, escaped, number, percent, plural

__all__ = ["asked", "evidence", "noun", "summary", "why"]

# Parameters that have a line of their own.
_SPOKEN = {"n_components", "max_components", "orthogonal", "scaling", "capacity", "min_size", "capacity_penalty"}
# Parameters that change neither the question nor the answer.
_SILENT = {"n_jobs", "verbose", "engine", "sparse_output"}


def noun(model: Any) -> str:
    """What the items are."""
    return "sample" if model.orthogonal == "samples" else "feature"


def summary(model: Any) -> str:
    """The result in a sentence."""
    item, proof = noun(model), model.certificate_
    least, most = min(model.counts_), max(model.counts_)
    each = f", {count(least)} to {count(most)} in each" if least < most else f", {count(most)} in each" if len(model.counts_) > 1 else ""
    found = plural(model.n_components_, "component")
    return f"{plural(len(model.labels_), item)} in {found}{each}, with a relative error of {percent(proof.relative_error)}."


def asked(model: Any) -> list[tuple[str, str]]:
    """The parameters as questions and answers."""
    item = noun(model)
    data = f"{plural(model.n_features_in_, 'feature')}"
    if item == "sample":
        data = f"{plural(len(model.labels_), 'sample')} of {data}"
    lines = [
        ("Data", data),
        ("Number of components", _number_asked(model)),
        ("What belongs to one component", f"each {item}, a {'row' if item == 'sample' else 'column'} of X"),
        ("Scale", f"every {item} keeps its own" if model.scaling == "item" else f"one for all {item}s of a component"),
        ("Most in a component", _bound(model, "upper")),
        ("Fewest in a component", _bound(model, "lower")),
    ]
    if model.capacity_penalty is not None:
        bounds = f"soft: an item too many or too few costs {number(model.capacity_penalty)} times the mean squared norm of an item"
        lines.append(("How firm the bounds are", bounds))
    others = _changed(model)
    return lines + ([("Other settings", others)] if others else [])


def _number_asked(model: Any) -> str:
    if not isinstance(model.n_components, str):
        return f"{model.n_components}, as given"
    limit = "" if model.max_components is None else f", up to {model.max_components}"
    return f"to be found from the data{limit}"


def _bound(model: Any, side: str) -> str:
    given = model.capacity if side == "upper" else model.min_size
    if given is None:
        return "no bound"
    bounds = model.certificate_.bounds
    if bounds is None or model.certificate_.free:
        return f"{_listed(given)}, which excludes nothing"
    values = getattr(bounds, side)
    unit = f"{noun(model)}s" if model.certificate_.loads is None else "times the mean size"
    if (values == values[0]).all():
        fraction = f" ({given:g} of all)" if isinstance(given, float) and given <= 1 else ""
        return f"{count(values[0])} {unit}{fraction}"
    return f"{_listed(values)} {unit}, in the order of the components"


def _listed(values: Any) -> str:
    """Numbers with commas, the first dozen of them."""
    flat = np.atleast_1d(np.asarray(values, dtype=float))
    return ", ".join(count(value) for value in flat[:12]) + (", …" if len(flat) > 12 else "")


def _changed(model: Any) -> str:
    """Other parameters that were set, as in the call."""
    defaults = {name: each.default for name, each in inspect.signature(type(model)).parameters.items()}
    others = {name: value for name, value in model.get_params(deep=False).items() if name not in _SPOKEN | _SILENT}
    return ", ".join(f"{name}={_plain(value)}" for name, value in sorted(others.items()) if _plain(value) != _plain(defaults[name]))


def _plain(value: Any) -> str:
    """A parameter as it was written; of an object such as a RandomState, whose repr tells where it lay in memory, only its kind."""
    return repr(value) if isinstance(value, bool | int | float | str | dict | None) else type(value).__name__


# -- the number of components --------------------------------------------------------------------------------------------------


def why(model: Any) -> list[str]:
    """Why there are this many components, in sentences."""
    if not located(model):
        return [
            _given(model),
            "With a number given, the annealing leaps from split to split and does not measure how long each number lasts: "
            'fit with n_components="auto" to see that.',
        ]
    if not np.isfinite(model.persistence_).any():
        return ["Fewer than two transitions were met, so there is no persistence to compare."]
    return [
        *([] if isinstance(model.n_components, str) else [_given(model)]),
        "As the temperature falls, components split one after the other. A number of components that lasts over a wide range of "
        "the inverse temperature β is one that the data have; its persistence is the logarithm of that range.",
        *_peaks(model),
    ]


def _given(model: Any) -> str:
    asked_for = plural(model.n_components, "component") + (" was" if model.n_components == 1 else " were") + " asked for"
    return f"{asked_for}." if model.n_components_ == model.n_components else f"{asked_for}, and {model.n_components_} found."


def _peaks(model: Any) -> list[str]:
    """That nothing lasts, or a second number that does: nested structure has more than one right answer."""
    finite = np.where(np.isfinite(model.persistence_), model.persistence_, -np.inf)
    if finite.max() < MIN_PERSISTENCE:
        return ["Here no number lasts over a factor 2 in β: the data may have no separate parts. What follows is one way to cut them."]
    second = [int(i) + 2 for i in np.argsort(-finite, kind="stable")[:2] if finite[i] >= MIN_PERSISTENCE and i + 2 != model.n_components_]
    return [f"{m} components also last, over a factor {number(np.exp(finite[m - 2]), 3)} in β: the data may be nested." for m in second[:1]]


# -- the certificate -----------------------------------------------------------------------------------------------------------


def _rounded_up(ratio: float) -> float:
    """To three decimals, never below: what is claimed at most must hold."""
    return float(np.ceil(1000 * ratio) / 1000)


def evidence(proof: Certificate, item: str) -> dict[str, str]:
    """The number that proves each claim, in a sentence, by the claim."""
    sizes = f"The smallest has {plural(min(proof.counts), item)}, the largest {count(max(proof.counts))}."
    moving = f"Other labels would gain at most {number(proof.gap, 2)} of the squared error; {number(GAP)} is tolerated."
    bound = "The lower bound is too expensive for data of this size and was not computed."
    if proof.lower_bound is not None:
        bound = (
            f"No factorisation of this rank and scaling has an error below {number(proof.lower_bound)}; this one has {number(proof.error)}"
        )
        bound += "." if proof.bound_ratio is None else f", at most {number(_rounded_up(proof.bound_ratio), 4)} times the best."
    return {
        "each item belongs to one component": f"No {item} has more than {plural(proof.nonzeros_per_item, 'nonzero')}.",
        "factors are nonnegative": "No entry of T or C is below zero." if proof.nonnegative else "An entry of T or C is below zero.",
        "no component is empty": sizes,
        "every size is within its bounds": sizes,
        "every item is in its nearest component": moving,
        "the assignment is the best within the bounds": f"{moving} The prices of the bounds prove it.",
        "the assignment is the best at this penalty": moving,
        "the centres are the best for these labels": (
            f"The best ones are at most {percent(proof.stationarity)} of the spread of their component away; {percent(STATIONARY)} is "
            "tolerated."
        ),
        "the scales are the best for these centres": f"Better ones would gain {number(proof.scale_gap, 2)} of the squared error.",
        "all items were counted once": f"Weights over components and over items differ by {number(proof.conservation, 2)} of their sum.",
        "the error is not below the lower bound": bound,
        "what the model stores is what the data give": (
            "Every number that the data, the parameters or other numbers give was compared with them."
            if proof.contradiction is None
            else f"It does not: {escaped(proof.contradiction)}."
        ),
    }
