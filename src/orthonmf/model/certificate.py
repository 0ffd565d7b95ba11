"""What a factorisation claims, recomputed from X and the factors alone.

Everything is recomputed in float64 whatever the type of X, from residuals x − scale · center that are formed, never from differences of
large numbers. With ε of float64 such a residual errs by some ε‖x‖, so a squared error by ε √(error · ‖x‖²) + ε² ‖x‖², and its sum over
all items, by Cauchy–Schwarz, by no more than ε √(error² · ‖X‖²) + ε² ‖X‖²: nothing here grows with the number of items. Centres and
scales are stored in the type of X: that moves a squared error by at most (ε of that type)² ‖X‖². What is less than these is rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.typing import Array
from ..distortion.base import Distortion, Metric
from ..engines.base import BLIND, Engine, doubled
from ..passes.audit import Audit, AuditSums
from ..passes.base import Found
from ..passes.columns import SignCounts, Signs
from ..passes.hard import Margins
from ..passes.raw import Residual, Scalar
from ..search.bounded.assigner import Bounded, ItemCosts, load_gap
from ..search.bounded.base import loads
from ..search.bounded.bounds import Bounds
from ..search.partition import ITEM_ROUNDINGS, NEGLIGIBLE, item_rounding
from ..search.proof import CONCLUSIVE, separation
from .eckart_young import lower_bound

# Eigenvalues of a matrix of side s take as long as this many s³ multiplications of a product of matrices.
EIGENVALUE_PRODUCTS = 8
# Centres are stationary when one more exact step would move none by more than this, relative to the spread of its own component (the root
# mean square distance of its items): a better centre would gain four millionths of the error of its component.
STATIONARY = 2e-3
# The labels are optimal when the gap to the nearest centres is below this fraction of the error.
GAP = 1e-6
# Sums of the same weights in another order agree to this fraction.
CONSERVED = 1e-6
# Roundings of float64 in one residual: of the product, the difference, the centre in its frame and back, the norm of an item.
DOUBLE_ROUNDINGS = 16.0


@dataclass(frozen=True)
class Certificate:
    """Claims about a factorisation and the numbers that prove them.

    Attributes
    ----------
    n_items, n_components : int
    nonzeros_per_item : int
        Largest number of nonzeros that an item has in its factor; orthogonality is exact when it is at most 1.
    counts : tuple of int
        Items in each component.
    error : float
        ‖X − T C‖_F, weighted, by explicit residuals; of counts, the divergence of X from T C.
    relative_error : float
        error / ‖X‖_F; of counts, error / Σ X.
    lower_bound : float or None
        No factorisation of this rank and scaling has a smaller error (Eckart–Young, about the mean for scaling "none"); None when it was
        too large to compute, or there was no time left for it.
    gap : float
        What moving items to their nearest component would still gain, as a fraction of the squared error.
    stationarity : float
        How far a centre is from the best one for these labels, relative to the spread of its own component; the largest of all.
    nonnegative : bool
        Whether both factors are nonnegative.
    conservation : float
        Relative difference between the weights summed over components and over items.
    bounds : Bounds or None
        On the sizes of the components.
    kkt_residual : float or None
        Of the relaxed problem under bounds at the last temperature; recorded by the fit.
    loads : tuple of float or None
        Sum of the sizes of the items of each component, where items have sizes: the assignment under soft bounds on it is a packing
        problem, and not proven to be the best.
    scale_gap : float
        What better scales of the items would still gain, as a fraction of the squared error.
    norm : float
        ‖X‖_F, weighted; of counts, Σ X.
    misplaced : int
        Items that are nearer to another component by more than rounding, where each should be in its nearest.
    contradiction : str or None
        The first number of the model that is not what the data, the parameters or the other numbers give, in words.
    separation : float or None
        How many times as far apart the components are as a proof asks for: above 1, no other partition into as many components, of
        whatever sizes, has a smaller error (``optimal``). Most data are not that far apart, and nothing is claimed of them. None where
        there is one component, or an older version wrote the model.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> certificate = ONMF(2, capacity=2).fit([[1.0, 2.0], [2.0, 4.1], [3.0, 0.0]]).certificate_
    >>> certificate.holds, certificate.orthogonal, certificate.counts
    (True, True, (2, 1))
    >>> print(certificate)
    error 0.01968... (relative 0.3336%), lower bound 0
    [ok] each item belongs to one component
    [ok] factors are nonnegative
    [ok] every size is within its bounds
    [ok] the assignment is the best within the bounds
    ...
    """

    n_items: int
    n_components: int
    nonzeros_per_item: int
    counts: tuple[int, ...]
    error: float
    relative_error: float
    lower_bound: float | None
    gap: float
    stationarity: float
    nonnegative: bool
    conservation: float
    bounds: Bounds | None = None
    kkt_residual: float | None = None
    scale_gap: float = 0.0
    loads: tuple[float, ...] | None = None
    norm: float = 0.0
    misplaced: int = 0
    contradiction: str | None = None
    separation: float | None = None

    @property
    def optimal(self) -> bool:
        """Whether it is proven that no other partition of the items into as many components has a smaller error."""
        return self.separation is not None and self.separation > CONCLUSIVE

    @property
    def orthogonal(self) -> bool:
        """Whether no item belongs to two components."""
        return self.nonzeros_per_item <= 1

    @property
    def bound_ratio(self) -> float | None:
        """error / lower_bound: at most this factor from the best factorisation of this rank and scaling."""
        if self.lower_bound is None or self.lower_bound <= 0:
            return None
        return self.error / self.lower_bound

    @property
    def claims(self) -> dict[str, bool]:
        """Each claim and whether it holds."""
        return {
            "each item belongs to one component": self.orthogonal,
            "factors are nonnegative": self.nonnegative,
            **self._size_claims,
            **self._label_claim,
            "the centres are the best for these labels": self.stationarity <= STATIONARY,
            "the scales are the best for these centres": self.scale_gap <= GAP,
            "all items were counted once": self.conservation <= CONSERVED,
            "the error is not below the lower bound": self.lower_bound is None or self.lower_bound <= self.error * (1 + 1e-6),
            "what the model stores is what the data give": self.contradiction is None,
            **({"no other partition has a smaller error": True} if self.optimal else {}),
        }

    @property
    def free(self) -> bool:
        """Whether bounds, if there are any, exclude nothing."""
        return self.bounds is None or not self.bounds.bind(self.n_items)

    @property
    def _size_claims(self) -> dict[str, bool]:
        empty = {"no component is empty": min(self.counts) > 0} if self.free else {}
        if self.bounds is None or self.bounds.soft:
            return empty
        counts = np.zeros(max(len(self.counts), len(self.bounds.upper)), dtype=np.int64)
        counts[: len(self.counts)] = self.counts  # a component that was not found has no items
        within = len(counts) == len(self.bounds.upper) and self.bounds.outside(counts) == 0
        return {**empty, "every size is within its bounds": within}

    @property
    def _label_claim(self) -> dict[str, bool]:
        if self.loads is not None:
            return {}
        if self.bounds is None or self.free:
            return {"every item is in its nearest component": self.gap <= GAP and self.misplaced == 0}
        return {"the assignment is the best " + ("at this penalty" if self.bounds.soft else "within the bounds"): self.gap <= GAP}

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return all(self.claims.values())

    def __str__(self) -> str:
        bound = "not computed" if self.lower_bound is None else f"{self.lower_bound:.6g}"
        lines = [f"error {self.error:.6g} (relative {self.relative_error:.4%}), lower bound {bound}"]
        lines += [f"[{'ok' if held else 'FAILS'}] {claim}" for claim, held in self.claims.items()]
        return "\n".join(lines if self.contradiction is None else [*lines, f"        {self.contradiction}"])

    def in_units(self, shift: int) -> Certificate:
        """The same with the errors multiplied by 2**shift."""
        bound = None if self.lower_bound is None else float(np.ldexp(self.lower_bound, shift))
        return replace(self, error=float(np.ldexp(self.error, shift)), norm=float(np.ldexp(self.norm, shift)), lower_bound=bound)


@dataclass(frozen=True)
class Claim:
    """A factorisation as a certificate needs it, in the units of the engine.

    Attributes
    ----------
    labels : ndarray or column of shape (n_items,)
    scale : ndarray or column of shape (n_items,)
        The item is approximated by scale · components[label].
    components : ndarray of shape (n_components, n_dims)
        Nonnegative, float64.
    nonzeros_per_item : int
    eps : float
        Relative rounding of the numbers that are stored.
    center_step, scale_step : float
        Smallest number that centres, or scales, can be stored as; 0 where they are of order one.
    nearest : bool
        Whether every single item is claimed to be in its nearest component, beside all of them together.
    summed : bool
        Whether the centres are sums over the items, with the rounding of such a sum: those of features are, X Cᵀ.
    """

    labels: Any
    scale: Any
    components: Array
    nonzeros_per_item: int
    eps: float
    center_step: float = 0.0
    scale_step: float = 0.0
    nearest: bool = False
    summed: bool = False

    def columns(self, engine: Engine) -> dict[str, Any]:
        """Labels and scales as columns of an engine."""
        return {"labels": engine.hold(self.labels), "scale": engine.hold(self.scale)}


def margin_pass(engine: Engine, distortion: Distortion, centers: Array) -> Margins:
    """What finds the margins of items, for centres in the frame."""
    # A distance is exact to the rounding of the item's own distance to the reference, in float64 whatever the items were given in.
    return Margins(centers, item_rounding(doubled(engine), distortion), float(NEGLIGIBLE * np.finfo(float).eps))


def audited(engine: Engine, distortion: Distortion, claim: Claim) -> Found:
    """The sums of a factorisation, for ``certify``, and the margins of its items: one pass."""
    exact, centers = doubled(engine), distortion.to_frame(claim.components)
    rounding, margins = 4 * (NEGLIGIBLE + engine.n_dims) * claim.eps, margin_pass(engine, distortion, centers)
    work = Audit(distortion, centers, claim.components, rounding, exact.forms_rows and distortion.framed, margins)
    return exact.run(None, work, claim.columns(exact))


def certify(
    engine: Engine, distortion: Distortion, claim: Claim, audit: AuditSums, bounds: Bounds | None = None, prices: Array | None = None
) -> Certificate:
    """Recompute every claim of a factorisation from the data, and what was audited; good ``prices`` make the proof under bounds short."""
    exact, n_components = doubled(engine), len(claim.components)
    centers = distortion.to_frame(claim.components)
    in_time = exact.pass_seconds * _passes_of_bound(exact, n_components) <= engine.team.left()
    rounding = _rounding(exact, claim, audit)
    found = Certificate(
        n_items=engine.n_items,
        n_components=n_components,
        nonzeros_per_item=claim.nonzeros_per_item,
        counts=tuple(int(size) for size in audit.sizes),
        error=distortion.measure.error(audit.residual),
        relative_error=distortion.measure.error(audit.residual / audit.energy) if audit.energy > 0 else 0.0,
        lower_bound=lower_bound(exact, distortion, n_components) if in_time else None,
        gap=0.0,
        bounds=bounds,
        loads=None if engine.size is None else tuple(loads(engine, claim.labels, n_components).tolist()),
        scale_gap=_beyond(audit.residual - float(audit.cost.sum()), rounding, audit),
        stationarity=float(_steps(exact, distortion, claim, centers, audit).max()),
        nonnegative=bool((claim.components >= 0).all() and _no_negative(exact, claim.scale)),
        conservation=abs(float(audit.mass.sum()) - audit.weight) / audit.weight if audit.weight > 0 else 0.0,
        norm=distortion.measure.error(audit.energy),
        misplaced=audit.misplaced if claim.nearest else 0,
        separation=_separation(distortion, centers, audit),
    )
    if found.free or bounds is None:
        return replace(found, gap=_beyond(audit.gain, rounding, audit))
    proven = _bounded_gap(exact, distortion, claim, centers, bounds, prices)
    return replace(found, gap=proven if np.isinf(proven) else _beyond(proven * audit.residual, rounding, audit))


def _no_negative(engine: Engine, scale: Any) -> bool:
    found: SignCounts = engine.run(BLIND, Signs(), {"values": engine.hold(scale)}).total
    return found.negative == 0


def error_of(engine: Engine, distortion: Distortion, claim: Claim) -> float:
    """The error of what is claimed, term by term, in the units of the engine."""
    found: Scalar = doubled(engine).run(None, Residual(distortion.measure, claim.components), claim.columns(engine)).total
    return distortion.measure.error(found.total)


def _summation(engine: Engine) -> float:
    """The relative error of a sum over all items, block by block, in float64."""
    return (max(where.stop - where.start for where in engine.slices) + len(engine.slices)) * float(np.finfo(float).eps)


def _rounding(engine: Engine, claim: Claim, audit: AuditSums) -> float:
    """What a difference of squared errors may be off by: of float64, and of the type in which centres and scales are stored."""
    step = np.sqrt(engine.n_dims) * claim.center_step + claim.scale_step
    weight = engine.n_items if engine.weight is None else float(engine.weight.sum())
    stored = ITEM_ROUNDINGS**2 * ((claim.eps**2 + (_summation(engine) * claim.summed) ** 2) * audit.energy + step**2 * weight)
    formed = DOUBLE_ROUNDINGS * float(np.finfo(float).eps) * float(np.sqrt(audit.residual * audit.energy))
    return float(stored + formed)


def _beyond(gain: float, rounding: float, audit: AuditSums) -> float:
    """A gain as a fraction of the squared error; 0 where it is rounding."""
    if gain <= rounding:
        return 0.0
    return gain / audit.residual if audit.residual > 0 else np.inf


def _bounded_gap(engine: Engine, distortion: Distortion, claim: Claim, centers: Array, bounds: Bounds, prices: Array | None) -> float:
    """What other labels within the bounds could still gain, as a fraction of the squared error."""
    if len(bounds.upper) != len(centers):
        return np.inf
    if engine.size is not None:
        prices = np.zeros(len(centers)) if prices is None else prices
        return load_gap(ItemCosts(engine, distortion, centers), bounds, claim.labels, prices)
    return Bounded(engine, distortion, bounds).gap(centers, claim.labels, prices)


def _separation(distortion: Distortion, centers: Array, audit: AuditSums) -> float | None:
    """How far apart the components are, as ``separation`` says; None where there is one, or distances obey no triangle inequality."""
    if len(centers) == 1 or not isinstance(distortion, Metric):
        return None
    # A residual errs by some roundings of x; a distance of centres, squared, by one for each of their coordinates.
    size = float(np.einsum("ij,ij->i", centers, centers).max())
    items = DOUBLE_ROUNDINGS**2 * float(np.finfo(float).eps) ** 2 * max(audit.farthest.reach, float(np.dot(distortion.ref, distortion.ref)))
    rounding = np.sqrt(items + (DOUBLE_ROUNDINGS + centers.shape[1]) * float(np.finfo(float).eps) * size)
    return separation(distortion.apart(centers), audit.mass, audit.cost, audit.farthest.own, float(rounding))


def _passes_of_bound(engine: Engine, n_components: int) -> float:
    """Roughly how long the lower bound takes, in passes of the audit, which multiplies all items with the centres four times over."""
    side = min(engine.n_items, engine.n_dims)
    products, eigenvalues = engine.n_items * engine.n_dims * side, EIGENVALUE_PRODUCTS * side**3
    return (products + eigenvalues) / (4 * engine.n_items * engine.n_dims * n_components)


def _steps(engine: Engine, distortion: Distortion, claim: Claim, centers: Array, audit: AuditSums) -> Array:
    """How far each centre is from the best one, relative to the spread of its component; 0 where that is rounding."""
    mass = np.maximum(audit.mass, np.finfo(float).tiny)
    step = np.linalg.norm(distortion.center(audit.sums, mass) - centers, axis=1)
    # A sum of m terms errs by m ε times their sum, at most m ε √(Σ ω · Σ ω ‖x'‖²); blocks are summed, then added up.
    size = np.linalg.norm(distortion.to_data(centers) if distortion.flat else centers, axis=1)
    # A centre of features is such a sum as well, X Cᵀ.
    summed = _summation(engine) * (np.sqrt(audit.reach / mass) + (size if claim.summed else 0.0))
    stored = (claim.eps + DOUBLE_ROUNDINGS * float(np.finfo(float).eps)) * size + np.sqrt(engine.n_dims) * claim.center_step
    beyond = np.where(audit.mass > 0, np.maximum(step - summed - stored, 0), 0.0)
    spread = np.sqrt(audit.cost / mass)
    return np.where(beyond > 0, np.divide(beyond, spread, out=np.full_like(beyond, np.inf), where=spread > 0), 0.0)
