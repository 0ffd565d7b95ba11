"""How long a fit is silent: the longest time between two reports of its progress, and how right the time left was.

Run ``python -m benchmarks silence`` (three minutes). Of each fit: its seconds, the reports there were, the longest silence and what was
reported after it, the share that was reported as done when half of the time had passed (0.5 would be right), and the shares of the time
that its phases took, beside those that ``orthonmf.progress.PHASES`` guesses.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from time import monotonic
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_sample_image
from sklearn.exceptions import ConvergenceWarning

from orthonmf import ONMF
from orthonmf._common.typing import Array
from orthonmf.progress import Moment, listening

from ._table import Column, Table
from ._timing import machine

COLUMNS = (
    Column("fit", 30),
    Column("seconds", 8, ".1f"),
    Column("reports", 8),
    Column("longest", 8, ".2f"),
    Column("half", 5, ".2f"),
    Column("phases", 90),
)


def problems() -> Iterator[tuple[str, Array, dict[str, Any]]]:
    """Data that differ in what takes their time."""
    digits = load_digits().data
    rng = np.random.default_rng(0)
    wide = rng.gamma(0.5, 1, (3, 5000))[rng.integers(3, size=38)] + rng.gamma(0.5, 1, (38, 5000))
    yield "digits, k = 50", digits, {"n_components": 50}
    yield "7704 pixels, k = 16", load_sample_image("china.jpg").reshape(-1, 3)[::35][:7704].astype(float), {"n_components": 16}
    yield "digits, auto", digits, {}
    yield "60 digits, k = 4, at most 16", digits[:60], {"n_components": 4, "capacity": 16}
    yield "600 digits, k = 10, at most 66", digits[:600], {"n_components": 10, "capacity": 66}
    yield "38 × 5000, auto", wide, {}


def main() -> None:
    """Print the table."""
    print(machine())
    table = Table(COLUMNS)
    table.header()
    for name, X, parameters in problems():
        heard: list[tuple[float, Moment]] = []
        began = monotonic()
        with warnings.catch_warnings(), listening(on_moment=lambda moment, to=heard: to.append((monotonic(), moment))):
            warnings.simplefilter("ignore", ConvergenceWarning)
            ONMF(**parameters).fit(X)
        times = np.array([began, *(at for at, _ in heard), monotonic()])
        seconds, gaps = times[-1] - began, np.diff(times)
        half = next(moment.share for at, moment in heard if at - began >= seconds / 2)
        spent: dict[str, float] = {}
        for gap, (_, moment) in zip(gaps, heard, strict=False):
            spent[moment.phase] = spent.get(moment.phase, 0.0) + gap / seconds
        table.row(name, seconds, len(heard), gaps.max(), half, ", ".join(f"{phase} {share:.0%}" for phase, share in spent.items()))


if __name__ == "__main__":
    main()
