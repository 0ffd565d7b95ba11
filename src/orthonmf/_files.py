"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .exceptions import FileAccessError

__all__ = ["atomic"]

# Letters of a name that its draft has too.
SHORT = 24


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft beside ``path`` to write to; it takes the place of ``path`` when the block ends well, and is removed when it does not.

    Whoever reads ``path`` sees the old file or the new one, whenever the process ends. A link at ``path`` is replaced, never followed.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileAccessError(f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}; make it first.")
    # A name has at most 255 bytes, a letter up to four; the end tells matplotlib the format, and is short where it does.
    ending = path.suffix if len(path.suffix) <= SHORT else ""
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:SHORT]}.", suffix=f".draft{ending}", dir=path.parent)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.chmod(0o666 & ~_umask())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The permissions that new files do not get; mkstemp's are for the owner alone."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
