"""Fits with the sources of any version of the library, in a process of their own: arrays, and seconds of the processor.

Of the library only ``ONMF`` is imported, which every version has. Run as a script, this file reads problems and writes what was found.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

# The folder with the sources that this file lies beside.
OURS = str(Path(__file__).parents[1] / "src")


# What a fit leaves behind; the numbers of its certificate follow.
ARRAYS = ("labels_", "components_", "scale_", "counts_", "critical_betas_", "persistence_", "reconstruction_err_")
CLAIMS = ("error", "lower_bound", "gap", "stationarity", "scale_gap", "misplaced")


@dataclass(frozen=True)
class Fit:
    """What a fit found, by name, and what it took."""

    arrays: dict[str, NDArray[Any]]
    seconds: float

    @property
    def labels(self) -> NDArray[Any]:
        """The component of each item."""
        return self.arrays["labels_"]


# Items, what else ``fit`` is given, and the parameters.
Task = tuple[Any, dict[str, NDArray[Any]], dict[str, Any]]


def fits_with(sources: str, tasks: list[Task]) -> list[Fit]:
    """A fit of each task with the package in the folder ``sources``."""
    command, environment = [sys.executable, "-P", __file__], {**os.environ, "PYTHONPATH": sources}
    run = subprocess.run(command, input=pickle.dumps(tasks), stdout=subprocess.PIPE, check=True, env=environment)
    return [Fit(*found) for found in pickle.loads(run.stdout)]


def _fits(tasks: list[Task]) -> list[tuple[dict[str, NDArray[Any]], float]]:
    from orthonmf import ONMF

    ONMF(2).fit(np.eye(3))  # what is imported on first use
    found = []
    for X, given, parameters in tasks:
        began = time.process_time()
        model = ONMF(**{"n_jobs": 1, **parameters}).fit(X, **given)
        seconds = time.process_time() - began
        claims = {name: np.array(getattr(model.certificate_, name), dtype=float) for name in CLAIMS}
        found.append(({name: np.asarray(getattr(model, name)) for name in ARRAYS} | claims, seconds))
    return found


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.stdout.buffer.write(pickle.dumps(_fits(pickle.load(sys.stdin.buffer))))
