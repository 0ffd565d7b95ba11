"""Compressed sparse rows, never densified (but for a few that are chosen): the frame x' = factor · x − along · ref stays a formula."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from .._common.arithmetic import by_label, entropy_growth, relative_entropy, shifted
from .._common.typing import Array, Labels
from .base import OUTER_BYTES, Engine, block_weight, doubled, multipliers, scrambled
from .layout import in_memory
from .threads import ThreadTeam

# A block stores so many numbers for each dimension, at least.
NUMBERS_PER_DIMENSION = 16
# Weights of at most so many sums for each item, on average, are multiplied as a sparse matrix: the others are 0.
FEW_PER_ITEM = 2
# Where an item stores less than all but this fraction of the squared norm of its component, what it misses is a plain difference.
LITTLE = 0.1
# Chosen items of so few numbers, zeros among them, are held as a dense array: a product of sparse ones is all overhead.
DENSE_NUMBERS = 1 << 16


@dataclass(frozen=True)
class Entries:
    """What is computed of every number that a block stores."""

    matrix: Any

    @cached_property
    def rows(self) -> Any:
        """The row of every stored entry."""
        return np.repeat(np.arange(self.matrix.shape[0]), np.diff(self.matrix.indptr))

    def summed(self, values: Any) -> Any:
        """Numbers of the stored entries, added row by row, in float64."""
        return np.bincount(self.rows, values, self.matrix.shape[0]).astype(np.float64, copy=False)

    def beside(self, vectors: Array, labels: Labels) -> Any:
        """What the vector of each item's label has at the stored entries."""
        return np.asarray(vectors, like=self.matrix.data)[labels[self.rows], self.matrix.indices]

    def inner(self, labels: Labels, centers: Array) -> Array:
        """x · centers[labels], item by item, in float64."""
        return self.summed(self.matrix.data * self.beside(centers, labels))


@dataclass(frozen=True)
class SparseRows(Entries):
    """Framed items of one block: factor and along act on the results, not on the items."""

    raw: SparseRawRows
    factor: Array | None
    along: Array
    ref: Array

    def dot(self, vectors: Array) -> Array:
        inner = self._products(vectors)
        if self.factor is not None:
            inner *= self.factor
        if self.ref.any():  # x'·v = factor (x·v) − along (ref·v)
            inner -= np.multiply.outer(vectors @ self.ref, self.along)
        return inner.astype(self.matrix.dtype, copy=False)

    def _products(self, vectors: Array) -> Array:
        """Of the items as they are stored: shape (k, block)."""
        return np.ascontiguousarray((self.matrix @ vectors.T).T)

    def own(self, vectors: Array, labels: Labels) -> Array:
        inner = self.inner(labels, vectors)
        if self.factor is not None:
            inner *= self.factor
        return inner - by_label(vectors @ self.ref, labels) * self.along

    def tdot(self, weights: Array) -> Array:
        scaled = weights if self.factor is None else weights * self.factor
        if self._few(scaled):
            return self._sums_of_few(scaled, weights @ self.along)
        return (self.matrix.T @ scaled.T).T - np.multiply.outer(weights @ self.along, self.ref)

    def _few(self, weights: Array) -> bool:
        """Whether it is quicker to pass over the weights that are not 0."""
        return bool(np.count_nonzero(weights) <= FEW_PER_ITEM * weights.shape[1])

    def _sums_of_few(self, weights: Array, along: Array) -> Array:
        """Weighted sums of the items as they are stored, most of whose weights are 0, less ``along`` times the reference."""
        return (sp.csr_array(weights) @ self.matrix).toarray() - np.multiply.outer(along, self.ref)

    def sqnorms(self) -> Array:
        factor = 1.0 if self.factor is None else self.factor
        inner = factor * (self.matrix @ self.ref)
        sq = self.raw.sqnorms() * factor**2 - 2 * self.along * inner + self.along**2 * np.dot(self.ref, self.ref)
        return np.maximum(sq, 0.0).astype(self.matrix.dtype)

    def growth(self, weight: Array, vectors: Array, labels: Labels | None = None) -> Array:
        part = self.matrix.data * (weight if self.factor is None else weight * self.factor)[self.rows]
        if labels is not None:
            return self.summed(entropy_growth(part, self.beside(vectors, labels)))
        return np.stack([self.summed(entropy_growth(part, by_label(vector, self.matrix.indices))) for vector in vectors])

    def take(self, index: Any) -> Array:
        index = np.atleast_1d(index)
        dense = self.matrix[index].toarray().astype(np.float64)
        if self.factor is not None:
            dense *= self.factor[index][:, None]
        return dense - np.multiply.outer(self.along[index], self.ref)


