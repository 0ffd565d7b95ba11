"""ONMF-Ding: multiplicative updates with a multiplier for orthogonality."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.typing import Array
from .._common.validation import check_choice
from ..model.factors import one_per_row
from .base import (
    PairBaseline,
    Solution,
    State,
    check_double,
    kmeans,
    multiplied,
    product,
    random_factors,
    ratio,
    squared_error,
    squared_sum,
)

# What [1]_ adds to the indicators of k-means, so that no entry starts at zero and stays there.
OFFSET = 0.2


class OnmfDing(PairBaseline):
    """Orthogonal factorisation by multiplicative updates with Lagrange multipliers.

    In the letters of [1]_, X ≈ F Gᵀ with Gᵀ G = I; here G is T and Fᵀ is C:

        T ← T ⊙ √(X Cᵀ / (T Tᵀ X Cᵀ)),    C ← C ⊙ (Tᵀ X) / (Tᵀ T C).

    With ``double=True`` X ≈ F S Gᵀ with Fᵀ F = I and Gᵀ G = I, where F is T and S Gᵀ is C:

        G ← G ⊙ √(Xᵀ F S / (G Gᵀ Xᵀ F S)),    F ← F ⊙ √(X G Sᵀ / (F Fᵀ X G Sᵀ)),    S ← S ⊙ √(Fᵀ X G / (Fᵀ F S Gᵀ G)).

    The update of C never raises ‖X − T C‖; that of T lowers a Lagrangian. Parameters and attributes are those of `Baseline`, and

    Parameters
    ----------
    double : bool, default=False
        Whether there are two orthogonal factors.
    init : {"kmeans", "random"}, default="kmeans"
        "kmeans": the indicators of k-means plus 0.2, as in [1]_.

    References
    ----------
    .. [1] C. Ding, T. Li, W. Peng, H. Park, "Orthogonal Nonnegative Matrix Tri-factorizations for Clustering", KDD 2006.

    Examples
    --------
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.baselines import OnmfDing
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = OnmfDing(3, random_state=0).fit(X)
    >>> model.components_.shape
    (3, 6)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        orthogonal: str = "samples",
        double: bool = False,
        init: str = "kmeans",
        max_iter: int = 1000,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, orthogonal=orthogonal, max_iter=max_iter, tol=tol, random_state=random_state)
        self.double = double
        self.init = init

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("init", self.init, ("kmeans", "random"))

    def _check_shape(self, n_items: int, n_dims: int) -> None:
        super()._check_shape(n_items, n_dims)
        check_double(self.double, self.n_components, n_dims)

    def _solve(self, A: Any, rng: np.random.RandomState) -> Solution:
        return self._solve_double(A, rng) if self.double else super()._solve(A, rng)

    def _start(self, A: Any, rng: np.random.RandomState) -> tuple[Array, Array]:
        if self.init == "random":
            return random_factors(A, self.n_components, rng)
        means = kmeans(A, self.n_components, rng)
        T = one_per_row(np.ones(A.shape[0]), means.labels_, self.n_components, sparse=False, dtype=A.dtype)
        return T + A.dtype.type(OFFSET), means.cluster_centers_.astype(A.dtype)

    def _step(self, A: Any, T: Array, C: Array) -> tuple[Array, Array]:
        T = _turned(T, product(A, C.T))
        return T, multiplied(C, product(A.T, T).T, T.T @ T @ C)

    def _solve_double(self, A: Any, rng: np.random.RandomState) -> Solution:
        norm = squared_sum(A)

        def step(F: Array, S: Array, G: Array) -> State:
            G = _turned(G, product(A.T, F) @ S)
            AG = product(A, G)
            F = _turned(F, AG @ S.T)
            return F, S * np.sqrt(ratio(F.T @ AG, F.T @ F @ S @ (G.T @ G))), G

        F, G = self._start(A, rng)[0], self._start(A.T, rng)[0]
        start = (F, F.T @ product(A, G), G)
        run = self._descend(start, step, lambda F, S, G: squared_error(A, norm, F, S @ G.T))
        F, S, G = run.state
        return run.solution(F, S @ G.T)


def _turned(F: Array, B: Array) -> Array:
    """F ⊙ √(B / (F Fᵀ B)): a step for an F with Fᵀ F = I."""
    turned: Array = F * np.sqrt(ratio(B, F @ (F.T @ B)))
    return turned
