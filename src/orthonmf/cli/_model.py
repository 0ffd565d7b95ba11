"""Fitting and using a model, with names and one-line warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from .._common.memory import free_bytes
from .._common.typing import Array
from ..estimator import ONMF
from ..exceptions import InvalidInputError, NothingStandsOutWarning
from ..io import Data
from ..search.job import MAX_COMPONENTS
from ._output import warn
from ._progress import annealing

MODEL = "model.onmf"
# Fewer rows often differ by chance.
MANY = 10
# Data that take a larger share of the free memory stay on disk: a fit needs some as well.
ROOM = 0.5


def fitted(model: ONMF, data: Data, *, quiet: bool) -> ONMF:
    """The model, fitted with a bar on the terminal, and the names of the features noted."""
    with warnings.catch_warnings(record=True) as caught, annealing(_goal(model, data.X), quiet=quiet):
        for category in (ConvergenceWarning, NothingStandsOutWarning):
            warnings.simplefilter("always", category)
        model.fit(data.X)
    _speak_of_names(data)
    for each in caught:  # with --quiet too: nothing else would tell
        warn(f"warning: {each.message}")
    if data.column_names is not None:
        model.feature_names_in_ = data.column_names.astype(object)  # sparse and plain arrays carry none into fit
    return model


def resident(data: Data, *, quiet: bool) -> Data:
    """The data in memory where there is room for them; else where they are, on disk, and a line that says so."""
    if not isinstance(data.X, np.memmap):
        return data
    size, free = data.X.nbytes, free_bytes()
    if size <= ROOM * free:
        return replace(data, X=np.array(data.X))
    if not quiet:
        warn(f"note: {size / 2**30:.1f} GiB of data, {free / 2**30:.1f} GiB of free memory: they are read piece by piece in every pass.")
    return data


def _goal(model: ONMF, X: Any) -> int:
    """The number of components at which the annealing ends."""
    if not isinstance(model.n_components, str):
        return int(model.n_components)
    n_items = X.shape[0 if model.orthogonal == "samples" else 1]
    return min(model.max_components or MAX_COMPONENTS, n_items)


def _speak_of_names(data: Data) -> None:
    """Say when a first column that may be names was taken for numbers."""
    if data.row_names is not None or data.column_names is None or issparse(data.X) or len(data.X) < MANY:
        return
    first = np.asarray(data.X[:, 0], dtype=np.float64)
    if (first == np.round(first)).all() and len(np.unique(first)) == len(first):
        warn(
            f"note: column {str(data.column_names[0])!r} has another whole number in each row and was taken as a feature; if it names the "
            "rows, leave its head empty."
        )


def load(path: Path) -> ONMF:
    """A stored model; a folder stands for the model in it."""
    path = path / MODEL if path.is_dir() else path
    if not path.is_file():
        raise InvalidInputError(f"{path} is not a file; expected a model that orthonmf fit wrote.")
    return ONMF.load(path)


def check_names(model: ONMF, data: Data, path: Path) -> None:
    """Refuse data whose columns are not those of the fit, in their order."""
    known, given = getattr(model, "feature_names_in_", None), data.column_names
    if known is not None and given is not None:
        _check_known(known, given, path)
    if data.X.shape[1] != model.n_features_in_:
        raise InvalidInputError(
            f"{path} has {data.X.shape[1]} columns of numbers, the model was fitted on {model.n_features_in_}; keep those of the fit."
        )


def _check_known(known: Array, given: Array, path: Path) -> None:
    missing, more = _without(known, set(given)), _without(given, set(known))
    if missing:
        raise InvalidInputError(
            f"{path} has no column {', '.join(map(repr, missing[:3]))}, which the model was fitted on; add what is missing."
        )
    if more:
        raise InvalidInputError(f"{path} has a column {', '.join(map(repr, more[:3]))}, which the model does not know; leave it out.")
    different = np.flatnonzero(given != known) if len(given) == len(known) else np.array([0])
    if different.size:
        j = int(different[0])
        raise InvalidInputError(
            f"{path}: column {j + 1} of numbers is {str(given[j])!r}, in the fit it was {str(known[j])!r}; bring the columns into the "
            "order of the fit."
        )


def _without(names: Array, others: set[str]) -> list[str]:
    return [str(name) for name in names if name not in others]


@contextmanager
def names_checked() -> Iterator[None]:
    """Where ``check_names`` has looked, scikit-learn need not warn that an array has no names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def names_of(given: Array | None, n: int) -> Array:
    """Names, or numbers from 0."""
    return np.arange(n).astype(str) if given is None else given
