"""How many components: our number beside silhouette, gap, mixtures, stability and cNMF's rule, and what its p-values are worth.

Run ``python -m benchmarks number``. Every criterion is asked about the same items: right, off by one or wrong, and CPU seconds each::

    auto          ONMF("auto")
    persistence   ONMF("persistence"): the number that lasts longest along the annealing
    silhouette    k-means on ten principal components, the largest mean silhouette; cannot answer 1
    gap           the gap statistic there: ten uniform references, the first number within one deviation of the next
    mixture BIC   scikit-learn's GaussianMixture there, spherical or diagonal, ten starts each
    halves        k-means on two halves, six times: the number at which they agree best; cannot answer 1
    cnmf          consensus NMF as its article describes it, written from that: ten runs of NMF for every number, their spectra in as many
                  clusters; the largest number at which the silhouette of these has a peak of at least 0.8, or its highest

All of it takes hours on one core, nearly all for mixtures, halves and cnmf; ``--criteria auto silhouette gap`` about half an hour.
``--families`` and ``--criteria`` choose some of them, ``--seeds`` how many seeds of each family, ``--failures`` names the problems that a
criterion got wrong, ``--quick`` takes every twelfth problem. Of fresh seeds it is also counted how many a likelihood started from the
truth prefers to all other numbers: what no method can be asked to solve is left out there.

``python -m benchmarks number calibration`` draws sets from a model of m components and counts how often ``gain_test`` rejects m, at
0.05, and how often it does with one separated component more.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from orthonmf import ONMF
from orthonmf._common.typing import Array, Labels
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.dense import DenseEngine
from orthonmf.search.number import gain_test
from orthonmf.search.number.balls import fitted, n_parameters, one_hot, ward_labels
from orthonmf.search.number.cloud import Cloud, clouds_of

from ._number import FAMILIES, Problem, real
from ._table import Column, Table
from ._timing import machine

DIRECTIONS, STARTS = 10, 10
REFERENCES, HALVES, RUNS, STABLE = 10, 6, 10, 0.8
LEVEL, SETS = 0.05, 200
QUICK = 12

# -- criteria ------------------------------------------------------------------------------------------------


def principal(problem: Problem, count: int = DIRECTIONS) -> Array:
    """The items, scaled to one length where their scale plays no part, along their leading directions."""
    X = problem.X
    if problem.scaling == "item":
        X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    return PCA(min(count, *X.shape)).fit_transform(X)


def _numbers(points: Array, problem: Problem) -> range:
    return range(2, min(problem.most, len(np.unique(points, axis=0)) - 1) + 1)


def _k_means(points: Array, k: int) -> KMeans:
    return KMeans(k, n_init=STARTS, random_state=0).fit(points)


def by_annealing(how: str) -> Callable[[Problem], int]:
    """Our number, by one of its names."""
    return lambda problem: (
        ONMF(how, scaling=problem.scaling, max_components=problem.most, refine=False, n_jobs=1, random_state=0).fit(problem.X).n_components_
    )


def by_silhouette(problem: Problem) -> int:
    """The largest mean silhouette."""
    points = principal(problem)
    return max(_numbers(points, problem), key=lambda k: silhouette_score(points, _k_means(points, k).labels_), default=1)


def by_gap(problem: Problem) -> int:
    """The smallest k with gap(k) ≥ gap(k + 1) − s(k + 1) (Tibshirani, Walther and Hastie 2001)."""
    points, rng = principal(problem), np.random.default_rng(0)
    low, high = points.min(axis=0), points.max(axis=0)
    references = [rng.uniform(low, high, points.shape) for _ in range(REFERENCES)]
    before = -np.inf
    for k in range(1, problem.most + 1):
        chance = np.log([KMeans(k, n_init=1, random_state=0).fit(reference).inertia_ for reference in references])
        gap = chance.mean() - np.log(max(_k_means(points, k).inertia_, np.finfo(float).tiny))
        if k > 1 and before >= gap - chance.std() * np.sqrt(1 + 1 / REFERENCES):
            return k - 1
        before = gap
    return problem.most


def by_mixture(problem: Problem) -> int:
    """The lowest BIC of two types of Gaussian mixture."""
    points = principal(problem)
    fits = {
        (k, kind): GaussianMixture(k, covariance_type=kind, n_init=STARTS, random_state=0).fit(points).bic(points)
        for k in (1, *_numbers(points, problem))
        for kind in ("spherical", "diag")
    }
    return min(fits, key=lambda key: fits[key])[0]


def by_halves(problem: Problem) -> int:
    """The best agreement of partitions that halves of the items give of all; the larger number of equal ones."""
    points, rng = principal(problem), np.random.default_rng(0)
    orders = [rng.permutation(len(points)) for _ in range(HALVES)]
    middle = len(points) // 2

    def agreement(k: int) -> float:
        pairs = [[_k_means(points[part], k).predict(points) for part in (order[:middle], order[middle:])] for order in orders]
        return float(np.mean([adjusted_rand_score(*pair) for pair in pairs]))

    return max((k for k in _numbers(points, problem) if k < middle), key=lambda k: (round(agreement(k), 6), k), default=1)


def by_cnmf(problem: Problem) -> int:
    """The largest number at which the stability of consensus NMF has a high peak (Kotliar and others 2019)."""
    X = problem.X / np.maximum(problem.X.std(axis=0), np.finfo(float).eps * problem.X.max())
    numbers = range(2, min(problem.most, *X.shape) + 1)
    stability = np.array([_stability(X, k) for k in numbers])
    padded = np.concatenate([[-np.inf], stability, [-np.inf]])
    peaks = np.flatnonzero((stability >= padded[:-2]) & (stability >= padded[2:]) & (stability >= STABLE))
    return int(numbers[peaks[-1] if peaks.size else stability.argmax()])


def _stability(X: Array, k: int) -> float:
    """Silhouette of the spectra of several runs in k clusters."""
    spectra = np.vstack([NMF(k, init="random", tol=1e-3, max_iter=200, random_state=run).fit(X).components_ for run in range(RUNS)])
    spectra = spectra / np.maximum(np.linalg.norm(spectra, axis=1, keepdims=True), np.finfo(float).tiny)
    labels = _k_means(spectra, k).labels_
    return float(silhouette_score(spectra, labels)) if len(np.unique(labels)) > 1 else -1.0


CRITERIA: dict[str, Callable[[Problem], int]] = {
    "auto": by_annealing("auto"),
    "persistence": by_annealing("persistence"),
    "silhouette": by_silhouette,
    "gap": by_gap,
    "mixture BIC": by_mixture,
    "halves": by_halves,
    "cnmf": by_cnmf,
}


def solvable(problem: Problem) -> bool:
    """Whether BIC of mixtures of balls, started from the truth, prefers the true number to all others.

    Along as many principal directions as the largest number of components can have; the other numbers start from Ward's joins.
    """
    points = principal(problem, problem.most - 1)
    cloud = Cloud(points, np.ones(len(points)), 0.0, 0.0, np.arange(len(points)), np.ones(len(points)))

    def score(labels: Labels) -> tuple[float, int]:
        balls = fitted(cloud, one_hot(labels))
        return balls.log_likelihood - cloud.toll * n_parameters(balls.count, points.shape[1]), balls.count

    truth, count = score(problem.labels)
    others = (score(labels) for labels in ward_labels(points, cloud.weight, problem.most))
    return all(truth > other for other, number in others if number != count)


# -- side by side --------------------------------------------------------------------------------------------


@dataclass
class Count:
    """How often a criterion was right, off by one and wrong."""

    right: int = 0
    near: int = 0
    wrong: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def add(self, problem: Problem, answer: int, seconds: float) -> None:
        """One more answer."""
        self.seconds += seconds
        off = min(abs(answer - number) for number in problem.right)
        self.right += off == 0
        self.near += off == 1
        self.wrong += off > 1
        if off:
            self.failures.append(f"{problem.name}: {answer}")

    @property
    def asked(self) -> int:
        return self.right + self.near + self.wrong


def answered(criterion: Callable[[Problem], int], problem: Problem) -> tuple[int, float]:
    """The number, and CPU seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = criterion(problem)
    return answer, time.process_time() - start


