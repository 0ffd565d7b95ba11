"""All methods side by side on a matrix of the user's."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._common.files import atomic
from .._common.validation import check_matrix
from ..exceptions import InvalidInputError
from ..io import read
from .measure import timed_fit
from .methods import METHODS, STANDARD, chosen
from .store import Task
from .table1 import warm


def checked(X: Any, n_components: int, orthogonal: str, source: str) -> Any:
    """The matrix; what is wrong with it or with the number is said before any method runs."""
    X = check_matrix(X, sparse_format="csr")
    items = X.shape[0 if orthogonal == "samples" else 1]
    if not 1 <= n_components <= items:
        raise InvalidInputError(f"-k {n_components} is not usable; expected 1 to {items}, the number of {orthogonal} in {source}.")
    return X


def stored(X: Any, folder: Path) -> Path:
    """A file with the matrix, where it is not one as it is; its name tells one from another."""
    buffer = io.BytesIO()
    sparse.save_npz(buffer, X) if sparse.issparse(X) else np.save(buffer, X)
    content = buffer.getvalue()
    path = folder / f"matrix-{sha256(content).hexdigest()[:16]}.{'npz' if sparse.issparse(X) else 'npy'}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with atomic(path) as draft:
            draft.write_bytes(content)
    return path


def tasks(path: Path, n_components: int, *, orthogonal: str, methods: Iterable[str] | None, runs: int) -> list[Task]:
    """The cells of the comparison."""
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
