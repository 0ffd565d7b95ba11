"""Threads for the blocks of a pass: never more than the machine has, whoever else is fitting.

BLAS runs with one thread inside a block, so that a sum does not depend on how many threads there are. That limit belongs to the
process, so fits that overlap are listed: the first sets it, the last restores it.
"""

from __future__ import annotations

import os
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Event, RLock, Thread
from time import monotonic
from typing import Any, Self

import joblib
import numpy as np
from threadpoolctl import OpenBLASController, ThreadpoolController

from .._common.arithmetic import ERRORS
from ..progress import beat
from .journal import Journal

# Tasks for each thread that may be begun, or answered, before the first of them is answered: while one is slow, no more answers than
# these wait in memory. Without a bound the sums of products of 256 dimensions took half a GB on a busy machine.
ANSWERS_AHEAD = 8


class TimeLimitReached(Exception):
    """The time that a fit was given is over; raised between blocks and handled by the fit."""


def _anyone_may_limit() -> None:
    """Let this thread set the limit: threadpoolctl leaves that to whoever set it first, and the last fit is not the first."""
    free = getattr(OpenBLASController, "clear_controlling_thread", None)
    if free is not None:
        free(force=True)


class _Lock:
    """A lock that its holder may let go again and again: an interrupt can come between the last line of a ``with`` and its end."""

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self.let_go()

    def let_go(self) -> None:
        """Release all of it that this thread holds."""
        with suppress(RuntimeError):  # nothing is left
            while True:
                self._lock.release()


class _Process:
    """What the teams of a process share: its cores, and the limit of one BLAS thread while one of them is at work.

    Every change can be torn by an interrupt and made again: teams are listed, not counted, and what BLAS had is noted before it is limited.
    """

    def __init__(self) -> None:
        self.lock = _Lock()
        self._workers: dict[ThreadTeam, int] = {}
        self._had: list[tuple[Any, int]] = []

    def join(self, team: ThreadTeam) -> None:
        """Take up a team, which has no workers yet."""
        with self.lock:
            self._workers[team] = 0
            _anyone_may_limit()
            if not self._had:
                libraries = _blas_libraries()
                self._had = [(library, library.num_threads) for library in libraries]
            for library, _ in self._had:
                library.set_num_threads(1)

    def grant(self, team: ThreadTeam, wanted: int) -> int:
        """Worker threads for a team: one per core, less those of the other teams and the threads that called them all."""
        with self.lock:
            self._workers[team] = 0
            self._workers[team] = max(0, min(wanted, n_cores() - len(self._workers) - sum(self._workers.values())))
            return self._workers[team]

    def leave(self, team: ThreadTeam) -> None:
        """Forget a team and its workers; the last one gives BLAS its threads back."""
        with self.lock:
            self._workers.pop(team, None)
            if not self._workers:
                _anyone_may_limit()
                for library, n_threads in self._had:
                    library.set_num_threads(n_threads)
                self._had = []
                _anyone_may_limit()


def _fresh_state() -> None:
    """A forked child starts with no fit running, whatever its parent was doing."""
    global _process
    _process = _Process()


_process = _Process()
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_fresh_state)


