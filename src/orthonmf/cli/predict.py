"""``orthonmf predict``: the components of new samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..estimator import ONMF
from ..io import Data, as_csv, write_table
from ..io.table import check_table
from . import _options as options
from ._data import Taken, source, taking
from ._model import load, matched, names_checked, names_of
from ._output import as_json, check_file, say, say_table

EXAMPLES = options.examples(
    "predict genes-onmf new.csv", "predict genes-onmf/model.onmf new.csv --out labels.parquet", "predict genes-onmf new.csv --json"
)


@taking
def predict(
    *,
    model: options.Model,
    data: options.Data,
    wanted: Taken,
    out: Annotated[Path | None, typer.Option(help="File for the table, .csv or .parquet; the terminal by default.")] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Say to which component each sample belongs, and how surely; for a model of features, the weight of each component in each sample."""
    if out is not None:
        check_file(out, force=force, inputs=(model, data))
        check_table(out)
    loaded = load(model)
    matrix = matched(loaded, wanted.whole(data, missing=loaded.missing == "ignore"), source(data))
    columns = columns_of(loaded, matrix)
    if out is not None:
        write_table(out, columns)
    if json:
        say(as_json(dict(columns)))
    elif out is None:
        say_table(as_csv(columns).removesuffix("\n"))


def columns_of(model: ONMF, matrix: Data) -> list[tuple[str, Any]]:
    """The table: samples by name, with what the model says of each."""
    model.set_params(sparse_output=False).set_output(transform="default")  # the model may return T in another form to others
    with names_checked():
        T = model.transform(matrix.X)
        names = ("sample", names_of(matrix.row_names, len(T)))
        if model.orthogonal == "features":
            return [names, *((f"component {j}", T[:, j]) for j in range(model.n_components_))]
        labels = model.predict(matrix.X)
        sure = model._certainty(matrix.X, labels)
    return [names, ("component", labels), ("scale", T[np.arange(len(T)), labels]), *sure.items()]
