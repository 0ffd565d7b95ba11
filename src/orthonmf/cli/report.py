"""``orthonmf report``: the report again, from the files of a fit."""

from __future__ import annotations

from contextlib import nullcontext
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer

from .._common.visible import visible
from ..exceptions import InvalidInputError
from ..io.apart import read_names
from ..report import write_report
from . import _options as options
from ._folder import alone
from ._model import MODEL, load
from ._output import as_json, base_name, check_file, say
from ._progress import working
from .fit import FORMS, REPORT, SUMMARY, tables

EXAMPLES = options.examples("report genes-onmf --force", "report genes-onmf --out talk.html --title 'Genes of the cell cycle'")


def report(
    folder: Annotated[Path, typer.Argument(help="Folder that fit wrote.", metavar="DIR", readable=False)],
    title: Annotated[str | None, typer.Option(help="Heading; by default the name of the data.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the report; by default report.html in DIR.")] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Make the report of a fit again: one HTML file that opens anywhere, from the model and the names beside it."""
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a folder; expected one that orthonmf fit wrote.")
    path = folder / REPORT if out is None else out
    with alone(folder) if out is None else nullcontext():
        check_file(path, force=force, inputs=[folder / name for name in (MODEL, SUMMARY, *(tables(form)[-1] for form in FORMS))])
        model = load(folder)
        heading = title or _title(folder)
        names = _item_names(folder, len(model.labels_))
        with working("writing the report"):
            write_report(
                model,
                path,
                item_names=names,
                feature_names=getattr(model, "feature_names_in_", None),
                title=heading,
            )
    say(as_json({"title": heading, "files": [str(path)]}) if json else visible(f"Written: {path}"))


def _item_names(folder: Path, n_items: int) -> Any:
    """The names in the table of assignments; None where there is no table."""
    for path in (folder / tables(form)[-1] for form in FORMS):
        if path.is_file():
            names = read_names(path)
            if len(names) != n_items:
                raise InvalidInputError(f"{path} names {len(names)} items, the model has {n_items}; run orthonmf fit again.")
            return names
    return None


def _title(folder: Path) -> str:
    """The name of the data, as the summary has it."""
    try:
        return str(loads((folder / SUMMARY).read_text(encoding="utf-8"))["data"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # no summary, or none of ours
        return base_name(folder)
