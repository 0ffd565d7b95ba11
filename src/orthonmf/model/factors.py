"""From labels and centres to T and C, in both orientations and both scalings, and back.

Items are rows of X for "samples" and columns for "features". With unit lines u_j, T[i, l_i] = x_i·u (scaling "item"); with centres y_j and
N_j = Σ weights of component j, T[i, l_i] = N^{-1/2} and C = N^{1/2} Y (scaling "none"). For "features" the same factorisation of Xᵀ,
normalised to C Cᵀ = I, so that T = X Cᵀ.

Counts have the power p = 1 where squares have 2 (``distortion.measure``): rows then have unit sum in the place of unit norm, N^{1/p} is N,
the scale of an item is its sum, and T holds sums over the features of each component. All of it is C^{p−1} in the place of C, and N^{1/p}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.typing import Array, Labels
from ..distortion import Distortion
from ..distortion.base import having
from ..distortion.measure import over
from ..distortion.partial import Partial
from ..engines.base import BLIND, Engine, doubled
from ..passes.base import host
from ..passes.columns import Belongings, ByLabel, Converted, Relabelled, Renamed, Sizes
from ..passes.raw import LabelPresence, LabelSums, Scales, Sums
from ..search.factorize import Result
from ..search.partition import nearest_pass
from .certificate import Claim


def one_per_row(values: Array, labels: Labels, n_components: int, *, sparse: bool, dtype: Any) -> Any:
    """The (n_items, n_components) matrix with ``values`` at ``labels`` and nothing else."""
    n_items = len(labels)
    if sparse:
        parts = np.asarray(values.astype(dtype)), np.asarray(labels), np.arange(n_items + 1)
        return sp.csr_array(parts, shape=(n_items, n_components))
    matrix = np.zeros((n_items, n_components), dtype=dtype, like=values)
    matrix[np.arange(n_items, like=labels), labels] = values
    return matrix


@dataclass(frozen=True)
class Assigned:
    """Component and scale of each item: x_i ≈ scale_i · center of its component; columns of an engine."""

    labels: Any
    scale: Any


@dataclass(frozen=True)
class Factors:
    """C, and what else is needed to map items to it.

    Attributes
    ----------
    orthogonal : str
    loss : type of Distortion
    components : ndarray of shape (n_components, n_features)
        C, in the units of X.
    weight : ndarray of shape (n_components,)
        N: the weight of the items of each component.
    reference : ndarray of shape (n_dims,)
        About which distances of samples are taken; in the units of X for centres. Empty for features.
    """

    orthogonal: str
    loss: type[Distortion]
    components: Array
    weight: Array
    reference: Array

    @classmethod
    def of(cls, engine: Engine, result: Result, orthogonal: str, loss: type[Distortion], dtype: Any) -> Factors:
        """The factors of a result."""
        weight = weights(engine, result.labels, len(result.centers))
        unit = 0 if loss.scaled else -engine.shift
        components = np.ldexp(result.centers, unit)
        if orthogonal == "features":
            labels = host(result.labels)
            values = _feature_values(engine, result.distortion, result.centers, labels, weight)
            components = one_per_row(values, labels, len(weight), sparse=False, dtype=dtype).T
        elif not loss.scaled:
            components = components * p_root(weight, loss.power)[:, None]
        components = np.ascontiguousarray(components.astype(dtype))
        # A reference for features has one entry per row of the data it is for: new data have their own.
        reference = np.ldexp(result.distortion.ref, unit) if orthogonal == "samples" else np.zeros(0)
        return cls(orthogonal, loss, components, weight, reference)

    def distortion(self, engine: Engine) -> Distortion:
        """The loss, in the frame of the fit and the units of the engine."""
        if self.orthogonal == "features":
            return self.loss.of(engine)
        return self.loss(np.ldexp(self.reference, 0 if self.loss.scaled else engine.shift))

    def assign(self, engine: Engine, labels: Labels | None = None) -> Assigned:
        """Component (the nearest, unless given) and scale of each item of an engine on samples, in the units of X."""
        labels = self.nearest(engine) if labels is None else labels
        if not self.loss.scaled:
            return Assigned(labels, looked_up(engine, 1 / p_root(self.weight, self.loss.power), labels))
        return Assigned(labels, _scales(engine, self.distortion(engine), self.sample_centers(engine), labels, -engine.shift))

    def mapped(self, X: Any) -> Array:
        """T of samples where features are assigned: X Cᵀ, or of counts the sums over the features of each component.

        Where some are missing, the best for those that are there; a component of which a sample has none is its mean number.
        """
        dual = _dual(self.components, self.loss)
        if not self.loss.partial:
            return X @ dual.T
        there = ~np.isnan(X)
        known = np.where(there, X, X.dtype.type(0))
        level = known.sum(axis=1) / there.sum(axis=1)
        weight = there.astype(X.dtype) @ (dual * self.components).T
        even = np.multiply.outer(level, self.components.sum(axis=1))
        return np.divide(known @ dual.T, weight, out=even, where=weight > 0)

    def nearest(self, engine: Engine) -> Any:
        """The nearest component of each item of an engine on samples."""
        distortion = self.distortion(engine)
        return nearest_pass(engine, distortion, distortion.to_frame(self.sample_centers(engine)))[1]

    def claim(self, engine: Engine, assigned: Assigned | None = None, *, nearest: bool = False) -> Claim:
        """What is claimed of the items of an engine: x_i ≈ scale_i · center, in the engine's units.

        ``nearest`` says that samples were assigned as here, each to its nearest component.
        """
        if self.orthogonal == "features":
            return self._feature_claim(engine, self.components.argmax(axis=0) if assigned is None else assigned.labels)
        nearest = assigned is None or nearest
        assigned = assigned or self.assign(engine)
        step = float(np.ldexp(float(np.finfo(self.components.dtype).smallest_subnormal), engine.shift))
        if not self.loss.scaled:
            scale = looked_up(engine, np.ones(len(self.components)), assigned.labels)
            return Claim(assigned.labels, scale, self.sample_centers(engine), 1, self._eps(engine), center_step=step, nearest=nearest)
        scale = converted(engine, assigned.scale, np.float64, engine.shift)
        return Claim(assigned.labels, scale, self.sample_centers(engine), 1, self._eps(engine), scale_step=step, nearest=nearest)

    def _eps(self, engine: Engine) -> float:
        """Of the coarser of the types in which X and the factors are given."""
        return max(float(np.finfo(each).eps) for each in (engine.given_dtype, self.components.dtype))

    def sample_centers(self, engine: Engine) -> Array:
        """The centres for an engine on samples, in its units."""
        components = self.components.astype(np.float64)
        if self.loss.scaled:
            return components
        return np.ldexp(components / p_root(self.weight, self.loss.power)[:, None], engine.shift)

    def _feature_claim(self, engine: Engine, labels: Labels) -> Claim:
        """Columns x_f ≈ (X Cᵀ)_l C[l, f], from C and X alone; of counts, with sums for X Cᵀ."""
        values = self.components[labels, np.arange(len(labels))].astype(np.float64)
        dual, power = _dual(values, self.loss), self.loss.power
        mapped = _label_sums(engine, LabelSums, dual, labels, len(self.components))
        if self.loss.partial:
            there = _label_sums(engine, LabelPresence, dual * values, labels, len(self.components))
            mapped = over(mapped, there)
        size = np.linalg.norm(mapped, ord=power, axis=1) if self.loss.scaled else (np.sqrt(self.weight) if power == 2 else self.weight)
        size = np.where(size > 0, size, 1.0)
        nonzeros = int(np.count_nonzero(self.components, axis=0).max(initial=0))
        centers = mapped / size[:, None]
        if self.loss.partial:
            centers = having(self.loss.of(engine), Partial, "A component without a number").filled(centers, there > 0)
        return Claim(labels, values * size[labels], centers, nonzeros, self._eps(engine), summed=True)


def p_root(weight: Array, power: int) -> Array:
    """N^{1/p}, and 1 for a component without items, whose row is then its centre."""
    present = np.where(weight > 0, weight, 1.0)
    return np.sqrt(present) if power == 2 else present


def _dual(values: Array, loss: type[Distortion]) -> Array:
    """C^{p−1}: what is multiplied with items to find how much they have of a component; 0 where it has nothing."""
    return values if loss.power == 2 else (values > 0).astype(values.dtype)


def weights(engine: Engine, labels: Any, n_components: int) -> Array:
    """What the items of each component weigh, in the units in which weights were given."""
    sums: Belongings = engine.run(BLIND, ByLabel(n_components), {"labels": engine.hold(labels)}).total
    # The weights of samples are in the unit of the engine; features count, whatever the samples weigh.
    return sums.weight if engine.weight is None else np.ldexp(sums.weight, -2 * engine.weight_shift)


def _feature_values(engine: Engine, loss: Distortion, centers: Array, labels: Labels, weight: Array) -> Array:
    """The one nonzero of each column of C, with C Cᵀ = I, or of counts with rows of unit sum."""
    if not loss.scaled:
        return 1 / p_root(weight, loss.power)[labels]
    values = host(_scales(engine, loss, centers, labels))
    size = np.bincount(labels, np.square(values) if loss.power == 2 else values, len(weight))
    size = np.sqrt(size) if loss.power == 2 else size
    # Zero items have no direction: a component of nothing else spreads evenly, and reconstructs zero.
    even = 1 / p_root(weight, loss.power)
    return np.where(size[labels] > 0, values / np.where(size > 0, size, 1.0)[labels], even[labels])


def _scales(engine: Engine, distortion: Distortion, centers: Array, labels: Any, shift: int = 0) -> Any:
    """The best scale of each item for the center of its component, in float64 and the units of the engine times 2**shift."""
    work = Scales(distortion.measure, centers, shift)
    return doubled(engine).run(None, work, {"labels": engine.hold(labels)}).columns["scale"]


def looked_up(engine: Engine, values: Array, labels: Any) -> Any:
    """values[label] of every item, as a column."""
    return engine.run(BLIND, Renamed(values), {"labels": engine.hold(labels)}).columns["labels"]


def converted(engine: Engine, values: Any, dtype: Any, shift: int = 0) -> Any:
    """The values of all items in another type, times 2**shift, as a column."""
    return engine.run(BLIND, Converted(dtype, shift), {"values": engine.hold(values)}).columns["values"]


def sizes(engine: Engine, labels: Any, n_components: int) -> Labels:
    """How many items each component has."""
    nothing = np.zeros(0, dtype=np.intp)
    found: Sizes = engine.run(BLIND, Relabelled(nothing, nothing, n_components), {"labels": engine.hold(labels)}).total
    return found.sizes


def _label_sums(engine: Engine, work: type[LabelSums] | type[LabelPresence], values: Array, labels: Labels, n_components: int) -> Array:
    """Σ values_i x_i over the items of each component, or Σ values_i over those that have each dimension, shape (n_components, n_dims)."""
    columns = {"labels": engine.hold(labels), "values": engine.hold(values)}
    total: Sums = doubled(engine).run(None, work(n_components, engine.n_dims), columns).total
    return total.sums
