"""The one place where a factorisation is measured: in float64, from X and the factors that a method returned."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, fields
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from .._common.typing import Array, Labels
from ..metrics import orthogonality, reconstruction_error, sparsity

# Entries up to this fraction of the largest count as zeros in the second sparsity: multiplicative updates seldom reach zero.
NEARLY_ZERO = 1e-6
# And up to this in the third: what some of the printed sparsities seem to count.
SMALL = 1e-3


@dataclass(frozen=True)
class Measured:
    """The paper's four measures, as fractions and seconds, and the sparsities that forgive tiny and small entries."""

    error: float
    orthogonality: float
    sparsity: float
    sparsity_rounded: float
    sparsity_coarse: float
    seconds: float

    def record(self) -> dict[str, float]:
        return asdict(self)


MEASURES = tuple(field.name for field in fields(Measured))


def measure(X: Any, T: Any, C: Any, *, seconds: float, orthogonal: str = "samples") -> Measured:
    """Measure X ≈ T C. Orthogonality and sparsity are those of T, or of C with ``orthogonal="features"``."""
    X, T, C = (_in_float64(matrix) for matrix in (X, T, C))
    factor = T if orthogonal == "samples" else C.T
    return Measured(
        error=reconstruction_error(X, T, C),
        orthogonality=orthogonality(factor),
        sparsity=sparsity(factor),
        sparsity_rounded=sparsity(factor, threshold=NEARLY_ZERO),
        sparsity_coarse=sparsity(factor, threshold=SMALL),
        seconds=seconds,
    )


def timed_fit(model: Any, X: Any) -> Measured:
    """Fit, take the time of the fit alone, and measure. A bound on iterations that was reached is part of the method, not news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = perf_counter()
        T = model.fit_transform(X)
        seconds = perf_counter() - start
    return measure(X, T, model.components_, seconds=seconds, orthogonal=model.orthogonal)


def mean(measured: list[Measured]) -> Measured:
    """The mean over several matrices."""
    return Measured(**{name: float(np.mean([getattr(one, name) for one in measured])) for name in MEASURES})


def distortion(X: Array, labels: Labels) -> float:
    """The mean squared distance of the rows of X to the mean of their group: D of the paper's second table."""
    X = np.asarray(X, dtype=np.float64)
    return float(sum(np.square(X[labels == j] - X[labels == j].mean(axis=0)).sum() for j in np.unique(labels)) / len(X))


def _in_float64(matrix: Any) -> Any:
    return matrix.astype(np.float64) if sparse.issparse(matrix) else np.asarray(matrix, dtype=np.float64)
