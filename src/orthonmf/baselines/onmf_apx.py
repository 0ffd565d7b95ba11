"""ONMF-apx: k-means of directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from .._common.typing import Array, Labels
from .._common.validation import check_count
from .base import (
    HardBaseline,
    Solution,
    check_double,
    kmeans,
    leading_vector,
    nearest_line,
    on_lines,
    product,
    squared_error,
    squared_norms,
    squared_sum,
    unit_columns,
)


class OnmfApx(HardBaseline):
    """Orthogonal factorisation within a constant factor of the best, by k-means.

    Items are divided by their norms, clustered by k-means with their squared norms as weights, and projected on the centroids. With a
    k-means within r of its best, the squared error is within 2 r of its best.

    With ``double=True`` T and C are both orthogonal: each dimension is left to the component that explains most of it, and each block (its
    items, its dimensions) is replaced by its best approximation of rank one. This rounding is our own, without the constant of [1]_.

    Parameters and attributes are those of `Baseline`, and

    Parameters
    ----------
    double : bool, default=False
        Whether both factors are orthogonal.
    n_init : int, default=10
        Starts of k-means; the best is kept.

    Attributes
    ----------
    history_ : ndarray of shape (2,)
        The cost of k-means, and the squared error of the factors: with one orthogonal factor never larger.
    n_iter_ : int
        Iterations of the best k-means.

    References
    ----------
    .. [1] M. Charikar, L. Hu, "Approximation Algorithms for Orthogonal Non-negative Matrix Factorization", AISTATS 2021.

    Examples
    --------
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.baselines import OnmfApx
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = OnmfApx(3, random_state=0).fit(X)
    >>> model.components_.shape
    (3, 6)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        orthogonal: str = "samples",
        double: bool = False,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, orthogonal=orthogonal, max_iter=max_iter, tol=tol, random_state=random_state)
        self.double = double
        self.n_init = n_init

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_init", self.n_init, least=1)

    def _check_shape(self, n_items: int, n_dims: int) -> None:
        super()._check_shape(n_items, n_dims)
        check_double(self.double, self.n_components, n_dims)

    def _solve(self, A: Any, rng: np.random.RandomState) -> Solution:
        weight = squared_norms(A)
        means = kmeans(normalize(A), self.n_components, rng, n_init=self.n_init, max_iter=self.max_iter, tol=self.tol, weight=weight)
        labels, C = np.asarray(means.labels_, dtype=np.intp), means.cluster_centers_
        T = on_lines(A, C, labels)
        if self.double:
            C = _blocks(A, labels, product(A.T, unit_columns(T)[0]).argmax(axis=1), len(C))
            T = on_lines(A, C, labels)
        else:
            T, C = self._oriented(A, T, C)
        history = [float(means.inertia_), squared_error(A, squared_sum(A), T, C)]
        return Solution(T, C, history, converged=means.n_iter_ < self.max_iter, n_iter=means.n_iter_, labels=labels)

    def _nearest(self, A: Any, C: Array) -> Labels:
        if self.double:
            return nearest_line(A, C)
        # argmin_j ‖a/‖a‖ − c_j‖², as k-means has it.
        return np.asarray((product(normalize(A), C.T) - np.square(C).sum(axis=1) / 2).argmax(axis=1), dtype=np.intp)


def _blocks(A: Any, labels: Labels, dims: Labels, n_components: int) -> Array:
    """The leading direction of each block, zero outside its dimensions."""
    C = np.zeros((n_components, len(dims)))
    for j in range(n_components):
        C[j, dims == j] = leading_vector(A[labels == j][:, dims == j])
    return C
