"""What a fit works with: the request, and the items as its stages see them, all of which the data and the request determine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from ..distortion import REGISTRY
from ..distortion.base import Annealed, Distortion, Moving, Splitting, having
from ..engines.base import Engine, block_weight, mean_sqnorm
from .bounded import solver_needs
from .bounded.bounds import Bounds, parse_bounds, parse_loads
from .budget import BUDGET
from .number.cloud import effective_number
from .sampling import coreset, mergeable, merged
from .span import Span, narrow

# max_components when it is not given.
MAX_COMPONENTS = 32


@dataclass(frozen=True)
class Request:
    """What is asked of a factorisation; the parameters of the estimator, validated.

    ``n_components`` is None where the data decide, then between ``min_components`` and ``max_components``; ``persistence`` says that the
    number that persists longest is taken; ``penalty`` is ``capacity_penalty`` in the units of the engine.
    """

    n_components: int | None
    persistence: bool
    min_components: int
    max_components: int
    scaling: str
    growth: float | None
    refine: bool
    capacity: Any
    min_size: Any
    capacity_penalty: float | None
    total_size: float
    solver: str
    solver_parameters: Any
    rounding: str
    tol: float
    max_iter: int
    seed: int
    penalty: float = np.inf


@dataclass(frozen=True)
class Job:
    """The items as the stages of a fit see them.

    Attributes
    ----------
    engine : Engine
        All items, as the user gave them.
    distortion : Annealed
        The loss in the frame of the items.
    request : Request
    given : Engine
        Equal items as one, where a copy of all is small.
    span : Span or None
        Coordinates of the items in their span, where those are fewer.
    frame : Annealed
        The loss in the span, or the same.
    whole, distinct : Engine
        All items, and equal ones as one, in the span.
    work : Engine
        Where free components are assigned, equal items as one; bounds count every item.
    small : Engine
        The items that are annealed.
    counted : Engine
        The items that are asked how many components they have, in the units of the user.
    evidence : float or None
        The effective number of items on which the number of components is found; None for a sample.
    """

    engine: Engine
    distortion: Annealed
    request: Request
    given: Engine
    span: Span | None
    frame: Annealed
    whole: Engine
    distinct: Engine
    work: Engine
    small: Engine
    counted: Engine
    evidence: float | None

    @classmethod
    def of(cls, engine: Engine, request: Request) -> Job:
        """What is made of the items."""
        request = replace(request, penalty=_penalty(engine, request))
        given = _distinct(engine)
        distortion = _able(REGISTRY[request.scaling].of(given), request)
        span = Span.of(engine, distortion) if narrow(engine, distortion) else None
        whole, distinct, frame = engine, given, distortion
        if span is not None:
            whole, distinct, frame = span.engine, _distinct(span.engine), _able(span.distortion, request)
        free = bounds_for(whole, request, request.n_components or request.min_components) is None
        small = _small(distinct, frame, request)
        return cls(
            engine=engine,
            distortion=distortion,
            request=request,
            given=given,
            span=span,
            frame=frame,
            whole=whole,
            distinct=distinct,
            work=distinct if free else whole,
            small=small,
            counted=small if span is None or request.n_components is not None else _small(given, distortion, request),
            evidence=effective_number(block_weight(engine, slice(0, engine.n_items))) if small is distinct else None,
        )

    @property
    def wanted(self) -> int:
        """Components that are asked for, at least."""
        return self.request.n_components or self.request.min_components

    def bounds(self, n_components: int) -> Bounds | None:
        """On the sizes of so many components."""
        return bounds_for(self.work, self.request, n_components)


def _able(distortion: Distortion, request: Request) -> Annealed:
    """The loss, if it has what every stage of this fit needs."""
    having(distortion, Splitting, "The annealing")
    if request.refine:
        having(distortion, Moving, "refine=True")
    if request.capacity is not None or request.min_size is not None:
        having(distortion, solver_needs(request.solver), f"solver={request.solver!r}")
    return cast(Annealed, distortion)


def _distinct(engine: Engine) -> Engine:
    """Equal items as one, where a copy of all is small."""
    return merged(engine)[0] if mergeable(engine) else engine


def _penalty(engine: Engine, request: Request) -> float:
    """What an item out of a soft bound costs, in the units of the engine; infinite where bounds are hard."""
    return np.inf if request.capacity_penalty is None else request.capacity_penalty * mean_sqnorm(engine)


def _small(engine: Engine, distortion: Annealed, request: Request) -> Engine:
    """The items that are annealed."""
    asked = request.n_components
    few = BUDGET.rank_items if asked is None else max(BUDGET.anneal_items, BUDGET.anneal_items_per_component * asked)
    return coreset(engine, distortion, few, request.seed)


def bounds_for(engine: Engine, request: Request, n_components: int) -> Bounds | None:
    """The bounds that were asked for; None where they exclude nothing, and no flow is to be seen under them."""
    if engine.size is not None:
        return parse_loads(request.capacity, request.min_size, n_components, engine.n_items, request.total_size, request.penalty)
    bounds = parse_bounds(request.capacity, request.min_size, n_components, engine.n_items, request.penalty)
    idle = bounds is not None and not bounds.bind(engine.n_items) and request.solver != "cbf"
    return None if idle else bounds
