"""A fit without a search: components far apart, if they are proven to be the best, or where that cannot be, if no search would go on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._common.typing import Array
from ..distortion import loss_of
from ..distortion.base import Distortion, Metric
from ..distortion.partial import Partial
from ..engines.base import Engine, doubled
from .budget import BUDGET
from .job import Request, few_items
from .partition import Free, Partition, alternate, nearest_pass, opened, sharpened, spaced
from .proof import farthest_if_proven
from .refine import separated
from .sampling import mergeable


@dataclass(frozen=True)
class Direct:
    """The best partition, or where numbers are missing one that every search would leave as it is.

    Attributes
    ----------
    engine : Engine
        All items, in float64 where they are few.
    distortion : Distortion
        The loss in its frame.
    part : Partition
        With centres at rest.
    proven : bool
        Whether no other partition into as many components is as good.
    certain : bool
        Whether every single item is in its place whatever is rounded: those without weight need not be.
    """

    engine: Engine
    distortion: Distortion
    part: Partition
    proven: bool
    certain: bool

    @property
    def sentence(self) -> str:
        """What ends the search."""
        end = "no other partition of {} items is as good" if self.proven else "a search of {} items would end where it begins"
        return f"{self.part.n_components} components far apart: {end.format(self.engine.n_items)}"


def best_at_once(given: Engine, request: Request) -> Direct | None:
    """Where alternation leads from items far apart, if that is proven to be the best partition; a few items say whether to look at all.

    Where numbers are missing nothing is proven: a direction that few items have tells nothing of the others, and distances over what each
    of two items has are no metric. There the answer is one that no swap and no move is worth a try on, with which a search ends as well.

    The annealing, samples and swaps would be ways to the same, unless the temperatures are what is asked for, or bounds play a part.
    """
    asked = request.n_components
    if asked is None or request.growth is not None or not request.refine or request.capacity is not None or request.min_size is not None:
        return None
    loss = loss_of(request)
    if not (issubclass(loss, Metric) or loss.partial):
        return None
    engine = doubled(given) if mergeable(given) else given
    before = engine.passes
    found = _sought(engine, loss.of(engine), asked)
    if engine is not given:
        given.passes += engine.passes - before
    return found


def _sought(engine: Engine, distortion: Distortion, asked: int) -> Direct | None:
    """So many components far apart, where they are proven to be the best; see ``best_at_once``."""
    few = engine if engine.n_items <= few_items(asked) else engine.select(spaced(engine.n_items, few_items(asked)))
    # Without the reference, which is in none of the groups: where these are far apart, the others are an item of each.
    centers = opened(few, distortion, distortion.origin, asked + 1)[1:]
    settled = _settled(few, distortion, centers) if len(centers) == asked else None
    part = None if settled is None else alternate(few, distortion, settled)
    if part is None:
        return None
    if isinstance(distortion, Partial):
        return _left_alone(engine, few, distortion, part)
    if farthest_if_proven(few, distortion, part) is None:
        return None
    if few is not engine:
        part = Free(engine, distortion).assigned(part.centers)
    farthest = farthest_if_proven(engine, distortion, part)
    if farthest is None:
        return None
    # The labels are those of the best partition: only its centres are left to find.
    part = replace(part, centers=sharpened(engine, distortion, part))
    return Direct(engine, distortion, part, proven=True, certain=farthest.heavy == engine.n_items)


def _left_alone(engine: Engine, few: Engine, distortion: Partial, found: Partition) -> Direct | None:
    """Where the components of a few items lead among all, if a search would end there."""
    part: Partition | None = found
    if not separated(few, distortion, found):
        return None
    if few is not engine:
        part = alternate(engine, distortion, found.centers)
    if part is None or not part.at_rest or (part is not found and not separated(engine, distortion, part)):
        return None
    return Direct(engine, distortion, replace(part, centers=sharpened(engine, distortion, part)), proven=False, certain=False)


def _settled(engine: Engine, distortion: Distortion, centers: Array) -> Array | None:
    """Centres after a few passes, if then every item stays where it is, as where components are far apart."""
    changed, labels = engine.n_items, None
    for _ in range(BUDGET.direct_passes):
        stats, labels = nearest_pass(engine, distortion, centers, labels)
        if not stats.mass.all():
            return None
        centers, changed = distortion.center(stats.sums, stats.mass), stats.changed
    return None if changed else centers
