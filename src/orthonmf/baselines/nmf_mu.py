"""NMF by multiplicative updates: no orthogonality."""

from __future__ import annotations

from typing import Any

from sklearn.decomposition import non_negative_factorization

from .._common.typing import Array
from .base import PairBaseline


class NmfMu(PairBaseline):
    """Nonnegative matrix factorisation by multiplicative updates, which never raise ‖X − T C‖.

    The method of [1]_.

    The updates are scikit-learn's, one at a time, from a random start. Parameters and attributes are those of `Baseline`.

    References
    ----------
    .. [1] D. D. Lee, H. S. Seung, "Algorithms for Non-negative Matrix Factorization", NIPS 2000.

    Examples
    --------
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.baselines import NmfMu
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = NmfMu(3, random_state=0).fit(X)
    >>> model.components_.shape
    (3, 6)
    """

    def _step(self, A: Any, T: Array, C: Array) -> tuple[Array, Array]:
        if not (T.any() and C.any()):  # zero stays zero; scikit-learn refuses it
            return T, C
        T, C, _ = non_negative_factorization(
            A, T.copy(), C.copy(), n_components=self.n_components, init="custom", solver="mu", max_iter=1, tol=0
        )
        return T, C
