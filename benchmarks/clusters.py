"""A dask cluster of this machine beside its threads: one pass, whole fits, workers that are killed, and data larger than the workers.

Run ``python -m benchmarks clusters`` (about five minutes; ``--parts pass fixed fit deaths memory`` chooses).

*Pass*: 2e6 items of 64 float32 dimensions that the workers hold, in chunks of dask's own size or as many as there are workers, 20
components; medians after a warm-up; *× threads* compares with as many threads of this process (as many as there are cores, at most),
*speed-up* with one worker; *KiB* is what the tasks of one pass and their answers take, beside chunks × (k p + k) numbers each way. On a
machine of 16 cores (about two minutes): ``python -m benchmarks clusters --parts pass --workers 1 2 4 8 16``.

*Fixed*: what a pass of 16 tasks takes of the processor in the client and the scheduler, whatever the workers compute (512 items each), less
what both take when nothing happens; the seconds of the clock are those of 16 workers on the cores of this machine.

*Deaths*: a fit to 2 GB in a file, of which every task loads its chunk, undisturbed and with a worker killed twice. *Memory*: the same of
3.2 GB, on two workers that may hold a quarter of it each.
"""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from distributed import Client, futures_of, wait
from distributed.deploy.subprocess import SubprocessCluster

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import Engine, ThreadTeam
from orthonmf.engines import dask as dask_engine
from orthonmf.engines.layout import Layout
from orthonmf.engines.threads import n_cores
from orthonmf.passes.hard import Nearest
from orthonmf.passes.soft import Gibbs
from orthonmf.passes.state import State
from orthonmf.sources import chunks_of
from tests.engines.clusters import deaths, local_cluster, sizes

from . import scaling
from ._table import Column, Table
from ._timing import machine, median_seconds, timed

N_ITEMS, N_DIMS, N_COMPONENTS, REPEATS = 2_000_000, 64, 20, 9
PASS_COLUMNS = (
    Column("who", 12),
    Column("hard, ms", 10, ".1f"),
    Column("× threads", 10, ".2f"),
    Column("speed-up", 10, ".2f"),
    Column("soft, ms", 10, ".1f"),
    Column("× threads ", 10, ".2f"),
    Column("speed-up ", 10, ".2f"),
    Column("chunks", 6, "d"),
    Column("most held", 9, "d"),
    Column("KiB", 8, ".0f"),
    Column("numbers, KiB", 13, ".0f"),
)
FIXED_WORKERS, FIXED_ITEMS, FIXED_REPEATS, IDLE_SECONDS = 16, 512, 100, 3.0
FIXED_COLUMNS = (
    Column("scheduler", 32),
    Column("pass", 5),
    Column("clock, ms", 10, ".1f"),
    Column("client, ms", 10, ".1f"),
    Column("scheduler, ms", 13, ".1f"),
    Column("both, less idle, ms", 19, ".1f"),
)
FIT_COLUMNS = (
    Column("who", 48),
    Column("s", 8, ".1f"),
    Column("deaths", 7, "d"),
    Column("MiB, largest worker", 20, ".0f"),
    Column("bits", 18),
)


def made(block_info: Any = None) -> Any:
    """One chunk of items in 20 groups: the same whenever it is made."""
    (first, _), shape = block_info[None]["array-location"], block_info[None]["chunk-shape"]
    rng = np.random.default_rng(first[0])
    groups = np.random.default_rng(0).gamma(2.0, 1.0, (N_COMPONENTS, shape[1])).astype(np.float32)
    items = groups[rng.integers(N_COMPONENTS, size=shape[0])]
    items += rng.standard_normal(shape, dtype=np.float32) * np.float32(0.5)
    return np.maximum(items, 0)


def loaded(path: str, block_info: Any = None) -> Any:
    """One chunk of a file; a map of it would count as the worker's memory."""
    start, stop = block_info[None]["array-location"][0]
    where = np.load(path, mmap_mode="r").offset + 4 * N_DIMS * start
    return np.fromfile(path, np.float32, (stop - start) * N_DIMS, offset=where).reshape(-1, N_DIMS)


