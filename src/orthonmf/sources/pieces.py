"""Pieces of an array that is unpacked chunk by chunk: each is read once while it is in use, ahead of its use, and by whoever asks first."""

from __future__ import annotations

import os
from collections import OrderedDict
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

import numpy as np

from .._common.typing import Array
from .rooms import Read, Rooms

if TYPE_CHECKING:
    from .base import Medium

# Pieces that are read ahead.
PIECES_AHEAD = 2
# Buffers that are kept beside those of the pieces that are held.
SPARE = 4


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


class Pieces:
    """Entries of a medium as views of its pieces, of which few are held.

    Parameters
    ----------
    medium : Medium
    held_bytes : int
        About so many are held, and no fewer pieces than there are cores.
    """

    def __init__(self, medium: Medium, held_bytes: int) -> None:
        self._dtype, self._entry = np.dtype(medium.dtype), tuple(medium.shape[1:])
        self._borders = medium.borders
        self.entry_bytes = max(self._dtype.itemsize * int(np.prod(self._entry, dtype=np.int64)), 1)
        longest = int(np.diff(self._borders).max(initial=0)) * self.entry_bytes
        # Every core may be at another piece.
        self._n_held = max(held_bytes // max(longest, 1), (os.cpu_count() or 1) + PIECES_AHEAD)
        self._pieces: OrderedDict[int, _Piece] = OrderedDict()
        self._rooms = Rooms(self._n_held + SPARE)
        self._lock = Lock()

    def rows(self, read: Read, start: int, stop: int, *, ahead: bool = True) -> Array:
        """The entries from ``start`` to ``stop``; pieces that follow are being read meanwhile."""
        borders = self._borders
        first, last = np.searchsorted(borders, start, "right") - 1, np.searchsorted(borders, stop, "left")
        pieces = ((int(borders[number]), self._piece(read, number, ahead)) for number in range(first, last))
        parts = [piece[max(start - begin, 0) : stop - begin] for begin, piece in pieces]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, *self._entry), self._dtype), *parts])

    def _piece(self, read: Read, number: int, ahead: bool) -> Array:
        with self._lock:
            piece, mine = self._begun(number)
            last = min(number + 1 + (PIECES_AHEAD if ahead else 0), len(self._borders) - 1)
            others = [(other, each) for other in range(number + 1, last) for each, new in (self._begun(other),) if new]
        for other, each in others:
            Thread(target=self._load, args=(read, other, each), name="orthonmf_reader", daemon=True).start()
        if mine:
            self._load(read, number, piece)
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
            del self._pieces[oldest]
        piece = self._pieces[number] = _Piece()
        return piece, True

    def _load(self, read: Read, number: int, piece: _Piece) -> None:
        start, stop = self._borders[number : number + 2].tolist()
        try:
            with self._lock:
                out = self._rooms.array((stop - start, *self._entry), self._dtype)
            read(start, stop, out)
            piece.put(out)
        except BaseException as error:
            with self._lock:
                self._pieces.pop(number, None)
            piece.put(error)
