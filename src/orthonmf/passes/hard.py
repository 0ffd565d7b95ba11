"""Passes with one component for each item: labels, and the sums that they make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce as fold
from typing import ClassVar

import numpy as np

from .._common.arithmetic import argmin_of_columns
from .._common.typing import Array, Labels
from ..distortion.base import Items, Pairs
from .base import INDEX, Additive, Columns, Count, Found


@dataclass(frozen=True)
class HardStats(Additive):
    """Sums of one hard pass.

    Attributes
    ----------
    count : int
    mass : ndarray of shape (n_components,)
        Σ ω_i of the items of each component.
    sizes : ndarray of shape (n_components,)
        Items of each component.
    cost : ndarray of shape (n_components,)
        Σ ω_i d_i of the items of each component.
    sums : ndarray of shape (n_components, n_coordinates)
        What makes the new centres.
    changed : int
        Items whose label changed.
    """

    count: int
    mass: Array
    sizes: Labels
    cost: Array
    sums: Array
    changed: int

    @property
    def total(self) -> float:
        """Σ ω_i d_i."""
        return float(self.cost.sum())

    def of(self, chosen: Labels) -> HardStats:
        """Those of some components, which are all that their items have."""
        sizes = self.sizes[chosen]
        return HardStats(int(sizes.sum()), self.mass[chosen], sizes, self.cost[chosen], self.sums[chosen], 0)

    def replaced(self, chosen: Labels, others: HardStats) -> HardStats:
        """With those of some components as others have them."""
        mass, sizes, cost, sums = self.mass.copy(), self.sizes.copy(), self.cost.copy(), self.sums.copy()
        mass[chosen], sizes[chosen], cost[chosen], sums[chosen] = others.mass, others.sizes, others.cost, others.sums
        return HardStats(self.count, mass, sizes, cost, sums, 0)


def hard_stats(items: Items, pairs: Pairs, labels: Labels, n_components: int, changed: int = 0) -> HardStats:
    """The sums of one block for given labels, and what pairs every item with the centre of its own."""
    own = np.maximum(pairs.distance[0], 0)
    resp = np.zeros((n_components, len(items)), dtype=own.dtype, like=own)
    resp[labels, np.arange(len(items), like=labels)] = items.weight
    return HardStats(
        count=len(items),
        mass=np.bincount(labels, items.weight, n_components),
        sizes=np.bincount(labels, minlength=n_components),
        cost=np.bincount(labels, items.weight * own, n_components),
        sums=items.sums(resp, pairs.inner),
        changed=changed,
    )


@dataclass(frozen=True)
class Nearest:
    """Column ``labels``: the nearest component of every item (ties to the lowest index), and the sums that they make.

    Items whose label is not what it was before are counted: all, where none had one.
    """

    centers: Array
    labelled: bool = True

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the columns it reads."""
        return ("labels",) if self.labelled else ()

    @property
    def bare(self) -> Nearest:
        """What finds the same labels without those before."""
        return replace(self, labelled=False)

    def __call__(self, items: Items, columns: Columns) -> Found:
        pairs = items.pairs(self.centers)
        labels = argmin_of_columns(pairs.distance)
        changed = int(np.count_nonzero(labels != columns["labels"])) if self.labelled else len(items)
        return Found(hard_stats(items, pairs.of(labels), labels, len(self.centers), changed), {"labels": labels})


@dataclass(frozen=True)
class Labelled:
    """The sums for given labels."""

    centers: Array
    reads: ClassVar = ("labels",)

    def __call__(self, items: Items, columns: Columns) -> Found:
        labels = columns["labels"]
        return Found(hard_stats(items, items.pairs(self.centers, labels), labels, len(self.centers)))


@dataclass(frozen=True)
class Farthest:
    """How far items of any weight are, at most.

    Attributes
    ----------
    count : int
    own : ndarray of shape (n_components,)
        d to the centre of their own component, by component.
    reach : float
        Squared distance to the reference.
    heavy : int
        Items of any weight.
    """

    count: int
    own: Array
    reach: float
    heavy: int

    def __add__(self, other: Farthest) -> Farthest:
        own, reach = np.maximum(self.own, other.own), max(self.reach, other.reach)
        return Farthest(self.count + other.count, own, reach, self.heavy + other.heavy)

    @classmethod
    def of(cls, distance: Array, labels: Labels, weight: Array, reach: Array, n_components: int) -> Farthest:
        """Of the items of one block."""
        heavy, own = weight > 0, np.zeros(n_components)
        np.maximum.at(own, labels[heavy], distance[heavy])
        return cls(len(labels), own, float(reach[heavy].max(initial=0.0)), int(np.count_nonzero(heavy)))


@dataclass(frozen=True)
class FarthestItems:
    """The farthest items of given labels."""

    centers: Array
    reads: ClassVar = ("labels",)

    def __call__(self, items: Items, columns: Columns) -> Found:
        labels = columns["labels"]
        distance = items.pairs(self.centers, labels).distance[0]
        return Found(Farthest.of(distance, labels, items.weight, items.sq, len(self.centers)))


@dataclass(frozen=True)
class Cheapest:
    """Column ``labels``: the component in which every item costs least, ω d + price · size."""

    centers: Array
    prices: Array
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        cost = np.maximum(items.pairs(self.centers).distance, 0) * items.weight
        return Found(Count(len(items)), {"labels": argmin_of_columns(cost + self.prices[:, None] * items.size)})


