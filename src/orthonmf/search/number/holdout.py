"""How many components, where numbers are missing: as many as foretell best what is held out.

Some of the numbers that are there are taken away as well. For 1, 2, … components the rest is parted, and what was held out compared with
what the components say of it. A component too few costs much there; one too many, split off by chance, foretells nothing and has fewer
items to be known from. The answer is the least number whose error is above the smallest by no more than the standard error of the
difference, over items. Where nothing is missing, likelihoods say more (``choice``); here they know nothing of the holes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from ..._common.typing import Array
from ...distortion.base import Distortion
from ...engines.base import Engine, block_weight
from ...engines.layout import in_memory
from ...engines.masked import MaskedRawRows
from ...progress import at
from ..batch import alternate_each, far_apart
from ..budget import BUDGET
from ..partition import Partition, opened
from .choice import Number

# Of the numbers that are there, the share that is held out.
SHARE = 0.1
# The search ends when so many components more foretell no better.
PATIENCE = 4
# Starts of every number of components: fewer where they are dear.
LEAST_STARTS, MOST_STARTS = 4, 16
# Of a component of counts, this share is as all items are: what it lacks may still be met.
EVEN_PART = 1e-3


@dataclass(frozen=True)
class _Held:
    """Items without some of their numbers, and those.

    Attributes
    ----------
    engine : Engine
        The items as they are parted.
    kept, out : MaskedRawRows
        What is left of them, and what was held out.
    weight : ndarray of shape (n_items,)
    """

    engine: Engine
    kept: MaskedRawRows
    out: MaskedRawRows
    weight: Array

    @classmethod
    def of(cls, engine: Engine, seed: int) -> _Held:
        """Of all items of a small engine for missing numbers; an item, or a dimension, that would have nothing left keeps what it has."""
        whole = slice(0, engine.n_items)
        raw = engine.rows(whole)
        values, there = raw.values.astype(np.float64), raw.there  # type: ignore[attr-defined]
        out = there & (np.random.default_rng(seed).random(there.shape) < SHARE)
        out[~(np.where(out, 0.0, values) > 0).any(axis=1)] = False
        out[:, ~(there & ~out).any(axis=0)] = False
        kept = there & ~out
        rest, away = (MaskedRawRows(np.where(part, values, 0.0), part) for part in (kept, out))
        return cls(in_memory(engine, np.where(kept, values, np.nan), engine.weight), rest, away, block_weight(engine, whole))

    def errors(self, distortion: Distortion, part: Partition) -> Array:
        """What the components of a partition say wrongly of what was held out, of every item."""
        centers, measure = np.abs(distortion.to_data(part.centers)), distortion.measure
        if distortion.power == 1:
            size = centers.sum(axis=1, keepdims=True) / distortion.ref.sum()
            centers = (1 - EVEN_PART) * centers + EVEN_PART * size * distortion.ref
        scale = measure.fitted(self.kept, part.labels, centers) if distortion.scaled else np.ones(len(self.weight))
        return self.weight * measure.residual(self.out, scale, part.labels, centers)


def number_held_out(engine: Engine, distortion: Distortion, most: int, seed: int = 0) -> Number:
    """How many components the items of a small engine for missing numbers have, at most ``most``.

    Parameters
    ----------
    engine : Engine
        A few thousand items at most; equal ones merged.
    distortion : Distortion
        A loss over the numbers that are there.
    seed : int
        Of what is held out, and of the starts.
    """
    held = _Held.of(engine, seed)
    loss = type(distortion).of(held.engine)
    errors: list[Array] = []
    best, centers = 0, loss.origin
    while len(errors) < most and len(errors) - best <= PATIENCE:
        at(len(errors) / most, f"{len(errors)} components foretell what is held out")
        part = _parted(held.engine, loss, centers, len(errors) + 1, seed)
        if part is None:
            break
        errors.append(held.errors(loss, part))
        best, centers = int(np.argmin([each.sum() for each in errors])), part.centers
    answer = next(m for m, each in enumerate(errors, start=1) if _excess(each, errors[best]) <= 1)
    p_values = {m: float(ndtr(_excess(errors[m], errors[m - 1]))) for m in (answer - 1, answer) if 0 < m < len(errors)}
    unknown = np.full(most, np.nan)
    return Number(answer, bic=unknown, agreement=unknown, p_values=p_values, at_most=best + 1 == answer == most)


def _parted(engine: Engine, distortion: Distortion, before: Array, n_components: int, seed: int) -> Partition | None:
    """The best partition that alternation finds from items far apart, and from ``before`` with one more component."""
    one_more = opened(engine, distortion, before, n_components)
    if len(one_more) < n_components:
        return None
    dear = BUDGET.start_work / (engine.n_items * n_components * (engine.n_dims + 10))
    n_starts = int(np.clip(dear, LEAST_STARTS, MOST_STARTS))
    starts = np.stack([one_more, *far_apart(engine, distortion, n_components, n_starts, seed)])
    ends = [end for end in alternate_each(engine, distortion, starts, np.inf) if end is not None]
    return min(ends, key=lambda end: end.cost, default=None)


def _excess(errors: Array, others: Array) -> float:
    """By how many standard errors one error is above another."""
    gap = errors - others
    deviation = float(np.sqrt(np.square(gap).sum()))
    return float(gap.sum()) / deviation if deviation > 0 else 0.0
