"""The pictures of the documentation: ``python docs/make_images.py [--only NAME …]``.

Plots of nested clusters (drawn here), of scikit-learn's digits and of its wine data, and screenshots of the report in Chromium. Each is
written to docs/images with at most 256 colours.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from PIL import Image
from sklearn.datasets import load_digits, load_wine

from orthonmf import ONMF
from orthonmf.datasets import make_nested
from orthonmf.experiments.demo import majorities
from orthonmf.plot import (
    BifurcationDisplay,
    ComponentsDisplay,
    ErrorDisplay,
    HistoryDisplay,
    NumberDisplay,
    PersistenceDisplay,
    SizesDisplay,
)
from orthonmf.report import write_report

FOLDER = Path(__file__).parent / "images"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


@cache
def nested() -> tuple[Any, ONMF]:
    """Four groups of four clusters, annealed in small steps."""
    X = make_nested(800, 20, random_state=5).X
    return X, ONMF(scaling="none", schedule=1.05).fit(X)


@cache
def digits() -> tuple[Any, ONMF]:
    """Handwritten digits in ten parts of bounded size."""
    data = load_digits()
    return data, ONMF(10, capacity=200, min_size=120).fit(data.data)


def wine() -> ONMF:
    """The thirteen measurements of the wines in groups, each scaled to [0, 1]."""
    frame = load_wine(as_frame=True).data
    return ONMF(5, orthogonal="features").fit((frame - frame.min()) / (frame.max() - frame.min()))


PLOTS: dict[str, Callable[[], Any]] = {
    "plot-number": lambda: NumberDisplay.from_estimator(nested()[1]),
    "plot-persistence": lambda: PersistenceDisplay.from_estimator(nested()[1]),
    "plot-staircase": lambda: PersistenceDisplay.from_estimator(nested()[1], kind="staircase"),
    "plot-bifurcation": lambda: BifurcationDisplay.from_estimator(nested()[1]),
    "plot-history": lambda: HistoryDisplay.from_estimator(nested()[1]),
    "plot-error": lambda: ErrorDisplay.from_estimator(ONMF(16, scaling="none").fit(nested()[0]), nested()[0]),
    "plot-sizes": lambda: SizesDisplay.from_estimator(digits()[1], title="1797 digits in ten parts"),
    "plot-images": lambda: ComponentsDisplay.from_estimator(
        digits()[1], image_shape=(8, 8), captions=majorities(digits()[1], digits()[0].target), title="Digits: ten components"
    ),
    "plot-components": lambda: ComponentsDisplay.from_estimator(wine(), n_terms=5, title="Measurements of wines: each in one component"),
}

# Name: (report, width, height, part of the page at the top, colours, pixels per point).
SHOTS: dict[str, tuple[str, int, int, str, str, float]] = {
    "report-light": ("digits", 1100, 1000, "body", "light", 1.5),
    "report-annealing": ("nested", 1100, 660, "#annealing", "light", 1.5),
    "report-dark": ("digits", 1100, 1000, "#items", "dark", 1.5),
    "report-data": ("digits", 1100, 960, "#data", "light", 1.5),
    "report-number": ("nested", 1100, 1000, "#number", "light", 1.5),
    "report-phone": ("digits", 390, 844, "#items", "light", 2.0),
    "report-certificate": ("digits", 1100, 720, "#certificate", "light", 1.5),
}


def save_plot(name: str) -> None:
    """Draw one plot."""
    display = PLOTS[name]()
    display.figure_.savefig(FOLDER / f"{name}.png", dpi=150)
    mpl.pyplot.close(display.figure_)


def write_reports(folder: Path) -> None:
    """The reports that are photographed."""
    X, found = nested()
    write_report(found, folder / "nested.html", X=X, title="Four groups of four clusters")
    data, model = digits()
    write_report(
        model,
        folder / "digits.html",
        X=data.data,
        title="Handwritten digits, in parts of bounded size",
        feature_names=[f"row {i // 8 + 1}, column {i % 8 + 1}" for i in range(64)],
        item_names=[f"image {i} (a {digit})" for i, digit in enumerate(data.target)],
    )


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"])
        yield chromium
        chromium.close()


def save_shot(chromium: Any, folder: Path, name: str) -> None:
    """Photograph a part of a report."""
    report, width, height, part, scheme, scale = SHOTS[name]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=scale)
    page = context.new_page()
    page.goto((folder / f"{report}.html").as_uri())
    page.eval_on_selector(part, "part => part.scrollIntoView()")
    page.wait_for_timeout(400)
    page.screenshot(path=FOLDER / f"{name}.png")
    context.close()


def reduce(name: str) -> None:
    """Fewer colours: a third of the bytes, and no difference to the eye."""
    path = FOLDER / f"{name}.png"
    with Image.open(path) as image:
        image.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[*PLOTS, *SHOTS], default=[*PLOTS, *SHOTS])
    names = parser.parse_args().only
    mpl.use("Agg")
    for name in (name for name in names if name in PLOTS):
        save_plot(name)
    if shots := [name for name in names if name in SHOTS]:
        with tempfile.TemporaryDirectory() as folder, browser() as chromium:
            write_reports(Path(folder))
            for name in shots:
                save_shot(chromium, Path(folder), name)
    for name in names:
        reduce(name)


if __name__ == "__main__":
    main()
