"""The components parting as β grows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from ..model.track import Track, criticals, drawable, how_to_locate, widest_view
from ..search.number.curve import second
from ._display import Display, fitted
from .style import FAINT, INK, PALETTE, plain_ticks

__all__ = ["BifurcationDisplay"]

TITLE = "Components part as β grows"


class BifurcationDisplay(Display):
    """The centres, seen along one direction, against β: every fork is a phase transition.

    Parameters
    ----------
    beta : ndarray of shape (n_temperatures,)
        Increasing.
    positions : ndarray of shape (n_components, n_temperatures)
        Where each component, or its ancestor, was.
    branches : ndarray of shape (n_components, n_temperatures)
        Which centre that is: components with the same number have not parted yet.
    groups : array-like of shape (n_components,) or None, default=None
        Components of one group share a colour; by default each has its own, in turn.
    spans : dict of int to (float, float) or None, default=None
        Numbers of components and the range of β over which they last, to be shaded and named.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    PersistenceDisplay : How long each number of components lasts.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.datasets import make_nested
    >>> from orthonmf.plot import BifurcationDisplay
    >>> model = ONMF(scaling="none", schedule=1.2).fit(make_nested(64, 10, random_state=0).X)
    >>> display = BifurcationDisplay.from_estimator(model)
    >>> len(display.positions)
    16
    """

    def __init__(
        self, beta: Array, positions: Array, branches: Array, *, groups: Any = None, spans: dict[int, tuple[float, float]] | None = None
    ) -> None:
        self.beta = np.asarray(beta)
        self.positions = np.asarray(positions)
        self.branches = np.asarray(branches)
        self.groups = np.arange(len(self.positions)) if groups is None else np.asarray(groups)
        self.spans = spans or {}

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, n_components: int | None = None, title: str | None = TITLE) -> Self:
        """Draw the annealing of a fitted model.

        Parameters
        ----------
        model : ONMF or Pipeline
            Fitted with ``n_components="auto"``, with a growth factor as ``schedule``, or under bounds. With ``schedule=1.05`` the branches
            are smooth; the adaptive schedule looks only where something happens.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        n_components : int or None, default=None
            Follow the annealing up to this number; None takes that of the model.
        title : str or None

        Returns
        -------
        display : BifurcationDisplay
        """
        model = fitted(model)
        if not drawable(model):
            raise InvalidInputError(how_to_locate(model))
        track = Track.of(model.history_)
        if len(track.beta) < 2:
            raise InvalidInputError(
                f"The history holds {len(track.beta)} temperatures; expected two or more. Fit items that differ, with schedule=1.05."
            )
        number = model.n_components_ if n_components is None else n_components
        end = track.last(number)
        view = widest_view(track.projection[end])
        branches = track.branches(end)
        spans = _spans(model, len(branches))
        many = len(branches) > len(PALETTE)  # too many for a colour each
        groups = branches[:, track.last(min(spans))] if spans and many else None
        shown = slice(track.start(end), end + 1)
        display = cls(track.beta[shown], (track.paths(end) @ view)[:, shown], branches[:, shown], groups=groups, spans=spans)
        return display.plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = TITLE) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        title : str or None

        Returns
        -------
        self : BifurcationDisplay
        """
        with self._drawing(ax, 8.4, 5.2) as axis:
            self._shade(axis)
            self._lines(axis)
            axis.set_title(title, pad=32 if self.spans else None)
            axis.set(xscale="log", xlim=self._range(), xlabel="inverse temperature β", ylabel="centres, along one direction", yticks=[])
            plain_ticks(axis.xaxis)
        return self

    def _lines(self, axis: Any) -> None:
        alone = np.array([len(np.unique(self.branches[:, i])) == 1 for i in range(len(self.beta))])
        hue = {group: PALETTE[i % len(PALETTE)] for i, group in enumerate(dict.fromkeys(self.groups.tolist()))}
        for position, group in zip(self.positions, self.groups.tolist(), strict=True):
            axis.plot(self.beta, position, color=hue[group], lw=1.8)
        axis.plot(self.beta[alone], self.positions[0, alone], color=INK, lw=1.8)
        forks = self._forks()
        axis.plot(*forks, "o", color="white", markeredgecolor=INK, ms=4.5, zorder=3)

    def _forks(self) -> tuple[list[float], list[float]]:
        """The last place of every centre that parts at the next temperature."""
        where: list[tuple[float, float]] = []
        for i in range(len(self.beta) - 1):
            for centre in np.unique(self.branches[:, i]):
                members = self.branches[:, i] == centre
                if len(np.unique(self.branches[members, i + 1])) > 1:
                    where.append((float(self.beta[i]), float(self.positions[members, i][0])))
        return [x for x, _ in where], [y for _, y in where]

    def _shade(self, axis: Any) -> None:
        for number, (low, high) in self.spans.items():
            axis.axvspan(low, high, facecolor=FAINT, alpha=0.25, edgecolor="white", lw=2)
            axis.text(np.sqrt(low * high), 1.015, f"{number} components", transform=axis.get_xaxis_transform(), ha="center")

    def _range(self) -> tuple[float, float]:
        """To the end of the last shade."""
        return float(self.beta[0]), float(max([self.beta[-1], *(high for _, high in self.spans.values())]))


def _spans(model: Any, most: int) -> dict[int, tuple[float, float]]:
    """The model's number of components and a coarser one that stands out, up to ``most``, where it is known over which β they last."""
    critical = criticals(model)
    numbers = sorted({model.n_components_, second(model) or model.n_components_})
    return {m: (float(critical[m - 2]), float(critical[m - 1])) for m in numbers if 2 <= m <= min(most, len(critical))}
