"""Compressed sparse rows on a device: the text of ``sparse.py`` on tensors, but for its sums by row and its products.

These add in an order that the items alone decide. cuSPARSE adds with atomics, so a product is a sum over bags of an embedding: every row
adds the vectors of its entries in turn. Rows of many entries are cut into parts, and what the parts find is added the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from functools import reduce as fold
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn.functional import embedding_bag

from .._common.arithmetic import shifted
from .._common.typing import Array, Labels
from ..exceptions import DeviceMemoryError, InvalidInputError
from . import engine_class
from .base import Engine
from .dense import DenseRawRows
from .layout import automatic, in_memory
from .sparse import DENSE_NUMBERS, Entries, SparseEngine, SparseRawRows, SparseRows
from .tensors import Tensor, check_kind, check_numbers, floating, tensor_of
from .threads import ThreadTeam
from .torch import SHARE_OF_DEVICE, OnDevice, device_for

# Bytes of a block on a GPU, at 8 for each stored entry: with what a pass makes of its entries it takes some ten times as much.
SPARSE_BLOCK_BYTES = 1 << 30
# Entries of a row that are added in turn; more are cut into parts that are added side by side.
PART_ENTRIES = 512
# Blocks and what is found of their columns (32 bytes for each stored entry) are kept between passes up to so many entries.
KEPT_ENTRIES = 1 << 30
# Numbers of a block that are held densely at once, where every two dimensions are multiplied.
DENSE_AT_ONCE = 1 << 26


@dataclass(frozen=True)
class SparseTensor:
    """A matrix of compressed sparse rows whose parts are tensors on one device: sorted columns, none twice in a row.

    Parameters
    ----------
    indptr : Tensor of shape (n_items + 1,)
    indices, data : Tensor of shape (nnz,)
    shape : (int, int)
    """

    indptr: Tensor
    indices: Tensor
    data: Tensor
    shape: tuple[int, int]
    is_sparse: ClassVar = True
    #: The engine that reads it.
    engine: ClassVar = "torch-sparse"

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def nnz(self) -> int:
        return len(self.data)

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.indices.nbytes + self.indptr.nbytes

    @property
    def device(self) -> Any:
        return self.data.values.device

    def host(self) -> Any:
        """The same matrix in this process."""
        return sp.csr_array((self.data.host(), self.indices.host(), self.indptr.host()), shape=self.shape)

    def max(self) -> float:
        """The largest number."""
        return max(float(self.data.max(initial=0)), 0.0)

    def with_data(self, data: Tensor) -> SparseTensor:
        """Other numbers in the same places."""
        return SparseTensor(self.indptr, self.indices, data, self.shape)

    # -- rows -------------------------------------------------------------------------------------------------------------------

    @cached_property
    def row_numbers(self) -> Tensor:
        """The row of every stored entry."""
        names = torch.arange(self.shape[0], device=self.device)
        return Tensor(torch.repeat_interleave(names, self.indptr.values.diff(), output_size=self.nnz))

    def by_row(self, values: Any) -> Tensor:
        """Numbers of the stored entries, added row by row, in float64."""
        parts, borders = self._parts
        found = _segments(values.values.double(), parts)
        return Tensor(found if borders is None else _segments(found, borders))

    def __getitem__(self, where: Any) -> SparseTensor:
        """Some rows: a slice shares their numbers."""
        if isinstance(where, slice):
            borders = self.indptr[where.start : where.stop + 1]
            stored = slice(int(borders[0]), int(borders[-1]))
            shape = (where.stop - where.start, self.shape[1])
            return SparseTensor(borders - borders[0], self.indices[stored], self.data[stored], shape)
        begins = self.indptr.values[:-1][self.indptr._place(where)]
        counts = self.indptr.values.diff()[self.indptr._place(where)]
        borders = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        moved = torch.repeat_interleave(begins - borders[:-1], counts)
        stored = moved + torch.arange(len(moved), device=self.device)
        return SparseTensor(Tensor(borders), self.indices[Tensor(stored)], self.data[Tensor(stored)], (len(counts), self.shape[1]))

    def toarray(self) -> Tensor:
        """The same numbers in a dense tensor."""
        dense = torch.zeros(self.shape, dtype=self.data.values.dtype, device=self.device)
        dense[self.row_numbers.values, self.indices.values] = self.data.values
        return Tensor(dense)

    # -- products ---------------------------------------------------------------------------------------------------------------

    @cached_property
    def T(self) -> SparseTensor:
        """Its columns as compressed sparse rows."""
        columns, order = torch.sort(self.indices.values.long(), stable=True)
        indptr = torch.searchsorted(columns, torch.arange(self.shape[1] + 1, device=self.device))
        return SparseTensor(Tensor(indptr), self.row_numbers[Tensor(order)], self.data[Tensor(order)], (self.shape[1], self.shape[0]))

    def __matmul__(self, dense: Any) -> Tensor:
        dense = np.asarray(dense, self.dtype, like=self.data)
        if dense.ndim == 1:
            return self.by_row(self.data * dense[self.indices])
        parts, borders = self._parts
        found = _bags(self.indices.values, dense.values.contiguous(), parts, self.data.values)
        return Tensor(found if borders is None else _bags(torch.arange(len(found), device=self.device), found, borders))

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        """Where the parts of the rows begin among the stored entries, and those of every row among the parts; None where they are rows."""
        counts = self.indptr.values.diff()
        if int(counts.max()) <= PART_ENTRIES:
            return self.indptr.values, None
        of_row = (counts + PART_ENTRIES - 1) // PART_ENTRIES
        borders = torch.cat([of_row.new_zeros(1), of_row.cumsum(0)])
        first = torch.repeat_interleave(self.indptr.values[:-1] - PART_ENTRIES * borders[:-1], of_row)
        begins = first + PART_ENTRIES * torch.arange(len(first), device=self.device)
        return torch.cat([begins, self.indptr.values[-1:]]), borders


def _bags(indices: Any, vectors: Any, borders: Any, factors: Any = None) -> Any:
    """Sums of the vectors at ``indices`` between borders, times their factors."""
    return embedding_bag(indices, vectors, borders, mode="sum", per_sample_weights=factors, include_last_offset=True)


def _segments(values: Any, borders: Any) -> Any:
    """Sums of numbers between borders."""
    return torch.segment_reduce(values, "sum", offsets=borders, unsafe=True)


class _OnTensors(Entries):
    """What a block of tensors has for every number that it stores."""

    matrix: SparseTensor

    @property
    def rows(self) -> Any:
        return self.matrix.row_numbers

    def summed(self, values: Any) -> Any:
        return self.matrix.by_row(values)


@dataclass(frozen=True)
class _TensorRows(_OnTensors, SparseRows):
    """Framed items of one block."""

    def _products(self, vectors: Any) -> Any:
        return (self.matrix @ vectors.T).T

    def _few(self, weights: Any) -> bool:
        return False


@dataclass(frozen=True)
class _TensorRawRows(_OnTensors, SparseRawRows):
    """Items of one block, times a power of two."""

    kind: ClassVar[Any] = _TensorRows

    @cached_property
    def _sq(self) -> Any:
        return self.summed(np.square(self.matrix.data))

    def sums(self) -> Any:
        return self.summed(self.matrix.data)

    def times(self, factor: Any, dim_factor: Any) -> SparseTensor:
        each = np.asarray(factor, like=self.matrix.data)[self.rows]
        return self.matrix.with_data(self.matrix.data * each * np.asarray(dim_factor, like=self.matrix.data)[self.matrix.indices])

    def rooted(self) -> _TensorRawRows:
        return replace(self, matrix=self.matrix.with_data(np.sqrt(self.matrix.data)))

    def gram(self, weight: Any, ref: Array | None) -> Any:
        height = max(DENSE_AT_ONCE // self.matrix.shape[1], 1)
        parts = [slice(start, min(start + height, len(self))) for start in range(0, len(self), height)]
        return fold(add, (DenseRawRows(self.matrix[part].toarray()).gram(weight[part], ref) for part in parts))


class TorchSparseEngine(OnDevice, SparseEngine):
    """Items are the rows of a sparse tensor, or of a CSR matrix that goes to the device once; computed with in float64.

    Parameters
    ----------
    matrix : csr_array or SparseTensor of shape (n_items, n_dims)
        A tensor stays on its device; a matrix of this process goes to the GPU where there is one.
    weight : ndarray of shape (n_items,) or None
    shift : int
    team : ThreadTeam
    """

    @classmethod
    def of(cls, items: Any, weight: Array | None, dim_factor: Array | None, shift: int, team: ThreadTeam) -> Self:
        if sp.issparse(items):
            return super().of(items, weight, dim_factor, shift, team)
        if dim_factor is not None:
            items = items.with_data((items.data * np.asarray(dim_factor, like=items.data)[items.indices]).astype(items.dtype, copy=False))
        return cls(items, weight, shift=shift, team=team)

    def __init__(self, matrix: Any, weight: Array | None = None, *, shift: int = 0, team: ThreadTeam) -> None:
        self.gives_tensors = not sp.issparse(matrix)
        self._lie(matrix.device if self.gives_tensors else device_for(matrix), SPARSE_BLOCK_BYTES)
        self._held = held_on(self.device, matrix)
        self._blocks: dict[tuple[int, int], SparseTensor] = {}
        super().__init__(self._held, weight, shift=shift, team=team)

    def rows(self, where: slice) -> _TensorRawRows:
        place = where.start, where.stop
        block = self._blocks.get(place)
        if block is None:
            block = self._held[where]
            block = replace(block, indices=block.indices.astype(np.int64), data=shifted(block.data.astype(np.float64), self.shift))
            if self._held.nnz <= KEPT_ENTRIES:
                self._blocks[place] = block
        return _TensorRawRows(block)

    def _forget(self) -> None:
        super()._forget()
        self._blocks.clear()

    def select(self, index: Labels) -> Engine:
        chosen = self._held[np.asarray(index)].host().astype(np.float64)
        chosen.data = shifted(chosen.data, self.shift)
        weight = None if self.weight is None else self.weight[index]
        if len(index) * self.n_dims <= DENSE_NUMBERS:
            return in_memory(self, chosen.toarray(), weight)
        few = engine_class(automatic(chosen)).of(chosen, weight, None, 0, self.team)
        few.given_dtype, few.compiles = self.given_dtype, self.compiles
        return few

    def outer(self, ref: Array | None, *, rooted: bool = False) -> Array:
        return self._here().outer(ref, rooted=rooted)


def held_on(device: Any, matrix: Any) -> Any:
    """A matrix on a device, which has to have memory for it."""
    if not sp.issparse(matrix):
        return matrix
    size = matrix.nnz * (matrix.data.itemsize + matrix.indices.itemsize)
    if device.type != "cpu" and size > SHARE_OF_DEVICE * (free := torch.cuda.mem_get_info(device)[0]):
        raise DeviceMemoryError(
            f"X stores {matrix.nnz} numbers in {size / 1e9:.3g} GB, and {device} has {free / 1e9:.3g} GB free; a sparse matrix has to lie "
            f"on the device as a whole, in at most {SHARE_OF_DEVICE} of that. Use engine='auto', which computes in this process."
        )
    indptr, indices, data = (tensor_of(each, device) for each in (matrix.indptr.astype(np.int64), matrix.indices, matrix.data))
    return SparseTensor(indptr, indices, data, matrix.shape)


# -- from a user ----------------------------------------------------------------------------------------------------------------


def checked(X: Any, estimator: str) -> SparseTensor:
    """A sparse tensor of a user as what engines read: canonical, floating, finite and nonnegative, seen where it lies."""
    X = X.detach()
    check_kind(X)
    borders, columns, values = X.crow_indices().long(), X.col_indices(), floating(X.values())
    if columns.numel() and not (int(columns.amin()) >= 0 and int(columns.amax()) < X.shape[1]):
        raise InvalidInputError(
            f"X stores columns {int(columns.amin())} to {int(columns.amax())}; expected 0 to {X.shape[1] - 1}, as in its shape "
            f"{tuple(X.shape)}. torch.sparse.check_sparse_tensor_invariants finds where such a tensor is made."
        )
    found = SparseTensor(Tensor(borders), Tensor(columns), Tensor(values), (X.shape[0], X.shape[1]))

    def place(index: int) -> str:
        return f"row {int(found.row_numbers[index])}, column {int(found.indices[index])}"

    check_numbers(values, place, estimator)  # before duplicates are summed, so that no negative one hides
    found = _canonical(found)
    check_numbers(found.data.values, place, estimator)
    return found


def _canonical(X: SparseTensor) -> SparseTensor:
    """The same matrix with sorted columns, none twice in a row."""
    place = X.row_numbers.values * X.shape[1] + X.indices.values
    if not place.numel() or bool((place.diff() > 0).all()):
        return X
    place, order = torch.sort(place, stable=True)
    place, counts = torch.unique_consecutive(place, return_counts=True)
    borders = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    data = _segments(X.data.values[order], borders)
    rows, columns = torch.div(place, X.shape[1], rounding_mode="floor"), place % X.shape[1]
    indptr = torch.searchsorted(rows, torch.arange(X.shape[0] + 1, device=X.device))
    return SparseTensor(Tensor(indptr), Tensor(columns), Tensor(data), X.shape)
