"""Data of the form that orthogonal NMF assumes: every sample is one centre, times a scale, plus noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._common.typing import Array, Labels
from ..exceptions import InvalidInputError
from ._checks import check_count, check_nonnegative

__all__ = ["OnmfData", "make_onmf"]


@dataclass(frozen=True)
class OnmfData:
    """X = scale · centers[labels] + noise, with what it was made from.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, nonnegative.
    labels : ndarray of shape (n_samples,)
        The component of each sample.
    centers : ndarray of shape (n_components, n_features)
        The components.
    scale : ndarray of shape (n_samples,)
        The factor on the centre of each sample; ones where samples have no scale of their own.

    Examples
    --------
    >>> data = make_onmf(6, 4, 3, item_scale=2.0, random_state=0)
    >>> bool(np.allclose(data.X, data.scale[:, None] * data.centers[data.labels]))
    True
    """

    X: Array
    labels: Labels
    centers: Array
    scale: Array


def make_onmf(
    n_samples: int,
    n_features: int,
    n_components: int,
    *,
    noise: float = 0.0,
    sizes: Sequence[float] | None = None,
    item_scale: float | None = None,
    center_shape: float = 10.0,
    random_state: int | np.random.Generator | None = None,
) -> OnmfData:
    """Draw samples from components with entries Gamma(`center_shape`, 1).

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    n_components : int
        Number of components, at most `n_samples`; none is empty.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise on each entry; what falls below 0 is clipped to 0.
    sizes : sequence of float, default=None
        Relative sizes of the components, repeated as needed: (20, 5, 1) with five components means
        20 : 5 : 1 : 20 : 5. None means equal sizes. Counts are these proportions of `n_samples`, rounded by
        largest remainder; the order of the samples is random.
    item_scale : float, default=None
        Shape a of the scales Gamma(a, 1/a), of mean 1 and variance 1/a, one per sample. None means all 1.
    center_shape : float, default=10.0
        Shape of the Gamma distribution of the centres' entries: the smaller, the sparser.
    random_state : int, Generator or None, default=None
        Seed of the draw. An int gives the same data every time.

    Returns
    -------
    OnmfData
        The data, labels, centres and scales.

    Examples
    --------
    >>> data = make_onmf(6, 4, 3, sizes=(3, 2, 1), random_state=0)
    >>> np.bincount(data.labels)
    array([3, 2, 1])
    """
    check_count("n_samples", n_samples)
    check_count("n_features", n_features)
    check_count("n_components", n_components, at_most=n_samples, why=" (n_samples)")
    check_nonnegative("noise", noise)
    check_nonnegative("center_shape", center_shape, positive=True)
    if item_scale is not None:
        check_nonnegative("item_scale", item_scale, positive=True)
    counts = _counts(n_samples, _proportions(sizes, n_components))

    rng = np.random.default_rng(random_state)
    centers = rng.gamma(center_shape, size=(n_components, n_features))
    labels = rng.permutation(np.repeat(np.arange(n_components), counts))
    scale = np.ones(n_samples) if item_scale is None else rng.gamma(item_scale, 1 / item_scale, n_samples)
    X = scale[:, np.newaxis] * centers[labels]
    if noise > 0:
        X = np.maximum(X + rng.normal(scale=noise, size=X.shape), 0.0)
    return OnmfData(X=X, labels=labels, centers=centers, scale=scale)


def _proportions(sizes: Sequence[float] | None, n_components: int) -> Array:
    """Relative sizes, one per component, summing to 1."""
    ratios = np.asarray([1.0] if sizes is None else sizes, dtype=np.float64)
    valid = ratios.ndim == 1 and 1 <= ratios.size <= n_components and np.isfinite(ratios).all()
    if not valid or ratios.min() <= 0:
        raise InvalidInputError(
            f"sizes={sizes!r}, expected 1 to {n_components} (n_components) positive numbers in one sequence: "
            "leave out the components that should be empty."
        )
    ratios = np.resize(ratios / ratios.max(), n_components)
    return ratios / ratios.sum()


def _counts(n: int, proportions: Array) -> Labels:
    """Integers ≥ 1 that sum to n: one each, the others in proportion by largest remainder."""
    # What each proportion asks for beyond its first item; those that ask for less than one get just that one.
    excess = np.maximum(n * proportions - 1.0, 0.0)
    spare = n - len(proportions)
    shares = excess * (spare / excess.sum()) if spare else np.zeros(len(proportions))
    counts = np.floor(shares).astype(np.intp)
    largest = np.argsort(counts - shares, kind="stable")[: spare - counts.sum()]
    counts[largest] += 1
    return counts + 1
