"""HDF5: a 2-D dataset of any file, and the count matrices of the 10x pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._common.typing import Array
from ..exceptions import InvalidInputError
from .base import Data, chosen, compressed, needs, texts
from .tenx import gene_names

REMEDY = "; only what lies in the file itself is read. Copy the numbers into one file first (with h5py: new['X'] = old['X'][()])."


def read(path: Path, key: str | None = None) -> Data:
    """The only 2-D dataset, or the one at ``key``."""
    with opened(path) as file:
        if key is None and "matrix/barcodes" in file:
            return _tenx(file["matrix"])
        return Data(file[matrix_name(file, key)][()])


def matrix_name(file: Any, key: str | None) -> str:
    """The name of the only 2-D dataset, or of the one at ``key``."""
    found: list[str] = []
    file.visititems(lambda name, node: found.append(name) if getattr(node, "ndim", 0) == 2 else None)
    return chosen(found, None if key is None else key.strip("/"))


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """An HDF5 file, once it is sure that all it holds lies in it: a file may name others, which the library would then read."""
    h5py = needs("h5py", path.suffix.lower())
    with h5py.File(path, "r") as file:
        _check_links(h5py.h5l, file)
        _check_storage(h5py.h5d, file)
        yield file


def _check_links(h5l: Any, file: Any) -> None:
    """Refuse links to other files, and of kinds that only a program of its own follows; a soft link leads out through one of them."""
    within = (h5l.TYPE_HARD, h5l.TYPE_SOFT)
    name = file.id.links.visit(lambda name, info: None if info.type in within else name, info=True)
    if name is not None:
        raise InvalidInputError(f"{name.decode(errors='replace')!r} is a link to another file{REMEDY}")


def _check_storage(h5d: Any, file: Any) -> None:
    """Refuse datasets whose numbers lie in other files: external ones, and virtual ones, which are put together from others."""

    def complaint(name: str, node: Any) -> str | None:
        if not isinstance(node.id, h5d.DatasetID):
            return None
        plan = node.id.get_create_plist()
        if plan.get_layout() == h5d.VIRTUAL:
            return f"{name!r} is a virtual dataset, put together from other files"
        return f"{name!r} is external: its numbers lie in another file" if plan.get_external_count() else None

    if said := file.visititems(complaint):
        raise InvalidInputError(f"{said}{REMEDY}")


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
    return texts(dataset.asstr()[()])
