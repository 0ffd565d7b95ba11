"""The signals that end a command: Ctrl-C, a terminal that closes, a request to end.

Each unwinds the command as Ctrl-C does, so that drafts and locks are removed on the way out. Only the standard library is imported
here, so that they are heard before anything that takes time.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

__all__ = ["signals"]

# Windows has no SIGHUP.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Signals(threading.local):
    """What was heard, whether it may be acted upon, and what is owed; of each thread, though only the main one hears signals."""

    def __init__(self) -> None:
        self._received: int | None = None
        self._held = False
        self._waiting = False
        self._previous: dict[int, Any] = {}
        self._owed: list[Callable[[], None]] = []

    def hear(self) -> None:
        """From now on a signal raises KeyboardInterrupt; one that is ignored, as after nohup, or that the caller handles, does not."""
        self._received, self._held, self._waiting = None, True, False  # nothing is raised while handlers change
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._previous[number] = signal.signal(number, self._hear)
        self._held = False
        self._heed()

    def end(self) -> None:
        """Undo what is owed, and leave signals to whom they were left before. To be called again where a signal came in between."""
        self._held = True
        while self._owed:
            with suppress(Exception):  # the rest is owed all the same
                self._undo()
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    @contextmanager
    def owing(self, undo: Callable[[], None]) -> Iterator[None]:
        """Undo at the end of the block, or at ``end`` where a signal came just before the one; it may be called twice."""
        self._owed.append(undo)
        try:
            yield
        finally:
            if self._owed[-1:] == [undo]:  # else what came later comes first
                self._undo()

    def _undo(self) -> None:
        try:
            self._owed[-1]()
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._owed.pop()
            raise
        self._owed.pop()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let a signal wait until the block has ended, or reaches a part of it where signals are heeded.

        Whatever must be undone is made and undone in such a block, and only the work between is heeded.
        """
        before, self._held = self._held, True
        try:
            yield
        finally:
            self._held = before
        self._heed()

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Act upon signals in this part of a block that holds them."""
        before, self._held = self._held, False
        try:
            self._heed()
            yield
        finally:
            self._held = before

    def _heed(self) -> None:
        if self._waiting and not self._held:
            self._waiting = False
            raise KeyboardInterrupt

    @property
    def code(self) -> int | None:
        """The exit code for what was heard, as the shell would say it: 128 and the number of the signal."""
        return None if self._received is None else 128 + self._received

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._received = number
        if self._held:
            self._waiting = True
        else:
            raise KeyboardInterrupt


signals = Signals()
