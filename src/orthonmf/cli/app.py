"""The commands put together, and what happens when one fails."""

from __future__ import annotations

import sys
import traceback
from io import TextIOWrapper
from typing import Annotated

import typer
from rich.console import Console

from .. import __version__
from ..exceptions import OrthonmfError
from . import compare, demo, fit, predict, rank, report, reproduce, verify
from ._options import examples

# What ended a command, as the shell would say it: 128 and the number of the signal.
INTERRUPTED, CLOSED = 130, 141

app = typer.Typer(
    name="orthonmf",
    help="Orthogonal nonnegative matrix factorisation: parts that do not overlap, of bounded size, as many as the data have.",
    epilog=examples("fit genes.csv", "rank genes.csv", "fit genes.csv -k 5 --capacity 0.3 --out parts", "verify parts genes.csv"),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
_COMMANDS = (
    (fit, fit.fit, "Factorise a matrix: model, tables and report."),
    (rank, rank.rank, "How many components the data have."),
    (predict, predict.predict, "The components of new samples."),
    (verify, verify.verify, "Whether a model keeps what it claims."),
    (report, report.report, "The report of a fit, again."),
    (compare, compare.compare, "ONMF and other methods, side by side."),
    (reproduce, reproduce.reproduce, "The tables and figures of the paper."),
    (demo, demo.demo, "A demonstration: a table and five figures."),
)
for module, command, summary in _COMMANDS:
    app.command(command.__name__, short_help=summary, epilog=module.EXAMPLES)(command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"orthonmf {__version__}")
        raise typer.Exit


@app.callback()
def _commands(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)] = False,
) -> None:
    """What comes before a command."""


def run(argv: list[str]) -> int:
    """Run one command; what is wrong with what was asked is a line of text, not a traceback.

    Exit codes: 0; 2 something asked for is not usable; 3 a certificate fails; 130 interrupted; 141 nobody reads the output; 1 a fault
    of ours, with its traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that has no β shows its number
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(argv, prog_name="orthonmf", standalone_mode=True)
    except OrthonmfError as error:
        return _refused(str(error))
    except OSError as error:  # a folder that may not be written, a full disk
        return _refused(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except SystemExit as end:
        code = _signal(end) or end.code
    except Exception:
        traceback.print_exc()
        return 1
    return int(code or 0)


def _signal(end: BaseException) -> int | None:
    """The exit code for what typer was handling when it chose one of its own."""
    while end.__context__ is not None:
        end = end.__context__
        if isinstance(end, BrokenPipeError):
            return CLOSED
        if isinstance(end, KeyboardInterrupt):
            return INTERRUPTED
    return None


def _refused(text: str) -> int:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"orthonmf: {' '.join(text.split())}", markup=False)
    return 2
