"""How long each number of components lasts as β grows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._typing import Array
from .._validation import check_choice
from ..exceptions import InvalidInputError
from ..track import located
from ..transitions import MIN_PERSISTENCE
from ._display import Display, fitted
from .style import DIM, FAINT, PALETTE, plain_ticks

__all__ = ["PersistenceDisplay"]

TITLE = "How long each number of components lasts"


class PersistenceDisplay(Display):
    """Persistence by number of components, the chosen number in colour.

    Parameters
    ----------
    critical_betas : ndarray of shape (m,)
        The β at which 2, 3, … components first exist.
    persistence : ndarray of shape (m - 1,)
        log(β_{m+1} / β_m) for m = 2, 3, …
    chosen : int, default=0
        The number of components to mark; 0 marks none.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    BifurcationDisplay : The components themselves as β grows.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.datasets import make_nested
    >>> from orthonmf.plot import PersistenceDisplay
    >>> model = ONMF(scaling="none").fit(make_nested(64, 10, random_state=0).X)
    >>> display = PersistenceDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'number of components m'
    """

    def __init__(self, critical_betas: Array, persistence: Array, *, chosen: int = 0) -> None:
        self.critical_betas = np.asarray(critical_betas)
        self.persistence = np.asarray(persistence)
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, kind: str = "bars", title: str | None = TITLE) -> Self:
        """Draw the persistence of a fitted model.

        Parameters
        ----------
        model : ONMF or Pipeline
            Fitted with ``n_components="auto"``, or with a growth factor as ``schedule``: else how long a number lasts is not measured.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        kind : {"bars", "staircase"}, default="bars"
            See `plot`.
        title : str or None

        Returns
        -------
        display : PersistenceDisplay
        """
        model = fitted(model)
        if not located(model):
            raise InvalidInputError(
                f"n_components={model.n_components} was given, so the annealing leaps from split to split and does not measure how long "
                "each number lasts; fit with n_components='auto', or with a growth factor such as schedule=1.05."
            )
        return cls(model.critical_betas_, model.persistence_, chosen=model.n_components_).plot(ax=ax, kind=kind, title=title)

    def plot(self, ax: Any = None, *, kind: str = "bars", title: str | None = TITLE) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        kind : {"bars", "staircase"}, default="bars"
            "bars" shows the persistence against the number of components; "staircase" the number of components against β, with a step at
            every critical value.
        title : str or None

        Returns
        -------
        self : PersistenceDisplay
        """
        check_choice("kind", kind, ("bars", "staircase"))
        if not np.isfinite(self.persistence).any():
            raise InvalidInputError(
                f"There are {len(self.critical_betas)} critical values, from which no persistence follows; expected two or more. Fit with "
                "n_components='auto' and a larger max_components."
            )
        with self._drawing(ax, 7.6, 4.4) as axis:
            draw = self._bars if kind == "bars" else self._staircase
            draw(axis)
            axis.set_title(title, pad=24 if kind == "bars" else None)
        return self

    def _bars(self, axis: Any) -> None:
        finite = np.isfinite(self.persistence)
        number, length = np.arange(2, len(self.persistence) + 2)[finite], self.persistence[finite]
        hues = self._hues(number, length)
        axis.bar(number, length, color=[hues.get(int(m), FAINT) for m in number], width=0.75)
        self._notes(axis, {m: float(length[number == m][0]) for m in hues}, hues)
        near = 2 * length.max() >= MIN_PERSISTENCE
        if near:
            axis.axhline(MIN_PERSISTENCE, color=DIM, ls="--", lw=1.2, zorder=0)
            axis.text(1, MIN_PERSISTENCE, " a factor 2", transform=axis.get_yaxis_transform(), ha="left", va="center", color=DIM)
        axis.set_xticks(number[:: -(-len(number) // 16)])
        axis.set(xlabel="number of components m", ylabel=r"persistence  $\log\,\beta_{m+1}/\beta_m$")
        axis.set_ylim(0, 1.08 * max(length.max(), MIN_PERSISTENCE if near else 0))

    def _hues(self, number: Any, length: Any) -> dict[int, str]:
        """Colours of the chosen number and of a second one that lasts."""
        hues = {self.chosen: PALETTE[0]} if self.chosen in number else {}
        others = np.where(number == self.chosen, -np.inf, length)
        return hues | ({int(number[others.argmax()]): PALETTE[5]} if others.max() >= MIN_PERSISTENCE else {})

    @staticmethod
    def _notes(axis: Any, lengths: dict[int, float], hues: dict[int, str]) -> None:
        """What the coloured bars say, above the picture: beside them it would cover other bars."""
        for place, (m, length) in enumerate(lengths.items()):
            axis.text(
                0.5 * place,
                1.02,
                f"{m} components: a factor {np.exp(length):.3g}",
                transform=axis.transAxes,
                color=hues[m],
                fontweight="bold",
            )

    def _staircase(self, axis: Any) -> None:
        critical = self.critical_betas[np.isfinite(self.critical_betas)]
        number = np.arange(1, len(critical) + 2)
        edges = np.concatenate([[critical[0] / 2], critical, [critical[-1] * 1.3]])
        axis.stairs(number, edges, baseline=None, color=FAINT, lw=2)
        if self.chosen in number[:-1]:
            axis.plot(edges[self.chosen - 1 : self.chosen + 1], [self.chosen] * 2, color=PALETTE[0], lw=5, solid_capstyle="butt")
            middle = np.sqrt(edges[self.chosen - 1] * edges[self.chosen])
            axis.annotate(
                f"{self.chosen} components",
                (middle, self.chosen),
                (0, 6),
                textcoords="offset points",
                ha="center",
                va="bottom",
                color=PALETTE[0],
                fontweight="bold",
            )
        axis.plot(critical, number[1:], "o", color=PALETTE[5], ms=4, label="critical values")
        axis.set(xscale="log", xlim=(edges[0], edges[-1]), xlabel="inverse temperature β", ylabel="number of components")
        axis.legend(loc="upper left")
        plain_ticks(axis.xaxis)
