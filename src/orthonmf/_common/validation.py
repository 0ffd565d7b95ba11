"""What goes in: parameters and data are checked here, once, before any work."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, check_random_state

from ..exceptions import InvalidInputError
from .arithmetic import own_arithmetic
from .typing import Array

# Rows checked at a time, so that checking needs no copy of X.
CHECK_ROWS = 4096


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a value that is none of the choices."""
    if not isinstance(value, str) or value not in choices:
        expected = ", ".join(repr(choice) for choice in choices)
        near = "" if (meant := _meant(str(value), choices)) is None else f" Did you mean {meant!r}?"
        raise InvalidInputError(f"{name}={value!r} is not known; expected one of {expected}.{near}")


def _meant(word: str, choices: tuple[str, ...]) -> str | None:
    """The choice that a word resembles, by its letters or by its initials: "kl" for "kullback-leibler"."""
    word = word.lower().replace("_", "-")
    initials = {"".join(part[0] for part in choice.split("-")): choice for choice in choices if "-" in choice}
    return initials.get(word) or next(iter(get_close_matches(word, choices, n=1)), None)


def check_count(name: str, value: Any, *, least: int, words: tuple[str, ...] = ()) -> None:
    """Refuse anything but a whole number of at least ``least``, or one of ``words``."""
    if isinstance(value, str) and value in words:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        choice = "".join(f"{word!r} or " for word in words)
        raise InvalidInputError(f"{name}={value!r} is not usable; expected {choice}a whole number of at least {least}.")


def check_positive(name: str, value: Any, *, above: float = 0.0, word: str | None = None) -> None:
    """Refuse anything but a finite number above ``above``, or ``word``."""
    if isinstance(value, str) and value == word:
        return
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)) or value <= above:
        choice = "" if word is None else f"{word!r} or "
        raise InvalidInputError(f"{name}={value!r} is not usable; expected {choice}a finite number above {above:g}.")


def check_jobs(value: Any) -> None:
    """Refuse anything but a number of threads as joblib counts them, or None."""
    if value is not None and (isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value == 0):
        raise InvalidInputError(
            f"n_jobs={value!r} is not usable; expected a whole number of threads, −1 for all cores, −2 for all but one, or None for those "
            "that are free."
        )


def check_seed(value: Any) -> None:
    """Refuse what does not seed random numbers."""
    try:
        check_random_state(value)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"random_state={value!r} is not usable; expected a whole number from 0 to 2**32 − 1, a numpy.random.RandomState, or None."
        ) from error


@own_arithmetic
def check_matrix(X: Any, *, sparse_format: str, estimator: str = "ONMF") -> Any:
    """X as a float array or a sparse matrix in one format: finite and nonnegative, and never changed.

    Copies only what needs conversion. Other sparse formats are converted once.
    """
    if isinstance(X, list | tuple):
        X = _converted(np.asarray, X)
    _check_kind(X)
    if sp.issparse(X):  # before duplicates are summed, so that no negative one hides
        _check_stored(X, estimator)
    X = _converted(
        check_array,
        X,
        accept_sparse=sparse_format,
        dtype=(np.float64, np.float32),
        ensure_all_finite=False,
        accept_large_sparse=True,
        estimator=estimator,
        input_name="X",
    )
    if not sp.issparse(X):
        check_values(X, "row {0}, column {1}".format, estimator)
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    _check_stored(X, estimator)
    return X


@own_arithmetic
def check_masked(X: Any, estimator: str = "ONMF") -> Array:
    """X as a float array whose NaN are missing: of each row some number is there, and they are as in ``check_matrix``."""
    if isinstance(X, list | tuple):
        X = _converted(np.asarray, X)
    _check_kind(X)
    if sp.issparse(X):
        raise InvalidInputError(
            "X is sparse, and what a sparse matrix does not store is 0, not missing. Pass an array in which NaN is what is missing, or "
            "missing='error'."
        )
    found: Array = _converted(check_array, X, dtype=(np.float64, np.float32), ensure_all_finite=False, estimator=estimator, input_name="X")
    check_values(found, "row {0}, column {1}".format, estimator, missing=True)
    check_present(found, axis=1)
    return found


def check_present(X: Array, *, axis: int) -> None:
    """Refuse a matrix with a row (along axis 1) or a column (0) of which nothing is there."""
    there = np.zeros(X.shape[1 - axis], dtype=bool)
    for start in range(0, len(X), CHECK_ROWS):
        where = slice(start, start + CHECK_ROWS)
        known = ~np.isnan(X[where])
        if axis == 1:
            there[where] = known.any(axis=1)
        else:
            there |= known.any(axis=0)
    if not there.all():
        kind, place = "row" if axis == 1 else "column", int(np.argmin(there))
        raise InvalidInputError(f"Nothing is there of {kind} {place} of X, so that nothing can be said about it; leave it out.")


