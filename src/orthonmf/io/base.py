"""What every reader returns, and what they share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from .._common.typing import Array
from ..exceptions import InvalidInputError, MissingExtraError


@dataclass(frozen=True)
class Data:
    """A matrix with the names of its rows and columns.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_rows, n_columns)
        Or one on disk, as ``orthonmf.sources`` reads it.
    row_names : array-like of str of shape (n_rows,) or None
    column_names : array-like of str of shape (n_columns,) or None
        Held as objects: in numpy's own arrays of text every name takes the room of the longest.

    Examples
    --------
    >>> from orthonmf.io import Data
    >>> Data([[1, 2]], row_names=["a"]).row_names
    array(['a'], dtype=object)
    """

    X: Any
    row_names: Array | None = None
    column_names: Array | None = None

    def __post_init__(self) -> None:
        # Matrices on disk are not named here: a reader that runs apart would have to load all that reads them.
        X = self.X if hasattr(self.X, "ndim") and hasattr(self.X, "dtype") else np.asanyarray(self.X)
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise InvalidInputError(f"holds an array of shape {X.shape} and dtype {X.dtype}; expected a matrix (2-D) of numbers.")
        object.__setattr__(self, "X", X)
        for field, n, each in (("row_names", X.shape[0], "row"), ("column_names", X.shape[1], "column")):
            object.__setattr__(self, field, _checked(getattr(self, field), n, each))


def _checked(given: Any, n: int, each: str) -> Array | None:
    if given is None:
        return None
    names = texts(given)
    if names.shape != (n,):
        raise InvalidInputError(f"has {names.size} names of {each}s for {n} {each}s; expected one for each.")
    return names


def texts(values: Any) -> Array:
    """Values as text, in an array of objects of the same shape: one long name does not make all the others as long."""
    given = np.asarray(values, dtype=object)
    return np.array([str(value) for value in given.flat], dtype=object).reshape(given.shape)


def compressed(form: str, vectors: tuple[Any, Any, Any], shape: tuple[int, ...]) -> Any:
    """A CSR array from data, indices and pointers by rows (form "csr") or columns ("csc").

    All are checked, since scipy's loops follow them wherever they point; its own check looks at no pointers where the last one is 0.
    """
    data, indices, pointers = (np.asarray(vector) for vector in vectors)
    n_lines, n_places = shape if form == "csr" else shape[::-1]
    if {indices.dtype.kind, pointers.dtype.kind} - set("iu"):
        raise InvalidInputError(f"is damaged: a sparse matrix with indices of dtype {indices.dtype} and pointers of {pointers.dtype}.")
    steps = np.diff(pointers.astype(np.int64), prepend=0)
    held = len(pointers) == n_lines + 1 and steps[0] == 0 and (steps >= 0).all() and steps.sum() == len(indices) == len(data)
    if not held or (len(indices) and not 0 <= indices.min() <= indices.max() < n_places):
        raise InvalidInputError(f"is damaged: the indices of a sparse matrix of shape {shape} point outside it.")
    kind = sparse.csr_array if form == "csr" else sparse.csc_array
    return sparse.csr_array(kind((data, indices, pointers), shape=shape))


def chosen(names: Iterable[str], key: str | None, kind: str = "matrix") -> str:
    """The one name there is, or the one asked for."""
    names = sorted(names)
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    if key is not None:
        if key not in names:
            raise InvalidInputError(f"holds no {kind} {key!r}; it holds {listed or 'none'}.")
        return key
    if not names:
        raise InvalidInputError(f"holds no {kind} of numbers (2-D).")
    if len(names) > 1:
        raise InvalidInputError(f"holds several: {listed}. Name one with key (on the command line, --key).")
    return names[0]


def needs(package: str, suffix: str) -> Any:
    """An optional package, or the way to get it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(f"{suffix} files need {package}, which is not installed: pip install 'orthonmf[io]'.") from error
