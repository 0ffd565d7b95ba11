"""How different another partition is that is nearly as good."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from .._common.typing import Labels
from ..distortion import loss_of
from ..distortion.base import Moving
from ..engines.layout import Layout
from ..engines.threads import ThreadTeam
from ..search.partition import alternate, centered
from ..search.runner_up import elsewhere, runner_up
from .shown import MOST_ITEMS, Shown, evenly
from .words import noun

__all__ = ["Rival"]

# Products of numbers and centres in a pass over the items that are looked at: some hundred passes then take about a second.
MOST_PRODUCTS = 1 << 25
# On some of the items the partition of a fit is not quite at rest. Where more of it changes than this, what is found would be the rival of
# another.
RESTLESS = 0.05


@dataclass(frozen=True)
class Rival:
    """The runner-up of a free fit, on the items that are looked at.

    Attributes
    ----------
    excess : float
        By which part of the error of the fit its own is higher; below 0 where it is lower.
    elsewhere : float
        The share of items that it puts elsewhere.
    agreement : float
        The adjusted Rand index of both.
    n_items : int
        How many items were looked at.
    """

    excess: float
    elsewhere: float
    agreement: float
    n_items: int

    @classmethod
    def of(cls, model: Any, shown: Shown) -> Rival | None:
        """The runner-up; None where there is none, under bounds, with weights, with missing numbers, and where the fit is not at rest."""
        loss = loss_of(model)
        weighed = not np.array_equal(model._weight, model.counts_)
        if not model.certificate_.free or model.n_components_ == 1 or loss.partial or not issubclass(loss, Moving) or weighed:
            return None
        items, labels = _looked_at(model, shown)
        layout = Layout("samples", "sparse" if sparse.issparse(items) else "dense", loss.power)
        with ThreadTeam(model.n_jobs) as team, closing(team):
            engine = layout.build(items, None, team)
            distortion = loss.of(engine)
            start = centered(engine, distortion, labels, np.repeat(distortion.origin, labels.max() + 1, axis=0))
            rest = alternate(engine, distortion, start.centers)
            if rest is None or rest.cost == 0 or elsewhere(labels, rest.labels) > RESTLESS:
                return None
            found = runner_up(engine, distortion, rest)
        if found is None:
            return None
        excess = (found.cost / rest.cost) ** (1 / loss.power) - 1
        return cls(excess, found.elsewhere, float(adjusted_rand_score(rest.labels, found.labels)), len(labels))


def _looked_at(model: Any, shown: Shown) -> tuple[Any, Labels]:
    """Items in rows, of every component as large a part, and their labels from 0; of lines only such as have a direction."""
    columns = noun(model) == "feature"
    items = shown.X.T if columns else shown.X
    index = np.arange(items.shape[0])
    if loss_of(model).scaled:
        index = np.flatnonzero(np.asarray(items.sum(axis=1)).ravel() > 0)
    labels = model.labels_[index if columns else shown.index[index]]
    width = items.nnz / items.shape[0] if sparse.issparse(items) else items.shape[1]
    chosen = evenly(labels, int(min(MOST_ITEMS, max(MOST_PRODUCTS // (model.n_components_ * (width + 10)), 1))))
    rows = items.tocsr()[index[chosen]] if sparse.issparse(items) else np.ascontiguousarray(items[index[chosen]])
    return rows, np.unique(labels[chosen], return_inverse=True)[1]
