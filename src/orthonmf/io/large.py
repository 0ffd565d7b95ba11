"""Files that are too large for memory: the matrix stays where it is, only its names are read.

They are read in this process, by the libraries of their formats: what one process reads for another has to fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..exceptions import InvalidInputError
from ..sources import stored
from ..sources.hdf5 import rows_of
from . import named
from .base import Data, needs
from .h5ad import index_of, node_of, sparse_form
from .hdf5 import matrix_name, opened, strings
from .tenx import gene_names

__all__ = ["KINDS", "only_piece_by_piece", "open_stored"]


def only_piece_by_piece(path: Path) -> bool:
    """Whether it is of a kind that no other reader knows: a .zarr, or a folder of .parquet files."""
    return path.suffix.lower() == ".zarr" or (path.is_dir() and any(path.glob("*.parquet")))


def open_stored(path: Path, key: str | None) -> Data:
    """The matrix of a file, or of a folder, on disk, with the names of its rows and columns where it has them."""
    with named(str(path)):
        return KINDS[".parquet" if path.is_dir() and path.suffix.lower() != ".zarr" else path.suffix.lower()](path, key)


def _zarr(path: Path, key: str | None) -> Data:
    needs("zarr", ".zarr")
    return Data(stored(path))


def _parquet(path: Path, key: str | None) -> Data:
    needs("pyarrow", ".parquet")
    X = stored(path)
    return Data(X, column_names=X.medium.columns)


def _hdf5(path: Path, key: str | None) -> Data:
    with opened(path) as file:  # which says whether all lies in it
        tenx = key is None and "matrix/barcodes" in file
        name = "matrix" if tenx else matrix_name(file, key)
    node = needs("h5py", path.suffix).File(path, "r")[name]
    if not tenx:
        return Data(stored(node))
    features = node["features"]
    genes = gene_names([list(row) for row in zip(strings(features["id"]), strings(features["name"]), strict=True)])
    return Data(rows_of(node, node["shape"][()][::-1]), strings(node["barcodes"]), genes)


def _h5ad(path: Path, key: str | None) -> Data:
    with opened(path):
        pass
    file = needs("h5py", ".h5ad").File(path, "r")
    node, genes = node_of(file, key)
    names = index_of(file["obs"]), index_of(file[genes])
    if not hasattr(node, "keys"):
        return Data(stored(node), *names)
    form, shape = sparse_form(node)
    if form != "csr":
        raise InvalidInputError(
            "is stored by columns (CSC), and too large for memory. Write it by rows once: adata.X = adata.X.tocsr(); adata.write(path)."
        )
    return Data(rows_of(node, shape), *names)


# By how a path ends.
KINDS: dict[str, Callable[[Path, str | None], Data]] = {
    ".zarr": _zarr,
    ".parquet": _parquet,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".h5ad": _h5ad,
}
