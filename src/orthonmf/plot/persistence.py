"""How long each number of components lasts as β grows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._common.typing import Array
from .._common.validation import check_choice
from ..exceptions import InvalidInputError
from ..model.track import how_to_locate, located
from ..search.number.curve import chance, coarser, stands_out
from ..search.transitions import MIN_PERSISTENCE
from ._display import Display, fitted
from .style import DIM, FAINT, PALETTE, plain_ticks

__all__ = ["PersistenceDisplay"]

TITLE = "How long each number of components lasts"


class PersistenceDisplay(Display):
    """Persistence by number of components: in colour those that stand out, with a line at what chance reaches.

    Parameters
    ----------
    critical_betas : ndarray of shape (m,)
        The β at which 2, 3, … components first exist.
    persistence : ndarray of shape (m - 1,)
        log(β_{m+1} / β_m) for m = 2, 3, …
    chosen : int, default=0
        The number of components to mark; 0 marks none.
    levels : sequence of int, default=()
        Coarser numbers to mark.
    chance : float, default=nan
        The longest persistence that chance reaches, drawn as a line.
    note : str, default=""
        What to say where no number is marked.

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

    def __init__(
        self, critical_betas: Array, persistence: Array, *, chosen: int = 0, levels: Any = (), chance: float = np.nan, note: str = ""
    ) -> None:
        self.critical_betas = np.asarray(critical_betas)
        self.persistence = np.asarray(persistence)
        self.chosen = chosen
        self.levels = tuple(levels)
        self.chance = chance
        self.note = note

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, kind: str = "bars", title: str | None = TITLE) -> Self:
        """Draw the persistence of a fitted model.

        Parameters
        ----------
        model : ONMF or Pipeline
            Fitted with ``n_components="auto"`` or "persistence", or with a growth factor as ``schedule``: else how long a number lasts is
            not measured. Of "auto", the line shows how long the longest number beyond those that stand out lasts.
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
            raise InvalidInputError(how_to_locate(model))
        display = cls(
            model.critical_betas_,
            model.persistence_,
            chosen=model.n_components_,
            levels=coarser(model),
            chance=chance(model),
            note="" if stands_out(model) else "nothing stands out",
        )
        return display.plot(ax=ax, kind=kind, title=title)

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
        hues = {**dict.fromkeys(self.levels, PALETTE[5]), self.chosen: PALETTE[0]}
        axis.bar(number, length, color=[hues.get(int(m), FAINT) for m in number], width=0.75)
        self._notes(axis, {m: float(length[number == m][0]) for m in (self.chosen, *self.levels) if m in number}, hues)
        if np.isfinite(self.chance):
            axis.axhline(self.chance, color=DIM, ls="--", lw=1.2, zorder=0)
            axis.text(1, self.chance, " chance", transform=axis.get_yaxis_transform(), ha="left", va="center", color=DIM)
        axis.set_xticks(number[:: -(-len(number) // 16)])
        axis.set(xlabel="number of components m", ylabel=r"persistence  $\log\,\beta_{m+1}/\beta_m$")
        # Bars that chance alone made stay low.
        axis.set_ylim(0, 1.08 * max(length.max(), MIN_PERSISTENCE, 2 * self.chance if self.note else 0.0))

    def _notes(self, axis: Any, lengths: dict[int, float], hues: dict[int, str]) -> None:
        """What the coloured bars say, above the picture: beside them it would cover other bars. Of the levels, the longest."""
        shown = [self.chosen] if self.chosen in lengths else []
        shown += sorted((m for m in lengths if m != self.chosen), key=lambda m: -lengths[m])[:1]
        for place, m in enumerate(shown):
            text = f"{m} components: a factor {np.exp(lengths[m]):.3g}"
            axis.text(0.5 * place, 1.02, text, transform=axis.transAxes, color=hues[m], fontweight="bold")
        if self.note:
            axis.text(0, 1.02, self.note, transform=axis.transAxes, color=DIM)

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
