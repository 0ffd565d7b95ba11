"""Passes over the items as they were given, times a power of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from .._common.arithmetic import shifted
from .._common.typing import Array
from .base import INDEX, Additive, Columns, Count, Found

# Odd, and unlike each other.
DIGEST_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))


class Raw(Protocol):
    """One block of items as they were given: ``rows`` (``RawRows``) and ``weight``."""

    @property
    def rows(self) -> Any:
        """The items as they were given."""

    @property
    def weight(self) -> Array:
        """Weights w of the items."""


@dataclass(frozen=True)
class Total(Additive):
    """Σ w and Σ w x."""

    count: int
    weight: float
    total: Array


@dataclass(frozen=True)
class WeightedSum:
    """The weighted sum of the items."""

    reads: ClassVar = ()

    def __call__(self, items: Raw, columns: Columns) -> Found:
        return Found(Total(len(items.rows), float(items.weight.sum()), items.rows.total(items.weight)))


@dataclass(frozen=True)
class PresenceSums(Additive):
    """Σ w x over the items that have a dimension, and Σ w of these."""

    count: int
    total: Array
    there: Array


@dataclass(frozen=True)
class Presence:
    """The weighted sum of what is there of the items, and what that weighs."""

    reads: ClassVar = ()

    def __call__(self, items: Raw, columns: Columns) -> Found:
        return Found(PresenceSums(len(items.rows), items.rows.total(items.weight), items.rows.presence(items.weight)))


@dataclass(frozen=True)
class Scalar(Additive):
    """A sum of one number of each item."""

    count: int
    total: float


@dataclass(frozen=True)
class Energy:
    """Σ w Σ x**power, for the powers 1 and 2."""

    power: int = 2
    reads: ClassVar = ()

    def __call__(self, items: Raw, columns: Columns) -> Found:
        size = items.rows.sqnorms() if self.power == 2 else items.rows.sums()
        return Found(Scalar(len(items.rows), float(items.weight @ size)))


@dataclass(frozen=True)
class GramSum(Additive):
    """A sum of products of every two dimensions."""

    count: int
    total: Array


@dataclass(frozen=True)
class Gram:
    """Σ w (x − ref)(x − ref)ᵀ in float64, of the items or of their roots."""

    ref: Array | None
    rooted: bool = False
    reads: ClassVar = ()

    def __call__(self, items: Raw, columns: Columns) -> Found:
        return Found(GramSum(len(items.rows), (items.rows.rooted() if self.rooted else items.rows).gram(items.weight, self.ref)))


@dataclass(frozen=True)
class Keys:
    """Columns ``key``, equal for equal items, and ``sq``, the squared norms."""

    reads: ClassVar = ()

    def __call__(self, items: Raw, columns: Columns) -> Found:
        return Found(Count(len(items.rows)), {"key": items.rows.keys(), "sq": items.rows.sqnorms()})


@dataclass(frozen=True)
class DigestSums(Additive):
    """Sums modulo 2**64, in arrays of two: numbers of their own would complain when they wrap around."""

    count: int
    sums: Array


@dataclass(frozen=True)
class Digest:
    """Two sums over the items of a number that depends on an item and its place: other items, or another order, have other sums."""

    reads: ClassVar = (INDEX,)

    def __call__(self, items: Raw, columns: Columns) -> Found:
        keys, place = items.rows.keys(), columns[INDEX].astype(np.uint64) + np.uint64(1)
        mixed = [_mixed(keys + place * factor) for factor in DIGEST_FACTORS]
        return Found(DigestSums(len(items.rows), np.stack([each.sum(dtype=np.uint64) for each in mixed])))


@dataclass(frozen=True)
class FirstSums(Additive):
    """What ``Digest`` and ``WeightedSum`` find."""

    count: int
    digest: DigestSums
    weighted: Total


@dataclass(frozen=True)
class FirstLook:
    """``Digest`` and ``WeightedSum`` in one, for items that are dear to read."""

    reads: ClassVar = (INDEX,)

    def __call__(self, items: Raw, columns: Columns) -> Found:
        with np.errstate(over="ignore", invalid="ignore"):  # the power of two by which items are scaled was only guessed
            return Found(FirstSums(len(items.rows), Digest()(items, columns).total, WeightedSum()(items, columns).total))


def _mixed(bits: Array) -> Array:
    """Well-mixed bits: the finaliser of splitmix64."""
    bits = (bits ^ bits >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ bits >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return bits ^ bits >> np.uint64(31)


@dataclass(frozen=True)
class Scales:
    """Column ``scale``: the best scale of the centre of its label in the place of every item, where that is not negative, in float64,
    times 2**shift, by a measure of errors."""

    measure: Any
    centers: Array
    shift: int = 0
    reads: ClassVar = ("labels",)

    def __call__(self, items: Raw, columns: Columns) -> Found:
        scale = np.maximum(self.measure.fitted(items.rows, columns["labels"], self.centers), 0.0)
        return Found(Count(len(items.rows)), {"scale": shifted(scale, self.shift)})


@dataclass(frozen=True)
class Sums(Additive):
    """A vector for each component."""

    count: int
    sums: Array


@dataclass(frozen=True)
class LabelSums:
    """Σ value_i x_i over the items of each component, (n_components, n_dims), in float64."""

    n_components: int
    n_dims: int
    reads: ClassVar = ("labels", "values")

    def __call__(self, items: Raw, columns: Columns) -> Found:
        rows = items.rows.framed(None, None, np.zeros(self.n_dims))
        return Found(Sums(len(items.rows), rows.tdot(_by_label(columns, self.n_components)).astype(np.float64, copy=False)))


@dataclass(frozen=True)
class LabelPresence:
    """Σ value_i over the items of each component that have each dimension, (n_components, n_dims)."""

    n_components: int
    n_dims: int
    reads: ClassVar = ("labels", "values")

    def __call__(self, items: Raw, columns: Columns) -> Found:
        return Found(Sums(len(items.rows), items.rows.presence(_by_label(columns, self.n_components))))


def _by_label(columns: Columns, n_components: int) -> Array:
    """The values of items in the row of their label, (n_components, block)."""
    labels = columns["labels"]
    weights = np.zeros((n_components, len(labels)), like=columns["values"])
    weights[labels, np.arange(len(labels), like=labels)] = columns["values"]
    return weights


@dataclass(frozen=True)
class Residual:
    """The cost of scale · component in the place of the items, term by term, by a measure of errors."""

    measure: Any
    components: Array
    reads: ClassVar = ("labels", "scale")

    def __call__(self, items: Raw, columns: Columns) -> Found:
        residual = self.measure.residual(items.rows, columns["scale"], columns["labels"], self.components)
        return Found(Scalar(len(items.rows), float(items.weight @ residual)))


@dataclass(frozen=True)
class Pearson:
    """Σ w (x − y)² / y, with y the best scale times the component of each item, by a loss of counts."""

    frame: Any
    components: Array
    reads: ClassVar = ("labels",)

    def __call__(self, items: Raw, columns: Columns) -> Found:
        scale = items.rows.sums() if self.frame.scaled else np.ones(len(items.rows), like=items.weight)
        found = items.rows.pearson(scale, columns["labels"], self.components, self.frame.measure.least)
        return Found(Scalar(len(items.rows), float(items.weight @ found)))


@dataclass(frozen=True)
class UnitWeight:
    """Column ``weight``: what an item of weight one weighs in a frame."""

    frame: Any
    reads: ClassVar = ()

    def __call__(self, items: Raw, columns: Columns) -> Found:
        return Found(Count(len(items.rows)), {"weight": self.frame.items(items.rows, np.ones(len(items.rows), like=items.weight)).weight})


@dataclass(frozen=True)
class Subspace:
    """Σ w ((x − about)·v) (x − about) for each of some vectors v (n_vectors, n_dims): a step towards the leading directions."""

    vectors: Array
    about: Array
    reads: ClassVar = ()

    def __call__(self, items: Raw, columns: Columns) -> Found:
        rows = items.rows.framed(None, None, self.about)
        return Found(Sums(len(items.rows), rows.tdot(rows.dot(self.vectors) * items.weight).astype(np.float64, copy=False)))


@dataclass(frozen=True)
class Coordinates:
    """Column ``coordinates`` (n_items, n_vectors): (x − about)·v, in float32."""

    vectors: Array
    about: Array
    reads: ClassVar = ()

    def __call__(self, items: Raw, columns: Columns) -> Found:
        inner = items.rows.framed(None, None, self.about).dot(self.vectors)
        return Found(Count(len(items.rows)), {"coordinates": np.ascontiguousarray(inner.T, np.float32, like=inner)})
