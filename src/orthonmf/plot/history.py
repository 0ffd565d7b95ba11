"""What the annealing did at each temperature."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from ..model.track import Track, criticals
from ._display import Display, fitted
from .style import FAINT, PALETTE, plain_ticks

__all__ = ["HistoryDisplay"]

TITLE = "The annealing, temperature by temperature"


class HistoryDisplay(Display):
    """Free energy and distortion, entropy, and the number of components against β, one above the other.

    Parameters
    ----------
    beta : ndarray of shape (n_temperatures,)
        Increasing.
    free_energy, distortion, entropy : ndarray of shape (n_temperatures,)
        J, D and the entropy of the responsibilities, per unit weight.
    n_components : ndarray of shape (n_temperatures,)
    critical_betas : ndarray of shape (m,) or None, default=None
        Where components first exist, drawn as faint lines.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axis that was given, blank, in whose place the three are.
    axes_ : ndarray of shape (3,)
        The axes of the three panels.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.datasets import make_nested
    >>> from orthonmf.plot import HistoryDisplay
    >>> model = ONMF(scaling="none", schedule=1.2).fit(make_nested(64, 10, random_state=0).X)
    >>> display = HistoryDisplay.from_estimator(model)
    >>> [axis.get_ylabel() for axis in display.axes_]
    ['per item', 'entropy', 'components']
    """

    axes_: Any

    def __init__(
        self,
        beta: Array,
        free_energy: Array,
        distortion: Array,
        entropy: Array,
        n_components: Array,
        *,
        critical_betas: Array | None = None,
    ) -> None:
        self.beta = np.asarray(beta)
        self.free_energy = np.asarray(free_energy)
        self.distortion = np.asarray(distortion)
        self.entropy = np.asarray(entropy)
        self.n_components = np.asarray(n_components)
        self.critical_betas = np.zeros(0) if critical_betas is None else np.asarray(critical_betas)

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, title: str | None = TITLE) -> Self:
        """Draw the history of a fitted model.

        Parameters
        ----------
        model : ONMF or Pipeline
            Fitted. With ``schedule=1.05`` the curves are smooth.
        ax : matplotlib Axes or None, default=None
            Whose place the panels take; None makes a figure.
        title : str or None

        Returns
        -------
        display : HistoryDisplay
        """
        model = fitted(model)
        history, steps = model.history_, Track.of(model.history_).steps
        if len(steps) < 2:
            raise InvalidInputError(
                f"The history holds {len(steps)} temperatures; expected two or more. Fit items that differ, with schedule=1.05: where "
                "parts are so far apart that the best partition is proven at once, no temperature is needed, unless it is asked for."
            )
        columns = {name: np.asarray(history[name])[steps] for name in ("beta", "free_energy", "distortion", "entropy", "n_components")}
        return cls(**columns, critical_betas=criticals(model)).plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = TITLE) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Whose place the panels take; None makes a figure.
        title : str or None

        Returns
        -------
        self : HistoryDisplay
        """
        with self._drawing(ax, 7.6, 6.4) as axis:
            self.axes_ = self._panels(axis, (1.4, 1, 1))
            energy, entropy, number = self.axes_
            energy.plot(self.beta, self.distortion, color=PALETTE[5], lw=1.8, label="distortion D")
            energy.plot(self.beta, self.free_energy, color=PALETTE[0], lw=1.8, label="free energy J")
            entropy.plot(self.beta, self.entropy, color=PALETTE[2], lw=1.8)
            number.step(self.beta, self.n_components, where="post", color=PALETTE[0], lw=1.8)
            self._dress(title)
        return self

    def _dress(self, title: str | None) -> None:
        for axis, name in zip(self.axes_, ("per item", "entropy", "components"), strict=True):
            axis.set_ylabel(name)
            for critical in self.critical_betas[self.critical_betas <= self.beta[-1]]:
                axis.axvline(critical, color=FAINT, lw=0.8, zorder=0)
        self.axes_[0].legend(loc="upper right", frameon=True, framealpha=0.9, edgecolor="none")
        self.axes_[0].set_title(title)
        self.axes_[-1].set(
            xscale="log",
            xlim=self._range(),
            xlabel="inverse temperature β" + ("; faint lines: critical values" if self.critical_betas.size else ""),
        )
        plain_ticks(self.axes_[-1].xaxis)
        self.figure_.align_ylabels(self.axes_)

    def _range(self) -> tuple[float, float]:
        """From some way before the first transition: below it nothing happens."""
        first = self.critical_betas[0] / 10 if self.critical_betas.size else self.beta[0]
        return float(max(self.beta[0], first)), float(self.beta[-1])
