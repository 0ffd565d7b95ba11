"""The sizes of the components of a fitted model, and the bounds on them that exclude something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .typing import Array


@dataclass(frozen=True)
class Sizes:
    """What each component holds, and may hold.

    Attributes
    ----------
    values : ndarray of shape (n_components,)
        Items in each component or, where items have sizes, the sums of them in units of the mean size.
    lower, upper : ndarray of shape (n_components,) or None
        Bounds; None where there are none, or they exclude nothing.
    of : str
        What is counted.
    """

    values: Array
    lower: Array | None
    upper: Array | None
    of: str

    @classmethod
    def of_model(cls, model: Any) -> Self:
        """The sizes of a fitted model."""
        proof, bounds = model.certificate_, model.certificate_.bounds
        values, of = (model.counts_, model.orthogonal) if proof.loads is None else (np.array(proof.loads), "size, in mean items")
        if bounds is None:
            return cls(values, None, None, of)
        lower = bounds.lower if (bounds.lower > 0).any() else None
        upper = bounds.upper if (bounds.upper < proof.n_items).any() else None
        return cls(values, lower, upper, of)
