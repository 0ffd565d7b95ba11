"""The commands put together, and what happens when one fails."""

from __future__ import annotations

import typer
from rich.console import Console

from ..exceptions import OrthonmfError
from . import compare, demo, reproduce

app = typer.Typer(
    name="orthonmf", help="Orthogonal nonnegative matrix factorisation.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)
app.command("reproduce")(reproduce.reproduce)
app.command("compare")(compare.compare)
app.command("demo")(demo.demo)


@app.callback()
def _commands() -> None:
    """Orthogonal nonnegative matrix factorisation: the paper reproduced, methods compared, a demonstration."""


def run(argv: list[str]) -> int:
    """Run one command; our own errors are a line of text, not a traceback."""
    try:
        code = app(argv, standalone_mode=True)
    except OrthonmfError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"orthonmf: {error}", markup=False)
        return 2
    except SystemExit as end:
        code = end.code
    return int(code or 0)
