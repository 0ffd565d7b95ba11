"""Those of the data that are drawn: all samples of a fit, or an even choice of them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from .._common.typing import Labels
from ..distortion import loss_of
from ..engines.threads import ThreadTeam
from ..exceptions import InvalidInputError
from ..sources import ON_DISK, is_chunked
from .words import noun

__all__ = ["Shown", "evenly"]

# Dots of a picture: more hide one another, and these take some 150 kB.
MOST_ITEMS = 10_000
# Of the samples that are looked at, as numbers in float64.
MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class Shown:
    """Samples of the data of a fit.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_shown, n_features)
        In float64, in units of the largest number.
    index : ndarray of shape (n_shown,)
        Which samples these are, in their order.
    n_samples : int
        Of the fit.
    """

    X: Any
    index: Labels
    n_samples: int

    @classmethod
    def of(cls, model: Any, factors: Any, X: Any) -> Shown | None:
        """What is drawn of the data X of a fit; None for features of data that are not in memory.

        Raises
        ------
        InvalidInputError
            X is not the data of the fit.
        """
        again = isinstance(model, Pipeline)  # whose transform may round otherwise than its fit_transform: then the digest differs
        X = factors._checked_again(model[:-1].transform(X) if again else X)
        n_samples = X.shape[0]
        if factors.orthogonal == "samples" and n_samples != len(factors.labels_):
            raise InvalidInputError(f"X has {n_samples} rows, the model was fitted on {len(factors.labels_)}; give the X of the fit.")
        far = is_chunked(X) or isinstance(X, ON_DISK)
        if far and factors.orthogonal == "features":
            return None
        if not again:
            _check_data(factors, X)
        most = int(min(MOST_ITEMS, max(MOST_BYTES // (8 * X.shape[1]), 1)))
        index = evenly(factors.labels_ if noun(factors) == "sample" else np.zeros(n_samples, dtype=np.intp), most)
        rows = X.taken(index) if is_chunked(X) else X if len(index) == n_samples and not far else X[index]
        rows = sparse.csr_array(rows, dtype=np.float64) if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
        if loss_of(factors).partial:  # what is missing is drawn as the components fill it in
            rows = np.where(np.isnan(rows), factors.inverse_transform(factors.transform(rows)), rows)
        largest = float(rows.max()) if rows.shape[1] else 0.0
        return cls(rows / largest if largest > 0 else rows, index, n_samples)


def _check_data(factors: Any, X: Any) -> None:
    """Refuse other samples than those of the fit, where the model knows; of features, the weights of samples are in what it knows."""
    if factors.orthogonal == "features":
        return
    with ThreadTeam(factors.n_jobs) as team, closing(team):
        complaint = factors._other_data(factors._layout.build(X, None, team))
    if complaint is not None:
        raise InvalidInputError(f"{complaint}; give the X of the fit, prepared in the same way.")


def evenly(labels: Labels, most: int) -> Labels:
    """At most so many places, in their order, of each label about as large a part.

    Examples
    --------
    >>> import numpy as np
    >>> evenly(np.array([1, 0, 0, 1, 0, 0]), 3)
    array([0, 1, 4])
    """
    if len(labels) <= most:
        return np.arange(len(labels))
    order = np.argsort(labels, kind="stable")
    return np.sort(order[(np.arange(most) * len(labels)) // most])
