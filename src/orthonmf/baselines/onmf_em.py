"""ONMF-EM: alternate lines and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.preprocessing import normalize

from .._common.typing import Array, Labels
from .._common.validation import check_choice
from .base import (
    HardBaseline,
    Solution,
    State,
    leading_vector,
    nearest_line,
    on_lines,
    product,
    squared_norms,
    squared_sum,
    unit_columns,
)


class OnmfEm(HardBaseline):
    """Orthogonal factorisation by an algorithm in the manner of EM, a weighted spherical k-means.

    The method of [1]_.

    Each item goes to the line nearest to it; each line becomes the leading singular vector of its items. The squared error Σ ‖x‖² − (x·u)²
    never rises. A line without items stays. Parameters and attributes are those of `Baseline`, and

    Parameters
    ----------
    init : {"random", "k-means++"}, default="random"
        The first lines: items drawn at random, or items whose directions are far apart.

    References
    ----------
    .. [1] F. Pompili, N. Gillis, P.-A. Absil, F. Glineur, "Two algorithms for orthogonal nonnegative matrix factorization with application
       to clustering", Neurocomputing 141, 2014.

    Examples
    --------
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.baselines import OnmfEm
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = OnmfEm(3, random_state=0).fit(X)
    >>> model.components_.shape
    (3, 6)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        orthogonal: str = "samples",
        init: str = "random",
        max_iter: int = 1000,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, orthogonal=orthogonal, max_iter=max_iter, tol=tol, random_state=random_state)
        self.init = init

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("init", self.init, ("random", "k-means++"))

    def _solve(self, A: Any, rng: np.random.RandomState) -> Solution:
        norm = squared_sum(A)

        def step(labels: Labels, C: Array) -> State:
            C = _lines(A, labels, C)
            return nearest_line(A, C), C

        def objective(labels: Labels, C: Array) -> float:
            scale = product(A, C.T)[np.arange(len(labels)), labels]
            return max(0.0, norm - float(scale @ scale))

        C = _spread(A, self.n_components, rng) if self.init == "k-means++" else _drawn(A, self.n_components, rng)
        run = self._descend((nearest_line(A, C), C), step, objective)
        labels, C = run.state
        return run.solution(*self._oriented(A, on_lines(A, C, labels), C), labels)


def _drawn(A: Any, n_components: int, rng: np.random.RandomState) -> Array:
    """The directions of items drawn without repetition."""
    return _directions(A[np.sort(rng.permutation(A.shape[0])[:n_components])])


def _spread(A: Any, n_components: int, rng: np.random.RandomState) -> Array:
    """The directions of items that are far apart, drawn as k-means++ does, with squared norms as weights."""
    _, items = kmeans_plusplus(normalize(A), n_components, sample_weight=squared_norms(A), random_state=rng)
    return _directions(A[items])


def _directions(items: Any) -> Array:
    dense = items.toarray() if hasattr(items, "toarray") else items
    return unit_columns(dense.T.astype(np.float64))[0].T


def _lines(A: Any, labels: Labels, C: Array) -> Array:
    """The best line for the items of each component; C where there are none."""
    return np.array([leading_vector(A[labels == j]) if (labels == j).any() else C[j] for j in range(len(C))])
