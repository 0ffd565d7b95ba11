"""A million items: time, error and memory against ONMF-apx, and how the time grows with n and k.

Run ``python -m benchmarks scaling`` on a quiet machine; it takes some ten minutes. Data: Gamma(10, 1)
centres in 64 dimensions plus normal noise of standard deviation 2, clipped at 0, float32. ``--n 100000`` is a
quick look. Memory is the peak of a process of its own beyond what it held when X was ready.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass

import numpy as np

from orthonmf import ONMF
from orthonmf._common.typing import Array
from orthonmf.engines.layout import COMPILED_NUMBERS

from ._apx import apx_labels, error_of
from ._memory import peak_bytes
from ._timing import machine, timed

DIMS, COMPONENTS, NOISE = 64, 20, 2.0
RESTARTS = 10
FRACTIONS = (0.1, 0.2, 0.4, 0.7, 1.0)
NUMBERS = (10, 20, 40, 80)
MAX_SLOPE, MAX_MEMORY = 1.1, 0.25
BLOCK = 2**16
PARTS = ("peer", "memory", "n", "k")


def draw(n_items: int, n_centers: int = COMPONENTS, seed: int = 0, n_dims: int = DIMS) -> Array:
    """The data."""
    X = np.empty((n_items, n_dims), dtype=np.float32)
    fill(X, n_centers, seed)
    return X


def fill(X: Array, n_centers: int = COMPONENTS, seed: int = 0) -> None:
    """Fill an array with the data block by block, so that nothing else of its size is ever held."""
    rng = np.random.default_rng(seed)
    centers = rng.gamma(10.0, 1.0, (n_centers, X.shape[1])).astype(np.float32)
    for start in range(0, len(X), BLOCK):
        block = rng.standard_normal((min(BLOCK, len(X) - start), X.shape[1]), dtype=np.float32)
        block *= NOISE
        block += centers[rng.integers(n_centers, size=len(block))]
        np.maximum(block, 0, out=X[start : start + len(block)])


def fit(X: Array, n_components: int = COMPONENTS) -> ONMF:
    return ONMF(n_components).fit(X)


@dataclass(frozen=True)
class Requirement:
    """A measured value, which may not exceed a limit."""

    name: str
    value: float
    limit: float

    @property
    def met(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        verdict = "met" if self.met else "NOT MET"
        return f"{self.name}: {self.value:.4g}, required at most {self.limit:.4g}: {verdict}"


# -- against the peer ----------------------------------------------------------------------------------------


def against_peer(n_items: int, seeds: int, repeats: int) -> list[Requirement]:
    """One fit against ONMF-apx from several seeds: our time to their median, our error to their lowest."""
    X = draw(n_items)
    fits = [timed(lambda: fit(X)) for _ in range(repeats)]
    seconds = statistics.median(seconds for _, seconds in fits)
    error = error_of(X, fits[0][0].labels_, COMPONENTS)
    print(
        f"ONMF: {seconds:.2f} s, error {error:.5%}, certificate holds: {fits[0][0].certificate_.holds}",
        flush=True,
    )
    times, errors = [], []
    for seed in range(seeds):
        labels, taken = timed(lambda seed=seed: apx_labels(X, COMPONENTS, n_init=RESTARTS, seed=seed))
        times.append(taken)
        errors.append(error_of(X, labels, COMPONENTS))
        print(f"ONMF-apx, {RESTARTS} restarts, seed {seed}: {taken:.2f} s, error {errors[-1]:.5%}", flush=True)
    return [
        Requirement("our seconds over their median", seconds / statistics.median(times), 1.0),
        Requirement("our error over their lowest", error / min(errors), 1 + 1e-6),
    ]


# -- memory --------------------------------------------------------------------------------------------------


def memory(n_items: int) -> list[Requirement]:
    """Peak memory of a fit beyond X, as a fraction of X, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--n", str(n_items), "--peak"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"X takes {report['X'] / 2**20:.0f} MiB, the fit {report['beyond'] / 2**20:.0f} MiB more", flush=True)
    return [Requirement("memory beyond X, over X", report["beyond"] / report["X"], MAX_MEMORY)]


def report_peak(n_items: int) -> None:
    """Print the bytes of X, and by how much a fit raised the peak of this process."""
    fit(draw(COMPILED_NUMBERS // DIMS))  # what is imported and compiled on first use
    X = draw(n_items)
    before = peak_bytes()
    fit(X)
    print(json.dumps({"X": X.nbytes, "beyond": peak_bytes() - before}))


# -- growth --------------------------------------------------------------------------------------------------


def growth(name: str, values: list[int], times: list[float]) -> list[Requirement]:
    """The exponent of the time in ``values``, by least squares."""
    slope = float(np.polyfit(np.log(values), np.log(times), 1)[0])
    print(", ".join(f"{name} = {v}: {t:.2f} s" for v, t in zip(values, times, strict=True)), flush=True)
    return [Requirement(f"exponent of the time in {name}", slope, MAX_SLOPE)]


def in_items(n_items: int, repeats: int) -> list[Requirement]:
    """How the time grows with n."""
    X = draw(n_items)
    sizes = [int(fraction * n_items) for fraction in FRACTIONS]
    fit(X[: sizes[0]])  # what is compiled on first use
    times = [statistics.median(timed(lambda n=n: fit(X[:n]))[1] for _ in range(repeats)) for n in sizes]
    return growth("n", sizes, times)


def in_components(n_items: int, repeats: int) -> list[Requirement]:
    """How the time grows with k, on data with k centres."""
    times = []
    for k in NUMBERS:
        X = draw(n_items, n_centers=k)
        times.append(statistics.median(timed(lambda X=X, k=k: fit(X, k))[1] for _ in range(repeats)))
    return growth("k", list(NUMBERS), times)


# -- the command ---------------------------------------------------------------------------------------------


def main() -> int:
    """Print what was measured and what is required; 1 when a requirement is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scaling")
    parser.add_argument("--n", type=int, default=1_000_000, help="number of items (%(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of the peer (%(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="fits of which the median time counts (%(default)s)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        report_peak(options.n)
        return 0
    print(f"{machine()}\n", flush=True)
    fit(draw(10_000))  # a warm-up
    parts = {
        "peer": lambda: against_peer(options.n, options.seeds, options.repeats),
        "memory": lambda: memory(options.n),
        "n": lambda: in_items(options.n, options.repeats),
        "k": lambda: in_components(options.n, options.repeats),
    }
    requirements = [requirement for part in options.parts for requirement in parts[part]()]
    print("\n" + "\n".join(map(str, requirements)))
    return 0 if all(requirement.met for requirement in requirements) else 1


if __name__ == "__main__":
    sys.exit(main())