def side_by_side(name: str, problems: Iterable[Problem], criteria: list[str], failures: bool) -> None:
    """The table of one family."""
    counts, within, n_solvable = {criterion: Count() for criterion in criteria}, dict.fromkeys(criteria, 0), 0
    for problem in problems:
        possible = name == "fresh" and solvable(problem)
        n_solvable += possible
        for criterion, count in counts.items():
            answer, seconds = answered(CRITERIA[criterion], problem)
            count.add(problem, answer, seconds)
            within[criterion] += possible and answer in problem.right
    titles = ("right", "off by one", "wrong")
    table = Table((Column(name, 12), *(Column(title, 10, "d") for title in titles), Column("CPU s each", 10, ".2f")))
    table.header()
    for criterion, count in counts.items():
        table.row(criterion, count.right, count.near, count.wrong, count.seconds / max(count.asked, 1))
    if name == "fresh":
        solved = ", ".join(f"{criterion} {number}" for criterion, number in within.items())
        print(f"Of {n_solvable} that a likelihood started from the truth solves: {solved}.")
    for criterion, count in counts.items():
        if failures and count.failures:
            print(f"{criterion}: {'; '.join(count.failures)}", flush=True)
    print(flush=True)


def answers(problems: Iterable[Problem], criteria: list[str]) -> None:
    """What every criterion says about each of the real sets."""
    table = Table((Column("real", 34), Column("right", 6), *(Column(criterion, 11, "d") for criterion in criteria)))
    table.header()
    for problem in problems:
        span = sorted({problem.right[0], problem.right[-1]}) if problem.right else []
        found = [answered(CRITERIA[criterion], problem)[0] for criterion in criteria]
        table.row(problem.name, "–".join(map(str, span)) or "?", *found)
    print(flush=True)


