"""What the library does, in one table and five figures: ``python -m orthonmf.demo --out DIR``.

Handwritten digits come with scikit-learn and the nested clusters are drawn here, so nothing is downloaded.
Figures need matplotlib; without it the table is printed all the same.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits

from ._typing import Array, Labels
from .datasets import make_nested
from .estimator import ONMF
from .metrics import orthogonality, reconstruction_error, sparsity

# -- the fits ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A data set, the model asked of it, and what is known of the samples where something is."""

    name: str
    X: Array
    model: ONMF
    target: Labels | None = None

    @property
    def asked(self) -> str:
        return str(self.model.n_components)


@dataclass(frozen=True)
class Outcome:
    """A fitted case, T of its samples, and the seconds that it took."""

    case: Case
    T: Array
    seconds: float

    @property
    def model(self) -> ONMF:
        return self.case.model

    def row(self) -> tuple[str, ...]:
        """A line of the table; error, orthogonality and sparsity are recomputed from the factors."""
        X, T, model = self.case.X, self.T, self.model
        factor = T if model.orthogonal == "samples" else model.components_.T
        return (
            self.case.name,
            f"{X.shape[0]} × {X.shape[1]}",
            model.orthogonal,
            self.case.asked,
            str(model.n_components_),
            f"{min(model.counts_)}–{max(model.counts_)}",
            f"{reconstruction_error(X, T, model.components_):.2%}",
            f"{orthogonality(factor):.0%}",
            f"{sparsity(factor):.0%}",
            f"{self.seconds:.1f}",
            "holds" if model.certificate_.holds else "fails",
        )


HEADER = (
    *("data set", "shape", "orthogonal", "asked", "found", "sizes"),
    *("error", "orthogonality", "sparsity", "seconds", "certificate"),
)
LEFT = ("data set", "orthogonal", "certificate")  # columns of words; figures are set to the right


def cases(*, quick: bool = False) -> dict[str, Case]:
    """The fits of the demonstration by name; ``quick`` takes a part of the data and fewer components."""
    digits = load_digits()
    X, target = digits.data[:: 9 if quick else 1], digits.target[:: 9 if quick else 1]
    nested = make_nested(160 if quick else 800, 20, random_state=5).X
    return {
        "nested": Case("nested clusters", nested, ONMF(scaling="none")),
        "steps": Case("the same, in small steps of β", nested, ONMF(scaling="none", schedule=1.05)),
        "digits": Case("digits", X, ONMF(4 if quick else 10), target),
        "even": Case("digits, parts of one size", X, ONMF(4, capacity=50) if quick else ONMF(10, capacity=180)),
        "fine": Case("digits", X, ONMF(6 if quick else 20), target),
        "pixels": Case("digits", X, ONMF(4 if quick else 8, orthogonal="features")),
    }


