"""All methods side by side on a matrix of the user's."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from .._common.validation import check_matrix
from ..exceptions import InvalidInputError
from ..io import apart, read
from .measure import timed_fit
from .methods import METHODS, STANDARD, chosen
from .store import Task
from .table1 import warm


def tasks(path: Path, n_components: int, *, orthogonal: str, methods: Iterable[str] | None, runs: int) -> list[Task]:
    """The cells of the comparison; what is wrong with the data or the number is said before any runs."""
    X = check_matrix(apart.read(path).X, sparse_format="csr")
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


@lru_cache(maxsize=1)
def _cached(path: str) -> Any:
    return read(path).X
