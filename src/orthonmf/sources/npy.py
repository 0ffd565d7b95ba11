"""numpy's .npy and maps of files: numbers one after the other, read from where they lie."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from .._common.typing import Array, Labels
from ..exceptions import InvalidInputError
from .base import Stored, StoredColumns, even_borders


class PlainFile:
    """Rows of numbers one after the other, from an offset on. Opened once; it is closed when nothing needs it any more."""

    def __init__(self, path: str | os.PathLike[str], offset: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.name, self.shape, self.dtype = Path(path).name, shape, np.dtype(dtype)
        self._offset = offset
        self._row_bytes = self.dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
        self.borders = even_borders(shape[0], self._row_bytes)
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._file)

    def read(self, start: int, stop: int, out: Array) -> None:
        """Fill ``out`` with rows; the system reads ahead."""
        self._fill(start, out)

    def scattered(self, index: Labels) -> Array:
        """Rows that lie apart, each read by itself."""
        found = np.empty((len(index), *self.shape[1:]), self.dtype)
        for row, out in zip(index.tolist(), found, strict=True):
            self._fill(row, out)
        return found

    def _fill(self, row: int, out: Array) -> None:
        place, left = self._offset + row * self._row_bytes, out.reshape(-1).view(np.uint8).data
        while left:
            n_read = _read_at(self._file, left, place)
            if n_read == 0:
                raise InvalidInputError(f"{self.name} ends in row {row}; {self.shape[0]} rows are expected. Is it being written?")
            place, left = place + n_read, left[n_read:]


def _read_at(file: int, out: memoryview, place: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(file, [out], place)
    found = os.pread(file, len(out), place)  # macOS before 11
    out[: len(found)] = found
    return len(found)


def of(X: Any) -> Stored | StoredColumns | None:
    """A map of a file, or the path of a .npy; None for a map of which neither rows nor columns lie one after the other."""
    if not isinstance(X, np.memmap):
        X = _matrix(np.lib.format.open_memmap(X, mode="r"))  # numpy.load advises to unpickle what it does not know
    if X.filename is None or not _is_matrix(X) or not (X.flags.c_contiguous or X.flags.f_contiguous):
        return None
    whole, shape = X, X.shape if X.flags.c_contiguous else X.shape[::-1]
    while isinstance(whole.base, np.memmap):  # a part of a map begins further on than the map
        whole = whole.base
    offset = whole.offset + X.ctypes.data - whole.ctypes.data
    found = Stored(PlainFile(X.filename, offset, shape, X.dtype))
    return found if X.flags.c_contiguous else StoredColumns(found)


def _is_matrix(X: Array) -> bool:
    return X.ndim == 2 and X.dtype.kind in "fiub" and X.dtype.isnative


def _matrix(X: Array) -> Array:
    """Refuse an array that is none."""
    if not _is_matrix(X):
        raise InvalidInputError(
            f"it holds an array of shape {X.shape} and dtype {X.dtype}; expected a matrix (2-D) of numbers, in this machine's byte order."
        )
    return X
