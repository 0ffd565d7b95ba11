"""HDF5: a 2-D dataset of any file, and the count matrices of the 10x pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._typing import Array
from .base import Data, chosen, compressed, needs
from .tenx import gene_names


def read(path: Path, key: str | None = None) -> Data:
    """The only 2-D dataset, or the one at ``key``."""
    with needs("h5py", path.suffix).File(path, "r") as file:
        if key is None and "matrix/barcodes" in file:
            return _tenx(file["matrix"])
        found: list[str] = []
        file.visititems(lambda name, node: found.append(name) if getattr(node, "ndim", 0) == 2 else None)
        return Data(file[chosen(found, None if key is None else key.strip("/"))][()])


def _tenx(group: Any) -> Data:
    """Cells × genes: the file holds genes × cells by columns."""
    features = group["features"]
    genes = gene_names([list(row) for row in zip(strings(features["id"]), strings(features["name"]), strict=True)])
    counts = compressed("csr", vectors(group), tuple(group["shape"][()][::-1].tolist()))
    return Data(counts, strings(group["barcodes"]), genes)


def vectors(group: Any) -> tuple[Array, Array, Array]:
    """What a sparse matrix is stored as."""
    return group["data"][()], group["indices"][()], group["indptr"][()]


def strings(dataset: Any) -> Array:
    """A dataset of text."""
    names: Array = dataset.asstr()[()]
    return names.astype(str)
