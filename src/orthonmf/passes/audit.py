"""The pass of a certificate: every sum that a claim about a factorisation needs, recomputed in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._common.arithmetic import argmin_of_columns
from .._common.typing import Array, Labels
from ..distortion.base import Distortion, scales
from .base import Additive, Columns, Found
from .hard import Farthest, Margins, hard_stats
from .raw import Raw


@dataclass(frozen=True)
class AuditSums(Additive):
    """Sums of one pass, in float64.

    Attributes
    ----------
    count : int
    weight : float
        Σ ω.
    mass, sizes, sums
        As in ``HardStats``.
    cost : ndarray of shape (n_components,)
        Of scale · center in the place of the items, with the best scales, by component.
    reach : ndarray of shape (n_components,)
        Σ ω ‖x'‖² of what was summed to make the centres, by component.
    gain : float
        What every item saves by going to its nearest component.
    misplaced : int
    residual : float
        The same with the scales that are claimed, of all.
    energy : float
        Σ w ‖x‖², or Σ w |x| of counts.
    farthest : Farthest
        With ``reach`` the largest ‖x‖² / (ω / w): by how much a rounding of x moves an item, squared.
    """

    count: int
    weight: float
    mass: Array
    sizes: Labels
    sums: Array
    cost: Array
    reach: Array
    gain: float
    misplaced: int
    residual: float
    energy: float
    farthest: Farthest


@dataclass(frozen=True)
class Audit:
    """The sums of given labels and scales.

    Attributes
    ----------
    frame : Distortion
    centers : ndarray of shape (n_components, n_coordinates)
        In the frame.
    components : ndarray of shape (n_components, n_dims)
        The same in the units of the items, as they are claimed.
    rounding : float
        By how much a difference of two distances that a fit takes in the type of X may err, relative to ‖x'‖² and the distances:
        Σ of p products x'·y' errs by p ε ‖x'‖ ‖y'‖, and ‖y'‖ ≤ ‖x'‖ + √d.
    formed : bool
        Whether the engine forms items in their frame.
    margins : Margins
        Column ``margin`` is what it finds.
    """

    frame: Distortion
    centers: Array
    components: Array
    rounding: float
    formed: bool
    margins: Margins
    reads: ClassVar = ("labels", "scale")

    def __call__(self, items: Raw, columns: Columns) -> Found:
        frame, raw, weight, labels, sq = self.frame, items.rows, items.weight, columns["labels"], self.frame.measure.size(items.rows)
        framed = frame.items(raw, weight)
        pairs = framed.pairs(self.centers)
        stats = hard_stats(framed, pairs.of(labels), labels, len(self.centers))
        points, mine = frame.to_data(self.centers), (labels, np.arange(len(labels), like=labels))
        own = frame.measure.residual(raw, scales(frame, pairs.inner[mine], sq), labels, points)
        nearest = argmin_of_columns(pairs.distance)
        least = own
        if (nearest != labels).any():
            best = frame.measure.residual(raw, scales(frame, pairs.inner[nearest, mine[1]], sq), nearest, points)
            least = np.where(nearest == labels, own, np.minimum(own, best))
        # ω‖x'‖² is in the units of w‖x‖²; where items are not formed, what is summed is as large as they are.
        reach = framed.weight * framed.sq if self.formed else weight * sq
        relative = np.divide(weight, framed.weight, out=np.zeros_like(framed.weight), where=framed.weight > 0)
        misplaced = weight * (own - least) > self.rounding * (reach + weight * (own + least))
        return Found(
            AuditSums(
                count=len(labels),
                weight=float(framed.weight.sum()),
                mass=stats.mass,
                sizes=stats.sizes,
                sums=stats.sums,
                cost=np.bincount(labels, weight * own, len(points)),
                reach=np.bincount(labels, reach, len(points)),
                gain=float(weight @ (own - least)),
                misplaced=int(np.count_nonzero(misplaced)),
                residual=float(weight @ frame.measure.residual(raw, columns["scale"], labels, self.components)),
                energy=float(weight @ sq),
                farthest=Farthest.of(relative * own, labels, framed.weight, relative * sq, len(points)),
            ),
            {"margin": self.margins.of(pairs, labels, framed.sq)},
        )
