"""Random problems under bounds: one fit against many restarts, and whether "converged" is what the certificate says.

Run ``python -m benchmarks bounded``, or one part of it by name::

    quality   500 problems of 40 to 900 items: a fit against the best of 20 restarts from random items, and of 20
              more from k-means++ where means have the same bounds (what k-means-constrained does, to the end)
    claims    500 problems of 40 to 20 000 items: a fit that converged and whose certificate fails
    costs     with a baseline alone: the squared error of a fit over that of the other version, and the seconds of both, on problems of
              40 to 900 items and of 900 to 4096

A restart alternates the exact assignment and the best centres until nothing changes. Errors are compared with
a tolerance of one part in a million. Seconds are of the processor, on one thread. ``--baseline FOLDER`` also fits
with the sources in FOLDER (the ``src`` of another version) and prints the ratio of the seconds. ``--quick`` takes
a dozen small problems of each part; ``--problems``, ``--first`` and ``--most`` choose others.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from orthonmf import ONMF
from orthonmf._common.typing import Array
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.dense import DenseEngine
from orthonmf.search.bounded.assigner import Bounded as Assigner
from orthonmf.search.bounded.bounds import parse_bounds

from ._bounded import Bounded, any_size, small, some_thousand
from ._fits import OURS, fits_with
from ._timing import machine

RESTARTS, TOLERANCE = 20, 1e-6
# What is asked for: no more than one problem in a hundred worse, and none by more than this.
WORSE, WORST, TIMES = 0.01, 1e-3, 3.0


def fitted(problem: Bounded) -> tuple[ONMF, float]:
    """The model and the seconds of its fit."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the second part counts them
        model = ONMF(**problem.parameters, n_jobs=1).fit(problem.X, sample_weight=problem.weight)
    return model, time.process_time() - start


def best_restart(problem: Bounded) -> float:
    """The lowest error of the restarts."""
    given, X = problem.parameters, problem.X
    k, unit = given["n_components"], 2.0 ** np.ceil(np.log2(problem.X.max()))
    with ThreadTeam(1) as team:
        engine = DenseEngine(X / unit, team=team)
        distortion = REGISTRY["frobenius", given["scaling"]].of(engine)
        bounds = parse_bounds(given["capacity"], given["min_size"], k, len(X))
        if bounds is None:
            raise ValueError("the problems of this part are bounded")
        assigner = Assigner(engine, distortion, bounds)
        starts = [distortion.to_frame(start / unit) for start in _starts(X, k, lines=given["scaling"] == "item", plain=bounds.alike)]
        ends = [assigner.alternate(start) for start in starts]
        return unit * float(np.sqrt(min(end.cost for end in ends if end is not None)))


def _starts(X: Array, n_components: int, *, lines: bool, plain: bool) -> list[Array]:
    found = []
    for seed in range(RESTARTS):
        chosen = X[np.random.default_rng(seed).choice(len(X), n_components, replace=False)]
        found.append(chosen / np.linalg.norm(chosen, axis=1, keepdims=True) if lines else chosen)
        if plain and not lines:
            found.append(kmeans_plusplus(X, n_components, random_state=seed)[0])
    return found


def quality(seeds: range, baseline: str | None) -> bool:
    """One fit against the restarts."""
    ratios, ours, theirs = [], 0.0, 0.0
    for seed in seeds:
        problem = small(seed)
        model, seconds = fitted(problem)
        ratios.append(model.reconstruction_err_ / best_restart(problem))
        ours += seconds
        if baseline is not None:
            given = {} if problem.weight is None else {"sample_weight": problem.weight}
            theirs += fits_with(baseline, [(problem.X, given, problem.parameters)])[0].seconds
        if ratios[-1] > 1 + TOLERANCE:
            print(f"  {problem.name}: n = {len(problem.X)}, k = {model.n_components}, {ratios[-1] - 1:+.1e}", flush=True)
    ratio = np.array(ratios)
    worse, better = int((ratio > 1 + TOLERANCE).sum()), int((ratio < 1 - TOLERANCE).sum())
    print(f"  {len(ratio)} problems: better than the best of the restarts on {better}, worse on {worse}, by {ratio.max() - 1:+.1e} at most")
    print(f"  {ours:.1f} s of the processor" + ("" if baseline is None else f", {ours / theirs:.2f} times that of {baseline}"), flush=True)
    quick = baseline is None or ours <= TIMES * theirs
    return worse <= WORSE * len(ratio) and float(ratio.max()) <= 1 + WORST and quick


def claims(seeds: range, most: int) -> bool:
    """Whether a fit that converged has a certificate that holds."""
    broken = unsettled = 0
    for seed in seeds:
        problem = any_size(seed, most)
        model, _ = fitted(problem)
        unsettled += not model.converged_
        if model.converged_ and not model.certificate_.holds:
            broken += 1
            failed = [claim for claim, held in model.certificate_.claims.items() if not held]
            print(f"  {problem.name}: n = {len(problem.X)}, converged, but not: {'; '.join(failed)}", flush=True)
    print(f"  {len(seeds)} problems: {unsettled} did not converge; {broken} converged with a certificate that fails", flush=True)
    return broken == 0


def costs(seeds: range, baseline: str) -> None:
    """Squared errors and seconds over those of another version."""
    for drawn in (small, some_thousand):
        problems = [drawn(seed) for seed in seeds]
        ours, theirs = (fits_with(sources, [(each.X, {}, each.parameters) for each in problems]) for sources in (OURS, baseline))
        errors = [[float(fit.arrays["reconstruction_err_"]) ** 2 for fit in fits] for fits in (ours, theirs)]
        ratio, seconds = np.divide(*errors), np.array([[fit.seconds for fit in fits] for fits in (ours, theirs)])
        print(f"  {len(ratio)} problems of {min(len(p.X) for p in problems)} to {max(len(p.X) for p in problems)} items:", flush=True)
        for name, value in (("mean", ratio.mean()), ("highest", ratio.max()), ("lowest", ratio.min())):
            print(f"    {name} cost over that of {baseline}: {value - 1:+.2%}")
        print(f"    higher by a thousandth on {int((ratio > 1 + WORST).sum())}, lower on {int((ratio < 1 - WORST).sum())}")
        times = seconds[0] / seconds[1]
        print(
            f"    seconds {seconds[0].sum():.1f} and {seconds[1].sum():.1f}, {np.exp(np.log(times).mean()):.2f} times in the mean of ratios"
        )


def main() -> int:
    """Print what was measured; 1 when a requirement is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks bounded")
    parser.add_argument("parts", nargs="*", metavar="part", help="quality, claims; both without; costs, with a baseline")
    parser.add_argument("--quick", action="store_true", help="a dozen small problems of each part")
    parser.add_argument("--problems", type=int, default=500, help="how many problems")
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--most", type=int, default=20_000, help="items of the largest problem of the second part")
    parser.add_argument("--baseline", help="folder with the sources of another version")
    options = parser.parse_args()
    if unknown := set(options.parts) - {"quality", "claims", "costs"}:
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are quality, claims and costs")
    if "costs" in options.parts and options.baseline is None:
        parser.error("costs are compared with those of another version: --baseline FOLDER")
    with threadpool_limits(1):
        print(machine(), flush=True)
        number, most = (12, 2000) if options.quick else (options.problems, options.most)
        seeds, met = range(options.first, options.first + number), True
        for part in options.parts or ("quality", "claims"):
            print(f"\n{part}", flush=True)
            if part == "costs":
                costs(seeds, options.baseline)
            else:
                met &= quality(seeds, options.baseline) if part == "quality" else claims(seeds, most)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
