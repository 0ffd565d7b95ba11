"""Data in chunks, clusters of this machine, and what kills their workers."""

import logging
import os
import random
import signal
import threading
from contextlib import contextmanager, suppress

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

# Of a worker that dies again and again, a LocalCluster otherwise ends the process that would start it anew.
dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})


def clouds(n_items=20_000, n_dims=8, seed=2):
    """Three clouds."""
    rng = np.random.default_rng(seed)
    X = 5 + rng.standard_normal((n_items, n_dims)).astype(np.float32)
    X += 4 * rng.random((3, n_dims))[np.arange(n_items) % 3].astype(np.float32)
    return np.maximum(X, 0)


def _slice(path, block_info=None):
    rows = slice(*block_info[None]["array-location"][0])
    return np.array(np.load(path, mmap_mode="r")[rows])


def loading(path, lengths):
    """A file as a dask array that loads a chunk when it is needed."""
    stored = np.load(path, mmap_mode="r")
    chunks = (tuple(lengths), (stored.shape[1],))
    return da.map_blocks(_slice, os.fspath(path), chunks=chunks, dtype=stored.dtype, meta=np.empty((0, 0), stored.dtype))


@contextmanager
def local_cluster(n_workers=2, **options):
    """A client of workers that are processes of one thread."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL, **options}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        client.wait_for_workers(n_workers)
        yield client


def _alive(client):
    """Processes of the workers that are at work."""
    cluster = client.cluster
    return [each.pid for each in cluster.workers.values() if each.pid and each.worker_address in cluster.scheduler.workers]


@contextmanager
def _meanwhile(every, step):
    """Take a step every so many seconds, until there is none."""
    done = threading.Event()

    def steps():
        while not done.wait(every) and step():
            pass

    thread = threading.Thread(target=steps, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def deaths(client, every, at_most=10**9):
    """Kill a worker that is at work, chosen at random, every so many seconds."""
    killed, rng = [], random.Random(0)

    def kill():
        if alive := _alive(client):
            killed.append(rng.choice(alive))
            with suppress(ProcessLookupError):
                os.kill(killed[-1], signal.SIGKILL)
        return len(killed) < at_most

    with _meanwhile(every, kill):
        yield killed


@contextmanager
def sizes(client):
    """What the workers hold, in MiB, every fifth of a second."""
    seen = [0.0]

    def look():
        for pid in _alive(client):
            with suppress(OSError, IndexError), open(f"/proc/{pid}/statm") as file:
                seen.append(int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20)
        return True

    with _meanwhile(0.2, look):
        yield seen
