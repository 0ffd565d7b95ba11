"""What every factorisation X ≈ T C has in common as a scikit-learn estimator."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from .._common.arithmetic import own_arithmetic
from .._common.typing import Array
from .._common.validation import check_matrix
from ..exceptions import InvalidInputError
from ..sources import in_chunks

__all__ = ["Factorization"]


def named(given: Any, checked: Any) -> Any:
    """What was given, which may name its columns: of a data frame of dask, one without rows; what was read, where that is a path."""
    if isinstance(given, str | os.PathLike):
        return checked
    return given._meta if in_chunks(given) and hasattr(given, "columns") else given


class Factorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator with ``components_`` (n_components_, n_features) and the items in rows or columns, as ``orthogonal`` says."""

    orthogonal: str
    components_: Array
    n_components_: int
    n_features_in_: int

    @own_arithmetic
    def inverse_transform(self, T: Any) -> Array:
        """X back from T: the product T C.

        Parameters
        ----------
        T : {array-like, sparse matrix} of shape (n_samples, n_components_)

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)

        Examples
        --------
        >>> import numpy as np
        >>> from orthonmf import ONMF
        >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0]])
        >>> model = ONMF(2).fit(X)
        >>> model.inverse_transform(model.transform(X)).round(12)
        array([[1., 2., 0.],
               [2., 4., 0.],
               [0., 0., 3.],
               [0., 0., 6.]])
        """
        check_is_fitted(self)
        T = check_array(T, accept_sparse=True, input_name="T")
        if T.shape[1] != self.n_components_:
            raise InvalidInputError(f"T has {T.shape[1]} columns; expected {self.n_components_}, one per component.")
        return np.asarray(T @ self.components_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        # What a sparse matrix does not store is 0, not missing.
        tags.input_tags.allow_nan = getattr(self, "missing", "error") == "ignore"
        tags.input_tags.sparse = not tags.input_tags.allow_nan
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def _checked(self, X: Any) -> Any:
        """X with its values checked; if sparse, in the format whose items are contiguous: Xᵀ of a CSC matrix is a CSR matrix."""
        return check_matrix(X, sparse_format="csr" if self.orthogonal == "samples" else "csc", estimator=type(self).__name__)

    def _checked_again(self, X: Any) -> Any:
        """The same for X after the fit, whose width and names must be those of the fit."""
        checked = self._checked(X)
        self._check_features(X, checked)
        return checked

    def _check_features(self, X: Any, checked: Any) -> None:
        """Refuse another width, or other names, than those of the fit."""
        if checked.shape[1] != self.n_features_in_:
            raise InvalidInputError(
                f"X has {checked.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input."
            )
        validate_data(self, named(X, checked), reset=False, skip_check_array=True)
