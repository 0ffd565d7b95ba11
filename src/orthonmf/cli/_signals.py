"""The signals that end a command: Ctrl-C, a terminal that closes, a request to end.

Each unwinds the command as Ctrl-C does, so that drafts and locks are removed on the way out. Only the standard library is imported
here, so that they are heard before anything that takes time.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["signals"]

# Windows has no SIGHUP.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Signals:
    """What was heard, and whether it may be acted upon."""

    def __init__(self) -> None:
        self._received: int | None = None
        self._held = 0
        self._waiting = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """End the block at a signal. One that is ignored, as after nohup, or that the caller handles, is left to that."""
        previous = {}
        self._received, self._held, self._waiting = None, 0, False
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    previous[number] = signal.signal(number, self._hear)
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let a signal wait until the block has ended: what is in it takes no time, and must not be left half done."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
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
