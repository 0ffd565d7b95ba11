"""Features in different units: whether a few of them hold almost all that the error counts, and what to do then."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.typing import Array

__all__ = ["dominant", "uneven"]

# Features that hold this share of ‖X‖² decide alone; they are few when they are no more than this part of all that hold anything, or one.
# Of nine data sets that tells wine (1 of 13 features) and breast cancer (2 of 30), whose columns have different units, from digits, irises,
# pixels, cells and others, whose columns have one.
ALMOST_ALL = 0.9
FEW = 1 / 12
# Of fewer features nothing is said.
LEAST_FEATURES = 4
# Rows that are squared at a time.
ROWS = 4096


def dominant(X: Any) -> tuple[Array, float] | None:
    """The few features that hold almost all of ‖X‖², the largest first, and their share; None where no few do.

    Examples
    --------
    >>> import numpy as np
    >>> from orthonmf.model.units import dominant
    >>> X = np.array([[1.0, 0.2, 0.1, 900.0], [0.9, 0.1, 0.3, 1200.0]])
    >>> features, share = dominant(X)
    >>> features, share > 0.99
    (array([3]), True)
    >>> dominant(X[:, :3] * 1.0) is None
    True
    """
    squares = _squares(X)
    used = int(np.count_nonzero(squares))
    if used < LEAST_FEATURES:
        return None
    order = np.argsort(-squares, kind="stable")
    shares = np.cumsum(squares[order]) / squares.sum()
    count = int(np.searchsorted(shares, ALMOST_ALL)) + 1
    if count > max(1, FEW * used):
        return None
    return order[:count], float(shares[count - 1])


def uneven(X: Any, names: Any, remedy: str) -> str | None:
    """That few features hold almost everything, by name, and what to do; None where none do."""
    found = dominant(X)
    if found is None:
        return None
    features, share = found
    known = [f"{str(names[i])!r}" if names is not None else f"number {i + 1}" for i in features[:3].tolist()]
    listed = ", ".join(known) + (f" and {len(features) - 3} more" if len(features) > 3 else "")
    hold = f"feature {listed} holds" if len(features) == 1 else f"features {listed} hold"
    return (
        f"{hold} {share:.0%} of the squared numbers, so that the other {X.shape[1] - len(features)} hardly count. Where features have "
        f"different units, bring them to one scale first: {remedy}."
    )


def _squares(X: Any) -> Array:
    """Σ x² of every feature, in float64, of numbers scaled so that none overflows; of those that are there."""
    largest = float(X.max())
    missing = largest != largest
    largest = (float(np.nanmax(X)) if missing else largest) or 1.0
    total = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], ROWS):
        rows = X[start : start + ROWS] / largest
        rows = np.nan_to_num(rows) if missing else rows
        total += np.asarray(
            rows.multiply(rows).sum(axis=0) if hasattr(rows, "multiply") else np.square(rows, dtype=np.float64).sum(axis=0)
        ).ravel()
    return total
