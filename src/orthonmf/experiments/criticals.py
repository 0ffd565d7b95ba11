"""The number of metagenes at the seven times, from the critical values, in four readings of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from .._common.typing import Array
from ..estimator import ONMF
from ..search.transitions import MIN_PERSISTENCE
from . import paper
from .greedy import greedy_splits
from .problems import scaled_genes, times
from .render import Table

# Numbers of components whose persistence is shown.
MOST_COMPONENTS = 8

NOTES = (
    "For each time the number m of components with the largest log(β_{m+1}/β_m), in brackets; in parentheses where even that number does "
    "not last over a factor of two in β.",
    "The paper reads 3 off its figure at six times and 4 at T4. It does not say how the data were scaled or what the items were; four "
    "readings are shown. Lines: every item is a direction weighted by its squared norm. Means: every patient is scaled to [1, 10] "
    "first. Greedy: logarithms of expression, hard groups split one at a time by their total distortion, without a temperature, "
    "and only numbers from 3 on are judged; of 42 readings of that kind it is the nearest to the paper's.",
    "Our β_m is where m components first have the lower free energy, with free masses; such a transition is often discontinuous and "
    "earlier than the local condition from which the paper's splits follow.",
)


class Splits(Protocol):
    """Anything that has the log ratios of successive critical values of 2, 3, … components."""

    persistence_: Array


def readings() -> dict[str, Sequence[Splits]]:
    """The sequence of splits at each time, by reading of the data."""
    genes = times()
    return {
        "genes, lines": fitted(genes),
        "patients, lines": fitted([X.T for X in genes]),
        "genes, means": fitted([scaled_genes(time) for time in range(len(genes))], scaling="none"),
        "genes, greedy": [greedy_splits(np.log(X), MOST_COMPONENTS, least=3) for X in genes],
    }


def fitted(matrices: Sequence[Array], scaling: str = "item") -> list[ONMF]:
    """The sequence of splits of each matrix."""
    most = min(MOST_COMPONENTS, min(len(X) for X in matrices) - 1)
    return [ONMF("persistence", max_components=most, scaling=scaling, n_jobs=1).fit(X) for X in matrices]


def peak(model: Splits) -> int | None:
    """The number of components that persists longest, if one does."""
    best = longest(model)
    return best if model.persistence_[best - 2] >= MIN_PERSISTENCE else None


def longest(model: Splits) -> int:
    """The number of components that persists longest, however long that is."""
    return int(np.where(np.isfinite(model.persistence_), model.persistence_, -np.inf).argmax()) + 2


def table(found: Mapping[str, Sequence[Splits]]) -> Table:
    """The most persistent number at each time beside the paper's."""
    header = ("data", *(f"T{time + 1}" for time in range(len(paper.PEAKS))))
    rows = [("paper", *(str(m) for m in paper.PEAKS))]
    rows += [(name, *(_shown(model) for model in models)) for name, models in found.items()]
    data = [
        {"data": name, "time": time + 1, "m": m + 2, "log_ratio": float(value), "paper": paper.PEAKS[time]}
        for name, models in found.items()
        for time, model in enumerate(models)
        for m, value in enumerate(model.persistence_)
    ]
    return Table("criticals-table", f"Critical values, Figure 1 of {paper.CITATION}", header, rows, NOTES, data)


def _shown(model: Splits) -> str:
    best = longest(model)
    shown = f"{best} [{model.persistence_[best - 2]:.2f}]"
    return shown if peak(model) else f"({shown})"
