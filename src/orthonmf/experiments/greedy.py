"""Hard groups split one at a time by their total distortion, without a temperature: the paper's figure may come from such splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.typing import Array, Labels

# Steps of k-means after a split; a few dozen items need about five.
_STEPS = 200


@dataclass
class GreedySplits:
    """The log ratios of successive critical values, as an estimator has them.

    Attributes
    ----------
    persistence_ : ndarray
        Of 2, 3, … components; NaN where the number is out of the question.
    """

    persistence_: Array


def greedy_splits(X: Array, most: int, *, least: int = 2) -> GreedySplits:
    """Split the group of the largest total distortion D until there are ``most + 1``; a split happens at β = 1/D.

    Parameters
    ----------
    X : ndarray of shape (n_items, n_dims)
    most, least : int
        The numbers of components that are judged.
    """
    centers, labels = X.mean(axis=0, keepdims=True), np.zeros(len(X), dtype=np.intp)
    betas: list[float] = []
    for _ in range(most):
        spread = [np.square(X[labels == j] - center).sum() for j, center in enumerate(centers)]
        worst = int(np.argmax(spread))
        betas.append(max(1 / spread[worst], *betas[-1:]) if betas else 1 / spread[worst])
        labels, centers = _settled(X, _parted(X[labels == worst], centers, worst))
    persistence = np.diff(np.log(betas))
    persistence[: least - 2] = np.nan
    return GreedySplits(persistence)


def _parted(items: Array, centers: Array, worst: int) -> Array:
    """The centres with one replaced by two, apart by its items' spread along the direction in which they spread most."""
    around = items - centers[worst]
    _, size, directions = np.linalg.svd(around, full_matrices=False)
    step = size[0] / np.sqrt(len(items)) * directions[0]
    parted = np.vstack([centers, centers[worst] + step])
    parted[worst] -= step
    return parted


def _settled(X: Array, centers: Array) -> tuple[Labels, Array]:
    """k-means from given centres."""
    labels = np.full(len(X), -1)
    for _ in range(_STEPS):
        nearest = np.square(X[:, np.newaxis] - centers).sum(axis=2).argmin(axis=1)
        if (nearest == labels).all():
            break
        labels = nearest
        centers = np.array([X[labels == j].mean(axis=0) if (labels == j).any() else center for j, center in enumerate(centers)])
    return labels, centers
