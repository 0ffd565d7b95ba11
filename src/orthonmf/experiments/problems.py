"""The data of the tables by name: "1" to "4", and data set 5 in the four readings that its unpublished preprocessing leaves open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.preprocessing import minmax_scale

from .._common.typing import Array
from ..datasets import fetch_microarray, make_paper_synthetic
from ..exceptions import InvalidInputError

SYNTHETIC = ("1", "2", "3", "4")
MICROARRAY = ("5-raw-genes", "5-raw-patients", "5-z-genes", "5-z-patients")
N_METAGENES = 3
N_SYNTHETIC = 20


@dataclass(frozen=True)
class Problem:
    """Matrices with items in rows, over which the measures are averaged, and the number of components."""

    matrices: tuple[Array, ...]
    n_components: int


def expanded(datasets: Iterable[str] | None) -> list[str]:
    """Names of problems, in order: "5" means its four readings, None everything."""
    known = (*SYNTHETIC, *MICROARRAY)
    wanted: set[str] = set()
    for name in known if datasets is None else datasets:
        if name != "5" and name not in known:
            raise InvalidInputError(f"data set {name!r} is not known; expected one of 1, 2, 3, 4, 5 or {', '.join(MICROARRAY)}.")
        wanted.update(MICROARRAY if name == "5" else (name,))
    return [name for name in known if name in wanted]


def problem(name: str, *, seed: int) -> Problem:
    """The problem of that name. ``seed`` draws the synthetic data; data set 5 is what it is."""
    if name in SYNTHETIC:
        return Problem((make_paper_synthetic(int(name), seed=seed).X,), N_SYNTHETIC)
    _, scale, items = name.split("-")
    slices = [_scored(X) if scale == "z" else X for X in times()]
    return Problem(tuple(X if items == "genes" else np.ascontiguousarray(X.T) for X in slices), N_METAGENES)


@lru_cache(maxsize=1)
def times() -> tuple[Array, ...]:
    """Raw expression (53 genes, 27 patients) at each of the seven times."""
    data = fetch_microarray()
    return tuple(np.ascontiguousarray(data[:, :, t]) for t in range(data.shape[2]))


def scaled_genes(time: int) -> Array:
    """The data of Table II: 53 genes, every patient scaled to [1, 10]."""
    scaled: Array = minmax_scale(times()[time], (1, 10))
    return scaled


def _scored(X: Array) -> Array:
    """Each gene with mean 0 and deviation 1, then moved to be nonnegative."""
    spread = X.std(axis=1, keepdims=True)
    scored: Array = (X - X.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)
    return scored - scored.min()
