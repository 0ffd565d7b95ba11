"""A sealed archive: one JSON document and named arrays in one file, which holds no code and is refused when a single byte is off.

The file is a zip archive that any tool opens: ``manifest.json`` first, then one ``.npy`` member for each array. A reader needs to trust
nothing in it:

- the file ends in the SHA-256 digest of all that stands before, so that every flipped byte and every truncation shows;
- members are stored, not compressed, and lie one behind the other, so that nothing is larger in memory than it is on disk;
- the manifest names each array with its type, shape and digest. The header of a member is compared with the one which that
  entry makes, to the byte, and never parsed;
- types come from a short list of plain numbers, so that nothing can be executed.

The same content makes the same bytes, whenever and wherever it is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from reprlib import repr as brief
from typing import IO, Any

import numpy as np

from .._common.files import atomic
from .._common.typing import Array
from ..exceptions import FileAccessError, ModelFormatError

__all__ = ["Archive", "naming", "read", "write"]

MANIFEST = "manifest.json"
# All that a stored array may hold: little-endian floats and integers of four and eight bytes.
DTYPES = ("<f4", "<f8", "<i4", "<i8")
# The comment of the zip archive, with which the file ends; the digest follows it.
SEAL = b"sha256 of all before it: "
DIGEST_CHARS = 64
# The first time that a zip archive can tell, on every member.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)
# What precedes a member in the file, beside its name: the plain header, and the sizes as the format for large files wants them.
LOCAL_HEADER = 30 + 20
# No length of an array is longer than this, so that products of two stay numbers one can print.
LONGEST = 1 << 48
CHUNK = 1 << 20


@dataclass(frozen=True)
class Archive:
    """What an archive holds.

    Attributes
    ----------
    document : dict
        Anything JSON can tell but floats, which do not keep their bits there.
    arrays : dict of str to ndarray
    """

    document: dict[str, Any]
    arrays: dict[str, Array]


def write(path: str | os.PathLike[str], archive: Archive) -> None:
    """Write an archive, whole or not at all."""
    entries = {name: _entry(name, array) for name, array in archive.arrays.items()}
    manifest = json.dumps({**archive.document, "arrays": entries}, indent=1, allow_nan=False).encode("ascii")
    with atomic(path) as draft:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as file:
            _add(file, MANIFEST, [manifest])
            for name, array in archive.arrays.items():
                _add(file, f"{name}.npy", _npy(array))
            file.comment = SEAL + b"0" * DIGEST_CHARS
        _seal(draft)


def read(path: str | os.PathLike[str]) -> Archive:
    """Read an archive after checking every byte of it."""
    if Path(path).exists() and not Path(path).is_file():  # opening a pipe would wait for ever
        raise OSError("it is no regular file")
    with Path(path).open("rb") as file:
        return _read(file)


def _read(file: IO[bytes]) -> Archive:
    _check_seal(file)
    try:
        with zipfile.ZipFile(file) as members:
            _check_layout(members)
            document = parsed(members.read(MANIFEST))
            return Archive(document, _arrays(members, document.pop("arrays", None)))
    except ModelFormatError:
        raise
    # All that zipfile raises on content that it cannot read.
    except (zipfile.BadZipFile, struct.error, EOFError, NotImplementedError, RuntimeError, OverflowError, ValueError) as error:
        raise ModelFormatError(f"It is no archive that can be read: {error}. Save it again.") from error


@contextmanager
def naming(path: str | os.PathLike[str], verb: str) -> Iterator[None]:
    """Errors inside say which file it is; those of the system become ours."""
    try:
        yield
    except ModelFormatError as error:
        raise ModelFormatError(f"{os.fspath(path)!r} cannot be {verb}. {error}") from error
    except FileAccessError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileAccessError(f"{os.fspath(path)!r} cannot be {verb}: {reason}. Pass the path of a file that can be {verb}.") from error


# -- the seal ---------------------------------------------------------------------------------------------------------------------


def _digest(file: IO[bytes], size: int) -> bytes:
    """SHA-256 of the first ``size`` bytes, in hexadecimal."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (chunk := file.read(min(CHUNK, size))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest().encode("ascii")


def _seal(path: Path) -> None:
    with path.open("r+b") as file:
        sealed = file.seek(0, os.SEEK_END) - DIGEST_CHARS
        digest = _digest(file, sealed)
        file.seek(sealed)
        file.write(digest)


def _check_seal(file: IO[bytes]) -> None:
    """The last bytes are the digest of all others."""
    sealed = max(file.seek(0, os.SEEK_END) - DIGEST_CHARS, 0)
    digest = _digest(file, sealed)
    file.seek(sealed)
    if file.read(DIGEST_CHARS) != digest:
        raise ModelFormatError(
            "It does not end in the digest of its content: it is damaged, cut short, or was not written by ONMF.save. Take another copy."
        )


# -- the members ------------------------------------------------------------------------------------------------------------------


