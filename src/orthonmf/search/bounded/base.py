"""What a solver for bounded components returns: centres and prices of the relaxed problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._common.typing import Array, Labels
from ...distortion.base import Distortion
from ...engines.base import Engine
from ...passes.hard import Cheapest
from ..partition import Partition, centered
from ..status import Status

# Told of centres and prices that a solver passes through, so that a fit that is stopped can use them.
Offer = Callable[[Array, Array], None]


def forgo(centers: Array, prices: Array) -> None:
    """Make no use of them."""


@dataclass(frozen=True)
class Relaxed:
    """A point of the relaxed problem at the last temperature, ready to be rounded.

    Attributes
    ----------
    centers : ndarray of shape (n_components, n_coordinates)
        In the frame of the distortion.
    prices : ndarray of shape (n_components,)
    kkt_residual : float
        By how much it misses being a KKT point.
    beta : float
        Of the last temperature.
    status : Status
        Whether the solver converged.
    """

    centers: Array
    prices: Array
    kkt_residual: float
    beta: float = np.inf
    status: Status = Status.CONVERGED

    def nearest(self, engine: Engine, distortion: Distortion) -> Partition:
        """The paper's rounding: each item to its most probable component, which may exceed a capacity.

        p_ij ∝ exp(−β (ω_i d_ij + price_j) / τ_i) is largest where ω_i d_ij + price_j is least.
        """
        labels = engine.run(distortion, Cheapest(self.centers, self.prices)).columns["labels"]
        return centered(engine, distortion, labels, self.centers)


def loads(engine: Engine, labels: Labels, n_components: int) -> Array:
    """Sum of the sizes of the items of each component; their number where all count the same."""
    return np.bincount(labels, engine.size, n_components)
