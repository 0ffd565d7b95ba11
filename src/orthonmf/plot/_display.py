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
