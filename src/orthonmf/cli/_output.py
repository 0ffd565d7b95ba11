"""What is printed: nothing that a name holds may act on the terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .._common.files import STDIN, atomic
from .._common.visible import visible
from ..exceptions import InvalidInputError


def say(text: str) -> None:
    """Lines on standard output."""
    _print(visible(text, keep="\n"), sys.stdout)


def say_table(text: str) -> None:
    """A table on standard output: for the eye where that is a terminal, byte for byte where it is a file or another program."""
    _print(visible(text, keep="\n") if sys.stdout.isatty() else text, sys.stdout)


def tell(text: str) -> None:
    """Lines on standard error, where somebody reads it; the exit code tells where nobody does."""
    with suppress(OSError):
        if sys.stderr is not None:
            _print(visible(text, keep="\n"), sys.stderr)


def _print(text: str, stream: TextIO) -> None:
    stream.write(f"{text}\n")
    stream.flush()


def warn(text: str) -> None:
    """One line on standard error, with our name."""
    tell(f"orthonmf: {visible(text)}")


def as_json(value: Any) -> str:
    """JSON that any parser and any terminal reads: a number that is not finite is null, a letter beyond ASCII is escaped."""
    return json.dumps(_plain(value), indent=2, allow_nan=False).replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def base_name(path: Path) -> str:
    """The last part of a path, also of . and .. ; standard input has a name too."""
    return "stdin" if path == STDIN else os.path.basename(os.path.abspath(path))


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
    check_writable(path.parent)
    check_not_read(path, inputs)
    if os.path.lexists(path) and not force:
        raise exists(path)


def check_not_read(path: Path, inputs: Iterable[Path]) -> None:
    if any(path.exists() and each.exists() and path.samefile(each) for each in inputs):
        raise InvalidInputError(f"{path} is what is read, and would be replaced; choose another --out.")


def check_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInputError(f"{folder} may not be written to; choose another --out, or change its permissions.")


def exists(path: Path) -> InvalidInputError:
    return InvalidInputError(f"{path} exists; add --force to replace it, or choose another --out.")
