"""Missing numbers: how well they are found again, against filling in first, and what they cost in time.

Run ``python -m benchmarks missing [recovery] [time] [apart] [draws] [ends]``; without a word, all of them.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from scipy.special import rel_entr
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score

from orthonmf import ONMF
from orthonmf._common.typing import Array, Labels
from orthonmf.distortion import PARTIAL
from orthonmf.engines import ThreadTeam, engine_class
from orthonmf.search.partition import centered, nearest_pass

from ._table import Column, Table
from ._timing import alternating_seconds, least_processor_seconds, machine

KINDS = tuple(itertools.product(("frobenius", "kullback-leibler"), ("item", "none")))
SHARES, SEEDS = (0.05, 0.2, 0.5), range(3)
# Items, features, components.
Size = tuple[int, int, int]


@dataclass(frozen=True)
class Problem:
    """Numbers ``X`` about exact ones ``Y`` of k components, with the component of each row."""

    X: Array
    Y: Array
    labels: Array
    loss: str
    scaling: str

    @classmethod
    def of(cls, loss: str, scaling: str, seed: int, size: Size = (400, 30, 5), *, noise: float = 0.5, level: float = 2.0) -> Problem:
        """Exponential components, of items of Gamma(5) sizes or one; normal noise of deviation ``noise``, or counts of mean ``level``."""
        n, p, k = size
        rng = np.random.default_rng([seed, n, p, k])
        labels = np.arange(n) % k
        Y = rng.exponential(1.0, (k, p))[labels] * (rng.gamma(5.0, 0.2, (n, 1)) if scaling == "item" else 1.0)
        if loss == "kullback-leibler":
            X = rng.poisson(Y := level * Y).astype(float)
        else:  # noise about 0 that makes no number negative
            X = Y + np.clip(noise * rng.standard_normal(Y.shape), -Y, Y)
        return cls(X, Y, labels, loss, scaling)

    def holed(self, share: float, seed: int) -> Array:
        """X without a share of its entries, drawn at random; of each row and column some are left."""
        n, p = self.X.shape
        hole = np.random.default_rng([seed, 7]).random((n, p)) < share
        hole[np.arange(n), np.arange(n) % p] = False
        return np.where(hole, np.nan, self.X)

    def error(self, found: Array, hole: Array) -> float:
        """How far the missing numbers are from what was found, in units of how far they are from the exact ones: 1 is the noise."""
        x, y, z = self.X[hole], self.Y[hole], np.maximum(found[hole], 1e-9)
        if self.loss == "kullback-leibler":
            return float((rel_entr(x, z) - x + z).sum() / (rel_entr(x, y) - x + y).sum())
        return float(np.sqrt(np.square(x - z).sum() / np.square(x - y).sum()))


# -- recovery -----------------------------------------------------------------------------------------------------------------------


def ignored(problem: Problem, holed: Array) -> ONMF:
    """A fit to what is there."""
    return ONMF(5, loss=problem.loss, scaling=problem.scaling, missing="ignore").fit(holed)


def filled(imputer: Callable[[], object], problem: Problem, holed: Array) -> ONMF:
    """A fit to what an imputer makes of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        X = np.maximum(imputer().fit_transform(holed), 0)  # type: ignore[attr-defined]
    return ONMF(5, loss=problem.loss, scaling=problem.scaling).fit(X)


def known(problem: Problem, holed: Array, labels: Labels) -> Array:
    """What the best centres and scales for given components say."""
    with ThreadTeam(1) as team:
        engine = engine_class("masked")(holed, None, team=team)
        loss = PARTIAL[problem.loss, problem.scaling].of(engine)
        start = np.repeat(loss.origin, labels.max() + 1, axis=0)
        centers = loss.to_data(centered(engine, loss, labels, start).centers)
        raw = engine.rows(slice(0, len(holed)))
        scale = loss.measure.fitted(raw, labels, centers) if loss.scaled else np.ones(len(holed))
        return scale[:, None] * centers[labels]


def placed(problem: Problem, holed: Array) -> Labels:
    """The component in which each item, by what is there of it, is nearest to the exact centre."""
    with ThreadTeam(1) as team:
        engine = engine_class("masked")(holed, None, team=team)
        loss = PARTIAL[problem.loss, problem.scaling].of(engine)
        exact = problem.Y[np.unique(problem.labels, return_index=True)[1]]
        labels: Labels = nearest_pass(engine, loss, loss.to_frame(exact))[1]
        return labels


WAYS: dict[str, Callable[[Problem, Array], ONMF]] = {
    "ignored": ignored,
    "mean": lambda problem, holed: filled(SimpleImputer, problem, holed),
    "iterative": lambda problem, holed: filled(lambda: IterativeImputer(random_state=0, min_value=0), problem, holed),
}


def recovery() -> None:
    """Errors of the numbers that were taken away, and agreement with the true components, by what was done about them."""
    columns = [Column("loss", 16), Column("scaling", 7), Column("missing", 7, ".0%")]
    columns += [Column(name, 11, ".3f") for name in ("known", "placed", "placed: ARI")]
    columns += [*(Column(f"{way}{what}", 13, ".3f") for way in WAYS for what in ("", ": ARI"))]
    table = Table(tuple(columns), markdown=True)
    table.header()
    for (loss, scaling), share in itertools.product(KINDS, SHARES):
        means = np.mean([_measured(Problem.of(loss, scaling, seed), share, seed) for seed in SEEDS], axis=0)
        table.row(loss, scaling, share, *means.tolist())


