"""The data in the order of the components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._common.typing import Array, Labels
from ..model.terms import distinctiveness
from .shown import Shown
from .words import noun

__all__ = ["Heat"]

# Features that are drawn where there are more, and of each component at least so many: the names stay readable.
ROWS, LEAST_ROWS = 40, 2
# Of many features, those that tell less than this part of what the best of a component does are left out: all cells have some.
TELLING = 0.25
# Blocks of samples side by side: finer ones would be narrower than a pixel of a phone.
COLUMNS = 160


@dataclass(frozen=True)
class Heat:
    """Means of the data over blocks of samples, features in rows and samples in columns, both by component.

    Attributes
    ----------
    means : ndarray of shape (n_rows, n_blocks)
        In units of the largest of their row.
    features : ndarray of shape (n_rows,)
        Which features these are.
    parts : ndarray of shape (n_rows,)
        The component that each feature speaks for, or is in.
    sizes : ndarray of shape (n_blocks,)
        Samples in each block.
    groups : ndarray of shape (n_blocks,)
        The component of each block.
    n_shown, n_samples, n_features : int
        Samples that were looked at, and all.
    """

    means: Array
    features: Labels
    parts: Labels
    sizes: Labels
    groups: Labels
    n_shown: int
    n_samples: int
    n_features: int

    @classmethod
    def of(cls, factors: Any, shown: Shown) -> Heat:
        """The heat map of some samples of a fit."""
        features, parts = _features(factors)
        groups, order = _samples(factors, shown)
        blocks = [block for j in np.unique(groups) for block in _cut(order[groups[order] == j], len(order))]
        sizes = np.array([len(block) for block in blocks])
        place = np.concatenate(blocks)
        one_hot = sparse.csr_array((np.ones(len(place)), (np.repeat(np.arange(len(blocks)), sizes), place)))
        chosen = one_hot @ shown.X[:, features]
        means = np.asarray(chosen.todense() if sparse.issparse(chosen) else chosen).T / sizes
        top = means.max(axis=1, keepdims=True)
        return cls(
            means=np.divide(means, top, out=np.zeros_like(means), where=top > 0),
            features=features,
            parts=parts,
            sizes=sizes,
            groups=groups[[block[0] for block in blocks]],
            n_shown=len(shown.index),
            n_samples=shown.n_samples,
            n_features=factors.n_features_in_,
        )


def _features(factors: Any) -> tuple[Labels, Labels]:
    """The features that are drawn, component after component, and whose they are: those that tell most, or of each part the heaviest."""
    scores = distinctiveness(factors.components_)
    if noun(factors) == "feature":
        part, score = factors.labels_, scores.max(axis=0)
    else:
        part, score = scores.argmax(axis=0), scores.max(axis=0)
    many = len(part) > ROWS
    each = max(LEAST_ROWS, ROWS // factors.n_components_) if many else len(part)
    chosen = []
    for j, row in enumerate(scores):
        own = np.flatnonzero((part == j) & (factors.components_[j] > 0) & (score >= TELLING * row.max() if many else True))
        chosen.append(own[np.argsort(-score[own], kind="stable")][:each])
    features = np.concatenate(chosen).astype(np.intp)
    return features, part[features]


def _samples(factors: Any, shown: Shown) -> tuple[Labels, Labels]:
    """The component of each sample that is shown, and an order in which the clearest of it come first.

    Where features are assigned, a sample counts to the part that it has most of.
    """
    if noun(factors) == "sample":
        clear = np.zeros(len(shown.index)) if factors.margin_ is None else factors.margin_[shown.index]
        return factors.labels_[shown.index], np.argsort(-clear, kind="stable")
    amounts = np.asarray(shown.X @ factors.components_.T.astype(np.float64))
    most, total = amounts.max(axis=1), amounts.sum(axis=1)
    return amounts.argmax(axis=1), np.argsort(-np.divide(most, total, out=np.zeros_like(most), where=total > 0), kind="stable")


def _cut(places: Labels, n_shown: int) -> list[Labels]:
    """Blocks of about the same size, as many as their part of all columns, one at least."""
    return np.array_split(places, min(max(round(COLUMNS * len(places) / n_shown), 1), len(places)))
