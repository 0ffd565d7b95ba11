"""Clusters within groups: data with two right answers to the number of components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.typing import Array, Labels
from ._checks import check_count, check_nonnegative

__all__ = ["NestedData", "make_nested"]


@dataclass(frozen=True)
class NestedData:
    """Samples around cluster centres, which lie around group centres.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, nonnegative.
    group_labels : ndarray of shape (n_samples,)
        The group of each sample, the coarse answer.
    cluster_labels : ndarray of shape (n_samples,)
        The cluster of each sample, the fine answer; cluster j belongs to group ``j // n_clusters``.
    group_centers : ndarray of shape (n_groups, n_features)
        Where the groups lie.
    cluster_centers : ndarray of shape (n_groups * n_clusters, n_features)
        Where the clusters lie.

    Examples
    --------
    >>> data = make_nested(64, 10, random_state=0)
    >>> data.X.shape, data.group_centers.shape
    ((64, 10), (4, 10))
    >>> bool((data.cluster_labels // 4 == data.group_labels).all())
    True
    """

    X: Array
    group_labels: Labels
    cluster_labels: Labels
    group_centers: Array
    cluster_centers: Array


def make_nested(
    n_samples: int,
    n_features: int,
    *,
    n_groups: int = 4,
    n_clusters: int = 4,
    group_spread: float = 10.0,
    cluster_spread: float = 2.0,
    noise_spread: float = 0.2,
    random_state: int | np.random.Generator | None = None,
) -> NestedData:
    """Draw Gaussian clusters around Gaussian clusters, moved by one constant to be nonnegative.

    The structure is one of Euclidean distances (``scaling="none"``), which the constant leaves unchanged.
    Centres are drawn at random, so the levels are separated only where the spreads differ enough for
    `n_features`: with the defaults, from some ten features on.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X; `n_samples` is at least ``n_groups * n_clusters``.
    n_groups : int, default=4
        Number of groups.
    n_clusters : int, default=4
        Number of clusters in each group. All clusters have the same number of samples, up to one.
    group_spread, cluster_spread, noise_spread : float, default=10.0, 2.0, 0.2
        Standard deviation, for each feature, of the groups' centres, of the clusters' centres about their
        group's, and of the samples about their cluster's.
    random_state : int, Generator or None, default=None
        Seed of the draw. An int gives the same data every time.

    Returns
    -------
    NestedData
        The data with the labels and centres of both levels.

    Examples
    --------
    >>> data = make_nested(64, 10, random_state=0)
    >>> np.bincount(data.group_labels), len(data.cluster_centers)
    (array([16, 16, 16, 16]), 16)
    """
    check_count("n_features", n_features)
    check_count("n_groups", n_groups)
    check_count("n_clusters", n_clusters)
    check_count("n_samples", n_samples)
    check_count("n_groups * n_clusters", n_groups * n_clusters, at_most=n_samples, why=" (n_samples)")
    check_nonnegative("group_spread", group_spread)
    check_nonnegative("cluster_spread", cluster_spread)
    check_nonnegative("noise_spread", noise_spread)

    rng = np.random.default_rng(random_state)
    n_leaves = n_groups * n_clusters
    groups = rng.normal(scale=group_spread, size=(n_groups, n_features))
    clusters = np.repeat(groups, n_clusters, axis=0)
    clusters += rng.normal(scale=cluster_spread, size=clusters.shape)
    cluster_labels = rng.permutation(np.arange(n_samples) % n_leaves)
    X = clusters[cluster_labels] + rng.normal(scale=noise_spread, size=(n_samples, n_features))

    offset = min(X.min(), clusters.min(), groups.min())
    return NestedData(
        X=X - offset,
        group_labels=cluster_labels // n_clusters,
        cluster_labels=cluster_labels,
        group_centers=groups - offset,
        cluster_centers=clusters - offset,
    )
