"""Where a search is asked to begin, beside where it begins of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Distortion
from ..engines.base import Engine
from .partition import centered
from .span import Span


@dataclass(frozen=True)
class Start:
    """Centres, or labels of all items, one of which is None.

    Attributes
    ----------
    centers : ndarray of shape (n_components, n_dims) or None
        In the coordinates and the units of the engine.
    labels : ndarray of shape (n_items,) or None
        From 0, without gaps.
    """

    centers: Array | None = None
    labels: Labels | None = None

    @property
    def n_components(self) -> int:
        """How many components."""
        return len(cast(Array, self.centers)) if self.labels is None else int(self.labels.max()) + 1

    def framed(self, engine: Engine, distortion: Distortion, given: Distortion, span: Span | None) -> Array:
        """The centres in the frame of ``distortion``, which sees the items of ``engine``; of labels the best ones.

        ``given`` is the loss in the coordinates of X, and ``span`` leads from there to the items of the engine where they have others. No
        item is farther from a centre in the span than from the centre itself.
        """
        if self.labels is not None:
            return centered(engine, distortion, engine.hold(self.labels), np.repeat(distortion.origin, self.n_components, axis=0)).centers
        centers = given.to_frame(cast(Array, self.centers))
        return centers if span is None else distortion.center(span.lowered(centers), np.ones(len(centers)))
