"""Bounds on the sizes of components: how many items each may have, from what the user wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, inf, isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..._common.typing import Array, Labels
from ...exceptions import InfeasibleCapacityError, InvalidInputError


@dataclass(frozen=True)
class Bounds:
    """Least and greatest number of items of each component.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_components,)
        Numbers of items; or sums of their sizes, as floats.
    named : bool
        Whether component j keeps bound j (one value per component was given).
    penalty : float
        What an item too many or too few costs; inf where the bounds are hard.
    """

    lower: Array
    upper: Array
    named: bool
    penalty: float = inf

    @property
    def soft(self) -> bool:
        """Whether the bounds may be exceeded, at a penalty."""
        return self.penalty < inf

    def outside(self, sizes: Array) -> float:
        """Items too many or too few, over all components."""
        return float((np.maximum(sizes - self.upper, 0) + np.maximum(self.lower - sizes, 0)).sum())

    def charge(self, sizes: Array) -> float:
        """What the sizes cost beside the distances."""
        outside = self.outside(sizes)
        return outside * self.penalty if outside else 0.0

    def bind(self, n_items: int) -> bool:
        """Whether they exclude anything."""
        return bool((self.upper < n_items).any() or (self.lower > 0).any())

    @property
    def order(self) -> Labels:
        """The components from the roomiest to the narrowest."""
        return np.lexsort((-self.lower, -self.upper))

    def taken(self, order: Labels) -> Bounds:
        """The bounds of the components in another order."""
        return replace(self, lower=self.lower[order], upper=self.upper[order])

    def scaled(self, n_items: int, n_sample: int) -> Bounds:
        """The bounds for a sample of the items, rounded so that they stay feasible."""
        share = Fraction(n_sample, n_items)
        if self.upper.dtype.kind == "f":  # sums of sizes
            return replace(self, lower=self.lower * float(share), upper=self.upper * float(share))
        upper = np.array([ceil(int(u) * share) for u in self.upper])
        lower = np.array([floor(int(low) * share) for low in self.lower])
        return replace(self, lower=np.minimum(lower, upper), upper=np.maximum(upper, 1))

    @property
    def alike(self) -> bool:
        """Whether all components have the same bounds."""
        return bool((self.lower == self.lower[0]).all() and (self.upper == self.upper[0]).all())


def parse_bounds(
    capacity: Any, min_size: Any, n_components: int, n_items: int, penalty: float = inf, *, empty: bool = False
) -> Bounds | None:
    """Bounds from ``capacity`` and ``min_size``; None when neither is given. ``empty`` says whether a component may have no item.

    An int counts items, a float in (0, 1] is a fraction: 1 is one item, 1.0 is all. Fractions are taken in exact decimal arithmetic,
    rounded down for upper and up for lower bounds: 0.29 of 100 is 29.
    """
    if capacity is None and min_size is None:
        return None
    upper = _each("capacity", capacity, n_components, n_items, default=n_items, round_=floor, least=1)
    upper = np.minimum(upper, n_items)  # whose sum cannot overflow
    lower = _each("min_size", min_size, n_components, n_items, default=0, round_=ceil, least=0)
    for j in np.flatnonzero(lower > upper):
        raise InvalidInputError(f"min_size {lower[j]} is above capacity {upper[j]} for component {j}; expected min_size at most capacity.")
    if penalty == inf:
        _check_sums(capacity, lower, upper, n_items)
        if not empty:
            _check_none_empty(lower, n_items)
    return Bounds(lower, upper, _listed(capacity) or _listed(min_size), penalty)


def parse_loads(capacity: Any, min_size: Any, n_components: int, n_items: int, total: float, penalty: float) -> Bounds | None:
    """Soft bounds on sums of sizes, in units of the mean size: a number above 1 is a sum, a float in (0, 1] a fraction of ``total``."""
    if capacity is None and min_size is None:
        return None
    unit = total / n_items

    def each(name: str, value: Any, default: float) -> Array:
        values = list(value) if _listed(value) else [default if value is None else value] * n_components
        usable = len(values) == n_components and all(isinstance(one, Real) and isfinite(one) and float(one) >= 0 for one in values)
        if not usable:
            raise InvalidInputError(f"{name}={value!r} is not usable; expected one nonnegative number, or {n_components}.")
        return np.array([one * n_items if isinstance(one, float) and one <= 1 else one / unit for one in values], dtype=np.float64)

    lower, upper = each("min_size", min_size, 0.0), each("capacity", capacity, 1.0)
    for j in np.flatnonzero(lower > upper):
        raise InvalidInputError(f"min_size is above capacity for component {j}; expected min_size at most capacity.")
    return Bounds(lower, upper, _listed(capacity) or _listed(min_size), penalty)


def n_bounds(capacity: Any, min_size: Any, n_components: int) -> int:
    """How many components bounds are for: one for each value that was listed, else ``n_components``."""
    return next((len(value) for value in (capacity, min_size) if _listed(value)), n_components)


def _check_sums(capacity: Any, lower: Labels, upper: Labels, n_items: int) -> None:
    if (short := n_items - int(upper.sum())) > 0:
        given = capacity if _listed(capacity) else [capacity]
        rounded = " (fractions are rounded down)" if any(isinstance(each, float) for each in given) else ""
        raise InfeasibleCapacityError(
            f"The capacities {_brief(upper)} hold {int(upper.sum())} items{rounded}, {short} fewer than the {n_items} there are; "
            f"raise capacity, or ask for more components."
        )
    if (short := int(lower.sum()) - n_items) > 0:
        raise InfeasibleCapacityError(
            f"The least sizes {_brief(lower)} ask for {int(lower.sum())} items, {short} more than the {n_items} there are; lower "
            "min_size, or ask for fewer components."
        )


def _check_none_empty(lower: Labels, n_items: int) -> None:
    zero = int((lower == 0).sum())
    if (short := int(lower.sum()) + zero - n_items) > 0:
        raise InfeasibleCapacityError(
            f"The least sizes {_brief(lower)} ask for {int(lower.sum())} of {n_items} items, which is {short} too many: no component is "
            f"left empty, also where min_size is 0. Lower min_size, or set n_components to {len(lower) - short}."
        )


def least_components(capacity: Any, n_items: int) -> int:
    """The fewest components that hold all items under one capacity for all."""
    if capacity is None:
        return 1
    if _listed(capacity):
        raise InvalidInputError(
            f"capacity={capacity!r} has one value per component, but n_components='auto' leaves their number open; give one value for "
            "all, or set n_components."
        )
    return ceil(n_items / _items("capacity", capacity, n_items, floor, least=1))


def most_components(min_size: Any, n_items: int) -> int:
    """The most components that can all have the least size."""
    if min_size is None:
        return n_items
    if _listed(min_size):
        raise InvalidInputError(
            f"min_size={min_size!r} has one value per component, but n_components='auto' leaves their number open; give one value for "
            "all, or set n_components."
        )
    return n_items // max(_items("min_size", min_size, n_items, ceil, least=0), 1)


def _listed(value: Any) -> bool:
    """Whether one value per component was given; a ragged list is one, too, and refused later."""
    return isinstance(value, list | tuple) or np.ndim(value) > 0


def _each(name: str, value: Any, n_components: int, n_items: int, *, default: int, round_: Any, least: int) -> Labels:
    if value is None:
        return np.full(n_components, default)
    if not _listed(value):
        return np.full(n_components, _items(name, value, n_items, round_, least))
    values = list(value)
    if any(np.ndim(each) > 0 for each in values):
        raise InvalidInputError(f"{name} has nested values, {value!r}; expected one value, or {n_components}, one for each component.")
    if len(values) != n_components:
        raise InvalidInputError(f"{name} has {len(values)} values; expected one value, or {n_components}, one for each component.")
    return np.array([_items(name, each, n_items, round_, least) for each in values])


def _items(name: str, value: Any, n_items: int, round_: Any, least: int) -> int:
    """One bound as a number of items."""
    expected = f"expected a whole number of items of at least {least}, or a fraction in (0, 1]"
    real = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if not real or not (isinstance(value, Integral) or isfinite(value)) or value < least * 1e-300:
        raise InvalidInputError(f"{name}={value!r} is not usable; {expected}.")
    if isinstance(value, Integral) or value > 1:
        if int(value) != value or value < least:
            raise InvalidInputError(f"{name}={value!r} is not usable; {expected}.")
        return min(int(value), 2**62)
    count = int(round_(Fraction(str(value)) * n_items))
    if count < least:
        raise InfeasibleCapacityError(f"{name}={value!r} of {n_items} items is no item; {expected}.")
    return count


def _brief(values: Labels) -> str:
    listed = ", ".join(str(int(value)) for value in values[:8])
    return f"[{listed}{', …' if len(values) > 8 else ''}]"
