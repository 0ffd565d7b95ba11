"""What a pass costs beside what the machine can do, and where the seconds of a fit go, beside k-means.

Run ``python -m benchmarks passes`` on a quiet machine (five minutes); ``--n 100000`` is a quick look. Data are those of ``scaling``:
float32, 64 dimensions, 20 components. A pass is a median of five; an iteration of k-means (Lloyd) is the difference between fits of 12
and of 2 iterations.
The memory's speed is that of a maximum over X, the processor's that of the product of X with the centres. ``--processor`` measures passes
in a way that others on the machine disturb less.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from orthonmf import ONMF, estimator
from orthonmf._common.typing import Array
from orthonmf.distortion import REGISTRY, scalings
from orthonmf.engines import ThreadTeam, available, engine_class
from orthonmf.engines.base import Engine
from orthonmf.engines.threads import n_cores
from orthonmf.passes.hard import Labelled, Nearest
from orthonmf.passes.moves import MoveGains
from orthonmf.passes.soft import Gibbs
from orthonmf.passes.state import State
from orthonmf.search.partition import item_points

from . import scaling
from ._table import Column, Table
from ._timing import least_processor_seconds, machine, median_seconds, timed
from .peers import means_error

BLOCK, SEEDS = 4096, 5
# Seconds of a call.
Clock = Callable[[Callable[[], object]], float]
PASSES = (
    Column("pass", 22),
    Column("engine", 8),
    Column("threads", 7, "d"),
    Column("ms", 7, ".1f"),
    Column("× Lloyd", 7, ".2f"),
    Column("GB/s", 6, ".1f"),
    Column("of memory", 9, ".0%"),
    Column("GFLOP/s", 7, ".1f"),
    Column("of GEMM", 7, ".0%"),
)
FITS = (
    Column("fit", 24),
    Column("seconds", 7, ".2f"),
    Column("passes over X", 13, ".2f"),
    Column("samples", 7, ".2f"),
    Column("certificate", 11, ".2f"),
    Column("the rest", 8, ".2f"),
    Column("error", 10, ".6%"),
)


def lloyd_seconds(X: Array, clock: Clock = median_seconds) -> float:
    """One iteration of k-means."""

    def fit(iterations: int) -> KMeans:
        return KMeans(scaling.COMPONENTS, init=X[: scaling.COMPONENTS], n_init=1, max_iter=iterations, tol=0).fit(X)

    few, many = (clock(lambda n=n: fit(n)) for n in (2, 12))
    return (many - few) / (fit(12).n_iter_ - fit(2).n_iter_)


def works(engine: Engine, scaling_: str) -> Iterator[tuple[str, Callable[[], object], int]]:
    """The hot passes by name, and how often each multiplies all items with all centres."""
    frame = REGISTRY["frobenius", scaling_].of(engine)
    centers = item_points(engine, frame, np.arange(scaling.COMPONENTS))
    found = engine.run(frame, Nearest(centers, labelled=False))
    labels = {"labels": found.columns["labels"]}
    kind = "lines" if frame.scaled else "means"
    state = State(50.0, centers, np.full(len(centers), -np.log(len(centers))))
    moves = MoveGains(centers, found.total.mass, found.total.cost, together=False, least=np.inf)
    yield f"hard, {kind}", lambda: engine.run(frame, Nearest(centers), labels), 1
    yield f"soft, {kind}", lambda: engine.run(frame, Gibbs(state)), 2
    if frame.scaled:
        yield "given labels, lines", lambda: engine.run(frame, Labelled(centers), labels), 1
        yield "single moves, lines", lambda: engine.run(frame, moves, labels), 1


def passes(X: Array, threads: int, table: Table, clock: Clock = median_seconds) -> None:
    """A row for every pass of every engine."""
    size, products = X.nbytes / 1e9, 2 * X.size * scaling.COMPONENTS / 1e9
    with threadpool_limits(threads):
        lloyd = lloyd_seconds(X, clock)
    centers = np.ascontiguousarray(X[: scaling.COMPONENTS])
    with ThreadTeam(threads) as team:
        blocks = [X[start : start + BLOCK] for start in range(0, len(X), BLOCK)]
        memory = size / clock(lambda: list(team.map(np.max, blocks)))
        gemm = products / clock(lambda: list(team.map(lambda block: centers @ block.T, blocks)))
        print(f"{threads} threads: reads {memory:.1f} GB/s, multiplies {gemm:.0f} GFLOP/s, Lloyd {lloyd * 1e3:.1f} ms", flush=True)
        for name in ("compiled", "dense"):
            if available(name):
                engine = engine_class(name).of(X, None, None, 0, team)
                for scaling_ in ("item", "none"):
                    for title, work, count in works(engine, scaling_):
                        seconds = clock(work)
                        read, multiplied = size / seconds, count * products / seconds
                        table.row(title, name, threads, seconds * 1e3, seconds / lloyd, read, read / memory, multiplied, multiplied / gemm)


@contextmanager
def clocks(n_items: int) -> Iterator[dict[str, float]]:
    """Seconds in passes over so many items, in those over fewer, and in certificates."""
    seconds: dict[str, float] = defaultdict(float)
    run, certify = Engine.run, estimator.certify

    def clocked(self: Engine, *arguments: object) -> object:
        found, taken = timed(lambda: run(self, *arguments))  # type: ignore[arg-type]
        seconds["all" if self.n_items == n_items else "samples"] += taken
        return found

    def certified(*arguments: object) -> object:
        before = seconds["all"]
        found, taken = timed(lambda: certify(*arguments))  # type: ignore[arg-type]
        seconds["certificate"] += taken - (seconds["all"] - before)
        return found

    Engine.run = clocked  # type: ignore[assignment, method-assign]
    estimator.certify = certified  # type: ignore[assignment]
    try:
        yield seconds
    finally:
        Engine.run, estimator.certify = run, certify  # type: ignore[method-assign]


def fits(X: Array, threads: int, table: Table) -> None:
    """Our fit, and what it spends where, beside fits of k-means from several seeds.

    Errors are relative, and added up in float64: k-means adds up its own in the precision of X.
    """
    for kind in scalings("frobenius"):
        with clocks(len(X)) as spent:
            model, seconds = timed(lambda kind=kind: ONMF(scaling.COMPONENTS, scaling=kind, n_jobs=threads).fit(X))
        parts = (spent["all"], spent["samples"], spent["certificate"], seconds - sum(spent.values()))
        table.row(f"ONMF, scaling={kind!r}", seconds, *parts, model.certificate_.relative_error)
    with threadpool_limits(threads):
        for seed in range(SEEDS):
            peer, seconds = timed(lambda seed=seed: KMeans(scaling.COMPONENTS, n_init=1, random_state=seed).fit(X))
            table.row(f"KMeans, seed {seed}", seconds, *(None,) * 4, means_error(X, peer.labels_, scaling.COMPONENTS))


def main() -> None:
    """Print both tables, with one thread and with all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks passes")
    parser.add_argument("--n", type=int, default=1_000_000, help="items")
    parser.add_argument("--processor", action="store_true", help="passes alone, by the least seconds of the processor, on one thread")
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    X = scaling.draw(arguments.n)
    ONMF(scaling.COMPONENTS).fit(X[:5000])  # what is imported and compiled on first use
    print(f"{machine()}\n")
    if arguments.processor:
        table = Table(PASSES, arguments.markdown)
        table.header()
        passes(X, 1, table, least_processor_seconds)
        return
    for threads in sorted({1, n_cores()}):
        table = Table(PASSES, arguments.markdown)
        table.header()
        passes(X, threads, table)
        print()
        table = Table(FITS, arguments.markdown)
        table.header()
        fits(X, threads, table)
        print()


if __name__ == "__main__":
    main()
