"""Small problems: one fit against the best of 100 restarts of alternation, on a thousand of them.

Run ``python -m benchmarks small`` (ten minutes), or ``--problems 100``. A restart begins at random items and alternates
nearest labels and best centres to rest; all restarts of a problem run side by side. ``--baseline SRC`` times and
judges another version of the library, whose package lies in the folder SRC, on the same problems. Problems
where ours is above the best restart by more than one part in a million are named, with the ratio of the squared
errors less one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from orthonmf._common.typing import Array

from ._fits import OURS, fits_with

RESTARTS, MAX_PASSES, TOLERANCE = 100, 200, 1e-6
# Errors below this part of the squared norm of the items are rounding.
ROUNDING = 1e-12

Draw = Callable[[np.random.Generator, int, int], Array]


def clusters(rng: np.random.Generator, n: int, p: int) -> Array:
    """Six clusters with moderate noise."""
    centers = rng.gamma(2, 1, (6, p))
    return np.abs(centers[rng.integers(6, size=n)] + 0.3 * rng.standard_normal((n, p)))


KINDS: dict[str, Draw] = {
    "gamma": lambda rng, n, p: rng.gamma(1, 1, (n, p)),
    "uniform": lambda rng, n, p: rng.random((n, p)),
    "lognormal": lambda rng, n, p: rng.lognormal(0, 1, (n, p)),
    "counts": lambda rng, n, p: rng.poisson(3, (n, p)).astype(float),
    "sparse": lambda rng, n, p: rng.gamma(1, 1, (n, p)) * (rng.random((n, p)) < 0.4),
    "clusters": clusters,
}


@dataclass(frozen=True)
class Small:
    """A problem, drawn from its seed."""

    seed: int
    name: str
    scaling: str
    X: Array
    n_components: int

    def squared_error(self, labels: Array) -> float:
        """Of the best centres for the labels."""
        groups = [self.X[labels == j] for j in np.unique(labels)]
        if self.scaling == "none":
            return sum(float(np.sum((group - group.mean(axis=0)) ** 2)) for group in groups)
        return sum(float(np.sum(np.linalg.svd(group, compute_uv=False)[1:] ** 2)) for group in groups)


def drawn(seed: int) -> Small:
    """Kinds and scalings in turn; sizes at random."""
    rng = np.random.default_rng(seed)
    name, scaling = list(KINDS)[seed % len(KINDS)], ("none", "item")[seed // len(KINDS) % 2]
    n, k = int(rng.integers(20, 301)), int(rng.integers(2, 13))
    p = int(rng.integers(1 if scaling == "none" else 2, 21))
    return Small(seed, name, scaling, KINDS[name](rng, n, p), k)


def best_restart(problem: Small, restarts: int) -> float:
    """The lowest squared error of alternations from random items."""
    rng = np.random.default_rng(problem.seed)
    X, lines = problem.X[problem.X.any(axis=1)] if problem.scaling == "item" else problem.X, problem.scaling == "item"
    k = min(problem.n_components, len(X))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True) if lines else X
    centers = unit[np.stack([rng.permutation(len(X))[:k] for _ in range(restarts)])]
    labels = np.full((restarts, len(X)), -1)
    best, running = np.inf, np.arange(restarts)
    for _ in range(MAX_PASSES):
        inner = X @ centers.transpose(0, 2, 1)
        distance = -inner if lines else np.einsum("rkp,rkp->rk", centers, centers)[:, None] - 2 * inner
        found = distance.argmin(axis=2)
        changed = (found != labels).any(axis=1)
        if not changed.all():
            best = min(best, *(problem_error(problem, X, each) for each in np.unique(found[~changed], axis=0)))
        if not changed.any():
            break
        running, labels, centers, inner = running[changed], found[changed], centers[changed], inner[changed]
        member = np.zeros((len(labels), len(X), k))
        np.put_along_axis(member, labels[:, :, None], 1.0, axis=2)
        sums = np.swapaxes(member * inner if lines else member, 1, 2) @ X
        size = np.linalg.norm(sums, axis=2) if lines else member.sum(axis=1)
        centers = np.where(size[..., None] > 0, sums / np.maximum(size, 1e-300)[..., None], centers)
    return best


def problem_error(problem: Small, X: Array, labels: Array) -> float:
    """The squared error of labels for some of the items."""
    return Small(problem.seed, problem.name, problem.scaling, X, problem.n_components).squared_error(labels)


def fitted(problems: list[Small], sources: str) -> list[tuple[float, float]]:
    """Squared error and CPU seconds of a fit of each problem with the package in the folder ``sources``."""
    fits = fits_with(sources, [(each.X, {}, {"n_components": each.n_components, "scaling": each.scaling}) for each in problems])
    return [(problem.squared_error(fit.labels), fit.seconds) for problem, fit in zip(problems, fits, strict=True)]


def report(name: str, problems: list[Small], found: list[tuple[float, float]], best: Array) -> int:
    """Print what is worse and a sentence; how many are worse."""
    floor = np.array([ROUNDING * np.sum(problem.X**2) for problem in problems])
    error, seconds = np.array(found).T
    ratio = (error + floor) / (best + floor) - 1
    worse, better = ratio > TOLERANCE, ratio < -TOLERANCE
    for problem, above in zip((problems[i] for i in np.flatnonzero(worse)), ratio[worse], strict=True):
        shape = "n {:3d}  p {:2d}  k {:2d}".format(*problem.X.shape, problem.n_components)
        print(f"  seed {problem.seed:4d}  {problem.name:<9}  {problem.scaling}  {shape}  {above:+.1e}")
    print(
        f"{name}: better {better.sum()}, equal {len(ratio) - better.sum() - worse.sum()}, worse {worse.sum()} of {len(ratio)}; "
        f"worst ratio {ratio.max():+.1e}; {seconds.sum():.1f} s of CPU time\n"
    )
    return int(worse.sum())


def main() -> int:
    """Print what is worse than the best restart; 1 where something is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks small")
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--restarts", type=int, default=RESTARTS)
    parser.add_argument("--baseline", metavar="SRC", help="compare with the package in this folder too")
    options = parser.parse_args()
    problems = [drawn(seed) for seed in range(options.first, options.first + options.problems)]
    with threadpool_limits(1):
        began = time.process_time()
        best = np.array([best_restart(problem, options.restarts) for problem in problems])
        print(f"best of {options.restarts}: {time.process_time() - began:.1f} s of CPU time\n")
    if options.baseline:
        report(f"baseline {options.baseline}", problems, fitted(problems, options.baseline), best)
    return int(report("ours", problems, fitted(problems, OURS), best) > 0)


if __name__ == "__main__":
    sys.exit(main())
