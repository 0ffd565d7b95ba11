"""``orthonmf reproduce``: the paper's tables and figures."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from .._common.visible import visible
from ..exceptions import InvalidInputError, MissingExtraError
from ..experiments import criticals, figures, render, runner, table1, table2
from ..experiments.store import Record, Store, Task
from . import _options as options
from ._folder import alone
from ._output import as_json, say
from ._progress import bar

EXAMPLES = options.examples(
    "reproduce table2", "reproduce table1 --datasets 1 2 --methods onmf apx --runs 3", "reproduce all --out reproduced"
)


class What(StrEnum):
    """What can be reproduced."""

    table1 = "table1"
    table2 = "table2"
    criticals = "fig-criticals"
    metagenes = "fig-metagenes"
    all = "all"


def reproduce(
    what: Annotated[What, typer.Argument(help="Which table or figure.")],
    datasets: Annotated[str | None, typer.Option(help="Data sets of table1, such as: 1 2 5. All by default.")] = None,
    methods: Annotated[str | None, typer.Option(help="Methods of table1, such as: onmf apx em. Those of the paper by default.")] = None,
    runs: Annotated[int, typer.Option(help="Runs of each method in table1.")] = table1.RUNS,
    jobs: Annotated[int, typer.Option(help="Processes at a time. Seconds are fair only while each has a core.")] = 1,
    limit: Annotated[
        float | None, typer.Option(help="Seconds for one run of a method; one that takes longer is reported as over it.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and finished cells.")] = Path("reproduced"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished cells again.")] = False,
    json: options.Json = False,
) -> None:
    """Reproduce a table or a figure of the paper, each number beside the printed one. What is finished is not run again."""
    check_drawing()
    if runs < 1:
        raise InvalidInputError(f"--runs {runs} is not usable; expected at least 1.")

    def records(tasks: list[Task]) -> list[Record]:
        with bar(len(tasks)) as report:
            return runner.run(tasks, Store(out / "cells"), jobs=jobs, limit=limit, fresh=fresh, report=report)

    paths: list[Path] = []
    with alone(out):
        if what in (What.table1, What.all):
            table = table1.table(records(table1.tasks(datasets=words(datasets), methods=words(methods), runs=runs)))
            paths += shown(table, out, json=json) + figures.write_error_seconds(table.data, out)
        if what in (What.table2, What.all):
            paths += shown(table2.table(records(table2.tasks())), out, json=json)
        if what in (What.criticals, What.all):
            found = criticals.readings()
            paths += shown(criticals.table(found), out, json=json) + figures.write_criticals(found, out) + figures.write_bifurcation(out)
        if what in (What.metagenes, What.all):
            paths += figures.write_metagenes(out)
    if json:
        say(as_json({"what": what, "files": [str(path) for path in paths]}))
    else:
        say("\n".join(["Written:", *(visible(f"  {path}") for path in paths)]))


def check_drawing() -> None:
    """Say what is missing before anything is computed."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("The tables and figures are drawn with matplotlib, which is not installed: pip install 'orthonmf[plot]'.")


def words(values: str | None) -> list[str] | None:
    """The values of an option that takes several."""
    return None if values is None else [value for value in values.split(",") if value]


def shown(table: render.Table, out: Path, *, json: bool) -> list[Path]:
    """Print a table, unless one object is to be printed, and write all its forms."""
    if not json:
        say(render.plain(table) + "\n")
    return render.write(table, out)
