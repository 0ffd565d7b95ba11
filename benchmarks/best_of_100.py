"""One default fit against the best of 100 restarts of ONMF-apx, each followed by alternation to rest.

Run ``python -m benchmarks best_of_100``. A restart is k-means from one seed on the normalised, norm-weighted
items, then best centres and nearest components in turn until nothing changes. Both errors are relative, with
the best centres for the labels. A row is marked ``!`` where ours is above theirs by more than one part in a
million.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from threadpoolctl import threadpool_limits

from orthonmf import ONMF

from ._apx import alternated, apx_labels, error_of
from ._problems import Problem, problems
from ._table import Column, Table
from ._timing import machine, timed

TOLERANCE = 1e-6
COLUMNS = (
    Column("problem", 23),
    Column("n", 5, "d"),
    Column("p", 5, "d"),
    Column("k", 3, "d"),
    Column("best of {restarts}", 11, ".4%"),
    Column("ONMF", 8, ".4%"),
    Column("ratio − 1", 9, "+.1e"),
    Column("s, {restarts}", 7, ".2f"),
    Column("s, ONMF", 7, ".2f"),
    Column("", 1),
)


def best_restart(problem: Problem, restarts: int) -> float:
    """The lowest error of the restarts."""
    X, k = problem.X, problem.n_components
    # One thread: problems of this size gain little from a second, and lose much on a busy machine.
    with threadpool_limits(1):
        starts = (apx_labels(X, k, n_init=1, seed=seed, threads=1) for seed in range(restarts))
        return min(error_of(X, alternated(X, labels, k), k) for labels in starts)


def compare(problem: Problem, restarts: int, table: Table) -> float:
    """Solve a problem in both ways, print its row, and return our error over theirs."""
    best, their_seconds = timed(lambda: best_restart(problem, restarts))
    model, our_seconds = timed(lambda: ONMF(problem.n_components).fit(problem.X))
    ours = error_of(problem.X, model.labels_, model.n_components_)
    ratio = ours / best
    mark = "!" if ratio > 1 + TOLERANCE else ""
    shape = (*problem.X.shape, problem.n_components)
    table.row(problem.name, *shape, best, ours, ratio - 1, their_seconds, our_seconds, mark)
    return ratio


def summary(ratios: np.ndarray, restarts: int) -> str:
    """The comparison in a sentence."""
    better, worse = (ratios < 1 - TOLERANCE).sum(), (ratios > 1 + TOLERANCE).sum()
    equal = len(ratios) - better - worse
    return (
        f"{len(ratios)} problems: one fit is better than the best of {restarts} on {better}, equal on "
        f"{equal}, worse on {worse}; ratio of errors from {ratios.min():.6f} to {ratios.max():.6f}."
    )


def selected(words: list[str], at_most: int | None) -> list[Problem]:
    """Problems whose group or name contains one of the words; all without words."""
    found = [p for p in problems() if not words or any(w in f"{p.group} {p.name}" for w in words)]
    return found[:at_most]


def main() -> None:
    """Print the table and the sentence."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks best_of_100")
    parser.add_argument("words", nargs="*", help="only problems whose group or name contains one of these")
    parser.add_argument("--restarts", type=int, default=100)
    parser.add_argument("--max", type=int, default=None, help="at most so many problems")
    parser.add_argument("--list", action="store_true", help="name the problems and stop")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    chosen = selected(options.words, options.max)
    if options.list or not chosen:
        for group, members in itertools.groupby(chosen or problems(), key=lambda p: p.group):
            print(f"{group}: " + "; ".join(f"{p.name} (k = {p.n_components})" for p in members))
        return
    columns = tuple(Column(c.title.format(restarts=options.restarts), c.width, c.format) for c in COLUMNS)
    table = Table(columns, options.markdown)
    ONMF(2).fit(chosen[0].X[:50])  # what is imported on first use
    print(f"{machine()}\n")
    table.header()
    ratios = np.array([compare(problem, options.restarts, table) for problem in chosen])
    print("\n" + summary(ratios, options.restarts))


if __name__ == "__main__":
    main()
