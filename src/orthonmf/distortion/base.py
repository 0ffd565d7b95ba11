"""What a distortion must say: how items are seen, how far they are from a centre, and where the best centre is.

A distortion works in coordinates of its own (a *frame*), chosen so that nothing cancels. A new loss is one file with one class and one
line in the registry. Eight methods let it assign items; what annealing, refinement and the barrier flow ask beyond that are abilities of
their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from .._common.arithmetic import by_label
from .._common.typing import Array, Labels
from ..engines.base import Engine, RawRows, Rows, weighted_mean
from ..exceptions import InvalidInputError
from ..passes.state import State, Stats
from .measure import Measure, Squared


@dataclass(frozen=True)
class Items:
    """One block of items in a distortion's frame.

    Attributes
    ----------
    rows : Rows
        What is left of the items beside the reference.
    along : ndarray of shape (block,)
        Coordinate along the reference direction (lines); Σ x of what is seen of an item (counts); unused otherwise.
    sq : ndarray of shape (block,)
        Squared norm of the rest; the distance to the reference (counts).
    weight : ndarray of shape (block,)
        ω_i, float64.
    frame : Distortion
        Whose frame it is.
    size : ndarray of shape (block,) or 1
        What each item counts towards a soft bound.
    renew : callable or None
        Where the numbers took long to find: makes the rows again, so that the numbers can be kept without them.
    """

    rows: Rows
    along: Array
    sq: Array
    weight: Array
    frame: Distortion
    size: Array | float = 1.0
    renew: Callable[[RawRows], Rows] | None = None

    def __len__(self) -> int:
        return len(self.weight)

    def pairs(self, centers: Array, labels: Labels | None = None) -> Pairs:
        """Distances to every centre; with ``labels``, of each item to that of its label alone, in one row."""
        return self.frame.pairs(self, centers, labels)

    def products(self, vectors: Array, labels: Labels | None) -> Array:
        """Inner products of what is left of the items with vectors, for ``pairs``."""
        return self.rows.dot(vectors) if labels is None else self.rows.own(vectors, labels)[None]

    def sums(self, resp: Array, inner: Array) -> Array:
        """Sums (k, n_coordinates) that make the new centres, for weighted responsibilities (k, block)."""
        return self.frame.sums(self, resp, inner)


@dataclass(frozen=True)
class Pairs:
    """Distances of a block's items to the centres, and the inner products they came from.

    Attributes
    ----------
    distance : ndarray of shape (n_components, block), or (1, block) where every item has a centre of its own
    inner : ndarray of the same shape
        x̂·u for lines; the inner product in the frame otherwise.
    """

    distance: Array
    inner: Array

    def of(self, labels: Labels) -> Pairs:
        """Those of each item with the centre of its label."""
        mine = labels, np.arange(len(labels), like=labels)
        return Pairs(self.distance[mine][None], self.inner[mine][None])


class Distortion(ABC):
    """A loss between an item and a centre, in a frame about ``ref``: all that an assignment needs.

    What only some searches need are the abilities below (`Curved`, `Splitting`, `Moving`, `Metric`, `Flowing`): a loss that lacks one is
    refused by name where it is asked for.

    Parameters
    ----------
    ref : ndarray of shape (n_dims,)
        The point or direction about which items and centres are held.

    Attributes
    ----------
    origin : ndarray of shape (1, n_coordinates)
        The centre at the reference.
    measure : Measure
        What the error of an approximation is.
    """

    #: What items have in common that are at no distance from one centre.
    alike = "All items are equal."
    #: What this loss, or ability of a loss, offers, for the message to whoever lacks it.
    ability = "an assignment of items"
    #: Whether each item has the scale that suits it best, so that components are directions; if not, they are means.
    scaled = False
    #: Whether only inner products of items enter, so that they may be held in any orthonormal coordinates.
    turnable = False
    #: By which power of X costs grow; see ``Measure``.
    power = 2
    #: Whether items are held about the reference: distances then have the rounding of what is left of them, else that of the items.
    framed = True
    #: Whether coordinates of centres add up as those of items do.
    flat = True
    #: Whether numbers may be missing; items are then rows of an engine for such (``PartialRows``).
    partial = False
    #: Share of the reference in a component that is opened at an item: elsewhere one item may be infinitely far from most others.
    blend = 0.0

    def __init__(self, ref: Array) -> None:
        self.ref = ref
        self.measure = self._measure()
        # A direction has one coordinate more, along the reference, which comes first.
        self.origin = np.concatenate([np.ones(int(self.scaled)), np.zeros(len(ref))])[None]
        self.origin.flags.writeable = False

    def _measure(self) -> Measure:
        return Squared()

    @classmethod
    @abstractmethod
    def of(cls, engine: Engine) -> Self:
        """The frame for the items of an engine."""

    @abstractmethod
    def items(self, raw: RawRows, weight: Array) -> Items:
        """The items of a block in this frame, with their weights ω."""

    @abstractmethod
    def points(self, items: Items, index: Any) -> Array:
        """Items of a block as centres, shape (n, n_coordinates)."""

    @abstractmethod
    def to_data(self, centers: Array) -> Array:
        """Centres in the coordinates of the (scaled) data."""

    @abstractmethod
    def to_frame(self, centers: Array) -> Array:
        """Centres given in the coordinates of the (scaled) data."""

    @abstractmethod
    def pairs(self, items: Items, centers: Array, labels: Labels | None = None) -> Pairs:
        """Distances to every centre; with ``labels``, of each item to that of its label alone (``products``, ``each_center``)."""

    @abstractmethod
    def sums(self, items: Items, resp: Array, inner: Array) -> Array:
        """Sums (k, n_coordinates) that make the new centres, for weighted responsibilities (k, block)."""

    @abstractmethod
    def center(self, sums: Array, mass: Array) -> Array:
        """New centres from the sums: the step that lowers the cost at fixed responsibilities."""


class Curved(Distortion, ABC):
    """A loss whose centres can be sought by its slope: what a temperature needs."""

    ability = "the slope of the cost in the centres"

    @abstractmethod
    def retract(self, centers: Array) -> Array:
        """The nearest valid centres."""

    @abstractmethod
    def curvature(self, state: State, stats: Stats) -> Array:
        """Half the second derivative of Σ ω p d in the centres, (k, 1) or of each coordinate: the metric of the plain step."""

    @abstractmethod
    def slope(self, state: State, stats: Stats) -> Array:
        """Gradient of Σ ω p d in the centres, at fixed responsibilities."""


class Splitting(Curved, ABC):
    """A loss with critical values: what the annealing needs."""

    ability = "critical values"

    @abstractmethod
    def tangent(self, vectors: Array, centers: Array) -> Array:
        """Part of each vector along which its centre may move."""

    @abstractmethod
    def moved(self, centers: Array, directions: Array, step: Array) -> Array:
        """Centres moved by ``step`` (k,) along unit tangent directions."""

    @abstractmethod
    def projections(self, items: Items, centers: Array, directions: Array) -> Any:
        """What ``change`` needs of the items: (x − y_j)·ψ_j, x̂·ψ_j for lines, or what else it is linear in, shape (k, block)."""

    @abstractmethod
    def change(self, inner: Array, projections: Any, step: Array, centers: Array, directions: Array) -> Array:
        """d(x, centre moved by step) − d(x, centre), shape (k, block)."""

    @abstractmethod
    def moments(self, items: Items, resp: Array, pairs: Pairs, centers: Array, directions: Array) -> Array:
        """Second-moment sums (2, k, n_coordinates) of each component with its direction; see ``pencil``."""

    @abstractmethod
    def pencil(self, stats: Stats, centers: Array, directions: Array, moments: Array) -> tuple[Array, Array]:
        """(N ψ, R ψ) for directions ψ: β_cr of a component is the least ψᵀNψ / ψᵀRψ."""


class Moving(Distortion, ABC):
    """A loss that knows what moving items and merging components costs: what the refinement needs."""

    ability = "the costs of moving items between components"

    @abstractmethod
    def join(self, items: Items, pairs: Pairs, centers: Array, mass: Array, cost: Array) -> Array:
        """Cost that each component gains when an item joins it and its centre follows, shape (k, block)."""

    @abstractmethod
    def leave(self, items: Items, pairs: Pairs, labels: Labels, centers: Array, mass: Array, cost: Array) -> Array:
        """Cost that the component of each item loses when the item leaves it and its centre follows, shape (block,)."""

    @abstractmethod
    def merge(self, centers: Array, mass: Array, cost: Array) -> Array:
        """Upper bound on what joining two components adds to the cost, shape (k, k)."""

    def known(self, items: Items, index: Any) -> Array:
        """All that is known of items of a block, for ``least_cost`` and ``exact_moves``: their ``points``, unless numbers are missing."""
        return self.points(items, index)

    @abstractmethod
    def least_cost(self, points: Array, weight: Array) -> float:
        """Cost of few items, given by what is ``known`` of them and their weights ω, with their best centre."""

    def exact_moves(self, points: Array, weight: Array, moving: Array, labels: Labels, distance: Array) -> tuple[Array, Array] | None:
        """What each of few items saves by leaving (n,) and costs by joining (k, n), exactly; None where ``leave`` and ``join`` are exact.

        ``points`` is what is ``known`` of them, ``moving`` the weight that moves with an item, ``distance`` (k, n) that to the best
        centres of ``labels``.
        """
        return None


class Metric(Distortion, ABC):
    """A loss whose root is a metric, √d(x, z) ≤ √d(x, y) + √d(y, z): what a proof needs that a partition is the best."""

    ability = "distances that obey the triangle inequality"

    @abstractmethod
    def apart(self, centers: Array) -> Array:
        """Distances between centres, shape (k, k)."""


class Flowing(Curved, ABC):
    """A loss with the costs of the barrier flow."""

    ability = "the costs of the barrier flow"

    @abstractmethod
    def flow_cost(self, points: Array, weight: Array) -> FlowCost:
        """The costs of the barrier flow for items (n, n_coordinates) of weights ω."""


class Annealed(Splitting, Moving, ABC):
    """A loss with all that a free fit needs."""


class FlowCost(Protocol):
    """What the barrier flow asks of few items: costs, their gradient, and where centres may be."""

    weights: Array

    def cost(self, centers: Array) -> Array:
        """Distortions d_ij, shape (n_items, n_components)."""

    def center_gradient(self, resp: Array, centers: Array) -> Array:
        """Σ_i ω_i p_ij ∂d_ij/∂y_j, shape (n_components, n_dims)."""

    def place(self, centers: Array) -> Array:
        """The nearest allowed centres."""

    def spread(self, n_components: int) -> tuple[Array, Array]:
        """The best single centre (n_dims,), and at most n_components − 1 unit directions to leave it by."""


Ability = TypeVar("Ability", bound=Distortion)


def having(distortion: Distortion, ability: type[Ability], who: str) -> Ability:
    """The loss, if it is able to do what ``who`` needs."""
    if not isinstance(distortion, ability):
        raise InvalidInputError(f"{who} needs {ability.ability}, which the loss {type(distortion).__name__} does not have.")
    return distortion


def scales(distortion: Distortion, inner: Array, size: Array) -> Array:
    """The best scale of items of this size (``Measure.size``) whose inner products with their centres (as in ``Pairs``) are ``inner``."""
    return distortion.measure.scale(inner, size) if distortion.scaled else np.ones_like(size)


def carried(distortion: Distortion, points: Array, mass: Array) -> Array:
    """Centres at points that others were carried to: as sums over items of these masses would put them, where coordinates add up."""
    if distortion.flat:
        return distortion.center(mass[:, None] * points, mass)
    return having(distortion, Curved, "A centre that is carried on").retract(points)


def mean_of(engine: Engine, distortion: Distortion) -> Array | None:
    """The mean of the items where components are means; None where they are directions."""
    return None if distortion.scaled else weighted_mean(engine)


def each_center(values: Array, labels: Labels | None) -> Array:
    """A number of every centre beside the items: (k, 1), or (1, block) where every item has a centre of its own."""
    return values[:, None] if labels is None else by_label(values, labels)[None]


def between(centers: Array) -> Array:
    """Squared distances between centres, shape (k, k)."""
    sq = np.einsum("ij,ij->i", centers, centers)
    return np.maximum(sq[:, None] + sq - 2 * centers @ centers.T, 0)
