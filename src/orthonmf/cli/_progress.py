"""Bars on the terminal; nothing where standard error is not one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from .._common.visible import visible
from ..experiments.store import Record, Task
from ..progress import Moment, listening


@contextmanager
def bar(total: int) -> Iterator[Callable[[Task, Record], None]]:
    """A bar over ``total`` cells; yields what to call for each."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with _shown(*columns) as progress:
        whole = progress.add_task("", total=total)
        yield lambda task, record: progress.update(
            whole, advance=1, description=visible(f"{task.key.replace('_', ' ')}: {record['status']}")
        )


@contextmanager
def fitting(*, quiet: bool = False) -> Iterator[None]:
    """A bar over what the fits in the block do, with the time that is left for the whole, as far as anyone can tell."""
    with _shown(*_COLUMNS, quiet=quiet) as progress:
        task = progress.add_task("reading", total=1.0, left="")

        def heard(moment: Moment) -> None:
            left = "" if moment.left is None else f"about {_clock(moment.left)} left"
            text = visible(": ".join(filter(None, (moment.phase, moment.detail))))
            begins = moment.detail == ""  # shown at once; the rest when the bar is drawn again
            progress.update(task, completed=moment.share, description=text, left=left, refresh=begins)

        with listening(on_moment=heard):
            yield


@contextmanager
def working(text: str, *, quiet: bool = False) -> Iterator[None]:
    """A bar that shows that something goes on, for what nobody can count."""
    with _shown(*_COLUMNS, quiet=quiet) as progress:
        progress.add_task(text, total=None, left="")
        yield


class _Elapsed(TimeElapsedColumn):
    """The time since the beginning, also when all that can be counted is done."""

    def render(self, task: Any) -> Text:
        return Text(_clock(task.elapsed or 0.0), style="progress.elapsed")


_COLUMNS = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=16), _Elapsed(), TextColumn("{task.fields[left]}"))


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))


def _shown(*columns: Any, quiet: bool = False) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True)
