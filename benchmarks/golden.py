"""The same bits as another version: labels, components, critical values and certificates on the problems that others are judged by.

Run ``python -m benchmarks golden SRC`` (an hour, nearly all of it the 80 sets of "auto"), where SRC is the folder with
the package of the other version; ``--groups`` names some of the groups, ``--every N`` takes every N-th problem. Where a
fit differs, its row says in what, how many labels changed, and by how much the squared error did.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from scipy import sparse

from orthonmf.datasets import make_onmf, make_paper_synthetic

from ._fits import OURS, Fit, Task, fits_with
from ._problems import microarray, problems

GENE_CAPACITY = 0.4
PAPER_SETS, PAPER_SEEDS = (1, 2, 3, 4), 20

Named = Iterator[tuple[str, Task]]


def restarts() -> Named:
    """The problems of ``best_of_100``."""
    for each in problems():
        yield f"{each.group}: {each.name}", (each.X, {}, {"n_components": each.n_components})


def genes() -> Named:
    """Genes and patients of the paper under a capacity."""
    for name, X, _ in microarray():
        if name.split(" ", 1)[1] != "raw, patients":
            yield name, (np.ascontiguousarray(X), {}, {"n_components": 3, "capacity": GENE_CAPACITY})


def auto() -> Named:
    """The data sets of the paper, whose number of components is asked for."""
    for which in PAPER_SETS:
        for seed in range(PAPER_SEEDS):
            yield f"set {which}, seed {seed}", (make_paper_synthetic(which, seed).X, {}, {})


def others() -> Named:
    """One of each kind of fit that the others leave out."""
    rng = np.random.default_rng(0)
    X = make_onmf(400, 8, 5, noise=1.0, item_scale=10, random_state=0).X
    large = make_onmf(60_000, 20, 6, noise=1.0, item_scale=10, random_state=1).X
    sparse_rows = sparse.csr_array(np.where(rng.random((2000, 60)) < 0.1, rng.gamma(1, 1, (2000, 60)), 0))
    five = {"n_components": 5}
    yield "means", (X, {}, {**five, "scaling": "none"})
    yield "sparse", (sparse_rows, {}, five)
    yield "float32, many blocks", (large.astype(np.float32), {}, {"n_components": 6})
    yield "many items, means", (large, {}, {"n_components": 6, "scaling": "none"})
    yield "weights", (X, {"sample_weight": rng.gamma(1, 1, 400)}, five)
    yield "item sizes", (X, {"item_size": rng.gamma(4, 1, 400)}, {**five, "capacity": 0.25, "capacity_penalty": 0.1})
    yield "soft bounds", (X, {}, {**five, "capacity": 60, "capacity_penalty": 0.1})
    yield "both bounds", (X, {}, {**five, "capacity": 100, "min_size": 40})
    yield "barrier flow", (X[:150], {}, {"n_components": 4, "capacity": 45, "solver": "cbf"})
    yield "features", (X, {}, {"n_components": 3, "orthogonal": "features"})
    yield "annealed only", (X, {}, {**five, "refine": False})
    yield "fixed schedule", (X, {}, {**five, "schedule": 1.2})
    yield "persistence", (X, {}, {"n_components": "persistence"})
    yield "more dimensions than items", (rng.gamma(1, 1, (40, 300)), {}, {"n_components": 4})


GROUPS: dict[str, Callable[[], Named]] = {"restarts": restarts, "genes": genes, "others": others, "auto": auto}


def difference(ours: Fit, theirs: Fit) -> str:
    """In words, in what two fits differ; empty where they have the same bits."""
    names = [name for name, array in ours.arrays.items() if not _same(array, theirs.arrays[name])]
    if not names:
        return ""
    words = ", ".join(names)
    if ours.arrays["components_"].shape == theirs.arrays["components_"].shape:
        words += f"; {np.count_nonzero(ours.labels != theirs.labels)} labels"
    old, new = (float(fit.arrays["reconstruction_err_"]) ** 2 for fit in (theirs, ours))
    return f"{words}; squared error {(new - old) / old if old > 0 else new - old:+.1e}"


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def main() -> int:
    """Fit every problem with both versions and say where they differ."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sources", nargs="?", metavar="SRC", help="the folder with the package of the other version")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every N-th problem")
    arguments = parser.parse_args()
    if arguments.sources is None:
        print("Nothing to compare with: name the folder with the package of another version.")
        return 0
    different = 0
    for group in arguments.groups:
        names, tasks = zip(*islice(GROUPS[group](), 0, None, arguments.every), strict=True)
        ours, theirs = (fits_with(sources, list(tasks)) for sources in (OURS, arguments.sources))
        rows = [(name, difference(*pair)) for name, *pair in zip(names, ours, theirs, strict=True)]
        for name, words in rows:
            if words:
                print(f"  {group}: {name}: {words}")
        changed = sum(bool(words) for _, words in rows)
        different += changed
        seconds = [sum(fit.seconds for fit in fits) for fits in (ours, theirs)]
        print(f"{group}: {len(rows)} problems, {changed} differ; {seconds[0]:.1f} s of CPU time, theirs {seconds[1]:.1f} s", flush=True)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
