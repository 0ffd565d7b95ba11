"""An .h5ad of 50 000 cells × 2000 genes: read, factorised, written back, drawn and reported, stage by stage.

Run ``python -m benchmarks cells [--components auto|K]``. Ten programmes of 200 genes each over a common background; Poisson counts,
sizes of cells lognormal, about 8 % of the entries nonzero. The last row is the same data through the command.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any

import anndata
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import orthonmf

from ._table import Column, Table
from ._timing import machine, timed

N_CELLS, N_GENES, N_PROGRAMMES = 50_000, 2000, 10
BLOCK = 5000


def draw() -> Any:
    """The cells, with the programme of each in ``obs["truth"]``."""
    rng = np.random.default_rng(0)
    programmes = np.tile(rng.gamma(0.5, 0.5, N_GENES), (N_PROGRAMMES, 1))
    markers = N_GENES // N_PROGRAMMES
    for j in range(N_PROGRAMMES):
        programmes[j, j * markers : (j + 1) * markers] += rng.gamma(1, 6, markers)
    programmes /= programmes.sum(axis=1, keepdims=True)
    truth, size = rng.integers(N_PROGRAMMES, size=N_CELLS), rng.lognormal(np.log(250), 0.4, N_CELLS)
    blocks = [slice(start, start + BLOCK) for start in range(0, N_CELLS, BLOCK)]
    counts = [sparse.csr_matrix(rng.poisson(size[b, np.newaxis] * programmes[truth[b]]).astype(np.float32)) for b in blocks]
    obs = pd.DataFrame({"truth": truth.astype(str)}, index=[f"cell{i}" for i in range(N_CELLS)])
    return anndata.AnnData(sparse.vstack(counts, format="csr"), obs=obs, var=pd.DataFrame(index=[f"gene{i}" for i in range(N_GENES)]))


def figures(cells: Any, folder: Path) -> None:
    """Every figure that there is."""
    for name in ("persistence", "bifurcation", "history", "sizes", "components"):
        getattr(orthonmf.pl, name)(cells).figure_.savefig(folder / f"{name}.png")


def main() -> None:
    """Print the seconds of each stage."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--components", default="auto", help="auto, or a number")
    asked = parser.parse_args().components
    table = Table((Column("stage", 32), Column("s", 7, ".1f")))
    print(f"{machine()}; components: {asked}\n")
    with TemporaryDirectory() as place:
        folder = Path(place)
        draw().write_h5ad(folder / "cells.h5ad")
        table.header()
        cells, read = timed(lambda: anndata.read_h5ad(folder / "cells.h5ad"))
        number = asked if asked == "auto" else int(asked)
        stages = {
            "tl.onmf": lambda: orthonmf.tl.onmf(cells, number),
            "write_h5ad": lambda: cells.write_h5ad(folder / "with-parts.h5ad"),
            "five figures of pl": lambda: figures(cells, folder),
            "pl.report": lambda: orthonmf.pl.report(cells, folder / "report.html"),
        }
        seconds = {"read_h5ad": read, **{name: timed(stage)[1] for name, stage in stages.items()}}
        command = [
            sys.executable,
            "-m",
            "orthonmf.cli",
            "fit",
            str(folder / "cells.h5ad"),
            "-k",
            asked,
            "--out",
            str(folder / "parts"),
            "--quiet",
        ]
        seconds["all of these"] = sum(seconds.values())
        seconds["orthonmf fit cells.h5ad, whole"] = timed(lambda: run(command, check=True))[1]
        for name, value in seconds.items():
            table.row(name, value)
    found = adjusted_rand_score(cells.obs["truth"], cells.obs["onmf"])
    print(f"\n{cells.uns['onmf']['n_components']} components; adjusted Rand index to the programmes drawn {found:.4f}.")


if __name__ == "__main__":
    main()