# -- calibration ---------------------------------------------------------------------------------------------


def drawn(n_components: int, seed: int, more: bool) -> tuple[Array, Labels]:
    """200 × 6 items of long normal components, and their labels without the last component where there is one more.

    Every component is three times as long along one direction of its own. The one more lies beside the first, 12 deviations away
    across that direction, and has its label.
    """
    rng = np.random.default_rng([seed, n_components])
    n_items, n_dims = 200, 6
    centers = 30 + 8 * rng.standard_normal((n_components + more, n_dims))
    long = rng.standard_normal((n_components + more, n_dims))
    long /= np.linalg.norm(long, axis=1, keepdims=True)
    if more:
        across = rng.standard_normal(n_dims)
        across -= (across @ long[0]) * long[0]
        centers[-1] = centers[0] + 12 * across / np.linalg.norm(across)
    labels = rng.integers(0, n_components + more, n_items)
    X = centers[labels] + rng.standard_normal((n_items, n_dims))
    X += np.sqrt(8.0) * rng.standard_normal((n_items, 1)) * long[labels]
    return np.maximum(X, 0), np.where(labels == n_components, 0, labels)


def p_value(X: Array, labels: Labels, seed: int) -> float:
    """Of the labels, for the positions of the items; 1 where no direction carries more than noise."""
    with ThreadTeam(1) as team:
        engine = DenseEngine(X, None, shift=0, team=team)
        cloud = next(iter(clouds_of(engine, REGISTRY["frobenius", "none"].of(engine), 16, float(len(X)))), None)
    return 1.0 if cloud is None else gain_test(cloud, labels[cloud.used], seed)


def calibration(sets: int) -> None:
    """Print how often a right and a too small number are rejected."""
    table = Table(
        (Column("components", 10, "d"), Column("one more", 8), Column("sets", 5, "d"), Column("rejected", 8, "d"), Column("required", 12))
    )
    table.header()
    for n_components in (1, 4):
        for more in (False, True):
            found = np.array([p_value(*drawn(n_components, seed, more), seed) for seed in range(sets)])
            limit = f"{'at least' if more else 'at most'} {(0.9 if more else 0.08) * sets:.0f}"
            table.row(n_components, "yes" if more else "no", sets, int((found <= LEVEL).sum()), limit)


# -- the command ---------------------------------------------------------------------------------------------


def _some(problems: Iterator[Problem], quick: bool) -> Iterator[Problem]:
    return islice(problems, None, None, QUICK) if quick else problems


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="criteria", choices=("criteria", "calibration"))
    parser.add_argument("--families", nargs="+", default=[*FAMILIES, "real"], choices=[*FAMILIES, "real"])
    parser.add_argument("--criteria", nargs="+", default=list(CRITERIA), choices=list(CRITERIA))
    parser.add_argument("--seeds", type=int, default=2, help="of every family")
    parser.add_argument("--sets", type=int, default=SETS, help="of the calibration")
    parser.add_argument("--cells", type=Path, help="scanpy's 10x_pbmc68k_reduced.h5ad")
    parser.add_argument("--failures", action="store_true", help="name the problems that were not solved")
    parser.add_argument("--quick", action="store_true", help="every twelfth problem, 12 sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{machine()}; one thread\n", flush=True)
    with threadpool_limits(1):
        if options.part == "calibration":
            calibration(QUICK if options.quick else options.sets)
            return
        for name in options.families:
            if name == "real":
                answers(_some(real(options.cells), options.quick), options.criteria)
            else:
                side_by_side(name, _some(FAMILIES[name](options.seeds), options.quick), options.criteria, options.failures)


if __name__ == "__main__":
    main()
