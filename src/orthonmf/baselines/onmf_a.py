"""ONMF-A: multiplicative updates along the Stiefel manifold."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.typing import Array
from .base import PairBaseline, multiplied, product, unit_columns


class OnmfA(PairBaseline):
    """Orthogonal factorisation by multiplicative updates along the true gradient of the Stiefel manifold.

    In the letters of [1]_, X ≈ A S with Aᵀ A = I; here A is T and S is C:

        T ← T ⊙ (X Cᵀ) / (T C Xᵀ T),    C ← C ⊙ (Tᵀ X) / (Tᵀ T C).

    The first update takes a T of norm a to one of norm 1/a, so T starts with unit columns. Parameters and attributes are those of
    `Baseline`.

    References
    ----------
    .. [1] S. Choi, "Algorithms for Orthogonal Nonnegative Matrix Factorization", IJCNN 2008.

    Examples
    --------
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.baselines import OnmfA
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = OnmfA(3, tol=1e-3, random_state=0).fit(X)
    >>> model.components_.shape
    (3, 6)
    """

    def _start(self, A: Any, rng: np.random.RandomState) -> tuple[Array, Array]:
        T, C = super()._start(A, rng)
        T, size = unit_columns(T)
        return T, C * size[:, np.newaxis]

    def _step(self, A: Any, T: Array, C: Array) -> tuple[Array, Array]:
        B = product(A, C.T)
        T = multiplied(T, B, T @ (B.T @ T))
        return T, multiplied(C, product(A.T, T).T, T.T @ T @ C)
