"""Where results go: the terminal, or files that are all written or none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import typer

from .._files import atomic
from ..exceptions import InvalidInputError


def say(text: str) -> None:
    """A line on standard output."""
    typer.echo(text)


def warn(text: str) -> None:
    """A line on standard error."""
    typer.echo(f"orthonmf: {text}", err=True)


def as_json(value: Any) -> str:
    """JSON that any parser and any terminal reads: a number that is not finite is null, a letter beyond ASCII is escaped."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def base_name(path: Path) -> str:
    """The last part of a path, also of . and .. ."""
    return os.path.basename(os.path.abspath(path))


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8")


def check_file(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before any work, a file that could not be written, or that the user may want to keep."""
    if path.is_dir():
        raise InvalidInputError(f"--out {path} is a folder; expected the name of a file.")
    if not path.parent.is_dir():
        raise InvalidInputError(f"--out {path}: there is no folder {path.parent}; make it first.")
    _check_writable(path.parent)
    _check_not_read(path, inputs)
    if os.path.lexists(path) and not force:
        raise _exists(path)


def check_folder(folder: Path, names: Iterable[str], *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before any work, a folder that could not be made, or that holds one of the files."""
    existing = next(each for each in (folder, *folder.absolute().parents) if os.path.lexists(each))
    if not existing.is_dir():
        raise InvalidInputError(f"--out {folder}: {existing} is not a folder; choose another name.")
    _check_writable(existing)
    taken = [folder / name for name in names if os.path.lexists(folder / name)]
    for path in taken:
        _check_not_read(path, inputs)
    if taken and not force:
        raise _exists(taken[0])
    for path in taken:
        if path.is_dir() and not path.is_symlink():
            raise InvalidInputError(f"{path} is a folder, where a file should go; choose another --out.")


def _check_not_read(path: Path, inputs: Iterable[Path]) -> None:
    if any(path.exists() and each.exists() and path.samefile(each) for each in inputs):
        raise InvalidInputError(f"{path} is what is read, and would be replaced; choose another --out.")


def _check_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInputError(f"{folder} may not be written to; choose another --out, or change its permissions.")


def _exists(path: Path) -> InvalidInputError:
    return InvalidInputError(f"{path} exists; add --force to replace it, or choose another --out.")


@contextmanager
def together(folder: Path, stale: Iterable[str] = ()) -> Iterator[Path]:
    """A folder for drafts; when the block ends well, all move to ``folder`` and replace what is there, and what is stale goes.

    Until then nothing in ``folder`` changes, so that an error or an interrupt leaves no half of a result. A link there is replaced,
    never followed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".draft-", dir=folder) as scratch:
        drafts = Path(scratch)
        yield drafts
        for draft in sorted(drafts.iterdir()):
            os.replace(draft, folder / draft.name)
    for name in stale:
        (folder / name).unlink(missing_ok=True)
