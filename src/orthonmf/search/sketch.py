"""Wide items in few dimensions: the leading directions of all, in which components are sought before all dimensions are seen.

The part of an item beside these directions adds the same to its distance from every centre within them, whether components are means or
lines. So the items' coordinates alone make a problem of the same kind, whose cost differs by a constant; and k components at rest span no
more than k directions. Noise of many dimensions, of which every direction carries little, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from .._common.typing import Array
from ..distortion.base import Distortion
from ..engines.base import Engine, sample
from ..engines.layout import in_memory
from ..passes.raw import Coordinates, Subspace
from .budget import BUDGET


@dataclass(frozen=True)
class Sketch:
    """Items as coordinates in the leading directions of all.

    Attributes
    ----------
    engine : Engine
        The items there.
    distortion : Distortion
        The loss in all dimensions.
    about : ndarray of shape (n_dims,)
        The point from which the coordinates are taken.
    directions : ndarray of shape (n_directions, n_dims)
        Orthonormal.
    """

    engine: Engine
    distortion: Distortion
    about: Array
    directions: Array

    @classmethod
    def of(cls, engine: Engine, distortion: Distortion, n_components: int, seed: int) -> Sketch:
        """The items of an engine in a few more directions than components, found by subspace iteration."""
        about = np.zeros(engine.n_dims) if distortion.scaled else distortion.ref
        vectors = np.random.default_rng(seed).standard_normal((n_directions(n_components), engine.n_dims))
        few = _few(engine, seed)
        for seen in [few] * (BUDGET.sketch_passes - 1) + [engine]:
            vectors = seen.run(None, Subspace(_levelled(vectors), about)).total.sums
        directions = _orthonormal(vectors)
        values = engine.at_hand(engine.run(None, Coordinates(directions, about)).columns["coordinates"])
        small = in_memory(engine, values, engine.weight)
        small.given_dtype = values.dtype
        return cls(small, distortion, about, directions)

    def lifted(self, centers: Array) -> Array:
        """Centres, given as coordinates, in the frame of all dimensions."""
        return self.distortion.to_frame(centers @ self.directions + self.about)

    def seen(self, centers: Array) -> Array:
        """The coordinates of centres in the frame of all dimensions."""
        return (self.distortion.to_data(centers) - self.about) @ self.directions.T


def _few(engine: Engine, seed: int) -> Engine:
    """Items that tell the leading directions well enough for the last pass, of all items, to find them."""
    few = BUDGET.sketch_items
    return sample(engine, few, seed) if engine.n_items > few and few * engine.row_width <= BUDGET.sketch_numbers else engine


def n_directions(n_components: int) -> int:
    """Of a sketch."""
    return n_components + BUDGET.sketch_directions


def wide(engine: Engine, distortion: Distortion, n_components: int) -> bool:
    """Whether items may be sketched, and have so many more dimensions than components that it is worth its passes."""
    return distortion.turnable and engine.n_dims >= max(BUDGET.sketch_ratio * n_directions(n_components), BUDGET.sketch_dims)


def _levelled(vectors: Array) -> Array:
    """Other vectors with the same span, about as long as each other and far from parallel: in a quarter of the time of orthonormal ones."""
    gram = vectors @ vectors.T
    # What is added keeps the Cholesky factor of a singular matrix from failing (Fukaya et al., 2020, doi:10.1137/18M1218212).
    gram.ravel()[:: len(gram) + 1] += 11 * sum(vectors.shape) * float(np.finfo(float).eps) * np.trace(gram)
    levelled: Array = solve_triangular(cholesky(gram, lower=True), vectors, lower=True)
    return levelled


def _orthonormal(vectors: Array) -> Array:
    return np.ascontiguousarray(np.linalg.qr(vectors.T)[0].T)
