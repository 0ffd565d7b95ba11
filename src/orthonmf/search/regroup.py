"""Components in two halves; and regroupings, where one component is split while two others, or one and a half, are merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Moving, carried
from ..engines.base import Engine
from ..passes.swaps import Sides, SideSums
from .budget import BUDGET
from .partition import Distances, Partition, item_places

# How far from the centre the halves begin, as a part of the way to the farthest item: both reach equally far, so that a plane through the
# centre parts them.
APART = 1e-3


def first_of_each(labels: Labels, key: Array, place: int = 0) -> Labels:
    """For each label, the item with the least key; or that at another place by its key, or the last where there are fewer."""
    order = np.lexsort((key, labels))
    _, start, count = np.unique(labels[order], return_index=True, return_counts=True)
    return order[start + np.minimum(place, count - 1)]


def farthest_points(engine: Engine, distortion: Moving, part: Partition, away: Distances, place: int = 0) -> Array:
    """The farthest item of each component, or one that comes after it, as a centre, shape (n_components, n_coordinates)."""
    farthest = first_of_each(part.labels, -away.own * (away.weight > 0), place)
    points = part.centers.copy()
    points[part.labels[farthest]] = item_places(engine, distortion, farthest)
    return points


@dataclass(frozen=True)
class Halves:
    """Every component in two.

    Attributes
    ----------
    centers : ndarray of shape (2, n_components, n_coordinates)
    sides : SideSums
        Of the last pass, whose centres these are.
    """

    centers: Array
    sides: SideSums


def halved(engine: Engine, distortion: Moving, part: Partition, starts: Array) -> Halves:
    """Every component split in two, by alternating within it from two ``starts`` (2, n_components, n_coordinates)."""
    halves = starts
    for _ in range(BUDGET.split_passes):
        sides: SideSums = engine.run(distortion, Sides(halves), {"labels": part.labels}).total
        both = sides.mass.min(axis=0)[:, None] > 0
        moved = [distortion.center(sums, _positive(mass)) for sums, mass in zip(sides.sums, sides.mass, strict=True)]
        halves = np.where(both, np.stack(moved), halves)
    return Halves(halves, sides)


@dataclass(frozen=True)
class _Regrouping:
    """Split a component and merge two parts, of which one may be a half of it; ``rise`` is what that adds to the cost, at most."""

    rise: float
    split: int
    one: int
    other: int


@dataclass(frozen=True)
class _Parts:
    """The k components, then their first halves, then their second ones: k + j and 2 k + j are the halves of component j.

    Attributes
    ----------
    centers, sums : ndarray of shape (3 k, n_coordinates)
    mass, cost : ndarray of shape (3 k,)
    """

    centers: Array
    sums: Array
    mass: Array
    cost: Array

    @classmethod
    def of(cls, part: Partition, halves: Halves) -> _Parts:
        stats, sides = part.stats, halves.sides
        return cls(
            centers=np.vstack([part.centers, *halves.centers]),
            sums=np.vstack([stats.sums, *sides.sums]),
            mass=np.concatenate([stats.mass, *sides.mass]),
            cost=np.concatenate([stats.cost, *sides.cost]),
        )

    @property
    def n_components(self) -> int:
        """k."""
        return len(self.mass) // 3

    def regroupings(self, distortion: Moving) -> list[_Regrouping]:
        """For each component, its split with the mergers that cost least; what gains most comes first."""
        k = self.n_components
        merge = distortion.merge(self.centers, self.mass, self.cost)[:, :k]
        one, other = np.triu_indices(k, 1)
        cheap = np.argsort(merge[one, other], kind="stable")[: BUDGET.mergers * k]
        found = []
        for split, whole in enumerate(self.cost[:k]):
            gain = whole - self.cost[k + split] - self.cost[2 * k + split]
            apart = cheap[(one[cheap] != split) & (other[cheap] != split)][: BUDGET.mergers]
            pairs = list(zip(one[apart].tolist(), other[apart].tolist(), strict=True))
            for half in (k + split, 2 * k + split):
                near = np.argsort(np.where(np.arange(k) == split, np.inf, merge[half]), kind="stable")
                pairs += [(half, int(j)) for j in near[: min(BUDGET.mergers, k - 1)]]
            found += [_Regrouping(float(merge[pair] - gain), split, *pair) for pair in pairs]
        return sorted(found, key=lambda each: each.rise)

    def centers_after(self, distortion: Moving, regroupings: list[_Regrouping]) -> Array:
        """The centres of the components after regroupings that have none in common."""
        k = self.n_components
        centers = self.centers[:k].copy()
        for each in regroupings:
            halves = [k + each.split, 2 * k + each.split]
            left = [half for half in halves if half != each.one]
            places = [each.split, each.one][: len(left)]
            merged = [each.one, each.other]
            centers[places] = self.centers[left]
            centers[each.other] = distortion.center(self.sums[merged].sum(axis=0)[None], _positive(self.mass[merged].sum(keepdims=True)))[0]
        return centers


def regrouped(engine: Engine, distortion: Moving, part: Partition, away: Distances) -> Iterator[Array]:
    """Centres after regroupings that are sure to gain, from the likeliest way of splitting every component to others.

    The halves of a component are parted by a plane through its centre. Where noise has many dimensions every item is nearer to the mean
    of several groups than to any other item, so that no item is a place to open a component at, and this is what tells them apart.
    """
    mass = _positive(part.stats.mass)
    for place in range(BUDGET.halvings):
        reach = APART * (farthest_points(engine, distortion, part, away, place) - part.centers)
        starts = np.stack([carried(distortion, part.centers + way, mass) for way in (reach, -reach)])
        parts = _Parts.of(part, halved(engine, distortion, part, starts))
        if sure := _disjoint(each for each in parts.regroupings(distortion) if each.rise < 0):
            yield parts.centers_after(distortion, sure)


def _disjoint(regroupings: Iterable[_Regrouping]) -> list[_Regrouping]:
    """The first regroupings that have no component in common."""
    used: set[int] = set()
    chosen = []
    for each in regroupings:
        touched = {each.split, each.one, each.other}
        if not touched & used:
            used |= touched
            chosen.append(each)
    return chosen


def _positive(mass: Array) -> Array:
    return np.maximum(mass, np.finfo(float).tiny)
