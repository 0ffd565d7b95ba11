"""What was asked and what is claimed, in plain words."""

from __future__ import annotations

import inspect
import platform
from typing import Any

import numpy as np
import scipy
import sklearn

from .. import __version__
from ..distortion import loss_of
from ..model.certificate import GAP, STATIONARY, Certificate
from ..model.track import how_to_locate, located
from ..search.number.curve import coarser, stands_out
from .text import count, escaped, number, percent, plural

__all__ = ["asked", "evidence", "noun", "summary", "unproven", "versions", "why"]

# Parameters that have a line of their own.
_SPOKEN = {"n_components", "max_components", "orthogonal", "scaling", "loss", "missing", "capacity", "min_size", "capacity_penalty"}
# Parameters that change neither the question nor the answer.
_SILENT = {"n_jobs", "verbose", "engine", "sparse_output"}


def noun(model: Any) -> str:
    """What the items are."""
    return "sample" if model.orthogonal == "samples" else "feature"


def summary(model: Any) -> str:
    """The result in a sentence."""
    item = noun(model)
    least, most = min(model.counts_), max(model.counts_)
    each = f", {count(least)} to {count(most)} in each" if least < most else f", {count(most)} in each" if len(model.counts_) > 1 else ""
    found = plural(model.n_components_, "component")
    return f"{plural(len(model.labels_), item)} in {found}{each}, with {_error(model)}."


def relative_figure(model: Any) -> tuple[str, str]:
    """How large the error is beside the data, and what that is called."""
    relative = model.certificate_.relative_error
    return (percent(relative), "relative error") if loss_of(model).power == 2 else (number(relative), "divergence for each count")


def _error(model: Any) -> str:
    value, name = relative_figure(model)
    return f"a {name} of {value}"


def error_note(model: Any) -> str:
    """How large the error is, in a sentence."""
    proof = model.certificate_
    if loss_of(model).power == 2:
        return f"The error ‖X − TC‖ is {number(proof.error)}, which is {percent(proof.relative_error)} of ‖X‖."
    return f"The divergence Σ x log(x/y) − x + y of X from Y = TC is {number(proof.error)}, {number(proof.relative_error)} for each count."


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
        ("Scale", f"every {item} keeps its own" if loss_of(model).scaled else f"one for all {item}s of a component"),
        ("Loss", "squared differences" if loss_of(model).power == 2 else "Kullback–Leibler divergence, for counts"),
        *([("Missing numbers", "left out of every sum; pictures show what the components say of them")] if loss_of(model).partial else []),
        ("Most in a component", _bound(model, "upper")),
        ("Fewest in a component", _bound(model, "lower")),
    ]
    if model.capacity_penalty is not None:
        unit = "squared norm" if loss_of(model).power == 2 else "sum"
        bounds = f"soft: an item too many or too few costs {number(model.capacity_penalty)} times the mean {unit} of an item"
        lines.append(("How firm the bounds are", bounds))
    others = _changed(model)
    return lines + ([("Other settings", others)] if others else [])


def _number_asked(model: Any) -> str:
    if not isinstance(model.n_components, str):
        return f"{model.n_components}, as given"
    limit = "" if model.max_components is None else f", up to {model.max_components}"
    how = ", as the one that persists longest" if model.n_components == "persistence" else ""
    return f"to be found from the data{how}{limit}"


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
    """Why there are this many components, and how sure that is, in paragraphs."""
    if not located(model):
        return [_given(model), how_to_locate(model)]
    if not isinstance(model.n_components, str):
        return [_given(model), *_persistence(model)]
    if not model.levels_.size:
        return _persistence(model)
    return [" ".join(_sure(model)) if stands_out(model) else _nothing(model), *_persistence(model)]


def _given(model: Any) -> str:
    asked_for = plural(model.n_components, "component") + (" was" if model.n_components == 1 else " were") + " asked for"
    return f"{asked_for}." if model.n_components_ == model.n_components else f"{asked_for}, and {model.n_components_} found."


def _nothing(model: Any) -> str:
    more = " What follows has more only because the capacities need them." if model.n_components_ > 1 else ""
    return f"Nothing stands out: no number of components above 1 explains these data better than one.{more}"


