"""How time grows: one pass and one whole fit against the items, the dimensions, the components and the threads.

Run ``python -m benchmarks slopes`` on a quiet machine (five minutes); ``--n 100000`` is a quick look, and ``--plot FILE`` draws what was
measured. Data are those of ``scaling``, with as many groups as components. What does not vary is a tenth of the items, 64 dimensions, 20
components and all threads. A slope is that of log time over log value, by least squares, over a decade and four points; a pass is the
median of five, a fit of three.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from orthonmf import ONMF
from orthonmf._common.typing import Array
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam, available, engine_class
from orthonmf.engines.threads import n_cores
from orthonmf.passes.hard import Nearest
from orthonmf.passes.soft import Gibbs
from orthonmf.passes.state import State
from orthonmf.search.partition import item_points

from . import scaling
from ._table import Column, Table
from ._timing import machine, median_seconds

FIT_REPEATS = 3
COLUMNS = (
    Column("what", 10),
    Column("against", 10),
    Column("values", 30),
    Column("seconds", 30),
    Column("slope", 6, ".2f"),
    Column("asked", 6, ".2f"),
)
# The largest slope of a pass and of a fit that is asked for.
ASKED = {"n": (1.05, 1.05), "p": (1.05, 1.05), "k": (1.05, 1.3)}
NAMES = {"n": "items", "p": "dimensions", "k": "components", "threads": "threads"}


@dataclass(frozen=True)
class Size:
    """A problem's size, and the threads at work on it."""

    n: int
    p: int = scaling.DIMS
    k: int = scaling.COMPONENTS
    threads: int = n_cores()

    def draw(self) -> Array:
        """Items in k groups."""
        return scaling.draw(self.n, self.k, n_dims=self.p)


@dataclass(frozen=True)
class Line:
    """Seconds of one thing against one number."""

    what: str
    against: str
    values: list[int]
    seconds: list[float]

    @property
    def slope(self) -> float:
        """Of log time over log value."""
        return float(np.polyfit(np.log(self.values), np.log(self.seconds), 1)[0])


def hard(size: Size, X: Array) -> float:
    """Seconds of a pass that labels all items."""
    return _pass_seconds(size, X, lambda centers: Nearest(centers, labelled=False))


def soft(size: Size, X: Array) -> float:
    """Seconds of a pass that finds all responsibilities."""
    return _pass_seconds(size, X, lambda centers: Gibbs(State(50.0, centers, np.full(len(centers), -np.log(len(centers))))))


def _pass_seconds(size: Size, X: Array, work: Callable[[Array], object]) -> float:
    with ThreadTeam(size.threads) as team:
        engine = engine_class("compiled" if available("compiled") else "dense").of(X, None, None, 0, team)
        frame = REGISTRY["frobenius", "item"].of(engine)
        centers = item_points(engine, frame, np.arange(size.k))
        return median_seconds(lambda: engine.run(frame, work(centers)))  # type: ignore[arg-type]


def fit(size: Size, X: Array) -> float:
    """Seconds of a whole fit, certificate included."""
    return median_seconds(lambda: ONMF(size.k, n_jobs=size.threads).fit(X), repeats=FIT_REPEATS)


THINGS: dict[str, Callable[[Size, Array], float]] = {"hard pass": hard, "soft pass": soft, "fit": fit}


def lines(n_items: int) -> list[Line]:
    """Every line, printed as soon as it is measured."""
    table = Table(COLUMNS)
    table.header()
    middle, cores = Size(max(n_items // 10, 1000)), n_cores()
    sweeps = {
        "n": [replace(middle, n=int(n_items * share)) for share in (0.1, 0.2, 0.5, 1.0)],
        "p": [replace(middle, p=p) for p in (32, 64, 128, 320)],
        "k": [replace(middle, k=k) for k in (10, 30, 100, 300)],
        "threads": [replace(middle, n=n_items, threads=threads) for threads in sorted({1, 2, 4, 8, 16, cores}) if threads <= cores],
    }
    found = []
    for against, sizes in sweeps.items():
        items = [size.draw() for size in sizes]
        for what, seconds in THINGS.items():
            times = [seconds(size, X) for size, X in zip(sizes, items, strict=True)]
            line = Line(what, NAMES[against], [getattr(size, against) for size in sizes], times)
            asked = ASKED[against][what == "fit"] if against in ASKED else None
            values, shown = (" ".join(map(str, line.values)), " ".join(f"{each:.3g}" for each in times))
            table.row(what, line.against, values, shown, line.slope if len(times) > 1 else None, asked)
            found.append(line)
    return found


def plot(found: list[Line], file: Path) -> None:
    """Log time over log value, a panel for each kind of number."""
    import matplotlib.pyplot as plt

    from orthonmf.plot.style import INK, PALETTE, styled

    with styled():
        figure, panels = plt.subplots(1, len(NAMES), figsize=(12.5, 3.9), layout="constrained", sharey=True)
        for panel, name in zip(panels, NAMES.values(), strict=True):
            for color, line in zip(PALETTE, (line for line in found if line.against == name), strict=False):
                text = f"{line.what}, slope {line.slope:.2f}".replace("-", "−") if len(line.values) > 1 else line.what
                panel.plot(line.values, line.seconds, "o-", color=color, lw=1.8, ms=5, label=text)
            ticks = next(line.values for line in found if line.against == name)
            panel.set(xscale="log", yscale="log", xlabel=name)
            panel.set_xticks(ticks, [f"{tick:,}".replace(",", " ") for tick in ticks], fontsize=8.5)
            panel.minorticks_off()
            panel.margins(x=0.1)
            panel.legend(loc="upper left", frameon=False, fontsize=9, labelcolor=INK, reverse=True)
        panels[0].set_ylim(top=max(max(line.seconds) for line in found) * 30)
        panels[0].set_ylabel("seconds")
        figure.savefig(file, dpi=130)


def main() -> None:
    """Print the table, and draw it if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks slopes")
    parser.add_argument("--n", type=int, default=1_000_000, help="the most items (%(default)s)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the lines into an image")
    options = parser.parse_args()
    ONMF(2).fit(scaling.draw(20_000))  # what is imported and compiled on first use
    print(f"{machine()}\n", flush=True)
    found = lines(options.n)
    if options.plot:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
