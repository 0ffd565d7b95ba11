"""Models as files: every fitted attribute bit for bit, no code, and nothing that is damaged or contradicts itself.

The container is described in ``archive``. A file is read whole and checked before anything is returned: its digests, then that the arrays
fit together, then what the certificate claims of any factorisation (nonnegative, one component for each item, normalised, sizes
within their bounds). The digests protect against damage, not against somebody who makes them anew: such a file can hold wrong numbers,
but no code, and no model that breaks these laws. Whether its numbers are those of the data only the data can tell: see ``ONMF.verify``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from .._common.encoding import Ragged, decode, encode, record
from .._common.typing import Array
from ..exceptions import InvalidInputError, ModelFormatError
from ..progress import STAGES
from ..search.bounded.bounds import Bounds
from .archive import Archive, naming, read, write
from .certificate import Certificate
from .invariants import ARRAYS, OPTIONAL, contradiction, misfit
from .posterior import Mixture
from .preparation import STEPS, Preparation
from .start import plain_init

__all__ = ["FORMAT", "load", "save"]

if TYPE_CHECKING:
    from ..estimator import ONMF

Model = TypeVar("Model", bound="ONMF")

# The version of what is stored; a file of a later one is refused.
FORMAT = 1

# As for the fitted arrays themselves; b bounds, t temperatures, s splits.
_OPTIONAL = {
    **OPTIONAL,
    "_lower": ("fi", "b"),
    "_upper": ("fi", "b"),
    "_mixture.centers": ("f", "kp"),
    "_mixture.share": ("f", "k"),
    "_preparation.numbers": ("f", "up"),
    "init.centers": ("f", "gh"),
    "init.labels": ("f", "j"),
}
# The name of a start by its dimensions.
_STARTS = {1: "init.labels", 2: "init.centers"}
_COLUMNS = {
    "beta": ("f", "t"),
    "n_components": ("i", "t"),
    "free_energy": ("f", "t"),
    "distortion": ("f", "t"),
    "entropy": ("f", "t"),
    "passes": ("i", "t"),
}
_RAGGED = {"projection": ("f", "x2"), "lyapunov": ("f", "y"), "ids": ("i", "z")}
_HISTORY = {
    **_COLUMNS,
    "stage": ("i", "t"),
    **_RAGGED,
    **{f"{name}.lengths": ("i", "t") for name in _RAGGED},
    "splits": ("i", "s2"),
    "splits.beta": ("f", "s"),
}
_EVERY = {**ARRAYS, **{f"history.{name}": spec for name, spec in _HISTORY.items()}}


@dataclass(frozen=True)
class _Fitted:
    """The fitted attributes that are no arrays. Seven are None where the model has none; older files lack the last five."""

    n_components_: int
    n_features_in_: int
    n_iter_: int
    converged_: bool
    status_: str
    feature_names_in_: tuple[str, ...] | None
    output: str | None
    bounds_named: bool | None
    bounds_penalty: float | None
    n_sample_iter_: int = 0
    total_size: float | None = None
    mixture_deviation: float | None = None
    data_digest_: str | None = None
    preparation: tuple[str, ...] | None = None


# The attributes of a model that go by the same name here.
_PLAIN = ("n_components_", "n_features_in_", "n_iter_", "n_sample_iter_", "converged_", "status_", "data_digest_")


def save(model: ONMF, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    The file takes the place of an older one when it is complete, and not before. The same model makes the same bytes. What is attached
    to the model beside its parameters and what ``fit`` found (callbacks, metadata requests) is not stored.

    Parameters
    ----------
    model : ONMF
        Fitted.
    path : str or path-like
        By custom it ends in ``.onmf``.

    Raises
    ------
    InvalidInputError
        A parameter cannot be stored, as a ``RandomState`` instance.
    FileAccessError
        The file cannot be written.

    See Also
    --------
    load : Read it again.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from orthonmf import ONMF
    >>> from orthonmf.model.storage import load, save
    >>> model = ONMF(2).fit([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder, "model.onmf"))
    ...     load(Path(folder, "model.onmf"), ONMF).labels_
    array([0, 0, 1])
    """
    check_is_fitted(model)
    with naming(path, "written"):
        archive = Archive(_document(model), _arrays(model))
        _restored(archive, type(model))  # so that nothing is written that would not be read again
        _check(model)
        write(path, archive)


def load(path: str | os.PathLike[str], cls: type[Model]) -> Model:
    """Read a model that ``save`` wrote.

    Nothing in the file is executed, and a model is returned only when the whole file passed every check.

    Parameters
    ----------
    path : str or path-like
    cls : type
        The class of the model: ONMF, or one derived from it.

    Returns
    -------
    model : ONMF
        With the bits of the one that was saved.

    Raises
    ------
    ModelFormatError
        The file is damaged, inconsistent, no model, or of a later format.
    FileAccessError
        The file cannot be read.

    See Also
    --------
    save : Write a model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from orthonmf import ONMF
    >>> from orthonmf.model.storage import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.onmf")
    ...     ONMF(2).fit([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]]).save(path)
    ...     load(path, ONMF).counts_
    array([2, 1])
    """
    with naming(path, "read"):
        model = _restored(read(path), cls)
        _check(model)
    return model


