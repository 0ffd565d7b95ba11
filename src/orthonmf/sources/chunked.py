"""Matrices in chunks that lie with the workers of a dask cluster, or are loaded there when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from functools import reduce as fold
from operator import add
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from scipy import sparse

from .._common.typing import Array, Labels
from .._common.validation import check_values
from ..exceptions import InvalidInputError
from .cluster import Cluster, Held, loaded


@dataclass(frozen=True)
class About:
    """What the first pass finds in a chunk.

    Attributes
    ----------
    count, width : int
        Items, and numbers of each.
    nnz : int
        Numbers that are stored.
    largest : float
    dtype : dtype
        float32 or float64.
    is_sparse : bool
    """

    count: int
    width: int
    nnz: int
    largest: float
    dtype: Any
    is_sparse: bool


def rows_of(block: Any, *, turned: bool) -> Any:
    """A chunk as float rows, one for each item: an array, or a CSR matrix in canonical form; the chunk itself is not changed."""
    values = loaded(block)
    if sparse.issparse(values):
        rows = sparse.csr_array(values.T if turned else values)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
    else:
        rows = np.asarray(values)
        rows = rows.T if turned else rows
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)


def _about(turned: bool, estimator: str, block: Any, number: int) -> About:
    """Look at a chunk, and refuse numbers that must not be."""
    rows = rows_of(block, turned=turned)
    is_sparse = sparse.issparse(rows)
    if rows.ndim != 2:
        raise InvalidInputError(f"Chunk {number} of X has {rows.ndim} dimensions; expected 2.")
    names = ("column", "row") if turned else ("row", "column")

    def place(row: int, column: int | None = None) -> str:
        if column is None:  # a stored number
            row, column = int(np.searchsorted(rows.indptr, row, "right")) - 1, int(rows.indices[row])
        return f"{names[0]} {row} of chunk {number}, {names[1]} {column}"

    check_values(rows.data if is_sparse else rows, place, estimator)
    nnz = rows.nnz if is_sparse else rows.size
    numbers = rows.data if is_sparse else rows
    return About(rows.shape[0], rows.shape[1], nnz, float(numbers.max(initial=0)), rows.dtype, is_sparse)


def _largest(turned: bool, block: Any, weighs: Array) -> float:
    """The largest number of the rows of X that weigh anything."""
    rows, places = rows_of(block, turned=turned), np.flatnonzero(weighs)
    return float((rows[:, places] if turned else rows[places]).max()) if places.size else 0.0


def _taken(turned: bool, block: Any, places: Labels) -> Any:
    """Some of a chunk's items."""
    return rows_of(block, turned=turned)[places]


class Chunked:
    """A matrix in chunks: of rows, where rows are the items, else of columns.

    Parameters
    ----------
    array : dask.array.Array
    axis : int
        0 where rows are the items, 1 where columns are.

    Attributes
    ----------
    numbers : tuple of int
        Of the chunks that are not empty.
    lengths : ndarray of shape (n_chunks,)
        Items of each.
    engine : str or None
        The name of the engine that is to see a chunk; None leaves that open.
    """

    ndim = 2
    is_chunked = True
    engine: str | None = None

    def __init__(self, array: Any, axis: int, estimator: str) -> None:
        self.array, self.turned = array, axis == 1
        self._cluster = Cluster(array)
        calls = [(number, (number,)) for number in range(len(self._cluster))]
        about: list[About] = list(self._cluster.map("check", partial(_about, self.turned, estimator), calls, lambda: None))
        self.numbers = tuple(number for number, each in enumerate(about) if each.count)
        about = [about[number] for number in self.numbers] or about[:1]
        widths, kinds = {each.width for each in about}, {each.is_sparse for each in about}
        if len(widths) > 1 or len(kinds) > 1:
            raise InvalidInputError(
                f"The chunks of X are not alike: widths {sorted(widths)}, {'some' if len(kinds) > 1 else 'all or none'} of them sparse. "
                "Make them equally wide, and all arrays or all CSR."
            )
        if not self.numbers or not about[0].width:
            raise InvalidInputError(
                f"X has {len(self.numbers) and about[0].width} numbers in a row; a minimum of 1 row and column is required."
            )
        self.lengths = np.array([each.count for each in about])
        self.is_sparse, self.nnz = about[0].is_sparse, sum(each.nnz for each in about)
        self.dtype = np.result_type(*(each.dtype for each in about))
        self._largest = max(each.largest for each in about)
        self.shape = (int(self.lengths.sum()), about[0].width)
        if self.turned:
            self.shape = self.shape[::-1]

    def seen_by(self, engine: str) -> Chunked:
        """The same, each chunk to be seen by an engine of this name."""
        other = copy(self)
        other.engine = engine
        return other

    @property
    def T(self) -> Chunked:
        """The same, seen the other way round."""
        other = copy(self)
        other.shape = self.shape[::-1]
        return other

    @property
    def size(self) -> int:
        """Numbers in all."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return int(self.nnz * self.dtype.itemsize)

    def max(self, initial: float = 0.0) -> float:
        """The largest number."""
        return max(self._largest, initial)

    def largest_of(self, weighs: Array) -> float:
        """The largest number of the rows of X where ``weighs`` (n_rows,) is true."""
        parts = [weighs] * len(self.lengths) if self.turned else np.split(weighs, np.cumsum(self.lengths)[:-1])
        return max(self.map("largest", partial(_largest, self.turned), [(part,) for part in parts]))

    def map(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...] | None],
        check: Callable[[], None] = lambda: None,
        *,
        heavy: bool = False,
    ) -> Any:
        """``function(chunk, *arguments)`` of every chunk that is not empty and whose arguments are not None, in order.

        ``heavy`` says that an answer may be as long as its chunk.
        """
        calls = [(number, each) for number, each in zip(self.numbers, arguments, strict=True) if each is not None]
        return self._cluster.map(name, function, calls, check, heavy=heavy)

    def later(self, name: str, function: Callable[..., Any], dtype: Any) -> Any:
        """``function(chunk, dtype, block_id)``, a number of each item, as a dask array that is computed when it is asked for."""
        lengths = np.zeros(len(self._cluster), dtype=np.int64)
        lengths[list(self.numbers)] = self.lengths
        return da.map_blocks(
            function,
            self.array,
            dtype,
            drop_axis=1,
            chunks=(tuple(lengths.tolist()),),
            dtype=dtype,
            meta=np.empty(0, dtype),
            name=f"orthonmf-{name}-{uuid4().hex}",
        )

    def hold(self, values: Array) -> Held:
        """An array (n_items, …) of this process as an argument of many calls: each chunk's part is sent once."""
        return self._cluster.hold(dict(zip(self.numbers, np.split(values, np.cumsum(self.lengths)[:-1]), strict=True)))

    def taken(self, index: Labels, check: Callable[[], None] = lambda: None) -> Any:
        """The items at ``index``, in its order, in this process."""
        borders = np.append(0, np.cumsum(self.lengths))
        order = np.argsort(index, kind="stable")
        cuts = np.searchsorted(index[order], borders)
        places = [index[order[cuts[i] : cuts[i + 1]]] - borders[i] for i in range(len(self.lengths))]
        arguments = [(each,) if len(each) else None for each in places]
        parts = list(self.map("select", partial(_taken, self.turned), arguments, check, heavy=8 * len(index) > borders[-1]))
        if not parts:
            width = self.shape[0] if self.turned else self.shape[1]
            return sparse.csr_array((0, width), dtype=self.dtype) if self.is_sparse else np.empty((0, width), self.dtype)
        rows = sparse.csr_array(sparse.vstack(parts, format="csr")) if self.is_sparse else np.concatenate(parts)
        return rows[np.argsort(order, kind="stable")].astype(self.dtype, copy=False)

    def __matmul__(self, other: Array) -> Array:
        if self.turned:
            parts = np.split(other, np.cumsum(self.lengths)[:-1])
            return fold(add, self.map("product", _spread, [(part,) for part in parts]))
        return np.concatenate(list(self.map("product", partial(_product, other), [()] * len(self.lengths))))


