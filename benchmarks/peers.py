"""Whole fits beside those of other libraries: seconds, errors and memory on dense items and on sparse documents.

Run ``python -m benchmarks peers`` on a quiet machine (ten minutes); ``--n 10000`` is a quick look. Each method runs in its own process,
after a warm-up on few items, once from each of five seeds; ours, which draws nothing that a seed would change for the better, three times.
Errors are relative and those of the best centres for the labels that were found: of lines (a direction for each component and a scale for
each item), and of means. NMF has factors that overlap; its labels are the largest entry of each row of T. Memory is the peak beyond X.
k-means-constrained has its own benchmark, ``capacities``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.decomposition import NMF
from sklearn.preprocessing import normalize

from orthonmf import ONMF
from orthonmf._common.typing import Labels

from . import scaling
from ._memory import peak_bytes
from ._table import Column, Table
from ._timing import machine, timed

SEEDS, REPEATS, WARM_UP, POWER_STEPS = 5, 3, 5000, 30
WORDS, TOPICS, LENGTH, OWN_WORDS = 5000, 20, 60, 100
COLUMNS = (
    Column("method", 22),
    Column("s, median", 9, ".2f"),
    Column("s, longest", 10, ".2f"),
    Column("lines, lowest", 13, ".4%"),
    Column("lines, median", 13, ".4%"),
    Column("means, lowest", 13, ".4%"),
    Column("MiB beyond X", 12, ".0f"),
)


def documents(
    n_items: int, n_words: int = WORDS, topics: int = TOPICS, length: int = LENGTH, own_words: int = OWN_WORDS
) -> sparse.csr_array:
    """Counts of words: half of each document from the words of its topic, half from all, few of which are frequent."""
    rng = np.random.default_rng(0)
    own = np.stack([rng.choice(n_words, own_words, replace=False) for _ in range(topics)])
    rows, topic = np.repeat(np.arange(n_items), length), rng.integers(topics, size=n_items)
    common = (n_words * rng.random(len(rows)) ** 3).astype(int)
    words = np.where(rng.random(len(rows)) < 0.5, own[topic[rows], rng.integers(own_words, size=len(rows))], common)
    X = sparse.csr_array((np.ones(len(rows), np.float32), (rows.astype(np.int32), words.astype(np.int32))), shape=(n_items, n_words))
    X.sum_duplicates()  # indices of 32 bits: KMeans reads no others
    return X


PROBLEMS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "items": ("{n} × 64, float32, dense, 20 components", scaling.draw),
    "documents": ("{n} × 5000, float32, sparse, 20 components", documents),
}


def _nmf(X: Any, k: int, seed: int) -> Labels:
    model = NMF(k, init="nndsvda", random_state=seed)
    return np.asarray(model.fit_transform(X).argmax(axis=1))


def _faiss(X: Any, k: int, seed: int) -> Labels:
    import faiss

    model = faiss.Kmeans(X.shape[1], k, seed=seed, niter=25)
    model.train(X)
    return np.asarray(model.index.search(X, 1)[1][:, 0])


METHODS: dict[str, Callable[[Any, int, int], Labels]] = {
    "ONMF, lines": lambda X, k, seed: ONMF(k).fit(X).labels_,
    "ONMF, means": lambda X, k, seed: ONMF(k, scaling="none").fit(X).labels_,
    "KMeans, n_init=1": lambda X, k, seed: KMeans(k, n_init=1, random_state=seed).fit(X).labels_,
    "KMeans, n_init=10": lambda X, k, seed: KMeans(k, n_init=10, random_state=seed).fit(X).labels_,
    "MiniBatchKMeans": lambda X, k, seed: MiniBatchKMeans(k, n_init=3, random_state=seed).fit(X).labels_,
    "spherical, n_init=10": lambda X, k, seed: KMeans(k, n_init=10, random_state=seed).fit(normalize(X)).labels_,
    "NMF": _nmf,
    "faiss, 25 iterations": _faiss,
}


def applies(method: str, problem: str) -> bool:
    """Whether a method is installed and reads what it is given."""
    return not method.startswith("faiss") or (problem == "items" and find_spec("faiss") is not None)


def lines_error(X: Any, labels: Labels, k: int) -> float:
    """Relative error of a partition with the leading direction of each component, by the power method."""
    energy = kept = 0.0
    for j in range(k):
        items = X[labels == j].astype(float)
        energy += float((items * items).sum())
        direction = np.asarray(items.sum(axis=0)).ravel()
        for _ in range(POWER_STEPS):
            direction = items.T @ (items @ direction)
            direction /= np.linalg.norm(direction) or 1.0
        kept += float(np.square(items @ direction).sum())
    return float(np.sqrt(max(energy - kept, 0.0) / energy))


def means_error(X: Any, labels: Labels, k: int) -> float:
    """Relative error of a partition with the mean of each component."""
    energy = kept = 0.0
    for j in range(k):
        items = X[labels == j].astype(float)
        energy += float((items * items).sum())
        if items.shape[0]:
            kept += items.shape[0] * float(np.square(np.asarray(items.mean(axis=0))).sum())
    return float(np.sqrt(max(energy - kept, 0.0) / energy))


def measure(method: str, problem: str, n_items: int) -> dict[str, Any]:
    """Seconds and errors of every run of a method, and its memory; in this process."""
    warnings.simplefilter("ignore")
    draw, call, k = PROBLEMS[problem][1], METHODS[method], scaling.COMPONENTS
    call(draw(max(WARM_UP, n_items // 4)), k, 0)
    X = draw(n_items)
    before = peak_bytes()
    runs = [timed(lambda seed=seed: call(X, k, seed)) for seed in range(REPEATS if method.startswith("ONMF") else SEEDS)]
    return {
        "beyond": max(peak_bytes() - before, 0) / 2**20,
        "seconds": [seconds for _, seconds in runs],
        "lines": [lines_error(X, labels, k) for labels, _ in runs],
        "means": [means_error(X, labels, k) for labels, _ in runs],
    }


def row(method: str, problem: str, n_items: int) -> tuple[float, ...]:
    """What a process of its own measured."""
    command = [sys.executable, "-m", "benchmarks.peers", "--n", str(n_items), "--one", method, problem]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seconds, lines = found["seconds"], found["lines"]
    return statistics.median(seconds), max(seconds), min(lines), statistics.median(lines), min(found["means"]), found["beyond"]


def main() -> None:
    """Print a table for each kind of data."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers")
    parser.add_argument("--n", type=int, default=100_000, help="items; of documents a fifth (%(default)s)")
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "PROBLEM"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, options.n)))
        return
    print(f"{machine()}\n")
    for problem, (title, _) in PROBLEMS.items():
        n_items = options.n if problem == "items" else options.n // 5
        print(title.format(n=n_items) + "\n")
        table = Table(COLUMNS, options.markdown)
        table.header()
        for method in METHODS:
            if applies(method, problem):
                table.row(method, *row(method, problem, n_items))
        print()


if __name__ == "__main__":
    main()
