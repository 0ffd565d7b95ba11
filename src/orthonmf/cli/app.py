"""The commands put together, and what happens when one fails."""

from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer

from .. import __version__
from ..exceptions import FileAccessError, OrthonmfError
from . import INTERRUPTED, REFUSED
from ._options import examples, spoken
from ._output import say, tell, warn
from ._signals import signals

FAULT, CLOSED = 1, 141

COMMANDS = {
    "fit": "Factorise a matrix: model, tables and report.",
    "rank": "How many components the data have.",
    "predict": "The components of new samples.",
    "verify": "Whether a model keeps what it claims.",
    "report": "The report of a fit, again.",
    "compare": "ONMF and other methods, side by side.",
    "reproduce": "The tables and figures of the paper.",
    "demo": "A demonstration: a table and five figures.",
}
CODES = """\b
Exit codes:
  0    done
  1    a fault of orthonmf itself, with its traceback
  2    what was asked for cannot be done: one line says what and where
  3    a certificate fails (fit without --allow-uncertified, verify, demo)
  129  the terminal was closed (SIGHUP)
  130  interrupted (Ctrl-C, SIGINT)
  141  nobody reads the output (SIGPIPE)
  143  asked to end (SIGTERM)"""


def commands(asked: str | None) -> typer.Typer:
    """All commands for the list of them; only the one that is asked for is imported."""
    starts = examples("fit genes.csv", "rank genes.csv", "fit genes.csv -k 5 --capacity 0.3 --out parts", "verify parts genes.csv")
    app = typer.Typer(
        name="orthonmf",
        help="Orthogonal nonnegative matrix factorisation: parts that do not overlap, of bounded size, as many as the data have.",
        epilog=f"{starts}\n\n{CODES}",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_before)
    for name, summary in COMMANDS.items():
        if name == asked:
            module = import_module(f".{name}", __package__)
            app.command(name, short_help=summary, epilog=module.EXAMPLES)(getattr(module, name))
        else:
            app.command(name, short_help=summary)(_listed)
    return app


def _version(asked: bool) -> None:
    if asked:
        say(f"orthonmf {__version__}")
        raise typer.Exit


def _before(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)] = False,
) -> None:
    """What comes before a command."""


def _listed() -> None:
    """Stands in the list for a command that is not asked for."""


def run(argv: list[str]) -> int:
    """Run one command; what is wrong with what was asked is a line of text, not a traceback. Returns one of ``CODES``."""
    with _streams():
        try:
            with signals.held():  # an import that is interrupted may turn the interrupt into another error
                app = commands(next((word for word in argv or _completed() if not word.startswith("-")), None))
            return _ended(app, argv)
        except OrthonmfError as error:
            return _refused(spoken(str(error)))
        except OSError as error:  # a folder that may not be written, a full disk
            return _refused(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except MemoryError as error:
            return _refused(f"There is not enough memory ({str(error) or 'no size given'}); take fewer rows or columns, or more memory.")
        except Exception:
            if signals.code is None:  # else the fault is where the signal came
                tell(traceback.format_exc().rstrip("\n"))
            return FAULT


def _completed() -> list[str]:
    """The words that a shell asks to complete, if it does."""
    return os.environ.get("COMP_WORDS", os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()[1:]


def _ended(app: typer.Typer, argv: list[str]) -> int:
    """The exit code of a command that typer knows how to end."""
    usage: type[Any] = typer.BadParameter.__bases__[0]  # what is wrong with the words; of click, or of typer's copy of it
    try:
        return int(app(argv, prog_name="orthonmf", standalone_mode=False) or 0)
    except usage as error:
        text = io.StringIO()
        error.show(file=text)
        tell(text.getvalue().rstrip("\n"))
        return REFUSED
    except typer.Abort:
        return INTERRUPTED
    except SystemExit as end:  # typer's answer to a pipe that nobody reads
        return CLOSED if isinstance(end.__context__, BrokenPipeError) else int(end.code or 0)


@contextmanager
def _streams() -> Iterator[None]:
    """Standard output and error that take whatever is written, and refuse it where they are closed; a warning is a line."""
    stdout = sys.stdout
    for descriptor in range(3):  # else the next file that is opened takes the place of a closed stream, and what is written to that
        _fill(descriptor)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that has no β shows its number
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *place: warn(f"warning: {message}")
            sys.stdout = _Closed() if stdout is None else stdout
            yield
    finally:
        if isinstance(sys.stdout, _Closed):
            sys.stdout = stdout


def _fill(descriptor: int) -> None:
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)


class _Closed(io.TextIOBase):
    """Standard output that is closed: whoever writes to it is told."""

    def write(self, text: str) -> int:
        raise FileAccessError("standard output is closed, so that the result cannot be printed; open it, or name a file with --out.")


def _refused(text: str) -> int:
    warn(" ".join(text.split()))
    return REFUSED
