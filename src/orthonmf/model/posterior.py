"""How sure each item is of its component: the posterior of a mixture that agrees with itself.

Components are seen as equally wide, p_ij ∝ π_j exp(−d_ij / 2σ²), where the shares π, the width σ and the centres are those that the p_ij
themselves imply:

    π_j = Σ_i w_i p_ij / Σ w,   σ² = Σ_ij w_i p_ij d_ij / (q Σ w),   centres: means, or leading directions of unit items, weighted by w p.

q is the number of directions in which items can differ from their centre. Labels would not do for probabilities: they make the
components narrower and further apart than they are. Every item counts with its sample weight w, not with its size ‖x‖², as it does in the
factorisation: how often a component occurs is a matter of items.

Counts have p_ij ∝ π_j exp(−D_ij / φ) with D_ij the divergence of the item as it is: the longer an item, the surer it is. φ is how many
times as much they vary as Poisson counts would: the Pearson statistic per degree of freedom, of the fitted components.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Distortion, Metric, mean_of
from ..engines.base import Engine, block_weight, doubled, resized, reweighted, sample, weighted_mean
from ..passes.base import host
from ..passes.hard import Weights
from ..passes.raw import Pearson, Scalar, UnitWeight
from ..passes.soft import Counted, CountedSums, Posterior
from ..passes.state import State, Stats, normalised_log
from ..search.gibbs import plain_step, soft_pass
from ..search.number.cloud import effective_number
from ..search.partition import NEGLIGIBLE, Momentum, Partition, finest, item_rounding, labelled_pass, nearest_pass
from ..search.proof import farthest_if_proven
from .certificate import margin_pass
from .eckart_young import smaller_gram

__all__ = ["Mixture", "fit_mixture", "margins", "posterior"]

TINY = float(np.finfo(float).tiny)
# In place of a mean distance of 0: β stays a number.
SHARPEST = 1e-200

# Items of large data on which the mixture is fitted.
MIXTURE_ITEMS = 4096
# The mixture is at rest when a pass gains less than this in log-likelihood per item; well-separated components need a handful of passes.
TOLERANCE, MIXTURE_PASSES = 1e-7, 100
# Centres gather momentum where a pass gains less than this: of six mixtures, 100 passes then led as far as 200 without.
SLOW = 0.1
# exp(−this) is nothing beside 1, also after the shares of components, of 1e-100 and more, have had their say.
CERTAIN = 1000.0
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
        σ; 0 where every item lies on its centre. Of counts √(φ/2).
    """

    centers: Array
    share: Array
    deviation: float

    def scaled(self, shift: int, width_shift: int) -> Mixture:
        """The same with the centres times 2**shift and the width times 2**width_shift."""
        return Mixture(np.ldexp(self.centers, shift), self.share, float(np.ldexp(self.deviation, width_shift)))


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
    found = (_wide if distortion.power == 2 else _dispersed)(small, distortion, centers)
    if engine.n_items <= MIXTURE_ITEMS:
        engine.passes = engine.team.passes - sampled  # all of them were over all items
    return found


def _wide(small: Engine, distortion: Distortion, centers: Array) -> Mixture:
    """Components of one width."""
    counted = _counted(small, distortion)
    state = State(0.0, distortion.to_frame(centers), normalised_log(np.ones(len(centers))))
    hard, labels = nearest_pass(small, distortion, state.centers)
    distance = hard.total / max(float(hard.mass.sum()), TINY)
    gap = _gap(small, distortion, Partition(labels, state.centers, hard))
    least = 0.0 if gap > 0 else finest(small, distortion)
    n_directions, before, momentum, plain = _n_directions(counted, distortion), -np.inf, Momentum(distortion), state
    for _ in range(MIXTURE_PASSES):
        if least == 0 and not _beyond_rounding(small, distortion, state.centers, distance):
            least = finest(small, distortion)
        sharp = distance <= least  # every item lies on its centre
        state = state.set(beta=n_directions / (2 * max(distance, least, SHARPEST)))
        stats = _hard_pass(counted, distortion, state, labels) if state.beta * gap > CERTAIN else soft_pass(counted, distortion, state)
        likelihood = stats.log_partition + n_directions / 2 * stats.weight * np.log(state.beta)
        if not sharp and momentum.carried and likelihood < before:
            state = plain.set(centers=momentum.back())
            continue
        if sharp or likelihood - before <= TOLERANCE * stats.weight:
            break
        slow, before, distance = likelihood - before <= SLOW * stats.weight, likelihood, stats.distortion / stats.weight
        plain = plain_step(distortion, state, stats)
        state = plain.set(centers=momentum.step(state.centers, plain.centers, stats.mass, slow))
    share = stats.mass / stats.weight if stats.weight > 0 else np.exp(state.log_mass)
    return Mixture(distortion.to_data(state.centers), share, 0.0 if sharp else float(np.sqrt(0.5 / state.beta)))