@dataclass(frozen=True)
class TwoCheapest:
    """Columns ``labels`` and ``runner``: the components in which every item costs least, ω d + price, and next; ``slack`` between them.

    The runner-up of a single component is the same, and infinitely dearer.
    """

    centers: Array
    prices: Array
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        cost = item_costs(items, self.centers) + self.prices[:, None]
        labels, every = argmin_of_columns(cost), np.arange(len(items), like=cost)
        least = cost[labels, every]
        cost[labels, every] = np.inf
        runner = argmin_of_columns(cost)
        return Found(Count(len(items)), {"labels": labels, "runner": runner, "slack": cost[runner, every] - least})


def item_costs(items: Items, centers: Array) -> Array:
    """ω d in float64, shape (k, block)."""
    return (np.maximum(items.pairs(centers).distance, 0) * items.weight).astype(np.float64)


@dataclass(frozen=True)
class Costs:
    """Column ``costs`` (n_items, n_components): ω d in float64."""

    centers: Array
    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        return Found(Count(len(items)), {"costs": item_costs(items, self.centers).T})


@dataclass(frozen=True)
class OwnAndOther:
    """Columns ``own``, ``second`` and ``sq``, distances to its own centre, the nearest other and the reference; ``weight`` ω."""

    centers: Array
    reads: ClassVar = ("labels",)

    def __call__(self, items: Items, columns: Columns) -> Found:
        distance = np.maximum(items.pairs(self.centers).distance, 0)
        mine = columns["labels"], np.arange(len(items), like=columns["labels"])
        own = distance[mine]
        distance[mine] = np.inf
        found = {"own": own, "second": distance.min(axis=0), "sq": items.sq, "weight": items.weight}
        return Found(Count(len(items)), {name: values.astype(np.float64) for name, values in found.items()})


@dataclass(frozen=True)
class WorstItem:
    """The item that costs most, the first of equal ones, and its cost ω d."""

    count: int
    cost: float
    item: int

    def __add__(self, other: WorstItem) -> WorstItem:
        larger = self if self.cost >= other.cost else other
        return WorstItem(self.count + other.count, larger.cost, larger.item)


@dataclass(frozen=True)
class Nearer:
    """Column ``nearest``: the distance to the nearest centre, of these and of all before where there were some; and the worst item.

    A distance up to ``equal``, or to ``roundings`` times the item's squared distance to the reference, costs nothing. ``earlier`` are
    centres that were looked at before these, some at a time: as many inner products at once round alike.
    """

    centers: Array
    equal: float
    roundings: float
    begun: bool
    earlier: tuple[Array, ...] = ()
    changes: ClassVar = "nearest"

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the columns it reads."""
        return (INDEX, "nearest") if self.begun else (INDEX,)

    def after(self, before: Nearer) -> Nearer:
        """Both at once."""
        return replace(self, begun=before.begun, earlier=(*before.earlier, before.centers))

    def __call__(self, items: Items, columns: Columns) -> Found:
        each = (np.maximum(items.pairs(some).distance, 0).min(axis=0).astype(np.float64) for some in (*self.earlier, self.centers))
        nearest: Array = fold(np.minimum, each, columns["nearest"]) if self.begun else fold(np.minimum, each)
        least = np.maximum(self.equal, self.roundings * items.sq.astype(np.float64))
        cost = np.where(nearest > least, nearest * items.weight.astype(np.float64), 0.0)
        worst = int(cost.argmax())
        return Found(WorstItem(len(items), float(cost[worst]), int(columns[INDEX][worst])), {"nearest": nearest})


@dataclass(frozen=True)
class Weights:
    """Column ``weight``: ω of every item in its frame."""

    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        return Found(Count(len(items)), {"weight": items.weight.copy()})


@dataclass(frozen=True)
class Margins:
    """Column ``margin``: (d₂ − d₁) / max(d₁, d₂), for d₁ to the item's own centre and d₂ to the nearest other.

    A distance up to ``equal``, or to ``roundings`` times the item's squared distance to the reference, is none.
    """

    centers: Array
    equal: float
    roundings: float
    reads: ClassVar = ("labels",)

    def __call__(self, items: Items, columns: Columns) -> Found:
        return Found(Count(len(items)), {"margin": self.of(items.pairs(self.centers), columns["labels"], items.sq)})

    def of(self, pairs: Pairs, labels: Labels, sq: Array) -> Array:
        """The margins of items that are ``sq`` away from the reference; 1 where there is one centre."""
        if len(pairs.distance) == 1:
            return np.ones(len(labels), like=labels)
        mine = labels, np.arange(len(labels), like=labels)
        other = pairs.distance.copy()
        other[mine] = np.inf
        return self.between(pairs.distance[mine], other.min(axis=0), sq)

    def between(self, own: Array, other: Array, sq: Array) -> Array:
        """The margin between two distances of items that are ``sq`` away from the reference."""
        least = np.maximum(self.equal, self.roundings * sq)
        own, other = (np.where(distance > least, distance, 0.0) for distance in (own, other))
        larger = np.maximum(own, other)
        margin: Array = np.divide(other - own, larger, out=np.zeros_like(own), where=larger > 0)
        return margin


@dataclass(frozen=True)
class Reach(Additive):
    """Σ ω and Σ ω ‖x'‖."""

    count: int
    weight: float
    reach: float


@dataclass(frozen=True)
class MeanReach:
    """How far the items are from the reference."""

    reads: ClassVar = ()

    def __call__(self, items: Items, columns: Columns) -> Found:
        root: Array = np.sqrt(np.maximum(items.sq, 0))
        return Found(Reach(len(items), float(items.weight.sum()), float(items.weight @ root)))
