"""Many items that hide what weighs: one fit against the best of five k-means runs, on up to a million items.

Run ``python -m benchmarks large`` (an hour), or ``--quick`` for ten problems with 70 000 items. The peer is one
run of scikit-learn's KMeans from each of five seeds for scaling "none", and of ONMF-apx for scaling "item". A
row is marked ``!`` where our squared error is above their lowest by more than one part in a million.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from orthonmf import ONMF
from orthonmf._common.typing import Array

from ._apx import apx_labels, error_of
from ._table import Column, Table
from ._timing import machine

SEEDS, TOLERANCE = 5, 1e-6
SIZES = (70_000, 90_000, 150_000, 250_000, 500_000, 1_000_000)
COLUMNS = (
    Column("problem", 12),
    Column("scaling", 7),
    Column("n", 8, "d"),
    Column("p", 3, "d"),
    Column("k", 3, "d"),
    Column("theirs", 11, ".5g"),
    Column("ONMF", 11, ".5g"),
    Column("ratio − 1", 9, "+.1e"),
    Column("cpu s, 5", 8, ".1f"),
    Column("cpu s", 6, ".1f"),
    Column("", 1),
)

Draw = Callable[[np.random.Generator, int], tuple[Array, int]]


@dataclass(frozen=True)
class Large:
    """A problem that is drawn when it is needed."""

    name: str
    scaling: str
    n_items: int
    seed: int

    def draw(self) -> tuple[Array, int]:
        """Items in rows, and the number of components."""
        return KINDS[self.name](np.random.default_rng(self.seed), self.n_items)


def rare(rng: np.random.Generator, n_items: int) -> tuple[Array, int]:
    """One large group and six of 10 to 200 items, at distances over three decades."""
    sizes = rng.integers(10, 200, size=6)
    steps = np.geomspace(50, 50_000, 6)[:, None] * np.abs(rng.standard_normal((6, 8)))
    centers = np.vstack([np.full(8, 500.0), 500 + steps])
    labels = np.r_[np.zeros(n_items - sizes.sum(), int), np.repeat(np.arange(1, 7), sizes)]
    return np.maximum(centers[labels] + rng.standard_normal((n_items, 8)), 0), 7


def tails(rng: np.random.Generator, n_items: int) -> tuple[Array, int]:
    """Half-Cauchy: a few items weigh as much as all others."""
    return np.abs(rng.standard_cauchy((n_items, 4))), 15


def skewed(rng: np.random.Generator, n_items: int) -> tuple[Array, int]:
    """Lognormal: long tails with second moments."""
    return rng.lognormal(0, 1.5, (n_items, 6)), 12


def clusters(rng: np.random.Generator, n_items: int) -> tuple[Array, int]:
    """Forty clusters of unequal sizes with moderate noise."""
    centers = rng.gamma(5, 1, (40, 16))
    labels = rng.choice(40, n_items, p=rng.dirichlet(np.ones(40)))
    return np.maximum(centers[labels] + rng.standard_normal((n_items, 16)), 0), 40


def noise(rng: np.random.Generator, n_items: int) -> tuple[Array, int]:
    """Gamma noise without any structure."""
    return rng.gamma(1, 1, (n_items, 8)), 20


KINDS: dict[str, Draw] = {each.__name__: each for each in (rare, tails, skewed, clusters, noise)}


def problems(sizes: tuple[int, ...] = SIZES) -> Iterator[Large]:
    """Every kind in both scalings and all sizes."""
    for seed, n_items in enumerate(sizes):
        for name in KINDS:
            for scaling in ("none", "item"):
                yield Large(name, scaling, n_items, seed)


def squared_error(X: Array, labels: Array, k: int, scaling: str) -> float:
    """Of the best centres for the labels."""
    if scaling == "item":
        return error_of(X, labels, k) ** 2
    return sum(float(np.sum((X[labels == j] - X[labels == j].mean(axis=0)) ** 2)) for j in np.unique(labels))


def peer(X: Array, k: int, scaling: str, seed: int) -> Array:
    """Labels of one k-means run."""
    if scaling == "item":
        return apx_labels(X, k, n_init=1, seed=seed, threads=1)
    return np.asarray(KMeans(k, n_init=1, random_state=seed).fit(X).labels_)


def compare(problem: Large, table: Table) -> float:
    """Print the row of a problem and return our squared error over their lowest."""
    X, k = problem.draw()
    began = time.process_time()
    found = [peer(X, k, problem.scaling, seed) for seed in range(SEEDS)]
    theirs_seconds = time.process_time() - began
    best = min(squared_error(X, labels, k, problem.scaling) for labels in found)
    began = time.process_time()
    model = ONMF(k, scaling=problem.scaling, n_jobs=1).fit(X)
    seconds = time.process_time() - began
    ours = squared_error(X, model.labels_, k, problem.scaling)
    ratio = ours / best
    mark = "!" if ratio > 1 + TOLERANCE else ""
    table.row(problem.name, problem.scaling, *X.shape, k, best, ours, ratio - 1, theirs_seconds, seconds, mark)
    return ratio


def main() -> int:
    """Print the table and a sentence; 1 where a fit is beaten."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks large")
    parser.add_argument("--quick", action="store_true", help="only the ten problems of the smallest size")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    table = Table(COLUMNS)
    print(f"{machine()}\n")
    table.header()
    chosen = [p for p in problems(SIZES[:1] if options.quick else SIZES) if p.name in options.kinds]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ratios = np.array([compare(problem, table) for problem in chosen])
    worse = int((ratios > 1 + TOLERANCE).sum())
    print(f"\n{len(ratios)} problems: worse than the best of {SEEDS} on {worse}; ratio of squared errors at most {ratios.max():.6f}.")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
