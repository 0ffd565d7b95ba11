"""One function on every chunk of a dask array, wherever it is computed: in this process, or by workers that may die meanwhile.

A function is pure, and gets one chunk, loaded in the same task. Chunks that are small, or lie with the same worker, share a task, since a
task costs some milliseconds whatever it does. A task that a dying worker took along is asked for again under another name, since dask
remembers that it failed; the answers come in the order of the chunks, so that neither the number of workers nor their deaths can be seen
in them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from time import monotonic
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from cloudpickle import dumps
from dask.base import compute, optimize
from dask.delayed import delayed
from dask.local import get_sync
from dask.optimization import cull

from ..exceptions import DistributedFitError, InvalidInputError, OrthonmfError

# Seconds without an answer from any worker while workers die, are missing, or their tasks fail: then the fit ends.
STALL_SECONDS = 60.0
# Seconds in which the scheduler may be out of reach.
SCHEDULER_SECONDS = 10.0
NO_WORKER = "there is no worker"
# How often one chunk is asked for again; dask itself has tried on several workers each time.
MAX_TRIES = 20
# Seconds between two looks at the cluster while nothing comes, and those an answer may take on its way.
LOOK_SECONDS, ANSWER_SECONDS = 0.5, 30.0
# A chunk whose recipe is longer than this many bytes holds its numbers in it: they are sent once, not in every pass.
RECIPE_BYTES = 1 << 16
# A task takes chunks of so many bytes together, at most: two of dask's own size. Every task costs the scheduler some milliseconds.
TASK_BYTES = 256 << 20
# Where every task loads its chunks, there are so many tasks for each thread of the cluster, at least, so that none waits long for the last.
LOADED_TASKS = 4
# Tasks that are asked for and not yet answered in order, for each thread of the cluster, and at least; those whose answers are as long as
# their chunks wait in a worker's memory: one for each thread, and some on their way.
TASKS_AHEAD, LEAST_AHEAD, HEAVY_AHEAD = 8, 16, 2
# Tasks whose answers were taken are kept by the scheduler until there are so many for each thread of the cluster, or their answers take so
# many bytes: a message to every worker for each pass costs as much as handing out its tasks.
SPENT_TASKS, SPENT_BYTES = 8, 1 << 20
# Seconds for which it is believed where chunks lie, while nothing goes wrong.
BELIEVED_SECONDS = 10.0
# Chunks that share more than so many times the tasks there are would be computed from each other again and again.
SHARED_TASKS = 4


class Loader:
    """How a chunk is loaded: the tasks of dask that lead to it, which run one after the other where it is needed.

    It is no dataclass: dask would look into one, and take its tasks for some of its own.
    """

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self.graph, self.key = graph, key

    def __call__(self) -> Any:
        """The chunk."""
        return get_sync(self.graph, self.key)


def loaded(block: Any) -> Any:
    """The numbers of a chunk."""
    return block() if isinstance(block, Loader) else block


@dataclass(frozen=True)
class _Failure:
    """What went wrong in a task that did not die."""

    error: Exception | None
    words: str


def _guarded(work: bytes, packs: bool, blocks: Sequence[Any], arguments: Sequence[Sequence[Any]]) -> Any:
    """The answer of each chunk, or why there is none: an exception as such would be tried again, and lose its chunk's number.

    The function, and short answers (``packs``), are bytes to dask, which looks at every array that it passes on.
    """
    function = _unpickled(work)
    answers = [_guarded_one(function, block, each) for block, each in zip(blocks, arguments, strict=True)]
    return _pickled(answers) if packs else answers


def _pickled(value: Any) -> bytes:
    from distributed.protocol.pickle import dumps

    return bytes(dumps(value))


def _unpickled(data: bytes) -> Any:
    from distributed.protocol.pickle import loads

    return loads(data)


def _guarded_one(function: Callable[..., Any], block: Any, arguments: Sequence[Any]) -> Any:
    try:
        return function(block, *arguments)
    except Exception as error:
        return _Failure(error if isinstance(error, OrthonmfError) else None, f"{type(error).__name__}: {error}")


def _beside(part: Any, block: Any) -> Any:
    """A part of an array, where the chunk is."""
    return part


def _client() -> Any:
    """The client of the user, if there is one."""
    try:
        from distributed import get_client, get_worker
    except ImportError:
        return None
    with suppress(ValueError):
        get_worker()
        raise DistributedFitError(
            "fit was called with a collection of dask inside a task of dask, where it would wait for itself. Call it from the client, or "
            "pass an array there."
        )
    try:
        return get_client()
    except ValueError:
        return None


def _passing() -> tuple[type[BaseException], ...]:
    """What may be over when it is tried again."""
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    return KilledWorker, asyncio.CancelledError, concurrent.futures.CancelledError, CommClosedError, TimeoutError


def _result(future: Any) -> Any:
    """What was raised in a task instead of an answer; what did not come in time is asked for again."""
    if future.status in ("finished", "pending"):
        return TimeoutError("the answer was lost with its worker")
    try:
        return future.result(timeout=LOOK_SECONDS)
    except BaseException as error:
        if not isinstance(error, (Exception, *_passing())):
            raise
        return error


class Held:
    """An array of this process in parts, one for each chunk, which are sent to the workers once.

    A part is made by a task, of the chunk where the cluster holds that, so that it lies there; dask makes it again where a worker dies.

    Parameters
    ----------
    client : Client or None
    blocks : list
        The chunks.
    parts : dict of int to array
        By the number of the chunk.
    """

    def __init__(self, client: Any, blocks: list[Any], parts: Mapping[int, Any]) -> None:
        self._client, self._blocks, self._parts = client, blocks, parts
        self._name, self._tries = f"orthonmf-hold-{uuid4().hex}", count()
        self._futures: dict[int, Any] = {}

    def of(self, number: int) -> Any:
        """The part beside a chunk: a future, or the numbers where there is no client."""
        if self._client is None:
            return self._parts[number]
        future = self._futures.get(number)
        if future is None or future.status not in ("pending", "finished"):
            block = self._blocks[number] if _is_future(self._blocks[number]) else None
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # sent once: that is the point
                key = f"{self._name}-{number}-{next(self._tries)}"
                future = self._futures[number] = self._client.submit(_beside, self._parts[number], block, key=key, pure=False)
        return future


def _is_future(block: Any) -> bool:
    return not isinstance(block, Loader)


class Cluster:
    """The chunks of an array, each for itself.

    Parameters
    ----------
    array : dask.array.Array
        Of one row or one column of chunks.
    """

    def __init__(self, array: Any) -> None:
        self._client = _client()
        self.blocks = _blocks(array, self._client)
        self._spread = _Spread(self._client, self.blocks, array.nbytes / max(len(self.blocks), 1))
        self._spent = _Spent(self._client)

    def __len__(self) -> int:
        return len(self.blocks)

    def hold(self, parts: Mapping[int, Any]) -> Held:
        """Parts of an array of this process, by the number of the chunk that they belong to, as arguments of many calls."""
        return Held(self._client, self.blocks, parts)

    def map(
        self,
        name: str,
        function: Callable[..., Any],
        calls: Sequence[tuple[int, tuple[Any, ...]]],
        check: Callable[[], None],
        *,
        heavy: bool = False,
    ) -> Iterator[Any]:
        """``function(chunk, *arguments)`` for every call, a number of a chunk and the arguments, in the order of the calls.

        An argument that is ``Held`` stands for its part of that chunk. ``name`` is what dask's dashboard shows; ``check`` is called now and
        then, and may raise; ``heavy`` says that an answer is as long as its chunk, so that few of them may wait.
        """
        if self._client is not None:
            if self._client.status == "closed":
                raise DistributedFitError("The client of the cluster is closed. Connect a new Client, then fit again.")
            return _Round(self._client, self.blocks, self._spread, name, function, calls, check, heavy, self._spent).answers()
        return self._computed(function, calls, check)

    def _computed(
        self, function: Callable[..., Any], calls: Sequence[tuple[int, tuple[Any, ...]]], check: Callable[[], None]
    ) -> Iterator[Any]:
        """Without a client: some calls at a time, so that few answers wait, and the time is looked at."""
        step = TASKS_AHEAD * (os.cpu_count() or 1)
        for start in range(0, len(calls), step):
            some = calls[start : start + step]
            check()
            tasks = [
                delayed(_guarded_one, pure=False, traverse=False)(function, self.blocks[number], _parts(arguments, number))
                for number, arguments in some
            ]
            for (number, _), answer in zip(some, compute(*tasks), strict=True):
                yield _answered(number, answer)


def _parts(arguments: tuple[Any, ...], number: int) -> list[Any]:
    """The arguments of one chunk."""
    return [each.of(number) if isinstance(each, Held) else each for each in arguments]


@dataclass
class _Spread:
    """How the chunks are spread over the workers: where those lie that are held, and how many threads there are.

    It decides which chunks share a task, and nothing else: a task goes where dask sends it.

    Attributes
    ----------
    client, blocks
    chunk_bytes : float
        Of a chunk, about; NaN where that is not known.
    n_threads : int
        Of all workers.
    """

    client: Any
    blocks: list[Any]
    chunk_bytes: float
    n_threads: int = 1
    doubted: bool = True
    _where: dict[int, str] = field(default_factory=dict)
    _seen: float = -BELIEVED_SECONDS

    def look(self) -> None:
        """Ask the scheduler, unless it has just been asked and nothing went wrong since."""
        if not self.doubted and monotonic() - self._seen < BELIEVED_SECONDS:
            return
        held = {each.key: number for number, each in enumerate(self.blocks) if _is_future(each)}
        with suppress(OSError, RuntimeError, *_passing()):  # a round that cannot reach it either says so
            self.n_threads = max(sum(self.client.nthreads().values()), 1)
            known = self.client.who_has([self.blocks[number] for number in held.values()]) if held else {}
            self._where = {held[key]: min(workers) for key, workers in known.items() if workers}
        self.doubted, self._seen = False, monotonic()

    def bundles(self, numbers: Sequence[int], *, heavy: bool) -> Iterator[list[int]]:
        """Places among ``numbers`` whose chunks share a task, ordered by the first: of one worker where that is known, else neighbours."""
        self.look()
        share = self.n_threads if self._where else LOADED_TASKS * self.n_threads
        size = max(1 if heavy else -(-len(numbers) // share), 1)
        if self.chunk_bytes * size > TASK_BYTES or not self.chunk_bytes >= 0:
            size = max(int(TASK_BYTES // self.chunk_bytes), 1) if self.chunk_bytes > 0 else 1
        stretch = size * self.n_threads if self._where else size
        for start in range(0, len(numbers), stretch):
            by_worker: dict[str, list[int]] = {}
            for place in range(start, min(start + stretch, len(numbers))):
                by_worker.setdefault(self._where.get(numbers[place], ""), []).append(place)
            found = (places[first : first + size] for places in by_worker.values() for first in range(0, len(places), size))
            yield from sorted(found)

    def ahead(self, *, heavy: bool) -> int:
        """Tasks that may be asked for and not yet answered."""
        return self.n_threads + HEAVY_AHEAD if heavy else max(TASKS_AHEAD * self.n_threads, LEAST_AHEAD)


class _Spent:
    """Tasks whose answers are here: the scheduler forgets those of several passes together, while the workers are at the next."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._futures: list[Any] = []
        self._nbytes = 0

    def add(self, future: Any, nbytes: int) -> None:
        """One more, whose answer takes so many bytes."""
        self._futures.append(future)
        self._nbytes += nbytes

    def let_go(self, n_threads: int) -> None:
        """Forget them, if they are many."""
        if len(self._futures) < SPENT_TASKS * n_threads and self._nbytes < SPENT_BYTES * n_threads:
            return
        gone, self._futures, self._nbytes = self._futures, [], 0
        self._client.loop.add_callback(gone.clear)  # in the thread of the client, which each would have to be told otherwise