@dataclass(frozen=True)
class SparseRawRows(Entries):
    """Items of one block, times a power of two."""

    #: What they are in a frame.
    kind: ClassVar[Any] = SparseRows

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def project(self, ref: Array) -> Array:
        return self.matrix @ ref

    def sqnorms(self) -> Array:
        return self._sq

    @cached_property
    def _sq(self) -> Array:
        squares = sp.csr_array((np.square(self.matrix.data), self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape)
        return squares @ np.ones(self.matrix.shape[1])

    def total(self, weight: Array) -> Array:
        return self.matrix.T @ weight

    def framed(self, factor: Array | None, along: Array | None, ref: Array) -> SparseRows:
        numbers = self.matrix.data
        along = np.ones(len(self), like=numbers) if along is None else np.asarray(along, like=numbers)
        return self.kind(self.matrix, self, factor, along, ref)

    def residual_sq(self, scale: Array, labels: Labels, components: Array) -> Array:
        stored, covered = self._stored_residual(scale, labels, components)
        # Squared norm of the component outside the stored entries.
        whole = by_label(np.einsum("ij,ij->i", components, components), labels)
        missed = whole - covered
        little = np.flatnonzero(missed < LITTLE * whole)
        if little.size:
            used, names = np.unique(labels[little], return_inverse=True)
            few = replace(self, matrix=self.matrix[little])
            missed[little] = few._missed(np.asarray(names, like=labels), components[used])
        return stored + scale**2 * missed

    def _stored_residual(self, scale: Array, labels: Labels, components: Array) -> tuple[Array, Array]:
        """Over the stored entries of every item, the squared norms of x − scale · component, and of the component."""
        values = self.beside(components, labels)
        return self.summed(np.square(self.matrix.data - values * scale[self.rows])), self.summed(np.square(values))

    def _missed(self, labels: Labels, components: Array) -> Array:
        """Squared norm of the component outside an item's stored entries; exactly 0 where they cover its support.

        Each entry is subtracted from those of its own size: the rounding of the large ones exceeds what is left of an item that its
        component explains exactly.
        """
        missed = np.zeros(len(self), like=self.matrix.data)
        for level in _levels(components):
            values = self.beside(level, labels)
            covered, hits = self.summed(np.square(values)), self.summed(values != 0)
            support = by_label(np.count_nonzero(level, axis=1), labels)
            whole = by_label(np.einsum("ij,ij->i", level, level), labels)
            missed += np.where(hits == support, 0.0, np.maximum(whole - covered, 0.0))
        return missed

    def sums(self) -> Array:
        return self.matrix @ np.ones(self.matrix.shape[1])

    def divergence(self, scale: Array, labels: Labels, components: Array, least: Array) -> Array:
        means, floored, items = self._means(labels, components, least)
        each = scale[self.rows]
        some = items > 0
        stored = relative_entropy(items, floored * each) + np.where(some, means - floored, means) * each
        return self.summed(stored) + scale * self._unstored(labels, components, means)

    def pearson(self, scale: Array, labels: Labels, components: Array, least: Array) -> Array:
        means, floored, items = self._means(labels, components, least)
        each = scale[self.rows]
        stored = np.divide(np.square(items - means * each), floored * each, out=np.zeros_like(items), where=each > 0)
        return self.summed(stored) + scale * self._unstored(labels, components, means)

    def _means(self, labels: Labels, components: Array, least: Array) -> tuple[Array, Array, Array]:
        """Of every stored entry what its component has there, that but no less than ``least``, and the entry."""
        means = self.beside(components, labels)
        return means, np.maximum(means, by_label(least, self.matrix.indices)), self.matrix.data

    def _unstored(self, labels: Labels, components: Array, means: Array) -> Array:
        """Σ of the component of each item outside its stored entries."""
        return np.maximum(by_label(components.sum(axis=1), labels) - self.summed(means), 0.0)

    def times(self, factor: Array, dim_factor: Array) -> Any:
        return sp.csr_array(sp.diags_array(factor) @ self.matrix @ sp.diags_array(dim_factor))

    def rooted(self) -> SparseRawRows:
        return SparseRawRows(sp.csr_array((np.sqrt(self.matrix.data), self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape))

    def gram(self, weight: Array, ref: Array | None) -> Array:
        scaled = sp.diags_array(np.sqrt(weight)) @ self.matrix.astype(np.float64)
        gram = (scaled.T @ scaled).toarray()
        if ref is None:
            return gram
        cross = np.multiply.outer(self.total(weight), ref)
        return gram - cross - cross.T + weight.sum() * np.multiply.outer(ref, ref)

    def keys(self) -> Array:
        bits = scrambled((self.matrix.data.astype(np.float64) + 0.0).view(np.uint64))
        mixed = bits * by_label(multipliers(self.matrix.shape[1]), self.matrix.indices)
        products = np.concatenate([np.zeros(1, dtype=np.uint64, like=mixed), np.cumsum(mixed)])
        return products[self.matrix.indptr[1:]] - products[self.matrix.indptr[:-1]]


class SparseEngine(Engine):
    """Items are the rows of a CSR matrix in canonical form, computed with in float64.

    Distances of rows that are not formed are small differences of squared norms, so float32 would hold nothing of items far from zero and
    near to each other. It would not be quicker either: SciPy converts float32 items to multiply them with float64 centres.
    """

    reads_sparse = True
    forms_rows = False

    @classmethod
    def of(cls, items: Any, weight: Array | None, dim_factor: Array | None, shift: int, team: ThreadTeam) -> Self:
        if dim_factor is not None:
            scaled = sp.csr_array((items.data * dim_factor[items.indices], items.indices, items.indptr), shape=items.shape)
            items = scaled.astype(items.dtype, copy=False)
        return cls(items, weight, shift=shift, team=team)

    def __init__(self, matrix: Any, weight: Array | None = None, *, shift: int = 0, team: ThreadTeam) -> None:
        self._matrix = matrix
        self.row_width = -(-matrix.nnz // max(matrix.shape[0], 1))
        self.block_numbers = NUMBERS_PER_DIMENSION * matrix.shape[1]
        super().__init__(matrix.shape[0], matrix.shape[1], np.float64, weight, shift, team)
        self.given_dtype = matrix.dtype

    def rows(self, where: slice) -> SparseRawRows:
        start, stop = self._matrix.indptr[where.start], self._matrix.indptr[where.stop]
        indptr = self._matrix.indptr[where.start : where.stop + 1] - start
        data = shifted(self._matrix.data[start:stop].astype(np.float64, copy=False), self.shift)
        shape = (where.stop - where.start, self.n_dims)
        return SparseRawRows(sp.csr_array((data, self._matrix.indices[start:stop], indptr), shape=shape))

    def select(self, index: Labels) -> Engine:
        chosen = self._matrix[index].astype(np.float64)
        chosen.data = shifted(chosen.data, self.shift)
        weight = None if self.weight is None else self.weight[index]
        if len(index) * self.n_dims <= DENSE_NUMBERS:
            return in_memory(self, chosen.toarray(), weight)
        few = type(self)(chosen, weight, team=self.team)
        few.given_dtype = self.given_dtype
        return few

    def outer(self, ref: Array | None, *, rooted: bool = False) -> Array:
        exact, size = doubled(self), max(OUTER_BYTES // (16 * max(self.row_width, 1)), 1)
        parts = [slice(start, min(start + size, self.n_items)) for start in range(0, self.n_items, size)]
        outer = np.empty((self.n_items, self.n_items))
        for one, other in combinations_with_replacement(parts, 2):
            left, right = (exact.rows(where).rooted() if rooted else exact.rows(where) for where in (one, other))
            outer[one, other] = (left.matrix @ right.matrix.T).toarray()
            outer[other, one] = outer[one, other].T
        if ref is not None:
            cross = np.concatenate([exact.rows(where).project(ref) for where in parts])
            outer += np.dot(ref, ref) - cross[:, None] - cross
        root = np.sqrt(block_weight(self, slice(0, self.n_items)))
        outer *= root[:, None]
        outer *= root
        return outer


def _levels(components: Array) -> list[Array]:
    """Components as a sum of parts whose entries are within a factor 2**13 of each other; the last holds what is rounding."""
    largest = np.abs(components).max(axis=1, initial=0, keepdims=True)
    ratio = np.divide(components, largest, out=np.zeros_like(components), where=largest > 0)
    level = np.minimum((1 - np.frexp(ratio)[1]) // 13, 4)
    return [np.where(level == part, components, 0.0) for part in np.unique(level[components != 0])]
