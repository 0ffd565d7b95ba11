"""Bars on the terminal; nothing where standard error is not one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from .._common.visible import visible
from ..experiments.store import Record, Task
from ..progress import Temperature, listening


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
def annealing(goal: int, *, quiet: bool = False) -> Iterator[None]:
    """A bar over the components that the fits in the block find, out of ``goal``, with the current β.

    The time left is what the components still to be found would take at the pace so far; later ones take longer, the search may end
    before all are found, and nobody knows how long the refinement takes, so there the bar only shows that it goes on.
    """
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=16), TimeElapsedColumn(), _Left())
    with _shown(*columns, quiet=quiet) as progress:
        task = progress.add_task("reading the matrix", total=goal)

        def settled(temperature: Temperature) -> None:
            found = temperature.n_components
            text = f"β {temperature.beta:<9.4g} {found:>3}/{goal} components"
            more = found > progress.tasks[0].completed  # shown at once; the rest when the bar is drawn again
            progress.update(task, completed=min(found, goal), description=text, refresh=more)

        def staged(text: str) -> None:
            progress.update(task, description=text, total=None, refresh=True)

        with listening(settled, staged):
            yield


class _Left(TimeRemainingColumn):
    """The time left, as far as anyone can tell."""

    def render(self, task: Any) -> Any:
        return Text("") if task.time_remaining is None else Text.assemble("about ", super().render(task), " left")


def _shown(*columns: Any, quiet: bool = False) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True)
