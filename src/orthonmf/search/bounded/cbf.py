"""``solver="cbf"``: the paper's Algorithm 1 on the items of an engine. It holds n × k numbers, and refuses above a stated memory."""

from __future__ import annotations

import numpy as np

from ...distortion.base import Flowing
from ...engines.base import Engine, block_weight
from ...progress import Note, Temperature
from .base import Offer, Relaxed, forgo
from .bounds import Bounds
from .flow import FlowParameters, FlowResult, barrier_flow


def solve(
    engine: Engine,
    distortion: Flowing,
    bounds: Bounds,
    note: Note,
    parameters: FlowParameters,
    *,
    seed: int = 0,
    offer: Offer = forgo,
) -> Relaxed:
    """Follow the barrier flow to its KKT point at the last temperature; ``offer`` hears of each temperature, all items being seen."""
    whole = engine.select(np.arange(engine.n_items))
    items = distortion.items(whole.rows(slice(0, whole.n_items)), block_weight(whole, slice(0, whole.n_items)))
    if not items.weight.any():
        k = len(bounds.upper)
        return Relaxed(np.repeat(distortion.origin, k, axis=0), np.zeros(k), 0.0)
    cost = distortion.flow_cost(distortion.points(items, np.arange(len(items))), items.weight)
    lower, upper = bounds.lower.astype(np.float64), bounds.upper.astype(np.float64)

    def each(found: FlowResult) -> None:
        offer(distortion.retract(found.centers), found.prices)
        _report(found, note)

    found = barrier_flow(cost, upper, min_size=lower, parameters=parameters, each=each, check=engine.team.check)
    return Relaxed(distortion.retract(found.centers), found.prices, found.kkt_residual, status=found.status)


def _report(found: FlowResult, note: Note) -> None:
    """A temperature, with the Lyapunov function along its trajectory."""
    (record,) = found.history
    note(
        Temperature(
            beta=record.beta,
            n_components=len(found.centers),
            free_energy=float(record.lyapunov[-1]) - np.log(len(found.centers)) / record.beta,
            distortion=record.distortion,
            entropy=np.nan,
            passes=len(record.lyapunov) - 1,
            centers=found.centers,
            ids=tuple(range(len(found.centers))),
            stage="flow",
            lyapunov=record.lyapunov,
        )
    )