def items(n_items: int, path: Path | None = None, *, at_least: int = 1) -> Any:
    """Items in chunks of dask's own size, or ``at_least`` so many: made when they are needed, or loaded from a file."""
    like = da.empty((n_items, N_DIMS), dtype=np.float32, chunks=("auto", -1))
    if like.numblocks[0] < at_least:
        like = like.rechunk((-(-n_items // at_least), -1))
    options = {"chunks": like.chunks, "dtype": np.float32, "meta": np.empty((0, 0), np.float32)}
    return da.map_blocks(made, **options) if path is None else da.map_blocks(loaded, str(path), **options)


@contextmanager
def stored(n_bytes: int) -> Any:
    """As many bytes of items in a file, which every task reads its chunk of."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        target = np.lib.format.open_memmap(path, "w+", np.float32, (n_bytes // (4 * N_DIMS), N_DIMS))
        scaling.fill(target)
        target.flush()
        yield items(len(target), path)


# -- one pass ---------------------------------------------------------------------------------------------------------------------


def hard_and_soft(engine: Engine) -> tuple[Callable[[], None], Callable[[], None]]:
    """One pass of each kind."""
    distortion = REGISTRY["frobenius", "none"].of(engine)
    centers = distortion.to_frame(np.random.default_rng(1).gamma(2.0, 1.0, (N_COMPONENTS, N_DIMS)) * 2.0**engine.shift)
    labels: Any = None

    def hard() -> None:
        nonlocal labels
        labels = engine.run(distortion, Nearest(centers, labelled=labels is not None), {"labels": labels}).columns["labels"]

    def soft() -> None:
        engine.run(distortion, Gibbs(State(1.0, centers, np.zeros(N_COMPONENTS))))

    return hard, soft


def passes(engine: Engine) -> tuple[float, float]:
    """Milliseconds of a hard and of a soft pass."""
    hard, soft = hard_and_soft(engine)
    return 1e3 * median_seconds(hard, repeats=REPEATS), 1e3 * median_seconds(soft, repeats=REPEATS)


@contextmanager
def counted() -> Any:
    """The bytes of the tasks and answers of a pass, as they are pickled."""
    sizes: list[int] = []
    original = dask_engine.DaskEngine._answers

    def answers(self: Any, recipe: Any, *, totals: bool = True) -> Any:
        sizes.clear()
        orders, map_chunks = [], self._data.map

        def noted(name: str, function: Any, arguments: Any, *rest: Any, **options: Any) -> Any:
            orders.extend((function, each) for each in arguments)
            return map_chunks(name, function, arguments, *rest, **options)

        self._data.map = noted
        for where, answer in original(self, recipe, totals=totals):
            sizes.append(len(pickle.dumps(answer)))
            yield where, answer
        sizes.extend(len(pickle.dumps(each)) for each in orders)
        del self._data.map

    dask_engine.DaskEngine._answers = answers  # type: ignore[method-assign]
    try:
        yield sizes
    finally:
        dask_engine.DaskEngine._answers = original  # type: ignore[method-assign]


def by_threads(X: Any, n_threads: int) -> tuple[float, float]:
    """Milliseconds of a hard and of a soft pass over an array of this process."""
    with ThreadTeam(n_threads) as team:
        return passes(Layout("samples", "auto").build(X, None, team))


def by_workers(held: Any) -> tuple[float, float, int]:
    """The same over what the workers hold, and the bytes that travel with a pass."""
    with ThreadTeam(1) as team:
        engine = Layout("samples", "auto").build(chunks_of(held, "samples", "ONMF"), None, team)
        hard, soft = passes(engine)
        with counted() as sizes:
            passes(engine)
    return hard, soft, sum(sizes)


def part_pass(n_workers: list[int], n_items: int) -> None:
    """One pass by threads and by workers."""
    table = Table(PASS_COLUMNS)
    table.header()
    data = items(n_items, at_least=max(n_workers))
    n_chunks = data.numblocks[0]
    X = data.compute()
    n_threads = sorted({min(n, n_cores()) for n in (1, 2, *n_workers)})
    threads = {n: by_threads(X, n) for n in n_threads}
    for n, (hard, soft) in threads.items():
        table.row(f"{n} thread{'s' * (n > 1)}", hard, 1.0, threads[1][0] / hard, soft, 1.0, threads[1][1] / soft, None, None, None, None)
    del X
    one: tuple[float, float] | None = None
    for n in n_workers:
        with local_cluster(n) as client:
            held = data.persist()
            wait(held)
            most = Counter(min(workers) for workers in client.who_has(held).values()).most_common(1)[0][1]
            hard, soft, n_bytes = by_workers(held)
            del held
        one = one or (hard * n_workers[0], soft * n_workers[0])
        alone = threads[min(n, n_cores())]
        numbers = 2 * n_chunks * (N_COMPONENTS * N_DIMS + N_COMPONENTS) * 8 / 1024
        who = f"{n} worker{'s' * (n > 1)}"
        by_hard, by_soft = (hard, hard / alone[0], one[0] / hard), (soft, soft / alone[1], one[1] / soft)
        table.row(who, *by_hard, *by_soft, n_chunks, most, n_bytes / 1024, numbers)


# -- what a pass costs beside its computing -----------------------------------------------------------------------------------------


@contextmanager
def scheduled_apart(n_workers: int) -> Any:
    """A client of workers whose scheduler is a process of its own."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "worker_kwargs": {"silence_logs": logging.CRITICAL}}
    with SubprocessCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        client.wait_for_workers(n_workers)
        yield client


def part_fixed() -> None:
    """Passes over next to nothing."""
    table = Table(FIXED_COLUMNS)
    table.header()
    for who, cluster in (("in the client's process", local_cluster), ("a process of its own", scheduled_apart)):
        with cluster(FIXED_WORKERS) as client, ThreadTeam(1) as team:
            held = items(FIXED_ITEMS * FIXED_WORKERS, at_least=FIXED_WORKERS).persist()
            wait(held)
            engine = Layout("samples", "auto").build(chunks_of(held, "samples", "ONMF"), None, team)
            processes = [psutil.Process(pid) for pid in dict.fromkeys((os.getpid(), client.run_on_scheduler(os.getpid)))]
            for name, one in zip(("hard", "soft"), hard_and_soft(engine), strict=True):
                fixed_row(table, who, name, processes, one)


def fixed_row(table: Table, who: str, name: str, processes: list[psutil.Process], one: Callable[[], None]) -> None:
    """One kind of pass; the processes are the client's and, where it has one, the scheduler's."""

    def taken(call: Callable[[], object]) -> list[float]:
        before = [sum(process.cpu_times()[:2]) for process in processes]
        call()
        return [sum(process.cpu_times()[:2]) - start for process, start in zip(processes, before, strict=True)]

    for _ in range(FIXED_REPEATS // 5):
        one()
    idle = sum(taken(lambda: time.sleep(IDLE_SECONDS))) / IDLE_SECONDS
    clock: list[float] = []
    busy = taken(lambda: clock.extend(timed(one)[1] for _ in range(FIXED_REPEATS)))
    each = [1e3 * seconds / FIXED_REPEATS for seconds in busy]
    apart = each[1] if len(each) > 1 else None
    table.row(who, name, 1e3 * statistics.median(clock), each[0], apart, sum(each) - 1e3 * idle * sum(clock) / FIXED_REPEATS)


# -- whole fits -------------------------------------------------------------------------------------------------------------------


def bits(model: ONMF) -> str:
    """A digest of what was found."""
    arrays = (model.components_, model.labels_, model.scale_, model.margin_)
    return sha256(b"".join(np.ascontiguousarray(each).tobytes() for each in arrays)).hexdigest()[:16]


def fit_row(table: Table, who: str, data: Any, client: Any = None, every: float | None = None) -> dict[str, Any]:
    """One whole fit; where ``every`` is given, a worker is killed after so many seconds, and again."""
    began = time.perf_counter()
    if client is None:
        model = ONMF(N_COMPONENTS).fit(data)
        table.row(who, time.perf_counter() - began, None, None, bits(model))
        return {"bits": bits(model)}
    with sizes(client) as seen, nullcontext([]) if every is None else deaths(client, every, at_most=2) as killed:
        model = ONMF(N_COMPONENTS).fit(data)
    found = {"deaths": len(killed), "largest": max(seen), "bits": bits(model)}
    table.row(who, time.perf_counter() - began, *found.values())
    return found


def part_fit() -> None:
    """Whole fits to what the workers hold."""
    table = Table(FIT_COLUMNS)
    table.header()
    data = items(N_ITEMS)
    for n in (1, 2):
        with local_cluster(n) as client:
            held = data.persist()
            wait(held)
            fit_row(table, f"{n} workers, held", held, client)
            if n == 2:
                X = np.concatenate(client.gather(sorted(futures_of(held), key=lambda future: future.key[1])))
                del held
    fit_row(table, "threads of one process, blocks of its own", X)


def part_deaths() -> list[dict[str, Any]]:
    """2 GB of chunks, a worker killed twice."""
    table = Table(FIT_COLUMNS)
    table.header()
    with stored(2_000_000_000) as data, local_cluster(2) as client:
        undisturbed = fit_row(table, "2 GB, undisturbed", data, client)
        return [undisturbed, fit_row(table, "2 GB, killed twice", data, client, every=4.0)]


def part_memory() -> list[dict[str, Any]]:
    """Data twice as large as what the workers may hold together."""
    table = Table(FIT_COLUMNS)
    table.header()
    with dask.config.set({"array.chunk-size": "32MiB"}), stored(3_200_000_000) as data, local_cluster(2, memory_limit="800MB") as client:
        return [fit_row(table, "3.2 GB, two workers of 800 MB, chunks of 32 MiB", data, client)]


def main() -> None:
    """Run the parts that are asked for."""
    parts: dict[str, Callable[[], object]] = {
        "pass": lambda: part_pass(options.workers, options.items),
        "fixed": part_fixed,
        "fit": part_fit,
        "deaths": part_deaths,
        "memory": part_memory,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=tuple(parts), default=tuple(parts))
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4], help="for the passes (%(default)s)")
    parser.add_argument("--items", type=int, default=N_ITEMS, help="for the passes (%(default)s)")
    options = parser.parse_args()
    print(machine(), "\n")
    for part in options.parts:
        parts[part]()
        print()


if __name__ == "__main__":
    main()
