"""What speaks for each number of components."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from ..search.number.curve import coarser
from ._display import Display, fitted
from .style import FAINT, PALETTE

__all__ = ["NumberDisplay"]

TITLE = "How many components, and how sure"


class NumberDisplay(Display):
    """BIC and the agreement of halves of the items against the number of components, one above the other.

    Parameters
    ----------
    bic : ndarray of shape (m,)
        Of 1, 2, … components; higher is better.
    agreement : ndarray of shape (m,)
        Of 1, 2, … components; 1 where all halves give the same partition.
    chosen : int, default=0
        The number of components to mark; 0 marks none.
    levels : sequence of int, default=()
        Coarser numbers to mark.
    note : str, default=""
        A line above the panels.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axis that was given, blank, in whose place the two are.
    axes_ : ndarray of shape (2,)
        The axes of the two panels.
    figure_ : matplotlib Figure

    See Also
    --------
    PersistenceDisplay : How long each number of components lasts.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.datasets import make_nested
    >>> from orthonmf.plot import NumberDisplay
    >>> model = ONMF(scaling="none").fit(make_nested(64, 10, random_state=0).X)
    >>> display = NumberDisplay.from_estimator(model)
    >>> [axis.get_ylabel() for axis in display.axes_]
    ['BIC, less the best', 'agreement']
    """

    axes_: Any

    def __init__(self, bic: Array, agreement: Array, *, chosen: int = 0, levels: Any = (), note: str = "") -> None:
        self.bic = np.asarray(bic)
        self.agreement = np.asarray(agreement)
        self.chosen = chosen
        self.levels = tuple(levels)
        self.note = note

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, title: str | None = TITLE) -> Self:
        """Draw what a fitted model knows of each number.

        Parameters
        ----------
        model : ONMF or Pipeline
            Fitted with ``n_components="auto"``.
        ax : matplotlib Axes or None, default=None
            Whose place the panels take; None makes a figure.
        title : str or None

        Returns
        -------
        display : NumberDisplay
        """
        model = fitted(model)
        if not np.isfinite(model.bic_).any():
            asked = model.n_components
            raise InvalidInputError(
                "Nothing rises above noise, so that no numbers of components were compared."
                if asked == "auto"
                else f"n_components={asked!r} does not compare numbers of components by their likelihood; fit with n_components='auto'."
            )
        chosen = int(model.levels_[0])
        levels = [m for m in coarser(model) if m != chosen]
        return cls(model.bic_, model.agreement_, chosen=chosen, levels=levels, note=_note(model, chosen)).plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = TITLE) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Whose place the panels take; None makes a figure.
        title : str or None

        Returns
        -------
        self : NumberDisplay
        """
        with self._drawing(ax, 7.6, 5.2) as axis:
            self.axes_ = self._panels(axis, (1.3, 1))
            above, below = self.axes_
            self._line(above, self.bic - np.nanmax(self.bic))
            self._line(below, self.agreement)
            above.set_title(title, pad=24 if self.note else None)
            above.text(0, 1.03, self.note, transform=above.transAxes, color=PALETTE[0], fontweight="bold")
            above.set_ylabel("BIC, less the best")
            below.set(ylabel="agreement", ylim=(0, 1.05), xlabel="number of components m")
            self.figure_.align_ylabels(self.axes_)
        return self

    def _line(self, axis: Any, values: Array) -> None:
        number = np.arange(1, len(values) + 1)
        axis.plot(number, values, "o-", color=FAINT, ms=4, lw=1.5)
        for marked, hue in (((self.chosen,), PALETTE[0]), (self.levels, PALETTE[5])):
            here = np.isin(number, marked)
            axis.plot(number[here], values[here], "o", color=hue, ms=8)
        for m in (self.chosen, *self.levels):
            axis.axvline(m, color=FAINT, lw=0.8, zorder=0)
        axis.set_xticks(number[:: -(-len(number) // 16)])


def _note(model: Any, chosen: int) -> str:
    """The answer in a line."""
    if chosen == 1:
        return "nothing stands out"
    p, agreement = model.p_values_[chosen - 1], model.agreement_[chosen - 1]
    words = [f"{chosen} components"]
    words += [f"one more: p = {p:.2f}"] if np.isfinite(p) else []
    words += [f"halves agree to {agreement:.2f}"] if np.isfinite(agreement) else []
    return "; ".join(words)
