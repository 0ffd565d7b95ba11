"""NHL: nonnegative Hebbian learning."""

from __future__ import annotations

from .._common.typing import Array
from .base import ProjectiveBaseline, multiplied


class Nhl(ProjectiveBaseline):
    """Nonnegative linear Hebbian network: Oja's subspace rule as a multiplicative update.

    The method of [1]_.

        W ← W ⊙ X Xᵀ W / (W Wᵀ X Xᵀ W),    then W ← W / ‖W‖₂.

    T is W and C is Wᵀ X. The rule takes a W of norm a to one of norm 1/a, hence the division. Parameters and attributes are those of
    `Baseline`.

    References
    ----------
    .. [1] Z. Yang, J. Laaksonen, "Multiplicative Updates for Non-negative Projections", Neurocomputing 71, 2007.

    Examples
    --------
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.baselines import Nhl
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = Nhl(3, tol=1e-3, random_state=0).fit(X)
    >>> model.components_.shape
    (3, 6)
    """

    def _rule(self, W: Array, B: Array, M: Array) -> Array:
        return multiplied(W, B, W @ M)
