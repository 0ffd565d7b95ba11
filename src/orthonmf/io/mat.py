"""MATLAB's .mat: version 4 by scipy, 5 to 7 by ``mat5``, 7.3, which is HDF5, by h5py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import loadmat
from scipy.io.matlab import matfile_version

from .base import Data, chosen
from .hdf5 import opened
from .mat5 import by_columns, variables


def read(path: Path, key: str | None = None) -> Data:
    """The only matrix of the file, or the variable ``key``."""
    version = matfile_version(path)[0]
    if version == 2:
        return _hdf5(path, key)
    found = variables(path.read_bytes()) if version == 1 else _version4(path)
    return Data(found[chosen(found, key)]())


def _version4(path: Path) -> dict[str, Any]:
    arrays = {name: value for name, value in loadmat(path).items() if not name.startswith("__") and _numeric(value)}
    return {name: lambda value=value: sparse.csr_array(value) if sparse.issparse(value) else value for name, value in arrays.items()}


def _numeric(value: Any) -> bool:
    return getattr(value, "ndim", 0) == 2 and value.dtype.kind in "fiub"


def _hdf5(path: Path, key: str | None) -> Data:
    """Columns come first, so what h5py reads is transposed; a sparse matrix is a group, by columns."""
    with opened(path) as file:
        node = file[chosen((name for name, node in file.items() if _stored(node)), key)]
        if not hasattr(node, "keys"):
            return Data(node[()].T)
        entries = (node["data"][()], node["ir"][()]) if "data" in node else (np.zeros(0), np.zeros(0, dtype=np.intp))
        return Data(by_columns(entries[0], entries[1], node["jc"][()], int(node.attrs["MATLAB_sparse"])))


def _stored(node: Any) -> bool:
    return "jc" in node if hasattr(node, "keys") else _numeric(node)
