"""How many items each component has, against its bounds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._common.sizes import Sizes
from .._common.typing import Array
from ._display import Display, fitted
from .style import INK, PALETTE

__all__ = ["SizesDisplay"]

TITLE = "Sizes of the components"


class SizesDisplay(Display):
    """Sizes of the components, with the bounds that were set on them.

    Parameters
    ----------
    sizes : ndarray of shape (n_components,)
        Items in each component, or the sums of their sizes.
    lower, upper : ndarray of shape (n_components,) or None, default=None
        Bounds.
    of : str, default="items"
        What is counted.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orthonmf import ONMF
    >>> from orthonmf.plot import SizesDisplay
    >>> model = ONMF(4, capacity=30).fit(load_digits().data[:100])
    >>> display = SizesDisplay.from_estimator(model)
    >>> display.upper
    array([30, 30, 30, 30])
    """

    def __init__(self, sizes: Array, *, lower: Array | None = None, upper: Array | None = None, of: str = "items") -> None:
        self.sizes = np.asarray(sizes)
        self.lower = lower
        self.upper = upper
        self.of = of

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, title: str | None = TITLE) -> Self:
        """Draw the sizes of a fitted model.

        Parameters
        ----------
        model : ONMF or Pipeline
            Fitted.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        title : str or None

        Returns
        -------
        display : SizesDisplay
        """
        sizes = Sizes.of_model(fitted(model))
        return cls(sizes.values, lower=sizes.lower, upper=sizes.upper, of=sizes.of).plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = TITLE) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        title : str or None

        Returns
        -------
        self : SizesDisplay
        """
        number = np.arange(len(self.sizes))
        with self._drawing(ax, float(np.clip(0.42 * len(number) + 2.6, 5.0, 12.0)), 4.2) as axis:
            axis.bar(number, self.sizes, color=PALETTE[0], width=0.72)
            for bound, color, name in ((self.upper, PALETTE[5], "capacity"), (self.lower, INK, "least size")):
                if bound is not None:
                    axis.hlines(bound, number - 0.46, number + 0.46, color=color, lw=2.2, label=name)
            if len(number) <= 20:
                self._numbers(axis, number)
            axis.set_xticks(number[:: -(-len(number) // 20)])
            axis.tick_params(axis="x", length=0)
            axis.set(xlabel="component", ylabel=self.of, xlim=(-0.6, len(number) - 0.4))
            axis.set_title(title)
            if self.upper is not None or self.lower is not None:
                axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)
        return self

    def _numbers(self, axis: Any, number: Any) -> None:
        """Each size inside its bar, or above where the bar is short."""
        top = float(max(self.sizes.max(), 1))
        for x, size in zip(number, self.sizes, strict=True):
            short = size < 0.12 * top
            axis.text(
                x,
                size + (0.01 if short else -0.02) * top,
                f"{size:g}",
                ha="center",
                va="bottom" if short else "top",
                color=INK if short else "white",
                fontsize=11 if len(number) <= 12 else 9,
            )
