"""Small problems with their optimum, found by going through every partition.

``PROBLEMS`` have at most nine items each, in both scalings. The cost of every subset of the items is computed
from its definition, and all partitions into n_components parts are compared, without the library's formulas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

SCALINGS = ("item", "none")


@dataclass(frozen=True)
class Best:
    """The least cost of a partition, and the partition as bit masks of its parts."""

    cost: float
    parts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    """Items and a number of components.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n_items, n_dims)
    weight : ndarray of shape (n_items,) or None
    scaling : str
        "item" (lines) or "none" (means).
    n_components : int
    """

    name: str
    X: np.ndarray
    weight: np.ndarray | None
    scaling: str
    n_components: int

    def __str__(self) -> str:
        return f"{self.name}-{self.scaling}-k={self.n_components}"

    @cached_property
    def best(self) -> Best:
        """The best of all partitions."""
        return best_partition(subset_costs(self.X, self.scaling, self.weight), self.n_components)

    @property
    def labels(self) -> np.ndarray:
        """Labels of the best partition."""
        return np.array([next(j for j, part in enumerate(self.best.parts) if part >> i & 1) for i in range(len(self.X))])


def part_cost(X: np.ndarray, scaling: str, weight: np.ndarray | None = None) -> float:
    """Σ w ‖x − its reconstruction‖² of one part with its best centre.

    Lines: ‖A‖² − σ_1(A)² for the rows √w x, as a sum over the other singular values, so that nothing cancels.
    Means: Σ w ‖x − x̄‖².
    """
    weight = np.ones(len(X)) if weight is None else weight
    if scaling == "item":
        return float(np.sum(np.linalg.svd(np.sqrt(weight)[:, None] * X, compute_uv=False)[1:] ** 2))
    mean = weight @ X / weight.sum() if weight.any() else 0.0
    return float(weight @ np.sum((X - mean) ** 2, axis=1))


def partition_cost(X: np.ndarray, labels: np.ndarray, scaling: str, weight: np.ndarray | None = None) -> float:
    """The cost of a partition with the best centres."""
    labels = np.asarray(labels)
    return sum(part_cost(X[labels == label], scaling, None if weight is None else weight[labels == label]) for label in np.unique(labels))


def subset_costs(X: np.ndarray, scaling: str, weight: np.ndarray | None = None) -> np.ndarray:
    """The cost of every subset, indexed by its bit mask; set entries to inf to forbid subsets."""
    chosen = (np.arange(2 ** len(X))[:, None] >> np.arange(len(X))) & 1 == 1
    costs = np.zeros(len(chosen))
    for mask in range(1, len(chosen)):
        members = chosen[mask]
        costs[mask] = part_cost(X[members], scaling, None if weight is None else weight[members])
    return costs


def best_partition(costs: np.ndarray, n_components: int) -> Best:
    """The best of all partitions into exactly n_components parts.

    Every partition is met once: the part of the lowest item that is left, then those of the rest.
    """

    @cache
    def best(rest: int, n_parts: int) -> Best:
        if rest == 0 or n_parts == 0:
            return Best(0.0 if rest == 0 and n_parts == 0 else np.inf, ())
        return min((with_first(part, rest, n_parts) for part in _parts(rest)), key=lambda found: found.cost)

    def with_first(part: int, rest: int, n_parts: int) -> Best:
        others = best(rest ^ part, n_parts - 1)
        return Best(float(costs[part]) + others.cost, (part, *others.parts))

    return best(len(costs) - 1, n_components)


def _parts(rest: int) -> Iterator[int]:
    """Every subset of ``rest`` that holds its lowest item."""
    lowest = rest & -rest
    others = rest ^ lowest
    part = others
    while True:
        yield part | lowest
        if part == 0:
            return
        part = (part - 1) & others


def set_partitions(n_items: int, n_components: int) -> Iterator[tuple[int, ...]]:
    """Every partition as labels in which a new label is one more than the largest before it."""

    def extend(labels: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(labels) == n_items:
            if max(labels) + 1 == n_components:
                yield labels
            return
        for label in range(min(max(labels, default=-1) + 2, n_components)):
            yield from extend((*labels, label))

    return extend(())


def _data() -> Iterator[tuple[str, np.ndarray, np.ndarray | None]]:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        yield f"gamma2d-{seed}", rng.gamma(2.0, size=(8, 2)), None
        yield f"gamma4d-{seed}", rng.gamma(2.0, size=(9, 4)), None
        yield f"sparse-{seed}", rng.poisson(0.8, size=(8, 5)) + np.eye(8, 5), None
        yield f"weighted-{seed}", rng.gamma(2.0, size=(8, 3)), rng.gamma(1.0, size=8)
        yield f"scales-{seed}", rng.gamma(5.0, size=(8, 3)) * 10.0 ** rng.uniform(-1, 1, (8, 1)), None
    rng = np.random.default_rng(6)
    few = rng.integers(1, 5, size=(3, 3)).astype(float)
    yield "repeated", few[[0, 1, 2, 0, 1, 2, 0, 0]] + np.repeat([[0.0], [0.5]], [6, 2], axis=0), None
    yield "line", np.arange(1.0, 9.0)[:, None] * [1.0, 0.0] + [0.0, 3.0], None
    yield "grid", np.stack(np.meshgrid([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]), -1).reshape(9, 2), None
    yield "mirror", np.array([[1, 3], [3, 1], [1, 2], [2, 1], [4, 5], [5, 4], [1, 8], [8, 1.0]]), None
    yield "zero-row", np.vstack([np.zeros(3), rng.gamma(2.0, size=(7, 3))]), None
    yield "weightless", rng.gamma(2.0, size=(8, 3)), np.array([0, 1, 1, 1, 2, 2, 0, 1.0])
    yield "outlier", np.vstack([rng.gamma(2.0, size=(7, 2)), [[1e3, 2e3]]]), None
    yield "wide", rng.gamma(1.0, size=(7, 30)), None


#: Each for two to four components in both scalings.
PROBLEMS = tuple(
    Problem(name, X, weight, scaling, n_components) for name, X, weight in _data() for scaling in SCALINGS for n_components in (2, 3, 4)
)


@dataclass(frozen=True)
class Blobs:
    """Gaussian groups in the plane or above, with what they were drawn from."""

    X: np.ndarray
    labels: np.ndarray
    centers: np.ndarray


def blobs(centers: np.ndarray, sizes: list[int], spread: float, seed: int) -> Blobs:
    """Groups of the given sizes around the centres."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    X = np.asarray(centers, dtype=float)[labels]
    return Blobs(X + rng.normal(scale=spread, size=X.shape), labels, np.asarray(centers, dtype=float))