def _check(model: ONMF) -> None:
    if complaint := contradiction(model):
        raise ModelFormatError(f"The model contradicts itself: {complaint}. Fit it again.")


# -- from a model -----------------------------------------------------------------------------------------------------------------


def _document(model: ONMF) -> dict[str, Any]:
    bounds, mixture, names = model._bounds, model._mixture, getattr(model, "feature_names_in_", None)
    fitted = {
        **{name: getattr(model, name) for name in _PLAIN},
        "feature_names_in_": None if names is None else tuple(str(name) for name in names),
        "output": getattr(model, "_sklearn_output_config", {}).get("transform"),
        "bounds_named": None if bounds is None else bounds.named,
        "bounds_penalty": None if bounds is None else float(bounds.penalty),
        "total_size": model._total_size,
        "mixture_deviation": None if mixture is None else mixture.deviation,
        "preparation": None if model._preparation is None else model._preparation.names,
    }
    claims = {field.name: getattr(model.certificate_, field.name) for field in fields(Certificate) if field.name != "bounds"}
    parameters = {**model.get_params(deep=False), "init": None}  # which is among the arrays
    return {
        "format": FORMAT,
        "written_by": f"orthonmf {__version__}",
        "parameters": {name: encode(name, _plain(value)) for name, value in parameters.items()},
        "fitted": {name: encode(name, value) for name, value in fitted.items()},
        "certificate": {name: encode(name, value) for name, value in claims.items()},
    }


