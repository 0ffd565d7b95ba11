"""Exact assignment under capacities: seconds against OR-tools' min-cost flow.

Run ``python benchmarks/assignment.py``. The last column is our time over theirs on the same problem in the
same run; *warm* starts from the prices of the solution.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from ortools.graph.python import min_cost_flow

from orthonmf._common.typing import Array
from orthonmf.search.bounded.assignment import Assignment, transport

COMPONENTS, DIMS, REPEATS = 20, 8, 5
# OR-tools takes integers; this many steps between the least and the greatest cost.
RESOLUTION = 10**6


def skewed_clusters(n_items: int, seed: int = 0) -> Array:
    """Squared distances of points in clusters of very unequal sizes to all centres, (n_items, COMPONENTS)."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=2.0, size=(COMPONENTS, DIMS))
    share = 0.8 ** np.arange(COMPONENTS)
    points = centers[rng.choice(COMPONENTS, n_items, p=share / share.sum())]
    points = points + rng.normal(size=points.shape)
    costs = (points**2).sum(1)[:, None] - 2 * points @ centers.T + (centers**2).sum(1)
    return np.rint(costs * (RESOLUTION / costs.max()))


def flow_cost(costs: Array, capacity: int) -> int:
    """The optimal cost by OR-tools: items → components → sink."""
    n, k = costs.shape
    items, nodes, sink = np.arange(n), n + np.arange(k), n + k
    solver = min_cost_flow.SimpleMinCostFlow()
    units = costs.ravel().astype(np.int64)
    solver.add_arcs_with_capacity_and_unit_cost(np.repeat(items, k), np.tile(nodes, n), np.ones_like(units), units)
    solver.add_arcs_with_capacity_and_unit_cost(nodes, np.full(k, sink), np.full(k, capacity), np.zeros_like(nodes))
    solver.set_nodes_supplies(np.append(items, sink), np.append(np.ones(n, dtype=np.int64), -n))
    if solver.solve() != solver.OPTIMAL:
        raise RuntimeError("OR-tools found no optimum")
    return solver.optimal_cost()


def seconds(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median time of ``repeats`` calls after a warm-up."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def row(n_items: int, *, against: bool) -> str:
    """Time one size; both solvers must find the same cost."""
    costs = skewed_clusters(n_items)
    capacity = -(-105 * n_items // (100 * COMPONENTS))
    bounds = np.zeros(COMPONENTS, dtype=int), np.full(COMPONENTS, capacity)
    ours = seconds(lambda: transport(costs, *bounds))
    result: Assignment = transport(costs, *bounds)
    warm = seconds(lambda: transport(costs, *bounds, prices=result.prices))
    line = f"{n_items:>9} {ours:>9.3f} {warm:>9.3f}  {result.relative_gap:>8.1e}"
    if not against:
        return line + f" {'':>9} {'':>7}"
    if flow_cost(costs, capacity) != result.cost:
        raise RuntimeError("the two solvers disagree")
    theirs = seconds(lambda: flow_cost(costs, capacity))
    return line + f" {theirs:>9.3f} {ours / theirs:>7.2f}"


def main() -> None:
    """Print the table."""
    print(f"{'items':>9} {'seconds':>9} {'warm':>9}  {'gap/cost':>8} {'OR-tools':>9} {'ratio':>7}")
    for n_items, against in ((30_000, True), (100_000, True), (1_000_000, False)):
        print(row(n_items, against=against), flush=True)


if __name__ == "__main__":
    main()
