"""Fitting and using a model, with names and one-line warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._common.files import no_file
from .._common.memory import free_bytes
from .._common.typing import Array, Labels
from .._common.validation import check_masked, check_matrix
from ..distortion import loss_of
from ..estimator import ONMF
from ..exceptions import InvalidInputError, NothingStandsOutWarning
from ..io import Data
from ..io.base import texts
from ..io.columns import listed, repeated, typed
from ..model.checkpoint import WHOLE
from ..model.preparation import Preparation
from ..model.units import uneven
from ..sources import ON_DISK, is_sparse
from ._data import ROOM, check_numbers
from ._options import spoken
from ._output import warn
from ._progress import fitting

MODEL = WHOLE
# Fewer rows often differ by chance.
MANY = 10


def fitted(model: ONMF, data: Data, *, quiet: bool) -> ONMF:
    """The model, fitted with a bar on the terminal, and the names of the features noted."""
    with _interrupts_told(), warnings.catch_warnings(record=True) as caught, fitting(quiet=quiet):
        for category in (ConvergenceWarning, NothingStandsOutWarning):
            warnings.simplefilter("always", category)
        model.fit(data.X)
    _speak_of_names(data)
    for each in caught:  # with --quiet too: nothing else would tell
        warn(f"warning: {spoken(str(each.message))}")
    if data.column_names is not None:
        model.feature_names_in_ = data.column_names.astype(object)  # sparse and plain arrays carry none into fit
    return model


@contextmanager
def _interrupts_told() -> Iterator[None]:
    """A line of what an interrupt says: where the checkpoint is, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if said := str(interrupt):
            warn(f"interrupted. {spoken(said)}")
        raise


def resident(data: Data, *, quiet: bool) -> Data:
    """The data in memory where there is room for them; else where they are, on disk, and a line that says so."""
    if not isinstance(data.X, (np.memmap, *ON_DISK)):
        return data
    size, free = data.X.nbytes, free_bytes()
    if size <= ROOM * free and isinstance(data.X, np.memmap):
        return replace(data, X=np.array(data.X))
    if not quiet:
        warn(f"note: {size / 2**30:.1f} GiB of data, {free / 2**30:.1f} GiB of free memory: they are read piece by piece in every pass.")
    return data


def _speak_of_names(data: Data) -> None:
    """Say when columns share a name, and when a first column that may be names was taken for numbers."""
    if data.column_names is not None and (twice := repeated(data.column_names.tolist())):
        places = " and ".join(str(j + 1) for j in np.flatnonzero(data.column_names == twice[0]))
        warn(
            f"note: {len(twice)} name{'s' * (len(twice) > 1)} of columns stand{'s' * (len(twice) == 1)} more than once, {twice[0]!r} over "
            f"columns {places} of numbers; predict and verify find columns by name: give each a name of its own."
        )
    if isinstance(data.X, ON_DISK) or data.row_names is not None or data.column_names is None or is_sparse(data.X) or len(data.X) < MANY:
        return
    first = np.asarray(data.X[:, 0], dtype=np.float64)
    if (first == np.round(first)).all() and len(np.unique(first)) == len(first):
        warn(
            f"note: column {str(data.column_names[0])!r} has another whole number in each row and was taken as a feature; if it names the "
            f"rows, add --id-column {typed(str(data.column_names[0]))}, or leave its head empty."
        )


def load(path: Path) -> ONMF:
    """A stored model; a folder stands for the model in it."""
    path = path / MODEL if path.is_dir() else path
    if not path.is_file():
        raise InvalidInputError(f"{no_file(path)}; expected a model that orthonmf fit wrote.")
    return ONMF.load(path)


