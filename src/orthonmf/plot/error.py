"""The error against the number of components."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from .._common.typing import Array
from ..exceptions import InfeasibleCapacityError, InvalidInputError
from ..model.certificate import Certificate
from ._display import Display, fitted
from .style import FAINT, INK, PALETTE, percent_ticks

__all__ = ["ErrorDisplay"]

TITLE = "The error, and what no factorisation can reach"


class ErrorDisplay(Display):
    """Relative error by number of components, one fit each, and the bound below which no factorisation can be.

    Parameters
    ----------
    n_components : array-like of shape (n_fits,)
    error : array-like of shape (n_fits,)
        ‖X − T C‖ / ‖X‖.
    lower_bound : array-like of shape (n_fits,)
        In the same units; NaN where it was not computed.
    chosen : int or None, default=None
        The number of components to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    PersistenceDisplay : What chooses the number of components; the error falls with every one that is added.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.datasets import make_onmf
    >>> from orthonmf.plot import ErrorDisplay
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> display = ErrorDisplay.from_estimator(ONMF(3).fit(X), X, n_components=range(1, 5))
    >>> display.n_components
    array([1, 2, 3, 4])
    """

    def __init__(self, n_components: Any, error: Any, lower_bound: Any, *, chosen: int | None = None) -> None:
        self.n_components = np.asarray(n_components)
        self.error = np.asarray(error, dtype=np.float64)
        self.lower_bound = np.asarray(lower_bound, dtype=np.float64)
        self.chosen = chosen

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        n_components: Iterable[int] | None = None,
        sample_weight: Any = None,
        ax: Any = None,
        title: str | None = TITLE,
    ) -> Self:
        """Fit a clone of the model for each number of components, and draw the errors.

        Parameters
        ----------
        model : ONMF
            Its parameters are used; where it is fitted, its number of components is marked.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_components : iterable of int or None, default=None
            Numbers to fit; those that the bounds rule out are passed over. None takes 1 to two more than the model has, as
            far as there are items; with a bound for each component only the number of the model.
        sample_weight : array-like of shape (n_samples,) or None, default=None
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        title : str or None

        Returns
        -------
        display : ErrorDisplay
        """
        chosen = getattr(model, "n_components_", None)
        if n_components is None:
            n_components = _numbers(fitted(model))
        proofs = [proof for number in n_components for proof in _proofs(model, number, X, sample_weight)]
        return cls._of(proofs, chosen).plot(ax=ax, title=title)

    @classmethod
    def from_models(cls, models: Sequence[Any], *, chosen: int | None = None, ax: Any = None, title: str | None = TITLE) -> Self:
        """Draw the errors of models that were fitted to the same data.

        Parameters
        ----------
        models : sequence of ONMF
            Fitted.
        chosen : int or None, default=None
            The number of components to mark.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        title : str or None

        Returns
        -------
        display : ErrorDisplay
        """
        return cls._of([fitted(model).certificate_ for model in models], chosen).plot(ax=ax, title=title)

    @classmethod
    def _of(cls, proofs: list[Certificate], chosen: int | None) -> Self:
        if not proofs:
            raise InvalidInputError(
                "No number of components could be fitted; expected at least one. Give n_components that the bounds allow."
            )
        proofs = sorted(proofs, key=lambda proof: proof.n_components)
        error = [proof.relative_error for proof in proofs]
        return cls([proof.n_components for proof in proofs], error, [_relative_bound(proof) for proof in proofs], chosen=chosen)

    def plot(self, ax: Any = None, *, title: str | None = TITLE) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        title : str or None

        Returns
        -------
        self : ErrorDisplay
        """
        with self._drawing(ax, 7.6, 4.4) as axis:
            floor = self._floor()
            error, bound = np.maximum(self.error, floor), np.maximum(self.lower_bound, floor)
            axis.fill_between(self.n_components, bound, floor, color=FAINT, alpha=0.4, lw=0, label="proven out of reach")
            axis.plot(self.n_components, error, "o-", color=PALETTE[0], lw=1.8, label="orthonmf, one fit each")
            if self.chosen in self.n_components:
                axis.plot(
                    self.chosen, error[self.n_components == self.chosen][0], "o", ms=11, mfc="none", mec=INK, mew=1.6, label="this model"
                )
            axis.set(yscale="log", xlabel="number of components", ylabel="relative error")
            axis.set_ylim(floor, 1.25 * error.max())
            axis.set_xticks(self.n_components[:: -(-len(self.n_components) // 12)])
            percent_ticks(axis.yaxis)
            axis.set_title(title)
            axis.legend(loc="upper right")
        return self

    def _floor(self) -> float:
        """The lower end of the axis: some way below all that is to be seen; exact fits would otherwise be at −∞."""
        seen: Array = np.concatenate([self.error, self.lower_bound])
        seen = seen[np.isfinite(seen) & (seen > max(self.error.max(), 1e-300) * 1e-6)]
        return 0.6 * float(seen.min()) if seen.size else 1e-16


def _numbers(model: Any) -> Iterable[int]:
    """What can be asked of the items of a fitted model, around what it found."""
    if any(np.ndim(bound) for bound in (model.capacity, model.min_size) if bound is not None):
        return [model.n_components]
    return range(1, min(model.n_components_ + 2, len(model.labels_)) + 1)


def _proofs(model: Any, number: int, X: Any, sample_weight: Any) -> list[Certificate]:
    """The certificate of one fit; none where the bounds leave no room for that number of components."""
    try:
        return [clone(model).set_params(n_components=number).fit(X, sample_weight=sample_weight).certificate_]
    except InfeasibleCapacityError:
        return []


def _relative_bound(proof: Certificate) -> float:
    if proof.lower_bound is None:
        return float("nan")
    return proof.lower_bound / proof.error * proof.relative_error if proof.error > 0 else 0.0