def _sure(model: Any) -> list[str]:
    """The numbers that stand out, and what speaks for the finest, in sentences."""
    answer = int(model.levels_[0])
    levels = [m for m in coarser(model) if m != answer]
    reason = "a likelihood supports: more of them explain the data no better than their parameters cost."
    if loss_of(model).partial:
        reason = "numbers that were held out support: more of them foretell these no better."
    words = [f"{answer} is the finest number of components that {reason}"]
    if (best := _best(model.bic_)) > answer:
        left = f"which leaves {plural(answer, 'component')}."
        words = [f"A mixture of {best} balls explains the data best; those that are pieces of one longer cloud are put together, {left}"]
    if model.n_components_ > answer:
        words.append(f"There are {model.n_components_} because the capacities need them.")
    if levels:
        words.append(f"At a coarser level {_or(levels)} components stand out as well: the data have parts within parts.")
    before, here = (_known(model.p_values_, m) for m in (answer - 1, answer))
    if before is not None:
        words.append(f"Going from {answer - 1} to {answer} would gain as much by chance with probability {before:.2f}.")
    if here is not None:
        verdict = "one more is noise" if here > 0.05 else "one more may be real"
        words.append(f"Going from {answer} to {answer + 1} would gain as much by chance with probability {here:.2f}: {verdict}.")
    agreement = _known(model.agreement_, answer)
    if agreement is not None:
        words.append(f"Halves of the items give this partition with an agreement of {agreement:.2f}; 1 is the same, 0 is chance.")
    return words


def _best(bic: Any) -> int:
    """The number of balls of the highest BIC; 0 where none is known."""
    return int(np.nanargmax(bic)) + 1 if np.isfinite(bic).any() else 0


def _or(numbers: list[int]) -> str:
    return " or ".join(filter(None, [", ".join(map(str, numbers[:-1])), str(numbers[-1])]))


def _known(values: Any, m: int) -> float | None:
    """What is known of m components."""
    return float(values[m - 1]) if 0 < m <= len(values) and np.isfinite(values[m - 1]) else None


def _persistence(model: Any) -> list[str]:
    """What the picture of the persistence shows, where there is one."""
    if not np.isfinite(model.persistence_).any():
        return ["Fewer than two transitions were met, so there is no persistence to compare."]
    chance = " No number beyond those that stand out lasts longer than the dashed line: chance reaches that much."
    return [
        "As the temperature falls, components split one after the other. The persistence of a number is the logarithm of the range of "
        f"the inverse temperature β over which it lasts.{chance if model.levels_.size else ''}"
    ]


# -- the certificate -----------------------------------------------------------------------------------------------------------


def _rounded_up(ratio: float) -> float:
    """To three decimals, never below: what is claimed at most must hold."""
    return float(np.ceil(1000 * ratio) / 1000)


def evidence(proof: Certificate, item: str) -> dict[str, str]:
    """The number that proves each claim, in a sentence, by the claim."""
    sizes = f"The smallest has {plural(min(proof.counts), item)}, the largest {count(max(proof.counts))}."
    moving = f"Other labels would gain at most {number(proof.gap, 2)} of the cost; {number(GAP)} is tolerated."
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
        "the scales are the best for these centres": f"Better ones would gain {number(proof.scale_gap, 2)} of the cost.",
        "all items were counted once": f"Weights over components and over items differ by {number(proof.conservation, 2)} of their sum.",
        "the error is not below the lower bound": bound,
        "what the model stores is what the data give": (
            "Every number that the data, the parameters or other numbers give was compared with them."
            if proof.contradiction is None
            else f"It does not: {escaped(proof.contradiction)}."
        ),
        "no other partition has a smaller error": (
            f"The components are {number(proof.separation or 0.0)} times as far apart as the proof asks for. It is about every partition "
            f"into {plural(proof.n_components, 'component')}, of whatever sizes."
        ),
    }


def unproven(model: Any, unclear: float) -> list[str]:
    """What the certificate does not say, with what is known of it, in sentences; items of a smaller margin than ``unclear`` are unclear."""
    proof, item = model.certificate_, noun(model)
    best = "That no other partition has a smaller error: finding the best one is NP-hard."
    if proof.bound_ratio is not None:
        best += f" The error is at most {number(_rounded_up(proof.bound_ratio), 4)} times the smallest."
    words = [
        *([] if proof.optimal else [best]),
        "That this number of components is right, or that the parts mean something: the data can speak for that, not prove it.",
        f"That the {item}s in another order, or others of their kind, give the same parts. Partitions with almost the same error can "
        f"differ in many {item}s.{_returning(model)}",
    ]
    if model.margin_ is not None and model.n_components_ > 1:
        share = percent(float(np.mean(model.margin_ < unclear)))
        words.append(f"Where unclear {item}s belong: {share} have a margin below {unclear}, and would be the first to change.")
    return words


def _returning(model: Any) -> str:
    """How well the components come back in halves of the items, where that was tried."""
    known = model.stability_[np.isfinite(model.stability_)]
    if not known.size:
        return " How much these do is measured by n_components='auto', which fits halves of them."
    return f" In fits of halves of them the components came back to between {percent(known.min())} and {percent(known.max())}."


def versions() -> str:
    """Of what computed this."""
    return (
        f"orthonmf {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )
