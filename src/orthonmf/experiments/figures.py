"""The paper's two figures and two of our own. Each function returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._common.typing import Array
from ..estimator import ONMF
from ..plot import BifurcationDisplay
from ..plot.style import FAINT, PALETTE, new_figure, percent_ticks, styled
from . import paper
from .criticals import Splits, peak
from .methods import METHODS
from .problems import N_METAGENES, scaled_genes, times
from .render import save

_MARKERS = "osD^vPX*<>hpd"


# -- critical values -----------------------------------------------------------------------------------------------------------


def criticals_figure(found: Mapping[str, Sequence[Splits]]) -> Any:
    """log(β_{m+1} / β_m) against m, one row per reading, one column per time, the most persistent number in colour."""
    columns = len(next(iter(found.values())))
    figure = new_figure(1.7 * columns + 0.9, 2.4 * len(found) + 0.4)
    axes = figure.subplots(len(found), columns, sharex=True, sharey="row", squeeze=False)
    for row, (name, models) in zip(axes, found.items(), strict=True):
        for time, (axis, model) in enumerate(zip(row, models, strict=True)):
            _bars(axis, model, paper.PEAKS[time])
        row[0].set_ylabel(f"{name}\n" + r"$\log\,\beta_{m+1}/\beta_m$")
    for time, axis in enumerate(axes[0]):
        axis.set_title(f"T{time + 1}", loc="left", pad=4)
    figure.supxlabel("components $m$; dotted: the paper's reading", fontsize=12)
    return figure


def _bars(axis: Any, model: Splits, claimed: int) -> None:
    number = np.arange(2, len(model.persistence_) + 2)
    best = peak(model)
    axis.bar(number, model.persistence_, color=[PALETTE[0] if m == best else FAINT for m in number])
    axis.axvline(claimed, color=PALETTE[5], ls=":", lw=1.5, zorder=0)
    axis.set_xticks(number[::2])
    axis.set_title("none lasts" if best is None else f"ours {best}", loc="right", fontsize=10, fontweight="normal", pad=4)


# -- metagenes -----------------------------------------------------------------------------------------------------------------


def fitted_metagenes(matrices: Sequence[Array], capacity: float | None) -> list[ONMF]:
    """Three metagenes at each time, in one order: by the weight of their genes."""
    return [ONMF(N_METAGENES, scaling="none", capacity=capacity, n_jobs=1).fit(X) for X in matrices]


def metagenes_figure(free: Sequence[ONMF], bounded: Sequence[ONMF]) -> Any:
    """The gene factor at each time, without a bound above and with it below: a gene is dark in one metagene only."""
    figure = new_figure(1.35 * len(free) + 1.0, 8.0)
    axes = figure.subplots(2, len(free), squeeze=False)
    for row, (models, name) in enumerate(((free, "no bound"), (bounded, f"at most {paper.BOUND} n"))):
        for time, model in enumerate(models):
            axis = axes[row, time]
            axis.imshow(_membership(model), cmap="Greys", aspect="auto", vmin=0, vmax=1, interpolation="nearest")
            sizes = np.bincount(model.labels_, minlength=model.n_components_)
            axis.set_xticks(range(model.n_components_), [str(size) for size in sizes], fontsize=10)
            axis.set_yticks([])
            axis.spines[:].set_visible(True)
            for edge in np.arange(0.5, model.n_components_ - 1):
                axis.axvline(edge, color=FAINT, lw=0.8)
            if row == 0:
                axis.set_title(f"T{time + 1}", loc="center")
        axes[row, 0].set_ylabel(f"{len(models[0].labels_)} genes, {name}")
    figure.supxlabel("genes in each of the three metagenes", fontsize=12)
    return figure


def _membership(model: ONMF) -> Array:
    """Where the nonzeros of the gene factor are, its columns by size."""
    member = np.equal.outer(model.labels_, np.arange(model.n_components_))
    return member.astype(float)


# -- error and seconds ---------------------------------------------------------------------------------------------------------


def error_seconds_figure(data: Sequence[dict[str, Any]]) -> Any:
    """Error against seconds of every method, one panel per data set; filled where every item has one component."""
    datasets = list(dict.fromkeys(row["dataset"] for row in data))
    columns = min(3, len(datasets))
    lines = -(-len(datasets) // columns)
    figure = new_figure(4.4 * columns + 2.4, 3.6 * lines)
    axes = figure.subplots(lines, columns, squeeze=False)
    for axis, dataset in zip(axes.flat, datasets, strict=False):
        for name, row in ((row["method"], row) for row in data if row["dataset"] == dataset):
            _point(axis, name, row)
        axis.set(
            xscale="log", yscale="log", xlabel="seconds", ylabel="error", title=f"data set {dataset}" if len(dataset) < 20 else dataset
        )
        percent_ticks(axis.yaxis)
    for axis in axes.flat[len(datasets) :]:
        axis.set_axis_off()
    handles = {label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False, fontsize=11)
    return figure


def _point(axis: Any, name: str, row: dict[str, Any]) -> None:
    order = list(METHODS).index(name)
    color = PALETTE[order % len(PALETTE)]
    face = color if METHODS[name].partitions else "none"
    if row["error"] is not None:
        axis.plot(
            row["seconds"],
            max(row["error"], np.finfo(float).eps),
            _MARKERS[order % len(_MARKERS)],
            color=color,
            markerfacecolor=face,
            ms=9,
            label=METHODS[name].label,
        )


# -- bifurcations --------------------------------------------------------------------------------------------------------------


def fitted_bifurcation(X: Array) -> ONMF:
    """An annealing in small steps of β."""
    return ONMF("persistence", max_components=min(6, len(X) - 1), scaling="none", schedule=1.05, n_jobs=1).fit(X)


def bifurcation_figure(model: ONMF, title: str) -> Any:
    """The centres, seen along one direction, against log β: every fork is a phase transition."""
    figure = new_figure(8.0, 4.8)
    BifurcationDisplay.from_estimator(model, ax=figure.subplots(), title=title)
    return figure


# -- all of them ---------------------------------------------------------------------------------------------------------------


def write_criticals(found: Mapping[str, Sequence[Splits]], folder: Path) -> list[Path]:
    """The paper's first figure."""
    return _saved(folder / "criticals", lambda: criticals_figure(found))


def write_metagenes(folder: Path) -> list[Path]:
    """The paper's second figure."""
    data = [scaled_genes(time) for time in range(len(times()))]
    return _saved(folder / "metagenes", lambda: metagenes_figure(fitted_metagenes(data, None), fitted_metagenes(data, paper.BOUND)))


def write_error_seconds(data: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Error against seconds, from the numbers of a table."""
    return _saved(folder / "error-seconds", lambda: error_seconds_figure(data))


def write_bifurcation(folder: Path) -> list[Path]:
    """The centres of the genes at the first time."""
    return _saved(
        folder / "bifurcation", lambda: bifurcation_figure(fitted_bifurcation(scaled_genes(0)), "Genes at T1: metagenes part as β grows")
    )


def _saved(stem: Path, draw: Callable[[], Any]) -> list[Path]:
    with styled():
        return save(draw(), stem)
