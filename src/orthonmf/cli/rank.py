"""``orthonmf rank``: how many components the data have, and how sure that is."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from .._common.validation import check_choice
from ..distortion import MISSING
from ..estimator import ONMF
from ..search.number.curve import Row, curve
from . import _options as options
from ._data import Taken, taking
from ._model import fitted, prepared
from ._output import as_json, base_name, say

MARKS = {"answer": "  ←", "level": "  ← coarser", "": ""}

EXAMPLES = options.examples("rank genes.csv", "rank counts.h5ad --key counts --max-components 20", "rank spectra.npy --scaling none --json")


@taking
def rank(
    *,
    data: options.Data,
    orthogonal: options.Orthogonal = "samples",
    scaling: options.Scaling = "item",
    loss: options.Loss = "frobenius",
    missing: options.Missing = "error",
    max_components: options.MaxComponents = None,
    wanted: Taken,
    normalize: options.Normalize = None,
    json: options.Json = False,
) -> None:
    """Say how many components the data have, how sure that is, and what speaks for every other number."""
    check_choice("missing", missing, tuple(MISSING))
    model = ONMF(orthogonal=orthogonal, scaling=scaling, loss=loss, missing=missing, max_components=max_components, refine=False)
    fitted(model, prepared(model, wanted.read(data, missing=missing == "ignore"), normalize), quiet=False)
    rows = curve(model)
    if json:
        found = {"n_components": model.n_components_, "levels": model.levels_, "status": model.status_}
        say(as_json({"data": base_name(data), **found, "curve": [asdict(row) for row in rows]}))
    else:
        say(told(rows, model))


def told(rows: list[Row], model: ONMF) -> str:
    """A line for each number of components, those that stand out marked, and the answer in words."""
    rows = [row for row in rows if not np.isnan([row.bic, row.agreement, row.p_value, row.persistence]).all()]
    lines = [f"{'components':>10}  {'BIC':>10}  {'agreement':>9}  {'p-value':>7}  {'persistence':>11}"] if rows else []
    for row in rows:
        cells = [f"{row.n_components:>10}", _cell(row.bic, 10, 1), _cell(row.agreement, 9, 2), _cell(row.p_value, 7, 2)]
        lines.append(("  ".join([*cells, _cell(row.persistence, 11, 3)]) + MARKS[row.mark]).rstrip())
    if rows:
        lines += [
            "",
            "BIC is relative to the best; agreement is that of halves of the items; the p-value is how often chance gains as much by one",
            "component more; persistence is log(β of the next number / β of this one), as the annealing cools.",
            "",
        ]
    said = options.spoken(model.status_)
    return "\n".join([*lines, f"Chosen: {model.n_components_} component{'s' if model.n_components_ > 1 else ''}. {said}"])


def _cell(value: float, width: int, digits: int) -> str:
    return " " * width if np.isnan(value) else f"{value:>{width}.{digits}f}"