def _blocks(array: Any, client: Any) -> list[Any]:
    """The chunks: futures where the cluster holds them, or what they are made of; how to load them where it does not."""
    keys = _flat(array.__dask_keys__())
    if client is not None and _futures(array):
        held = _futures(array)
        held = held if set(keys) <= set(held) else _futures(client.persist(array))
        return [held[key] for key in keys]
    (light,) = optimize(array)
    keys, graph = _flat(light.__dask_keys__()), dict(light.__dask_graph__())
    loaders = [Loader(cull(graph, [key])[0], key) for key in keys]
    if sum(len(each.graph) for each in loaders) > SHARED_TASKS * max(len(graph), len(keys)):
        raise InvalidInputError(
            "Every chunk of X is computed from many others (as in X / X.max()), which every pass would do again for each. Compute it once, "
            "X = X.persist(), and use that."
        )
    if client is None or not any(map(_holds_numbers, loaders)):
        return loaders
    held = _futures(array := client.persist(array))
    return [held[key] for key in _flat(array.__dask_keys__())]


def _futures(array: Any) -> dict[Any, Any]:
    """The chunks that a cluster holds, by their keys."""
    from distributed import futures_of

    return {future.key: future for future in futures_of(array)}


def _flat(keys: Any) -> list[Any]:
    return [keys] if isinstance(keys, tuple) else [key for part in keys for key in _flat(part)]


