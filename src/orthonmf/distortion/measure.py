"""What the error of an approximation is: squared differences, or the deviance of counts.

A loss between items and centres belongs to a measure, which knows nothing of centres. With p its power, the cost of s · X is s**p times
that of X, so that cost**(1/p) is in the units of X; and the factors have rows of unit p-norm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from .._common.typing import Array, Labels
from ..engines.base import RawRows, as_counts, as_partial


class Measure(ABC):
    """The error of scale · component in the place of an item."""

    #: By which power of X the cost grows.
    power: int
    #: What the error is called.
    word: str
    #: Whether the cost is no less than the squared distance of the roots, whose singular values then bound it; if not, those of X do.
    rooted: bool
    #: Whether singular values say anything about the cost: where numbers are missing they do not.
    bounded = True

    @abstractmethod
    def residual(self, raw: RawRows, scale: Array, labels: Labels, components: Array) -> Array:
        """Of every item, what scale · components[labels] in its place costs, term by term in float64, shape (block,)."""

    @abstractmethod
    def size(self, raw: RawRows) -> Array:
        """Σ x**power of every item in float64, shape (block,)."""

    @abstractmethod
    def scale(self, inner: Array, size: Array) -> Array:
        """The best scale of items of this size, with these inner products with their centres (as in ``Pairs``)."""

    @abstractmethod
    def fitted(self, raw: RawRows, labels: Labels, components: Array) -> Array:
        """The best scale of components[labels], of unit p-norm, in the place of every item, in float64, shape (block,)."""

    @abstractmethod
    def length(self, ref: Array) -> float:
        """How large a reference is, in units of a distance."""

    @abstractmethod
    def error(self, cost: float) -> float:
        """cost**(1/power)."""


@dataclass(frozen=True)
class Squared(Measure):
    """‖x − y‖²; the error is the Frobenius norm."""

    power = 2
    word = "error"
    rooted = False

    def residual(self, raw: RawRows, scale: Array, labels: Labels, components: Array) -> Array:
        return raw.residual_sq(scale, labels, components)

    def size(self, raw: RawRows) -> Array:
        return raw.sqnorms()

    def scale(self, inner: Array, size: Array) -> Array:
        return inner * np.sqrt(size)

    def fitted(self, raw: RawRows, labels: Labels, components: Array) -> Array:
        return raw.inner(labels, components)

    def length(self, ref: Array) -> float:
        return float(np.dot(ref, ref))

    def error(self, cost: float) -> float:
        return float(np.sqrt(cost))


@dataclass(frozen=True)
class Deviance(Measure):
    """D(x‖y) = Σ x log(x/y) − x + y, half the deviance of counts that are Poisson with mean y; the error is D itself.

    It is no less than ‖√x − √y‖². Under the logarithm ``least`` (n_dims,) stands for what a component has less of.
    """

    least: Array
    power = 1
    word = "divergence"
    rooted = True

    def residual(self, raw: RawRows, scale: Array, labels: Labels, components: Array) -> Array:
        return as_counts(raw).divergence(scale, labels, components, self.least)

    def size(self, raw: RawRows) -> Array:
        return as_counts(raw).sums()

    def scale(self, inner: Array, size: Array) -> Array:
        return size

    def fitted(self, raw: RawRows, labels: Labels, components: Array) -> Array:
        return as_counts(raw).sums()

    def length(self, ref: Array) -> float:
        return float(ref.sum())

    def error(self, cost: float) -> float:
        return float(cost)


class PartialSquared(Squared):
    """‖x − y‖² over the numbers that are there."""

    bounded = False

    def fitted(self, raw: RawRows, labels: Labels, components: Array) -> Array:
        # x·u / Σ u²
        return over(raw.inner(labels, components), as_partial(raw).within(labels, np.square(components)))


class PartialDeviance(Deviance):
    """The divergence over the numbers that are there."""

    bounded = False

    def scale(self, inner: Array, size: Array) -> Array:
        return inner * size

    def fitted(self, raw: RawRows, labels: Labels, components: Array) -> Array:
        # |x| / Σ c
        return over(as_counts(raw).sums(), as_partial(raw).within(labels, np.maximum(components, self.least)))


def over(numbers: Array, others: Array) -> Array:
    """Quotients of nonnegative numbers; 0 where nothing is divided by."""
    return np.divide(numbers, others, out=np.zeros_like(numbers, dtype=np.float64), where=others > 0)
