"""What a factorisation claims, recomputed from X and the factors alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ._typing import Array, Labels
from .bounded import Bounded, ItemCosts, load_gap
from .bounds import Bounds
from .distortion.base import Distortion
from .engines.base import Engine, RawRows
from .partition import NEGLIGIBLE, hard_stats
from .solvers.base import loads
from .state import Additive

# Largest side of the Gram matrix whose eigenvalues give the lower bound.
GRAM_SIDE = 2000
# Eigenvalues of a matrix of side s take as long as this many s³ multiplications of a product of matrices.
EIGENVALUE_PRODUCTS = 8
# Centres are stationary when one more exact step would move them by less than this, relative to the spread of the items.
STATIONARY = 2e-3
# The labels are optimal when the gap to the nearest centres is below this fraction of the error.
GAP = 1e-6


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
        ‖X − T C‖_F, weighted, by explicit residuals.
    relative_error : float
        error / ‖X‖_F.
    lower_bound : float or None
        No factorisation of this rank and scaling has a smaller error (Eckart–Young, about the mean for scaling "none"); None when it was
        too large to compute, or there was no time left for it.
    gap : float
        What moving items to their nearest component would still gain, as a fraction of the squared error.
    stationarity : float
        How far the centres are from the best ones for these labels, relative to the spread of the items.
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
        sizes = {"no component is empty": min(self.counts) > 0}
        nearest = "every item is in its nearest component"
        if self.bounds is not None:
            counts = np.array(self.counts)
            within = bool((counts <= self.bounds.upper).all() and (counts >= self.bounds.lower).all())
            sizes = {} if self.bounds.soft else {"every size is within its bounds": within}
            nearest = "the assignment is the best " + ("at this penalty" if self.bounds.soft else "within the bounds")
        return {
            "each item belongs to one component": self.orthogonal,
            "factors are nonnegative": self.nonnegative,
            **sizes,
            **({} if self.loads is not None else {nearest: self.gap <= GAP}),
            "the centres are the best for these labels": self.stationarity <= STATIONARY,
            "the scales are the best for these centres": self.scale_gap <= GAP,
            "all items were counted once": self.conservation <= 1e-6,
            "the error is not below the lower bound": self.lower_bound is None or self.lower_bound <= self.error * (1 + 1e-6),
        }

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return all(self.claims.values())

    def __str__(self) -> str:
        bound = "not computed" if self.lower_bound is None else f"{self.lower_bound:.6g}"
        lines = [f"error {self.error:.6g} (relative {self.relative_error:.4%}), lower bound {bound}"]
        lines += [f"[{'ok' if held else 'FAILS'}] {claim}" for claim, held in self.claims.items()]
        return "\n".join(lines)

    def in_units(self, shift: int) -> Certificate:
        """The same with the errors multiplied by 2**shift."""
        bound = None if self.lower_bound is None else float(np.ldexp(self.lower_bound, shift))
        return replace(self, error=float(np.ldexp(self.error, shift)), lower_bound=bound)


@dataclass(frozen=True)
class _Audit(Additive):
    count: int
    weight: float
    mass: Array
    sizes: Labels
    sums: Array
    cost: float
    gap: float
    spread: float
    residual: float
    energy: float


@dataclass(frozen=True)
class _Gram(Additive):
    count: int
    gram: Array


@dataclass(frozen=True)
class Claim:
    """A factorisation as a certificate needs it, in the units of the engine.

    Attributes
    ----------
    labels : ndarray of shape (n_items,)
    scale : ndarray of shape (n_items,)
        The item is approximated by scale · components[label].
    components : ndarray of shape (n_components, n_dims)
        Nonnegative, float64.
    nonzeros_per_item : int
    """

    labels: Labels
    scale: Array
    components: Array
    nonzeros_per_item: int = 1


def certify(engine: Engine, distortion: Distortion, claim: Claim, bounds: Bounds | None = None, prices: Array | None = None) -> Certificate:
    """Recompute every claim of a factorisation from the data; good ``prices`` make the proof under bounds short."""
    centers = distortion.to_frame(claim.components)

    def kernel(raw: RawRows, where: slice) -> _Audit:
        weight = engine.block_weight(where)
        items = distortion.items(raw, weight)
        pairs = distortion.pairs(items, centers)
        stats = hard_stats(distortion, items, pairs, claim.labels[where])
        own = pairs.distance[claim.labels[where], np.arange(len(items))]
        residual = raw.residual_sq(claim.scale[where], claim.labels[where], claim.components)
        return _Audit(
            count=len(items),
            weight=float(items.weight.sum()),
            mass=stats.mass,
            sizes=stats.sizes,
            sums=stats.sums,
            cost=stats.total,
            gap=float(items.weight @ np.maximum(own - np.maximum(pairs.distance.min(axis=0), 0), 0)),
            spread=float(items.weight @ items.sq),
            residual=float(weight @ residual),
            energy=float(weight @ raw.sqnorms()),
        )

    audit: _Audit = engine.reduce(kernel)
    in_time = engine.pass_seconds * _passes_of_bound(engine, len(centers)) <= engine.team.left()
    better = distortion.center(audit.sums, np.maximum(audit.mass, np.finfo(float).tiny))
    step_sq = float(np.square(better - centers).sum(axis=1) @ audit.mass)
    return Certificate(
        n_items=engine.n_items,
        n_components=len(claim.components),
        nonzeros_per_item=claim.nonzeros_per_item,
        counts=tuple(int(size) for size in audit.sizes),
        error=float(np.sqrt(audit.residual)),
        relative_error=float(np.sqrt(audit.residual / audit.energy)) if audit.energy > 0 else 0.0,
        lower_bound=lower_bound(engine, distortion, len(claim.components)) if in_time else None,
        gap=_gap(engine, distortion, claim, bounds, prices, audit),
        bounds=bounds,
        loads=None if engine.size is None else tuple(loads(engine, claim.labels, len(claim.components)).tolist()),
        scale_gap=_scale_gap(engine, audit),
        stationarity=_relative_step(engine, step_sq, audit),
        nonnegative=bool((claim.components >= 0).all() and (claim.scale >= 0).all()),
        conservation=abs(float(audit.mass.sum()) - audit.weight) / audit.weight if audit.weight > 0 else 0.0,
    )


def _gap(engine: Engine, distortion: Distortion, claim: Claim, bounds: Bounds | None, prices: Array | None, audit: _Audit) -> float:
    """What other labels could still gain, as a fraction of the squared error; 0 where that is rounding."""
    if audit.residual <= _rounding(engine) * audit.energy:
        return 0.0
    if bounds is None:
        return float(audit.gap / audit.residual)
    if engine.size is not None and prices is not None:
        return load_gap(ItemCosts(engine, distortion, distortion.to_frame(claim.components)), bounds, claim.labels, prices)
    return Bounded(engine, distortion, bounds).gap(distortion.to_frame(claim.components), claim.labels, prices)


def _scale_gap(engine: Engine, audit: _Audit) -> float:
    """The squared error above Σ ω d, the least that these labels and centres allow, as a fraction of it; 0 where that is rounding."""
    # Distances are exact to the rounding of the items' distance to the reference.
    rounding = _rounding(engine) * audit.energy + NEGLIGIBLE * float(np.finfo(engine.given).eps) * audit.spread
    excess = audit.residual - audit.cost
    return float(excess / audit.residual) if excess > rounding else 0.0


def _relative_step(engine: Engine, step_sq: float, audit: _Audit) -> float:
    """A step of the centres relative to the spread of the items; 0 where it is rounding."""
    if step_sq <= _rounding(engine) * audit.energy:
        return 0.0
    return float(np.sqrt(step_sq / audit.spread)) if audit.spread > 0 else np.inf


def _rounding(engine: Engine) -> float:
    """Below this fraction of ‖X‖² a squared error is rounding: of sums over the dimensions, and over the items."""
    return 100.0 * float(np.finfo(engine.given).eps) ** 2 * (engine.n_dims + engine.n_items)


def _passes_of_bound(engine: Engine, n_components: int) -> float:
    """Roughly how long the lower bound takes, in passes of the audit, which multiplies all items with the centres four times over."""
    side = min(engine.n_items, engine.n_dims)
    products, eigenvalues = engine.n_items * engine.n_dims * side, EIGENVALUE_PRODUCTS * side**3
    return (products + eigenvalues) / (4 * engine.n_items * engine.n_dims * n_components)


def lower_bound(engine: Engine, distortion: Distortion, n_components: int) -> float | None:
    """Eckart–Young: √Σ_{i>r} σ_i² of the weighted items, less a margin for rounding.

    r is n_components, or one less where the components are means: about the mean of all items, k means span k − 1 dimensions. Exact
    eigenvalues of the smaller Gram matrix; None when both sides exceed ``GRAM_SIDE``.
    """
    mean = distortion.mean_of(engine)
    rank = n_components - (mean is not None)
    if min(engine.n_items, engine.n_dims) <= rank:
        return 0.0
    if min(engine.n_items, engine.n_dims) > GRAM_SIDE:
        return None
    values = np.linalg.eigvalsh(_smaller_gram(engine, mean))[::-1]
    # Summation and the eigenvalue solver each err by at most n ε trace; the tail is a sum of eigenvalues.
    eps, total = float(np.finfo(float).eps), max(float(values.sum()), 0.0)
    shifted = 0.0
    if mean is not None:
        weight = engine.n_items if engine.weight is None else float(engine.weight.sum())
        energy = weight * float(np.dot(mean, mean))
        # Where items are not formed, what was subtracted rounds too; and about a point that is not quite the mean the sum is too large.
        total += 0.0 if engine.forms_rows else energy
        shifted = energy * (engine.n_items * eps) ** 2
    margin = len(values) * (len(values) + 8) * eps * total + shifted
    return float(np.sqrt(max(float(values[rank:].sum()) - margin, 0.0)))


def _smaller_gram(engine: Engine, ref: Array | None) -> Array:
    if engine.n_dims <= engine.n_items:

        def kernel(raw: RawRows, where: slice) -> _Gram:
            return _Gram(where.stop - where.start, raw.gram(engine.block_weight(where), ref))

        gram: _Gram = engine.reduce(kernel)
        return gram.gram
    whole = engine.select(np.arange(engine.n_items))
    return whole.rows(slice(0, engine.n_items)).outer(whole.block_weight(slice(0, engine.n_items)), ref)