def _plain(value: Any) -> Any:
    """A path as text."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _arrays(model: ONMF) -> dict[str, Array]:
    bounds, mixture, history = model._bounds, model._mixture, model.history_
    init = plain_init(model.init)
    start = {} if init is None else {_STARTS[init.ndim]: init.astype(np.float64)}
    optional = {
        **{name: getattr(model, name) for name in OPTIONAL},
        "_lower": None if bounds is None else bounds.lower,
        "_upper": None if bounds is None else bounds.upper,
        "_mixture.centers": None if mixture is None else mixture.centers,
        "_mixture.share": None if mixture is None else mixture.share,
        "_preparation.numbers": None if model._preparation is None else model._preparation.numbers,
    }
    ragged = {name: Ragged.of(history[name], np.zeros((0, 2) if spec[1] == "x2" else 0, spec[0] + "8")) for name, spec in _RAGGED.items()}
    annealing = {
        **{name: history[name] for name in _COLUMNS},
        "stage": np.array([STAGES.index(stage) for stage in history["stage"]], dtype=np.int64),
        **{name: each.values for name, each in ragged.items()},
        **{f"{name}.lengths": each.lengths for name, each in ragged.items()},
        "splits": np.array([split[1:] for split in history["splits"]], dtype=np.int64).reshape(-1, 2),
        "splits.beta": np.array([split[0] for split in history["splits"]], dtype=np.float64),
    }
    return {
        **{name: getattr(model, name) for name in ARRAYS},
        **{name: array for name, array in optional.items() if array is not None},
        **start,
        **{f"history.{name}": annealing[name] for name in _HISTORY},
    }


# -- to a model -------------------------------------------------------------------------------------------------------------------


def _check_format(document: dict[str, Any]) -> None:
    found = document.get("format")
    if type(found) is int and found > FORMAT:
        raise ModelFormatError(
            f"It has format {found}, written by {document.get('written_by')!r:.60}; this version reads format {FORMAT}. Upgrade: "
            "pip install --upgrade orthonmf."
        )
    if type(found) is not int or found != FORMAT or set(document) != {"format", "written_by", "parameters", "fitted", "certificate"}:
        raise ModelFormatError(
            f"It holds {sorted(document)!r:.200} in format {found!r:.40}; that is no model. Pass a file that ONMF.save wrote."
        )


def _completed(arrays: dict[str, Array]) -> dict[str, Array]:
    """With what older files lack: how sure the number of components is, and which search a temperature belongs to."""
    unknown = {name: np.zeros(0, dtype=np.float64) for name in ("bic_", "agreement_", "p_values_")}
    each = np.full(len(arrays.get("counts_", ())), np.nan)
    stage = np.zeros(len(arrays.get("history.beta", ())), dtype=np.int64)
    return {"levels_": np.zeros(0, dtype=np.int64), **unknown, "stability_": each, "history.stage": stage, **arrays}


def _check_arrays(arrays: dict[str, Array]) -> None:
    """The arrays are those of a model, of the right kind, and their lengths agree."""
    missing, unknown = sorted(set(_EVERY) - set(arrays)), sorted(set(arrays) - set(_EVERY) - set(_OPTIONAL))
    if missing or unknown:
        raise ModelFormatError(f"It lacks the arrays {missing} and has the unknown ones {unknown!r:.200}.")
    if complaint := misfit(arrays, {**_EVERY, **_OPTIONAL}):
        raise ModelFormatError(f"{complaint[0].upper()}{complaint[1:]}.")


def _restored(archive: Archive, cls: type[Model]) -> Model:
    document, arrays = archive.document, _completed(archive.arrays)
    _check_format(document)
    _check_arrays(arrays)
    model = _with_parameters(document["parameters"], cls)
    model.init = next((arrays[name] for name in _STARTS.values() if name in arrays), None)
    fitted = record(_Fitted, _decoded("fitted", document["fitted"]), "fitted")
    bounds = _bounds(fitted, arrays)
    certificate = replace(record(Certificate, _decoded("certificate", document["certificate"]), "certificate"), bounds=bounds)
    for name in _PLAIN:
        setattr(model, name, getattr(fitted, name))
    for name in ARRAYS:
        setattr(model, name, arrays[name])
    for name in OPTIONAL:
        setattr(model, name, arrays.get(name))
    model._bounds, model._mixture = bounds, _mixture(fitted, arrays)
    if (preparation := _preparation(fitted, arrays)) is not None:
        model._preparation = preparation
    model._total_size = fitted.total_size
    # Older files have these where nobody reads them.
    if model.orthogonal == "features":
        model._reference = np.zeros(0)
    if model._item_size is None:
        model._prices = None
    model.history_ = _history(arrays)
    model.certificate_, model.reconstruction_err_ = certificate, certificate.error
    if fitted.feature_names_in_ is not None:
        model.feature_names_in_ = np.array(fitted.feature_names_in_, dtype=object)
    _set_output(model, fitted.output)
    return model


def _decoded(name: str, content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ModelFormatError(f"{name} is a {type(content).__name__}; expected an object.")
    return {key: decode(key, value) for key, value in content.items()}


def _with_parameters(content: Any, cls: type[Model]) -> Model:
    """A model that is not fitted. A parameter that the file does not know, being older, keeps its default."""
    parameters = _decoded("parameters", content)
    if unknown := sorted(set(parameters) - set(cls._get_param_names())):
        raise ModelFormatError(f"It has the unknown parameters {unknown!r:.200}. Upgrade: pip install --upgrade orthonmf.")
    model = cls(**parameters)
    try:
        model._check_parameters()
    except (InvalidInputError, OverflowError) as error:
        raise ModelFormatError(f"Its parameters are not usable: {error}") from error
    return model


def _bounds(fitted: _Fitted, arrays: dict[str, Array]) -> Bounds | None:
    lower, upper, named, penalty = arrays.get("_lower"), arrays.get("_upper"), fitted.bounds_named, fitted.bounds_penalty
    if lower is None and upper is None and named is None and penalty is None:
        return None
    if lower is None or upper is None or named is None or penalty is None:
        raise ModelFormatError("It has a part of the bounds on the sizes; expected all or none.")
    return Bounds(lower, upper, named, penalty)


def _mixture(fitted: _Fitted, arrays: dict[str, Array]) -> Mixture | None:
    centers, share, deviation = arrays.get("_mixture.centers"), arrays.get("_mixture.share"), fitted.mixture_deviation
    if centers is None and share is None and deviation is None:
        return None
    if centers is None or share is None or deviation is None:
        raise ModelFormatError("It has a part of what probabilities are made of; expected all or none.")
    return Mixture(centers, share, deviation)


def _preparation(fitted: _Fitted, arrays: dict[str, Array]) -> Preparation | None:
    names, numbers = fitted.preparation, arrays.get("_preparation.numbers")
    if names is None and numbers is None:
        return None
    known = names is not None and set(names) <= set(STEPS)
    if not known or numbers is None or len(numbers) != sum(STEPS[name][1] is not None for name in names or ()):
        raise ModelFormatError("What it says of how the data were prepared does not fit together.")
    return Preparation(tuple(names or ()), numbers)


def _history(arrays: dict[str, Array]) -> dict[str, Any]:
    columns: dict[str, Any] = {name: arrays[f"history.{name}"] for name in _COLUMNS}
    for name in _RAGGED:
        columns[name] = Ragged(arrays[f"history.{name}"], arrays[f"history.{name}.lengths"]).split(name)
    if any(each is None for name in ("projection", "ids") for each in columns[name]):
        raise ModelFormatError("A temperature of its history has no components.")
    columns["ids"] = [tuple(each.tolist()) for each in columns["ids"]]
    stage = arrays["history.stage"]
    if not ((stage >= 0) & (stage < len(STAGES))).all():
        raise ModelFormatError(f"A temperature of its history belongs to none of the {len(STAGES)} searches.")
    columns["stage"] = np.array(STAGES)[stage]
    betas, parents = arrays["history.splits.beta"].tolist(), arrays["history.splits"].tolist()
    columns["splits"] = [(beta, *pair) for beta, pair in zip(betas, parents, strict=True)]
    return columns


def _set_output(model: ONMF, transform: str | None) -> None:
    if transform not in (None, "default", "pandas", "polars"):
        raise ModelFormatError(f"Its transform returns {transform!r:.60}; expected 'default', 'pandas' or 'polars'.")
    model.set_output(transform=transform)
