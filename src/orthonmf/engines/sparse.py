"""Compressed sparse rows, never densified (but for a few that are chosen): the frame x' = factor · x − along · ref stays a formula."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._common.arithmetic import entropy_growth, relative_entropy, shifted
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
class SparseRows:
    """Framed items of one block: factor and along act on the results, not on the items."""

    matrix: Any
    sq: Array
    factor: Array | None
    along: Array
    ref: Array

    def dot(self, vectors: Array) -> Array:
        inner = self._products(vectors)
        if self.factor is not None:
            inner *= self.factor
        # x'·v = factor (x·v) − along (ref·v)
        inner -= np.multiply.outer(vectors @ self.ref, self.along)
        return inner.astype(self.matrix.dtype, copy=False)

    def _products(self, vectors: Array) -> Array:
        """Of the items as they are stored: shape (k, block)."""
        return np.ascontiguousarray((self.matrix @ vectors.T).T)

    def own(self, vectors: Array, labels: Labels) -> Array:
        inner = _inner(self.matrix, labels, vectors)
        if self.factor is not None:
            inner *= self.factor
        return inner - (vectors @ self.ref)[labels] * self.along

    def tdot(self, weights: Array) -> Array:
        scaled = weights if self.factor is None else weights * self.factor
        if np.count_nonzero(scaled) <= FEW_PER_ITEM * scaled.shape[1]:
            return self._sums_of_few(scaled, weights @ self.along)
        return (self.matrix.T @ scaled.T).T - np.multiply.outer(weights @ self.along, self.ref)

    def _sums_of_few(self, weights: Array, along: Array) -> Array:
        """Weighted sums of the items as they are stored, most of whose weights are 0, less ``along`` times the reference."""
        return (sp.csr_array(weights) @ self.matrix).toarray() - np.multiply.outer(along, self.ref)

    def sqnorms(self) -> Array:
        factor = 1.0 if self.factor is None else self.factor
        inner = factor * (self.matrix @ self.ref)
        sq = self.sq * factor**2 - 2 * self.along * inner + self.along**2 * np.dot(self.ref, self.ref)
        return np.maximum(sq, 0.0).astype(self.matrix.dtype)

    def growth(self, weight: Array, vectors: Array, labels: Labels | None = None) -> Array:
        rows, columns = _row_numbers(self.matrix), self.matrix.indices
        part = self.matrix.data * (weight if self.factor is None else weight * self.factor)[rows]
        if labels is not None:
            return np.bincount(rows, entropy_growth(part, vectors[labels[rows], columns]), len(weight))
        return np.stack([np.bincount(rows, entropy_growth(part, vector[columns]), len(weight)) for vector in vectors])

    def take(self, index: Any) -> Array:
        index = np.atleast_1d(index)
        dense = self.matrix[index].toarray().astype(np.float64)
        if self.factor is not None:
            dense *= self.factor[index][:, None]
        return dense - np.multiply.outer(self.along[index], self.ref)


@dataclass(frozen=True)
class SparseRawRows:
    """Items of one block, times a power of two."""

    matrix: Any

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
        return SparseRows(self.matrix, self._sq, factor, np.ones(len(self)) if along is None else along, ref)

    def residual_sq(self, scale: Array, labels: Labels, components: Array) -> Array:
        stored, covered = self._stored_residual(scale, labels, components)
        # Squared norm of the component outside the stored entries.
        whole = np.einsum("ij,ij->i", components, components)[labels]
        missed = whole - covered
        little = np.flatnonzero(missed < LITTLE * whole)
        if little.size:
            used, names = np.unique(labels[little], return_inverse=True)
            missed[little] = SparseRawRows(self.matrix[little])._missed(names, components[used])
        return stored + scale**2 * missed

    def _stored_residual(self, scale: Array, labels: Labels, components: Array) -> tuple[Array, Array]:
        """Over the stored entries of every item, the squared norms of x − scale · component, and of the component."""
        rows = _row_numbers(self.matrix)
        values = components[labels[rows], self.matrix.indices]
        stored = np.bincount(rows, np.square(self.matrix.data - values * scale[rows]), len(self))
        return stored, np.bincount(rows, np.square(values), len(self))

    def _missed(self, labels: Labels, components: Array) -> Array:
        """Squared norm of the component outside an item's stored entries; exactly 0 where they cover its support.

        Each entry is subtracted from those of its own size: the rounding of the large ones exceeds what is left of an item that its
        component explains exactly.
        """
        rows = _row_numbers(self.matrix)
        missed = np.zeros(len(self))
        for level in _levels(components):
            values = level[labels[rows], self.matrix.indices]
            covered = np.bincount(rows, np.square(values), len(self))
            hits = np.bincount(rows, values != 0, len(self))
            support = np.count_nonzero(level, axis=1)
            whole = np.einsum("ij,ij->i", level, level)
            missed += np.where(hits == support[labels], 0.0, np.maximum(whole[labels] - covered, 0.0))
        return missed

    def sums(self) -> Array:
        return self.matrix @ np.ones(self.matrix.shape[1])

    def divergence(self, scale: Array, labels: Labels, components: Array, least: Array) -> Array:
        rows = _row_numbers(self.matrix)
        means, floored, items = self._means(rows, labels, components, least)
        each = scale[rows]
        some = items > 0
        stored = relative_entropy(items, floored * each) + np.where(some, means - floored, means) * each
        return np.bincount(rows, stored, len(self)) + scale * self._unstored(rows, labels, components, means)

    def pearson(self, scale: Array, labels: Labels, components: Array, least: Array) -> Array:
        rows = _row_numbers(self.matrix)
        means, floored, items = self._means(rows, labels, components, least)
        each = scale[rows]
        stored = np.divide(np.square(items - means * each), floored * each, out=np.zeros_like(items), where=each > 0)
        return np.bincount(rows, stored, len(self)) + scale * self._unstored(rows, labels, components, means)

    def _means(self, rows: Labels, labels: Labels, components: Array, least: Array) -> tuple[Array, Array, Array]:
        """Of every stored entry what its component has there, that but no less than ``least``, and the entry."""
        means = components[labels[rows], self.matrix.indices]
        return means, np.maximum(means, least[self.matrix.indices]), self.matrix.data

    def _unstored(self, rows: Labels, labels: Labels, components: Array, means: Array) -> Array:
        """Σ of the component of each item outside its stored entries."""
        return np.maximum(components.sum(axis=1)[labels] - np.bincount(rows, means, len(self)), 0.0)

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

    def inner(self, labels: Labels, centers: Array) -> Array:
        return _inner(self.matrix, labels, centers)

    def keys(self) -> Array:
        bits = scrambled((self.matrix.data.astype(np.float64) + 0.0).view(np.uint64))
        products = np.concatenate([[np.uint64(0)], np.cumsum(bits * multipliers(self.matrix.shape[1])[self.matrix.indices])])
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


def _row_numbers(matrix: Any) -> Labels:
    """The row of every stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _inner(matrix: Any, labels: Labels, centers: Array) -> Array:
    """x · centers[labels], item by item, in float64."""
    rows = _row_numbers(matrix)
    products = matrix.data * centers[labels[rows], matrix.indices]
    return np.bincount(rows, products, matrix.shape[0]).astype(np.float64, copy=False)


def _levels(components: Array) -> list[Array]:
    """Components as a sum of parts whose entries are within a factor 2**13 of each other; the last holds what is rounding."""
    largest = np.abs(components).max(axis=1, initial=0, keepdims=True)
    ratio = np.divide(components, largest, out=np.zeros_like(components), where=largest > 0)
    level = np.minimum((1 - np.frexp(ratio)[1]) // 13, 4)
    return [np.where(level == part, components, 0.0) for part in np.unique(level[components != 0])]
