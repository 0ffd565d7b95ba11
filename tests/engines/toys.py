"""Engines that compute blocks elsewhere or in another order, each registered under a name of its own: what a pass writes aside is lost."""

import atexit
import pickle
from functools import cache
from multiprocessing import get_context
from typing import ClassVar

import numpy as np

from orthonmf.engines.dense import DenseEngine
from orthonmf.passes.base import Found


class _Toy(DenseEngine):
    """Dense items; samples of them are on the same engine."""

    def select(self, index):
        chosen = super().select(index)
        chosen.__class__ = type(self)
        return chosen


class ShuffledEngine(_Toy):
    """Computes the blocks in another order in every pass."""

    def _parts(self, frame, work, columns):
        order = np.random.default_rng(self.passes).permutation(len(self.slices))
        done = {i: work(*self._seen(frame, work, columns, self.slices[i])) for i in order.tolist()}
        return (done[i] for i in range(len(done)))


def _serve(pipe):
    """Compute what arrives, until nothing more does."""
    while (message := pipe.recv_bytes()) != b"":
        work, items, columns = pickle.loads(message)
        pipe.send_bytes(pickle.dumps(work(items, columns)))


@cache
def _worker():
    """One process that stays."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    process.start()
    atexit.register(here.send_bytes, b"")
    return here


class DistantEngine(_Toy):
    """Sends every pass, block and column to another process, and gets back what it found."""

    def _parts(self, frame, work, columns):
        for where in self.slices:
            _worker().send_bytes(pickle.dumps((work, *self._seen(frame, work, columns, where))))
            yield pickle.loads(_worker().recv_bytes())


class _Held:
    """A column that lies with its engine: passes read the items of a block, and NumPy can make no array of it."""

    __array_ufunc__ = None

    def __init__(self, values):
        self._values = values

    def __getitem__(self, where):
        if not isinstance(where, slice) or len(self._values[where]) == len(self._values):
            raise TypeError(f"only blocks of a column are read, not {where}")
        return self._values[where]

    def __array__(self, *args, **kwargs):
        raise TypeError("a column of a far engine is no array here")

    def host(self):
        FarEngine.fetched.append(self._values.shape)
        return self._values


class FarEngine(DenseEngine):
    """Keeps columns to itself, and takes no array of this process that is as long as the items for one."""

    fetched: ClassVar = []

    def near(self):
        return DenseEngine(self._array, self.weight, dim_factor=self._dim_factor, shift=self.shift, team=self.team)

    def hold(self, values):
        return values if isinstance(values, _Held) else _Held(values)

    def run(self, frame, work, columns=None):
        for name in set(work.reads) & set(columns or {}):
            if not isinstance(columns[name], _Held):
                raise TypeError(f"the column {name!r} is an array of this process")
        found = super().run(frame, work, columns)
        return Found(found.total, {name: _Held(values) for name, values in found.columns.items()})
