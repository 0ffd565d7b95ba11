"""PNMF: the data projected on a nonnegative subspace."""

from __future__ import annotations

from .._common.typing import Array
from .base import ProjectiveBaseline, multiplied


class Pnmf(ProjectiveBaseline):
    """Projective factorisation X ≈ W Wᵀ X; with ``orthogonal="features"`` X ≈ X W Wᵀ.

    The method of [1]_.

        W ← W ⊙ 2 X Xᵀ W / (W Wᵀ X Xᵀ W + X Xᵀ W Wᵀ W),    then W ← W / ‖W‖₂.

    T is W and C is Wᵀ X. Parameters and attributes are those of `Baseline`.

    References
    ----------
    .. [1] Z. Yuan, E. Oja, "Projective Nonnegative Matrix Factorization for Image Compression and Feature Extraction", SCIA 2005.

    Examples
    --------
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.baselines import Pnmf
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = Pnmf(3, tol=1e-3, random_state=0).fit(X)
    >>> model.components_.shape
    (3, 6)
    """

    def _rule(self, W: Array, B: Array, M: Array) -> Array:
        return multiplied(W, 2 * B, W @ M + B @ (W.T @ W))
