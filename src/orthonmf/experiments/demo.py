"""What the library does, in one table and five figures: ``python -m orthonmf.experiments.demo --out DIR``.

Handwritten digits come with scikit-learn and the nested clusters are drawn here, so nothing is downloaded.
Figures need matplotlib; without it the table is printed all the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from .._common.files import atomic
from .._common.typing import Array, Labels
from .._common.visible import visible
from ..datasets import make_nested
from ..estimator import ONMF
from ..metrics import orthogonality, reconstruction_error, sparsity
from ..plot.style import INK, PALETTE, new_figure, styled

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


def draw(outcomes: dict[str, Outcome], folder: Path) -> list[Path]:
    """Write the figures and return their paths."""
    drawings: dict[str, Callable[[], Any]] = {
        "nested-persistence": lambda: persistence_figure(outcomes["nested"].model),
        "nested-bifurcation": lambda: bifurcation_figure(outcomes["steps"].model),
        "nested-error": lambda: error_figure(outcomes["nested"]),
        "digits-components": lambda: components_figure(outcomes["fine"]),
        "digits-pixels": lambda: pixels_figure(outcomes["pixels"].model),
    }
    paths = []
    with styled():
        for name, drawing in drawings.items():
            with step(f"figure {name}"):
                paths.append(folder / f"{name}.png")
                with atomic(paths[-1]) as draft:
                    drawing().savefig(draft)
    return paths


def majorities(model: ONMF, target: Labels) -> list[str]:
    """For each component, what most of its samples are."""
    shown = [np.bincount(target[model.labels_ == j]) for j in range(model.n_components_)]
    return [f"{counts.max() / counts.sum():.0%} are {counts.argmax()}" for counts in shown]


def components_figure(outcome: Outcome) -> Any:
    """The components of the digits as images, each with the digit that most of its samples show."""
    from ..plot import ComponentsDisplay

    model = outcome.model
    title = f"{model.n_components_} components of {len(outcome.case.X)} handwritten digits: each image belongs to exactly one"
    figure = new_figure(11.5, 1.6 * -(-model.n_components_ // 10) + 0.6)
    ComponentsDisplay.from_estimator(
        model, image_shape=(8, 8), captions=majorities(model, np.asarray(outcome.case.target)), ax=figure.subplots(), title=title
    )
    return figure


def pixels_figure(model: ONMF) -> Any:
    """The component of each pixel by number and colour, the stronger the darker; blank is always zero."""
    from matplotlib.colors import to_rgb

    figure = new_figure(5.6, 6.0)
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
            model.labels_[i],
            ha="center",
            va="center",
            color=INK if light > 0.5 else "white",
        )
    axis.set(xticks=[], yticks=[], title=f"{model.n_components_} parts of the digits:\neach pixel belongs to one")
    axis.spines[:].set_visible(False)
    return figure


def persistence_figure(model: ONMF) -> Any:
    """Bars of the persistence against the number of components, the two highest named."""
    from ..plot import PersistenceDisplay

    figure = new_figure(7.6, 4.4)
    PersistenceDisplay.from_estimator(model, ax=figure.subplots(), title="Four groups of four clusters: both levels show")
    return figure


def error_figure(outcome: Outcome) -> Any:
    """The error against the number of components, and the bound that no such partition beats."""
    from ..plot import ErrorDisplay

    figure = new_figure(7.6, 4.4)
    ErrorDisplay.from_estimator(outcome.model, outcome.case.X, ax=figure.subplots(), title="Every fit carries a lower bound")
    return figure


def bifurcation_figure(model: ONMF) -> Any:
    """The centres as β grows, seen along one direction: every fork is a phase transition."""
    from ..plot import BifurcationDisplay

    figure = new_figure(8.4, 5.2)
    coarse, fine = sorted(np.argsort(-model.persistence_)[:2] + 2)
    BifurcationDisplay.from_estimator(
        model, ax=figure.subplots(), n_components=int(fine), title=f"First {coarse}, then {fine}: components part as β grows"
    )
    return figure


# -- the command ---------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration; returns 3 when a certificate fails, as the command ``verify`` does."""
    arguments = _parser().parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    start = perf_counter()
    outcomes = {name: fitted(case) for name, case in cases(quick=arguments.quick).items()}
    print(table(outcome.row() for outcome in outcomes.values()))
    if find_spec("matplotlib") is None:
        print("\nNo figures: they need matplotlib. Install it with: pip install 'orthonmf[plot]'")
    else:
        print("\nFigures:", *(visible(str(path)) for path in draw(outcomes, arguments.out)), sep="\n  ")
    held = sum(outcome.model.certificate_.holds for outcome in outcomes.values())
    print(f"\n{held} of {len(outcomes)} certificates hold; done in {perf_counter() - start:.0f} s.")
    print("Your turn: from orthonmf import ONMF; model = ONMF().fit(X)")
    return 0 if held == len(outcomes) else 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m orthonmf.experiments.demo", description="What orthonmf does, in a minute.")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the figures (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="smaller data, a few seconds")
    return parser


if __name__ == "__main__":
    sys.exit(main())
