"""Counts by the Kullback–Leibler loss: how many components, the best of 100 restarts, documents and cells, and what a pass takes.

Run ``python -m benchmarks counts [auto] [single] [restarts] [labels] [pass]``; without a word, all of them.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import rel_entr
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam, engine_class
from orthonmf.passes.hard import Nearest
from orthonmf.search.number import number_of_components
from orthonmf.search.partition import item_places

from ._number import WORDS, Array, pieces
from ._table import Column, Table
from ._timing import alternating_seconds, machine

LOSSES = ("frobenius", "kullback-leibler")
TOLERANCE = 1e-6
# Where the search for the number stops, as by default.
MOST = 32


def mixture(n: int, p: int, k: int, level: float, seed: int) -> tuple[Array, Array]:
    """Poisson counts of k profiles that are Gamma(2, 1), normalised, with a mean sum of level · p / 10; and which profile each has."""
    rng = np.random.default_rng([k, p, int(10 * level), seed])
    profile = rng.gamma(2.0, 1.0, (k, p))
    profile /= profile.sum(axis=1, keepdims=True)
    labels = np.arange(n) % k
    return rng.poisson(level * p / 10 * profile[labels]).astype(float), labels


# -- how many -----------------------------------------------------------------------------------------------------------------------


def auto(seeds: list[int]) -> None:
    """How often ``n_components="auto"`` is right on Poisson mixtures of 600 items, by loss, scaling and mean sum of an item."""
    table = Table((Column("mean sum", 9), Column("scaling", 7), *(Column(loss, 16, "d") for loss in LOSSES), Column("of", 3, "d")))
    table.header()
    cases = list(itertools.product((50, 200, 1000), (3, 5, 8, 12), seeds))
    for level, scaling in itertools.product((0.5, 2.0, 20.0), ("item", "none")):
        right = [sum(_found(mixture(600, p, k, level, seed)[0], loss, scaling) == k for p, k, seed in cases) for loss in LOSSES]
        table.row(f"{level / 10:g} p", scaling, *right, len(cases))


def single() -> None:
    """How many components 600 items of one profile are found to have, by their size and the mean sum of an item; eight draws of each."""
    table = Table(
        (
            Column("sizes", 8),
            Column("scaling", 7),
            Column("mean sum", 8, "g"),
            Column("one", 3, "d"),
            Column("of", 2, "d"),
            Column("most", 4, "d"),
        )
    )
    table.header()
    for sizes, scaling, p in itertools.product(("equal", "Gamma(5)"), ("item", "none"), (50, 200, 1000)):
        if sizes == "equal" or scaling == "item":  # without scales, size is a difference
            found = [_found(_of_one_profile(p, sizes, seed), LOSSES[1], scaling) for seed in range(8)]
            table.row(sizes, scaling, p / 20, found.count(1), len(found), max(found))


def _of_one_profile(p: int, sizes: str, seed: int) -> Array:
    """Poisson counts of a mean sum of p / 20, of items of one size or of sizes that differ."""
    X = mixture(600, p, 1, 0.5, seed)[0]
    if sizes == "equal":
        return X
    rng = np.random.default_rng([p, seed, 1])
    profile = rng.gamma(2.0, 1.0, p)
    return rng.poisson(rng.gamma(5.0, 0.2, (600, 1)) * p / 20 * profile / profile.sum()).astype(float)


def _found(X: Array, loss: str, scaling: str) -> int:
    # What a fit asks first: the annealing that follows does not change it.
    with ThreadTeam(1) as team:
        engine = engine_class("dense")(X, None, team=team)
        return number_of_components(engine, REGISTRY[loss, scaling].of(engine), MOST, float(len(X))).answer


# -- restarts -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """Items as a loss sees them: what is parted, and its weights."""

    items: Array
    weight: Array
    entropy: float

    @classmethod
    def of(cls, X: Array, scaling: str) -> Seen:
        """Of counts without items that are zero."""
        size = X.sum(axis=1)
        items, weight = (X / size[:, None], size) if scaling == "item" else (X, np.ones(len(X)))
        return cls(items, weight, float(weight @ (rel_entr(items, 1.0) - items).sum(axis=1)))

    def centers(self, labels: Array, k: int) -> Array:
        """The mean of each component."""
        member = np.eye(k)[labels] * self.weight[:, None]
        return (member.T @ self.items) / np.maximum(member.sum(axis=0), 1e-300)[:, None]

    def distances(self, centers: Array) -> Array:
        """What depends on the centre: −x·log c + |c|, with next to nothing for zeros."""
        return centers.sum(axis=1) - self.items @ np.log(np.maximum(centers, 1e-12)).T

    def cost(self, labels: Array, k: int) -> float:
        """Of the best centres for labels."""
        away = self.distances(self.centers(labels, k))[np.arange(len(labels)), labels]
        return self.entropy + float(self.weight @ away)


def restarted(seen: Seen, k: int, seed: int) -> float:
    """k-means with this divergence: starts drawn in proportion to what items cost (k-means++), then Lloyd's steps to rest.

    A start is half an item and half the mean of all, without which all others would be infinitely far.
    """
    rng, mean = np.random.default_rng(seed), seen.weight @ seen.items / seen.weight.sum()
    own = (rel_entr(seen.items, 1.0) - seen.items).sum(axis=1)
    nearest, centers = np.ones(len(seen.items)), np.zeros((0, len(mean)))
    for _ in range(k):
        chance = seen.weight * np.maximum(nearest, 0)
        chosen = rng.choice(len(chance), p=chance / chance.sum())
        centers = np.vstack([centers, (seen.items[chosen] + mean) / 2])
        nearest = own + seen.distances(centers).min(axis=1)
    labels = seen.distances(centers).argmin(axis=1)
    for _ in range(300):
        new = seen.distances(seen.centers(labels, k)).argmin(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
    return seen.cost(labels, k)


def restart_problems() -> Iterator[tuple[str, Array, int]]:
    """Mixtures with few and many counts, clear and not, fewer and more components than there are, and documents."""
    for (p, k, level), asked in itertools.product(((30, 4, 5.0), (30, 8, 20.0), (100, 5, 2.0), (100, 10, 5.0), (300, 8, 1.0)), (0, 3)):
        yield f"mixture p={p} k={k} level={level:g}", mixture(240, p, k, level, 3)[0], k + asked
    words = CountVectorizer(**WORDS).fit_transform(pieces()[0]).toarray().astype(float)
    words = words[::2][words[::2].sum(axis=1) > 0]
    yield from (("documents", words, k) for k in (4, 8))


def restarts() -> None:
    """One fit against the best of 100 restarts."""
    columns = (
        Column("problem", 28),
        Column("scaling", 7),
        Column("k", 3, "d"),
        Column("best of 100", 12, ".3f"),
        Column("ONMF", 12, ".3f"),
    )
    table = Table((*columns, Column("ratio − 1", 9, "+.1e"), Column("", 1)))
    table.header()
    ratios = []
    for (name, X, k), scaling in itertools.product(restart_problems(), ("item", "none")):
        X = X[X.sum(axis=1) > 0]
        seen = Seen.of(X, scaling)
        best = min(restarted(seen, k, seed) for seed in range(100))
        ours = seen.cost(ONMF(k, scaling=scaling, loss=LOSSES[1]).fit(X).labels_, k)
        ratios.append(ours / best)
        table.row(name, scaling, k, best, ours, ours / best - 1, "!" if ours > best * (1 + TOLERANCE) else "")
    found = np.array(ratios)
    worse, better = np.count_nonzero(found > 1 + TOLERANCE), np.count_nonzero(found < 1 - TOLERANCE)
    print(f"\n{len(found)} problems: better on {better}, equal on {len(found) - worse - better}, worse on {worse}.")


# -- known labels -------------------------------------------------------------------------------------------------------------------


def labels(cells: Path | None) -> None:
    """Agreement with known labels (adjusted Rand index), three numbers of components each."""
    table = Table((Column("data", 10), Column("k", 3, "d"), *(Column(name, 18, ".3f") for name in _methods(2))))
    table.header()
    for name, X, truth, numbers in _labelled(cells):
        for k in numbers:
            found = [adjusted_rand_score(truth, method(X)) for method in _methods(k).values()]
            table.row(name, k, *found)


def _methods(k: int) -> dict[str, Callable[[Any], Array]]:
    """Labels by each method; of what is soft, the largest share."""
    divergence = {"beta_loss": "kullback-leibler", "solver": "mu"}
    return {
        "ONMF frobenius": lambda X: ONMF(k).fit_predict(X),
        "ONMF kullback-l.": lambda X: ONMF(k, loss=LOSSES[1]).fit_predict(X),
        "NMF frobenius": lambda X: _largest(NMF(k, init="nndsvda", max_iter=500, random_state=0), X),
        "NMF kullback-l.": lambda X: _largest(NMF(k, init="nndsvda", max_iter=500, random_state=0, **divergence), X),
        "KMeans": lambda X: KMeans(k, n_init=10, random_state=0).fit_predict(X),
        "LDA": lambda X: LatentDirichletAllocation(k, random_state=0, max_iter=30).fit_transform(X).argmax(axis=1),
    }


def _largest(model: NMF, X: Any) -> Array:
    """The component that makes up most of each row."""
    return (model.fit_transform(X) * model.components_.sum(axis=1)).argmax(axis=1)


def _labelled(cells: Path | None) -> Iterator[tuple[str, Any, list[str], tuple[int, ...]]]:
    texts, packages = pieces()
    X = sp.csr_array(CountVectorizer(**WORDS).fit_transform(texts), dtype=float)
    used = np.flatnonzero(X.sum(axis=1) > 0)
    yield "documents", X[used], [packages[i] for i in used], (5, 8, 12)
    if cells is None:
        print("cells left out: give the path of scanpy's 10x_pbmc68k_reduced.h5ad with --cells", file=sys.stderr)
        return
    import anndata

    found = anndata.read_h5ad(cells)
    # The file holds log(1 + counts per 10 000): taken back, they are counts up to the size of a cell.
    yield "cells", sp.csr_array(np.expm1(found.raw.X.toarray().astype(float))), list(found.obs["bulk_labels"]), (5, 8, 10)


# -- time ---------------------------------------------------------------------------------------------------------------------------


def one_pass() -> None:
    """A pass of nearest components and new centres over sparse counts against that of squared distances, by both sparse engines."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(
        sp.random_array((40_000, 2000), density=0.02, rng=rng, data_sampler=lambda size: rng.integers(1, 9, size).astype(float))
    )
    columns = (Column("engine", 15), Column("scaling", 7), Column("k", 3, "d"), *(Column(f"{loss}, ms", 20, ".1f") for loss in LOSSES))
    table = Table((*columns, Column("ratio", 6, ".2f")))
    print(f"{machine()}; 40 000 × 2000, 2 % stored")
    table.header()
    with ThreadTeam(1) as team:
        for name, scaling, k in itertools.product(("sparse", "compiled-sparse"), ("item", "none"), (5, 20)):
            engine = engine_class(name)(X, None, team=team)
            calls = [_pass(engine, REGISTRY[loss, scaling].of(engine), k) for loss in LOSSES]
            squares, divergences = alternating_seconds(*calls)
            table.row(name, scaling, k, squares * 1e3, divergences * 1e3, divergences / squares)


def _pass(engine: Any, distortion: Any, k: int) -> Callable[[], object]:
    centers = item_places(engine, distortion, np.arange(0, engine.n_items, engine.n_items // k)[:k])
    return lambda: engine.run(distortion, Nearest(centers, labelled=False))


def main() -> None:
    """Print the tables that are asked for."""
    tables = ("auto", "single", "restarts", "labels", "pass")
    parser = argparse.ArgumentParser(prog="python -m benchmarks counts", description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", choices=[*tables, []], help="which tables")
    parser.add_argument("--cells", type=Path, default=None, help="scanpy's 10x_pbmc68k_reduced.h5ad")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1], help="of the mixtures of auto (0 1)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = {
        "auto": lambda: auto(options.seeds),
        "single": single,
        "restarts": restarts,
        "labels": lambda: labels(options.cells),
        "pass": one_pass,
    }
    for word in options.words or tables:
        print(f"-- {word}", flush=True)
        runs[word]()


if __name__ == "__main__":
    main()
