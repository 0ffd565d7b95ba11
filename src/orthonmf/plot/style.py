"""The look of all figures, for as long as one is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..exceptions import MissingExtraError

__all__ = ["DIM", "FAINT", "INK", "PALETTE", "axis_for", "new_figure", "percent_ticks", "plain_ticks", "styled"]

# Okabe and Ito's colours, which stay apart for colour-blind readers.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F")
INK, DIM, FAINT = "#222222", "#666666", "#BBBBBB"
STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 14,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.labelsize": 12,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "text.color": INK,
    "figure.constrained_layout.h_pad": 0.12,
    "figure.constrained_layout.w_pad": 0.12,
    "savefig.dpi": 150,
}


@contextmanager
def styled() -> Iterator[None]:
    """The style while the block runs; the user's settings afterwards."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("Figures are drawn with matplotlib, which is not installed: pip install 'orthonmf[plot]'.") from None
    with mpl.rc_context(STYLE):
        yield


def new_figure(width: float, height: float) -> Any:
    """An empty figure that pyplot does not keep."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def axis_for(ax: Any, width: float, height: float) -> Any:
    """The axis that was given, or that of a new figure of pyplot's, so that notebooks show it."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def plain_ticks(axis: Any) -> None:
    """1, 2, 5 instead of powers of ten, where a logarithmic axis (``ax.xaxis``) spans less than three decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 1000 * low:
        axis.set_major_locator(LogLocator(subs=[1.0, 2.0, 5.0] if high > 5 * low else [1 + step / 2 for step in range(18)]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def percent_ticks(axis: Any) -> None:
    """Ticks such as 0.03 % on a logarithmic axis (``ax.yaxis``), also where it spans less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=[1 + step / 2 for step in range(18)] if high < 10 * low else [1.0, 3.0]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axis.set_minor_formatter(NullFormatter())
