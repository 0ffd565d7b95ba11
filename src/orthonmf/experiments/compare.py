"""All methods side by side on a matrix of the user's."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._validation import check_matrix
from ..exceptions import InvalidInputError
from .measure import timed_fit
from .methods import METHODS, STANDARD, chosen
from .store import Task
from .table1 import warm

_SEPARATORS = {".csv": ",", ".tsv": "\t"}


def tasks(path: Path, n_components: int, *, orthogonal: str, methods: Iterable[str] | None, runs: int) -> list[Task]:
    """The cells of the comparison; what is wrong with the data or the number is said before any runs."""
    X = check_matrix(load(path), sparse_format="csr")
    items = X.shape[0 if orthogonal == "samples" else 1]
    if not 1 <= n_components <= items:
        raise InvalidInputError(f"k={n_components} is not usable; expected 1 to {items}, the number of {orthogonal} in {path}.")
    same = f"{path.stat().st_size} {path.stat().st_mtime_ns}"  # a file that has changed is measured again
    return [
        Task(
            f"{__name__}:cell",
            {"method": method, "run": run, "k": n_components, "orthogonal": orthogonal, "path": str(path.resolve())},
            f"{METHODS[method].settings} {same}".strip(),
        )
        for method in chosen(methods, default=STANDARD)
        for run in range(runs)
    ]


def cell(method: str, run: int, k: int, orthogonal: str, path: str) -> dict[str, float]:
    """One run of one method."""
    X = _cached(path)
    warm(method)
    return timed_fit(METHODS[method].build(k, seed=run, orthogonal=orthogonal), X).record()


def load(path: Path) -> Any:
    """A matrix from CSV or TSV with a header, .npy, or a sparse .npz."""
    if not path.is_file():
        raise InvalidInputError(f"{path} is not a file; expected a .csv or .tsv with a header, a .npy, or a sparse .npz.")
    try:
        return _read(path)
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInputError(
            f"{path} cannot be read: {error} Expected nonnegative numbers under a header line, a 2-D .npy, or a sparse .npz."
        ) from error


def _read(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if suffix == ".npz":
        return sparse.csr_array(sparse.load_npz(path))
    if suffix in _SEPARATORS:
        return _text(path, _SEPARATORS[suffix])
    raise ValueError(f"its suffix {suffix!r} is not known.")


def _text(path: Path, separator: str) -> Any:
    """Numbers under a header; a first column of words names the rows."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()[1:]
    rows = [line.split(separator) for line in lines if line.strip()]
    if not rows:
        raise ValueError("there is no line under the header.")
    first = 0 if _is_number(rows[0][0]) else 1
    for i, row in enumerate(rows):
        for j, entry in enumerate(row[first:], start=first):
            if not _is_number(entry):
                raise ValueError(f"line {i + 2}, column {j + 1} is {entry!r}, not a number.")
        if len(row) != len(rows[0]):
            raise ValueError(f"line {i + 2} has {len(row)} columns, the first {len(rows[0])}.")
    return np.array([row[first:] for row in rows], dtype=np.float64)


def _is_number(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1)
def _cached(path: str) -> Any:
    return load(Path(path))
