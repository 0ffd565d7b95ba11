"""A file of records to which more are added: each is a JSON document and arrays, sealed together with all that stand before it.

A record is its length (8 bytes), a line of JSON, the bytes of its arrays, and the SHA-256 digest of the seal before it and of these. A
process that ends while it writes leaves a last record without a seal: reading ends before it, and the next record takes its place. Nothing
in such a file is executed, and no array is larger in memory than it is in the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._common.typing import Array
from ..exceptions import ModelFormatError
from .archive import Archive, parsed

__all__ = ["Records"]

# All that an array may hold.
KINDS = ("<f4", "<f8", "<i4", "<i8", "<u8", "|b1")
LENGTH, SEAL = 8, 32


class Records:
    """The records of a file.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seal, self._sound = b"", 0

    def read(self) -> Iterator[Archive]:
        """Those that are whole, in order; no more may be added before all were read."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            while (content := self._next(file)) is not None:
                yield _record(content)

    def _next(self, file: IO[bytes]) -> bytes | None:
        """The bytes of the next record, if it is whole."""
        length = int.from_bytes(file.read(LENGTH), "little")
        if not 0 < length <= os.fstat(file.fileno()).st_size - self._sound - LENGTH - SEAL:
            return None
        content = file.read(length)
        seal = sha256(self._seal + content).digest()
        if file.read(SEAL) != seal:
            return None
        self._seal, self._sound = seal, self._sound + LENGTH + length + SEAL
        return content

    def add(self, contents: list[bytes]) -> None:
        """Add records, as ``packed`` makes them, on the disk when this returns; what a process that ended left of another one goes."""
        parts = []
        for content in contents:
            self._seal = sha256(self._seal + content).digest()
            parts += [len(content).to_bytes(LENGTH, "little"), content, self._seal]
        joined = b"".join(parts)
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            file.truncate(self._sound)
            file.seek(self._sound)
            file.write(joined)
            file.flush()
            os.fsync(file.fileno())
        self._sound += len(joined)


def packed(record: Archive) -> bytes:
    """The bytes of a record.

    Raises
    ------
    ModelFormatError
        An array of a kind, or of an order in memory, that would not come back as it is.
    """
    entries, parts = [], []
    for name, array in record.arrays.items():
        kind = array.dtype.newbyteorder("<").str
        order = "C" if array.flags.c_contiguous else "F"
        if kind not in KINDS or not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise ModelFormatError(f"{name!r} holds {kind} with the strides {array.strides}; expected {', '.join(KINDS)} in order.")
        entries.append([name, kind, list(array.shape), order])
        parts.append(np.asarray(array, kind).tobytes(order))  # type: ignore[arg-type]
    line = json.dumps({**record.document, "arrays": entries}, allow_nan=False).encode("ascii")
    return b"".join([line, b"\n", *parts])


def _record(content: bytes) -> Archive:
    """What ``packed`` made this of."""
    line, _, rest = content.partition(b"\n")
    document = parsed(line)
    arrays: dict[str, Array] = {}
    place = 0
    for name, kind, shape, order in _entries(document.pop("arrays", None)):
        size = prod(shape) * np.dtype(kind).itemsize
        if size > len(rest) - place:
            raise ModelFormatError(f"A record has {len(rest)} bytes of arrays; {name!r} of shape {shape} would end beyond them.")
        values = np.frombuffer(rest, kind, prod(shape), place).reshape(shape, order=order)
        arrays[name] = values.astype(values.dtype.newbyteorder("="), order=order)
        place += size
    return Archive(document, arrays)


def _entries(found: Any) -> Iterator[tuple[str, str, list[int], Any]]:
    """The entries of the arrays, checked."""
    if not isinstance(found, list):
        raise ModelFormatError("A record does not name its arrays.")
    for entry in found:
        if not isinstance(entry, list) or len(entry) != 4:
            raise ModelFormatError(f"A record names an array as {entry!r}; expected its name, kind, shape and order.")
        name, kind, shape, order = entry
        lengths = isinstance(shape, list) and all(type(length) is int and length >= 0 for length in shape)
        if not isinstance(name, str) or kind not in KINDS or not lengths or order not in ("C", "F"):
            raise ModelFormatError(f"A record names an array as {entry!r}; expected its name, kind, shape and order.")
        yield name, kind, shape, order