def _dispersed(small: Engine, distortion: Distortion, centers: Array) -> Mixture:
    """Components of counts, which vary φ times as much as Poisson ones."""
    at, share, before = distortion.to_frame(centers), np.full(len(centers), 1 / len(centers)), -np.inf
    dispersion = _dispersion(small, distortion, at)
    for _ in range(MIXTURE_PASSES if dispersion > 0 else 0):
        stats: CountedSums = small.run(distortion, Counted(at, np.log(np.maximum(share, TINY)), dispersion)).total
        if stats.log_likelihood - before <= TOLERANCE * stats.weight:
            break
        before, share = stats.log_likelihood, stats.share / max(stats.weight, TINY)
        at = np.where(stats.mass[:, None] > 0, distortion.center(stats.sums, np.maximum(stats.mass, TINY)), at)
    return Mixture(distortion.to_data(at), share / share.sum(), float(np.sqrt(dispersion / 2)))


def _dispersion(small: Engine, distortion: Distortion, centers: Array) -> float:
    """φ = Σ (x − y)² / y per degree of freedom, y of the nearest component; 0 where every item lies on its centre."""
    weight = _weights(small)
    _, labels = nearest_pass(small, distortion, centers)
    pearson: Scalar = small.run(None, Pearson(distortion, distortion.to_data(centers)), {"labels": labels}).total
    n_dims = int(np.count_nonzero(weighted_mean(small))) - distortion.scaled
    left = 1 - len(centers) / max(effective_number(weight) if weight.any() else 0.0, 1.0)
    return pearson.total / max(left * float(weight.sum()) * n_dims, TINY) if left > 0 < n_dims else 0.0


def _gap(engine: Engine, distortion: Distortion, part: Partition) -> float:
    """How much farther every item is from other centres than from its own, at least, for any centres that are such means of its component.

    With r the distance of the farthest item, such a mean is within r of the centre, by the convexity of balls (of cones, for lines); so
    with ρ(c_a, c_b) = D it is (D − r_a − 2 r_b)² − (2 r_a)². 0 where that is not known to be above 0.
    """
    if part.n_components == 1 or (farthest := farthest_if_proven(engine, distortion, part)) is None:
        return 0.0
    apart = np.sqrt(cast(Metric, distortion).apart(part.centers))
    np.fill_diagonal(apart, np.inf)
    reach = np.sqrt(farthest.own)
    other = np.maximum(apart - reach[:, None] - 2 * reach, 0)
    return max(float((np.square(other) - np.square(2 * reach)[:, None]).min()), 0.0)


def _beyond_rounding(engine: Engine, distortion: Distortion, centers: Array, distance: float) -> bool:
    """Whether a mean distance is above ``finest``, without a look at the items: the best centre of all is no worse than one of these."""
    if not isinstance(distortion, Metric):
        return False
    # (ρ(x, c_a) + ρ(c_a, c_b))² on the average
    apart = 2 * distance + 2 * float(distortion.apart(centers).max())
    return distance > item_rounding(engine, distortion) + NEGLIGIBLE * float(np.finfo(engine.dtype).eps) * apart


def _hard_pass(engine: Engine, distortion: Distortion, state: State, labels: Any) -> Stats:
    """What ``soft_pass`` finds where the responsibilities are those of the labels: log Z_i = log α − β d of the own component."""
    found = labelled_pass(engine, distortion, state.centers, labels)
    likelihood = float(np.dot(found.mass, state.log_mass)) - state.beta * found.total
    return Stats(found.count, float(found.mass.sum()), found.mass, found.sums, likelihood, found.total)


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
    if engine.weight is None:  # then each has it as it is, in a frame that is known
        return resized(engine, distortion, engine.run(distortion, Weights()).columns["weight"])
    size = engine.run(None, UnitWeight(distortion)).columns["weight"]
    return reweighted(engine, np.divide(_weights(engine), size, out=np.zeros_like(size), where=size > TINY))


def _weights(engine: Engine) -> Array:
    return block_weight(engine, slice(0, engine.n_items))


def posterior(engine: Engine, distortion: Distortion, mixture: Mixture) -> Array:
    """p_ij (n_items, n_components) for a mixture in the units of the engine; π where an item has no direction."""
    log_share = np.log(np.maximum(mixture.share, TINY))
    work = Posterior(distortion.to_frame(mixture.centers), log_share, mixture.deviation**2, sized=distortion.power == 1)
    resp = host(doubled(engine).run(distortion, work).columns["resp"])  # β d would not bear the rounding of float32 items
    return resp / resp.sum(axis=1, keepdims=True)


def margins(engine: Engine, distortion: Distortion, centers: Array, labels: Labels) -> Array:
    """(d₂ − d₁) / max(d₁, d₂) of every item, for d₁ to its own centre and d₂ to the nearest other; 1 where there is no other."""
    if len(centers) == 1:
        return np.ones(engine.n_items)
    work = margin_pass(engine, distortion, distortion.to_frame(centers))
    return host(doubled(engine).run(distortion, work, {"labels": engine.hold(labels)}).columns["margin"])
