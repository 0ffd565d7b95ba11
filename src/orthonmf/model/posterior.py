"""How sure each item is of its component: the posterior of a mixture that agrees with itself.

Components are seen as equally wide, p_ij ∝ π_j exp(−d_ij / 2σ²), where the shares π, the width σ and the centres are those that the p_ij
themselves imply:

    π_j = Σ_i w_i p_ij / Σ w,   σ² = Σ_ij w_i p_ij d_ij / (q Σ w),   centres: means, or leading directions of unit items, weighted by w p.

q is the number of directions in which items can differ from their centre. Labels would not do for probabilities: they make the
components narrower and further apart than they are. Every item counts with its sample weight w, not with its size ‖x‖², as it does in the
factorisation: how often a component occurs is a matter of items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.typing import Array
from ..distortion.base import Distortion, mean_of
from ..engines.base import Engine, block_weight, doubled, reweighted, sample, weighted_mean
from ..passes.base import host
from ..passes.hard import Margins
from ..passes.raw import UnitWeight
from ..passes.soft import Posterior
from ..passes.state import State, normalised_log
from ..search.gibbs import plain_step, soft_pass
from ..search.partition import NEGLIGIBLE, finest, item_rounding, nearest_pass
from .eckart_young import smaller_gram
from .factors import converted, looked_up

__all__ = ["Mixture", "fit_mixture", "margins", "posterior"]

TINY = float(np.finfo(float).tiny)
# In place of a mean distance of 0: β stays a number.
SHARPEST = 1e-200

# Items of large data on which the mixture is fitted.
MIXTURE_ITEMS = 4096
# The mixture is at rest when a pass gains less than this in log-likelihood per item; well-separated components need a handful of passes.
TOLERANCE, MIXTURE_PASSES = 1e-7, 200
# Directions are counted by the eigenvalues of a matrix of at most this side; beyond it, by the dimensions that are not all zero.
RANK_SIDE = 512
# Items that leave a plane by this many of their roundings lie in it.
PLANE_ROUNDINGS = 8.0


@dataclass(frozen=True)
class Mixture:
    """Equally wide components.

    Attributes
    ----------
    centers : ndarray of shape (n_components, n_dims)
        Means, or unit directions.
    share : ndarray of shape (n_components,)
        π.
    deviation : float
        σ; 0 where every item lies on its centre.
    """

    centers: Array
    share: Array
    deviation: float

    def scaled(self, shift: int) -> Mixture:
        """The same for items that are multiplied by 2**shift."""
        return Mixture(np.ldexp(self.centers, shift), self.share, float(np.ldexp(self.deviation, shift)))


def fit_mixture(engine: Engine, distinct: Engine, distortion: Distortion, centers: Array, seed: int) -> Mixture:
    """The mixture that a factorisation leads to, by expectation and maximisation from its centres.

    Parameters
    ----------
    engine : Engine
        All items.
    distinct : Engine
        The same, equal ones as one; of large data a sample is used.
    distortion : Distortion
    centers : ndarray of shape (n_components, n_dims)
        In the units of the engine, like what is returned.
    seed : int
        Of the sample.
    """
    sampled = engine.team.passes - engine.passes
    small = sample(distinct, MIXTURE_ITEMS, seed)
    counted = _counted(small, distortion)
    state = State(0.0, distortion.to_frame(centers), normalised_log(np.ones(len(centers))))
    hard, _ = nearest_pass(small, distortion, state.centers)
    distance, least = hard.total / max(float(hard.mass.sum()), TINY), finest(small, distortion)
    n_directions, before = _n_directions(counted, distortion), -np.inf
    for _ in range(MIXTURE_PASSES):
        sharp = distance <= least  # every item lies on its centre
        state = state.set(beta=n_directions / (2 * max(distance, least, SHARPEST)))
        stats = soft_pass(counted, distortion, state)
        likelihood = stats.log_partition + n_directions / 2 * stats.weight * np.log(state.beta)
        if sharp or likelihood - before <= TOLERANCE * stats.weight:
            break
        before, distance = likelihood, stats.distortion / stats.weight
        state = plain_step(distortion, state, stats)
    if engine.n_items <= MIXTURE_ITEMS:
        engine.passes = engine.team.passes - sampled  # all of them were over all items
    share = stats.mass / stats.weight if stats.weight > 0 else np.exp(state.log_mass)
    return Mixture(distortion.to_data(state.centers), share, 0.0 if sharp else float(np.sqrt(0.5 / state.beta)))


def _n_directions(counted: Engine, distortion: Distortion) -> int:
    """In how many directions items can differ from their centre: the rank of the items, centred for means, less one for lines."""
    mean = mean_of(counted, distortion)
    if min(counted.n_items, counted.n_dims) > RANK_SIDE:
        rank = min(counted.n_items - (mean is not None), int(np.count_nonzero(weighted_mean(counted))))
    else:
        values = np.linalg.eigvalsh(smaller_gram(counted, mean).matrix)
        total, size = float(_weights(counted).sum()), 0.0 if mean is None else float(np.dot(mean, mean))
        eps = max(len(values) * float(np.finfo(float).eps), float(PLANE_ROUNDINGS * np.finfo(counted.given_dtype).eps) ** 2)
        rank = int(np.count_nonzero(values > eps * (float(values.max()) + total * size)))
    return max(rank - (mean is None), 1)


def _counted(engine: Engine, distortion: Distortion) -> Engine:
    """The items with weights such that each has the weight w that it was given, whatever its size; those without direction have none."""
    size = engine.run(None, UnitWeight(distortion)).columns["weight"]
    return reweighted(engine, np.divide(_weights(engine), size, out=np.zeros_like(size), where=size > TINY))


def _weights(engine: Engine) -> Array:
    return block_weight(engine, slice(0, engine.n_items))


def posterior(engine: Engine, distortion: Distortion, mixture: Mixture) -> Array:
    """p_ij (n_items, n_components) for a mixture in the units of the engine; π where an item has no direction."""
    log_share = np.log(np.maximum(mixture.share, TINY))
    work = Posterior(distortion.to_frame(mixture.centers), log_share, mixture.deviation**2)
    resp = host(doubled(engine).run(distortion, work).columns["resp"])  # β d would not bear the rounding of float32 items
    return resp / resp.sum(axis=1, keepdims=True)


def margins(engine: Engine, distortion: Distortion, centers: Array, labels: Any, dtype: Any = np.float64) -> Any:
    """(d₂ − d₁) / max(d₁, d₂) of every item, for d₁ to its own centre and d₂ to the nearest other; 1 where there is no other."""
    if len(centers) == 1:
        return looked_up(engine, np.ones(1, dtype), labels)
    # A distance is exact to the rounding of the item's own distance to the reference.
    work = Margins(distortion.to_frame(centers), item_rounding(engine, distortion), float(NEGLIGIBLE * np.finfo(float).eps))
    found = doubled(engine).run(distortion, work, {"labels": engine.hold(labels)}).columns["margin"]
    return converted(engine, found, dtype)
