"""What other packages make of the same data: kinds of blood cells by scanpy, cNMF, nimfa, k-means-constrained and ONMF.

Run ``python -m benchmarks others`` in the environment of ``make recipes``, after ``pip install cnmf nimfa k-means-constrained igraph
leidenalg`` there; a package that is missing is left out. The data are the 700 cells of scanpy's ``pbmc68k_reduced``, numbers before
scaling (``adata.raw``), which scanpy ships. Agreement is the adjusted Rand index with the kinds of cells that the data name
(``bulk_labels``), which no method sees. Every method gets k = 8 but Leiden, which has a resolution instead; methods with a seed run with
five, and the median is shown with the range.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF
from sklearn.metrics import adjusted_rand_score

from orthonmf import ONMF
from orthonmf._common.typing import Array

from ._table import Column, Table
from ._timing import machine

K, SEEDS = 8, range(5)
COLUMNS = (Column("method", 34), Column("agreement", 9, ".2f"), Column("range", 13), Column("seconds", 7, ".1f"))


def leiden(cells: Any, X: Array, seed: int) -> Array:
    """scanpy's usual way: principal components, neighbours, Leiden."""
    import scanpy as sc

    copy = sc.AnnData(X, obs=cells.obs)
    sc.pp.pca(copy, random_state=seed)
    sc.pp.neighbors(copy, random_state=seed)
    sc.tl.leiden(copy, random_state=seed, flavor="igraph", n_iterations=2)
    return copy.obs["leiden"].to_numpy()


def nimfa_labels(cells: Any, X: Array, seed: int) -> Array:
    """The largest entry of each row of W."""
    import nimfa

    np.random.seed(seed)  # noqa: NPY002 - nimfa draws from the global state
    fit = nimfa.Nmf(X, rank=K, max_iter=200)()
    return np.asarray(fit.basis()).argmax(axis=1)


def cnmf_labels(cells: Any, X: Array, seed: int) -> Array:
    """Usages of the consensus of 20 runs, the largest of each cell."""
    from tempfile import TemporaryDirectory

    import pandas as pd
    from cnmf import cNMF

    with TemporaryDirectory() as folder:
        frame = pd.DataFrame(np.expm1(X), index=cells.obs_names, columns=cells.raw.var_names)
        frame.to_csv(f"{folder}/counts.txt", sep="\t")
        run = cNMF(output_dir=folder, name="cells")
        run.prepare(counts_fn=f"{folder}/counts.txt", components=[K], n_iter=20, seed=seed, num_highvar_genes=500)
        run.factorize()
        run.combine()
        run.consensus(k=K, density_threshold=2.0, show_clustering=False)
        usages = run.load_results(K=K, density_threshold=2.0)[0]
        return np.asarray(usages.loc[cells.obs_names]).argmax(axis=1)


def constrained(cells: Any, X: Array, seed: int) -> Array:
    """At least five cells in each cluster."""
    from k_means_constrained import KMeansConstrained

    return np.asarray(KMeansConstrained(K, size_min=5, random_state=seed).fit_predict(X))


def methods() -> dict[str, tuple[str, Callable[[Any, Array, int], Array], bool]]:
    """By name: the package that is needed, the labels, and whether a seed matters."""
    return {
        "ONMF": ("orthonmf", lambda cells, X, seed: ONMF(K).fit_predict(X), False),
        "ONMF, auto": ("orthonmf", lambda cells, X, seed: ONMF().fit_predict(X), False),
        "KMeans": ("sklearn", lambda cells, X, seed: KMeans(K, n_init=10, random_state=seed).fit_predict(X), True),
        "NMF, largest entry": ("sklearn", lambda cells, X, seed: NMF(K, max_iter=400).fit_transform(X).argmax(axis=1), False),
        "scanpy: PCA, neighbours, Leiden": ("leidenalg", leiden, True),
        "cNMF, largest usage": ("cnmf", cnmf_labels, True),
        "nimfa Nmf, largest entry": ("nimfa", nimfa_labels, True),
        "k-means-constrained": ("k_means_constrained", constrained, True),
    }


def main() -> None:
    """Print the table."""
    import scanpy

    warnings.simplefilter("ignore")
    cells = scanpy.datasets.pbmc68k_reduced()
    X = np.asarray(cells.raw.X.todense(), dtype=np.float64)
    print(machine())
    table = Table(COLUMNS)
    table.header()
    for name, (package, labels, seeded) in methods().items():
        if find_spec(package) is None:
            continue
        began = perf_counter()
        try:
            runs = [adjusted_rand_score(cells.obs["bulk_labels"], labels(cells, X, seed)) for seed in (SEEDS if seeded else [0])]
        except AttributeError as error:  # as nimfa 1.4.0, which asks NumPy for what version 2 has no more
            print(f"{name} fails: {str(error).splitlines()[0]}")
            continue
        seconds = (perf_counter() - began) / len(runs)
        table.row(name, float(np.median(runs)), f"{min(runs):.2f} to {max(runs):.2f}" if seeded else "", seconds)


if __name__ == "__main__":
    main()
