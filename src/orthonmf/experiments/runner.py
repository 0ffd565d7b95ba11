"""Cells in processes: several at a time, each within a limit, over which the process is ended and the cell says so."""

from __future__ import annotations

import multiprocessing as mp
from collections.abc import Callable, Iterable
from importlib import import_module
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any

from threadpoolctl import threadpool_limits

from .._common.registry import imported
from ..exceptions import InvalidInputError
from .store import Record, Store, Task

DONE, OVER, FAILED = "done", "over the limit", "failed"

# A fresh interpreter: a fork would inherit the locks of the parent's thread pools.
_CONTEXT = mp.get_context("spawn")

# Seconds that a process gets to leave by itself before it is ended.
_FAREWELL = 1.0


def run(
    tasks: Iterable[Task],
    store: Store,
    *,
    jobs: int = 1,
    limit: float | None = None,
    fresh: bool = False,
    report: Callable[[Task, Record], None] = lambda task, record: None,
) -> list[Record]:
    """The records of all tasks, in their order; those already in the store are not run again.

    Parameters
    ----------
    tasks : iterable of Task
    store : Store
    jobs : int
        Processes at a time.
    limit : float or None
        Seconds for one cell. A cell that was once over a smaller limit is run again.
    fresh : bool
        Whether to run everything again.
    report : callable
        Told of every cell as soon as it is known.
    """
    _check(jobs, limit)
    tasks = list(tasks)
    records: dict[str, Record] = {}
    for task in [] if fresh else tasks:
        record = store.get(task)
        if record is not None and _usable(record, limit):
            records[task.key] = record
            report(task, record)
    missing = [task for task in tasks if task.key not in records]

    def finished(task: Task, outcome: Record) -> None:
        record = {"arguments": task.arguments, "settings": task.settings, **outcome}
        store.put(task, record)
        records[task.key] = record
        report(task, record)

    _run_all(missing, min(jobs, len(missing)), limit, finished)
    return [records[task.key] for task in tasks]


def _check(jobs: int, limit: float | None) -> None:
    if jobs < 1:
        raise InvalidInputError(f"jobs={jobs} is not usable; expected at least 1 process.")
    if limit is not None and not limit > 0:
        raise InvalidInputError(f"limit={limit} is not usable; expected a positive number of seconds.")


def _usable(record: Record, limit: float | None) -> bool:
    """Whether a stored record answers the question: a cell over a smaller limit, or one that failed, does not."""
    return record["status"] == DONE or (record["status"] == OVER and limit is not None and record["limit"] >= limit)


def _run_all(tasks: list[Task], jobs: int, limit: float | None, finished: Callable[[Task, Record], None]) -> None:
    queue = list(reversed(tasks))
    workers = [_Worker() for _ in range(jobs)]
    try:
        while queue or any(worker.task for worker in workers):
            wait([worker.pipe for worker in workers], timeout=min(worker.patience() for worker in workers))
            for i, worker in enumerate(workers):
                outcome = worker.outcome(limit)
                if worker.task is not None and outcome is not None:
                    finished(worker.task, outcome)
                    workers[i] = worker.renewed() if outcome["status"] != DONE else worker
                    workers[i].task = None
                if workers[i].ready and workers[i].task is None and queue:
                    workers[i].give(queue.pop(), limit)
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that answers one task after the other."""

    def __init__(self) -> None:
        self.pipe, far = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_serve, args=(far,), daemon=True)
        self.process.start()
        far.close()
        self.task: Task | None = None
        self.ready = False
        self.deadline = float("inf")

    def give(self, task: Task, limit: float | None) -> None:
        self.task = task
        self.deadline = float("inf") if limit is None else monotonic() + limit
        self.pipe.send(task)

    def outcome(self, limit: float | None) -> Record | None:
        """What became of the task, if that is known."""
        try:
            message = self.pipe.recv() if self.pipe.poll() else None
        except (EOFError, OSError):
            self.process.join()
            message = {"status": FAILED, "why": f"its process ended with exit code {self.process.exitcode}"}
            if not self.ready:
                raise RuntimeError(f"A process for the cells did not start: {message['why']}.") from None
        if message is None and monotonic() >= self.deadline:
            return {"status": OVER, "limit": limit}
        if message is not None and not self.ready:
            self.ready = True
            return None
        return message

    def patience(self) -> float:
        """Seconds until this worker may be over its limit."""
        return max(0.0, self.deadline - monotonic()) if self.task is not None and self.deadline < float("inf") else 3600.0

    def renewed(self) -> _Worker:
        self.end(patience=0.0)
        return _Worker()

    def end(self, patience: float = _FAREWELL) -> None:
        """Close the pipe, at which an idle process leaves; end one that does not."""
        self.pipe.close()
        if self.task is None:
            self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


def _serve(pipe: Connection) -> None:
    """The loop of a process: say that it is ready, then a task in, an outcome out, until the pipe closes."""
    import_module("orthonmf.experiments.methods")  # takes longer than many a cell
    pipe.send("ready")
    with threadpool_limits(1):
        while True:
            try:
                task = pipe.recv()
            except (EOFError, OSError):
                return
            pipe.send(solved(task))


def solved(task: Task) -> Record:
    """Compute a cell here and now; an error becomes part of the table."""
    function: Callable[..., dict[str, Any]] = imported(task.function)
    try:
        return {"status": DONE, **function(**task.arguments)}
    except Exception as error:  # whatever a method raises on some matrix, the other cells go on
        return {"status": FAILED, "why": f"{type(error).__name__}: {error}"}
