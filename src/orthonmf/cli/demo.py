"""``orthonmf demo``: what the library does, in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..experiments import demo as demonstration
from . import _options as options
from ._folder import alone

EXAMPLES = options.examples("demo", "demo --quick --out figures")


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("demo-output"),
    quick: Annotated[bool, typer.Option("--quick", help="Smaller data, a few seconds.")] = False,
) -> None:
    """Run the demonstration: one table and five figures."""
    with alone(out):
        raise typer.Exit(demonstration.main(["--out", str(out), *(["--quick"] if quick else [])]))
