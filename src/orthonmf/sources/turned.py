"""The other way round: a matrix by rows written by columns, and one by columns written by rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from .._common.files import atomic
from .base import Stored, StoredColumns
from .kinds import stored
from .targets import check_not_read


def turned(X: Any, path: str | os.PathLike[str]) -> None:
    """Write a matrix on disk to a .npy whose columns lie one after the other, or, where they do already, its rows.

    Parameters
    ----------
    X : path, or matrix on disk
        As ``ONMF.fit`` takes it.
    path : path-like
        The new file, as large as X; it appears when it is complete.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from orthonmf.sources import turned
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/X.npy", np.ones((3, 2)))
    ...     turned(f"{folder}/X.npy", f"{folder}/turned.npy")
    ...     np.load(f"{folder}/turned.npy").flags.f_contiguous
    True
    """
    source = stored(X)
    check_not_read(X, Path(path))
    by_columns = isinstance(source, StoredColumns)
    inner: Stored = source.T if by_columns else source
    with atomic(path) as draft:
        target: Any = np.lib.format.open_memmap(draft, mode="w+", dtype=inner.dtype, shape=source.shape, fortran_order=not by_columns)
        rows = target.T if by_columns else target
        for start, part in inner.parts():
            rows[start : start + len(part)] = part
        target.flush()
        del target, rows