def _holds_numbers(loader: Loader) -> bool:
    return len(dumps(loader)) > RECIPE_BYTES


def _answered(number: int, answer: Any) -> Any:
    """The answer, unless it says what went wrong."""
    if not isinstance(answer, _Failure):
        return answer
    if answer.error is not None:
        raise answer.error
    raise DistributedFitError(
        f"Chunk {number} of X could not be computed: {answer.words}. See that a worker can load it, for example with "
        f"X.blocks[{number}].compute(), then fit again."
    )


@dataclass(frozen=True)
class _Task:
    """What was asked for in one task: places among the calls."""

    future: Any
    places: tuple[int, ...]


class _Round:
    """One pass over the chunks, whoever dies meanwhile."""

    def __init__(
        self,
        client: Any,
        blocks: list[Any],
        spread: _Spread,
        name: str,
        function: Callable[..., Any],
        calls: Sequence[tuple[int, tuple[Any, ...]]],
        check: Callable[[], None],
        heavy: bool,
        spent: _Spent,
    ) -> None:
        self._client, self._blocks, self._calls, self._check = client, blocks, calls, check
        self._spread, self._heavy, self._spent = spread, heavy, spent
        self._work = _pickled(function)
        self._name = f"orthonmf-{name}-{uuid4().hex}"
        self._serial = count()
        self._tasks: dict[str, _Task] = {}
        self._tries = [0] * len(calls)
        self._workers: set[str] | None = None
        self._answered = self._seen = monotonic()
        self._finished: set[str] = set()
        self._trouble = ""

    def answers(self) -> Iterator[Any]:
        """Of all calls, in order."""
        waiting: dict[int, Any] = {}
        ends: list[int] = []
        bundles = self._spread.bundles([number for number, _ in self._calls], heavy=self._heavy)
        ahead = self._spread.ahead(heavy=self._heavy)
        try:
            for place in range(len(self._calls)):
                ends = [end for end in ends if end >= place]
                due: list[list[int]] = []
                asked = self._tries[place] > 0
                while (len(ends) < ahead or not asked) and (bundle := next(bundles, None)):
                    due.append(bundle)
                    ends.append(bundle[-1])
                    asked = asked or place in bundle
                self._submit(due)
                while place not in waiting:
                    self._collect(waiting)
                yield waiting.pop(place)
        finally:
            if self._tasks and self._client.status == "running":
                self._client.cancel([each.future for each in self._tasks.values()])
            self._tasks.clear()

    def _submit(self, bundles: Sequence[Sequence[int]]) -> None:
        """Ask for the calls at these places, those of a bundle in one task, and for all tasks in one message."""
        if not bundles:
            return
        numbers = [[self._calls[place][0] for place in places] for places in bundles]
        blocks = [[self._blocks[number] for number in each] for each in numbers]
        for place in chain.from_iterable(bundles):
            self._tries[place] += 1
        if broken := [block for block in chain.from_iterable(blocks) if getattr(block, "status", "") == "error"]:
            self._client.retry(broken)
        arguments = [[_parts(self._calls[place][1], self._calls[place][0]) for place in places] for places in bundles]
        # Fresh names: under the old ones dask knows that they failed.
        keys = [f"{self._name}-{each[0]}-{next(self._serial)}" for each in numbers]
        same = [[each] * len(keys) for each in (self._work, not self._heavy)]
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # it is for one task, not for several together
            futures = self._client.map(_guarded, *same, blocks, arguments, key=keys, pure=False, fifo_timeout=0)
        self._tasks.update({future.key: _Task(future, tuple(places)) for future, places in zip(futures, bundles, strict=True)})
        self._spent.let_go(self._spread.n_threads)

    def _collect(self, waiting: dict[int, Any]) -> None:
        """Take the answers that come next, those of as many tasks as run at once, and others that are there."""
        tasks = sorted(self._tasks.values(), key=lambda task: task.places)
        n_next = 1 if self._heavy else self._spread.n_threads
        ended = self._ended(tasks[:n_next] + [task for task in tasks[n_next:] if task.future.status != "pending"])
        self._check()
        for task, answers in ended:
            del self._tasks[task.future.key]
            if isinstance(answers, _passing()):
                self._again(task, answers)
            elif isinstance(answers, Exception) and len(task.places) > 1:  # of which chunk, each says for itself
                self._one_by_one(task)
            else:
                if isinstance(answers, Exception):  # raised while the chunk itself was computed, before it came to us
                    answers = [_Failure(None, f"{type(answers).__name__}: {answers}")]
                for place, answer in zip(task.places, answers, strict=True):
                    waiting[place] = _answered(self._calls[place][0], answer)
                self._answered, self._trouble = monotonic(), ""

    def _ended(self, tasks: list[_Task]) -> list[tuple[_Task, Any]]:
        """Tasks with their answers, when all have ended; else those that failed, with what was raised, as soon as one has."""
        try:
            return list(zip(tasks, self._gathered(tasks), strict=True))
        except BaseException as error:
            if not isinstance(error, (Exception, *_passing())):
                raise
            failed = [task for task in tasks if task.future.status in ("error", "cancelled")]
            if not failed and not isinstance(error, _passing()):
                raise
            return [(task, _result(task.future)) for task in failed or tasks]

    def _gathered(self, tasks: list[_Task]) -> list[Any]:
        """All answers, in one message."""
        futures, there = [task.future for task in tasks], np.inf
        asked = asyncio.run_coroutine_threadsafe(self._client.gather(futures, asynchronous=True), self._client.loop.asyncio_loop)
        try:
            while not concurrent.futures.wait([asked], timeout=LOOK_SECONDS).done:
                self._look()
                there = min(there, monotonic()) if all(future.status == "finished" for future in futures) else np.inf
                if monotonic() - there > ANSWER_SECONDS:
                    raise TimeoutError
            found = asked.result()
        finally:
            asked.cancel()
        if self._heavy:
            return found
        for task, data in zip(tasks, found, strict=True):
            self._spent.add(task.future, len(data))
        return [_unpickled(data) for data in found]

    def _again(self, task: _Task, error: BaseException) -> None:
        """Ask for chunks another time."""
        self._spread.doubted = True
        for place in task.places:
            number = self._calls[place][0]
            self._trouble = f"{type(error).__name__} at chunk {number}"
            if getattr(self._blocks[number], "status", "") in ("cancelled", "lost"):
                raise DistributedFitError(
                    f"Chunk {number} of X, which the cluster held, is gone: its workers were restarted, or the data released. Persist X "
                    "again, or pass an array that loads its chunks, then fit again."
                ) from error
            if self._tries[place] >= MAX_TRIES:
                raise DistributedFitError(
                    f"Chunk {number} of X was given up after {MAX_TRIES} tries, the last of which ended with {type(error).__name__}: "
                    "workers die with it. Give them more memory, or X smaller chunks, then fit again."
                ) from error
        self._stalled()
        self._one_by_one(task)

    def _one_by_one(self, task: _Task) -> None:
        """Ask for each chunk of a task for itself."""
        self._submit([[place] for place in task.places])

    def _look(self) -> None:
        """See whether there is still somebody to wait for."""
        self._check()
        now, workers = monotonic(), None
        if self._client.status == "running":
            try:
                known = self._client.scheduler_info(n_workers=-1)["workers"].items()
                workers = {address for address, about in known if about.get("status", "running") == "running"}
            except BaseException as error:
                if not isinstance(error, (OSError, RuntimeError, *_passing())):
                    raise
        if workers is None:
            if now - max(self._seen, self._answered) > SCHEDULER_SECONDS:
                raise DistributedFitError(
                    f"The scheduler of the cluster has been out of reach for {SCHEDULER_SECONDS:g} seconds. Connect a new Client, then fit "
                    "again."
                )
            return
        self._seen = now
        finished = {key for key, task in self._tasks.items() if task.future.status == "finished"}
        if not finished <= self._finished:
            self._answered, self._trouble = now, ""
        self._finished = finished
        if self._workers is not None and self._workers - workers:
            self._trouble, self._spread.doubted = "workers die", True
        elif not workers:
            self._trouble = self._trouble or NO_WORKER
        elif self._trouble == NO_WORKER:  # one has come
            self._answered, self._trouble = now, ""
        self._workers = workers
        self._stalled()

    def _stalled(self) -> None:
        if self._trouble and monotonic() - self._answered > STALL_SECONDS:
            raise DistributedFitError(
                f"No chunk of X was computed for {STALL_SECONDS:g} seconds, while workers fail ({self._trouble}). See why they do (their "
                "logs, their memory), then fit again."
            )
