"""Fewer items than dimensions, in coordinates of their own span.

Only inner products enter a fit. So n items of p > n numbers may be held as n items of n + 1: a pass then costs as if there were no more
dimensions than items. The basis is that of the items as the distortion sees them, about its reference, so that nothing cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from .._common.typing import Array
from ..distortion.base import Distortion
from ..engines.base import Engine
from ..engines.layout import in_memory
from ..passes.raw import Keys
from .budget import BUDGET


@dataclass(frozen=True)
class Span:
    """Items in coordinates of their span.

    Attributes
    ----------
    engine : Engine
        The items; the first coordinate is along the reference.
    distortion : Distortion
        The same loss in these coordinates.
    basis : _Basis
        Of what the items have beside the reference.
    """

    engine: Engine
    distortion: Distortion
    basis: _Basis

    @classmethod
    def of(cls, engine: Engine, distortion: Distortion) -> Span:
        """The span of the items of an engine, seen in the frame of a distortion.

        Equal items get equal coordinates, and their order changes nothing.
        """
        keys = engine.run(None, Keys()).columns["key"]
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        n_lead = distortion.origin.shape[1] - engine.n_dims
        lead, rest, length = np.empty((len(first), n_lead)), np.empty((len(first), engine.n_dims)), np.empty(len(first))
        height = max(BUDGET.span_bytes // (8 * engine.n_dims), 1)
        for start in range(0, len(first), height):
            where = slice(start, start + height)
            few = engine.select(first[where])
            items = distortion.items(few.rows(slice(0, few.n_items)), np.ones(few.n_items))
            points = distortion.points(items, np.arange(few.n_items))
            # Of weight one, an item of a line weighs its squared length, any other one.
            lead[where], rest[where], length[where] = points[:, :n_lead], points[:, n_lead:], np.sqrt(items.weight)
        basis, coordinates = _Basis.of(rest)
        inside = type(distortion)(np.linalg.norm(distortion.ref) * np.eye(1, len(first) + 1)[0])
        unit = inside.to_data(np.column_stack([lead, np.zeros(len(first)), coordinates]))
        narrow = in_memory(engine, (length[:, None] * unit)[group], engine.weight)
        narrow.size = engine.size
        return cls(narrow, inside, basis)

    def lifted(self, centers: Array) -> Array:
        """Centres in the frame of the distortion that was given."""
        n_lead = centers.shape[1] - self.engine.n_dims
        return np.column_stack([centers[:, :n_lead], self.basis.lifted(centers[:, n_lead + 1 :])])

    def lowered(self, centers: Array) -> Array:
        """Centres in the frame that was given, in coordinates of the span: what they have beside it is left out."""
        n_lead = centers.shape[1] - len(self.basis.reflections)
        return np.column_stack([centers[:, :n_lead], np.zeros(len(centers)), self.basis.lowered(centers[:, n_lead:])])


def narrow(engine: Engine, distortion: Distortion) -> bool:
    """Whether items may be held in their span, take fewer numbers there, and it is soon found, also for the time that is left."""
    work = float(engine.n_items) ** 2 * engine.n_dims
    soon = work <= min(BUDGET.span_work, BUDGET.span_rate * engine.team.left())
    return distortion.turnable and engine.n_items <= BUDGET.span_items and engine.n_items + 1 < engine.row_width and soon


@dataclass(frozen=True)
class _Basis:
    """An orthonormal basis as the reflections of a QR decomposition, never formed.

    Attributes
    ----------
    reflections : ndarray of shape (n_dims, rank)
    factors : ndarray of shape (rank,)
    """

    reflections: Array
    factors: Array

    @classmethod
    def of(cls, rows: Array) -> tuple[_Basis, Array]:
        """A basis of the span of ``rows`` (n, n_dims), n ≤ n_dims, which it overwrites, and their coordinates (n, n)."""
        size = int(lapack.dgeqrf_lwork(*rows.T.shape)[0])
        reflections, factors, _, _ = lapack.dgeqrf(rows.T, lwork=size, overwrite_a=1)
        return cls(reflections, factors), np.triu(reflections[: len(rows)]).T.copy()

    def lifted(self, coordinates: Array) -> Array:
        """Points (m, rank) of the span in all dimensions, (m, n_dims)."""
        padded: Any = np.zeros((len(self.reflections), len(coordinates)), order="F")
        padded[: coordinates.shape[1]] = coordinates.T
        return self._turned("N", padded)

    def lowered(self, points: Array) -> Array:
        """Coordinates (m, rank) of what points (m, n_dims) have in the span."""
        return self._turned("T", np.array(points.T, order="F"))[:, : len(self.factors)]

    def _turned(self, way: str, columns: Any) -> Array:
        """The rows that the basis ("N") or its transpose ("T") makes of columns, which are overwritten."""
        size = int(lapack.dormqr("L", way, self.reflections, self.factors, columns, -1)[1][0])
        return np.ascontiguousarray(lapack.dormqr("L", way, self.reflections, self.factors, columns, size, overwrite_c=1)[0].T)
