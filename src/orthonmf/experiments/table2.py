"""Table II: 53 genes in three metagenes at seven times, with and without a bound on their sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import floor
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from .._common.typing import Array, Labels
from ..estimator import ONMF
from . import paper
from .alternatives import SETTINGS, penalty_method, slsqp
from .measure import distortion
from .problems import N_METAGENES, scaled_genes, times
from .render import Table
from .runner import DONE, OVER
from .store import Record, Task

N_TIMES = 7
N_GENES = 53
STRICT = floor(paper.BOUND * N_GENES)  # 18.55: 18 genes
ROUNDING = 0.05  # of the printed D, which has one decimal
PRINTED = round(paper.BOUNDED_SHARE[0] * N_GENES)  # the printed 0.36 is 19 genes


def _onmf(X: Array, capacity: int | None, **options: Any) -> Labels:
    return ONMF(N_METAGENES, scaling="none", capacity=capacity, n_jobs=1, **options).fit(X).labels_


def _kmeans(X: Array, capacity: int | None) -> Labels:
    return np.asarray(KMeans(N_METAGENES, n_init=100, random_state=0).fit(X).labels_, dtype=np.intp)


def _alternative(method: Callable[[Array, int, float], Labels], X: Array, capacity: int) -> Labels:
    return method(X, N_METAGENES, capacity)


@dataclass(frozen=True)
class Solver:
    """A way to split the genes: (X, capacity) → labels, the capacity in genes, and the constants that a stored cell depends on."""

    label: str
    capacity: int | None
    split: Callable[[Array, Any], Labels]
    settings: str = ""


_flow = partial(_onmf, solver="cbf", refine=False)

SOLVERS: dict[str, Solver] = {
    "free": Solver("ONMF", None, _onmf),
    "free-kmeans": Solver("best of 100 k-means", None, _kmeans),
    "strict": Solver("ONMF, ≤ 18 genes", STRICT, _onmf),
    "printed": Solver("ONMF, ≤ 19 genes", PRINTED, _onmf),
    "flow": Solver("barrier flow, ≤ 18, exact rounding", STRICT, _flow),
    "flow-nearest": Solver("barrier flow, ≤ 19, nearest", PRINTED, partial(_flow, rounding="nearest")),
    "penalty": Solver("penalty, ≤ 18, nearest", STRICT, partial(_alternative, penalty_method), SETTINGS),
    "slsqp": Solver("SLSQP, ≤ 18, nearest", STRICT, partial(_alternative, slsqp), SETTINGS),
}

NOTES = (
    "Genes are the items, every patient is scaled to [1, 10], D is the mean squared distance of a gene to the mean of its metagene, "
    "recomputed from the labels; one run each, all but k-means being deterministic.",
    "0.35 of 53 genes is 18.55, so the bound allows 18 (0.34). The printed 0.36 is 19 genes: a bound exceeded by rounding each gene to "
    "its most probable metagene. Ours are shown for both.",
    "The penalty method and SLSQP are the two alternatives that the paper names; they minimise its free energy at seven growing β and "
    "round to the nearest, each with the best of a few settings tried. The violation counts genes above the bound in the fullest metagene.",
)


def tasks() -> list[Task]:
    """The cells of the table."""
    times()  # missing data is better said now
    return [
        Task(f"{__name__}:cell", {"solver": name, "time": time}, solver.settings)
        for name, solver in SOLVERS.items()
        for time in range(N_TIMES)
    ]


def cell(solver: str, time: int) -> dict[str, Any]:
    """One solver at one time."""
    return split(SOLVERS[solver], scaled_genes(time))


def split(solver: Solver, X: Array) -> dict[str, Any]:
    """D, the largest share, the genes above the bound, and seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a capacity that rounding exceeds is what the table shows
        solver.split(X[:, :2], solver.capacity)  # warm: neither imports nor thread pools are timed
        start = perf_counter()
        labels = solver.split(X, solver.capacity)
        seconds = perf_counter() - start
    largest = int(np.bincount(labels).max())
    violation = max(0, largest - (solver.capacity or len(X)))
    return {"cost": distortion(X, labels), "share": largest / len(X), "violation": violation, "seconds": seconds}


def table(records: Iterable[Record]) -> Table:
    """D, shares, violations and seconds, block by block, with the paper's rows."""
    records = list(records)
    found = {(record["arguments"]["solver"], record["arguments"]["time"]): record for record in records}
    used = [name for name in SOLVERS if any(name == solver for solver, _ in found)]
    header = ("measure", "solver", *(f"T{time + 1}" for time in range(N_TIMES)))
    printed = {
        "cost": {"paper, free": paper.FREE_COST, 'paper, "0.35"': paper.BOUNDED_COST},
        "share": {"paper, free": paper.FREE_SHARE, 'paper, "0.35"': paper.BOUNDED_SHARE},
    }
    rows: list[tuple[str, ...]] = []
    for measure, title, form in _BLOCKS:
        rows += [(title, label, *(format(value, form) for value in values)) for label, values in printed.get(measure, {}).items()]
        rows += [
            (title, SOLVERS[name].label, *(_shown(found.get((name, time)), measure, form) for time in range(N_TIMES)))
            for name in used
            if measure != "violation" or SOLVERS[name].capacity is not None
        ]
    data = [
        {**record["arguments"], "status": record["status"], **{measure: record.get(measure) for measure, *_ in _BLOCKS}}
        for record in records
    ]
    return Table("table2", f"Table II of {paper.CITATION}", header, rows, (*NOTES, *_findings(found)), data)


_BLOCKS = (("cost", "D", ".2f"), ("share", "max c/n", ".2f"), ("violation", "violation", "d"), ("seconds", "seconds", ".3f"))


def _shown(record: Record | None, measure: str, form: str) -> str:
    if record is None:
        return ""
    if record["status"] == DONE:
        return format(record[measure], form)
    return f"> {record['limit']:g}" if record["status"] == OVER and measure == "seconds" else ("" if record["status"] == OVER else "failed")


def _findings(found: dict[tuple[str, int], Record]) -> list[str]:
    """At how many times each solver keeps the bound, and is below the printed D."""
    lines = []
    for name, solver in SOLVERS.items():
        against = paper.FREE_COST if solver.capacity is None else paper.BOUNDED_COST
        done = {time: found[name, time] for time in range(N_TIMES) if found.get((name, time), {}).get("status") == DONE}
        if done:
            below = sum(record["cost"] <= against[time] + ROUNDING for time, record in done.items())
            kept = sum(record["violation"] == 0 for record in done.values())
            bound = "" if solver.capacity is None else f"the bound is kept at {kept} of {len(done)} times, "
            lines.append(f"{solver.label}: {bound}D is at or below the printed one at {below} of {len(done)}.")
    return lines
