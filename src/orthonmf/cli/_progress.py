"""A bar on the terminal; nothing where standard error is not one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..experiments.store import Record, Task


@contextmanager
def bar(total: int) -> Iterator[Callable[[Task, Record], None]]:
    """A bar over ``total`` cells; yields what to call for each."""
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        whole = progress.add_task("", total=total)
        yield lambda task, record: progress.update(whole, advance=1, description=f"{task.key.replace('_', ' ')}: {record['status']}")
