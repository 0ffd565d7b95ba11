"""Costs held as an array whose ranking and repair are compiled."""

from __future__ import annotations

import numpy as np

from ..._common.typing import Array, Labels
from . import kernels
from .assignment import Counts, HeldCosts

# Items sent between two looks at the clock: some milliseconds.
SENT = 256


class CompiledCosts(HeldCosts):
    """As ``HeldCosts``; which components are cheapest, and the repair, are found by compiled loops."""

    def two_cheapest(self, prices: Array) -> tuple[Labels, Labels, Array]:
        """Of every item the component where cost and price are least, the next, and what that costs more."""
        self.check()
        (labels, runner), slack = np.empty((2, self.n_items), dtype=np.intp), np.empty(self.n_items)
        kernels.two_cheapest(self.array, prices, labels, runner, slack)
        return labels, runner, slack

    def repaired(self, labels: Labels, flow: Counts, excess: Counts, bounds: tuple[Counts, Counts]) -> Array:
        """Send the items out of place along shortest paths, in place; then what arcs between components weigh, (k, k)."""
        weight = np.empty((self.n_components, self.n_components))
        first = np.empty(self.n_components, dtype=np.intp)
        after, before = np.empty((2, self.n_items), dtype=np.intp)
        kernels.margins(self.array, labels, weight)
        kernels.lists(labels, first, after, before)
        while not kernels.repair(self.array, labels, weight, flow, *bounds, excess, first, after, before, SENT):
            self.check()
        return weight
