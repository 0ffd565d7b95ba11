"""What all displays share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..estimator import ONMF
from .style import axis_for, styled


def fitted(model: Any) -> ONMF:
    """The factorisation, which may be the last step of a pipeline; an error where it is not fitted."""
    factors: ONMF = model[-1] if isinstance(model, Pipeline) else model
    check_is_fitted(factors)
    return factors


class Display:
    """A picture of a model: data that were prepared, and the axis on which they were drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    ax_: Any
    figure_: Any

    @contextmanager
    def _drawing(self, ax: Any, width: float, height: float) -> Iterator[Any]:
        """The axis that was given, or a new one of that size in inches, while the common style holds."""
        with styled():
            self.ax_ = axis_for(ax, width, height)
            self.figure_ = self.ax_.figure
            self.ax_.spines[["top", "right"]].set_visible(False)
            yield self.ax_

    @staticmethod
    def _panels(axis: Any, heights: tuple[float, ...]) -> Any:
        """Panels one above the other in the place of an axis, which is blanked; one that is in no grid of subplots has only its edges."""
        axis.set_axis_off()
        rows: dict[str, Any] = {"nrows": len(heights), "ncols": 1, "height_ratios": heights}
        place = axis.get_subplotspec()
        if place is not None:
            return place.subgridspec(**rows).subplots(sharex=True)
        edges = axis.get_position()
        grid = axis.get_figure().add_gridspec(**rows, left=edges.x0, right=edges.x1, bottom=edges.y0, top=edges.y1)
        return grid.subplots(sharex=True)
