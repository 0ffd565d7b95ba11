"""How the noise of lines differs by item.

An item x has noise of the variance a + b ‖x‖²: some was added to it whatever its length, some grows with it. Divided by its length, as a
line is, the item has b + a / ‖x‖²: the shorter it is, the more. In many dimensions a few short items would then have directions of their
own, which no other item has, and which would pass for signal.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from ..._common.typing import Array

# Alternations of the fit and its weights, and the relative change at which they end.
FIT_STEPS, FIT_TOL = 20, 1e-6


def unevenness(sq: Array, rest: Array, weight: Array) -> Array:
    """Variance of the noise of each item divided by its length, relative to the mean.

    Parameters
    ----------
    sq : ndarray of shape (n,)
        Squared lengths of the items, above 0.
    rest : ndarray of shape (n,)
        Square of what is left of each item beside the signal.
    weight : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
        ``b + a / sq``; all ones where nothing is left.
    """
    if not weight @ rest > 0:
        return np.ones_like(sq)
    terms = np.column_stack([np.ones_like(sq), sq])
    fit = sq * (weight @ rest / (weight @ sq))
    for _ in range(FIT_STEPS):
        # A sum of squares varies in proportion to its mean.
        root = np.sqrt(weight) / fit
        before, fit = fit, terms @ nnls(terms * root[:, None], rest * root)[0]
        if np.abs(fit - before).max() <= FIT_TOL * fit.max():
            break
    return fit / sq / np.average(fit / sq, weights=weight)
