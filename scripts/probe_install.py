"""Run inside an environment by ``check_dist.py``: uses the installed package, and sees what it says where an extra is missing.

``core``: no optional package is there, none may be needed to import, and what needs one must name its extra. ``extras``: some are there.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import orthonmf
from orthonmf import ONMF
from orthonmf.exceptions import MissingExtraError

# What the command line is made of; the package ``orthonmf.cli`` itself looks for its extra before it imports them.
BEHIND_A_DOOR = "orthonmf.cli."
# Packages that only an extra brings.
OPTIONAL = ("matplotlib", "typer", "rich", "pandas", "polars", "pyarrow", "h5py", "anndata", "pooch")
X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.1, 5.0]])


def fit_and_keep() -> None:
    """A fit in both orientations, through a file."""
    for orthogonal in ("samples", "features"):
        ONMF(2, orthogonal=orthogonal, capacity=2).fit(X).save("model.onmf")
        if not ONMF.load("model.onmf").verify(X).holds:
            sys.exit("A certificate does not hold.")


def import_everything() -> None:
    """No module needs more than the core to be imported."""
    for module in pkgutil.walk_packages(orthonmf.__path__, "orthonmf."):
        if not module.name.startswith(BEHIND_A_DOOR) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    if loaded := sorted(set(OPTIONAL) & set(sys.modules)):
        sys.exit(f"Imported without need: {loaded}.")


def fetch() -> None:
    from orthonmf.datasets import fetch_microarray

    os.environ.pop("ORTHONMF_DATA", None)
    fetch_microarray(data_home=Path("nothing-here"), download=True)


def draw() -> None:
    from orthonmf.plot import SizesDisplay

    SizesDisplay.from_estimator(ONMF(2).fit(X))


def read() -> None:
    from orthonmf import io

    Path("table.parquet").write_bytes(b"PAR1")
    io.read("table.parquet")


# A call for each extra that must name it when it is missing.
CALLS: dict[str, Callable[[], object]] = {"data": fetch, "plot": draw, "io": read}


def name_what_is_missing() -> None:
    """Each call asks for its extra, by its name."""
    for extra, call in CALLS.items():
        try:
            call()
        except MissingExtraError as error:
            if f"orthonmf[{extra}" not in str(error):
                sys.exit(f"The error does not name the extra {extra!r}: {error}")
        else:
            sys.exit(f"A call that needs the extra {extra!r} ran without it.")
    from orthonmf.cli import main

    if main(["--help"]) != 2:
        sys.exit("The command ran without its extra.")


if __name__ == "__main__":
    fit_and_keep()
    if sys.argv[1] == "core":
        import_everything()
        name_what_is_missing()
