"""Threads for the blocks of a pass: never more than the machine has, whoever else is fitting.

BLAS runs with one thread inside a block, so that a sum does not depend on how many threads there are. That limit belongs to the
process, so fits that overlap count references: the first sets it, the last restores it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from time import monotonic
from typing import Any, Self

import joblib
from threadpoolctl import OpenBLASController, ThreadpoolController


class TimeLimitReached(Exception):
    """The time that a fit was given is over; raised between blocks and handled by the fit."""


def _anyone_may_limit() -> None:
    """Let this thread set the limit: threadpoolctl leaves that to whoever set it first, and the last fit is not the first."""
    free = getattr(OpenBLASController, "clear_controlling_thread", None)
    if free is not None:
        free(force=True)


class _BlasLimit:
    """One BLAS thread while at least one fit runs."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    def acquire(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._controller = self._controller or ThreadpoolController()
                _anyone_may_limit()
                self._limit = self._controller.limit(limits=1, user_api="blas")  # in force at once

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._limit is not None:
                _anyone_may_limit()
                self._limit.restore_original_limits()
                self._limit = None
                _anyone_may_limit()


class _Permits:
    """Worker threads that may exist in this process at once: one per core, beyond the calling threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = 0

    def acquire(self, wanted: int) -> int:
        with self._lock:
            granted = max(0, min(wanted, n_cores() - self._taken))
            self._taken += granted
            return granted

    def release(self, granted: int) -> None:
        with self._lock:
            self._taken -= granted


def _fresh_state() -> None:
    """A forked child starts with no fit running, whatever its parent was doing."""
    global _blas, _permits
    _blas, _permits = _BlasLimit(), _Permits()


_blas, _permits = _BlasLimit(), _Permits()
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_fresh_state)


@cache
def n_cores() -> int:
    """Cores this process may use; asking costs milliseconds, so once."""
    cores: int = joblib.cpu_count()
    return cores


def usable_threads(n_jobs: int | None) -> int:
    """Threads to use: the cores for None; as joblib counts otherwise (−1 is all, −2 all but one).

    OMP_NUM_THREADS, which joblib's and dask's workers set, bounds what None gives.
    """
    if n_jobs is not None:
        return n_jobs if n_jobs > 0 else max(1, n_cores() + 1 + n_jobs)
    declared = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return min(n_cores(), int(declared)) if declared.isdigit() and int(declared) > 0 else n_cores()


class ThreadTeam:
    """Maps a function over blocks with a number of threads that changes no bit of the result.

    A context manager: threads live only inside ``with``, so a fit leaves none behind and a forked child inherits none.

    Parameters
    ----------
    n_jobs : int or None
    deadline : float or None
        Clock time (``time.monotonic``) after which no block is begun.
    """

    def __init__(self, n_jobs: int | None = 1, deadline: float | None = None) -> None:
        self._n_jobs = n_jobs
        self.deadline = deadline
        self._pool: ThreadPoolExecutor | None = None
        self._granted = 0

    def __enter__(self) -> Self:
        self._owner = _blas, _permits
        _blas.acquire()
        return self

    def __exit__(self, *exc_info: object) -> None:
        blas, permits = self._owner
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
            permits.release(self._granted)
        blas.release()

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterable[Any]:
        """Results in the order of the tasks."""

        def timely(task: Any) -> Any:
            if self.deadline is not None and monotonic() > self.deadline:
                raise TimeLimitReached
            return function(task)

        if len(tasks) == 1 or (wanted := usable_threads(self._n_jobs)) == 1:
            return map(timely, tasks)
        if self._pool is None:
            self._granted = _permits.acquire(min(wanted, len(tasks)))
            self._pool = ThreadPoolExecutor(max(self._granted, 1), thread_name_prefix="orthonmf")
        return self._pool.map(timely, tasks)
