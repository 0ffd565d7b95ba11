"""The problems of ``best_of_100``: small enough for a hundred restarts, from several fields."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_sample_image,
    load_wine,
)
from sklearn.feature_extraction.text import TfidfTransformer

from orthonmf._common.typing import Array
from orthonmf.datasets import fetch_microarray
from orthonmf.exceptions import DataUnavailableError, MissingExtraError


@dataclass(frozen=True)
class Problem:
    """Items in rows and the number of components asked for."""

    group: str
    name: str
    X: Array
    n_components: int


def problems() -> Iterator[Problem]:
    """All problems, group by group."""
    for group in (digits, microarray, images, tables, synthetic):
        for name, X, n_components in group():
            yield Problem(group.__name__, name, np.ascontiguousarray(X, dtype=float), n_components)


Named = Iterator[tuple[str, Array, int]]


def digits() -> Named:
    """Handwritten digits, images or pixels as items."""
    X = load_digits().data
    for k in (10, 20, 50):
        yield "digits", X, k
    yield "digits, pixels", X.T, 12


def microarray() -> Named:
    """Expression of 53 genes in 27 patients at 7 times, raw and z-scored, genes or patients as items."""
    try:
        data = fetch_microarray()
    except (DataUnavailableError, MissingExtraError) as error:
        print(f"microarray problems left out: {error}", file=sys.stderr)
        return
    for t in range(data.shape[2]):
        raw = data[:, :, t]
        scored = (raw - raw.mean(axis=1, keepdims=True)) / raw.std(axis=1, keepdims=True)
        for name, X in (("raw", raw), ("z", scored - scored.min())):
            yield f"T{t + 1} {name}, genes", X, 3
            yield f"T{t + 1} {name}, patients", X.T, 3


def images() -> Named:
    """The pixels (red, green, blue) of every sixth row and column of two photographs."""
    for name in ("china", "flower"):
        yield name, load_sample_image(f"{name}.jpg")[::6, ::6].reshape(-1, 3), 16


def tables() -> Named:
    """Tables of measurements that come with scikit-learn."""
    cancer, iris = load_breast_cancer().data, load_iris().data
    yield "breast cancer", cancer, 8
    yield "breast cancer", cancer, 20
    yield "breast cancer, features", cancer.T, 5
    yield "wine", load_wine().data, 6
    yield "iris", iris, 5
    yield "iris", iris, 12
    yield "diabetes", load_diabetes(scaled=False).data, 6
    yield "exercise", load_linnerud().data, 4


def synthetic() -> Named:
    """Noise, counts, text, spectra: with and without structure."""
    rng = np.random.default_rng(5)
    yield "gamma noise", rng.gamma(1, 1, (600, 12)), 25
    yield "uniform noise", rng.uniform(size=(300, 5)), 30
    yield "lognormal noise", rng.lognormal(0, 1.5, (500, 20)), 10
    rates = rng.gamma(1, 1, (10, 40))
    yield "Poisson counts", rng.poisson(rates[rng.integers(10, size=500)] * rng.gamma(2, 1, (500, 1))), 10
    centers = rng.gamma(10, 1, (15, 30))
    noisy = centers[rng.integers(15, size=1500)] + rng.normal(0, 4, (1500, 30))
    yield "overlapping clusters", np.maximum(noisy, 0), 15
    topics = rng.dirichlet(np.full(300, 0.05), 8)
    mixtures = rng.dirichlet(np.full(8, 0.1), 400) @ topics
    words = np.array([rng.multinomial(rng.integers(20, 120), row / row.sum()) for row in mixtures])
    yield "tf-idf", TfidfTransformer().fit_transform(words).toarray(), 8
    grid, at, width = np.arange(200), rng.uniform(0, 200, (7, 4)), rng.uniform(3, 15, (7, 4))
    peaks = np.exp(-(((grid - at[..., None]) / width[..., None]) ** 2) / 2).sum(axis=1)
    spectra = rng.dirichlet(np.full(7, 0.3), 300) @ peaks
    yield "spectra", spectra + rng.uniform(0, 0.05, spectra.shape), 7
    yield "binary", rng.random((400, 40)) < rng.beta(0.5, 0.5, (8, 40))[rng.integers(8, size=400)], 8
