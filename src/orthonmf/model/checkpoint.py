"""Checkpoints: how far a fit has come, in a folder, in the sealed format of models, so that another process can carry it on.

A fit that is carried on from any checkpoint ends in the bits of one that was never stopped: what a run holds after a stage determines all
that follows, given the same items, parameters and blocks. Those are stored with it, the items as a digest, and compared. Beside each
checkpoint lies the journal of the passes since then, from which those of a stage that was not completed are answered.
"""

from __future__ import annotations

import os
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from .. import __version__
from .._common.encoding import encode
from .._common.typing import Array
from ..engines.journal import Journal
from ..exceptions import CheckpointWarning, FileAccessError, InvalidInputError, ModelFormatError
from ..search.factorize import Progress
from .archive import Archive, read, write
from .notes import Notebook
from .values import flattened, restored

__all__ = ["PARTIAL", "WHOLE", "Checkpoint"]

# The version of what is stored.
CHECKPOINT_FORMAT = 1
# Seconds between two checkpoints, at least.
EVERY = 60.0
# Checkpoints that are kept: where the last one is damaged, the one before serves.
KEPT = 2
# The best model of a fit that was interrupted.
PARTIAL = "interrupted.onmf"
# The model in a folder that the command line wrote.
WHOLE = "model.onmf"
_NAME = re.compile(r"(checkpoint|journal)-(\d{6,})")


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
        self._journal: Journal | None = None
        self._number = 0

    def last(self) -> Progress | None:
        """Where the fit had come when the newest checkpoint that is whole was written; None where there is none."""
        self._number = 0
        for path in reversed(self._paths("checkpoint")):
            try:
                document = read(path)
                self._check_identity(document.document, path)
                found = restored(document.document["progress"], document.arrays)
            except (ModelFormatError, OSError, KeyError, TypeError, ValueError) as error:
                if isinstance(error, InvalidInputError):
                    raise
                self._warn(f"The checkpoint {str(path)!r} is damaged ({error}); the one before is used, or the fit starts anew.")
                continue
            if isinstance(found, Progress):
                self._number = _number(path)
                return found
        return None

    def journal(self) -> Journal:
        """What passes found since the checkpoint that ``last`` gave."""
        self._journal = Journal(self._notebook())
        return self._journal

    def _notebook(self) -> Notebook:
        path = self.folder / f"journal-{self._number:06d}"
        return Notebook(path, lambda document: self._check_identity(document, path), self._header(), EVERY, self._warn)

    def _header(self) -> dict[str, Any]:
        return {"format": CHECKPOINT_FORMAT, "identity": self.identity}

    def keep(self, progress: Progress, *, now: bool = False) -> None:
        """Write a checkpoint, unless the last one was written less than a minute ago; a full disk costs the checkpoint, not the fit.

        While passes are answered from the journal there is nothing new to write.
        """
        if (not now and monotonic() - self._written < EVERY) or (self._journal is not None and self._journal.replaying):
            return
        arrays: dict[str, Array] = {}
        document = {**self._header(), "progress": flattened(progress, arrays)}
        paths = self._paths("checkpoint")
        number = 1 + (_number(paths[-1]) if paths else 0)
        try:
            (self.folder / f"journal-{number:06d}").unlink(missing_ok=True)
            write(self.folder / f"checkpoint-{number:06d}", Archive(document, arrays))
            self._begin(number)
        except (OSError, FileAccessError) as error:
            self._warn(f"No checkpoint could be written to {str(self.folder)!r} ({error}); the fit goes on, and the last one is as it was.")
        self._written = monotonic()

    def finished(self) -> None:
        """The fit is whole, and the model that an interruption left before is out of date."""
        with suppress(OSError):
            (self.folder / PARTIAL).unlink(missing_ok=True)

    def _begin(self, number: int) -> None:
        """Go on from a checkpoint that was written: older ones are removed, and passes are noted beside this one."""
        kept = [_number(path) for path in self._paths("checkpoint")][-KEPT:]
        for path in (*self._paths("checkpoint"), *self._paths("journal")):
            if _number(path) < kept[0]:
                path.unlink(missing_ok=True)
        self._number = number
        if self._journal is not None:
            self._journal.begin(self._notebook())

    def _paths(self, kind: str) -> list[Path]:
        """The checkpoints, or journals, that there are, the oldest first."""
        names = ((_NAME.fullmatch(path.name), path) for path in self.folder.iterdir())
        return sorted((path for found, path in names if found is not None and found[1] == kind), key=_number)

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
    """The model that an interrupted fit left in its folder, or the command line in that of its results."""
    path = next((path for name in (PARTIAL, WHOLE) if (path := Path(folder) / name).exists()), None)
    if path is None:
        raise FileAccessError(
            f"{os.fspath(folder)!r} cannot be read: it is a folder, and holds no model of an interrupted fit. Pass the path of a model; to "
            "carry on a fit whose checkpoints the folder has, call fit with the same data, parameters and checkpoint."
        )
    return path


def _number(path: Path) -> int:
    return int(path.name.rpartition("-")[2])
