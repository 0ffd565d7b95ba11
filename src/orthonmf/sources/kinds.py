"""The kinds of matrices on disk: found by what X is, or by how its path ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._common.registry import imported
from ..exceptions import InvalidInputError, MissingExtraError
from .base import Stored, StoredColumns, StoredRows

# What ``stored`` makes of a matrix on disk.
ON_DISK = (Stored, StoredRows, StoredColumns)
# Packages whose collections lie in chunks with the workers of a cluster.
IN_CHUNKS = ("dask", "dask_expr")

# By the package that the class of X comes from, or by the end of its path.
REGISTRY = {
    "numpy": "orthonmf.sources.npy:of",
    ".npy": "orthonmf.sources.npy:of",
    "h5py": "orthonmf.sources.hdf5:of",
    "anndata": "orthonmf.sources.hdf5:of",
    "zarr": "orthonmf.sources.zarr:of",
    ".zarr": "orthonmf.sources.zarr:of",
    ".parquet": "orthonmf.sources.parquet:of",
}


def stored(X: Any) -> Any:
    """X as what is read piece by piece, where it lies on disk; else as it is.

    Raises
    ------
    InvalidInputError
        A path that is not there, or of no kind that can be read piece by piece.
    """
    if isinstance(X, str | os.PathLike):
        return _at(Path(X))
    kind = type(X).__module__.partition(".")[0]
    in_memory = sparse.issparse(X) or (isinstance(X, np.ndarray) and not isinstance(X, np.memmap))
    if isinstance(X, ON_DISK) or in_memory or kind not in REGISTRY:
        return X
    found = imported(REGISTRY[kind])(X)
    return X if found is None else found


def in_chunks(X: Any) -> bool:
    """Whether X is a collection of dask."""
    return type(X).__module__.partition(".")[0] in IN_CHUNKS


def is_chunked(X: Any) -> bool:
    """Whether X is what ``chunks_of`` made of a collection of dask."""
    return bool(getattr(X, "is_chunked", False))


def chunks_of(X: Any, orthogonal: str, estimator: str) -> Any:
    """A collection of dask as what passes are computed of, looked at once: numbers that must not be are refused."""
    return imported("orthonmf.sources.chunked:of")(X, orthogonal, estimator)


def as_dask_array(X: Any) -> Any:
    """A collection of dask as an array of numbers with two dimensions."""
    return imported("orthonmf.sources.chunked:as_array")(X)


def each_chunk(X: Any, function: Any, empty: Any) -> Any:
    """``function`` of every chunk of rows of a collection of dask, when it is asked for; ``empty`` is what it makes of no rows."""
    return imported("orthonmf.sources.chunked:each_chunk")(X, function, empty)


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix: in memory, on disk or in chunks."""
    return sparse.issparse(X) or isinstance(X, StoredRows) or getattr(X, "is_sparse", False)


def _at(path: Path) -> Any:
    kinds = [end for end in REGISTRY if end.startswith(".")]
    end = path.suffix.lower() if path.suffix.lower() in kinds or not path.is_dir() else ".parquet"
    if end not in kinds:
        raise InvalidInputError(
            f"X={str(path)!r} cannot be read piece by piece; expected a path that ends in {', '.join(kinds)}, or a folder of .parquet. "
            "Read it with orthonmf.io.read(path).X, or pass a dataset of h5py or the X of an AnnData that is backed."
        )
    if not path.exists():
        raise InvalidInputError(f"X={str(path)!r}: there is no such file.")
    try:
        found = imported(REGISTRY[end])(path)
    except ImportError as error:
        raise MissingExtraError(f"{end} needs {error.name}, which is not installed: pip install 'orthonmf[io]'.") from error
    except InvalidInputError as error:
        raise InvalidInputError(f"X={str(path)!r} cannot be read: {error}") from error
    except (OSError, ValueError) as error:
        complaint = str(error).rstrip(".")
        raise InvalidInputError(f"X={str(path)!r} cannot be read: {complaint}. Is it complete, and what its name says?") from error
    if found is None:
        raise InvalidInputError(f"X={str(path)!r} holds no matrix (2-D) of numbers.")
    return found
