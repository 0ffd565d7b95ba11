"""Fits with the sources of any version of the library, in a process of their own: labels, and seconds of the processor.

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


@dataclass(frozen=True)
class Fit:
    """What a fit found, and what it took."""

    labels: NDArray[Any]
    seconds: float


Task = tuple[NDArray[Any], NDArray[Any] | None, dict[str, Any]]


def fits_with(sources: str, tasks: list[Task]) -> list[Fit]:
    """A fit of each task (items, their weights or None, parameters) with the package in the folder ``sources``."""
    command, environment = [sys.executable, "-P", __file__], {**os.environ, "PYTHONPATH": sources}
    run = subprocess.run(command, input=pickle.dumps(tasks), stdout=subprocess.PIPE, check=True, env=environment)
    return [Fit(*found) for found in pickle.loads(run.stdout)]


def _fits(tasks: list[Task]) -> list[tuple[NDArray[Any], float]]:
    from orthonmf import ONMF

    ONMF(2).fit(np.eye(3))  # what is imported on first use
    found = []
    for X, weight, parameters in tasks:
        began = time.process_time()
        model = ONMF(**parameters, n_jobs=1).fit(X, sample_weight=weight)
        found.append((model.labels_, time.process_time() - began))
    return found


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.stdout.buffer.write(pickle.dumps(_fits(pickle.load(sys.stdin.buffer))))
