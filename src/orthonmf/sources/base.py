"""Matrices larger than memory: arrays on disk that are sliced like arrays in memory, and hold few pieces of themselves at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, Protocol, cast

import numpy as np
from scipy import sparse

from .._common.typing import Array, Labels
from .._common.validation import check_values
from ..exceptions import InvalidInputError
from .pieces import Pieces
from .rooms import OwnRooms

# A piece is whole stored chunks of about so many bytes; so many bytes of those that threads share are held. Few and small: what was just
# copied is then still in a processor's cache when it is computed with. (A pass over 1.5 GB of float32 took 0.6 to 0.7 of the time that it
# took with pieces of 8 MiB of which 64 were held, on two busy cores.)
PIECE_BYTES = 4 << 20
HELD_BYTES = 16 << 20
# What is no larger is loaded: it would be held anyway.
FEW_BYTES = 64 << 20
# The disk is read in pages of this many bytes: rows that lie apart are read one by one where their pages are less than a piece.
PAGE_BYTES = 4096


class Medium(Protocol):
    """How an array lies on disk.

    Attributes
    ----------
    name : str
        For messages.
    shape : tuple of int
    dtype : dtype
        As stored.
    borders : ndarray of shape (n_pieces + 1,)
        Where pieces begin and end along the first axis; no stored chunk lies in two of them.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    borders: Array

    def read(self, start: int, stop: int, out: Array) -> None:
        """Fill ``out`` with the entries from ``start`` to ``stop`` of the first axis."""


class PlainMedium(Medium, Protocol):
    """One whose entries lie one after the other: any of them are read without the others."""

    def scattered(self, index: Labels) -> Array:
        """Entries that lie apart."""