def _add(file: zipfile.ZipFile, name: str, parts: Iterable[bytes | memoryview]) -> None:
    info = zipfile.ZipInfo(name, TIMESTAMP)
    info.create_system = 3  # one for all systems, so that they write the same bytes
    info.external_attr = 0o644 << 16
    info.compress_type = file.compression
    with file.open(info, "w", force_zip64=True) as member:
        for part in parts:
            member.write(part)


def _check_layout(members: zipfile.ZipFile) -> None:
    """Stored members of different names, one behind the other from the first byte on."""
    position = 0
    for info in members.infolist():
        name = info.orig_filename
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits:
            raise ModelFormatError(f"Member {name!r} is compressed or encrypted; members are stored as they are.")
        if info.header_offset != position:
            raise ModelFormatError(f"Member {name!r} starts at byte {info.header_offset}; expected {position}, where the one before ends.")
        position += LOCAL_HEADER + len(name.encode()) + info.file_size
    if position != members.start_dir:
        raise ModelFormatError(f"The members end at byte {position}; expected {members.start_dir}, where the directory starts.")
    names = members.namelist()
    if len(set(names)) < len(names) or names[:1] != [MANIFEST]:
        raise ModelFormatError(f"The members are {brief(names)}; expected {MANIFEST!r} first, and no name twice.")


def _npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The header of version 1.0 of NumPy's format, written here so that it does not depend on the version of NumPy."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}"
    start = b"\x93NUMPY\x01\x00"
    padded = text.ljust(-(len(start) + 2 + len(text) + 1) % 64 + len(text)) + "\n"
    return start + struct.pack("<H", len(padded)) + padded.encode("ascii")


def _dtype(array: Array) -> str:
    return array.dtype.newbyteorder("<").str


def _npy(array: Array) -> Iterator[bytes | memoryview]:
    """The parts of a member: its header, and the bytes of the array, not copied where they are in order."""
    yield _npy_header(_dtype(array), array.shape)
    yield np.ascontiguousarray(array, _dtype(array)).reshape(-1).view(np.uint8).data


def _entry(name: str, array: Array) -> dict[str, Any]:
    _check_dtype(name, _dtype(array))
    digest = hashlib.sha256()
    for part in _npy(array):
        digest.update(part)
    return {"dtype": _dtype(array), "shape": list(array.shape), "sha256": digest.hexdigest()}


def _check_dtype(name: str, dtype: Any) -> None:
    if dtype not in DTYPES:
        raise ModelFormatError(f"{name!r} holds {brief(dtype)}; expected one of {', '.join(DTYPES)}.")


def _arrays(members: zipfile.ZipFile, entries: Any) -> dict[str, Array]:
    if not isinstance(entries, dict):
        raise ModelFormatError(f"The manifest names the arrays {brief(entries)}; expected an entry for each.")
    found, expected = members.namelist()[1:], [f"{name}.npy" for name in entries]
    if found != expected:
        raise ModelFormatError(f"The members are {brief(found)}; expected those of the manifest, {brief(expected)}.")
    return {name: _array(members, f"{name}.npy", entry) for name, entry in entries.items()}


def _array(members: zipfile.ZipFile, name: str, entry: Any) -> Array:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "sha256"}:
        raise ModelFormatError(f"The entry of {name!r} is {brief(entry)}; expected its dtype, shape and sha256.")
    dtype, shape = entry["dtype"], entry["shape"]
    _check_dtype(name, dtype)
    if not isinstance(shape, list) or len(shape) > 2 or not all(type(length) is int and 0 <= length <= LONGEST for length in shape):
        raise ModelFormatError(f"{name!r} has the shape {brief(shape)}; expected one or two lengths.")
    header = _npy_header(dtype, tuple(shape))
    expected, size = len(header) + prod(shape) * np.dtype(dtype).itemsize, members.getinfo(name).file_size
    if size != expected:  # before anything of that size is allocated
        raise ModelFormatError(f"{name!r} has {size} bytes; its shape {shape} needs {expected}.")
    content = members.read(name)
    if hashlib.sha256(content).hexdigest() != entry["sha256"] or not content.startswith(header):
        raise ModelFormatError(f"{name!r} is not what the manifest describes.")
    values = np.frombuffer(content, dtype, offset=len(header)).reshape(shape)
    return values.astype(values.dtype.newbyteorder("="))


# -- the manifest -----------------------------------------------------------------------------------------------------------------


def parsed(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content.decode("ascii"), object_pairs_hook=_no_twins, parse_float=_no_float, parse_constant=_no_float)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"The manifest is not the JSON that is expected: {error}.") from error
    if not isinstance(document, dict):
        raise ModelFormatError(f"The manifest is a {type(document).__name__}; expected an object.")
    return document


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a name occurs twice among {brief([name for name, _ in pairs])}")
    return found


def _no_float(text: str) -> Any:
    raise ValueError(f"{text} is a decimal number, which does not keep its bits")
