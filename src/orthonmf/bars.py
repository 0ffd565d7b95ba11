"""A bar for fits in Python: in a notebook, on a terminal, and nothing where neither is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from html import escape
from typing import Any

from .progress import Moment, listening

__all__ = ["bar"]

# Of the bar on a terminal, in characters.
WIDTH = 24


@contextmanager
def bar() -> Iterator[None]:
    """Within the block, show how far each fit is: what it does, how long it has taken, and about how long it will.

    In a notebook it is an element of the page, on a terminal one line of standard error, which is cleared at the end. Elsewhere, as in a
    log file, nothing is shown; ``verbose=1`` is for that.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.bars import bar
    >>> with bar():
    ...     model = ONMF(2).fit([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 3.0]])
    """
    show, end = _notebook() or _terminal()
    try:
        with listening(on_moment=show):
            yield
    finally:
        end()


def line(moment: Moment) -> str:
    """A moment in words."""
    left = "" if moment.left is None else f", about {_clock(moment.left)} left"
    return f"{': '.join(filter(None, (moment.phase, moment.detail)))} ({_clock(moment.seconds)}{left})"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))


_Shown = tuple[Callable[[Moment], None], Callable[[], None]]


def _notebook() -> _Shown | None:
    """An element of the page that changes; None where no page is."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    display: Any = sys.modules["IPython"].display
    handle = display.display(display.HTML(""), display_id=True)

    def show(moment: Moment) -> None:
        text = escape(line(moment))
        handle.update(display.HTML(f'<progress value="{moment.share:.4f}" max="1" aria-label="{text}"></progress> <code>{text}</code>'))

    return show, lambda: handle.update(display.HTML(""))


def _terminal() -> _Shown:
    """One line that is written over and over."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        return lambda moment: None, lambda: None

    def show(moment: Moment) -> None:
        done = round(moment.share * WIDTH)
        stream.write(f"\r\x1b[K{'━' * done}{' ' * (WIDTH - done)} {line(moment)}")
        stream.flush()

    def end() -> None:
        stream.write("\r\x1b[K")
        stream.flush()

    return show, end
