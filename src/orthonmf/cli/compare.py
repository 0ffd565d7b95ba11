"""``orthonmf compare``: every method on the user's matrix."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from .._common.files import STDIN
from .._common.validation import check_choice
from .._common.visible import visible
from ..exceptions import InvalidInputError
from ..experiments import compare as experiment
from ..experiments import render, runner, table1
from ..experiments.store import Store
from . import _options as options
from ._data import Taken, source, taking
from ._folder import alone
from ._output import as_json, base_name, say
from ._progress import bar
from .reproduce import check_drawing, words

EXAMPLES = options.examples(
    "compare genes.csv -k 5", "compare genes.csv -k 5 --methods onmf apx em --runs 10 --out compared", "compare genes.csv -k 5 --json"
)


@taking
def compare(
    *,
    data: options.Data,
    n_components: Annotated[int, typer.Option("-k", "--components", help="Number of components.")],
    orthogonal: options.Orthogonal = "samples",
    wanted: Taken,
    methods: Annotated[str | None, typer.Option(help="Such as: onmf apx em. All by default.")] = None,
    runs: Annotated[int, typer.Option(help="Runs of each method, with other seeds.")] = 3,
    jobs: Annotated[int, typer.Option(help="Processes at a time.")] = 1,
    limit: Annotated[float, typer.Option(help="Seconds for one run of a method.")] = 60.0,
    out: Annotated[Path | None, typer.Option(help="Folder for the table in all forms; finished cells are kept there.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished cells again.")] = False,
    json: options.Json = False,
) -> None:
    """Compare ONMF with the other methods on a matrix: error, orthogonality, sparsity, seconds."""
    check_choice("orthogonal", orthogonal, ("samples", "features"))
    if runs < 1:
        raise InvalidInputError(f"--runs {runs} is not usable; expected at least 1.")
    if out is not None:
        check_drawing()
    matrix = experiment.checked(wanted.read(data).X, n_components, orthogonal, source(data))
    with TemporaryDirectory() as scratch, nullcontext() if out is None else alone(out):
        store = Store((out or Path(scratch)) / "cells")
        path = data if wanted == Taken() and data != STDIN else experiment.stored(matrix, store.folder)
        tasks = experiment.tasks(path, n_components, orthogonal=orthogonal, methods=words(methods), runs=runs)
        with bar(len(tasks)) as report:
            records = runner.run(tasks, store, jobs=jobs, limit=limit, fresh=fresh, report=report)
        table = table1.comparison(records, visible(f"{base_name(data)}, {n_components} components, orthogonal {orthogonal}"))
        paths = [] if out is None else render.write(table, out)
    if json:
        asked = {"data": base_name(data), "n_components": n_components, "orthogonal": orthogonal, "runs": runs}
        say(as_json({**asked, "methods": table.data, "notes": table.notes, "files": [str(path) for path in paths]}))
    else:
        say(render.plain(table))