def _product(other: Array, block: Any) -> Array:
    """The rows of X in a chunk times a matrix."""
    return np.asarray(rows_of(block, turned=False) @ other)


def _spread(block: Any, part: Array) -> Array:
    """The columns of X in a chunk times the rows of a matrix that belong to them."""
    return np.asarray(rows_of(block, turned=True).T @ part)


def _mapped(block: Any, function: Callable[[Any], Any], empty: Any) -> Any:
    return function(block) if block.shape[0] else empty


def each_chunk(X: Any, function: Callable[[Any], Any], empty: Any) -> Any:
    """``function`` of every chunk of rows as a dask array that is computed when it is asked for; ``empty`` is what it makes of no rows."""
    X = as_array(X)
    _check_chunks(X, 0, "predict")
    shape: dict[str, Any] = {"drop_axis": 1} if empty.ndim == 1 else {"chunks": (X.chunks[0], (empty.shape[1],))}
    return da.map_blocks(_mapped, X, function, empty, dtype=empty.dtype, meta=empty, **shape)


def as_array(X: Any) -> Any:
    """A dask array of numbers, with two dimensions."""
    if not isinstance(X, da.Array):
        if isinstance(X, Delayed) or not hasattr(X, "to_dask_array"):
            raise InvalidInputError(
                f"X is a {type(X).__name__} of dask; expected an array or a data frame, for example da.from_delayed(X, …)."
            )
        X = X.to_dask_array()
    if X.ndim != 2:
        raise InvalidInputError(f"X has {X.ndim} dimensions; expected 2.")
    if np.dtype(X.dtype).kind not in "fiub":
        raise InvalidInputError(
            f"X has dtype {X.dtype}; numbers are expected. Convert it, for example with X.astype(float), if that makes sense."
        )
    return X


def _check_chunks(X: Any, axis: int, purpose: str) -> None:
    """Refuse chunks that do not hold whole items."""
    if (n_chunks := X.numblocks[1 - axis]) > 1:
        kinds = ("rows", "columns") if axis == 0 else ("columns", "rows")
        raise InvalidInputError(
            f"X has {n_chunks} chunks along its {kinds[1]}; for {purpose} a chunk must hold whole {kinds[0]}. Cut it once, "
            f"X = X.rechunk({{{1 - axis}: -1}}).persist(), and use that."
        )


def of(X: Any, orthogonal: str, estimator: str) -> Chunked:
    """A dask array or data frame, looked at once."""
    X, axis = as_array(X), 0 if orthogonal == "samples" else 1
    _check_chunks(X, axis, f"orthogonal={orthogonal!r}")
    return Chunked(X, axis, estimator)
