"""``orthonmf verify``: does the model keep what it claims?"""

from __future__ import annotations

from typing import Any

import numpy as np
import typer

from ..model.certificate import Certificate
from . import _options as options
from ._data import Taken, source, taking
from ._model import load, matched, names_checked
from ._output import as_json, say, warn

EXAMPLES = options.examples("verify genes-onmf genes.csv", "verify genes-onmf/model.onmf genes.csv --json")

FAILED = 3
# Relative difference of two errors of the same data: rounding, in float32 too.
SAME = 1e-5


@taking
def verify(
    *,
    model: options.Model,
    data: options.Data,
    wanted: Taken,
    json: options.Json = False,
) -> None:
    """Recompute every claim about a model from the data it was fitted on. Ends with exit code 3 when one fails."""
    loaded = load(model)
    matrix = matched(loaded, wanted.whole(data, missing=loaded.missing == "ignore"), source(data))
    if loaded.orthogonal == "samples" and len(loaded.labels_) != matrix.X.shape[0]:
        warn(
            f"{source(data)} has {matrix.X.shape[0]} rows, the model was fitted on {len(loaded.labels_)}: claims about its own data may "
            "fail here."
        )
    with names_checked():
        certificate = loaded.verify(matrix.X)
    if not np.isclose(certificate.error, loaded.reconstruction_err_, rtol=SAME, atol=0):
        warn(
            f"note: the error is {certificate.error:.6g} here and was {loaded.reconstruction_err_:.6g} in the fit: other data, or other "
            "weights."
        )
    if json:
        say(as_json(evidence(certificate)))
    else:
        say(f"{certificate}\n{'Every claim holds.' if certificate.holds else 'The certificate FAILS.'}")
    if not certificate.holds:
        raise typer.Exit(FAILED)


def evidence(certificate: Certificate) -> dict[str, Any]:
    """A certificate, for scripts."""
    return {
        "holds": certificate.holds,
        "claims": certificate.claims,
        "error": certificate.error,
        "relative_error": certificate.relative_error,
        "lower_bound": certificate.lower_bound,
        "gap": certificate.gap,
        "stationarity": certificate.stationarity,
        "separation": certificate.separation,
    }
