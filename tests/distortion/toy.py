"""A third loss, in one file: the squared Euclidean distance with a weight for every feature.

Registered under a name, it is annealed, refined and bounded like the others; nothing else knows of it.
"""

from dataclasses import dataclass

import numpy as np

from orthonmf.distortion.base import Distortion, Items, Pairs, each_center
from orthonmf.distortion.euclidean import Euclidean
from orthonmf.engines.base import median

ROOTS = np.array([1.0, 3.0, 0.5, 2.0])


@dataclass(frozen=True)
class Stretched:
    """Rows whose features are multiplied by the roots of their weights."""

    rows: object

    def dot(self, vectors):
        return self.rows.dot(vectors * ROOTS)

    def own(self, vectors, labels):
        return self.rows.own(vectors * ROOTS, labels)

    def tdot(self, weights):
        return self.rows.tdot(weights) * ROOTS

    def sqnorms(self):
        return np.square(self.take(slice(None))).sum(axis=1)

    def take(self, index):
        return self.rows.take(index) * ROOTS


class Weighted(Euclidean):
    """d = Σ a_f (x_f − y_f)², all of the Euclidean loss in stretched coordinates; it depends on the features, not on inner products."""

    turnable = False

    def items(self, raw, weight):
        rows = Stretched(raw.framed(None, None, self.ref))
        return Items(rows, weight, rows.sqnorms(), weight, self)

    def to_data(self, centers):
        return centers / ROOTS + self.ref

    def to_frame(self, centers):
        return (centers - self.ref) * ROOTS


class Bare(Distortion):
    """The same without any ability beyond an assignment: eight methods."""

    @classmethod
    def of(cls, engine):
        return cls(median(engine))

    def items(self, raw, weight):
        return Weighted(self.ref).items(raw, weight)

    def points(self, items, index):
        return np.atleast_2d(items.rows.take(index))

    def to_data(self, centers):
        return centers / ROOTS + self.ref

    def to_frame(self, centers):
        return (centers - self.ref) * ROOTS

    def pairs(self, items, centers, labels=None):
        inner = items.products(centers, labels)
        return Pairs(items.sq - 2 * inner + each_center(np.square(centers).sum(axis=1), labels), inner)

    def sums(self, items, resp, inner):
        return items.rows.tdot(resp)

    def center(self, sums, mass):
        return sums / mass[:, None]
