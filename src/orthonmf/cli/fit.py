"""``orthonmf fit``: a matrix to a model, tables and a report."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer

from .. import __version__
from .._common.validation import check_choice
from .._common.visible import visible
from ..distortion import MISSING, loss_of
from ..estimator import ONMF
from ..io import Data, write_table
from ..io.table import check_table
from ..model.terms import top_terms
from ..report import write_report
from . import _options as options
from ._data import Taken, taking
from ._folder import alone, check_taken, together
from ._model import MODEL, fitted, names_checked, names_of, prepared, resident, started
from ._output import as_json, base_name, say, warn, write_text
from ._progress import working
from ._provenance import command, stamped
from .verify import FAILED, evidence

SUMMARY, REPORT = "summary.json", "report.html"
FORMS = ("csv", "parquet")


def tables(form: str) -> tuple[str, str, str]:
    """The names of the tables."""
    return f"components.{form}", f"features.{form}", f"assignments.{form}"


# Features of a component in their table, the most distinctive first.
LISTED = 50
# Every file that a fit may write.
OURS = (MODEL, SUMMARY, REPORT, *(name for form in FORMS for name in tables(form)))

EXAMPLES = options.examples(
    "fit genes.csv",
    "fit counts.h5ad --key counts -k 12 --out programmes",
    "fit patients.parquet -k 3 --capacity 0.35 --force",
    "fit words.mtx -k 20 --loss kullback-leibler",
    "fit answers.csv -k 4 --missing ignore",
    "fit spectra.npy -k 4 --capacity 10,20,30,40 --scaling none",
    "fit big.npy -k 20 --checkpoint big-fit",
    "fit more.csv --init genes-onmf",
    "fit survey.xlsx --key 'Sheet 2' --drop age,town --id-column name",
    "fit filtered_feature_bc_matrix -k auto --orthogonal features --json",
)


@taking
def fit(
    *,
    context: typer.Context,
    data: options.Data,
    n_components: options.NComponents = "auto",
    capacity: options.Capacity = None,
    min_size: Annotated[str | None, typer.Option(help="Fewest items in a component, in the same forms.")] = None,
    orthogonal: options.Orthogonal = "samples",
    scaling: options.Scaling = "item",
    loss: options.Loss = "frobenius",
    missing: options.Missing = "error",
    max_components: options.MaxComponents = None,
    init: options.Init = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds after which the best answer so far is taken.")] = None,
    checkpoint: options.Checkpoint = None,
    wanted: Taken,
    normalize: options.Normalize = None,
    form: Annotated[str, typer.Option("--format", help="Of the tables: csv or parquet.")] = "csv",
    out: Annotated[Path | None, typer.Option(help="Folder for the results; by default DATA's name with -onmf.")] = None,
    force: options.Force = False,
    allow_uncertified: Annotated[
        bool, typer.Option("--allow-uncertified", help="End with exit code 0 though the certificate fails.")
    ] = False,
    stamp: Annotated[
        bool,
        typer.Option("--stamp", help="Note date and seconds in report and summary; without, the same command writes the same files."),
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Factorise a matrix into parts that do not overlap, and write the model, the parts, who belongs to which, and a report.

    Ends with exit code 3 when the certificate fails; all is written then too.
    """
    began = monotonic()
    check_choice("format", form, FORMS)
    check_choice("missing", missing, tuple(MISSING))
    model = ONMF(
        options.number_of_components(n_components),
        capacity=options.sizes("capacity", capacity),
        min_size=options.sizes("min-size", min_size),
        orthogonal=orthogonal,
        scaling=scaling,
        loss=loss,
        missing=missing,
        max_components=max_components,
        time_limit=time_limit,
        checkpoint=checkpoint,
    )
    folder = Path(f"{_stem(data)}-onmf") if out is None else out
    check_table(folder / tables(form)[0])
    with alone(folder) as place:
        check_taken(place, OURS, force=force, inputs=(data,))
        given = prepared(model, resident(wanted.read(data, missing=missing == "ignore"), quiet=quiet), normalize)
        started(model, init, given)
        fitted(model, given, quiet=quiet)
        summary = summarised(model, given, base_name(data), form)
        summary["provenance"] = {"Command": command(context), **(stamped(began) if stamp else {})}
        with together(place, OURS) as drafts, working("writing tables and report", quiet=quiet):
            write_all(model, given, summary, drafts)
    _report(model, given, summary, folder, json=json, quiet=quiet)
    if not model.certificate_.holds and not allow_uncertified:
        raise typer.Exit(FAILED)


