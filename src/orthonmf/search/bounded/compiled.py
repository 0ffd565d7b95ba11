"""Costs held as an array whose ranking and repair are compiled."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from ..._common.typing import Array, Labels
from . import kernels
from .assignment import Counts, HeldCosts

# Items sent between two looks at the clock: some milliseconds.
SENT = 256


class CompiledCosts(HeldCosts):
    """As ``HeldCosts``, with compiled loops for what takes longest."""

    @cached_property
    def _turned(self) -> Array:
        """The costs with the items of a component side by side, (k, n)."""
        return np.ascontiguousarray(self.array.T)

    def taken(self, index: Labels) -> Self:
        """The costs of some items."""
        return replace(self, array=self.array[index])

    def two_cheapest(self, prices: Array) -> tuple[Labels, Labels, Array]:
        """Of every item the component where cost and price are least, the next, and what that costs more."""
        self.check()
        (labels, runner), slack = np.empty((2, self.n_items), dtype=np.intp), np.empty(self.n_items)
        kernels.two_cheapest(self._turned, prices, labels, runner, slack)
        return labels, runner, slack

    def nearest_slacks(self, labels: Labels, runner: Labels, slack: Array, size: int) -> tuple[Array, Array]:
        """Of the items between every two components: how many up to ``size``, and the most slack of those."""
        count, reach = np.zeros((2, self.n_components, self.n_components))
        kernels.nearest_slacks(labels, runner, slack, size, count, reach)
        return count, reach

    def repaired(self, labels: Labels, flow: Counts, excess: Counts, bounds: tuple[Counts, Counts]) -> Array:
        """Send the items out of place along shortest paths, in place; then what arcs between components weigh, (k, k)."""
        costs, weight = np.ascontiguousarray(self.array), np.empty((self.n_components, self.n_components))
        first = np.empty(self.n_components, dtype=np.int32)
        after, before = np.empty((2, self.n_items), dtype=np.int32)
        kernels.margins(costs, labels, weight)
        kernels.lists(labels, first, after, before)
        while not kernels.repair(costs, labels, weight, flow, *bounds, excess, first, after, before, SENT):
            self.check()
        return weight
