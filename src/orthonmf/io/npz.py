""".npz of numpy or of scipy.sparse, told apart by what they hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from .base import Data, chosen, compressed


def read(path: Path, key: str | None = None) -> Data:
    """The sparse matrix of the file, or its only 2-D array, or the one named ``key``."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:  # numpy leaves a damaged file open
        if {"format", "shape", "data"} <= set(arrays.files):
            found = sparse.load_npz(path)
            if found.format in ("csr", "csc"):
                return Data(compressed(found.format, (found.data, found.indices, found.indptr), found.shape))
            return Data(sparse.csr_array(found.tocoo()))
        if key is None and len(arrays.files) > 1:
            key = chosen((name for name in arrays.files if arrays[name].ndim == 2), None)
        return Data(arrays[chosen(arrays.files, key)])
