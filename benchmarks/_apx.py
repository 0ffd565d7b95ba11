"""The peer: ONMF-apx, k-means on the directions of the items, and the best centres for its labels.

ONMF-apx is scikit-learn's KMeans on the normalised items, weighted by their squared norms. Its errors are
those of the best centres for its labels (leading singular vectors) and so never above those of its own
centroids; all errors are explicit residuals in float64.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from orthonmf._common.typing import Array, Labels
from orthonmf.metrics import reconstruction_error

MAX_ALTERNATIONS = 300


def apx_labels(X: Array, n_components: int, *, n_init: int, seed: int, threads: int | None = None) -> Labels:
    """Labels of ONMF-apx; ``threads`` limits those that scikit-learn takes, one for each core."""
    squares = np.einsum("ij,ij->i", X, X)
    directions = X / np.sqrt(np.where(squares > 0, squares, 1))[:, None]
    model = KMeans(n_components, n_init=n_init, random_state=seed)
    with threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct directions than components
        return np.asarray(model.fit(directions, sample_weight=squares).labels_)


def singular_centers(X: Array, labels: Labels, n_components: int) -> Array:
    """The leading right singular vector of the items of each component, (n_components, n_dims)."""
    centers = np.zeros((n_components, X.shape[1]))
    for j in range(n_components):
        items = X[labels == j].astype(float)
        if len(items) >= items.shape[1]:
            centers[j] = np.abs(np.linalg.eigh(items.T @ items)[1][:, -1])
        elif len(items):
            vector = np.abs(np.linalg.eigh(items @ items.T)[1][:, -1] @ items)
            centers[j] = vector / (np.linalg.norm(vector) or 1.0)
    return centers


def alternated(X: Array, labels: Labels, n_components: int) -> Labels:
    """Best centres, then each item to the centre of its largest projection, until no label changes."""
    for _ in range(MAX_ALTERNATIONS):
        moved = (X @ singular_centers(X, labels, n_components).T).argmax(axis=1)
        if (moved == labels).all():
            break
        labels = moved
    return labels


def error_of(X: Array, labels: Labels, n_components: int) -> float:
    """Relative error of a partition with the best centres for it."""
    centers = singular_centers(X, labels, n_components)
    scale = np.einsum("ij,ij->i", X, centers.astype(X.dtype)[labels], dtype=float)
    T = sparse.csr_array((scale, labels, np.arange(len(X) + 1)), shape=(len(X), n_components))
    return reconstruction_error(X, T, centers)
