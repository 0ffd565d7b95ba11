"""Digits: what orthogonality costs against scikit-learn's NMF, and what a scale per item gains over KMeans.

Run ``python -m benchmarks against_sklearn``. Error, orthogonality and sparsity of T are those of
`orthonmf.metrics`; *images* are the fewest and the most that one component has, where each image has one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from orthonmf import ONMF
from orthonmf._common.typing import Array
from orthonmf.metrics import orthogonality, reconstruction_error, sparsity

from ._table import Column, Table
from ._timing import machine, timed

Factors = tuple[Array, Array]
COLUMNS = (
    Column("method", 34),
    Column("k", 3, "d"),
    Column("error", 7, ".2%"),
    Column("orthogonality", 13, ".1%"),
    Column("sparsity", 8, ".1%"),
    Column("images", 7),
    Column("s", 6, ".2f"),
)


def onmf(X: Array, k: int, **options: object) -> Factors:
    model = ONMF(k, **options)
    return model.fit_transform(X), model.components_


def nmf(X: Array, k: int) -> Factors:
    model = NMF(k, init="nndsvda", max_iter=2000, random_state=0)
    return model.fit_transform(X), model.components_


def kmeans(X: Array, k: int) -> Factors:
    model = KMeans(k, n_init=10, random_state=0).fit(X)
    return np.eye(k)[model.labels_], model.cluster_centers_


def methods(n_items: int, k: int) -> Iterator[tuple[str, Callable[[Array, int], Factors]]]:
    """Each method by its name."""
    capacity = -(-n_items // k)
    yield "scikit-learn NMF", nmf
    yield "scikit-learn KMeans, n_init=10", kmeans
    yield 'ONMF, scaling="none"', partial(onmf, scaling="none")
    yield "ONMF", onmf
    yield f"ONMF, capacity={capacity}", partial(onmf, capacity=capacity)


def images(T: Array) -> str | None:
    """The fewest and the most images of a component; None where an image has several components."""
    member = T > 0
    counts = member.sum(axis=0)
    return f"{counts.min()}–{counts.max()}" if member.sum(axis=1).max() == 1 else None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks against_sklearn")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    parser.add_argument("--k", type=int, nargs="+", default=[10, 20])
    options = parser.parse_args()
    X = load_digits().data
    table = Table(COLUMNS, options.markdown)
    onmf(X[:100], 2), nmf(X[:100], 2), kmeans(X[:100], 2)  # what is imported on first use
    print(f"{machine()}\n")
    table.header()
    for k in options.k:
        for name, method in methods(len(X), k):
            (T, C), seconds = timed(lambda method=method, k=k: method(X, k))
            error = reconstruction_error(X, T, C)
            table.row(name, k, error, orthogonality(T), sparsity(T), images(T), seconds)


if __name__ == "__main__":
    main()
