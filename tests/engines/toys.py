"""Engines that compute blocks elsewhere or in another order, each registered under a name of its own: what a pass writes aside is lost."""

import atexit
import pickle
from functools import cache
from multiprocessing import get_context

import numpy as np

from orthonmf.engines.dense import DenseEngine


class _Toy(DenseEngine):
    """Dense items; samples of them are on the same engine."""

    def select(self, index):
        chosen = super().select(index)
        chosen.__class__ = type(self)
        return chosen


class ShuffledEngine(_Toy):
    """Computes the blocks in another order in every pass."""

    def parts(self, frame, work, columns):
        order = np.random.default_rng(self.passes).permutation(len(self.slices))
        done = {i: work(*self.seen(frame, work, columns, self.slices[i])) for i in order.tolist()}
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

    def parts(self, frame, work, columns):
        for where in self.slices:
            _worker().send_bytes(pickle.dumps((work, *self.seen(frame, work, columns, where))))
            yield pickle.loads(_worker().recv_bytes())