def prepared(model: ONMF, data: Data, normalize: str | None) -> Data:
    """The data as they are factorised, noted in the model; where nothing is done to them, a line tells of features in other units."""
    if isinstance(data.X, (np.memmap, *ON_DISK)):
        if normalize is not None:
            raise InvalidInputError(f"--normalize {normalize} needs data in memory, which has no room for them; prepare the file first.")
        return data
    if normalize is not None:
        model._preparation, X = Preparation.of(normalize, _checked(model, data.X))
        return replace(data, X=X)
    squares = model.loss == "frobenius"  # counts have one unit, and large ones do not decide alone
    if squares and (sentence := uneven(data.X, data.column_names, "--normalize max, or std")) is not None:
        warn(f"note: {sentence}")
    return data


def started(model: ONMF, path: Path | None, data: Data) -> None:
    """Note a stored model as a start, if there is one; where no number of components is given, there are as many as in it."""
    if path is None:
        return
    start = load(path)
    asked, had = (None if each._preparation is None else ",".join(each._preparation.names) for each in (model, start))
    if asked != had:
        remedy = "leave --normalize out" if had is None else f"add --normalize {had}"
        raise InvalidInputError(f"--init {path} was fitted to data that were prepared in another way; {remedy}.")
    known = getattr(start, "feature_names_in_", None)
    if known is not None and data.column_names is not None and list(known) != list(data.column_names):
        other = [name for name in data.column_names if name not in set(known)] or list(data.column_names)
        raise InvalidInputError(f"--init {path} was fitted to other columns, or in another order (here {listed(other)}); take the same.")
    if model.n_components == "auto":
        model.n_components = start.n_components_
    model.init = start
    if model.orthogonal == start.orthogonal == "samples" and model.loss == "kullback-leibler":
        model.init = _labels(start, data, path)  # centres of counts are no start for others: where they are zero, counts are infinitely far


def _labels(start: ONMF, data: Data, path: Path) -> Labels:
    """The labels that a model gives to the data."""
    with names_checked():
        labels: Labels = start.predict(data.X)
    if len(np.unique(labels)) < start.n_components_:
        raise InvalidInputError(f"--init {path} has components to which none of these data belong; leave --init out.")
    return labels


def matched(model: ONMF, data: Data, where: str) -> Data:
    """The columns of the fit in their order, by name; without names, as many as in the fit."""
    known, given = getattr(model, "feature_names_in_", None), data.column_names
    if known is not None and given is not None and list(known) != list(given):
        data = _in_order(data, known.tolist(), where)
    if data.X.shape[1] != model.n_features_in_:
        raise InvalidInputError(
            f"{where} has {data.X.shape[1]} columns of numbers, the model was fitted on {model.n_features_in_}; keep those of the fit."
        )
    check_numbers(data, missing=loss_of(model).partial)
    if model._preparation is None:
        return data
    return replace(data, X=model._preparation(_checked(model, data.X)))


def _checked(model: ONMF, X: Any) -> Any:
    """Numbers that may be prepared for a model."""
    return check_masked(X) if loss_of(model).partial else check_matrix(X, sparse_format="csr")


def _in_order(data: Data, known: list[str], where: str) -> Data:
    """The columns that are known; a line tells of others."""
    given = names_of(data.column_names, data.X.shape[1]).tolist()
    places = {name: j for j, name in enumerate(given)}
    missing = [name for name in known if name not in places]
    if missing:
        raise InvalidInputError(f"{where} has no column {listed(missing)}, which the model was fitted on; add what is missing.")
    if twice := repeated(known) + [name for name in repeated(given) if name in set(known)]:
        raise InvalidInputError(f"{where} has the column {twice[0]!r} more than once; give each a name of its own.")
    more = [name for name in given if name not in set(known)]
    if more:
        warn(f"note: {where} has the column {listed(more)}, which the model does not know and which is left out.")
    order = [places[name] for name in known]
    return Data(data.X[:, order], data.row_names, texts(known))


@contextmanager
def names_checked() -> Iterator[None]:
    """Where ``matched`` has looked, scikit-learn need not warn that an array has no names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def names_of(given: Array | None, n: int) -> Array:
    """Names, or numbers from 0."""
    return np.arange(n).astype(str) if given is None else given
