"""Problems with a known number of components, family by family."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer

from orthonmf._common.typing import Array, Labels
from orthonmf.datasets import fetch_microarray
from orthonmf.exceptions import DataUnavailableError, MissingExtraError

# The largest number asked about: of made problems, of those with 16 components, and of real data.
MOST, MOST_OF_MANY, MOST_REAL = 16, 20, 32
# Items of a mixture, and of its smallest component.
N_ITEMS, LEAST_ITEMS = 400, 15
# The first of the fresh seeds.
FRESH = 100
CELLS = "datasets/10x_pbmc68k_reduced.h5ad"
PACKAGES, DOCUMENT_LINES = ("asyncio", "email", "multiprocessing", "unittest", "xml"), 60


@dataclass(frozen=True)
class Problem:
    """Items in rows.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n_items, n_dims)
    right : range
        Numbers that are right; empty where nobody knows.
    scaling : str
        Of the estimator: "item" or "none".
    most : int
        The largest number asked about.
    labels : ndarray of shape (n_items,) or None
        The component that each item was drawn from.
    """

    name: str
    X: Array
    right: range
    scaling: str = "item"
    most: int = MOST
    labels: Labels | None = None


def exactly(number: int) -> range:
    """One right number."""
    return range(number, number + 1)


# -- mixtures ------------------------------------------------------------------------------------------------


def mixture(k: int, p: int, sd: int, seed: int, *, unequal: bool = False, shares: tuple[int, ...] = ()) -> Problem:
    """Centres Gamma(10, 1), normal noise, clipped at 0, times scales Gamma(10, 0.1).

    Parameters
    ----------
    unequal : bool
        Whether the noise of each component is multiplied by a number between 0.5 and 2.
    shares : tuple of int
        Sizes of the components in turn, as ratios; drawn with equal chances without.
    """
    rng = np.random.default_rng([seed, k, p, 10 * sd])
    centers = rng.gamma(10.0, 1.0, (k, p))
    if shares:
        share = np.resize(np.array(shares, dtype=float), k)
        labels = np.repeat(np.arange(k), np.maximum(np.round(share / share.sum() * N_ITEMS).astype(int), LEAST_ITEMS))
    else:
        labels = rng.integers(0, k, N_ITEMS)
    spread = sd * (2.0 ** rng.uniform(-1, 1, k) if unequal else np.ones(k))
    X = np.maximum(centers[labels] + spread[labels][:, None] * rng.standard_normal((len(labels), p)), 0)
    return Problem(f"k={k} p={p} sd={sd} seed={seed}", X * rng.gamma(10.0, 0.1, (len(labels), 1)), exactly(k), labels=labels)


def mixtures(seeds: int) -> Iterator[Problem]:
    """48 problems for each seed."""
    for k, p, sd, seed in product((3, 5, 8, 12), (10, 50, 200), (1, 2, 3, 4), range(seeds)):
        yield mixture(k, p, sd, seed)


def fresh(seeds: int) -> Iterator[Problem]:
    """The same with seeds on which nothing was chosen."""
    for k, p, sd, seed in product((3, 5, 8, 12), (10, 50, 200), (1, 2, 3, 4), range(FRESH, FRESH + seeds)):
        yield mixture(k, p, sd, seed)


def sizes(seeds: int) -> Iterator[Problem]:
    """Components of sizes 20 : 5 : 1, none below 15 items."""
    for k, p, sd, seed in product((3, 5, 8, 12), (10, 50, 200), (1, 2, 3, 4), range(seeds)):
        yield mixture(k, p, sd, seed, shares=(20, 5, 1))


def unequal(seeds: int) -> Iterator[Problem]:
    """Noise that differs by component."""
    for k, p, sd, seed in product((3, 5, 8, 12), (10, 50, 200), (1, 2, 3, 4), range(seeds)):
        yield mixture(k, p, sd, seed, unequal=True)


# -- other made data -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """Values in steps: what centres are drawn from, how far apart two of them are on average over the features, and an item of one."""

    values: Array
    apart: float
    item: Callable[[Array, np.random.Generator], Array]


KINDS = {
    "binary": _Kind(np.arange(2.0), 0.5, lambda center, rng: np.abs(center - (rng.random(center.shape) < 0.05))),
    "ratings": _Kind(np.array([1.0, 5.0]), 2.0, lambda center, rng: np.clip(np.round(rng.normal(center, 0.6)), 1, 5)),
    "integers": _Kind(np.arange(20.0), 5.0, lambda center, rng: np.maximum(np.round(rng.normal(center, 0.7)), 0)),
}


def discrete(seeds: int) -> Iterator[Problem]:
    """Binary rows, ratings from 1 to 5 and integers in two to four clear groups."""
    for (number, kind), k, dims, scaling, seed in product(enumerate(KINDS), (2, 3, 4), range(3), ("item", "none"), range(seeds)):
        p = ((6, 8, 12) if kind == "binary" else (4, 6, 8))[dims]
        rng = np.random.default_rng([seed, k, p, number])
        labels = rng.integers(0, k, 200)
        X = KINDS[kind].item(_centers(KINDS[kind], k, p, rng)[labels], rng)
        yield Problem(f"{kind} k={k} p={p} {scaling} seed={seed}", X, exactly(k), scaling, labels=labels)


def _centers(kind: _Kind, k: int, p: int, rng: np.random.Generator) -> Array:
    """Centres that are far apart, and not multiples of each other."""
    while True:
        centers = rng.choice(kind.values, (k, p))
        far = min(np.abs(one - other).mean() for i, one in enumerate(centers) for other in centers[:i])
        lengths = np.linalg.norm(centers, axis=1)
        if far >= kind.apart and lengths.min() > 0 and _largest_cosine(centers / lengths[:, None]) < 0.85:
            return centers


def _largest_cosine(unit: Array) -> float:
    return float((unit @ unit.T - 2 * np.eye(len(unit))).max())


def blocks(seeds: int) -> Iterator[Problem]:
    """Disjoint blocks of words, of which every item has some."""
    for k, density, seed in product((4, 8, 16), (0.2, 0.33, 0.5, 1.0), range(seeds)):
        n, width = max(200, 25 * k), (12, 30)[seed % 2]
        rng = np.random.default_rng([seed, k, int(100 * density)])
        labels = np.arange(n) % k
        X = np.repeat(np.eye(k), width, axis=1)[labels] * (rng.random((n, k * width)) < density)
        X *= rng.uniform(0.5, 1.5, X.shape)
        for i in np.flatnonzero(~X.any(axis=1)):
            X[i, labels[i] * width + rng.integers(width)] = 1.0
        yield Problem(f"k={k} density={density} width={width} seed={seed}", X, exactly(k), "item", MOST_OF_MANY, labels)


def background(seeds: int) -> Iterator[Problem]:
    """Five groups of items with scales of their own over a background, which bends every group and turns the short items farther."""
    for n, p, level, seed in product((60, 200), (20, 100, 400), (0.2, 1.0), range(seeds)):
        rng = np.random.default_rng([seed, n, p])
        centers, labels = rng.gamma(1.0, 1.0, (5, p)), rng.integers(5, size=n)
        X = centers[labels] * rng.gamma(9.0, 0.1, (n, 1)) + level * rng.random((n, p))
        yield Problem(f"n={n} p={p} level={level} seed={seed}", X, exactly(5), labels=labels)


def noise(seeds: int) -> Iterator[Problem]:
    """One component."""
    shapes = {"gamma": ((5, 300), (50, 300), (500, 200)), "normal": ((5, 400), (20, 300), (200, 300), (100, 1000))}
    shapes["uniform"] = ((5, 400), (30, 300), (500, 200))
    for kind, scaling, seed in product(shapes, ("item", "none"), range(seeds)):
        for p, n in shapes[kind]:
            rng = np.random.default_rng([seed, p, n])
            X = {"gamma": rng.gamma(2.0, size=(n, p)), "normal": 20 + rng.standard_normal((n, p)), "uniform": rng.random((n, p))}[kind]
            yield Problem(f"{kind} p={p} n={n} {scaling} seed={seed}", X, exactly(1), scaling)


# -- real data -----------------------------------------------------------------------------------------------


def real(cells: Path | None = None) -> Iterator[Problem]:
    """Labelled data as they come; features divided by their maximum where their units differ."""
    wine, cancer, iris = load_wine().data, load_breast_cancer().data, load_iris().data
    yield _real("wine, max-scaled", wine / wine.max(axis=0), exactly(3))
    yield _real("iris", iris, range(2, 4))
    yield _real("iris, positions", iris, range(2, 4), "none")
    yield _real("breast cancer, max-scaled", cancer / cancer.max(axis=0), exactly(2))
    yield _real("digits", load_digits().data, range(9, 15))
    yield _real("documents", documents(), exactly(len(PACKAGES)))
    yield from _blood(cells)
    try:
        yield _real("microarray, genes at the first time", fetch_microarray()[:, :, 0], range(0))
    except (DataUnavailableError, MissingExtraError) as error:
        print(f"microarray left out: {error}", file=sys.stderr)


def _real(name: str, X: Array, right: range, scaling: str = "item") -> Problem:
    return Problem(name, np.ascontiguousarray(X, dtype=float), right, scaling, MOST_REAL)


def pieces() -> tuple[list[str], list[str]]:
    """Pieces of the source of some packages of Python's library, and the package of each."""
    library = Path(sysconfig.get_paths()["stdlib"])
    found, packages = [], []
    for path in sorted(path for name in PACKAGES for path in (library / name).glob("*.py")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        found += ["\n".join(lines[start : start + DOCUMENT_LINES]) for start in range(0, len(lines), DOCUMENT_LINES)]
        packages += [path.parent.name] * (len(found) - len(packages))
    return found, packages


# Words of three letters or more, in five pieces at least and half of them at most.
WORDS: dict[str, Any] = {"token_pattern": r"[a-z]{3,}", "min_df": 5, "max_df": 0.5, "max_features": 1000}


def documents() -> Array:
    """Pieces of the source of some packages of Python's library, as weighted words."""
    X = TfidfVectorizer(**WORDS, sublinear_tf=True).fit_transform(pieces()[0])
    return X[np.asarray(X.sum(axis=1))[:, 0] > 0].toarray()


def _blood(path: Path | None) -> Iterator[Problem]:
    """Expression of 700 blood cells, from a file that the package scanpy ships."""
    scanpy = find_spec("scanpy")
    if path is None and scanpy is not None and scanpy.origin is not None:
        path = Path(scanpy.origin).parent / CELLS
    if path is None:
        print("blood cells left out: give the path of scanpy's 10x_pbmc68k_reduced.h5ad with --cells, or install scanpy", file=sys.stderr)
        return
    import anndata

    X = anndata.read_h5ad(path).raw.X.toarray().astype(float)
    yield _real("blood cells", X, range(6, 13))
    yield _real("blood cells, genes over their sd", X / np.maximum(X.std(axis=0), np.finfo(np.float32).eps), range(6, 13))


FAMILIES: dict[str, Callable[[int], Iterator[Problem]]] = {
    "mixtures": mixtures,
    "fresh": fresh,
    "sizes": sizes,
    "unequal": unequal,
    "discrete": discrete,
    "blocks": blocks,
    "background": background,
    "noise": noise,
}
