"""Matrices larger than memory: arrays on disk that are sliced like arrays in memory, and hold few pieces of themselves at a time."""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from threading import Event, Lock, Thread
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from .._common.typing import Array
from .._common.validation import check_values
from ..exceptions import InvalidInputError

# A piece is whole stored chunks of about so many bytes; so many bytes of pieces are held, and so many pieces are read ahead. Few and small:
# what was just copied is then still in a processor's cache when it is computed with. (A pass over 1.5 GB of float32 took 0.6 to 0.7 of the
# time that it took with pieces of 8 MiB of which 64 were held, on two busy cores.)
PIECE_BYTES = 4 << 20
HELD_BYTES = 16 << 20
PIECES_AHEAD = 2
# Buffers that are kept for the next pieces.
SPARE = 4
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


def even_borders(length: int, entry_bytes: int, chunk: int = 1) -> Array:
    """Pieces of whole chunks, each about ``PIECE_BYTES``."""
    step = max(PIECE_BYTES // max(entry_bytes * chunk, 1), 1) * chunk
    return np.append(np.arange(0, length, step), length)


class _Piece:
    """A piece that is being read, or has been."""

    def __init__(self) -> None:
        self._done = Event()
        self._found: Array | BaseException | None = None

    @property
    def done(self) -> bool:
        return self._done.is_set()

    def put(self, found: Array | BaseException) -> None:
        self._found = found
        self._done.set()

    def get(self) -> Array:
        """The numbers, once they are there."""
        self._done.wait()
        if isinstance(self._found, BaseException):
            raise self._found
        assert self._found is not None
        return self._found


class Stored:
    """An array on disk. Slices of its first axis are views of pieces, which are read once while in use, and ahead of use, into few buffers.

    It may be sliced from several threads at a time. Numbers that are neither float32 nor float64 are seen as float64, those of a vector
    of whole numbers as they are.

    Parameters
    ----------
    medium : Medium

    Attributes
    ----------
    reads : int
        Pieces read so far.
    """

    def __init__(self, medium: Medium) -> None:
        self.medium = medium
        self.shape, self.ndim = tuple(int(side) for side in medium.shape), len(medium.shape)
        given = np.dtype(medium.dtype)
        whole = self.ndim == 1 and given.kind in "iu"
        self.dtype = given if whole or given in (np.float32, np.float64) else np.dtype(np.float64)
        self.reads = 0
        self._entry_bytes = given.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))
        self._longest = int(np.diff(medium.borders).max(initial=0)) * self._entry_bytes
        # Every core may be at another piece.
        self._n_held = max(HELD_BYTES // max(self._longest, 1), (os.cpu_count() or 1) + PIECES_AHEAD)
        self._pieces: OrderedDict[int, _Piece] = OrderedDict()
        self._spare: list[Array] = []
        self._lock = Lock()
        self._watch: Callable[[int, Array], None] | None = None
        self._maxima = np.full(len(medium.borders) - 1, -np.inf)
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
            return self._slice(*where.indices(len(self))[:2])
        return self._take(np.asarray(where))

    def parts(self) -> Iterator[tuple[int, Array]]:
        """The pieces in order, each with where it begins."""
        for number, start in enumerate(self.medium.borders[:-1].tolist()):
            yield start, self._converted(self._piece(number))

    def max(self, initial: float = 0.0) -> float:
        """The largest number; pieces that were never read are."""
        for number in np.flatnonzero(np.isneginf(self._maxima)).tolist():
            self._piece(number)
        return max(float(self._maxima.max(initial=0)), initial)

    def peek(self) -> float:
        """The largest number of the first pieces, as many as are still held when a pass begins."""
        for number in range(min(self._n_held // 2, len(self._maxima))):
            self._piece(number)
        return float(self._maxima.max(initial=0))

    def remember(self, index: Array) -> None:
        """Keep the rows at ``index``, in rising order, when their pieces are first read: they need not be read again."""
        self._kept, self._kept_rows = index, np.empty((len(index), *self.shape[1:]), self.dtype)

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

    def _slice(self, start: int, stop: int) -> Array:
        borders = self.medium.borders
        first, last = np.searchsorted(borders, start, "right") - 1, np.searchsorted(borders, stop, "left")
        parts = [self._piece(number)[max(start - borders[number], 0) : stop - borders[number]] for number in range(first, max(last, first))]
        return self._converted(parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, *self.shape[1:]), self.medium.dtype), *parts]))

    def _take(self, index: Array) -> Array:
        """The entries at ``index``, in its order; the disk is read in the order of the disk."""
        if len(self._kept) and np.isin(index, self._kept).all() and not np.isneginf(self._maxima).any():
            return self._kept_rows[np.searchsorted(self._kept, index)]
        found = np.empty((len(index), *self.shape[1:]), self.dtype)
        order = np.argsort(index, kind="stable")
        cuts = np.searchsorted(index[order], self.medium.borders)
        one = np.empty((1, *self.shape[1:]), self.medium.dtype)
        for number in np.flatnonzero(np.diff(cuts)).tolist():
            places = order[cuts[number] : cuts[number + 1]]
            if getattr(self.medium, "scattered", False) and len(places) * max(PAGE_BYTES, self._entry_bytes) < self._longest // 2:
                for place in places.tolist():
                    self.medium.read(int(index[place]), int(index[place]) + 1, one)
                    found[place] = one[0]
            else:
                found[places] = self._piece(number, ahead=0)[index[places] - self.medium.borders[number]]
        return found

    def _piece(self, number: int, ahead: int = PIECES_AHEAD) -> Array:
        """The numbers of a piece; those that follow are being read meanwhile."""
        with self._lock:
            piece, mine = self._begun(number)
            last = min(number + 1 + ahead, len(self.medium.borders) - 1)
            others = [(other, each) for other in range(number + 1, last) for each, new in (self._begun(other),) if new]
        for other, each in others:
            Thread(target=self._load, args=(other, each), name="orthonmf_reader", daemon=True).start()
        if mine:
            self._load(number, piece)
        return piece.get()

    def _begun(self, number: int) -> tuple[_Piece, bool]:
        """A piece, and whether nobody reads it yet; what was used longest ago makes room for it."""
        piece = self._pieces.get(number)
        if piece is not None:
            self._pieces.move_to_end(number)
            return piece, False
        while len(self._pieces) >= self._n_held:
            oldest = next((other for other, each in self._pieces.items() if each.done), None)
            if oldest is None:
                break
            self._recycle(self._pieces.pop(oldest))
        piece = self._pieces[number] = _Piece()
        return piece, True

    def _recycle(self, piece: _Piece) -> None:
        if isinstance(piece._found, np.ndarray) and piece._found.base is not None:
            self._spare.append(piece._found.base)
            del self._spare[:-SPARE]

    def _load(self, number: int, piece: _Piece) -> None:
        start, stop = self.medium.borders[number : number + 2].tolist()
        try:
            out = self._buffer()[: (stop - start) * self._entry_bytes].view(self.medium.dtype).reshape(stop - start, *self.shape[1:])
            self.medium.read(start, stop, out)
            self.reads += 1
            if np.isneginf(self._maxima[number]):
                self._see(number, start, out)
            piece.put(out)
        except BaseException as error:
            with self._lock:
                self._pieces.pop(number, None)
            piece.put(error)

    def _see(self, number: int, start: int, part: Array) -> None:
        """Look at a piece that is read for the first time."""
        if self._watch is not None:
            self._watch(start, part)
        first, last = np.searchsorted(self._kept, [start, start + len(part)])
        self._kept_rows[first:last] = part[self._kept[first:last] - start]
        self._maxima[number] = part.max(initial=0)

    def _buffer(self) -> Array:
        """Room for the longest piece: that of one which nobody looks at any more, or new."""
        with self._lock:
            for place, spare in enumerate(self._spare):
                if sys.getrefcount(spare) <= 3:  # the list, the loop and the call
                    return self._spare.pop(place)
        return np.empty(self._longest, np.uint8)


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
