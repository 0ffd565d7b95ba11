"""ONMFS: nonnegative PCA of a low-rank sketch, by sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from .._common.typing import Array, Labels
from .._common.validation import check_count
from ..model.factors import one_per_row
from .base import HardBaseline, Solution, product, squared_sum, unit_columns


class Onmfs(HardBaseline):
    """Orthogonal factorisation through nonnegative principal components of a matrix of low rank.

    The method of [1]_.

    Of a sketch M of X, of rank r, the best Tᵀ T = I, T ≥ 0 for ‖Tᵀ M‖ is sought. For directions a_1, …, a_k in the column space of M the
    best T for Σ (t_j · a_j)² has item i in the component of its largest positive a_ij, and columns proportional to a_j there. Directions
    are drawn at random, which also draws their signs, and the best T is kept; C = Tᵀ X. The draws needed grow exponentially with r k.

    Parameters and attributes are those of `Baseline`, and

    Parameters
    ----------
    rank : int, default=5
        r, at most the smaller side of X.
    max_iter : int, default=1000
        Number of draws. All are made unless T C leaves at most ``tol`` of ‖M‖².

    Attributes
    ----------
    history_ : ndarray of shape (n_iter_ + 1,)
        ‖M‖² − ‖Tᵀ M‖² of the best T so far.

    References
    ----------
    .. [1] M. Asteris, D. Papailiopoulos, A. G. Dimakis, "Orthogonal NMF through Subspace Exploration", NIPS 2015.

    Examples
    --------
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.baselines import Onmfs
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = Onmfs(3, random_state=0).fit(X)
    >>> model.components_.shape
    (3, 6)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        orthogonal: str = "samples",
        rank: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-10,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, orthogonal=orthogonal, max_iter=max_iter, tol=tol, random_state=random_state)
        self.rank = rank

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("rank", self.rank, least=1)

    def _solve(self, A: Any, rng: np.random.RandomState) -> Solution:
        sketch = _sketch(A, min(self.rank, *A.shape), rng)
        norm = squared_sum(sketch)
        best = np.zeros((A.shape[0], self.n_components))
        labels = np.zeros(A.shape[0], dtype=np.intp)
        history = [norm]
        for _ in range(self.max_iter):
            directions = unit_columns(rng.normal(size=(sketch.shape[1], self.n_components)))[0]
            T, drawn = _best_for(sketch @ directions)
            left = max(0.0, norm - squared_sum(T.T @ sketch))
            if left < history[-1]:
                best, labels = T, drawn
            history.append(min(left, history[-1]))
            if history[-1] <= self.tol * norm:
                break
        return Solution(best, product(A.T, best).T, history, converged=True, n_iter=len(history) - 1, labels=labels)


def _sketch(A: Any, rank: int, rng: np.random.RandomState) -> Array:
    """U Σ of the leading singular triplets: M up to a rotation of its columns."""
    U, s, _ = randomized_svd(A, rank, n_iter=7, power_iteration_normalizer="QR", random_state=rng)
    return np.asarray(U * s, dtype=np.float64)


def _best_for(a: Array) -> tuple[Array, Labels]:
    """The T ≥ 0 of orthonormal columns with the largest Σ_j (t_j · a_j)² over positive inner products, and its labels."""
    labels = a.argmax(axis=1)
    values = np.maximum(a[np.arange(len(a)), labels], 0)
    return unit_columns(one_per_row(values, labels, a.shape[1], sparse=False, dtype=a.dtype))[0], labels
