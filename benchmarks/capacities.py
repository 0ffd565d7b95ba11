"""Bounded components: time, cost and feasibility against k-means-constrained, and at large sizes.

Run ``python -m benchmarks capacities`` on a quiet machine, or parts of it by name::

    peer     k-means-constrained at four sizes, k = 20: times, and our cost to its best of three
    dense    23 000 × 50, k = 10
    sparse   a sparse 132 034 × 17 693 matrix with 60 entries per row, k = 20: time and peak memory
    million  1 000 000 × 64 in float32, k = 20
    genes    21 problems of gene expression against the best of 100 restarts

Data are Gamma(10, 1) centres with Dirichlet(1) sizes plus normal noise of standard deviation 2, clipped at 0;
a component takes at most 1.05 times its equal share. ``--quick`` shrinks every part to see that it runs.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from orthonmf import ONMF
from orthonmf._common.typing import Array, Labels
from orthonmf.distortion import Line
from orthonmf.engines import ThreadTeam
from orthonmf.engines.base import weighted_mean
from orthonmf.engines.dense import DenseEngine
from orthonmf.search.bounded.assigner import Bounded
from orthonmf.search.bounded.bounds import parse_bounds

from ._memory import peak_bytes
from ._problems import microarray
from ._table import Column, Table
from ._timing import machine, timed

NOISE, SLACK = 2.0, 1.05
SEEDS, RESTARTS, GENE_CAPACITY = 3, 100, 0.4
# (n, p), and how many times faster than the peer a fit has to be.
PEER_SIZES = ((4000, 50, 5.0), (8000, 40, 5.0), (10_000, 100, 5.0), (30_000, 20, 20.0))
SPARSE_SHAPE, SPARSE_ROW = (132_034, 17_693), 60
TOLERANCE = 1e-6
BLOCK = 2**16
GIB = 2**30


class Report:
    """Prints each figure with its requirement as soon as it is known, and remembers whether all are met."""

    def __init__(self) -> None:
        self.met = True

    def most(self, name: str, value: float, limit: float | None, unit: str = "") -> None:
        """A value that may not exceed a limit."""
        self._line(name, value, limit, unit, "at most", limit is None or value <= limit)

    def least(self, name: str, value: float, limit: float | None, unit: str = "") -> None:
        """A value that may not stay below a limit."""
        self._line(name, value, limit, unit, "at least", limit is None or value >= limit)

    def claim(self, name: str, held: bool) -> None:
        """Something that has to be so."""
        self.met &= held
        print(f"  {name}: {'yes' if held else 'NO'}", flush=True)

    def _line(self, name: str, value: float, limit: float | None, unit: str, sense: str, met: bool) -> None:
        self.met &= met
        required = "" if limit is None else f", required {sense} {limit:.6g}{unit}: {'met' if met else 'NOT MET'}"
        print(f"  {name}: {value:.6g}{unit}{required}", flush=True)


def draw(n_items: int, n_dims: int, n_centers: int, *, seed: int = 0, dtype: type = np.float64) -> Array:
    """The data, filled block by block so that nothing else of its size is ever held."""
    rng = np.random.default_rng(seed)
    centers = rng.gamma(10.0, 1.0, (n_centers, n_dims)).astype(dtype)
    shares = rng.dirichlet(np.ones(n_centers))
    X = np.empty((n_items, n_dims), dtype=dtype)
    for start in range(0, n_items, BLOCK):
        block = X[start : start + BLOCK]
        rng.standard_normal(dtype=dtype, out=block)
        block *= NOISE
        block += centers[rng.choice(n_centers, len(block), p=shares)]
        np.maximum(block, 0, out=block)
    return X


def capacity_for(n_items: int, n_components: int) -> int:
    """1.05 times the equal share, rounded up."""
    return math.ceil(SLACK * n_items / n_components)


def cost_of(X: Array, labels: Labels, n_components: int) -> float:
    """Σ ‖x − mean of its component‖², in float64."""
    total = 0.0
    for j in range(n_components):
        part = X[labels == j].astype(np.float64)
        total += float(np.square(part - part.mean(axis=0)).sum()) if len(part) else 0.0
    return total


# -- against the peer ----------------------------------------------------------------------------------------


def against_peer(report: Report, quick: bool) -> None:
    """One fit against k-means-constrained from three seeds: its median time, its lowest cost."""
    from k_means_constrained import KMeansConstrained

    sizes = ((600, 10, None), (1000, 20, None)) if quick else PEER_SIZES
    k = 5 if quick else 20
    for n, p, required in sizes:
        X, capacity = draw(n, p, k), capacity_for(n, k)
        print(f"{n} × {p}, k = {k}, at most {capacity} items in a component", flush=True)
        model, seconds = timed(lambda X=X, c=capacity: ONMF(k, scaling="none", capacity=c).fit(X))
        ours = cost_of(X, model.labels_, k)
        times, costs = [], []
        for seed in range(SEEDS):
            peer = KMeansConstrained(k, size_max=capacity, n_init=1, random_state=seed)
            labels, taken = timed(lambda X=X, peer=peer: peer.fit_predict(X))
            times.append(taken)
            costs.append(cost_of(X, labels, k))
        report.most("seconds", seconds, None, " s")
        print(f"  theirs, one seed each: {', '.join(f'{t:.2f} s' for t in times)}", flush=True)
        report.least("their median seconds over ours", float(np.median(times)) / seconds, required)
        report.most("our cost over their lowest", ours / min(costs), 1 + TOLERANCE)
        report.claim("no capacity is exceeded", int(model.counts_.max()) <= capacity)
        report.claim("the certificate holds", model.certificate_.holds)


# -- sizes that users ask for --------------------------------------------------------------------------------


def dense(report: Report, quick: bool) -> None:
    """23 000 × 50, k = 10."""
    n, k = 1000 if quick else 23_000, 10
    _fitted(report, draw(n, 50, k), k, limit=5.0)


def million(report: Report, quick: bool) -> None:
    """A million items in float32."""
    n, k = 2000 if quick else 1_000_000, 20
    _fitted(report, draw(n, 64, k, dtype=np.float32), k, limit=120.0)


def _fitted(report: Report, X: Array, k: int, limit: float) -> None:
    capacity = capacity_for(len(X), k)
    print(
        f"{X.shape[0]} × {X.shape[1]}, {X.dtype}, k = {k}, at most {capacity} items in a component",
        flush=True,
    )
    model, seconds = timed(lambda: ONMF(k, scaling="none", capacity=capacity).fit(X))
    report.most("seconds", seconds, limit, " s")
    report.claim("no capacity is exceeded", int(model.counts_.max()) <= capacity)
    report.claim("the certificate holds", model.certificate_.holds)


def sparse_rows(report: Report, quick: bool) -> None:
    """A sparse matrix of the size of a text collection, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.capacities", "--peak", *(["--quick"] if quick else [])]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(
        f"{found['shape'][0]} × {found['shape'][1]}, {found['nnz']} entries, {found['matrix'] / GIB:.2f} GiB",
        flush=True,
    )
    report.most("seconds", found["seconds"], 180.0, " s")
    report.most("peak memory of the process", found["peak"] / GIB, 4.0, " GiB")
    report.claim("no capacity is exceeded", found["feasible"])
    report.claim("the certificate holds", found["holds"])


