"""Checks of the generators' arguments."""

from __future__ import annotations

import math
from numbers import Integral, Real

from ..exceptions import InvalidInputError


def check_count(name: str, value: int, *, at_most: int | None = None, why: str = "") -> None:
    """Refuse `value` unless it is an integer from 1 to `at_most`."""
    top = math.inf if at_most is None else at_most
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value <= top:
        expected = "an integer >= 1" if at_most is None else f"an integer from 1 to {at_most}{why}"
        raise InvalidInputError(f"{name}={value!r}, expected {expected}: change {name}.")


def check_nonnegative(name: str, value: float, *, positive: bool = False) -> None:
    """Refuse `value` unless it is a finite number >= 0, or > 0."""
    number = isinstance(value, Real) and math.isfinite(value)
    if not number or value < 0 or (positive and value == 0):
        bound = "> 0" if positive else ">= 0"
        raise InvalidInputError(f"{name}={value!r}, expected a finite number {bound}: change {name}.")