@cache
def _blas_libraries() -> list[Any]:
    """Those loaded that can say how many threads they use; looking for them takes a millisecond, so once."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in libraries if library.num_threads is not None]


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


class _Workers:
    """Threads that take jobs from a queue.

    The calling thread takes its share while it waits: of a short pass, waking a worker costs more than its block.

    An interrupt reaches the main thread alone, and may leave a lock of ``concurrent.futures`` locked there. So the calling thread only puts
    into and gets from queues that are written in C, which happens or does not; a thread apart starts the workers and sees them end.
    """

    def __init__(self, n_workers: int) -> None:
        self._n_workers = n_workers
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._gone: SimpleQueue[None] = SimpleQueue()
        self._to_wait_for = False

    def start(self) -> None:
        start_new_thread(self._employ, ())
        self._to_wait_for = True  # workers of whom an interrupt keeps us from knowing end by themselves

    def _employ(self) -> None:
        workers = [Thread(target=self._work, name=f"orthonmf_{number}", daemon=True) for number in range(self._n_workers)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self._to_wait_for = False
        self._gone.put(None)

    def _work(self) -> None:
        np.seterr(**ERRORS)
        while (job := self._jobs.get()) is not None:
            job()
        self._jobs.put(None)

    def dismiss(self) -> None:
        """Let them end the jobs they have begun, and wait for them."""
        with suppress(Empty):
            while True:
                self._jobs.get_nowait()
        self._jobs.put(None)
        while self._to_wait_for:
            with suppress(Empty):
                self._gone.get(timeout=1)

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Results in the order of the tasks; when one raises, those that have not begun are dropped."""
        done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
        dropped = Event()

        def job(index: int) -> None:
            if not dropped.is_set():
                try:
                    done.put((index, function(tasks[index]), None))
                except BaseException as error:
                    done.put((index, None, error))

        jobs = (partial(job, index) for index in range(len(tasks)))
        for each in islice(jobs, ANSWERS_AHEAD * (self._n_workers + 1)):
            self._jobs.put(each)
        return self._in_order(done, jobs, len(tasks), dropped)

    def _in_order(
        self,
        done: SimpleQueue[tuple[int, Any, BaseException | None]],
        later: Iterator[Callable[[], None]],
        count: int,
        dropped: Event,
    ) -> Iterator[Any]:
        ready: dict[int, tuple[Any, BaseException | None]] = {}
        try:
            for index in range(count):
                while index not in ready:
                    if done.empty():  # else answers would pile up until nothing is left for the workers to begin
                        with suppress(Empty):
                            self._help()
                    at, *outcome = done.get()
                    ready[at] = outcome[0], outcome[1]
                result, error = ready.pop(index)
                if error is not None:
                    raise error
                if (job := next(later, None)) is not None:
                    self._jobs.put(job)
                yield result
        finally:
            error = None  # whose traceback knows this frame
            dropped.set()

    def _help(self) -> None:
        """Do one job in the calling thread, if any is left."""
        job = self._jobs.get_nowait()
        if job is not None:
            job()


class ThreadTeam(ExitStack):
    """Maps a function over blocks with a number of threads that changes no bit of the result.

    A context manager: threads live only inside ``with``, so a fit leaves none behind and a forked child inherits none. Inside, numpy
    answers overflow and the like as it does by default. An interrupt (Ctrl-C) may come at any point: what ends a team is registered before
    it begins, and twice, so that one call does what the other was kept from. For an interrupt just before ``__exit__`` begins, write
    ``with ThreadTeam() as team, closing(team)``.

    Parameters
    ----------
    n_jobs : int or None
    deadline : float or None
        Clock time (``time.monotonic``) after which no block is begun.

    Attributes
    ----------
    reserve : float
        Seconds before the deadline that are kept back: no block is begun in them, except ``unhurried``.
    passes : int
        Made by all engines that have this team: over the data, and over samples of them.
    journal : Journal or None
        Answers passes of these engines that were made before.
    """

    def __init__(self, n_jobs: int | None = 1, deadline: float | None = None) -> None:
        super().__init__()
        self._n_jobs = n_jobs
        self.deadline = deadline
        self.reserve = 0.0
        self.passes = 0
        self.journal: Journal | None = None
        self._hurried = True
        self._process: _Process | None = None
        self._workers: _Workers | None = None

    def __enter__(self) -> Self:
        try:
            self._process = _process
            for _ in range(2):
                self.callback(np.seterr, **np.geterr())
                self.callback(_process.lock.let_go)
                self.callback(_process.leave, self)
                self.callback(self._dismiss)
            _process.join(self)
            np.seterr(**ERRORS)
            return self
        except BaseException:
            self.close()
            raise

    def _dismiss(self) -> None:
        """End the worker threads; there are no more."""
        self._process = None
        if self._workers is not None:
            self._workers.dismiss()
            self._workers = None

    def clock(self) -> float:
        """Seconds since some time in the past."""
        return monotonic()

    def left(self) -> float:
        """Seconds up to the deadline; infinite where there is none."""
        return float("inf") if self.deadline is None else self.deadline - monotonic()

    def check(self) -> None:
        """Raise ``TimeLimitReached`` when the time is over; tell who listens that something is computed."""
        beat()
        if self._hurried and self.deadline is not None and self.left() < self.reserve:
            raise TimeLimitReached

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Within the block the deadline stops nothing: for what an answer cannot do without."""
        before, self._hurried = self._hurried, False
        try:
            yield
        finally:
            self._hurried = before

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterable[Any]:
        """Results in the order of the tasks."""

        def timely(task: Any) -> Any:
            self.check()
            return function(task)

        if self._process is None or len(tasks) == 1 or (wanted := usable_threads(self._n_jobs)) == 1:
            return map(timely, tasks)
        if self._workers is None:
            self._workers = _Workers(self._process.grant(self, min(wanted, len(tasks)) - 1))
            self._workers.start()
        return self._workers.map(timely, tasks)
