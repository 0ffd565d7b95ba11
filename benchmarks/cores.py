"""Many cores: passes on 1 to 16 threads, and whole fits of large data beside k-means, within a number of seconds.

Run ``python -m benchmarks cores`` on a quiet machine of many cores (five minutes, 12 GiB); ``--shrink 20`` is a quick look at fewer items.
Passes are those of ``passes``, medians of five over a million items of 64 float32 features with 20 components. Fits: 10 million such items,
a million with 300 components, and 500 000 documents of 50 000 words, 40 million entries, with 50. Each is one fit of ours after a first
one on fewer items, and as many of k-means from seeds 0 to 4 as there is time for, at least one. A fit that its time ended says so. Run it
again where numba is not installed for the figures of NumPy alone. Errors are relative, and added up in float64, which k-means does not.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from orthonmf import ONMF
from orthonmf._common.typing import Array
from orthonmf.engines import ThreadTeam, available, engine_class
from orthonmf.engines.threads import n_cores

from . import scaling
from ._table import Column, Table
from ._timing import machine, median_seconds, timed
from .passes import clocks, lloyd_seconds, works
from .peers import documents, means_error

THREADS = (1, 2, 4, 8, 16)
PARTS = ("passes", "fits")
SEEDS, SECONDS = 5, 300.0
# Of the time that there is for a kind of data, one fit of ours takes so much at most; the first one, of few items, so many seconds.
SHARE, WARM_UP = 0.6, 10.0
PASSES = (
    Column("pass", 12),
    Column("engine", 8),
    Column("threads", 7, "d"),
    Column("ms", 7, ".1f"),
    Column("× one thread", 12, ".2f"),
    Column("× Lloyd", 7, ".2f"),
)
FITS = (
    Column("method", 26),
    Column("seconds", 8, ".2f"),
    Column("× k-means", 9, ".2f"),
    Column("passes over X", 13, ".2f"),
    Column("samples", 7, ".2f"),
    Column("certificate", 11, ".2f"),
    Column("the rest", 8, ".2f"),
    Column("error", 12, ".6%"),
    Column("", 10),
)


def passes(X: Array, table: Table) -> None:
    """A row for each hot pass of each engine and number of threads."""
    alone: dict[tuple[str, str], float] = {}
    for threads in (each for each in THREADS if each <= n_cores()):
        with threadpool_limits(threads):
            lloyd = lloyd_seconds(X)
        table.row("Lloyd", "", threads, lloyd * 1e3, alone.setdefault(("Lloyd", ""), lloyd) / lloyd, 1.0)
        with ThreadTeam(threads) as team:
            for engine in filter(available, ("compiled", "dense")):
                items = engine_class(engine).of(X, None, None, 0, team)
                for kind in ("item", "none"):
                    for title, work, _ in works(items, kind):
                        if title.startswith(("hard", "soft")):
                            seconds = median_seconds(work)
                            first = alone.setdefault((title, engine), seconds)
                            table.row(title, engine, threads, seconds * 1e3, first / seconds, seconds / lloyd)


@dataclass(frozen=True)
class Problem:
    """Data to be fitted, and how many items a first fit takes, for what is imported and compiled on first use."""

    title: str
    n_items: int
    k: int
    warm_up: int
    draw: Callable[[int], Any]


PROBLEMS = (
    Problem("64 float32 features", 10_000_000, 20, 200_000, scaling.draw),
    Problem("64 float32 features", 1_000_000, 300, 50_000, lambda n: scaling.draw(n, 300)),
    Problem("50 000 words", 500_000, 50, 10_000, lambda n: documents(n, 50_000, topics=50, length=86, own_words=300)),
)


@dataclass
class Race:
    """Our fits of one kind of data and those of k-means, row by row, until the time is over."""

    problem: Problem
    X: Any
    until: float
    table: Table

    def __post_init__(self) -> None:
        self.took: dict[str, list[float]] = {}

    def run(self) -> None:
        """A fit of ours and one of k-means in any case, the others while there is time."""
        self.ours("none")
        self.theirs(0)
        if self.time_for("none"):
            self.ours("item")
        for seed in range(1, SEEDS):
            if self.time_for("k-means"):
                self.theirs(seed)
        middle = statistics.median(self.took.pop("k-means"))
        for kind, seconds in self.took.items():
            self.table.row(f"ONMF, {kind!r}, × median", None, seconds[0] / middle, *(None,) * 5, "")

    def time_for(self, like: str) -> bool:
        """Whether there is time for another fit like some before."""
        return time.perf_counter() + statistics.median(self.took[like]) < self.until

    def ours(self, kind: str) -> None:
        """One fit of ours, and where its seconds went."""
        limit = SHARE * max(self.until - time.perf_counter(), 1.0)
        with clocks(self.X.shape[0]) as spent:
            model, seconds = timed(lambda: ONMF(self.problem.k, scaling=kind, time_limit=limit).fit(self.X))
        parts = (spent["all"], spent["samples"], spent["certificate"], seconds - sum(spent.values()))
        ended = "" if model.converged_ else "not ended"
        self.table.row(f"ONMF, scaling={kind!r}", seconds, None, *parts, model.certificate_.relative_error, ended)
        self.took[kind] = [seconds]

    def theirs(self, seed: int) -> None:
        """One fit of k-means."""
        model, seconds = timed(lambda: KMeans(self.problem.k, n_init=1, random_state=seed).fit(self.X))
        self.table.row(f"KMeans, n_init=1, seed {seed}", seconds, *(None,) * 5, means_error(self.X, model.labels_, self.problem.k), "")
        self.took.setdefault("k-means", []).append(seconds)


def fits(problem: Problem, n_items: int, until: float, table: Table) -> None:
    """The fits of one kind of data, after a first one of few items."""
    X, seconds = timed(lambda: problem.draw(n_items))
    entries = f", {X.nnz / 1e6:.1f} million entries" if hasattr(X, "nnz") else ""
    print(f"\n{n_items} items of {problem.title}{entries}, {problem.k} components; drawn in {seconds:.0f} s", flush=True)
    table.header()
    for kind in ("none", "item"):
        ONMF(problem.k, scaling=kind, time_limit=WARM_UP).fit(X[: min(problem.warm_up, n_items)])
    Race(problem, X, until, table).run()


def main() -> None:
    """Print the table of passes and those of fits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks cores")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all of it (%(default)s)")
    parser.add_argument("--shrink", type=int, default=1, help="a quick look: this many times fewer items")
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    options = parser.parse_args()
    end = time.perf_counter() + options.seconds
    warnings.simplefilter("ignore")
    compiled = "with" if available("compiled") else "without"
    print(f"{machine()}, {compiled} compiled passes\n", flush=True)
    if "passes" in options.parts:
        X = scaling.draw(1_000_000 // options.shrink)
        ONMF(scaling.COMPONENTS).fit(X[:20_000])
        table = Table(PASSES, options.markdown)
        table.header()
        passes(X, table)
        del X
    if "fits" in options.parts:
        for index, problem in enumerate(PROBLEMS):
            now = time.perf_counter()
            fits(problem, problem.n_items // options.shrink, now + (end - now) / (len(PROBLEMS) - index), Table(FITS, options.markdown))


if __name__ == "__main__":
    main()
