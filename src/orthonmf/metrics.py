"""The quality of a factorization X ≈ T · C: the three measures of the paper, computed in float64.

The paper stores samples as columns, so its H is our Tᵀ: H Hᵀ = Tᵀ T and row j of H is column j of T.

    E = ‖X − T C‖ / ‖X‖                        `reconstruction_error`
    O = 1 − ‖G − diag G‖ / ‖G‖,  G = Tᵀ T      `orthogonality`
    S = 1 − (number of nonzeros of T) / (n k)  `sparsity`

(Frobenius norms.) They are fractions; the paper prints percentages. Rows are read in blocks, so nothing of
the size of a dense X is formed, and residuals are explicit: ‖X‖² − 2⟨X, T C⟩ + ‖T C‖² loses half the digits
of a small error. Everything is first scaled by powers of two, which is exact, so that no square overflows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array

from ._common.arithmetic import own_arithmetic
from ._common.typing import Array
from .exceptions import InvalidInputError

__all__ = ["orthogonality", "reconstruction_error", "sparsity"]

Exponents: TypeAlias = NDArray[np.intc]
Matrix: TypeAlias = Any  # 2-D: array-like, or scipy's sparse arrays and matrices, which share no type

# Entries of one dense block: 8 MiB of float64. At (200 000, 64), k = 20, sizes from 2^14 to 2^21 took the
# same time, 2^22 and 2^24 1.4 and 2.8 times as long; a large one keeps many rows of wide data in a block.
_BLOCK_ENTRIES = 2**20

# The exponent of 0: below that of any float64 (−1074) and of any product of two.
_EXPONENT_OF_ZERO = -4096


@own_arithmetic
def reconstruction_error(X: Matrix, T: Matrix, C: Matrix, *, sample_weight: ArrayLike | None = None, relative: bool = True) -> float:
    """Frobenius norm of the residual X − T C, by default as a fraction of that of X.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data.
    T : {array-like, sparse matrix} of shape (n_samples, n_components)
        The left factor, such as ``model.transform(X)``.
    C : {array-like, sparse matrix} of shape (n_components, n_features)
        The right factor, such as ``model.components_``.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of the squared residual, and of the squared norm, of each row.
    relative : bool, default=True
        Divide by the (weighted) norm of X: the paper's E. Otherwise the norm itself is returned.

    Returns
    -------
    float
        The error. For X = 0 the relative error is 0 if T C = 0 and infinite otherwise; a value beyond the
        largest float64 is infinite.

    Examples
    --------
    >>> reconstruction_error([[3.0, 4.0]], [[1.0]], [[3.0, 0.0]])
    0.8
    """
    X, T, C = _as_matrix(X, "X"), _as_matrix(T, "T"), _as_matrix(C, "C")
    _check_factor_shapes(X, T, C)
    root_weight, weight_exponent = _root_weight(sample_weight, X.shape[0])

    # T C = Σ_j t_j c_j. Column t_j goes into units of 2^a_j; row c_j takes that factor over and is put into
    # the common unit of X and T C. Then no entry of either exceeds 1, whatever T and C are separately.
    X_exponent = int(_exponents(_max_abs(X)).max())
    T_exponents = _exponents(_max_abs(T))
    exponent = max(X_exponent, int((T_exponents + _exponents(_max_abs(C, axis=1))).max()))
    C = _scale_rows(C, T_exponents - exponent)

    residuals, norms = [], []
    for rows in _row_blocks(*X.shape):
        X_block = np.ldexp(_dense(X[rows]), -X_exponent)
        norms.append(_sum_of_squares(X_block * root_weight[rows]))
        product = _dense(_scale_columns(T[rows], -T_exponents) @ C)
        residual = np.ldexp(X_block, X_exponent - exponent) - product
        residuals.append(_sum_of_squares(residual * root_weight[rows]))

    error, norm = math.sqrt(math.fsum(residuals)), math.sqrt(math.fsum(norms))
    if not relative:
        return _ldexp(error, exponent + weight_exponent)
    if norm == 0.0:
        return 0.0 if error == 0.0 else math.inf
    return _ldexp(error / norm, exponent - X_exponent)


@own_arithmetic
def orthogonality(F: Matrix, *, axis: int = 1) -> float:
    """How close the components of a factor are to mutually orthogonal: the paper's O.

    Parameters
    ----------
    F : {array-like, sparse matrix} of shape (n_samples, n_components) or (n_components, n_features)
        A factor.
    axis : {0, 1}, default=1
        The axis that counts components: 1 for T, whose components are columns, 0 for C, whose are rows.

    Returns
    -------
    float
        1 − ‖G − diag G‖ / ‖G‖ with G the Gram matrix of the components; exactly 1.0 when no two components
        share a nonzero entry, hence also for a factor of zeros.

    Examples
    --------
    >>> orthogonality([[1.0, 0.0], [0.0, 2.0]])
    1.0
    """
    F = _as_matrix(F, "F")
    if axis not in (0, 1):
        raise InvalidInputError(f"axis={axis!r}, expected 1 (components are the columns of F) or 0 (its rows). Pass 1 for T, 0 for C.")
    if axis == 0:
        F = F.T.tocsr() if sparse.issparse(F) else F.T
    gram = _gram(F)
    total = np.linalg.norm(gram)
    np.fill_diagonal(gram, 0.0)
    return float(1.0 - np.linalg.norm(gram) / total) if total > 0.0 else 1.0


@own_arithmetic
def sparsity(F: Matrix, *, threshold: float = 0.0) -> float:
    """Fraction of the entries of a factor that are zero: the paper's S.

    Parameters
    ----------
    F : {array-like, sparse matrix} of shape (n, m)
        A factor, in either orientation.
    threshold : float, default=0.0
        Entries whose size is at most `threshold` times the largest count as zero; in [0, 1). Methods that
        approach zero without reaching it need some, such as 1e-6.

    Returns
    -------
    float
        The fraction, from 0 (no zeros) to 1 (all zeros).

    Examples
    --------
    >>> sparsity([[1.0, 0.0], [0.0, 2.0]])
    0.5
    """
    F = _as_matrix(F, "F")
    if not 0.0 <= threshold < 1.0:
        raise InvalidInputError(
            f"threshold={threshold!r}, expected a fraction of the largest entry, 0 <= threshold < 1. Pass 0 to count exact zeros only."
        )
    cut = threshold * _max_abs(F).max()
    n, m = F.shape
    nonzeros = sum(int(np.count_nonzero(np.abs(_values(F[rows])) > cut)) for rows in _row_blocks(n, m))
    return 1.0 - nonzeros / (n * m)


def _as_matrix(A: Matrix, name: str) -> Matrix:
    """`A` as a finite 2-D array of numbers, or as CSR with every entry stored once."""
    try:
        matrix = check_array(A, accept_sparse="csr", input_name=name)
    except ValueError as error:
        raise InvalidInputError(f"{name} cannot be used: {error} Pass a finite 2-D array or sparse matrix of numbers.") from error
    if sparse.issparse(matrix) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _check_factor_shapes(X: Matrix, T: Matrix, C: Matrix) -> None:
    (n, p), k = X.shape, T.shape[1]
    if T.shape != (n, k) or C.shape != (k, p):
        raise InvalidInputError(
            f"X {X.shape}, T {T.shape} and C {C.shape} do not fit together: expected (n, p), (n, k), (k, p). "
            "Samples are rows; transpose the factors of a method that has samples as columns."
        )


def _root_weight(sample_weight: ArrayLike | None, n: int) -> tuple[Array, int]:
    """√w / 2^e as a column of shape (n, 1), or (n, 1) ones, and e."""
    if sample_weight is None:
        return np.ones((n, 1)), 0
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise InvalidInputError(f"sample_weight has shape {weight.shape}, expected ({n},): pass one weight for each row of X.")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
    if bad.size:
        raise InvalidInputError(
            f"sample_weight[{bad[0]}] is {weight[bad[0]]}, expected finite and nonnegative: "
            "drop the rows that should not count or give them weight 0."
        )
    if not weight.any():
        raise InvalidInputError(
            "sample_weight is all zero, expected a positive weight for at least one row: pass None to weigh all rows alike."
        )
    root = np.sqrt(weight)
    exponent = int(_exponents(root).max())
    return np.ldexp(root, -exponent)[:, np.newaxis], exponent


def _row_blocks(n: int, width: int) -> Iterator[slice]:
    """Consecutive row slices of about `_BLOCK_ENTRIES` entries each."""
    step = max(1, _BLOCK_ENTRIES // width)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _values(A: Matrix) -> Array:
    """The entries of a block that may differ from zero."""
    return np.asarray(A.data if sparse.issparse(A) else A, dtype=np.float64)


def _dense(A: Matrix) -> Array:
    return np.asarray(A.toarray() if sparse.issparse(A) else A, dtype=np.float64)


def _max_abs(A: Matrix, axis: int = 0) -> Array:
    """Largest size of an entry along `axis`, without a copy of `A`."""
    high, low = (np.abs(_dense(extreme)).ravel() for extreme in (A.max(axis=axis), A.min(axis=axis)))
    return np.maximum(high, low)


def _exponents(sizes: Array) -> Exponents:
    """The e of size = f · 2^e with 1/2 ≤ f < 1, elementwise."""
    return np.where(sizes > 0.0, np.frexp(sizes)[1], np.intc(_EXPONENT_OF_ZERO))


def _scale_columns(A: Matrix, exponents: Exponents) -> Matrix:
    """`A` with column j times 2^exponents[j], in float64."""
    if not sparse.issparse(A):
        return np.ldexp(_values(A), exponents)
    return type(A)((np.ldexp(_values(A), exponents[A.indices]), A.indices, A.indptr), shape=A.shape)


def _scale_rows(A: Matrix, exponents: Exponents) -> Matrix:
    """`A` with row j times 2^exponents[j], in float64."""
    if not sparse.issparse(A):
        return np.ldexp(_values(A), exponents[:, np.newaxis])
    by_entry = np.repeat(exponents, np.diff(A.indptr))
    return type(A)((np.ldexp(_values(A), by_entry), A.indices, A.indptr), shape=A.shape)


def _gram(F: Matrix) -> Array:
    """Fᵀ F of shape (m, m), up to one power of four, summed over blocks of rows."""
    exponents = np.full(F.shape[1], -_exponents(_max_abs(F)).max())
    gram = np.zeros((F.shape[1], F.shape[1]))
    for rows in _row_blocks(*F.shape):
        block = _scale_columns(F[rows], exponents)
        gram += _dense(block.T @ block)
    return gram


def _sum_of_squares(A: Array) -> float:
    return float(np.vdot(A, A))


def _ldexp(value: float, exponent: int) -> float:
    """value · 2^exponent, infinite instead of an error beyond the largest float."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.inf
