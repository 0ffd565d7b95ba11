"""How noise lies about a mean: as a ball, or, of counts, as the mean itself says.

A count varies as its mean. So counts x of mean μ, seen as x / √g, have the covariance diag(μ / g): one only where μ is as g, the mean of
all; and profiles, which add up to one, have diag(μ / g) − (μ / √g)(μ / √g)ᵀ per count. In directions V, orthonormal, a component at y,
which has the mean μ / √g = a + V y, has the noise

    S(y) = Vᵀ diag(a / √g) V + Σ_c y_c Vᵀ diag(V_c / √g) V,   for profiles less (y + Vᵀ a)(y + Vᵀ a)ᵀ,

which in the directions that tell components apart is 0.5 to 2 where they differ by as much: as balls they would need several each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..._common.typing import Array

# Noise varies at least this much in every direction: a mean that is estimated may say less, even nothing.
LEAST_SHAPE = 0.1


class Shape(Protocol):
    """The covariance of noise about a mean, up to a factor."""

    def rounded(self, points: Array, center: Array) -> tuple[Array, float]:
        """Points (n, n_dims) in coordinates in which the noise about a centre is a ball, and the log determinant of its covariance."""

    def seen(self, points: Array, centers: Array) -> tuple[Array, Array]:
        """Squared distances to centres there, (n, m), and the log determinants (m,)."""


@dataclass(frozen=True)
class Ball:
    """The same in every direction, everywhere."""

    def rounded(self, points: Array, center: Array) -> tuple[Array, float]:
        return points, 0.0

    def seen(self, points: Array, centers: Array) -> tuple[Array, Array]:
        return squared_distances(points, centers), np.zeros(len(centers))


BALL = Ball()


@dataclass(frozen=True)
class Counted:
    """That of standardised counts.

    Attributes
    ----------
    still : ndarray of shape (n_dims, n_dims)
        S(0), but for what profiles have less.
    slope : ndarray of shape (n_dims, n_dims, n_dims)
        Σ_c y_c slope[c] is what it has more at y.
    along : ndarray of shape (n_dims,) or None
        Vᵀ a of profiles.
    """

    still: Array
    slope: Array
    along: Array | None

    @classmethod
    def of(cls, directions: Array, origin: Array, root: Array, *, profiles: bool) -> Counted:
        """Along ``directions`` (n_directions, n_features), about ``origin`` a; ``root`` is √g."""

        def spread(ratio: Array) -> Any:
            return (directions * ratio) @ directions.T

        along = directions @ origin if profiles else None
        return cls(spread(origin / root), np.stack([spread(each / root) for each in directions]), along)

    def rounded(self, points: Array, center: Array) -> tuple[Array, float]:
        covariance = self.still + np.einsum("c,cab->ab", center, self.slope)
        if self.along is not None:
            covariance = covariance - np.multiply.outer(center + self.along, center + self.along)
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, LEAST_SHAPE)
        return points @ (vectors / np.sqrt(values)), float(np.log(values).sum())

    def seen(self, points: Array, centers: Array) -> tuple[Array, Array]:
        found, logs = np.empty((len(points), len(centers))), np.empty(len(centers))
        for j, center in enumerate(centers):
            rounded, logs[j] = self.rounded(points - center, center)
            found[:, j] = np.einsum("ij,ij->i", rounded, rounded)
        return found, logs


def squared_distances(points: Array, centers: Array) -> Array:
    """‖x_i − y_j‖², (n, m)."""
    sq = np.einsum("ij,ij->i", points, points)[:, None] + np.einsum("ij,ij->i", centers, centers)
    return np.maximum(sq - 2 * points @ centers.T, 0.0)
