"""zarr arrays, in pieces of whole chunks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.typing import Array
from .base import Stored, even_borders


class ChunkedArray:
    """An array of two dimensions."""

    def __init__(self, array: Any) -> None:
        self.name, self.shape, self.dtype = (
            str(array.store_path) if hasattr(array, "store_path") else "the zarr array",
            array.shape,
            array.dtype,
        )
        self._array = array
        chunk = (getattr(array, "shards", None) or array.chunks)[0]
        self.borders = even_borders(self.shape[0], np.dtype(self.dtype).itemsize * self.shape[1], chunk)

    def read(self, start: int, stop: int, out: Array) -> None:
        """Fill ``out`` with rows."""
        out[...] = self._array[start:stop]


def of(X: Any) -> Stored | None:
    """A zarr array of numbers, or the path of one."""
    if not hasattr(X, "chunks"):
        import zarr

        X = zarr.open_array(X, mode="r")
    return Stored(ChunkedArray(X)) if X.ndim == 2 and np.dtype(X.dtype).kind in "fiub" else None