def _check_stored(X: Any, estimator: str) -> None:
    """Refuse what a sparse matrix must not store, naming where it stands."""
    stored = X if X.format in ("csr", "csc", "coo") else X.tocoo()

    def place(index: int) -> str:
        entries = stored.tocoo()
        return f"row {entries.row[index]}, column {entries.col[index]}"

    check_values(stored.data, place, estimator)


def _converted(convert: Any, X: Any, **options: Any) -> Any:
    """X through a converter, whose complaints become ours."""
    try:
        return convert(X, **options)
    except ValueError as error:
        first, *more = str(error).splitlines()  # between them it may print the whole array
        advice = "".join(f" {line}" for line in more if line.startswith("Reshape"))
        complaint = f"{first.rstrip('.: ')}{_culprit(X)}.{advice}"
        raise InvalidInputError(f"{complaint} Pass X as a 2-D array or sparse matrix of nonnegative numbers.") from error


def _culprit(X: Any) -> str:
    """The column of a table that is to blame, if it can be told."""
    columns = [name for name in getattr(X, "columns", []) if np.asarray(X[name]).dtype.kind not in "fiub"]
    return f" (column {columns[0]!r})" if columns else ""


def _check_kind(X: Any) -> None:
    """Refuse text and dates, which numpy would turn into numbers."""
    dtypes = [X.dtype] if hasattr(X, "dtype") else list(getattr(X, "dtypes", []))
    if hasattr(X, "columns") and not dtypes:
        raise InvalidInputError(f"X has shape {X.shape}: 0 feature(s), and a minimum of 1 is required. Pass columns of numbers.")
    for dtype in dtypes:
        if getattr(dtype, "kind", "O") in "SUMm":
            raise InvalidInputError(
                f"X has dtype {dtype}; numbers are expected. Convert it, for example with X.astype(float), if that makes sense."
            )


def check_values(values: Array, place: Callable[..., str], estimator: str, *, missing: bool = False) -> None:
    """Refuse NaN, unless numbers may be ``missing``, infinity and negative numbers, naming the first."""
    if values.dtype.kind not in "fiub":
        return  # objects and complex numbers are judged by check_array
    for start in range(0, len(values), CHECK_ROWS):
        block = values[start : start + CHECK_ROWS]
        if missing:
            block = np.nan_to_num(block, posinf=np.inf, neginf=-np.inf)
        if block.size and not (np.isfinite(low := block.min()) and np.isfinite(block.max()) and low >= 0):
            _refuse(block, start, place, estimator)


def _refuse(block: Array, start: int, place: Callable[..., str], estimator: str) -> None:
    kinds = (("NaN", np.isnan(block)), ("infinity", np.isinf(block)), ("a negative value", block < 0))
    kind, bad = next((kind, bad) for kind, bad in kinds if bad.any())
    first = np.argwhere(bad)[0]
    value = float(block[tuple(first)])
    where = place(start + first[0], *first[1:])
    if kind == "a negative value":
        raise InvalidInputError(
            f"Negative values in data passed to {estimator}: {value!r} at {where}. Nonnegative entries are expected; shift or clip X, or "
            "take its absolute value if that makes sense."
        )
    advice = "; ONMF(missing='ignore') leaves out of its sums what is missing" if kind == "NaN" else ""
    raise InvalidInputError(
        f"Input X contains {kind} at {where}; finite numbers are expected. Remove or impute it (sklearn.impute){advice}."
    )


def check_sample_weight(sample_weight: Any, n_samples: int) -> Array | None:
    """Weights of the rows as float64, or None."""
    return None if sample_weight is None else check_numbers("sample_weight", sample_weight, n_samples, "row of X")


def check_numbers(name: str, values: Any, n: int, each: str) -> Array:
    """One finite, nonnegative number for each of n things, not all zero; a single number stands for all."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} cannot be used: {error}. Pass one number per {each}.") from error
    if numbers.ndim == 0:
        numbers = np.full(n, float(numbers))
    if numbers.shape != (n,):
        raise InvalidInputError(f"{name} has shape {numbers.shape}; expected ({n},), one number per {each}.")
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        bad = int(np.argmin(np.isfinite(numbers) & (numbers >= 0)))
        raise InvalidInputError(f"{name}[{bad}]={float(numbers[bad])!r}; finite, nonnegative numbers are expected.")
    if not numbers.any():
        raise InvalidInputError(f"{name} is all zero; at least one {each} must count.")
    return numbers
