"""A journal of passes: what each of them found, in their order, so that a fit that was stopped need not compute them again.

A search is deterministic: what it does next depends on what its passes found so far. One that begins again at the same place asks for the
same passes in the same order, and gets from the journal what was noted of them. Short passes, and those that find much for the time they
take, are not noted; they are computed again. Columns of many items are not noted either: such a column is found again if a pass that was
not noted reads it; on a cluster it is a recipe as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._common.typing import Array
from ..passes.base import Columns, Found, Pass, host

if TYPE_CHECKING:
    from .base import Engine, Framing
    from .threads import ThreadTeam

# What a slow disk (100 MB/s) writes in a fiftieth of the time that a pass took may be noted of it; shorter ones are not: a thousand of them
# are a few seconds.
NOTED_SECONDS = 0.01
NOTED_BYTES_PER_SECOND = 2 << 20


@dataclass(frozen=True)
class Note:
    """What a pass found.

    Attributes
    ----------
    number : int
        Of the pass, counted from where the journal begins.
    digest : str
        Of the pass, its parameters and how many items it saw.
    total
    columns : dict of str to ndarray or None
        None where the column is found again when it is read.
    """

    number: int
    digest: str
    total: Any
    columns: dict[str, Array | None]

    @property
    def nbytes(self) -> int:
        """Of its arrays."""
        return sum(each.nbytes for each in _arrays([self.total, *self.columns.values()]))


class Pages(Protocol):
    """Where notes are kept."""

    def notes(self) -> Iterator[Note]:
        """Those that there are, in the order of their numbers."""

    def write(self, note: Note) -> None:
        """Keep one more."""

    def flush(self) -> None:
        """Let what was kept outlast this process."""

    def differs(self) -> None:
        """Hear that a note is not of the pass that was asked for."""


class Journal:
    """Answers the passes that were noted, and notes those that follow.

    Parameters
    ----------
    pages : Pages
    """

    def __init__(self, pages: Pages) -> None:
        self._is_open = False
        self.begin(pages)

    def begin(self, pages: Pages) -> None:
        """Begin here, with what those pages hold."""
        self._pages, self._number, self._notes = pages, 0, pages.notes()
        self._next = next(self._notes, None)

    @property
    def replaying(self) -> bool:
        """Whether passes are still to be answered."""
        return self._next is not None

    @contextmanager
    def attached(self, team: ThreadTeam) -> Iterator[None]:
        """Within the block, passes of a team are answered and noted; what was noted is flushed where an error ends it."""
        team.journal, self._is_open = self, True
        try:
            yield
        except BaseException:
            self._pages.flush()
            raise
        finally:
            self._is_open, self._next = False, None

    def found(self, engine: Engine, frame: Framing | None, work: Pass, columns: Columns) -> Found:
        """What a pass finds, from the journal where it was noted."""
        if not self._is_open:
            return engine.computed(frame, work, _settled(columns, work))
        number, self._number = self._number, self._number + 1
        known = self._next
        if known is not None and known.number == number:
            if known.digest == digest_of(engine, frame, work):
                self._next = next(self._notes, None)
                return self._answered(known, engine, frame, work, columns)
            self._next = None
            self._pages.differs()
        began = engine.team.clock()
        found = engine.computed(frame, work, _settled(columns, work))
        if not self.replaying:
            self._note(number, engine, frame, work, found, engine.team.clock() - began)
        return found

    def _answered(self, note: Note, engine: Engine, frame: Framing | None, work: Pass, columns: Columns) -> Found:
        engine.count_pass(frame)
        noted = {name: each for name, each in note.columns.items() if each is not None}
        return Found(note.total, noted | engine.promised(frame, work, columns, note.columns.keys() - noted.keys()))

    def _note(self, number: int, engine: Engine, frame: Framing | None, work: Pass, found: Found, seconds: float) -> None:
        if seconds < NOTED_SECONDS:
            return
        columns = {name: None if engine.columns_stay else each for name, each in found.columns.items()}
        note = Note(number, "", found.total, columns)
        if note.nbytes <= NOTED_BYTES_PER_SECOND * seconds:
            self._pages.write(Note(number, digest_of(engine, frame, work), found.total, columns))


class Again:
    """A pass whose columns may be asked for."""

    def __init__(self, engine: Engine, frame: Framing | None, work: Pass, columns: Columns) -> None:
        bare: Pass = getattr(work, "bare", work)  # without the columns that were only compared
        self._ask: tuple[Any, ...] = engine, frame, bare, {name: each for name, each in columns.items() if name in bare.reads}
        self._found: dict[str, Array] | None = None

    def columns(self) -> dict[str, Array]:
        """What it found; no pass is counted for it."""
        if self._found is None:
            engine, frame, work, columns = self._ask
            counts = engine.passes, engine.team.passes
            self._found = engine.computed(frame, work, _settled(columns, work)).columns
            engine.passes, engine.team.passes = counts
            self._ask = ()
        return self._found


class Later:
    """A column that is found again when it is read."""

    def __init__(self, again: Again, name: str) -> None:
        self._again, self._name = again, name

    def host(self) -> Array:
        """As an array of this process."""
        return self._again.columns()[self._name]


def _settled(columns: Columns, work: Pass) -> Columns:
    """The columns that a pass reads, found again where need be, before threads read them."""
    return {name: host(each) if isinstance(each, Later) else each for name, each in columns.items() if name in work.reads}


def digest_of(engine: Engine, frame: Framing | None, work: Pass) -> str:
    """Of a pass, its parameters, its frame and how many items it sees."""
    state = sha256(f"{engine.n_items} {engine.n_dims} {engine.dtype} {type(frame).__name__} ".encode())
    for part in _plain([work, getattr(frame, "ref", None)]):
        state.update(part)
    return state.hexdigest()


def _plain(value: Any) -> Iterator[bytes]:
    """A value as bytes that are others where it is another."""
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif is_dataclass(value):
        yield type(value).__name__.encode()
        for each in fields(value):
            yield from _plain(getattr(value, each.name))
    elif isinstance(value, tuple | list):
        yield f"{len(value)}:".encode()
        for each in value:
            yield from _plain(each)
    elif isinstance(value, int | float | str | np.generic | None):
        yield f"{type(value).__name__} {value!r} ".encode()
    else:
        yield f"{type(value).__name__} ".encode()


def _arrays(value: Any) -> Iterator[Array]:
    """The arrays in a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif is_dataclass(value):
        for each in fields(value):
            yield from _arrays(getattr(value, each.name))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _arrays(each)
