"""The time of a fit over that of another version: CPU seconds of one thread, in turn, on the problems of three benchmarks.

Run ``python -m benchmarks ratio SRC`` on a quiet machine, where SRC is the folder with the package of the other version.
Each of the rounds runs both versions in processes of their own, one after the other; the median of the ratios counts.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

from orthonmf.datasets import make_paper_synthetic

from . import capacities, scaling
from ._fits import OURS, Task, fits_with
from ._timing import machine

COMPONENTS = 20
SCALING_ITEMS = 100_000
CAPACITY_SHAPE = (4000, 50)


def against_apx() -> list[Task]:
    """The four data sets of the paper."""
    return [(make_paper_synthetic(which).X, {}, {"n_components": COMPONENTS}) for which in (1, 2, 3, 4)]


def many_items() -> list[Task]:
    """Items in 64 dimensions, float32."""
    return [(scaling.draw(SCALING_ITEMS), {}, {"n_components": COMPONENTS})]


def bounded() -> list[Task]:
    """Means under a capacity."""
    n_items, n_dims = CAPACITY_SHAPE
    capacity = capacities.capacity_for(n_items, COMPONENTS)
    return [(capacities.draw(n_items, n_dims, COMPONENTS), {}, {"n_components": COMPONENTS, "scaling": "none", "capacity": capacity})]


GROUPS: dict[str, Callable[[], list[Task]]] = {"against_apx": against_apx, "scaling": many_items, "capacities": bounded}


def main() -> None:
    """Print a line for each group of problems."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks ratio")
    parser.add_argument("sources", nargs="?", metavar="SRC", help="the folder with the package of the other version")
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    if arguments.sources is None:
        print("Nothing to compare with: name the folder with the package of another version.")
        return
    print(f"{machine()}\n")
    for name, tasks in GROUPS.items():
        problems = tasks()
        seconds = [
            [sum(fit.seconds for fit in fits_with(sources, problems)) for sources in (OURS, arguments.sources)]
            for _ in range(arguments.rounds)
        ]
        ours, theirs = (statistics.median(each) for each in zip(*seconds, strict=True))
        ratio = statistics.median(mine / other for mine, other in seconds)
        print(f"{name}: {ours:.3f} s of CPU time, theirs {theirs:.3f} s; median ratio of {len(seconds)} rounds {ratio:.3f}", flush=True)


if __name__ == "__main__":
    main()
