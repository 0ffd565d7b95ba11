"""Arrays with missing values: what is NaN is there for no sum, and beside the numbers of a block lies which of them there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arithmetic import entropy_growth, relative_entropy
from .._common.typing import Array, Labels
from .base import Engine, Framing
from .dense import DenseEngine, DenseRawRows


@dataclass(frozen=True)
class MaskedRows:
    """Items of one block in a frame, 0 where they are missing, and 1 where they are ``there`` (block, n_dims), in float64."""

    values: Array
    there: Array

    def dot(self, vectors: Array) -> Array:
        return vectors @ self.values.T

    def own(self, vectors: Array, labels: Labels) -> Array:
        return self.dot(vectors)[labels, np.arange(len(labels))]

    def tdot(self, weights: Array) -> Array:
        return weights @ self.values

    def seen(self, vectors: Array) -> Array:
        return vectors @ self.there.T

    def own_seen(self, vectors: Array, labels: Labels) -> Array:
        return self.seen(vectors)[labels, np.arange(len(labels))]

    def tseen(self, weights: Array) -> Array:
        return weights @ self.there

    def sqnorms(self) -> Array:
        return np.einsum("ij,ij->i", self.values, self.values)

    def growth(self, weight: Array, vectors: Array, labels: Labels | None = None) -> Array:
        part = self.values * weight[:, None]
        if labels is not None:
            return entropy_growth(part, vectors[labels]).sum(axis=1)
        return np.stack([entropy_growth(part, vector).sum(axis=1) for vector in vectors])

    def take(self, index: Any) -> Array:
        return self.values[index]


@dataclass(frozen=True)
class MaskedRawRows(DenseRawRows):
    """Items of one block, times a power of two: 0 where they are missing, and whether they are ``there`` (block, n_dims)."""

    there: Array

    def present(self, factor: Array | None, ref: Array) -> MaskedRows:
        there = self.there.astype(np.float64)
        values = self.values.astype(np.float64) if factor is None else self.values * factor[:, None]
        if ref.any():
            values -= there * ref
        return MaskedRows(values, there)

    def presence(self, weight: Array) -> Array:
        return weight @ self.there

    def within(self, labels: Labels, vectors: Array) -> Array:
        return np.einsum("ij,ij->i", self.there, vectors[labels])

    def residual_sq(self, scale: Array, labels: Labels, components: Array) -> Array:
        rest = components[labels]
        rest *= -scale[:, None]
        rest += self.values
        rest *= self.there
        return np.einsum("ij,ij->i", rest, rest)

    def divergence(self, scale: Array, labels: Labels, components: Array, least: Array) -> Array:
        means, items = components[labels] * scale[:, None], self.values.astype(np.float64, copy=False)
        floored = np.maximum(components[labels], least) * scale[:, None]
        terms = relative_entropy(items, floored) + np.where(items > 0, means - floored, means)
        return (terms * self.there).sum(axis=1)

    def pearson(self, scale: Array, labels: Labels, components: Array, least: Array) -> Array:
        means = components[labels] * scale[:, None]
        floored = np.maximum(components[labels], least) * scale[:, None]
        return np.divide(np.square(self.values - means), floored, out=np.zeros_like(means), where=(floored > 0) & self.there).sum(axis=1)

    def rooted(self) -> MaskedRawRows:
        return MaskedRawRows(np.sqrt(self.values.astype(np.float64)), self.there)

    def keys(self) -> Array:
        # of the numbers with one and the same NaN
        return DenseRawRows(np.where(self.there, self.values.astype(np.float64), np.nan)).keys()


class MaskedEngine(DenseEngine):
    """Items are the rows of ``array``, an (n_items, n_dims) array or view of any strides, in which NaN is a missing value.

    Losses of the numbers that are there ask its rows for more than others do (``PartialRows``). To every other, a missing number is 0.
    """

    in_memory = "masked"

    def rows(self, where: slice) -> MaskedRawRows:
        values = super().rows(where).values
        # Numbers are not negative: the larger of one and 0 is itself, and 0 where there is none.
        return MaskedRawRows(np.fmax(values, values.dtype.type(0)), values == values)

    def outer(self, ref: Array | None, *, rooted: bool = False) -> Array:
        plain = DenseEngine(np.nan_to_num(self._array), self.weight, dim_factor=self._dim_factor, shift=self.shift, team=self.team)
        return plain.outer(ref, rooted=rooted)

    def _items(self, framing: Framing, where: slice) -> Any:
        return Engine._items(self, framing, where)
