"""Buffers into which entries are read, used again once nobody looks at what was read into them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.typing import Array

if TYPE_CHECKING:
    from .base import Medium

#: Fills an array with the entries from one to another.
Read = Callable[[int, int, Array], None]
# Buffers of a thread: who walks through an array still looks at one entry when the next is read.
OWN = 2


class _Room:
    """A buffer, and the array that was last read into it, as long as that is looked at."""

    def __init__(self, n_bytes: int) -> None:
        self.buffer = np.empty(n_bytes, np.uint8)
        self._last: Callable[[], Array | None] = lambda: None

    @property
    def is_free(self) -> bool:
        """Whether nobody looks at it, or at a view of it."""
        return self._last() is None

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """The first bytes as numbers of some kind."""
        # The memory, not the buffer itself: the base of every view would be that, and not this array.
        found = np.frombuffer(self.buffer.data, dtype, int(np.prod(shape)))
        self._last = weakref.ref(found)
        return found.reshape(shape)


class Rooms:
    """A few buffers; where more are looked at, the others are left to those who do.

    Parameters
    ----------
    n_kept : int
    """

    def __init__(self, n_kept: int) -> None:
        self._n_kept = n_kept
        self._rooms: list[_Room] = []

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array to be filled, in a buffer that nobody looks at."""
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if n_bytes == 0:
            return np.empty(shape, dtype)
        room = next((each for each in self._rooms if each.is_free and len(each.buffer) >= n_bytes), None)
        if room is None:
            room = _Room(n_bytes)
            self._rooms = [room, *self._rooms][: self._n_kept]
        return room.array(shape, dtype)


class OwnRooms:
    """Entries of a medium, read by the thread that asks for them into a buffer of its own, which stays in the cache of its processor.

    A hard pass over 1.5 GB that the system held took two thirds of the time that it took with pieces that threads shared and others read
    ahead (0.20 against 0.31 s, two cores); a file that it did not hold came no later, since the system itself reads ahead.

    Parameters
    ----------
    medium : Medium
    """

    def __init__(self, medium: Medium) -> None:
        self._dtype, self._entry = np.dtype(medium.dtype), tuple(medium.shape[1:])
        self.entry_bytes = max(self._dtype.itemsize * int(np.prod(self._entry, dtype=np.int64)), 1)
        self._own = local()

    def rows(self, read: Read, start: int, stop: int, *, ahead: bool = True) -> Array:
        """The entries from ``start`` to ``stop``; what the medium reads ahead is its own business."""
        rooms: Rooms = self._own.__dict__.setdefault("rooms", Rooms(OWN))
        out = rooms.array((stop - start, *self._entry), self._dtype)
        read(start, stop, out)
        return out
