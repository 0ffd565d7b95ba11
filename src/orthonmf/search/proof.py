"""A proof that no other partition into as many components is as good: for components that are far apart, from sums of one pass.

The root ρ of a loss is a metric (‖x − y‖ for means, the sine of the angle for lines). Let components a = 1 … k have centres c_a, masses
m_a > 0, costs E_a = Σ ω ρ(x, c_a)², and E = Σ E_a. Take any k centres whose nearest assignment costs no more than E.

1. If none of them is nearer to c_a than t, then every item of a is t − ρ(x, c_a) or more from its centre, so by Minkowski's inequality
   the items of a cost at least (√m_a t − √E_a)². That is no more than E, hence

       t ≤ T_a = (√E + √E_a) / √m_a:

   every c_a has a centre within T_a.
2. Where ρ(c_a, c_b) > T_a + T_b for every two components, these are k different ones: one centre y_a for every a.
3. An item of a with ρ(x, c_a) ≤ r_a is nearer to y_a than to y_b where r_a + T_a < ρ(c_a, c_b) − r_a − T_b.

So where ρ(c_a, c_b) > T_a + T_b + 2 max(r_a, r_b) for every two components, every item stays where it is: the partition is better than
any other. Fewer centres cannot do what 1 and 2 ask for. Items without weight cost nothing anywhere, and are left out.
"""

from __future__ import annotations

import numpy as np

from .._common.typing import Array
from ..distortion.base import Distortion, Metric
from ..engines.base import Engine
from ..passes.hard import Farthest, FarthestItems
from .partition import NEGLIGIBLE, Partition, item_rounding

# A partition is proven to be the best where its separation is above this; 1 would do without the roundings of the separation itself.
CONCLUSIVE = 1.0 + 1e-9


def separation(apart: Array, mass: Array, cost: Array, farthest: Array, rounding: float = 0.0) -> float:
    """How many times as far apart as the proof asks for the two components are that are closest to it: above 1, the partition is the best.

    Parameters
    ----------
    apart : ndarray of shape (n_components, n_components)
        ρ(c_a, c_b)².
    mass, cost : ndarray of shape (n_components,)
        m and E.
    farthest : ndarray of shape (n_components,)
        r².
    rounding : float
        By how much any ρ may be off.
    """
    if not mass.all():
        return 0.0
    root = np.sqrt(mass)
    # ρ + rounding instead of ρ, by Minkowski's inequality.
    own, total = np.sqrt(cost) + rounding * root, np.sqrt(cost.sum()) + rounding * np.sqrt(mass.sum())
    within, reach = (total + own) / root, np.sqrt(farthest) + rounding
    needed = within[:, None] + within + 2 * np.maximum(reach[:, None], reach)
    found = np.maximum(np.sqrt(apart) - rounding, 0)
    ratio = np.divide(found, needed, out=np.where(found > 0, np.inf, 0.0), where=needed > 0)
    np.fill_diagonal(ratio, np.inf)
    return float(ratio.min())


def farthest_if_proven(engine: Engine, distortion: Distortion, part: Partition) -> Farthest | None:
    """How far items are from their centres, if no other partition into as many components is as good; None where that is not proven."""
    if not isinstance(distortion, Metric):
        return None
    apart, stats = distortion.apart(part.centers), part.stats
    # Nothing is farther than what is on the average: one look at all items is spared where that is too far already.
    least = np.divide(stats.cost, stats.mass, out=np.zeros_like(stats.cost), where=stats.mass > 0)
    if separation(apart, stats.mass, stats.cost, least) <= CONCLUSIVE:
        return None
    found: Farthest = engine.run(distortion, FarthestItems(part.centers), {"labels": part.labels}).total
    # A squared distance is exact to the rounding of the items' own to the reference, that of a centre too.
    reach = max(found.reach, float(np.einsum("ij,ij->i", part.centers, part.centers).max()))
    rounding = np.sqrt(item_rounding(engine, distortion) + NEGLIGIBLE * float(np.finfo(engine.dtype).eps) * reach)
    return found if separation(apart, stats.mass, stats.cost, found.own, rounding) > CONCLUSIVE else None
