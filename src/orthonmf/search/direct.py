"""A fit without a search: components far apart, if they are proven to be the best."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._common.typing import Array
from ..distortion import loss_of
from ..distortion.base import Distortion, Metric
from ..engines.base import Engine, doubled
from .budget import BUDGET
from .job import Request, few_items
from .partition import Free, Partition, alternate, nearest_pass, opened, sharpened, spaced
from .proof import farthest_if_proven
from .sampling import mergeable


@dataclass(frozen=True)
class Direct:
    """The best partition.

    Attributes
    ----------
    engine : Engine
        All items, in float64 where they are few.
    distortion : Distortion
        The loss in its frame.
    part : Partition
        With centres at rest to rounding.
    certain : bool
        Whether every single item is in its place whatever is rounded: those without weight need not be.
    """

    engine: Engine
    distortion: Distortion
    part: Partition
    certain: bool


def best_at_once(given: Engine, request: Request) -> Direct | None:
    """Where alternation leads from items far apart, if that is proven to be the best partition; a few items say whether to look at all.

    The annealing, samples and swaps would be ways to the same, unless the temperatures are what is asked for, or bounds play a part.
    """
    asked = request.n_components
    if asked is None or request.growth is not None or not request.refine or request.capacity is not None or request.min_size is not None:
        return None
    loss = loss_of(request)
    if not issubclass(loss, Metric):
        return None
    engine = doubled(given) if mergeable(given) else given
    before = engine.passes
    found = _sought(engine, loss.of(engine), asked)
    if engine is not given:
        given.passes += engine.passes - before
    return found


def _sought(engine: Engine, distortion: Distortion, asked: int) -> Direct | None:
    """So many components far apart, where they are proven to be the best."""
    few = engine if engine.n_items <= few_items(asked) else engine.select(spaced(engine.n_items, few_items(asked)))
    # Without the reference, which is in none of the groups: where these are far apart, the others are an item of each.
    centers = opened(few, distortion, distortion.origin, asked + 1)[1:]
    part = alternate(few, distortion, centers) if len(centers) == asked and _settles(few, distortion, centers) else None
    if part is None or farthest_if_proven(few, distortion, part) is None:
        return None
    if few is not engine:
        part = Free(engine, distortion).assigned(part.centers)
    farthest = farthest_if_proven(engine, distortion, part)
    if farthest is None:
        return None
    # The labels are those of the best partition: only its centres are left to find.
    part = replace(part, centers=sharpened(engine, distortion, part))
    return Direct(engine, distortion, part, certain=farthest.heavy == engine.n_items)


def _settles(engine: Engine, distortion: Distortion, centers: Array) -> bool:
    """Whether a few passes are enough for every item to stay where it is, as they are where components are far apart."""
    changed, labels = engine.n_items, None
    for _ in range(BUDGET.direct_passes):
        stats, labels = nearest_pass(engine, distortion, centers, labels)
        centers, changed = distortion.center(stats.sums, np.maximum(stats.mass, np.finfo(float).tiny)), stats.changed
    return changed == 0
