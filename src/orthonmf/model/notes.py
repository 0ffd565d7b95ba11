"""The journal of a fit in a file: what its passes found since a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

from .._common.typing import Array
from ..engines.journal import Note
from ..exceptions import InvalidInputError, ModelFormatError
from .archive import Archive
from .records import Records, packed
from .values import flattened, restored

__all__ = ["Notebook"]

# Bytes of notes that are held before they are written, at most: at the rate at which passes are noted, those of a quarter of a minute.
NOTES_BYTES = 32 << 20


class Notebook:
    """Notes in a file, which is written once a minute, or where many bytes of them are held.

    Parameters
    ----------
    path : Path
        Of the file; it is made with the first notes.
    check : callable
        Refuses the document with which the file begins, where it belongs to another fit.
    header : dict
        That of this fit.
    every : float
        Seconds between two writes, at least.
    warn : callable
        Told, in a sentence, what is wrong with the file.
    """

    def __init__(
        self, path: Path, check: Callable[[dict[str, Any]], None], header: dict[str, Any], every: float, warn: Callable[[str], None]
    ) -> None:
        self._records, self._check, self._every, self._warn = Records(path), check, every, warn
        self._header, self._held = packed(Archive(header, {})), list[bytes]()
        self._is_lost, self._written = False, monotonic()

    def notes(self) -> Iterator[Note]:
        """Those that are whole, in the order of their numbers."""
        try:
            for place, record in enumerate(self._records.read()):
                if place:
                    yield restored(record.document["note"], record.arrays)
                else:
                    self._check(record.document)
                    self._header = b""
        except (ModelFormatError, OSError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            self._lose(f"The journal {str(self._records.path)!r} is damaged ({error}); what follows is computed again.")

    def write(self, note: Note) -> None:
        """Keep one more, unless its arrays would not come back as they are."""
        arrays: dict[str, Array] = {}
        try:
            self._held.append(packed(Archive({"note": flattened(note, arrays)}, arrays)))
        except (ModelFormatError, InvalidInputError):
            return
        if monotonic() - self._written >= self._every or sum(map(len, self._held)) >= NOTES_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held; a full disk costs the notes, not the fit."""
        held, self._held = self._held, []
        if not self._is_lost and held:
            try:
                self._records.add([self._header, *held] if self._header else held)
                self._header = b""
            except OSError as error:
                self._lose(f"The journal {str(self._records.path)!r} cannot be written ({error}); the fit goes on without it.")
        self._written = monotonic()

    def differs(self) -> None:
        """Hear that a note is not of the pass that was asked for."""
        self._lose(
            f"The journal {str(self._records.path)!r} is not of these passes: it was written on a machine that rounds differently, or with "
            "other packages. They are computed again, and the last digits may differ from those of a fit that was not stopped."
        )

    def _lose(self, sentence: str) -> None:
        self._is_lost = True
        self._warn(sentence)
