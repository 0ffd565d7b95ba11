"""The paper's data sets 1–4: one fit with its certificate against ONMF-apx with ten restarts, and with one.

Run ``python -m benchmarks against_apx``. Times are medians of five after a warm-up, in turn; the ratios are our
time over theirs, which is the shorter of one thread and all threads. The noise floor of the error is
0.0276 √(1 − 1/p) percent.
"""

from __future__ import annotations

import argparse

from orthonmf import ONMF
from orthonmf.datasets import make_paper_synthetic

from ._apx import apx_labels, error_of
from ._table import Column, Table
from ._timing import alternating_seconds, machine

COMPONENTS, RESTARTS = 20, 10
COLUMNS = (
    Column("data set", 8),
    Column("n", 6, "d"),
    Column("p", 4, "d"),
    Column("ONMF error", 10, ".5%"),
    Column("apx error", 10, ".5%"),
    Column("ONMF s", 8, ".4f"),
    Column("apx s", 8, ".4f"),
    Column("ratio", 6, ".2f"),
    Column("once s", 8, ".4f"),
    Column("ratio", 6, ".2f"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks against_apx")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    table = Table(COLUMNS, parser.parse_args().markdown)
    print(f"{machine()}\n")
    table.header()
    for which in (1, 2, 3, 4):
        X = make_paper_synthetic(which).X
        ours, *theirs = alternating_seconds(
            lambda X=X: ONMF(COMPONENTS).fit(X),
            *(
                lambda X=X, n_init=n_init, threads=threads: apx_labels(X, COMPONENTS, n_init=n_init, seed=0, threads=threads)
                for n_init in (RESTARTS, 1)
                for threads in (None, 1)
            ),
        )
        best, once = min(theirs[:2]), min(theirs[2:])
        error = ONMF(COMPONENTS).fit(X).certificate_.relative_error
        apx_error = error_of(X, apx_labels(X, COMPONENTS, n_init=RESTARTS, seed=0), COMPONENTS)
        table.row(str(which), *X.shape, error, apx_error, ours, best, ours / best, once, ours / once)


if __name__ == "__main__":
    main()
