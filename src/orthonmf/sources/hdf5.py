"""HDF5 datasets, and the matrices of AnnData on disk, dense or by rows."""

from __future__ import annotations

from typing import Any

from .._common.typing import Array
from ..exceptions import InvalidInputError
from .base import Stored, StoredRows, even_borders

# Entries of a matrix by columns that is loaded instead.
FEW_ENTRIES = 1 << 22


class Dataset:
    """A dataset of one or two dimensions, in pieces of whole chunks."""

    def __init__(self, dataset: Any) -> None:
        self.name, self.shape, self.dtype = f"{dataset.file.filename}:{dataset.name}", dataset.shape, dataset.dtype
        self._dataset = dataset
        width = self.dtype.itemsize * (self.shape[1] if len(self.shape) == 2 else 1)
        self.borders = even_borders(self.shape[0], width, dataset.chunks[0] if dataset.chunks else 1)

    def read(self, start: int, stop: int, out: Array) -> None:
        """Fill ``out`` with the entries; HDF5 itself lets one thread at a time do so."""
        self._dataset.read_direct(out, slice(start, stop))


def of(X: Any) -> Stored | StoredRows | None:
    """A dataset of HDF5, or AnnData's matrix in a file."""
    if hasattr(X, "group"):
        return _by_rows(X)
    return Stored(Dataset(X)) if getattr(X, "ndim", 0) == 2 and X.dtype.kind in "fiub" else None


def _by_rows(X: Any) -> Any:
    if X.format != "csr" and len(X.group["data"]) > FEW_ENTRIES:
        raise InvalidInputError(
            "X is stored by columns (CSC), which would be read whole for every block of rows. Write it by rows once: "
            "adata.X = adata.X.to_memory().tocsr()."
        )
    return X.to_memory() if X.format != "csr" else rows_of(X.group, X.shape)


def rows_of(group: Any, shape: Any) -> StoredRows:
    """A matrix by rows, from the group that holds its entries, their columns and its pointers."""
    entries, columns = (Stored(Dataset(group[name])) for name in ("data", "indices"))
    return StoredRows(entries, columns, group["indptr"][()], tuple(int(side) for side in shape))