def fitted(case: Case) -> Outcome:
    """Fit a case and take the time."""
    with step(f"{case.name}: n_components={case.asked}, orthogonal={case.model.orthogonal}"):
        start = perf_counter()
        T = case.model.fit_transform(case.X)  # with a capacity, transform alone would not keep to it
        return Outcome(case, T, perf_counter() - start)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Say on standard error what is being done, and how long it took."""
    sys.stderr.write(f"  {text} … ")
    sys.stderr.flush()
    start = perf_counter()
    yield
    sys.stderr.write(f"{perf_counter() - start:.1f} s\n")


def table(rows: Iterable[Sequence[str]]) -> str:
    """Aligned columns of plain text under ``HEADER``."""
    lines = [HEADER, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def aligned(line: Sequence[str]) -> str:
        cells = zip(HEADER, line, widths, strict=True)
        return "  ".join(cell.ljust(w) if name in LEFT else cell.rjust(w) for name, cell, w in cells).rstrip()

    return "\n".join([aligned(lines[0]), "  ".join("-" * w for w in widths), *map(aligned, lines[1:])])


# -- the figures ---------------------------------------------------------------------------------------------

# Okabe and Ito's colours, which stay apart for colour-blind readers.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F")
INK, FAINT = "#222222", "#BBBBBB"
STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 14,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.labelsize": 12,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.h_pad": 0.12,
    "figure.constrained_layout.w_pad": 0.12,
    "savefig.dpi": 150,
}


def draw(outcomes: dict[str, Outcome], folder: Path) -> list[Path]:
    """Write the figures and return their paths."""
    import matplotlib as mpl

    drawings: dict[str, Callable[[], Any]] = {
        "nested-persistence": lambda: persistence_figure(outcomes["nested"].model),
        "nested-bifurcation": lambda: bifurcation_figure(outcomes["steps"].model),
        "nested-error": lambda: error_figure(outcomes["nested"]),
        "digits-components": lambda: components_figure(outcomes["fine"]),
        "digits-pixels": lambda: pixels_figure(outcomes["pixels"].model),
    }
    paths = []
    with mpl.rc_context(STYLE):
        for name, drawing in drawings.items():
            with step(f"figure {name}"):
                paths.append(folder / f"{name}.png")
                drawing().savefig(paths[-1])
    return paths


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def components_figure(outcome: Outcome) -> Any:
    """The components of the digits as images, each with the digit that most of its samples show."""
    model, target = outcome.model, np.asarray(outcome.case.target)
    columns = min(10, model.n_components_)
    rows = -(-model.n_components_ // columns)
    figure = _figure(1.15 * columns, 1.5 * rows + 0.6)
    figure.suptitle(
        f"{model.n_components_} components of {len(outcome.case.X)} handwritten digits: each image belongs to exactly one",
        x=0.01,
        ha="left",
        fontsize=14,
        fontweight="bold",
    )
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes:
        axis.set_axis_off()
    for j in range(model.n_components_):
        axes[j].imshow(model.components_[j].reshape(8, 8), cmap="Greys", vmin=0)
        shown = np.bincount(target[model.labels_ == j])
        share = f"{shown.max() / shown.sum():.0%} are {shown.argmax()}"
        axes[j].set_title(share, pad=5, loc="center", fontsize=11, fontweight="normal")
    return figure


def pixels_figure(model: ONMF) -> Any:
    """The component of each pixel by number and colour, the stronger the darker; blank is always zero."""
    from matplotlib.colors import to_rgb

    figure = _figure(5.6, 6.0)
    axis = figure.subplots()
    strength = model.scale_ / np.array([model.scale_[model.labels_ == j].max() for j in model.labels_])
    colors = np.array([to_rgb(PALETTE[j % len(PALETTE)]) for j in model.labels_])
    depth = (0.25 + 0.75 * strength)[:, None] * (model.scale_ > 0)[:, None]
    axis.imshow((1 - depth + depth * colors).reshape(8, 8, 3))
    for i in np.flatnonzero(model.scale_ > 0):
        light = colors[i] @ (0.299, 0.587, 0.114) * depth[i, 0] + 1 - depth[i, 0]
        axis.text(
            i % 8,
            i // 8,
            model.labels_[i] + 1,
            ha="center",
            va="center",
            color=INK if light > 0.5 else "white",
        )
    axis.set(xticks=[], yticks=[], title=f"{model.n_components_} parts of the digits:\neach pixel belongs to one")
    axis.spines[:].set_visible(False)
    return figure


def persistence_figure(model: ONMF) -> Any:
    """Bars of the persistence against the number of components, the two highest named."""
    figure = _figure(7.6, 4.4)
    axis = figure.subplots()
    length = model.persistence_
    number = np.arange(2, len(length) + 2)
    first, second = np.argsort(-length)[:2]
    axis.bar(number, length, color=FAINT, width=0.75)
    for i, color, word in ((first, PALETTE[0], "found"), (second, PALETTE[5], "second peak")):
        axis.bar(number[i], length[i], color=color, width=0.75)
        note = f"{number[i]} components\n{word}, lasts over\na factor {np.exp(length[i]):.0f} in β"
        axis.text(number[i] + 0.7, length[i], note, va="top", color=color, fontweight="bold")
    axis.set(
        xlabel="number of components $m$",
        ylabel=r"persistence  $\log\,\beta_{m+1}/\beta_m$",
        title="Four groups of four clusters: both levels show",
        xticks=[2, *range(4, number[-1] + 1, 4)],
        xlim=(1.2, number[-1] + 0.8),
    )
    return figure


def error_figure(outcome: Outcome) -> Any:
    """The error against the number of components, and the bound that no such partition beats."""
    case = outcome.case
    numbers = range(1, outcome.model.n_components_ + 3)
    proofs = [clone(case.model).set_params(n_components=m).fit(case.X).certificate_ for m in numbers]
    error = np.array([proof.relative_error for proof in proofs])
    bound = np.array([(proof.lower_bound or 0.0) / proof.error * proof.relative_error for proof in proofs])
    figure = _figure(7.6, 4.4)
    axis = figure.subplots()
    axis.plot(numbers, error, "o-", color=PALETTE[0], lw=1.8, label="orthonmf, one fit each")
    axis.fill_between(numbers, bound, error.min() / 5, color=FAINT, alpha=0.4, lw=0, label="proven out of reach")
    axis.set(
        yscale="log",
        ylim=(error.min() / 5, 1),
        xlim=(0.6, numbers[-1] + 0.4),
        xticks=[1, *range(4, numbers[-1] + 1, 4)],
        xlabel="number of components",
        ylabel="relative error",
        title="Every fit carries a lower bound",
    )
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.1%}" if value < 0.01 else f"{value:.0%}")
    axis.legend(frameon=False, loc="upper right")
    return figure


def bifurcation_figure(model: ONMF) -> Any:
    """The centres as β grows, seen along one direction: every fork is a phase transition."""
    figure = _figure(8.4, 5.2)
    axis = figure.subplots()
    track, critical = Track.of(model), model.critical_betas_
    coarse, fine = sorted(np.argsort(-model.persistence_)[:2] + 2)
    end = track.last(fine)
    view = _widest_view(track.projection[end])
    groups = {leaf: track.ancestor(leaf, track.last(coarse)) for leaf in track.ids[end]}
    hues = dict(zip(dict.fromkeys(groups.values()), itertools.cycle(PALETTE), strict=False))
    for leaf, group in groups.items():
        axis.plot(track.beta, track.path(leaf) @ view, color=hues[group], lw=1.8)
    trunk = track.beta <= critical[0] * 1.001
    axis.plot(track.beta[trunk], track.path(0)[trunk] @ view, color=INK, lw=1.8)
    for m in (coarse, fine):
        axis.axvspan(critical[m - 2], critical[m - 1], color=FAINT, alpha=0.25, lw=0)
        middle = np.sqrt(critical[m - 2] * critical[m - 1])
        axis.text(middle, 1.015, f"{m} components", transform=axis.get_xaxis_transform(), ha="center")
    axis.set_title(f"First {coarse}, then {fine}: components part as β grows", pad=32)
    axis.set(
        xscale="log",
        xlim=(critical[0] / 4, critical[fine - 1]),
        xlabel="inverse temperature β",
        ylabel="centres, along one direction",
        yticks=[],
    )
    return figure


@dataclass(frozen=True)
class Track:
    """The annealing with β only growing: of the temperatures that were looked at twice, the last look."""

    beta: Array
    ids: list[tuple[int, ...]]
    projection: list[Array]
    parents: dict[int, int]
    births: dict[int, float]

    @classmethod
    def of(cls, model: ONMF) -> Track:
        history = model.history_
        kept: list[int] = []
        for i, beta in enumerate(history["beta"]):
            while kept and history["beta"][kept[-1]] >= beta:
                kept.pop()
            kept.append(i)
        return cls(
            beta=history["beta"][kept],
            ids=[history["ids"][i] for i in kept],
            projection=[history["projection"][i] for i in kept],
            parents={child: parent for _, parent, child in history["splits"]},
            births={child: beta for beta, _, child in history["splits"]},
        )

    def last(self, n_components: int) -> int:
        """The last temperature with that many components."""
        return max(i for i, ids in enumerate(self.ids) if len(ids) == n_components)

    def ancestor(self, leaf: int, at: int) -> int:
        """The component from which ``leaf`` descends at a temperature; splits tried in vain do not count."""
        while leaf not in self.ids[at] or self.births.get(leaf, 0.0) > self.beta[at]:
            leaf = self.parents[leaf]
        return leaf

    def path(self, leaf: int) -> Array:
        """Where ``leaf``, or its ancestor, was at every temperature, (n_temperatures, 2)."""
        where = [ids.index(self.ancestor(leaf, i)) for i, ids in enumerate(self.ids)]
        return np.array([points[j] for points, j in zip(self.projection, where, strict=True)])


def _widest_view(points: Array) -> Array:
    """The direction in the plane along which the closest two points are farthest apart."""
    angles = np.linspace(0, np.pi, 181)
    directions = np.stack([np.cos(angles), np.sin(angles)])
    gaps = np.diff(np.sort(points @ directions, axis=0), axis=0).min(axis=0, initial=np.inf)
    return np.asarray(directions[:, gaps.argmax()])


# -- the command ---------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration; returns 1 when a certificate fails."""
    arguments = _parser().parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    start = perf_counter()
    outcomes = {name: fitted(case) for name, case in cases(quick=arguments.quick).items()}
    print(table(outcome.row() for outcome in outcomes.values()))
    if find_spec("matplotlib") is None:
        print("\nNo figures: they need matplotlib. Install it with: pip install 'orthonmf[plot]'")
    else:
        print("\nFigures:", *draw(outcomes, arguments.out), sep="\n  ")
    held = sum(outcome.model.certificate_.holds for outcome in outcomes.values())
    print(f"\n{held} of {len(outcomes)} certificates hold; done in {perf_counter() - start:.0f} s.")
    print("Your turn: from orthonmf import ONMF; model = ONMF().fit(X)")
    return 0 if held == len(outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m orthonmf.demo", description="What orthonmf does, in a minute.")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the figures (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="smaller data, a few seconds")
    return parser


if __name__ == "__main__":
    sys.exit(main())
