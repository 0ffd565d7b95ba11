"""Files that are compressed, whole in memory once they are opened.

A small file may hold a thousand times its size. The command line therefore opens these in a process of its own, under the limits of
``orthonmf.io.apart``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

from ..exceptions import InvalidInputError
from .base import needs

# What macOS puts into an archive beside the files.
_BESIDE = "__MACOSX/"


def opened(path: Path) -> tuple[bytes, str]:
    """What a file holds, and the name of that in small letters: a compressed file is opened, any other read as it is."""
    content, suffix = path.read_bytes(), path.suffix.lower()
    if suffix == ".zip":
        return _only_member(content)
    return (PACKS[suffix](content), path.stem.lower()) if suffix in PACKS else (content, path.name.lower())


def _only_member(content: bytes) -> tuple[bytes, str]:
    """The one file in an archive, and its name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith(_BESIDE)]
        if len(members) != 1:
            listed = ", ".join(each.filename for each in members[:12]) or "none"
            raise InvalidInputError(f"holds {len(members)} files ({listed}); expected one. Take out the one that is meant.")
        if members[0].flag_bits & 1:
            raise InvalidInputError(f"{members[0].filename} in it is locked with a password; take it out first.")
        return archive.read(members[0]), members[0].filename.lower()


def _zst(content: bytes) -> bytes:
    """One frame after the other, a little at a time: what a frame says of its own size is not believed."""
    zstandard = needs("zstandard", ".zst")
    parts = []
    while content:
        frame = zstandard.ZstdDecompressor().decompressobj()
        parts.append(frame.decompress(content))
        if not frame.eof:
            raise EOFError("the file ends before its content does")
        content = frame.unused_data
    return b"".join(parts)


PACKS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress, ".zst": _zst}
# The ends of the names of all compressed files.
PACKED = (*PACKS, ".zip")
