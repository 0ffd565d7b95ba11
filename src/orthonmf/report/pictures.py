"""The pictures of the report: SVG that is there without any script."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.typing import Array
from ..model.track import criticals
from ..search.number.curve import chance, coarser, stands_out
from ..search.transitions import MIN_PERSISTENCE
from .frames import HEIGHT, MARGIN, WIDTH, Frames
from .text import number, plural

# Of the words above the chosen bar, in the units of the picture.
NOTE_WIDTH = 120.0

__all__ = ["lasting", "persistence_picture", "plane_picture", "size_bar", "tree_picture", "weight_bar"]


def figure(name: str, title: str, description: str, body: str, *, height: float = HEIGHT) -> str:
    """An SVG that a screen reader announces as one image with a title and a description."""
    return (
        f'<svg id="{name}" class="picture" viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{title}</title><desc id="{name}-desc">{description}</desc>{body}</svg>'
    )


# -- the number of components --------------------------------------------------------------------------------------------------


def persistence_picture(model: Any) -> str:
    """Bars of the persistence, the numbers that stand out in colour, with a line at what chance reaches."""
    finite = np.isfinite(model.persistence_)
    numbers, lengths = np.arange(2, len(finite) + 2)[finite], model.persistence_[finite]
    level = chance(model)
    # Bars that chance alone made stay low.
    top = max(float(lengths.max()), MIN_PERSISTENCE, 0.0 if stands_out(model) else 2 * level) * 1.12
    kinds = {**dict.fromkeys(coarser(model), " level"), model.n_components_: " chosen"}
    left, right, base, ceiling = 34.0, WIDTH - 8.0, 232.0, 14.0
    step = (right - left) / len(numbers)

    def y(value: float) -> float:
        return base - value / top * (base - ceiling)

    every = -(-len(numbers) // 12)
    bars = [
        f'<rect class="bar{kinds.get(m, "")}" x="{left + i * step + step * 0.12:.1f}" y="{y(length):.1f}" '
        f'width="{step * 0.76:.1f}" height="{base - y(length):.1f}"/>'
        + (f'<text x="{left + (i + 0.5) * step:.1f}" y="{base + 17:g}" class="middle">{m}</text>' if i % every == 0 else "")
        for i, (m, length) in enumerate(zip(numbers.tolist(), lengths.tolist(), strict=True))
    ]
    guide = f'<line class="guide" x1="{left:g}" x2="{right:g}" y1="{y(level):.1f}" y2="{y(level):.1f}"/>' if np.isfinite(level) else ""
    guide += f'<text x="{right:g}" y="{y(level) - 5:.1f}" class="end">what chance reaches</text>' if guide else ""
    body = (
        "".join(bars)
        + "".join(
            _note(left + (i + 0.5) * step, y(_tallest_near(lengths, int(i), NOTE_WIDTH / step)), lengths[i])
            for i in np.flatnonzero(numbers == model.n_components_)
        )
        + f'<line class="axis" x1="{left:g}" x2="{right:g}" y1="{base:g}" y2="{base:g}"/>'
        + guide
        + f'<text x="{(left + right) / 2:g}" y="{base + 36:g}" class="middle">number of components</text>'
        + f'<text transform="translate(14 {(base + ceiling) / 2:g}) rotate(-90)" class="middle">persistence</text>'
    )
    best = int(lengths.argmax())
    description = f"The longest is {number(lengths[best], 3)} at {numbers[best]} components; {len(numbers)} numbers are shown."
    return figure("persistence", "Persistence of each number of components", description, body, height=276)


def _tallest_near(lengths: Array, i: int, width: float) -> float:
    """The tallest of the bars that a note of this width, in bars, above bar i would cover."""
    reach = int(np.ceil(width / 2))
    return float(lengths[max(i - reach, 0) : i + reach + 1].max())


def _note(x: float, y: float, length: float) -> str:
    """What the chosen bar says, above it and its neighbours and inside the picture."""
    return f'<text x="{min(max(x, 76), WIDTH - 64):.1f}" y="{y - 6:.1f}" class="middle note">a factor {number(np.exp(length), 3)}</text>'


# -- the annealing -------------------------------------------------------------------------------------------------------------


def tree_picture(model: Any, frames: Frames) -> str:
    """The components along one direction against β, with a line at the current temperature."""
    lines = [
        f'<polyline class="branch hue{hue}" points="{_points(zip(frames.x, heights, strict=True))}"/>'
        for hue, heights in zip(frames.hues, frames.heights, strict=True)
    ]
    now = f"{frames.x[frames.first]:.1f}"
    body = (
        _shade(model, frames)
        + "".join(lines)
        + f'<line id="cursor" class="cursor" x1="{now}" x2="{now}" y1="6" y2="{HEIGHT - 34:g}"/>'
        + _beta_axis(frames)
    )
    last = plural(int(frames.counts[-1]), "component")
    description = f"β grows to the right. One centre parts into {last}; every fork is a phase transition."
    return figure("tree", "Components part as β grows", description, body)


def lasting(model: Any) -> bool:
    """Whether it is known from which β to which the chosen number of components lasts, in the annealing that is drawn."""
    return 2 <= model.n_components_ <= len(criticals(model))


def _shade(model: Any, frames: Frames) -> str:
    """The range of β in which the chosen number of components lasts."""
    if not lasting(model):
        return ""
    ends = model.critical_betas_[model.n_components_ - 2 : model.n_components_]
    left, right = np.interp(np.log(ends), np.log(frames.beta), frames.x)
    return f'<rect class="lasting" x="{left:.1f}" y="6" width="{max(right - left, 0):.1f}" height="{HEIGHT - 40:g}"/>'


def _beta_axis(frames: Frames) -> str:
    y = HEIGHT - 34
    ends = "".join(
        f'<text x="{frames.x[i]:.1f}" y="{y + 16:g}" class="{kind}">{number(frames.beta[i], 2)}</text>'
        for i, kind in ((0, "start"), (-1, "end"))
    )
    return (
        f'<line class="axis" x1="{MARGIN:g}" x2="{WIDTH - MARGIN:g}" y1="{y:g}" y2="{y:g}"/>{ends}'
        f'<text x="{WIDTH / 2:g}" y="{y + 26:g}" class="middle">inverse temperature β →</text>'
    )


def plane_picture(frames: Frames) -> str:
    """The components in the plane in which the items spread most, at the current temperature."""
    i = frames.first
    trails = [
        f'<polyline class="trail hue{hue}" points="{_points(path[: i + 1])}"/>'
        for hue, path in zip(frames.hues, frames.points, strict=True)
    ]
    dots = [
        f'<circle class="dot hue{hue}" cx="{path[i, 0]:.1f}" cy="{path[i, 1]:.1f}" r="{radius[i]:.1f}"/>'
        for hue, path, radius in zip(frames.hues, frames.points, frames.radius, strict=True)
    ]
    description = "Each dot is a component; dots lie on one another until they part. A larger dot holds more of them."
    return figure("plane", "The components in the plane in which the data spread most", description, "".join(trails + dots))


def _points(pairs: Any) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


# -- bars in tables ------------------------------------------------------------------------------------------------------------


def size_bar(size: float, top: float, lower: float | None, upper: float | None) -> str:
    """A size as a bar, its bounds as ticks; the numbers stand beside it."""
    ticks = "".join(
        f'<rect class="{kind}" x="{200 * bound / top - 1:.1f}" y="0" width="2" height="16"/>' for bound, kind in _ticks(lower, upper)
    )
    bar = f'<rect class="bar chosen" y="3" width="{200 * size / top:.1f}" height="10"/>'
    return f'<svg class="size" viewBox="-1 0 202 16" preserveAspectRatio="none" aria-hidden="true">{bar}{ticks}</svg>'


def _ticks(lower: float | None, upper: float | None) -> list[tuple[float, str]]:
    return [(bound, kind) for bound, kind in ((lower, "least"), (upper, "most")) if bound is not None]


def weight_bar(share: float) -> str:
    """A weight relative to the largest."""
    bar = f'<rect class="bar chosen" width="{100 * share:.1f}" height="6"/>'
    return f'<svg class="weight" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{bar}</svg>'
