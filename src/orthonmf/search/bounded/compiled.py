"""Costs whose ranking and repair are compiled."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from ..._common.typing import Array, Labels
from . import kernels
from .assigner import ItemCosts
from .assignment import Counts, HeldCosts, Survey

# Items sent between two looks at the clock: some milliseconds.
SENT = 256
# A move takes 4 µs and 10 ns for each item of its component, a Newton step 0.4 ms and 2 ns for each cost.
MOVES = 96
# Of items near a border alone, moves in the time of a Newton step on all: 40 µs each, where the step takes 0.3 s for 20 million costs.
COSTS_PER_COMPILED_MOVE = 1 << 15


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
        return _nearest_slacks(self.n_components, labels, runner, slack, size)

    @property
    def moves_per_pass(self) -> float:
        """Items that are moved one by one in the time of a Newton step, which reads all costs."""
        return MOVES

    def surveyed(self, prices: Array, bounds: tuple[Counts, Counts]) -> Survey:
        """Each item where it is cheapest at these prices, all moved by the constant at which their bounds can sum to n."""
        self.check()
        (labels, runner), slack = np.empty((2, self.n_items), dtype=np.intp), np.empty(self.n_items)
        flow, excess = np.empty(self.n_components, dtype=np.int64), np.empty(self.n_components + 1, dtype=np.int64)
        moved = kernels.shifted(prices, *bounds, self.n_items)
        kernels.surveyed(self._turned, moved, *bounds, labels, runner, slack, flow, excess)
        return Survey(moved, labels, runner, slack, flow, excess)

    def repaired(self, survey: Survey, bounds: tuple[Counts, Counts]) -> Array:
        """Send the items out of place along shortest paths: labels, flow and excess in place. Then prices near those of the survey."""
        costs, weight = np.ascontiguousarray(self.array), np.empty((self.n_components, self.n_components))
        first = np.empty(self.n_components, dtype=np.int32)
        after, before = np.empty((2, self.n_items), dtype=np.int32)
        kernels.margins(costs, survey.labels, weight)
        kernels.lists(survey.labels, first, after, before)
        flow, excess = survey.flow, survey.excess
        while not kernels.repair(costs, survey.labels, weight, flow, *bounds, excess, first, after, before, SENT):
            self.check()
        return kernels.prices_near(weight, flow, *bounds, survey.prices)


class CompiledItemCosts(ItemCosts):
    """As ``ItemCosts``; those of some items are compiled."""

    def nearest_slacks(self, labels: Labels, runner: Labels, slack: Array, size: int) -> tuple[Array, Array]:
        """Of the items between every two components: how many up to ``size``, and the most slack of those."""
        return _nearest_slacks(self.n_components, labels, runner, slack, size)

    @property
    def moves_per_pass(self) -> float:
        """Items that are moved one by one in the time of a Newton step, which reads all costs."""
        return self.n_items * self.n_components / COSTS_PER_COMPILED_MOVE

    def taken(self, index: Labels) -> CompiledCosts:
        """The costs of some items, held as an array."""
        held = super().taken(index)
        return CompiledCosts(held.array, held.check)


def _nearest_slacks(n_components: int, labels: Labels, runner: Labels, slack: Array, size: int) -> tuple[Array, Array]:
    count, reach = np.zeros((2, n_components, n_components))
    kernels.nearest_slacks(labels, runner, slack, size, count, reach)
    return count, reach