def _measured(problem: Problem, share: float, seed: int) -> list[float]:
    holed = problem.holed(share, seed)
    hole = np.isnan(holed)
    by_truth = placed(problem, holed)
    found = [problem.error(known(problem, holed, labels), hole) for labels in (problem.labels, by_truth)]
    found.append(adjusted_rand_score(problem.labels, by_truth))
    for way in WAYS.values():
        model = way(problem, holed)
        approximation = model.scale_[:, None] * model.components_[model.labels_]
        found += [problem.error(approximation, hole), adjusted_rand_score(problem.labels, model.labels_)]
    return found


# -- time ---------------------------------------------------------------------------------------------------------------------------


def time() -> None:
    """Seconds of a fit with a tenth of the numbers missing, and of one with all of them."""
    _times(noise=0.8, level=1.0)


def apart() -> None:
    """The same where components are far apart, so that a fit ends at once."""
    _times(noise=0.02, level=50.0)


def _times(*, noise: float, level: float) -> None:
    print(machine())
    sizes = ((400, 30, 5), (2000, 50, 8), (400, 2000, 8), (20_000, 40, 8), (60_000, 40, 8))
    table = Table(
        (Column("loss", 16), Column("scaling", 7), Column("size", 16), *(Column(w, 9, ".3f") for w in ("complete", "10 %", "ratio")))
    )
    table.header()
    for (n, p, k), (loss, scaling) in itertools.product(sizes, KINDS):
        problem = Problem.of(loss, scaling, 0, (n, p, k), noise=noise, level=level)
        complete, missing = alternating_seconds(*_fits(problem, 0, k), repeats=1 if n * p > 100_000 else 3)
        table.row(loss, scaling, f"{n} × {p}, k = {k}", complete, missing, missing / complete)


def _fits(problem: Problem, seed: int, k: int) -> list[Callable[[], object]]:
    """A fit to all numbers, and to nine tenths of them."""
    holed, named = problem.holed(0.1, seed), {"loss": problem.loss, "scaling": problem.scaling}
    return [lambda: ONMF(k, **named).fit(problem.X), lambda: ONMF(k, missing="ignore", **named).fit(holed)]


def draws() -> None:
    """Processor seconds of six draws of lines of few items in many dimensions, the least of three fits."""
    table = Table((Column("draw", 4), *(Column(w, 9, ".3f") for w in ("complete", "10 %", "ratio"))))
    table.header()
    found = []
    for seed in range(6):
        problem = Problem.of("frobenius", "item", seed, (400, 2000, 8), noise=0.8)
        found.append([least_processor_seconds(fit, repeats=3) for fit in _fits(problem, seed, 8)])
        table.row(seed, *found[-1], found[-1][1] / found[-1][0])
    complete, missing = np.sum(found, axis=0)
    table.row("all", complete, missing, missing / complete)


# -- ends ---------------------------------------------------------------------------------------------------------------------------

# Noise of measurements and mean counts, from components far apart to near ones.
NEARER = ((0.02, 50.0), (0.05, 20.0), (0.1, 10.0), (0.2, 5.0), (0.5, 2.0))
FEW_ITEMS: tuple[Size, ...] = ((200, 20, 3), (400, 30, 5), (300, 60, 8))
# Sums in another order differ by less.
ROUNDING = 1e-9


def ends() -> None:
    """How many fits with a tenth of the numbers missing end without a search, and how many of these at the error to which one leads."""
    columns = [Column("loss", 16), Column("scaling", 7), Column("noise or counts", 15, ".3g")]
    table = Table((*columns, *(Column(name, 14, "d") for name in ("problems", "without search", "at its error"))))
    table.header()
    total = np.zeros(3, dtype=int)
    for (loss, scaling), (noise, level) in itertools.product(KINDS, NEARER):
        cases = [Problem.of(loss, scaling, seed, size, noise=noise, level=level) for size, seed in itertools.product(FEW_ITEMS, range(4))]
        found = [_ended(problem) for problem in cases]
        row = np.array([len(found), sum(each is not None for each in found), sum(bool(each) for each in found)])
        table.row(loss, scaling, level if loss == "kullback-leibler" else noise, *row.tolist())
        total += row
    print(f"\n{total[0]} problems: {total[1]} end without a search, {total[2]} of them at the error to which a search leads.")


def _ended(problem: Problem) -> bool | None:
    """Whether a fit that ends without a search is as good as one with it; None where it does not end so."""
    model = ONMF(int(problem.labels.max()) + 1, loss=problem.loss, scaling=problem.scaling, missing="ignore")
    holed = problem.holed(0.1, 0)
    error = model.fit(holed).reconstruction_err_
    if len(model.history_["beta"]):
        return None
    with patch("orthonmf.search.factorize.best_at_once", return_value=None):
        return bool(error <= model.fit(holed).reconstruction_err_ * (1 + ROUNDING))


PARTS: dict[str, Callable[[], None]] = {"recovery": recovery, "time": time, "apart": apart, "draws": draws, "ends": ends}


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="; ".join(f"{name}: {part.__doc__}" for name, part in PARTS.items()))
    for name in parser.parse_args().parts or PARTS:
        print(f"-- {name}", flush=True)
        PARTS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
