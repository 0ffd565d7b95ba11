"""MATLAB's .mat, up to version 7 by scipy and 7.3, which is HDF5, by h5py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scipy import sparse
from scipy.io import loadmat

from .base import Data, chosen, needs


def read(path: Path, key: str | None = None) -> Data:
    """The only matrix of the file, or the variable ``key``."""
    try:
        variables = loadmat(path)
    except NotImplementedError:  # how scipy says 7.3
        return _hdf5(path, key)
    found = {name: value for name, value in variables.items() if not name.startswith("__") and _numeric(value)}
    value = found[chosen(found, key)]
    return Data(sparse.csr_array(value) if sparse.issparse(value) else value)


def _numeric(value: Any) -> bool:
    return getattr(value, "ndim", 0) == 2 and value.dtype.kind in "fiub"


def _stored(node: Any) -> bool:
    return "jc" in node if hasattr(node, "keys") else _numeric(node)


def _hdf5(path: Path, key: str | None) -> Data:
    """Version 7.3: columns come first, so what h5py reads is transposed; a sparse matrix is a group, by columns."""
    with needs("h5py", ".mat").File(path, "r") as file:
        node = file[chosen((name for name, node in file.items() if _stored(node)), key)]
        if not hasattr(node, "keys"):
            return Data(node[()].T)
        pointers = node["jc"][()]
        entries = (node["data"][()], node["ir"][()], pointers) if "data" in node else ([], [], pointers)
        matrix = sparse.csc_array(entries, shape=(int(node.attrs["MATLAB_sparse"]), len(pointers) - 1))
        matrix.check_format(full_check=True)
        return Data(sparse.csr_array(matrix))