def _report(model: ONMF, given: Data, summary: dict[str, Any], folder: Path, *, json: bool, quiet: bool) -> None:
    """Say what was found, in the form that was asked for."""
    if quiet and not model.certificate_.holds:
        warn("warning: the certificate fails; orthonmf verify says where.")
    if json:
        say(as_json({**summary, "folder": str(folder)}))
    elif not quiet:
        say(told(model, given, folder))


def write_all(model: ONMF, matrix: Data, summary: dict[str, Any], folder: Path) -> None:
    """All the files of a fit."""
    components, features, assignments = (folder / name for name in tables(summary["format"]))
    given = matrix.row_names if model.orthogonal == "samples" else matrix.column_names
    items = names_of(given, len(model.labels_))
    model.save(folder / MODEL)
    columns = names_of(matrix.column_names, model.n_features_in_)
    heads = ((str(name), model.components_[:, j]) for j, name in enumerate(columns))
    write_table(components, [("component", range(model.n_components_)), *heads])
    listed = [(j, *term) for j, terms in enumerate(top_terms(model, columns, n_terms=LISTED)) for term in terms]
    write_table(
        features, [(head, [row[i] for row in listed]) for i, head in enumerate(("component", "feature", "weight", "distinctiveness"))]
    )
    kind = model.orthogonal.removesuffix("s")
    with names_checked():
        sure = model._certainty(matrix.X, model.labels_)
    write_table(assignments, [(kind, items), ("component", model.labels_), ("scale", model.scale_), *sure.items()])
    write_text(folder / SUMMARY, as_json(summary) + "\n")
    with names_checked():
        write_report(
            model,
            folder / REPORT,
            X=matrix.X,
            item_names=items,
            feature_names=matrix.column_names,
            title=summary["data"],
            provenance=summary["provenance"],
        )


def summarised(model: ONMF, matrix: Data, name: str, form: str) -> dict[str, Any]:
    """What was asked and what was found; nothing that another run of the same command would write otherwise."""
    asked = ("n_components", "capacity", "min_size", "orthogonal", "scaling", "loss", "missing", "max_components", "time_limit")
    return {
        "data": name,
        "shape": matrix.X.shape,
        "asked": {**{parameter: getattr(model, parameter) for parameter in asked}, "normalize": _steps(model)},
        "n_components": model.n_components_,
        "counts": model.counts_,
        "status": model.status_,
        "converged": model.converged_,
        "critical_betas": model.critical_betas_,
        "persistence": model.persistence_,
        "levels": model.levels_,
        "bic": model.bic_,
        "agreement": model.agreement_,
        "p_values": model.p_values_,
        "stability": model.stability_,
        "certificate": evidence(model.certificate_),
        "format": form,
        "files": sorted([MODEL, SUMMARY, REPORT, *tables(form)]),
        "version": __version__,
    }


def _steps(model: ONMF) -> str | None:
    """What was done to the numbers first."""
    return None if model._preparation is None else ",".join(model._preparation.names)


def told(model: ONMF, matrix: Data, folder: Path) -> str:
    """What was found, for the eye."""
    certificate = model.certificate_
    n, p = matrix.X.shape
    lines = [f"{n} × {p}: {model.n_components_} components of {model.orthogonal}. {options.spoken(model.status_)}", ""]
    for j, terms in enumerate(top_terms(model, matrix.column_names, n_terms=5)):
        lines.append(f"  {j:>3}  {model.counts_[j]:>7} {model.orthogonal}   {', '.join(visible(term.name) for term in terms)}")
    held = sum(certificate.claims.values())
    verdict = "holds" if certificate.holds else "FAILS (orthonmf verify says where)"
    lines += [
        "",
        f"{_error(model)}. The certificate {verdict}: {held} of {len(certificate.claims)} claims.",
    ]
    return "\n".join([*lines, visible(f"Written to {folder}: open {folder / REPORT}")])


def _error(model: ONMF) -> str:
    relative = model.certificate_.relative_error
    return f"Error {relative:.2%} of the data" if loss_of(model).power == 2 else f"Divergence {relative:.4g} for each count"


def _stem(path: Path) -> str:
    """The name of a file up to its first dot."""
    return base_name(path).split(".")[0] or "data"
