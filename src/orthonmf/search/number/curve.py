"""What a fitted model knows of each number of components, as rows for tables and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._common.typing import Array

__all__ = ["Row", "chance", "coarser", "curve", "second", "stands_out"]


@dataclass(frozen=True)
class Row:
    """One number of components; NaN where something is not known of it.

    Attributes
    ----------
    n_components : int
    mark : str
        "answer" for the number that the model has, "level" for a coarser one that stands out, else "".
    critical_beta : float
        The β at which so many first exist.
    persistence : float
    bic : float
        Relative to the best, in units of log-likelihood: 0 for the best, below 0 for the others.
    agreement : float
    p_value : float
    """

    n_components: int
    mark: str
    critical_beta: float
    persistence: float
    bic: float
    agreement: float
    p_value: float


def curve(model: Any) -> list[Row]:
    """A row for each number of components of which a fitted model knows something.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.search.number.curve import curve
    >>> rows = curve(ONMF(max_components=5).fit(make_onmf(60, 8, 3, noise=0.5, random_state=0).X))
    >>> [(row.n_components, row.mark) for row in rows if row.mark]
    [(3, 'answer')]
    """
    bic = model.bic_ - np.nanmax(model.bic_) if np.isfinite(model.bic_).any() else model.bic_
    columns = [np.append(np.nan, model.critical_betas_), np.append(np.nan, model.persistence_), bic, model.agreement_, model.p_values_]
    known = [np.flatnonzero(np.isfinite(column)) for column in columns]
    most = max([0, *(int(each[-1]) + 1 for each in known if each.size)])
    padded = [np.append(column, np.full(most, np.nan))[:most].tolist() for column in columns]
    marks = {**dict.fromkeys(coarser(model), "level"), model.n_components_: "answer"}
    return [Row(m, marks.get(m, ""), *values) for m, values in enumerate(zip(*padded, strict=True), start=1)]


def coarser(model: Any) -> list[int]:
    """Numbers above 1, other than the model's own, that stand out, the finest first."""
    return [int(m) for m in model.levels_ if 1 < m != model.n_components_]


def second(model: Any) -> int | None:
    """Of the coarser numbers that stand out the one that lasts longest; None where there is none."""
    lasting = [m for m in coarser(model) if m - 2 < len(model.persistence_)]
    return max(lasting, key=lambda m: float(model.persistence_[m - 2]), default=None)


def stands_out(model: Any) -> bool:
    """Whether some number of components does; one that was given or taken for its persistence is not doubted here."""
    return not model.levels_.size or int(model.levels_[0]) > 1


def chance(model: Any) -> float:
    """The longest persistence of a number beyond all that stand out: chance reaches that much. NaN where it is not known."""
    beyond: Array = model.persistence_[int(model.levels_[0]) - 1 :] if model.levels_.size else np.zeros(0)
    return float(np.max(beyond, initial=-np.inf, where=np.isfinite(beyond))) if np.isfinite(beyond).any() else np.nan
