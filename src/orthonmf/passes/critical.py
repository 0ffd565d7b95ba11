"""Passes that look for phase transitions: second moments, children along a direction, children anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from .._common.typing import Array
from ..distortion.base import Items, Pairs, Splitting, having
from .base import Additive, Columns, Count, Found
from .soft import soft
from .state import State

# Exponents above this would overflow; a child there pays whatever its exact value is.
MAX_EXPONENT = 300.0


class Responsible(Protocol):
    """Components at rest, with the responsibilities of any block of items."""

    @property
    def state(self) -> State:
        """Temperature, centres and masses."""

    def responsibilities(self, items: Items) -> tuple[Array, Pairs]:
        """ω_i p_ij (k, block) and the distances of a block."""
        ...


@dataclass(frozen=True)
class WorstItems:
    """Per component the largest p_ij d_ij and its item as a centre: blocks propose, the larger wins, ties go to the first."""

    count: int
    score: Array
    points: Array

    def __add__(self, other: WorstItems) -> WorstItems:
        better = other.score > self.score
        return WorstItems(
            self.count + other.count,
            np.where(better, other.score, self.score),
            np.where(better[:, None], other.points, self.points),
        )


@dataclass(frozen=True)
class WorstExplained:
    """For each component the item that it explains worst."""

    at: Responsible
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        resp, pairs = self.at.responsibilities(items)
        score = np.divide(resp, items.weight, out=np.zeros_like(resp), where=items.weight > 0) * pairs.distance
        best = score.argmax(axis=1)
        return Found(WorstItems(len(items), score[np.arange(len(best)), best], items.frame.points(items, best)))


@dataclass(frozen=True)
class Largest:
    """The largest of some numbers."""

    count: int
    value: float

    def __add__(self, other: Largest) -> Largest:
        return Largest(self.count + other.count, max(self.value, other.value))


@dataclass(frozen=True)
class Farthest:
    """The largest distance of a weighted item to its nearest centre."""

    centers: Array
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        away = np.where(items.weight > 0, items.pairs(self.centers).distance.min(axis=0), 0.0)
        return Found(Largest(len(items), float(away.max())))


@dataclass(frozen=True)
class MomentSums(Additive):
    """Second moments, see ``Splitting.moments``."""

    count: int
    moments: Array


@dataclass(frozen=True)
class Moments:
    """Second moments of every component with a direction of its own."""

    at: Responsible
    directions: Array
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        frame = having(items.frame, Splitting, "The annealing")
        resp, pairs = self.at.responsibilities(items)
        return Found(MomentSums(len(items), frame.moments(items, resp, pairs, self.at.state.centers, self.directions)))


@dataclass(frozen=True)
class ScanSums(Additive):
    """c, Σ ω (exp(−βd)/Z − 1)² and the slope of c in β, for every component (rows) and step (columns)."""

    count: int
    first: Array
    second: Array
    slope: Array


@dataclass(frozen=True)
class Scan:
    """What a child would be worth at some steps along a direction of every component."""

    state: State
    directions: Array
    steps: Array
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        state, frame = self.state, having(items.frame, Splitting, "The annealing")
        resp, pairs, log_z = soft(items, state)
        logits = -state.beta * pairs.distance - log_z
        mean = np.divide((resp * pairs.distance).sum(axis=0), items.weight, out=np.zeros_like(items.weight), where=items.weight > 0)
        lag = mean - pairs.distance
        projections = frame.projections(items, state.centers, self.directions)
        first, second, slope = np.empty((3, state.n_components, len(self.steps)))
        for column, step in enumerate(self.steps):
            change = frame.change(pairs.inner, projections, np.full(state.n_components, step), state.centers, self.directions)
            ratio = np.exp(np.minimum(logits - state.beta * change, MAX_EXPONENT))
            weighted = ratio * items.weight
            first[:, column] = weighted.sum(axis=1)
            slope[:, column] = np.einsum("kb,kb->k", weighted, lag - change)
            second[:, column] = np.square(ratio - 1) @ items.weight
        return Found(ScanSums(len(items), first, second, slope))


@dataclass(frozen=True)
class MeanDistances:
    """Columns ``log_z``, and ``mean``, the mean distance of every item to its components."""

    state: State
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        resp, pairs, log_z = soft(items, self.state)
        mean = np.divide((resp * pairs.distance).sum(axis=0), items.weight, out=np.zeros_like(items.weight), where=items.weight > 0)
        return Found(Count(len(items)), {"log_z": log_z.astype(np.float64), "mean": mean})


@dataclass(frozen=True)
class ChildSums(Additive):
    """For every place c, what makes the best centre there, Σ ω (exp(−βd)/Z − 1)² and the slope of c in β."""

    count: int
    mass: Array
    sums: Array
    second: Array
    slope: Array


@dataclass(frozen=True)
class Children:
    """What a child would be worth at some places."""

    beta: float
    places: Array
    reads: ClassVar = ("log_z", "mean")

    def __call__(self, items: Items, columns: Columns) -> Found:
        pairs = items.pairs(self.places)
        ratio = np.exp(np.minimum(-self.beta * pairs.distance - columns["log_z"], MAX_EXPONENT))
        weighted = ratio * items.weight
        return Found(
            ChildSums(
                count=len(items),
                mass=weighted.sum(axis=1),
                sums=items.sums(weighted, pairs.inner),
                second=np.square(ratio - 1) @ items.weight,
                slope=np.einsum("kb,kb->k", weighted, columns["mean"] - pairs.distance),
            )
        )
