"""Dense arrays: blocks of rows of an array, or of its transposed view, never copied whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce as fold
from operator import add
from typing import Any, Self

import numpy as np

from .._common.arithmetic import by_label, entropy_growth, relative_entropy, shifted
from .._common.typing import Array, Labels
from .base import OUTER_BYTES, Engine, Framing, block_weight, multipliers, scrambled
from .layout import in_memory
from .threads import ThreadTeam

# Of items of many bytes, what frames them (28 bytes) is kept between passes, where they themselves are too many to be kept framed.
WIDE_BYTES = 112
# Items lie loosely about the reference where none has less than this share of its length beside it: what is computed of them as they were
# given rounds by ε of their length, which is at most 64 ε of what it would be of the rest.
LOOSE = 2.0**-6
# Between 2 to this power and its inverse, products with items that were not scaled neither overflow nor vanish.
PLAIN_SHIFT = 32


@dataclass(frozen=True)
class _How:
    """What frames the items of a block: x' = factor · x − along · ref; None stands for ones.

    Where the items lie ``loosely`` about the reference, this stays a formula.
    """

    factor: Array | None
    along: Array | None
    ref: Array
    loosely: bool = False


@dataclass(frozen=True)
class DenseRows:
    """Framed items of one block, formed explicitly so that nothing cancels later; and how they were, where that is known."""

    values: Array
    how: _How | None = None

    def dot(self, vectors: Array) -> Array:
        return vectors.astype(self.values.dtype, copy=False) @ self.values.T

    def own(self, vectors: Array, labels: Labels) -> Array:
        return self.dot(vectors)[labels, np.arange(len(labels), like=labels)]

    def tdot(self, weights: Array) -> Array:
        return weights @ self.values

    def sqnorms(self) -> Array:
        return np.einsum("ij,ij->i", self.values, self.values)

    def growth(self, weight: Array, vectors: Array, labels: Labels | None = None) -> Array:
        part = self.values * weight[:, None]
        if labels is not None:
            return entropy_growth(part, by_label(vectors, labels)).sum(axis=1)
        return np.stack([entropy_growth(part, vector).sum(axis=1) for vector in vectors])

    def take(self, index: Any) -> Array:
        return self.values[index].astype(np.float64)


@dataclass(frozen=True)
class LooseRows(DenseRows):
    """Items of one block that lie loosely about the reference, but for a factor ``unit``: what would frame them acts on what they give."""

    how: _How
    unit: float = 1.0

    @property
    def _factor(self) -> Any:
        """By which each item is multiplied."""
        return self.unit if self.how.factor is None else (self.unit * self.how.factor).astype(self.values.dtype)

    def dot(self, vectors: Array) -> Array:
        # x'·v = factor (x·v) − along (ref·v)
        inner = super().dot(vectors)
        inner *= self._factor
        common = (vectors @ self.how.ref).astype(inner.dtype)[:, None]
        inner -= common if self.how.along is None else common * self.how.along.astype(inner.dtype, copy=False)
        return inner

    def tdot(self, weights: Array) -> Array:
        whole = weights.sum(axis=1) if self.how.along is None else weights @ self.how.along
        return super().tdot(weights * self._factor) - np.multiply.outer(whole, self.how.ref)

    def sqnorms(self) -> Array:
        rest = self.take(np.arange(len(self.values)))
        return np.einsum("ij,ij->i", rest, rest)

    def growth(self, weight: Array, vectors: Array, labels: Labels | None = None) -> Array:
        return super().growth(weight * self._factor, vectors, labels)

    def take(self, index: Any) -> Array:
        rest = super().take(index) * self.unit
        if self.how.factor is not None:
            rest *= self.how.factor[index][:, None]
        return rest - (self.how.ref if self.how.along is None else np.multiply.outer(self.how.along[index], self.how.ref))


@dataclass(frozen=True)
class DenseRawRows:
    """Items of one block, times a power of two."""

    values: Array

    def __len__(self) -> int:
        return len(self.values)

    def project(self, ref: Array) -> Array:
        return self.values @ ref.astype(self.values.dtype, copy=False)

    def sqnorms(self) -> Array:
        return np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64)

    def total(self, weight: Array) -> Array:
        return weight @ self.values.astype(np.float64, copy=False)

    def framed(self, factor: Array | None, along: Array | None, ref: Array) -> DenseRows:
        # In float64 also for float32 items: the rounding of along · ref would be as large as what is left of x.
        rest = self.values.astype(np.float64) if factor is None else self.values * factor[:, None]
        rest -= ref if along is None else np.multiply.outer(np.asarray(along, like=self.values), ref)
        return DenseRows(rest.astype(self.values.dtype, copy=False), _How(factor, along, ref))

    def residual_sq(self, scale: Array, labels: Labels, components: Array) -> Array:
        rest = by_label(components, labels)
        rest *= -scale[:, None]
        rest += self.values
        return np.einsum("ij,ij->i", rest, rest)

    def sums(self) -> Array:
        return self.values.sum(axis=1, dtype=np.float64)

    def divergence(self, scale: Array, labels: Labels, components: Array, least: Array) -> Array:
        means, items = by_label(components, labels), self.values.astype(np.float64, copy=False)
        floored = np.maximum(means, least)
        means *= scale[:, None]
        floored *= scale[:, None]
        return (relative_entropy(items, floored) + np.where(items > 0, means - floored, means)).sum(axis=1)

    def pearson(self, scale: Array, labels: Labels, components: Array, least: Array) -> Array:
        centers = by_label(components, labels)
        means, floored = centers * scale[:, None], np.maximum(centers, least) * scale[:, None]
        return np.divide(np.square(self.values - means), floored, out=np.zeros_like(means), where=floored > 0).sum(axis=1)

    def times(self, factor: Array, dim_factor: Array) -> Array:
        return self.values.astype(np.float64) * factor[:, None] * dim_factor

    def rooted(self) -> DenseRawRows:
        return DenseRawRows(np.sqrt(self.values.astype(np.float64)))

    def gram(self, weight: Array, ref: Array | None) -> Array:
        rest = self.values.astype(np.float64, copy=False)
        if ref is not None or (weight != 1).any():
            rest = _weighted(rest.copy() if rest is self.values else rest, weight, ref)
        return rest.T @ rest

    def inner(self, labels: Labels, centers: Array) -> Array:
        return np.einsum("ij,ij->i", self.values, by_label(centers, labels), dtype=np.float64)

    def keys(self) -> Array:
        # + 0.0 turns −0.0 into 0.0; the sum wraps around modulo 2**64
        values = self.values.astype(np.float64)
        values += 0.0
        bits = scrambled(values.view(np.uint64))
        bits *= multipliers(bits.shape[1])
        return bits.sum(axis=1)


def _loosened(rows: DenseRows, raw: DenseRawRows) -> _How:
    """What framed the items of a block; where they lie loosely about the reference, it need not be done again."""
    how: Any = rows.how
    length = np.sqrt(raw.sqnorms()) if how.factor is None else np.sqrt(raw.sqnorms()) * how.factor
    return replace(how, loosely=bool((np.sqrt(rows.sqnorms()) >= LOOSE * length).all()))


class DenseEngine(Engine):
    """Items are the rows of ``array``, an (n_items, n_dims) array or view of any strides.

    Parameters
    ----------
    array : ndarray of shape (n_items, n_dims)
    weight : ndarray of shape (n_items,) or None
    dim_factor : ndarray of shape (n_dims,) or None
        Multiplies every item, dimension by dimension.
    shift : int
    team : ThreadTeam
    """

    in_memory = "dense"

    def __init__(
        self,
        array: Array,
        weight: Array | None = None,
        *,
        dim_factor: Array | None = None,
        shift: int = 0,
        team: ThreadTeam,
    ) -> None:
        self._array, self._dim_factor = array, dim_factor
        self.row_width = array.shape[1]
        super().__init__(array.shape[0], array.shape[1], array.dtype, weight, shift, team)

    @classmethod
    def of(cls, items: Array, weight: Array | None, dim_factor: Array | None, shift: int, team: ThreadTeam) -> Self:
        return cls(items, weight, dim_factor=dim_factor, shift=shift, team=team)

    def rows(self, where: slice) -> DenseRawRows:
        return DenseRawRows(self._scaled(self._given(where)))

    def _given(self, where: slice) -> Array:
        """The items of one block as they were given."""
        return np.ascontiguousarray(self._array[where], self.dtype)

    def _items(self, framing: Framing, where: slice) -> Any:
        if self._kept_whole or self.frames_are_few or not self.lasting or self.row_width * self.dtype.itemsize < WIDE_BYTES:
            return super()._items(framing, where)
        before, kept = self._kept.get((None, where.start), (None, None))
        if before is not framing:
            items = super()._items(framing, where)
            kept = replace(items, rows=_loosened(items.rows, self.rows(where)))
            self._kept[None, where.start] = framing, kept
        how: _How = kept.rows
        if not how.loosely:
            return replace(kept, rows=self.rows(where).framed(how.factor, how.along, how.ref))
        if self._dim_factor is None and abs(self.shift) <= PLAIN_SHIFT:
            return replace(kept, rows=LooseRows(self._given(where), how, 2.0**self.shift))
        return replace(kept, rows=LooseRows(self.rows(where).values, how))

    def select(self, index: Labels) -> Engine:
        weight = None if self.weight is None else self.weight[index]
        values = np.empty((len(index), self.n_dims))
        height = max(OUTER_BYTES // (8 * max(self.n_dims, 1)), 1)
        for start in range(0, len(index), height):  # so that no second copy is made of many
            where = slice(start, start + height)
            values[where] = self._scaled(self._array[index[where]].astype(np.float64))
        return in_memory(self, values, weight)

    def outer(self, ref: Array | None, *, rooted: bool = False) -> Array:
        width = max(OUTER_BYTES // (8 * self.n_items), 1)

        def part(start: int) -> Array:
            where = slice(start, start + width)
            values = self._scaled(self._array[:, where].astype(np.float64), where)
            values = np.sqrt(values) if rooted else values
            rest = _weighted(values, block_weight(self, slice(0, self.n_items)), None if ref is None else ref[where])
            return rest @ rest.T

        return fold(add, self.team.map(part, range(0, self.n_dims, width)))

    def _scaled(self, block: Array, where: slice = slice(None)) -> Array:
        block = shifted(block, self.shift)
        return block if self._dim_factor is None else (block * self._dim_factor[where]).astype(block.dtype, copy=False)


def _weighted(values: Array, weight: Array, ref: Array | None) -> Array:
    """√weight (x − ref), in the place of the values."""
    if ref is not None:
        values -= ref
    values *= np.sqrt(weight)[:, None]
    return values
