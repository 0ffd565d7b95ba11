"""Matrices larger than memory, where they lie: one file for each kind. They are read piece by piece, as is what a model says of them."""

from __future__ import annotations

from .base import FEW_BYTES, Stored, StoredColumns, StoredRows
from .kinds import ON_DISK, REGISTRY, as_dask_array, chunks_of, each_chunk, in_chunks, is_chunked, is_sparse, stored
from .targets import TARGETS, write
from .turned import turned

__all__ = [
    "FEW_BYTES",
    "ON_DISK",
    "REGISTRY",
    "TARGETS",
    "Stored",
    "StoredColumns",
    "StoredRows",
    "as_dask_array",
    "chunks_of",
    "each_chunk",
    "in_chunks",
    "is_chunked",
    "is_sparse",
    "stored",
    "turned",
    "write",
]
