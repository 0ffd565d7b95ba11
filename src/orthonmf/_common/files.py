"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import ctypes
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..exceptions import FileAccessError

__all__ = ["DRAFT", "STDIN", "atomic", "exchanged", "no_file"]

# The name for standard input on the command line.
STDIN = Path("-")
# Letters of a name that its draft has too.
SHORT = 24
# The names of drafts.
DRAFT = re.compile(r"\..*\.[0-9a-f]{16}\.draft.*", re.DOTALL)
# Of renameat2(2): paths are relative to the current folder; both names change places.
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def no_file(path: Path) -> str:
    """That a path is no file, as a sentence begins."""
    return f"{path} is not a file" if path.exists() else f"{path} does not exist"


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft beside ``path`` to write to; it takes the place of ``path`` when the block ends well, and is removed when it does not.

    Whoever reads ``path`` sees the old file or the new one, whenever the process ends. A link at ``path`` is replaced, never followed.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileAccessError(f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}; make it first.")
    if path.is_dir():
        raise FileAccessError(f"{str(path)!r} cannot be written: it is a folder. Pass the path of a file in it.")
    # A name has at most 255 bytes, a letter up to four; the end tells matplotlib the format, and is short where it does.
    ending = path.suffix if len(path.suffix) <= SHORT else ""
    draft = path.with_name(f".{path.name[:SHORT]}.{secrets.token_hex(8)}.draft{ending}")
    try:
        # The system gives it the permissions of any new file; to ask what they are, one would have to change them for all threads.
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def exchanged(one: Path, other: Path) -> bool:
    """Let two folders change names in one step; False, and nothing happened, where the system or the file system cannot.

    Linux can, on most file systems.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    return rename is not None and rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0
