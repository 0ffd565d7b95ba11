"""``orthonmf rank``: how many components the data have."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimator import ONMF
from ..io.apart import read
from . import _options as options
from ._model import fitted
from ._output import as_json, base_name, say

WIDTH = 40  # of the longest bar

EXAMPLES = options.examples("rank genes.csv", "rank counts.h5ad --key counts --max-components 20", "rank spectra.npy --scaling none --json")


def rank(
    data: options.Data,
    orthogonal: options.Orthogonal = "samples",
    scaling: options.Scaling = "item",
    max_components: options.MaxComponents = None,
    key: options.Key = None,
    json: options.Json = False,
) -> None:
    """Say how many components the data have: how long each number of components lasts as the annealing cools."""
    model = ONMF(orthogonal=orthogonal, scaling=scaling, max_components=max_components, refine=False)
    fitted(model, read(data, key=key), quiet=False)
    rows = curve(model)
    if json:
        say(as_json({"data": base_name(data), "n_components": model.n_components_, "status": model.status_, "curve": rows}))
    else:
        say(told(rows, model))


def curve(model: ONMF) -> list[dict[str, Any]]:
    """Each number of components, the β at which it first exists, and its persistence where that is known."""
    lengths = [*model.persistence_, None]
    return [
        {"n_components": m, "critical_beta": beta, "persistence": length}
        for m, (beta, length) in enumerate(zip(model.critical_betas_, lengths, strict=False), start=2)
    ]


def told(rows: list[dict[str, Any]], model: ONMF) -> str:
    """A table with a bar for each persistence, and the number chosen."""
    known = [row["persistence"] for row in rows if row["persistence"] is not None and np.isfinite(row["persistence"])]
    unit = WIDTH / max([*known, 1e-12])
    lines = [f"{'components':>10}  {'from β':>10}  {'persistence':>11}"] if rows else []
    for row in rows:
        length = row["persistence"]
        text = "" if length is None else f"{length:.3f}"
        strip = "" if length is None else "█" * round(min(length * unit, WIDTH)) if np.isfinite(length) else "█" * WIDTH + "…"
        chosen = "  ←" if row["n_components"] == model.n_components_ else ""
        lines.append(f"{row['n_components']:>10}  {row['critical_beta']:>10.4g}  {text:>11}  {strip}{chosen}".rstrip())
    return "\n".join([*lines, *([""] if lines else []), f"Chosen: {model.n_components_} components. {model.status_}"])
