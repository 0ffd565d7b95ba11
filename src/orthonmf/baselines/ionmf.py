"""iONMF: multiplicative updates with a penalty on overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.typing import Array
from .._common.validation import check_positive
from .base import PairBaseline, multiplied, product, squared_error, squared_sum


class Ionmf(PairBaseline):
    """Factorisation with orthogonality as a penalty: least ‖X − T C‖² + (α/2) ‖Tᵀ T − I‖².

    For one data source, with H = Tᵀ and W = Cᵀ in the letters of [1]_:

        C ← C ⊙ (Tᵀ X) / (Tᵀ T C),    T ← T ⊙ (X Cᵀ + α T) / (T C Cᵀ + α T Tᵀ T).

    Parameters and attributes are those of `Baseline`, and

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty, in the units of X.

    References
    ----------
    .. [1] M. Stražar, M. Žitnik, B. Zupan, J. Ule, T. Curk, "Orthogonal matrix factorization enables integrative analysis of multiple RNA
       binding proteins", Bioinformatics 32, 2016.

    Examples
    --------
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.baselines import Ionmf
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = Ionmf(3, max_iter=1000, tol=1e-3, random_state=0).fit(X)
    >>> model.components_.shape
    (3, 6)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        orthogonal: str = "samples",
        alpha: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, orthogonal=orthogonal, max_iter=max_iter, tol=tol, random_state=random_state)
        self.alpha = alpha

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("alpha", self.alpha)

    def _objective(self, A: Any, squared_norm: float, T: Array, C: Array) -> float:
        return squared_error(A, squared_norm, T, C) + self.alpha / 2 * squared_sum(T.T @ T - np.eye(T.shape[1], dtype=T.dtype))

    def _step(self, A: Any, T: Array, C: Array) -> tuple[Array, Array]:
        C = multiplied(C, product(A.T, T).T, T.T @ T @ C)
        T = multiplied(T, product(A, C.T) + self.alpha * T, T @ (C @ C.T + self.alpha * (T.T @ T)))
        return T, C
