"""HALS: one component at a time, with a penalty on overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.typing import Array
from .._common.validation import check_positive
from .base import PairBaseline, product, squared_error, unit_columns


class Hals(PairBaseline):
    """Approximately orthogonal factorisation by hierarchical alternating least squares.

    The method of [1]_.

    Least ‖X − T C‖² + λ Σ_{j≠l} t_j · t_l with unit rows of C, exactly in one column of T or one row of C at a time:

        t_j ← [X c_j − Σ_{l≠j} (c_l · c_j + λ) t_l]₊,    c_j ← [Xᵀ t_j − Σ_{l≠j} (t_l · t_j) c_l]₊, divided by its norm,

    so that the objective never rises. Parameters and attributes are those of `Baseline`, and

    Parameters
    ----------
    penalty : float, default=1e-4
        λ, in units of the squared norm of a row of C, which is 1.

    References
    ----------
    .. [1] B. Li, G. Zhou, A. Cichocki, "Two Efficient Algorithms for Approximately Orthogonal Nonnegative Matrix Factorization", IEEE
       Signal Processing Letters 22, 2015.

    Examples
    --------
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.baselines import Hals
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = Hals(3, tol=1e-3, random_state=0).fit(X)
    >>> model.components_.shape
    (3, 6)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        orthogonal: str = "samples",
        penalty: float = 1e-4,
        max_iter: int = 1000,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, orthogonal=orthogonal, max_iter=max_iter, tol=tol, random_state=random_state)
        self.penalty = penalty

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("penalty", self.penalty)

    def _start(self, A: Any, rng: np.random.RandomState) -> tuple[Array, Array]:
        T, C = super()._start(A, rng)
        units, size = unit_columns(C.T)
        return T * size, units.T

    def _objective(self, A: Any, squared_norm: float, T: Array, C: Array) -> float:
        gram = T.T @ T
        return squared_error(A, squared_norm, T, C) + self.penalty * (float(gram.sum(dtype=np.float64)) - float(np.trace(gram)))

    def _step(self, A: Any, T: Array, C: Array) -> tuple[Array, Array]:
        gram = C @ C.T + self.penalty
        T, C = T.copy(), C.copy()
        B = product(A, C.T)
        for j in range(len(C)):
            T[:, j] = np.maximum(B[:, j] - T @ gram[:, j] + gram[j, j] * T[:, j], 0)
        gram, B = T.T @ T, product(A.T, T)
        for j in range(len(C)):
            row = np.maximum(B[:, j] - gram[j] @ C + gram[j, j] * C[j], 0)
            size = np.linalg.norm(row)
            C[j] = row / size if size > 0 else C[j]
        return T, C
