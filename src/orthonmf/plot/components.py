"""The components: as a heat map with names, or as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from ..model.terms import top_terms
from ._display import Display, fitted
from .style import FAINT, INK

__all__ = ["ComponentsDisplay"]

# Longer names are cut in a figure.
NAME_LENGTH = 28
# Pictures in a row of the grid.
COLUMNS = 10


class ComponentsDisplay(Display):
    """The rows of ``components_``, as a heat map over named features or as a grid of pictures.

    Parameters
    ----------
    components : ndarray of shape (n_components, n_features)
    feature_names : sequence of str or None, default=None
        Names under the columns of the heat map.
    captions : sequence of str or None, default=None
        One for each component; by default its number in ``labels_``.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    orthonmf.top_terms : The features that tell components apart, as text.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orthonmf import ONMF
    >>> from orthonmf.plot import ComponentsDisplay
    >>> model = ONMF(4).fit(load_digits().data[:100])
    >>> display = ComponentsDisplay.from_estimator(model, image_shape=(8, 8))
    >>> [text.get_text() for text in display.ax_.texts]
    ['0', '1', '2', '3']
    """

    def __init__(self, components: Array, *, feature_names: Sequence[str] | None = None, captions: Sequence[str] | None = None) -> None:
        self.components = np.asarray(components)
        self.feature_names = feature_names
        self.captions = [str(j) for j in range(len(self.components))] if captions is None else list(captions)
        if len(self.captions) != len(self.components):
            raise InvalidInputError(f"captions has {len(self.captions)} entries; expected {len(self.components)}, one for each component.")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        ax: Any = None,
        feature_names: Any = None,
        captions: Sequence[str] | None = None,
        n_terms: int = 3,
        image_shape: tuple[int, int] | None = None,
        title: str | None = None,
    ) -> Self:
        """Draw the components of a fitted model.

        Parameters
        ----------
        model : ONMF or Pipeline
            Fitted.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        feature_names : array-like of shape (n_features,) or None, default=None
            By default those that the model or the pipeline knows.
        captions : sequence of str or None, default=None
            One for each component; by default its number in ``labels_``.
        n_terms : int, default=3
            The heat map shows the features that are among the first ``n_terms`` of a component, component after component.
        image_shape : (int, int) or None, default=None
            Draw each component as a picture of this height and width.
        title : str or None

        Returns
        -------
        display : ComponentsDisplay
        """
        components = fitted(model).components_
        if image_shape is not None:
            return cls(components, captions=captions).plot(ax=ax, image_shape=image_shape, title=title)
        names, columns = _leading(model, components, feature_names, n_terms)
        return cls(components[:, columns], feature_names=names, captions=captions).plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, image_shape: tuple[int, int] | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        image_shape : (int, int) or None, default=None
            Draw each component as a picture of this height and width.
        title : str or None

        Returns
        -------
        self : ComponentsDisplay
        """
        n_components, n_features = self.components.shape
        if image_shape is None:
            size = (min(0.42 * n_features + 1.6, 14.0), min(0.36 * n_components + 2.8, 12.0))
        elif int(np.prod(image_shape)) != n_features:
            raise InvalidInputError(
                f"image_shape={image_shape!r} holds {np.prod(image_shape)} pixels; expected {n_features}, one per feature."
            )
        else:
            columns = min(COLUMNS, n_components)
            size = (max(1.15 * columns, 3.0), 1.45 * -(-n_components // columns) + 0.5)
        with self._drawing(ax, *size) as axis:
            if image_shape is None:
                self._heat_map(axis)
            else:
                self._pictures(axis, *image_shape)
            axis.set_title(title)
        return self

    def _heat_map(self, axis: Any) -> None:
        # Each row in units of its largest weight: components differ in scale, not in what matters to the reader.
        top = self.components.max(axis=1, keepdims=True, initial=0)
        share = np.divide(self.components, top, out=np.zeros(self.components.shape), where=top > 0)
        image = axis.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axis.set_yticks(range(len(share)), self.captions, parse_math=False)
        if self.feature_names is not None:
            names = [_cut(name) for name in self.feature_names]
            axis.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor", fontsize=10, parse_math=False)
        axis.set_xticks(np.arange(0.5, share.shape[1] - 1), minor=True)
        axis.set_yticks(np.arange(0.5, share.shape[0] - 1), minor=True)
        axis.grid(which="minor", color="white", lw=1)
        axis.tick_params(which="both", length=0)
        axis.spines[:].set_visible(False)
        axis.set_ylabel("component")
        self.figure_.colorbar(image, ax=axis, label="weight", fraction=0.04, pad=0.02).outline.set_visible(False)

    def _pictures(self, axis: Any, height: int, width: int) -> None:
        """All pictures on one axis, with a caption above each."""
        n_components = len(self.components)
        columns = min(COLUMNS, n_components)
        gap, head = max(1.0, 0.12 * width), max(1.0, 0.30 * height)
        for j, row in enumerate(self.components):
            x, y = (j % columns) * (width + gap), (j // columns) * (height + head)
            axis.imshow(row.reshape(height, width), cmap="Greys", vmin=0, extent=(x, x + width, y + height, y), interpolation="nearest")
            axis.plot([x, x + width, x + width, x, x], [y, y, y + height, y + height, y], color=FAINT, lw=0.8)
            axis.text(
                x + width / 2, y - 0.05 * height, self.captions[j], ha="center", va="bottom", fontsize=11, color=INK, parse_math=False
            )
        rows = -(-n_components // columns)
        axis.set(xlim=(-gap / 2, columns * (width + gap) - gap / 2), ylim=(rows * (height + head) - head + gap / 2, -head), aspect="equal")
        axis.set_axis_off()


def _leading(model: Any, components: Array, feature_names: Any, n_terms: int) -> tuple[list[str], list[int]]:
    """Names and columns of the features that lead in a component, each once, component after component."""
    numbered = top_terms(fitted(model), range(components.shape[1]), n_terms=n_terms)
    named = top_terms(model, feature_names, n_terms=n_terms)
    columns = [int(term.name) for terms in numbered for term in terms]
    names = dict(zip(columns, (term.name for terms in named for term in terms), strict=True))
    return list(names.values()), list(names)


def _cut(name: str) -> str:
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
