"""The method as the paper prints it, for the comparison: annealing of means, and the scales after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._common.typing import Array
from ..estimator import ONMF
from ..model.factors import one_per_row


class MepAsPrinted(BaseEstimator):
    """Means by annealing with β growing by a fixed factor, nothing refined, then Θ.

    With Θ = I the items are assigned to means y; then each item gets the scale that is best for its mean, θ_i = x_i · y / ‖y‖².

    Parameters
    ----------
    n_components : int
    orthogonal : {"samples", "features"}, default="samples"
    growth : float, default=1.05
        Of β from one temperature to the next.
    random_state : int or None
        Not used: nothing is drawn.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
    """

    def __init__(self, n_components: int, *, orthogonal: str = "samples", growth: float = 1.05, random_state: Any = None) -> None:
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.growth = growth
        self.random_state = random_state

    def fit_transform(self, X: Any, y: None = None) -> Array:
        """Factorise X and return T."""
        A = X if self.orthogonal == "samples" else X.T
        model = ONMF(self.n_components, scaling="none", schedule=self.growth, refine=False, n_jobs=1).fit(A)
        norm = np.linalg.norm(model.components_, axis=1, keepdims=True)
        centers = model.components_ / np.where(norm > 0, norm, 1)  # the mean of items that are all zero is zero
        scale = np.asarray(A @ centers.T)[np.arange(A.shape[0]), model.labels_]
        T = one_per_row(scale, model.labels_, len(centers), sparse=False, dtype=scale.dtype)
        left, self.components_ = (T, centers) if self.orthogonal == "samples" else (centers.T, T.T)
        return left