def even_borders(length: int, entry_bytes: int, chunk: int = 1) -> Array:
    """Pieces of whole chunks, each about ``PIECE_BYTES``."""
    step = max(PIECE_BYTES // max(entry_bytes * chunk, 1), 1) * chunk
    return np.append(np.arange(0, length, step), length)


class Stored:
    """An array on disk, whose slices of the first axis are read into few buffers that are used again.

    It may be sliced from several threads at a time. Of a plain medium, whose rows lie one after the other, each thread reads what it asks
    for itself. Of others, which are unpacked chunk by chunk, pieces are shared, and read ahead of their use. Numbers that are neither
    float32 nor float64 are seen as float64, those of a vector of whole numbers as they are.

    Parameters
    ----------
    medium : Medium
        Or a ``PlainMedium``.

    Attributes
    ----------
    entries_read : int
        So far, along the first axis.
    """

    def __init__(self, medium: Medium) -> None:
        self.medium, self.borders = medium, medium.borders
        self.shape, self.ndim = tuple(int(side) for side in medium.shape), len(medium.shape)
        given = np.dtype(medium.dtype)
        whole = self.ndim == 1 and given.kind in "iu"
        self.dtype = given if whole or given in (np.float32, np.float64) else np.dtype(np.float64)
        self.entries_read = 0
        self._plain = cast(PlainMedium, medium) if hasattr(medium, "scattered") else None
        self._source: OwnRooms | Pieces = Pieces(medium, HELD_BYTES) if self._plain is None else OwnRooms(medium)
        self._lock = Lock()
        self._watch: Callable[[int, Array], None] | None = None
        self._maxima = np.full(len(self.borders) - 1, -np.inf)
        self._kept, self._kept_rows = np.zeros(0, np.intp), np.zeros((0, *self.shape[1:]), self.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """Numbers in all."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes on disk, uncompressed."""
        return self.size * np.dtype(self.medium.dtype).itemsize

    def __getitem__(self, where: Any) -> Array:
        if isinstance(where, tuple):  # columns: for few long rows
            return np.concatenate([part[:, where[1]] for _, part in self.parts()])
        if isinstance(where, slice):
            start, stop = where.indices(len(self))[:2]
            return self._converted(self._source.rows(self._read, start, max(start, stop)))
        return self._take(np.asarray(where))

    def parts(self) -> Iterator[tuple[int, Array]]:
        """The pieces in order, each with where it begins."""
        for number, start in enumerate(self.borders[:-1].tolist()):
            yield start, self._converted(self._piece(number))

    def max(self, initial: float = 0.0) -> float:
        """The largest number; pieces that were never read are."""
        for number in np.flatnonzero(np.isneginf(self._maxima)).tolist():
            self._piece(number)
        return max(float(self._maxima.max(initial=0)), initial)

    def peek(self) -> float:
        """The largest number of the first entries, about as many as are still held when a pass begins."""
        return float(self[: max(HELD_BYTES // 2 // self._source.entry_bytes, 1)].max(initial=0))

    def expect(self, slices: list[slice], index: Labels) -> None:
        """Hear in which slices all will be read first. The rows at ``index``, in rising order, are kept when they are: they need not be
        read again."""
        self._kept, self._kept_rows = index, np.empty((len(index), *self.shape[1:]), self.dtype)
        if self._plain is not None:  # any piece is as good as another, and one that is read whole is looked at then
            self.borders = np.array([0, *(each.stop for each in slices)])
        self._maxima = np.full(len(self.borders) - 1, -np.inf)

    def __matmul__(self, other: Array) -> Array:
        return np.concatenate([part @ other for _, part in self.parts()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        found = np.empty(self.shape, self.dtype)
        for start, part in self.parts():
            found[start : start + len(part)] = part
        return found.astype(dtype or self.dtype, copy=False)

    def loaded(self) -> Array:
        """The same in memory."""
        return np.asarray(self)

    def watch(self, estimator: str, place: str = "row {0}, column {1}") -> None:
        """From here on refuse NaN, infinity and negative numbers when a piece is first read, naming the first."""
        where = f"{place} of {self.medium.name}"
        self._watch = lambda start, part: check_values(part, lambda row, column: where.format(start + row, column), estimator)

    def check(self, estimator: str) -> None:
        """Read all to refuse what ``watch`` does."""
        self.watch(estimator)
        self.max()

    def _converted(self, values: Array) -> Array:
        return values.astype(self.dtype, copy=False)

    def _piece(self, number: int, *, ahead: bool = True) -> Array:
        start, stop = self.borders[number : number + 2].tolist()
        return self._source.rows(self._read, start, stop, ahead=ahead)

    def _take(self, index: Array) -> Array:
        """The entries at ``index``, in its order; the disk is read in the order of the disk."""
        if len(self._kept) and np.isin(index, self._kept).all() and not np.isneginf(self._maxima).any():
            return self._kept_rows[np.searchsorted(self._kept, index)]
        found = np.empty((len(index), *self.shape[1:]), self.dtype)
        order = np.argsort(index, kind="stable")
        cuts = np.searchsorted(index[order], self.borders)
        for number in np.flatnonzero(np.diff(cuts)).tolist():
            places, start = order[cuts[number] : cuts[number + 1]], self.borders[number]
            n_bytes = (self.borders[number + 1] - start) * self._source.entry_bytes
            if self._plain is not None and len(places) * max(PAGE_BYTES, self._source.entry_bytes) < n_bytes // 2:
                found[places] = self._plain.scattered(index[places])
            else:
                found[places] = self._piece(number, ahead=False)[index[places] - start]
        return found

    def _read(self, start: int, stop: int, out: Array) -> None:
        """Read some entries; look at pieces that are read for the first time."""
        self.medium.read(start, stop, out)
        with self._lock:
            self.entries_read += stop - start
        first, last = int(np.searchsorted(self.borders, start)), int(np.searchsorted(self.borders, stop, "right")) - 1
        for number in range(first, last):
            if np.isneginf(self._maxima[number]):
                begin, end = self.borders[number : number + 2].tolist()
                self._see(number, begin, out[begin - start : end - start])

    def _see(self, number: int, start: int, part: Array) -> None:
        largest = part.max(initial=0)
        if self._watch is not None and not (np.isfinite(largest) and part.min(initial=0) >= 0):
            self._watch(start, part)
        first, last = np.searchsorted(self._kept, [start, start + len(part)])
        self._kept_rows[first:last] = part[self._kept[first:last] - start]
        self._maxima[number] = largest


class StoredColumns:
    """A matrix on disk whose columns lie one after the other: the transpose of what is stored by rows.

    Parameters
    ----------
    T : Stored
        Its transpose.
    """

    ndim = 2

    def __init__(self, T: Stored) -> None:
        self.T, self.shape, self.dtype, self.size, self.nbytes = T, T.shape[::-1], T.dtype, T.size, T.nbytes
        self.medium = T.medium

    def __len__(self) -> int:
        return self.shape[0]

    def max(self, initial: float = 0.0) -> float:
        """The largest number, found once."""
        return self.T.max(initial)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.T.__array__(dtype, copy).T

    def loaded(self) -> Array:
        """The same in memory."""
        return np.asarray(self)

    def __matmul__(self, other: Array) -> Array:
        return sum((part.T @ other[start : start + len(part)] for start, part in self.T.parts()), np.zeros((len(self), other.shape[1])))

    def watch(self, estimator: str) -> None:
        """From here on refuse numbers that must not be, naming the first."""
        self.T.watch(estimator, "column {0}, row {1}")

    def check(self, estimator: str) -> None:
        """Read all to refuse what ``watch`` does."""
        self.watch(estimator)
        self.max()


class StoredRows:
    """A sparse matrix on disk, by rows: its pointers are in memory, its entries and their columns are not.

    Parameters
    ----------
    data, indices : Stored
        Vectors of the same length.
    indptr : ndarray of shape (n_rows + 1,)
    shape : tuple of int
    """

    ndim, format = 2, "csr"

    def __init__(self, data: Stored, indices: Stored, indptr: Array, shape: tuple[int, ...]) -> None:
        self.data, self.indices, self.indptr, self.shape = data, indices, indptr, shape
        self.dtype, self.nnz = data.dtype, len(data)
        name = data.medium.name
        steps = np.diff(indptr.astype(np.int64), prepend=0)
        if len(indptr) != shape[0] + 1 or steps[0] != 0 or (steps < 0).any() or not indptr[-1] == len(data) == len(indices):
            raise InvalidInputError(
                f"{name} is damaged: the pointers of a sparse matrix of shape {shape} do not fit its {len(data)} entries."
            )

    def loaded(self) -> sparse.csr_array:
        """The same in memory."""
        return self[:]

    @property
    def nbytes(self) -> int:
        """Bytes on disk, uncompressed."""
        return self.data.nbytes + self.indices.nbytes + self.indptr.nbytes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> sparse.csr_array:
        """Some rows, in memory."""
        if isinstance(index, slice):
            start, stop = index.indices(len(self))[:2]
            first, last = self.indptr[start], self.indptr[stop]
            parts = self.data[first:last].copy(), self.indices[first:last].copy(), self.indptr[start : stop + 1] - first
            return sparse.csr_array(parts, shape=(stop - start, self.shape[1]))
        index = np.asarray(index)
        starts, lengths = self.indptr[index].astype(np.int64), np.diff(self.indptr)[index].astype(np.int64)
        indptr = np.append(0, np.cumsum(lengths))
        places = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        return sparse.csr_array((self.data[places], self.indices[places], indptr), shape=(len(index), self.shape[1]))

    def __matmul__(self, other: Array) -> Array:
        return np.concatenate([part @ other for _, part in self.parts()])

    def parts(self) -> Iterator[tuple[int, sparse.csr_array]]:
        """Rows with about as many entries as a piece has, in order, each with where they begin."""
        longest = np.diff(self.data.medium.borders).max(initial=1)
        start = 0
        while start < len(self):
            stop = max(int(np.searchsorted(self.indptr, self.indptr[start] + longest, "right")) - 1, start + 1)
            yield start, self[start:stop]
            start = stop

    def check(self, estimator: str) -> None:
        """Refuse numbers that must not be, columns that are not there, and rows that are not in order, naming the first."""
        for start, part in self.parts():
            rows = np.repeat(np.arange(start, start + part.shape[0]), np.diff(part.indptr))

            def place(entry: int, rows: Array = rows, part: Any = part) -> str:
                return f"row {rows[entry]}, column {part.indices[entry]} of {self.data.medium.name}"

            check_values(part.data, place, estimator)
            self._check_columns(rows, part.indices)

    def _check_columns(self, rows: Array, columns: Array) -> None:
        name = self.data.medium.name
        if columns.size and not 0 <= columns.min() <= columns.max() < self.shape[1]:
            raise InvalidInputError(f"{name} is damaged: a column beyond the {self.shape[1]} of the matrix.")
        disorder = np.flatnonzero((np.diff(columns.astype(np.int64)) <= 0) & (np.diff(rows) == 0))
        if disorder.size:
            raise InvalidInputError(
                f"Row {rows[disorder[0]]} of {name} has its columns out of order, or one twice. Load the matrix, call X.sum_duplicates(), "
                "and write it again."
            )
