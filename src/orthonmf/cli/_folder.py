"""A folder of results that is there whole or not at all, and into which one command writes at a time.

The files are written to a draft beside the folder, which takes its place in one step: by a rename where there was no folder, by an
exchange of both names where there was one. A folder that cannot be exchanged keeps its place, and the files are moved into it one by one:
one that also holds what is not ours, which stays untouched, one that the command runs in, one where a disk is mounted, and any where the
file system knows no exchange. An error or a signal there still leaves all of the old files or all of the new ones; only a process that is
killed outright within these few moves can leave some of each.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from .._common.files import DRAFT, SHORT, exchanged
from ..exceptions import InvalidInputError
from ._output import check_not_read, check_writable, exists
from ._signals import signals

# What file systems without locks answer.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def alone(folder: Path) -> Iterator[Path]:
    """Refuse another command that writes into ``folder`` while the block runs; yields the folder with links resolved.

    The system holds the lock for the process and lets go of it however the process ends. Parents that are made for it and stay empty are
    removed again.
    """
    _check_place(folder)
    real = Path(os.path.realpath(folder))
    missing = [each for each in (real.parent, *real.parent.parents) if not each.exists()]
    with signals.held(), signals.owing(partial(_remove_empty, missing)):
        real.parent.mkdir(parents=True, exist_ok=True)
        lock = _Lock(_hidden(real, "lock"), folder)
        with signals.owing(lock.release), signals.heeded():
            yield real


def check_taken(folder: Path, names: Iterable[str], *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before any work, a folder that holds one of the files, unless they may be replaced."""
    taken = [folder / name for name in names if os.path.lexists(folder / name)]
    for path in taken:
        check_not_read(path, inputs)
    if taken and not force:
        raise exists(taken[0])
    for path in taken:
        if path.is_dir() and not path.is_symlink():
            raise InvalidInputError(f"{path} is a folder, where a file should go; choose another --out.")


@contextmanager
def together(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """A folder for drafts; when the block ends well, they are what ``folder`` has of the files ``names``. No link is followed.

    Until then nothing in ``folder`` changes. Call it within ``alone``.
    """
    names = tuple(names)
    drafts = _hidden(folder, "draft", inside=folder.exists() and not _replaceable(folder, names))
    with signals.held():
        _remove(drafts, names)  # of a command that was killed
        with signals.owing(partial(_remove, drafts, names)):
            drafts.mkdir()
            with signals.heeded():
                yield drafts
            _put(drafts, folder, names)


def _check_place(folder: Path) -> None:
    existing = next(each for each in (folder, *folder.absolute().parents) if os.path.lexists(each))
    if not existing.is_dir():
        raise InvalidInputError(f"--out {folder}: {existing} is not a folder; choose another name.")
    check_writable(existing)


def _hidden(folder: Path, kind: str, *, inside: bool = False) -> Path:
    """The same hidden name for the same folder, beside it, or inside where there may be none beside it."""
    inside = inside or not os.access(folder.parent, os.W_OK | os.X_OK)
    number = zlib.crc32(os.fsencode(folder.name))  # of names that start alike
    return (folder if inside else folder.parent) / f".{folder.name[:SHORT]}-{number:08x}.{kind}"


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders, each in the next, up to one that is not empty."""
    with suppress(OSError):
        for each in folders:
            each.rmdir()


class _Lock:
    """The lock on a file that is there only for it."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        self._descriptor: int | None = _taken(path, folder)

    def release(self) -> None:
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def _taken(path: Path, folder: Path) -> int:
    """The open file, with the lock on it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _free(descriptor):
            os.close(descriptor)
            raise InvalidInputError(f"another command is writing to {folder}; wait until it has ended, or choose another --out.")
        if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
        os.close(descriptor)  # who held it has just removed the file


def _free(descriptor: int) -> bool:
    """Take the lock on an open file, if nobody has it. Where there are no locks, nobody has."""
    if sys.platform == "win32":
        return True
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _replaceable(folder: Path, names: Iterable[str]) -> bool:
    """Whether another folder may take its place: it holds nothing but our files, and nobody would miss the old one."""
    here, above = folder.stat(), folder.parent.stat()
    return (
        set(os.listdir(folder)) <= set(names)
        and here.st_dev == above.st_dev
        and not os.path.samestat(here, os.stat(os.curdir))
        and os.access(folder.parent, os.W_OK | os.X_OK)
    )


def _put(drafts: Path, folder: Path, names: tuple[str, ...]) -> None:
    """The drafts in their place, and what they replace in theirs."""
    if not folder.exists():
        os.rename(drafts, folder)
        return
    shutil.copymode(folder, drafts)
    if _replaceable(folder, names) and _owner(folder) == _owner(drafts) and exchanged(drafts, folder):
        for each in drafts.iterdir():
            if each.name not in names:  # it came while we looked
                os.rename(each, folder / each.name)
    else:
        _move(drafts, folder, names)


def _owner(folder: Path) -> tuple[int, int]:
    return folder.stat().st_uid, folder.stat().st_gid


def _move(drafts: Path, folder: Path, names: tuple[str, ...]) -> None:
    """Each draft to its place, after each old file has left it; all moves are undone where one fails."""
    old = drafts / "old"
    old.mkdir()
    leaving = [(folder / name, old / name) for name in names if os.path.lexists(folder / name)]
    coming = [(drafts / name, folder / name) for name in names if os.path.lexists(drafts / name)]
    done = []
    try:
        for source, target in [*leaving, *coming]:
            os.rename(source, target)
            done.append((target, source))
    except OSError:
        for target, source in reversed(done):
            os.rename(target, source)
        old.rmdir()
        raise
    _remove(old, names)


def _remove(folder: Path, names: Iterable[str]) -> None:
    """A folder of ours with the files ``names`` and drafts of them; anything else in it is not ours to remove."""
    if not os.path.lexists(folder):
        return
    for name in {*names, *(each for each in os.listdir(folder) if DRAFT.fullmatch(each))}:
        (folder / name).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError as error:
        raise InvalidInputError(f"{folder} holds what orthonmf did not write; move it away.") from error
