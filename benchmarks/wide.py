"""Wide data and many components: sparse documents, tf-idf of docstrings, 300 components; seconds and errors beside k-means.

Run ``python -m benchmarks wide [--parts documents docstrings many large]`` on a quiet machine (two minutes; large, ten more, is left out
unless it is asked for). Documents: 30 000 counts of 20 000 words, 1.2 million entries, 50 topics. Docstrings: those of the functions and
classes of five installed packages, 1507 of them, tf-idf of 2065 words, 20 components; as a sparse matrix and as an array. Many: 100 000
items of 64 float32 features in 300 groups. Large: 500 000 counts of 50 000 words, 41 million entries, 50 topics. Ours is the median of
three fits after a first one, k-means that of seeds 0 to 4, on the same form of the items. Errors are relative, of the best centres for
the labels that were found: of means, and of lines. ``--processor`` counts seconds of the processor, which others on the machine disturb
less.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import statistics
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

from orthonmf import ONMF
from orthonmf._common.typing import Labels

from . import scaling
from ._table import Column, Table
from ._timing import machine, processor_timed, timed
from .peers import documents, lines_error, means_error

PACKAGES = ("numpy", "scipy", "sklearn", "pandas", "matplotlib")
LEAST_LETTERS, N_DOCSTRINGS, N_WORDS = 400, 1507, 2065
SEEDS, REPEATS = 5, 3
# What times a call.
Clock = Callable[[Callable[[], Labels]], tuple[Labels, float]]
COLUMNS = (
    Column("method", 24),
    Column("s, median", 9, ".2f"),
    Column("× k-means", 9, ".2f"),
    Column("means, lowest", 13, ".4%"),
    Column("means, highest", 14, ".4%"),
    Column("lines, lowest", 13, ".4%"),
)


def docstrings() -> sparse.csr_array:
    """tf-idf of what installed packages say about their public functions and classes."""
    texts = list(dict.fromkeys(text for package in PACKAGES for text in _said_in(package)))
    chosen = np.unique(np.linspace(0, len(texts) - 1, N_DOCSTRINGS).astype(int))
    words = TfidfVectorizer(token_pattern=r"[a-zA-Z]{3,}", stop_words="english", max_features=N_WORDS, min_df=3)
    return sparse.csr_array(words.fit_transform([texts[i] for i in chosen]))


def _said_in(package: str) -> Iterator[str]:
    root = importlib.import_module(package)
    names = sorted(each.name for each in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda name: None))
    for name in names:
        if any(part.startswith("_") or part in ("tests", "testing", "conftest", "externals") for part in name.split(".")):
            continue
        try:
            module = importlib.import_module(name)
        except Exception:  # a part that needs what is not installed
            continue
        for key, value in sorted(vars(module).items()):
            public = not key.startswith("_") and (inspect.isfunction(value) or inspect.isclass(value))
            text = inspect.getdoc(value) if public and value.__module__.startswith(package) else None
            if text is not None and len(text) > LEAST_LETTERS:
                yield text


def _rows(clock: Clock, k: int, n_init: int, **ways: Any) -> Iterator[tuple[Any, ...]]:
    """Rows of a table: k-means and ours on some forms of the same items."""
    for name, X in ways.items():
        KMeans(k, n_init=1, random_state=0).fit(X)
        runs = [clock(lambda seed=seed, X=X: KMeans(k, n_init=n_init, random_state=seed).fit(X).labels_) for seed in range(SEEDS)]
        theirs = statistics.median(seconds for _, seconds in runs)
        yield _row(f"KMeans, n_init={n_init}, {name}", X, k, runs, theirs)
        for title, how in (("means", "none"), ("lines", "item")):
            ONMF(k, scaling=how).fit(X)
            runs = [clock(lambda X=X, how=how: ONMF(k, scaling=how).fit(X).labels_) for _ in range(REPEATS)]
            yield _row(f"ONMF, {title}, {name}", X, k, runs, theirs)


def _row(method: str, X: Any, k: int, runs: list[tuple[Labels, float]], theirs: float) -> tuple[Any, ...]:
    seconds = statistics.median(seconds for _, seconds in runs)
    means = [means_error(X, labels, k) for labels, _ in runs]
    return method, seconds, seconds / theirs, min(means), max(means), min(lines_error(X, labels, k) for labels, _ in runs)


def _documents(clock: Clock) -> Iterator[tuple[Any, ...]]:
    return _rows(clock, 50, 1, sparse=documents(30_000, 20_000, topics=50, length=40, own_words=150))


def _docstrings(clock: Clock) -> Iterator[tuple[Any, ...]]:
    X = docstrings()
    return _rows(clock, 20, 10, sparse=X, dense=X.toarray())


def _large(clock: Clock) -> Iterator[tuple[Any, ...]]:
    return _rows(clock, 50, 1, sparse=documents(500_000, 50_000, topics=50, length=86, own_words=300))


def _many(clock: Clock) -> Iterator[tuple[Any, ...]]:
    return _rows(clock, 300, 1, dense=scaling.draw(100_000, 300))


PARTS: dict[str, tuple[str, Callable[[Clock], Iterator[tuple[Any, ...]]]]] = {
    "documents": ("30 000 × 20 000, float32, sparse, 50 components", _documents),
    "docstrings": ("1507 × 2065, tf-idf, 20 components", _docstrings),
    "many": ("100 000 × 64, float32, dense, 300 components", _many),
    "large": ("500 000 × 50 000, float32, sparse, 50 components", _large),
}


def main() -> None:
    """Print a table for each kind of data."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks wide")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[part for part in PARTS if part != "large"])
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    parser.add_argument("--processor", action="store_true", help="seconds of the processor, of all threads together")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{machine()}\n")
    with threadpool_limits(1 if options.processor else None):
        for part in options.parts:
            title, rows = PARTS[part]
            print(title + "\n")
            table = Table(COLUMNS, options.markdown)
            table.header()
            for row in rows(processor_timed if options.processor else timed):
                table.row(*row)
            print()


if __name__ == "__main__":
    main()
