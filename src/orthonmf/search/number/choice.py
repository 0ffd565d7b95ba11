"""The number of components and what speaks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ..._common.typing import Array, Labels
from ...distortion.base import Distortion
from ...engines.base import Engine
from ...progress import at
from ..budget import BUDGET
from .balls import Balls, fitted, n_parameters, one_hot, ward_joins, ward_labels
from .cloud import Cloud, clouds_of
from .confidence import agreements, component_agreement, gain_test
from .merging import Join, axes_of, decided, joins_of

# A coarser number is a level when the join below it costs this many times what the join down to it did (Ward's costs): joining pairs of
# pairs costs two to three times as much as joining the pairs, whatever the data.
LEVEL_RATIO = 4.0


@dataclass(frozen=True)
class Number:
    """A number of components, and how sure it is.

    Attributes
    ----------
    answer : int
        The finest number that the data support; 1 where nothing stands out.
    levels : tuple of int
        Coarser numbers that stand out as well, the finest first.
    bic : ndarray of shape (m,)
        Log-likelihood of the mixture of 1, 2, … balls, less what BIC asks for its parameters; NaN where none was fitted.
    p_values : dict of int to float
        For a number m, how often chance gains as much by one component more as these data do, if m is right.
    agreement : ndarray of shape (m,)
        Of the partitions into 1, 2, … components of halves of the items with that of all: the adjusted Rand index; NaN where unknown.
    at_most : bool
        Whether the search ended at the largest number it was allowed.
    partitions : list of ndarrays
        Of all items of the cloud into ``answer`` components, from each half.
    used : ndarray
        Which items of the engine the cloud has.
    """

    answer: int
    levels: tuple[int, ...] = ()
    bic: Array = field(default_factory=lambda: np.zeros(0))
    p_values: dict[int, float] = field(default_factory=dict)
    agreement: Array = field(default_factory=lambda: np.zeros(0))
    at_most: bool = False
    partitions: list[Labels] = field(default_factory=list)
    used: Labels = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    def stability(self, labels: Labels, n_components: int) -> Array:
        """How often each component of final labels of the engine's items comes back in the halves; see ``component_agreement``."""
        return component_agreement(labels[self.used], self.partitions, n_components)

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.answer == 1:
            return (
                "Nothing stands out: no number of components above 1 explains these data better than one. "
                "To split them all the same, set n_components."
            )
        coarser = f", or {' or '.join(map(str, self.levels))} at a coarser level" if self.levels else ""
        words = [f"{self.answer} components stand out{coarser}"]
        if self.answer in self.p_values:
            p = self.p_values[self.answer]
            words.append(f"one more {'is noise' if p > 0.05 else 'may be real'} (chance gains as much with probability {p:.2f})")
        if len(self.agreement) >= self.answer and np.isfinite(self.agreement[self.answer - 1]):
            words.append(f"halves of the items agree to {self.agreement[self.answer - 1]:.2f} of 1")
        end = " The search ended at max_components: raise it to see whether there are more." if self.at_most else ""
        return "; ".join(words) + "." + end


@dataclass(frozen=True)
class _Fits:
    """Mixtures of balls for some numbers, with what BIC makes of them."""

    balls: dict[int, Balls]
    score: dict[int, float]

    @property
    def best(self) -> int:
        return max(self.score, key=lambda count: (self.score[count], -count))


def number_of_components(engine: Engine, distortion: Distortion, most: int, evidence: float, seed: int = 0) -> Number:
    """How many components the items of a small engine have, at most ``most``.

    Parameters
    ----------
    engine : Engine
        A few thousand items at most; equal ones merged.
    evidence : float
        Effective number of items; see ``effective_number``.
    seed : int
        Of the halves and of the draws of the test.
    """
    clouds = clouds_of(engine, distortion, most, evidence) if most > 1 else []
    if not clouds:
        return Number(1, at_most=most == 1)
    cloud, fits = max(((cloud, _fits(cloud, most)) for cloud in clouds), key=lambda pair: pair[1].score[pair[1].best])
    joins = joins_of(cloud, fits.balls[fits.best])
    paying = decided(joins)
    n_joins = max(paying, joins[0].count - most)
    answer = joins[n_joins].count
    at_most = answer == most < joins[paying].count or most == max(fits.balls) == answer
    labels = {count: _hard(balls) for count, balls in fits.balls.items() if count <= most}
    labels[answer] = _grouped(fits.balls[fits.best], joins[n_joins])
    partitions, agreement = agreements(cloud, labels, answer, seed)
    return Number(
        answer=answer,
        levels=_levels(cloud, labels[answer]),
        bic=np.array([fits.score.get(count, np.nan) for count in range(1, most + 1)]),
        p_values={count: gain_test(cloud, labels[count], seed) for count in (answer - 1, answer) if count in labels},
        agreement=np.append(agreement, np.full(most - len(agreement), np.nan))[:most],
        at_most=at_most,
        partitions=partitions,
        used=cloud.used,
    )


def _fits(cloud: Cloud, most: int) -> _Fits:
    """Balls for every number up to ``most``, and beyond while more of them pay."""
    n_dims = cloud.points.shape[1]
    cap = max(min(BUDGET.balls_per_component * most, len(cloud.points), int(cloud.n_items) // 2), 1)
    fits = _Fits({}, {})
    for labels in reversed(list(ward_labels(cloud.points, cloud.weight * cloud.precision, cap))):
        at(0.5 * len(fits.balls) / cap, f"{len(fits.balls)} of {cap} numbers of balls at most")
        balls = fitted(cloud, one_hot(labels))
        fits.balls[balls.count] = balls
        fits.score[balls.count] = balls.log_likelihood - cloud.toll * n_parameters(balls.count, n_dims)
        if balls.count > max(most, fits.best + BUDGET.ball_patience):
            break
    return fits


def _hard(balls: Balls) -> Labels:
    return balls.resp.argmax(axis=1)


def _grouped(balls: Balls, join: Join) -> Labels:
    """The most probable group of each item."""
    return np.column_stack([balls.resp[:, list(group)].sum(axis=1) for group in join.groups]).argmax(axis=1)


def _levels(cloud: Cloud, labels: Labels) -> tuple[int, ...]:
    """Numbers below that of the labels at which the next join of the components costs much more than the one before."""
    axes = axes_of(cloud, one_hot(labels) * cloud.weight[:, None])
    costs = ward_joins(axes.center, axes.mass)[1]
    count = len(axes.mass)
    return tuple(count - 1 - i for i, (one, after) in enumerate(pairwise(costs)) if after > LEVEL_RATIO * one)
