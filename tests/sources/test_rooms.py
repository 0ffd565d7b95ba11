"""A buffer is used again when nobody looks at it, and never before."""

import threading

import numpy as np
from numpy.testing import assert_array_equal

from orthonmf.sources.rooms import OwnRooms, Rooms


class Numbers:
    """A medium that counts."""

    name, shape, dtype = "numbers", (100, 3), np.dtype(np.float32)

    def read(self, start, stop, out):
        out[...] = np.arange(3 * start, 3 * stop).reshape(-1, 3)


def address(array):
    return array.ctypes.data


def test_same_memory_when_let_go():
    rooms = Rooms(2)
    first = rooms.array((4, 3), np.float32)
    place = address(first)
    assert first.shape == (4, 3)
    assert first.dtype == np.float32
    del first
    assert address(rooms.array((2, 3), np.float64)) == place  # no larger


def test_other_memory_while_a_view_is_looked_at():
    rooms = Rooms(2)
    view = rooms.array((4, 3), np.float32)[1:3, 0]
    view[...] = 7
    for _ in range(5):
        rooms.array((4, 3), np.float32)[...] = 1
    assert (view == 7).all()


def test_larger_array_has_room_of_its_own_and_few_are_kept():
    rooms = Rooms(2)
    looked_at = [rooms.array((n, 3), np.float64) for n in range(1, 9)]
    for number, each in enumerate(looked_at):
        each[...] = number
    assert [each.max() for each in looked_at] == list(range(8))
    assert len(rooms._rooms) == 2


def test_nothing_takes_no_room():
    assert Rooms(1).array((0, 3), bool).shape == (0, 3)


def test_each_thread_reads_into_its_own():
    numbers = Numbers()
    source, found, met = OwnRooms(numbers), [], threading.Barrier(3)

    def look(start):
        rows = source.rows(numbers.read, start, start + 10)
        met.wait()  # all are looked at together
        found.append((start, address(rows), rows.copy()))

    threads = [threading.Thread(target=look, args=(start,)) for start in (0, 30, 60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({place for _, place, _ in found}) == 3
    for start, _, rows in found:
        assert_array_equal(rows, np.arange(3 * start, 3 * start + 30).reshape(-1, 3))