def text_like(n_items: int, n_words: int, per_row: int, seed: int = 0) -> sparse.csr_array:
    """Rows of ``per_row`` draws of words with Zipf's frequencies, weighted by rarity, of unit norm."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n_words + 1)
    frequency /= frequency.sum()
    rarity = -np.log(frequency)
    words = rng.choice(n_words, size=n_items * per_row, p=frequency).astype(np.int32)
    counts = rng.gamma(2.0, 1.0, size=words.size)
    rows = sparse.csr_array((counts * rarity[words], words, np.arange(0, words.size + 1, per_row)), shape=(n_items, n_words))
    rows.sum_duplicates()
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows.data /= np.repeat(norms, np.diff(rows.indptr))
    return rows


def report_peak(quick: bool) -> None:
    """Fit the sparse matrix and print its figures."""
    shape, k = ((1500, 800), 5) if quick else (SPARSE_SHAPE, 20)
    X = text_like(*shape, SPARSE_ROW)
    capacity = capacity_for(shape[0], k)
    model, seconds = timed(lambda: ONMF(k, scaling="none", capacity=capacity).fit(X))
    found = {
        "shape": shape,
        "nnz": int(X.nnz),
        "matrix": int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes),
        "seconds": seconds,
        "peak": peak_bytes(),
        "feasible": bool(model.counts_.max() <= capacity),
        "holds": bool(model.certificate_.holds),
    }
    print(json.dumps(found))


# -- quality -------------------------------------------------------------------------------------------------


def genes(report: Report, quick: bool) -> None:
    """One fit against the best of many restarts on the genes of the paper."""
    restarts = 5 if quick else RESTARTS
    table = Table(
        (
            Column("problem", 16),
            Column(f"best of {restarts}", 11, ".4%"),
            Column("ONMF", 8, ".4%"),
            Column("ratio − 1", 9, "+.1e"),
            Column(f"s, {restarts}", 7, ".2f"),
            Column("s, ONMF", 7, ".2f"),
            Column("", 1),
        )
    )
    table.header()
    ratios, feasible = [], True
    for name, X in _gene_problems(3 if quick else None):
        theirs, their_seconds = timed(lambda X=X: best_restart(X, restarts))
        model, our_seconds = timed(lambda X=X: ONMF(3, capacity=GENE_CAPACITY).fit(X))
        ours = model.certificate_.relative_error
        ratios.append(ours / theirs)
        feasible &= model.certificate_.holds and int(model.counts_.max()) <= int(GENE_CAPACITY * len(X))
        mark = "!" if ratios[-1] > 1 + TOLERANCE else ""
        table.row(name, theirs, ours, ratios[-1] - 1, their_seconds, our_seconds, mark)
    worse = sum(ratio > 1 + TOLERANCE for ratio in ratios)
    report.most(f"of {len(ratios)} problems, those above the best of {restarts}", worse, 0)
    report.most("largest ratio of errors", max(ratios, default=1.0), 1 + TOLERANCE)
    report.claim("every bound and every certificate holds", feasible)


def _gene_problems(at_most: int | None) -> Iterator[tuple[str, Array]]:
    """Raw genes, z-scored genes and z-scored patients at each time: 21 problems."""
    wanted = [(name, X) for name, X, _ in microarray() if name.split(" ", 1)[1] != "raw, patients"]
    for name, X in wanted[:at_most]:
        yield name, np.ascontiguousarray(X)


def best_restart(X: Array, restarts: int) -> float:
    """The lowest relative error of k-means on the directions, made feasible and alternated."""
    norms = np.linalg.norm(X, axis=1)
    scaled = X / 2.0 ** np.ceil(np.log2(X.max()))
    best = np.inf
    with threadpool_limits(1), ThreadTeam(1) as team, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct directions than components
        engine = DenseEngine(scaled, team=team)
        distortion = Line.about(weighted_mean(engine))
        bounds = parse_bounds(GENE_CAPACITY, None, 3, len(X))
        if bounds is None:
            raise ValueError("the problems of this part are bounded")
        assigner = Bounded(engine, distortion, bounds)
        for seed in range(restarts):
            model = KMeans(3, n_init=1, random_state=seed).fit(X / norms[:, None], sample_weight=norms**2)
            centers = model.cluster_centers_
            centers /= np.linalg.norm(centers, axis=1, keepdims=True)
            part = assigner.alternate(distortion.to_frame(centers))
            best = min(best, np.inf if part is None else part.cost)
    return float(np.sqrt(best / np.square(scaled).sum()))


# -- the command ---------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[Report, bool], None]] = {
    "peer": against_peer,
    "dense": dense,
    "sparse": sparse_rows,
    "million": million,
    "genes": genes,
}


def main() -> int:
    """Print what was measured and what is required; 1 when a requirement is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks capacities")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; all without")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.peak:
        report_peak(options.quick)
        return 0
    print(machine(), flush=True)
    for n, p in ((50, 5), (4000, 50)):  # what is imported on first use, and compiled loops and passes
        ONMF(2, scaling="none", capacity=capacity_for(n, 2)).fit(draw(n, p, 2))
    report = Report()
    for name in options.parts or PARTS:
        print(f"\n{name}: {PARTS[name].__doc__}", flush=True)
        PARTS[name](report, options.quick)
    return 0 if report.met else 1


if __name__ == "__main__":
    sys.exit(main())
