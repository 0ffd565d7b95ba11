"""AnnData on disk: X or a layer, with the names of cells and genes; nothing else of the file is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from .base import Data, chosen, compressed, texts
from .hdf5 import opened, strings, vectors

_SPARSE = ("csr_matrix", "csc_matrix")


def read(path: Path, key: str | None = None) -> Data:
    """X, or the layer ``key``, or the raw counts for "raw"."""
    with opened(path) as file:
        node, genes = node_of(file, key)
        return Data(_matrix(node), index_of(file["obs"]), index_of(file[genes]))


def node_of(file: Any, key: str | None) -> tuple[Any, str]:
    """Where the matrix is, and the name of the table of its genes."""
    if key is None:
        return _there(file, "X", "name a layer with key (on the command line, --key)"), "var"
    if key == "raw":
        inside = "." if "raw.X" in file else "/"  # files written before anndata 0.7 have no group for it
        return _there(file, f"raw{inside}X", "leave key out for X"), f"raw{inside}var"
    layers = file.get("layers", {})
    return layers[chosen(layers, key, "layer")], "var"


def _there(file: Any, name: str, remedy: str) -> Any:
    if name not in file:
        raise InvalidInputError(f"has no {name.partition('/')[0]}; {remedy}.")
    return file[name]


def _matrix(node: Any) -> Any:
    """A dense dataset, or a sparse group."""
    if not hasattr(node, "keys"):
        return node[()]
    form, shape = sparse_form(node)
    return compressed(form, vectors(node), shape)


def sparse_form(node: Any) -> tuple[str, tuple[int, ...]]:
    """Of a sparse group, whether it is by rows ("csr") or columns ("csc"), and its shape."""
    # Files written before anndata 0.7 call the two attributes otherwise.
    form = node.attrs.get("encoding-type", f"{node.attrs.get('h5sparse_format', '')}_matrix")
    if form not in _SPARSE:
        raise InvalidInputError(f"holds a matrix of the kind {form!r}; expected a dense one, or one of {', '.join(_SPARSE)}.")
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
    return form[:3], tuple(int(side) for side in shape)


def index_of(frame: Any) -> Array:
    """The names of a stored table: a column of text, of categories, or of text that may be missing; a record before anndata 0.7."""
    if not hasattr(frame, "keys"):
        records = frame[()]
        return texts([name.decode() if isinstance(name, bytes) else name for name in records[records.dtype.names[0]]])
    column = frame[frame.attrs["_index"]]
    if not hasattr(column, "keys"):
        return strings(column) if column.dtype.kind in "OS" else texts(column[()].astype(str))
    if "categories" in column:
        return np.append(strings(column["categories"]), "nan")[column["codes"][()]]  # the code of what is missing is −1
    return strings(column["values"])
