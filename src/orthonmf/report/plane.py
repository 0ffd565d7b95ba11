"""The items as dots in a plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._common.typing import Array, Labels
from ..distortion import loss_of
from .shown import MOST_ITEMS, Shown, evenly
from .words import noun

__all__ = ["Plane"]

# Steps towards the direction in which items spread most; it need not be exact, only at right angles to the others.
POWER_STEPS = 50
# Directions in which the means spread less than this part of the most are rounding.
NO_SPREAD = 1e-9


@dataclass(frozen=True)
class Plane:
    """Items projected on the plane in which the means of the components lie farthest apart.

    With the items as the loss sees them (where each keeps its own scale, divided by their lengths), their mean m, and the means y_j of
    the n_j items of each component, the plane holds the two leading eigenvectors of Σ_j n_j (y_j − m)(y_j − m)ᵀ. Where there are fewer,
    the directions in which the items themselves spread most follow.

    Attributes
    ----------
    points : ndarray of shape (n_shown, 2)
    index : ndarray of shape (n_shown,)
        Which items these are.
    labels : ndarray of shape (n_shown,)
    margin : ndarray of shape (n_shown,) or None
        How clear it is where each belongs.
    share : float
        Of the variance of the items that are shown, what is seen in the plane.
    between : float
        Of the variance between the means of the components.
    n_items : int
    """

    points: Array
    index: Labels
    labels: Labels
    margin: Array | None
    share: float
    between: float
    n_items: int

    @classmethod
    def of(cls, factors: Any, shown: Shown) -> Plane:
        """The items of a fit, or an even choice of them."""
        index, items = shown.index, shown.X
        if noun(factors) == "feature":
            index = evenly(factors.labels_, MOST_ITEMS)
            items = items.T[index]
        items = _unit(items) if loss_of(factors).scaled else items
        labels, mean = factors.labels_[index], np.asarray(items.mean(axis=0)).ravel()
        axes, between = _between(items, mean, labels)
        axes = _completed(items, mean, axes)
        points = np.asarray(items @ axes.T) - mean @ axes.T
        total = float(_squares(items).sum() - len(index) * mean @ mean)
        share = float(np.square(points).sum() / total) if total > 0 else 1.0
        margin = None if factors.margin_ is None else factors.margin_[index].astype(np.float64)
        return cls(points, index, labels, margin, min(share, 1.0), between, len(factors.labels_))


def _squares(items: Any) -> Array:
    return np.asarray((items.multiply(items) if sparse.issparse(items) else items * items).sum(axis=1)).ravel()


def _unit(items: Any) -> Any:
    """Every item divided by its length; one that is all zero stays."""
    size = np.sqrt(_squares(items))
    return sparse.diags_array(1 / np.where(size > 0, size, 1.0)) @ items


def _between(items: Any, mean: Array, labels: Labels) -> tuple[Array, float]:
    """The directions, two at most, in which the means of the components spread most, and their share of that spread."""
    used, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    one_hot = sparse.csr_array((np.ones(len(labels)), (place, np.arange(len(labels)))), shape=(len(used), len(labels)))
    means = np.asarray((one_hot @ items).todense() if sparse.issparse(items) else one_hot @ items) / counts[:, None]
    _, spread, axes = np.linalg.svd(np.sqrt(counts)[:, None] * (means - mean), full_matrices=False)
    kept = axes[:2][spread[:2] > NO_SPREAD * max(float(np.sqrt(_squares(items).sum())), np.finfo(float).tiny)]
    seen = float(np.square(spread[: len(kept)]).sum() / max(np.square(spread).sum(), np.finfo(float).tiny))
    signs = np.sign(kept[np.arange(len(kept)), np.abs(kept).argmax(axis=1)])
    return kept * signs[:, None], seen if len(kept) else 1.0


def _completed(items: Any, mean: Array, axes: Array) -> Array:
    """Two directions: those given, then those in which the items spread most at right angles to them; zero where they spread no more."""
    for _ in range(2 - len(axes)):
        # Whatever the items are, a vector that no few of them are at right angles to.
        direction = np.cos(np.arange(items.shape[1]))
        for _ in range(POWER_STEPS):
            direction = direction - axes.T @ (axes @ direction)
            size = float(np.linalg.norm(direction))
            if size == 0:
                break
            along = items @ (direction / size) - mean @ (direction / size)
            direction = np.asarray(items.T @ along) - mean * along.sum()
        direction = direction - axes.T @ (axes @ direction)
        size = float(np.linalg.norm(direction))
        axes = np.vstack([axes, direction / size if size > NO_SPREAD * items.shape[0] else np.zeros(items.shape[1])])
    return axes
