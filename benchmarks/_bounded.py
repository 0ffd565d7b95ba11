"""Random problems under bounds, each given by its seed; the tests take theirs from here, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from orthonmf._common.typing import Array

from .capacities import capacity_for, draw

CLOUDS = ("gamma", "uniform", "lognormal", "counts", "groups", "uneven")
LIMITS = ("upper", "lower", "both", "vector")


@dataclass(frozen=True)
class Bounded:
    """Items and what is asked of their components.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n_items, n_dims)
    weight : ndarray of shape (n_items,) or None
    parameters : dict
        Of ``ONMF``.
    """

    name: str
    X: Array
    weight: Array | None
    parameters: dict[str, Any]


def small(seed: int) -> Bounded:
    """40 to 900 items with counts as bounds: few enough for restarts."""
    return _problem(seed, 40, 900, 12)


def any_size(seed: int, most: int = 20_000) -> Bounded:
    """40 to ``most`` items; some bounds are fractions, some items have weights."""
    found = _problem(seed, 40, most, 30)
    rng = np.random.default_rng([seed, 2])
    given, n_items = dict(found.parameters), len(found.X)
    if rng.random() < 0.3 and all(np.ndim(given[name]) == 0 for name in ("capacity", "min_size")):
        # A little looser than the counts, so that rounding leaves them feasible.
        given["capacity"] = None if given["capacity"] is None else min(given["capacity"] / n_items + 1 / n_items, 1.0)
        given["min_size"] = None if given["min_size"] is None else max(given["min_size"] - 1, 1) / n_items
    weight = rng.gamma(1.0, 1.0, n_items) if rng.random() < 0.3 else None
    return Bounded(found.name, found.X, weight, given)


def some_thousand(seed: int) -> Bounded:
    """900 to 4096 items; every other problem is overlapping groups of unequal size, in components of at most 1.05 times an equal share."""
    if seed % 2 == 0:
        return _problem(seed, 900, 4096, 40)
    rng = np.random.default_rng([seed, 7])
    n_items = int(np.exp(rng.uniform(np.log(900), np.log(4096))))
    n_dims, k = int(rng.integers(5, 60)), int(rng.integers(3, 25))
    parameters = {"n_components": k, "scaling": "none", "capacity": capacity_for(n_items, k), "min_size": None}
    return Bounded(f"{seed} shares, upper", draw(n_items, n_dims, k, seed=seed), None, parameters)


def _problem(seed: int, least: int, most: int, max_dims: int) -> Bounded:
    rng = np.random.default_rng([seed, 1])
    n_items = int(np.exp(rng.uniform(np.log(least), np.log(most))))
    n_dims, n_components = int(rng.integers(2, max_dims + 1)), int(rng.integers(2, 13))
    kind, limit = CLOUDS[seed % len(CLOUDS)], LIMITS[int(rng.integers(len(LIMITS)))]
    scaling = ("item", "none")[int(rng.integers(2))]
    X = _cloud(kind, n_items, n_dims, n_components, rng)
    capacity, min_size = _limits(limit, n_items, n_components, rng)
    parameters = {"n_components": n_components, "scaling": scaling, "capacity": capacity, "min_size": min_size}
    return Bounded(f"{seed} {kind}, {limit}", X, None, parameters)


def _cloud(kind: str, n_items: int, n_dims: int, n_groups: int, rng: np.random.Generator) -> Array:
    """Noise of three kinds, counts, groups of one size, groups of many sizes."""
    shape = n_items, n_dims
    if kind == "gamma":
        return rng.gamma(rng.uniform(0.5, 3.0), 1.0, shape)
    if kind == "uniform":
        return rng.uniform(size=shape)
    if kind == "lognormal":
        return rng.lognormal(0.0, rng.uniform(0.5, 1.5), shape)
    if kind == "counts":
        rates = rng.gamma(1.0, 3.0, (n_groups, n_dims))
        return rng.poisson(rates[rng.integers(n_groups, size=n_items)]) + rng.gamma(1.0, 0.1, shape)
    shares = np.full(n_groups, 1 / n_groups) if kind == "groups" else rng.dirichlet(np.full(n_groups, 0.7))
    centers = rng.gamma(4.0, 1.0, (n_groups, n_dims))[rng.choice(n_groups, n_items, p=shares)]
    return np.maximum(centers + rng.normal(0.0, rng.uniform(0.3, 2.0), shape), 0.0) + 1e-3


def _limits(kind: str, n_items: int, n_components: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """capacity and min_size."""
    share = n_items / n_components
    if kind == "upper":
        return int(np.ceil(share * rng.uniform(1.0, 1.6))), None
    if kind == "lower":
        return None, int(share * rng.uniform(0.4, 1.0))
    if kind == "both":
        return int(np.ceil(share * rng.uniform(1.05, 1.6))), int(share * rng.uniform(0.4, 0.95))
    sizes = rng.multinomial(n_items - n_components, rng.dirichlet(np.full(n_components, 3.0))) + 1
    upper = [int(size) for size in np.ceil(sizes * rng.uniform(1.0, 1.3))]
    lower = [int(size) for size in sizes * rng.uniform(0.3, 1.0)] if rng.random() < 0.5 else None
    return upper, lower
