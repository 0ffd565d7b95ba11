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
from ._data import Taken, source, taking
from ._folder import alone
from ._model import MODEL, load, matched, names_checked
from ._output import as_json, base_name, check_file, say
from ._progress import working
from .fit import FORMS, REPORT, SUMMARY, tables

EXAMPLES = options.examples(
    "report genes-onmf genes.csv --force", "report genes-onmf genes.csv --out talk.html --title 'Genes of the cell cycle'"
)


@taking
def report(
    *,
    folder: Annotated[Path, typer.Argument(help="Folder that fit wrote.", metavar="DIR", readable=False)],
    data: Annotated[
        Path | None,
        typer.Argument(
            help="The data of the fit, for the pictures of the items and of the data; left out without.", metavar="[DATA]", readable=False
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading; by default the name of the data.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the report; by default report.html in DIR.")] = None,
    wanted: Taken,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Make the report of a fit again: one HTML file that opens anywhere, from the model and the names beside it, and the data if given."""
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a folder; expected one that orthonmf fit wrote.")
    path = folder / REPORT if out is None else out
    inputs = [folder / name for name in (MODEL, SUMMARY, *(tables(form)[-1] for form in FORMS))]
    with alone(folder) if out is None else nullcontext():
        check_file(path, force=force, inputs=inputs if data is None else [*inputs, data])
        model, summary = load(folder), _summary(folder)
        heading = title or str(summary.get("data", base_name(folder)))
        X = None if data is None else matched(model, wanted.whole(data, missing=model.missing == "ignore"), source(data)).X
        with names_checked(), working("writing the report"):
            write_report(
                model,
                path,
                X=X,
                item_names=_item_names(folder, len(model.labels_)),
                feature_names=getattr(model, "feature_names_in_", None),
                title=heading,
                provenance=_texts(summary.get("provenance")),
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


def _summary(folder: Path) -> dict[str, Any]:
    """What the fit wrote of itself; nothing where that is not there, or none of ours."""
    try:
        found = loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _texts(found: Any) -> dict[str, str]:
    """The lines of a provenance that are texts."""
    return {name: text for name, text in found.items() if isinstance(text, str)} if isinstance(found, dict) else {}
