"""What a fit works with: the request, and the items as its stages see them, all of which the data and the request determine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from .._common.typing import Array
from ..distortion import loss_of
from ..distortion.base import Annealed, Distortion, Moving, Splitting, having
from ..engines.base import Engine, block_weight, mean_size
from .bounded import solver_needs
from .bounded.bounds import Bounds, parse_bounds, parse_loads
from .budget import BUDGET
from .number.cloud import effective_number
from .sampling import coreset, mergeable
from .sampling import merged as merge_equal
from .span import Span, narrow
from .start import Start

# max_components when it is not given.
MAX_COMPONENTS = 32


@dataclass(frozen=True)
class Request:
    """What is asked of a factorisation; the parameters of the estimator, validated.

    ``n_components`` is None where the data decide, then between ``min_components`` and ``max_components``; ``persistence`` says that the
    number that persists longest is taken; ``start`` is where to begin as well; ``penalty`` is ``capacity_penalty`` in the units of the
    engine.
    """

    n_components: int | None
    persistence: bool
    min_components: int
    max_components: int
    loss: str
    scaling: str
    missing: str
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
    start: Start | None = None
    penalty: float = np.inf


@dataclass(frozen=True)
class Job:
    """The items as the stages of a fit see them, and the loss there.

    Items are held in coordinates of their span where those are fewer, and equal ones as one where a copy of all is small. Where neither
    is so, ``engine``, ``merged``, ``spanned`` and ``distinct`` are one engine.

    Attributes
    ----------
    request : Request
    engine : Engine
        All items, in the coordinates of X.
    merged : Engine
        The same, equal ones as one.
    given_distortion : Annealed
        The loss about a reference in the coordinates of X.
    span : Span or None
    spanned : Engine
        All items, in their span.
    distinct : Engine
        The same, equal ones as one: where free components are sought.
    distortion : Annealed
        The loss in the span: that of all stages but the number of components.
    items : Engine
        What is assigned: the distinct items, or all where bounds count every one.
    start : ndarray of shape (n_components, n_coordinates) or None
        The centres that were given to begin from as well, in the frame of ``distortion``.
    annealed : Engine
        What is annealed: the distinct items, or a sample of them.
    counted : Engine
        What is asked for the number of components: as many, in the coordinates of X.
    evidence : float or None
        The effective number of items that are counted; None for a sample.
    rough : bool
        Whether these items only stand for others, so that what is found is where another search begins.
    """

    request: Request
    engine: Engine
    merged: Engine
    given_distortion: Annealed
    span: Span | None
    spanned: Engine
    distinct: Engine
    distortion: Annealed
    items: Engine
    annealed: Engine
    counted: Engine
    evidence: float | None
    start: Array | None
    rough: bool = False

    @classmethod
    def of(cls, engine: Engine, request: Request, *, rough: bool = False) -> Job:
        """What is made of the items."""
        request = replace(request, penalty=_penalty(engine, request))
        merged = _distinct(engine)
        given = _able(loss_of(request).of(merged), request)
        span = Span.of(engine, given) if narrow(engine, given) else None
        spanned, distinct, distortion = engine, merged, given
        if span is not None:
            spanned, distinct, distortion = span.engine, _distinct(span.engine), _able(span.distortion, request)
        free = bounds_for(spanned, request, request.n_components or request.min_components) is None
        annealed = _annealed(distinct, distortion, request)
        return cls(
            request=request,
            engine=engine,
            merged=merged,
            given_distortion=given,
            span=span,
            spanned=spanned,
            distinct=distinct,
            distortion=distortion,
            items=distinct if free else spanned,
            start=None if request.start is None else request.start.framed(spanned, distortion, given, span),
            annealed=annealed,
            counted=annealed if span is None or request.n_components is not None else _annealed(merged, given, request),
            evidence=effective_number(block_weight(engine, slice(0, engine.n_items))) if annealed is distinct else None,
            rough=rough,
        )

    @property
    def wanted(self) -> int:
        """Components that are asked for, at least."""
        return self.request.n_components or self.request.min_components

    @property
    def passes(self) -> int:
        """Over all items, so far."""
        return sum({id(each): each.passes for each in (self.engine, self.merged, self.spanned, self.distinct)}.values())

    def bounds(self, n_components: int) -> Bounds | None:
        """On the sizes of so many components."""
        return bounds_for(self.items, self.request, n_components)


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
    return merge_equal(engine.near())[0] if mergeable(engine) else engine


def _penalty(engine: Engine, request: Request) -> float:
    """What an item out of a soft bound costs, in the units of the engine; infinite where bounds are hard."""
    power = loss_of(request).power
    return np.inf if request.capacity_penalty is None else request.capacity_penalty * mean_size(engine, power)


def _annealed(engine: Engine, distortion: Annealed, request: Request) -> Engine:
    """The items that are annealed."""
    asked = request.n_components
    return coreset(engine, distortion, BUDGET.rank_items if asked is None else few_items(asked), request.seed)


def few_items(n_components: int) -> int:
    """Items that show so many components."""
    return max(BUDGET.anneal_items, BUDGET.anneal_items_per_component * n_components)


def bounds_for(engine: Engine, request: Request, n_components: int) -> Bounds | None:
    """The bounds that were asked for; None where they exclude nothing, and no flow is to be seen under them."""
    if engine.size is not None:
        return parse_loads(request.capacity, request.min_size, n_components, engine.n_items, request.total_size, request.penalty)
    bounds = parse_bounds(request.capacity, request.min_size, n_components, engine.n_items, request.penalty)
    idle = bounds is not None and not bounds.bind(engine.n_items) and request.solver != "cbf"
    return None if idle else bounds
