"""Checkpoints: how far a fit has come, in a folder, in the sealed format of models, so that another process can carry it on.

A fit that is carried on from any checkpoint ends in the bits of one that was never stopped: what a run holds after a stage determines all
that follows, given the same items, parameters and blocks. Those are stored with it, the items as a digest, and compared.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from .. import __version__
from .._common.encoding import decode, encode
from .._common.typing import Array
from ..exceptions import CheckpointWarning, FileAccessError, InvalidInputError, ModelFormatError
from ..progress import Temperature
from ..search.anneal import Split
from ..search.bounded.bounds import Bounds
from ..search.factorize import Progress
from ..search.number import Number
from ..search.run import Answer, Run, Stage
from ..search.status import Status
from .archive import Archive, read, write

__all__ = ["PARTIAL", "Checkpoint"]

# The version of what is stored.
CHECKPOINT_FORMAT = 1
# Seconds between two checkpoints, at least.
EVERY = 60.0
# Checkpoints that are kept: where the last one is damaged, the one before serves.
KEPT = 2
# The best model of a fit that was interrupted.
PARTIAL = "interrupted.onmf"
_NAME = re.compile(r"checkpoint-(\d{6,})")
_KINDS = {kind.__name__: kind for kind in (Progress, Run, Answer, Bounds, Temperature, Split, Number)}
_ENUMS = {kind.__name__: kind for kind in (Stage, Status)}


@dataclass
class Checkpoint:
    """The checkpoints of one fit.

    Parameters
    ----------
    folder : Path
        Made where it does not exist.
    identity : dict of str to value
        What a fit depends on, by name; a checkpoint of another one is refused.
    """

    folder: Path
    identity: dict[str, Any]

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileAccessError(f"checkpoint={str(self.folder)!r} is no folder that can be written to: {error.strerror}.") from error
        self.identity = {name: encode(name, value) for name, value in {**self.identity, "version": __version__}.items()}
        self._written, self._warned = monotonic(), False

    def last(self) -> Progress | None:
        """Where the fit had come when the newest checkpoint that is whole was written; None where there is none."""
        for path in reversed(self._paths()):
            try:
                document = read(path)
                self._check_identity(document.document, path)
                found = _restored(document.document["progress"], document.arrays)
            except (ModelFormatError, OSError, KeyError, TypeError, ValueError) as error:
                if isinstance(error, InvalidInputError):
                    raise
                self._warn(f"The checkpoint {str(path)!r} is damaged ({error}); the one before is used, or the fit starts anew.")
                continue
            if isinstance(found, Progress):
                return found
        return None

    def keep(self, progress: Progress, *, now: bool = False) -> None:
        """Write a checkpoint, unless the last one was written less than a minute ago; a full disk costs the checkpoint, not the fit."""
        if not now and monotonic() - self._written < EVERY:
            return
        arrays: dict[str, Array] = {}
        document = {"format": CHECKPOINT_FORMAT, "identity": self.identity, "progress": _flattened(progress, arrays)}
        paths = self._paths()
        number = 1 + (int(_number(paths[-1])) if paths else 0)
        try:
            write(self.folder / f"checkpoint-{number:06d}", Archive(document, arrays))
            for path in paths[: len(paths) + 1 - KEPT]:
                path.unlink(missing_ok=True)
        except (OSError, FileAccessError) as error:
            self._warn(f"No checkpoint could be written to {str(self.folder)!r} ({error}); the fit goes on, and the last one is as it was.")
        self._written = monotonic()

    def _paths(self) -> list[Path]:
        """The checkpoints there are, the oldest first."""
        return sorted((path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)), key=lambda path: int(_number(path)))

    def _check_identity(self, document: dict[str, Any], path: Path) -> None:
        if document.get("format") != CHECKPOINT_FORMAT or not isinstance(document.get("identity"), dict):
            raise ModelFormatError("It is no checkpoint of this version.")
        stored = document["identity"]
        if differing := [name for name in {**stored, **self.identity} if stored.get(name) != self.identity.get(name)]:
            raise InvalidInputError(
                f"checkpoint={str(self.folder)!r} belongs to another fit: {', '.join(differing)} differ{'s' * (len(differing) == 1)} from "
                f"what {path.name} was written for. Pass another folder, or remove this one to start anew."
            )

    def _warn(self, sentence: str) -> None:
        if not self._warned:
            warnings.warn(sentence, CheckpointWarning, stacklevel=2)
        self._warned = True


def partial(folder: str | os.PathLike[str]) -> Path:
    """The model that an interrupted fit left in its folder."""
    path = Path(folder) / PARTIAL
    if not path.exists():
        raise FileAccessError(
            f"{os.fspath(folder)!r} cannot be read: it is a folder, and holds no model of an interrupted fit. Pass the path of a model; to "
            "carry on a fit whose checkpoints the folder has, call fit with the same data, parameters and checkpoint."
        )
    return path


def _number(path: Path) -> str:
    found = _NAME.fullmatch(path.name)
    assert found is not None
    return found[1]


def _flattened(value: Any, arrays: dict[str, Array]) -> Any:
    """A run as JSON, its arrays apart."""
    if isinstance(value, np.ndarray):
        arrays[name := f"{len(arrays):06d}"] = value
        return {"array": name}
    if isinstance(value, Enum):
        return {"member": [type(value).__name__, value.name]}
    if is_dataclass(value):
        return {"record": [type(value).__name__, {each.name: _flattened(getattr(value, each.name), arrays) for each in fields(value)}]}
    if isinstance(value, tuple | list):
        return {"several": [type(value) is tuple, [_flattened(each, arrays) for each in value]]}
    if isinstance(value, dict):
        return {"pairs": [[_flattened(part, arrays) for part in pair] for pair in value.items()]}
    return encode("progress", value)


def _restored(value: Any, arrays: dict[str, Array]) -> Any:
    """What ``_flattened`` made this of. Of classes, only those of a run are made; anything else is refused."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "member":
        return _ENUMS[content[0]][content[1]]
    if kind == "record":
        return _KINDS[content[0]](**{name: _restored(each, arrays) for name, each in content[1].items()})
    if kind == "several":
        return _several((_restored(each, arrays) for each in content[1]), content[0])
    if kind == "pairs":
        return {_restored(key, arrays): _restored(each, arrays) for key, each in content}
    return decode("progress", value)


def _several(values: Iterable[Any], is_tuple: bool) -> Any:
    return tuple(values) if is_tuple else list(values)
