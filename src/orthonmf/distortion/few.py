"""The losses on few items that are held in memory, as the barrier flow needs them: all distances at once, and their gradient."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._common.arithmetic import relative_entropy
from .._common.typing import Array
from ..exceptions import InvalidInputError


class EuclideanCost:
    """d = ‖x − y‖² on weighted rows, taken about their mean so that an offset costs no accuracy."""

    def __init__(self, items: Array, weights: Array | None = None) -> None:
        self.weights = _checked_weights(items, weights)
        self._origin = self.weights @ items / self.weights.sum()
        self._points = items - self._origin

    def cost(self, centers: Array) -> Array:
        return _squared_distances(self._points, centers - self._origin)

    def center_gradient(self, resp: Array, centers: Array) -> Array:
        # 2 Σ_i ω_i p_ij (y_j − x_i)
        share = self.weights[:, None] * resp
        return 2.0 * (share.sum(axis=0)[:, None] * (centers - self._origin) - share.T @ self._points)

    def place(self, centers: Array) -> Array:
        return centers

    def spread(self, n_components: int) -> tuple[Array, Array]:
        return self._origin, _leading_directions(self._points, self.weights, n_components - 1)


class LineCost:
    """d = 1 − (x·u)² on weighted unit rows; rows of weight zero may be anything.

    With s = ‖x − u‖² it is x·u = 1 − s/2, so that d = s − s²/4 is as accurate as distances about the mean.
    """

    def __init__(self, items: Array, weights: Array | None = None) -> None:
        self.weights = _checked_weights(items, weights)
        self._items = items
        self._origin = self.weights @ items / self.weights.sum()
        self._points = items - self._origin

    def cost(self, centers: Array) -> Array:
        squared = _squared_distances(self._points, centers - self._origin)
        return np.maximum(squared - 0.25 * squared**2, 0.0)

    def center_gradient(self, resp: Array, centers: Array) -> Array:
        # −2 Σ_i ω_i p_ij (x_i·u_j) x_i, less its part along u_j: the sphere knows no other slope.
        share = self.weights[:, None] * resp * (self._items @ centers.T)
        slope = -2.0 * share.T @ self._items
        return slope - np.einsum("jd,jd->j", slope, centers)[:, None] * centers

    def place(self, centers: Array) -> Array:
        return centers / np.linalg.norm(centers, axis=1, keepdims=True)

    def spread(self, n_components: int) -> tuple[Array, Array]:
        leading = _leading_directions(self._items, self.weights, n_components)
        return leading[0] * (1.0 if leading[0].sum() >= 0 else -1.0), leading[1:]


class DivergenceCost:
    """d = D(x‖c) on weighted rows √(2x), for centres √(2c), of which none has less than ``least`` under the logarithm."""

    def __init__(self, items: Array, weights: Array, place: Callable[[Array], Array], least: Array) -> None:
        self.weights = _checked_weights(items, weights)
        self._items, self._place, self._least = np.square(items) / 2, place, least

    def cost(self, centers: Array) -> Array:
        return np.column_stack([self._away(np.square(center) / 2) for center in centers])

    def _away(self, mean: Array) -> Array:
        """D(x‖c) of every item."""
        floored = np.maximum(mean, self._least)
        terms = relative_entropy(self._items, floored)
        return np.maximum((terms + np.where(self._items > 0, mean - floored, mean)).sum(axis=1), 0.0)

    def center_gradient(self, resp: Array, centers: Array) -> Array:
        # mass y − 2 Σ q x / y, which for profiles is tangent as it is
        share = self.weights[:, None] * resp
        pull = np.divide(share.T @ self._items, centers, out=np.zeros_like(centers), where=np.square(centers) / 2 > self._least)
        return share.sum(axis=0)[:, None] * centers - 2 * pull

    def place(self, centers: Array) -> Array:
        return self._place(centers)

    def spread(self, n_components: int) -> tuple[Array, Array]:
        mean = self._place(np.sqrt(2 * self.weights @ self._items / self.weights.sum())[None])[0]
        # z = (x − c) / y, of which items differ as they do by squared distances
        away = np.divide(self._items - np.square(mean) / 2, mean, out=np.zeros_like(self._items), where=np.square(mean) / 2 > self._least)
        return mean, _leading_directions(away, self.weights, n_components - 1)


def _checked_weights(items: Array, weights: Array | None) -> Array:
    weights = np.ones(len(items)) if weights is None else weights
    if not (np.isfinite(items).all() and np.isfinite(weights).all()):
        raise InvalidInputError("Items and weights of the flow must be finite.")
    if weights.shape != (len(items),) or (weights < 0).any() or not weights.any():
        raise InvalidInputError(f"Expected {len(items)} weights >= 0, not all zero, got {weights}.")
    return weights


def _squared_distances(points: Array, centers: Array) -> Array:
    squared = np.einsum("id,id->i", points, points)[:, None] + np.einsum("jd,jd->j", centers, centers)
    return np.maximum(squared - 2.0 * (points @ centers.T), 0.0)


def _leading_directions(points: Array, weights: Array, count: int, rounds: int = 20) -> Array:
    """Roughly the leading right singular vectors, by subspace iteration from a fixed start."""
    dims = points.shape[1]
    basis = np.cos(np.outer(np.arange(1, dims + 1), np.arange(1, min(count, dims) + 1)))
    for _ in range(rounds):
        basis = np.linalg.qr(points.T @ (weights[:, None] * (points @ basis)))[0]
    return basis.T
