"""What an annealing holds (``State``) and what one pass over the data returns (``Stats``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.typing import Array
from .base import Additive


@dataclass(frozen=True)
class Stats(Additive):
    """Sums of one soft pass at a state.

    Attributes
    ----------
    count : int
        Items seen: a block lost or counted twice shows here.
    weight : float
        Σ ω_i.
    mass : ndarray of shape (n_components,)
        Σ_i ω_i p_ij.
    sums : ndarray of shape (n_components, n_coordinates)
        What makes the new centres: Σ ω p x, or Σ ω p (x·u) x for lines.
    log_partition : float
        Σ_i ω_i log Z_i with Z_i = Σ_j α_j exp(−β d_ij).
    distortion : float
        Σ_ij ω_i p_ij d_ij.
    """

    count: int
    weight: float
    mass: Array
    sums: Array
    log_partition: float
    distortion: float

    def entropy(self, state: State) -> float:
        """−Σ ω_i p_ij log p_ij at the state the sums were taken at: log p_ij = log α_j − β d_ij − log Z_i."""
        present = self.mass > 0
        return float(self.log_partition + state.beta * self.distortion - np.dot(self.mass[present], state.log_mass[present]))


@dataclass(frozen=True)
class State:
    """Distinct components at one temperature.

    Attributes
    ----------
    beta : float
        Inverse temperature, in the frame's units.
    centers : ndarray of shape (n_components, n_coordinates)
        In the coordinates of the distortion's frame.
    log_mass : ndarray of shape (n_components,)
        log α_j; the masses sum to one.
    ids : tuple of int
        A name for each component that lasts over the annealing.
    """

    beta: float
    centers: Array
    log_mass: Array
    ids: tuple[int, ...] = (0,)

    @property
    def n_components(self) -> int:
        """Number of distinct components."""
        return len(self.centers)

    def set(self, **changes: Any) -> State:
        """Return a copy with the given fields replaced."""
        return replace(self, **changes)


def normalised_log(mass: Array) -> Array:
    """log(mass / Σ mass), with −inf for zero and no warning."""
    with np.errstate(divide="ignore"):
        return np.log(mass / mass.sum())
