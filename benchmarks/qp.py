"""The structured velocity programme against PIQP's sparse interface, in one run: medians of five.

Run ``python benchmarks/qp.py``. Each is called once to warm up. PIQP, at its default tolerance, is timed
twice: with its setup, as a first programme costs, and for the solve alone, as one with a known pattern costs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import piqp
from scipy import sparse

from orthonmf.search.bounded.qp import VelocityProblem, box_bound, solve_velocities

N_ITEMS, N_COMPONENTS, N_DIMS = 2000, 10, 20
SEEDS, REPEATS = range(4), 5


def random_problem(seed: int) -> VelocityProblem:
    """A state of the flow at random, half of its capacities full."""
    rng = np.random.default_rng(seed)
    n, k, beta = N_ITEMS, N_COMPONENTS, 10.0 ** rng.uniform(-1, 1)
    resp = np.maximum(rng.dirichlet(np.full(k, 0.5), size=n), 1e-9)
    resp /= resp.sum(axis=1, keepdims=True)
    items, centers = rng.normal(size=(n, N_DIMS)), rng.normal(size=(k, N_DIMS))
    cost = ((items[:, None] - centers) ** 2).sum(axis=2)
    return VelocityProblem(
        resp_gradient=(cost + (1 + np.log(resp)) / beta) / n,
        center_gradient=2 * (resp.sum(axis=0)[:, None] * centers - resp.T @ items) / n,
        decrease=float(np.mean((resp * (cost + np.log(k * resp) / beta)).sum(axis=1))),
        count_lower=np.full(k, -np.inf),
        count_upper=np.where(np.arange(k) % 2, 0.0, n / k),
        lower=box_bound(resp, 2.0),
        mobility=np.ones((n, k)),
        slack_weight=float(n),
    )


def as_sparse(problem: VelocityProblem) -> tuple:
    """The arguments of PIQP's setup for the variables (v, u, δ)."""
    n, k = problem.resp_gradient.shape
    rest = problem.center_gradient.size + 1
    size = n * k + rest
    weights = np.full(size, 2.0)
    weights[-1] *= problem.slack_weight
    rows = sparse.hstack([sparse.kron(sparse.eye(n), np.ones((1, k))), sparse.csc_matrix((n, rest))])
    counts = sparse.hstack([sparse.kron(np.ones((1, n)), sparse.eye(k)), sparse.csc_matrix((k, rest))])
    slopes = np.concatenate([problem.resp_gradient.ravel(), problem.center_gradient.ravel(), [-1.0]])
    return (
        sparse.diags(weights).tocsc(),
        np.zeros(size),
        rows.tocsc(),
        np.zeros(n),
        sparse.vstack([sparse.csc_matrix(slopes), counts]).tocsc(),
        np.full(k + 1, -np.inf),
        np.concatenate([[-problem.decrease], problem.count_upper]),
        np.concatenate([problem.lower.ravel(), np.full(rest, -np.inf)]),
        np.full(size, np.inf),
    )


def median_seconds(call: Callable[[], object]) -> float:
    """Median of the repeats, after one call to warm up."""
    times = []
    for _ in range(REPEATS + 1):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def main() -> None:
    print(f"n = {N_ITEMS}, k = {N_COMPONENTS}, d = {N_DIMS}; milliseconds, and how many times longer PIQP takes")
    for seed in SEEDS:
        problem = random_problem(seed)
        arguments = as_sparse(problem)
        solver = piqp.SparseSolver()

        def whole(solver: piqp.SparseSolver = solver, arguments: tuple = arguments) -> None:
            solver.setup(*arguments)
            solver.solve()

        ours = median_seconds(lambda problem=problem: solve_velocities(problem))
        both, solve = median_seconds(whole), median_seconds(solver.solve)
        velocity = solve_velocities(problem).resp_velocity
        gap = np.abs(velocity.ravel() - solver.result.x[: velocity.size]).max()
        print(
            f"seed {seed}: ours {1e3 * ours:.2f}, PIQP {1e3 * both:.1f} with setup (x {both / ours:.1f}), "
            f"{1e3 * solve:.1f} solve alone (x {solve / ours:.1f}); velocities differ by {gap:.0e}"
        )


if __name__ == "__main__":
    main()
