"""How β grows: from one critical value to the next, or by a fixed factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._common.typing import Array


class Schedule(Protocol):
    """Where to go next, and how exactly a transition is located."""

    @property
    def resolution(self) -> float:
        """A transition is located when the β before and after it are within this factor; inf takes it where it is met."""

    @property
    def recovery(self) -> float:
        """The factor by which β goes on after a split that did not pay."""

    def next_beta(self, beta: float, onsets: Array) -> float:
        """The next β after ``beta``, with the β at which each component is expected to give way; inf when nothing will."""


@dataclass(frozen=True)
class Adaptive:
    """Jump just past the next critical value.

    Parameters
    ----------
    overshoot : float
        How far past, as a factor. Near 1 the transitions are located; 1.5 takes several at a time and is fast.
    locate : bool
        Whether a transition that was jumped over is looked for.
    """

    overshoot: float = 1.02
    locate: bool = True
    # A jump of more than this lets the components change too much to be followed.
    max_growth: float = 4.0
    # Nor is a split that was refused expected to be much farther than this.
    max_recovery: float = 1.5

    @property
    def resolution(self) -> float:
        return self.overshoot + 1e-3 if self.locate else np.inf

    @property
    def recovery(self) -> float:
        return min(self.resolution, self.max_recovery)

    def next_beta(self, beta: float, onsets: Array) -> float:
        target = float(onsets.min())
        if not np.isfinite(target):
            return np.inf
        target = max(target * self.overshoot, beta * (1 + (self.overshoot - 1) / 2))
        return min(target, beta * self.max_growth) if len(onsets) > 1 else target


@dataclass(frozen=True)
class Geometric:
    """The paper's β_{t+1} = ζ β_t."""

    growth: float
    resolution: float = np.inf

    @property
    def recovery(self) -> float:
        return self.growth

    def next_beta(self, beta: float, onsets: Array) -> float:
        return beta * self.growth if np.isfinite(onsets.min()) else np.inf
