"""One function on every chunk of a dask array, wherever it is computed: in this process, or by workers that may die meanwhile.

A function is pure, and gets one chunk, loaded in the same task. A task that a dying worker took along is asked for again under another
name, since dask remembers that it failed; the answers come in the order of the chunks, so that neither the number of workers nor their
deaths can be seen in them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any
from uuid import uuid4

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


def _guarded(function: Callable[..., Any], block: Any, arguments: tuple[Any, ...]) -> Any:
    """The answer, or why there is none: an exception as such would be tried again, and lose its chunk's number."""
    try:
        return function(block, *arguments)
    except Exception as error:
        return _Failure(error if isinstance(error, OrthonmfError) else None, f"{type(error).__name__}: {error}")


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

    def __len__(self) -> int:
        return len(self.blocks)

    def map(
        self, name: str, function: Callable[..., Any], calls: Sequence[tuple[int, tuple[Any, ...]]], check: Callable[[], None]
    ) -> Iterator[Any]:
        """``function(chunk, *arguments)`` for every call, a number of a chunk and the arguments, in the order of the calls.

        ``name`` is what dask's dashboard shows; ``check`` is called now and then, and may raise.
        """
        if self._client is not None:
            if self._client.status == "closed":
                raise DistributedFitError("The client of the cluster is closed. Connect a new Client, then fit again.")
            return _Round(self._client, self.blocks, name, function, calls, check).answers()
        tasks = [delayed(_guarded, pure=False, traverse=False)(function, self.blocks[number], arguments) for number, arguments in calls]
        check()
        return (_answered(number, answer) for (number, _), answer in zip(calls, compute(*tasks), strict=True))


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


class _Round:
    """One pass over the chunks, whoever dies meanwhile."""

    def __init__(
        self,
        client: Any,
        blocks: list[Any],
        name: str,
        function: Callable[..., Any],
        calls: Sequence[tuple[int, tuple[Any, ...]]],
        check: Callable[[], None],
    ) -> None:
        self._client, self._blocks, self._function, self._calls, self._check = client, blocks, function, calls, check
        self._name = f"orthonmf-{name}-{uuid4().hex}"
        self._finished: SimpleQueue[tuple[int, int]] = SimpleQueue()
        self._futures: dict[int, Any] = {}
        self._tries = [0] * len(calls)
        self._workers: set[str] | None = None
        self._answered = self._seen = monotonic()
        self._trouble = ""

    def answers(self) -> Iterator[Any]:
        """Of all calls, in order."""
        waiting: dict[int, Any] = {}
        try:
            for place in range(len(self._calls)):
                self._submit(place)
            for place in range(len(self._calls)):
                while place not in waiting:
                    self._collect(waiting)
                yield waiting.pop(place)
        finally:
            if self._futures and self._client.status == "running":
                self._client.cancel(list(self._futures.values()))
            self._futures.clear()

    def _submit(self, place: int) -> None:
        number, arguments = self._calls[place]
        self._tries[place] += 1
        tries, block = self._tries[place], self._blocks[number]
        if getattr(block, "status", "") == "error":
            self._client.retry([block])
        # A fresh name: under the old one dask knows that it failed.
        future = self._client.submit(
            _guarded, self._function, block, arguments, key=f"{self._name}-{number}-{tries}", pure=False, fifo_timeout=0
        )
        self._futures[place] = future
        future.add_done_callback(lambda _: self._finished.put((place, tries)))

    def _collect(self, waiting: dict[int, Any]) -> None:
        """Take the answers that have come, or see to it that one comes."""
        try:
            finished = [self._finished.get(timeout=LOOK_SECONDS)]
        except Empty:
            self._look()
            return
        with suppress(Empty):
            while True:
                finished.append(self._finished.get_nowait())
        self._check()
        places = [place for place, tries in finished if tries == self._tries[place]]
        for place, answer in zip(places, self._gathered(places), strict=True):
            number = self._calls[place][0]
            if isinstance(answer, _passing()):
                self._again(place, answer)
                continue
            if isinstance(answer, Exception):  # raised while the chunk itself was computed, before it came to us
                answer = _Failure(None, f"{type(answer).__name__}: {answer}")
            waiting[place] = _answered(number, answer)
            self._answered, self._trouble = monotonic(), ""
            del self._futures[place]

    def _gathered(self, places: list[int]) -> list[Any]:
        """The answers, or what was raised instead: those that are there in one message, the others one by one."""
        futures = [self._futures[place] for place in places]
        try:
            if all(future.status == "finished" for future in futures):
                found: list[Any] = self._client.sync(
                    lambda: self._client.gather(futures, asynchronous=True), callback_timeout=ANSWER_SECONDS
                )
                return found
        except _passing():
            pass
        return [_result(future) for future in futures]

    def _again(self, place: int, error: BaseException) -> None:
        """Ask for a chunk another time."""
        number = self._calls[place][0]
        self._trouble = f"{type(error).__name__} at chunk {number}"
        if getattr(self._blocks[number], "status", "") in ("cancelled", "lost"):
            raise DistributedFitError(
                f"Chunk {number} of X, which the cluster held, is gone: its workers were restarted, or the data released. Persist X again, "
                "or pass an array that loads its chunks, then fit again."
            ) from error
        if self._tries[place] >= MAX_TRIES:
            raise DistributedFitError(
                f"Chunk {number} of X was given up after {MAX_TRIES} tries, the last of which ended with {type(error).__name__}: workers "
                "die with it. Give them more memory, or X smaller chunks, then fit again."
            ) from error
        self._stalled()
        self._submit(place)

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
        if self._workers is not None and self._workers - workers:
            self._trouble = "workers die"
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
