"""The pictures of the report: SVG that is there without any script."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._common.typing import Array, Labels
from ..model.track import criticals
from ..search.number.curve import chance, coarser, stands_out
from ..search.transitions import MIN_PERSISTENCE
from .frames import HEIGHT, MARGIN, WIDTH, Frames, placed
from .heat import Heat
from .hues import hue
from .plane import Plane
from .text import name, number, percent, plural

__all__ = [
    "Dots",
    "curve_picture",
    "heat_picture",
    "histogram",
    "items_picture",
    "lasting",
    "persistence_picture",
    "plane_picture",
    "size_bar",
    "tree_picture",
    "weight_bar",
]

# Of the words above the chosen bar, in the units of the picture.
NOTE_WIDTH = 120.0
# The picture of the items.
ITEMS_WIDTH, ITEMS_HEIGHT = 720.0, 460.0
# Margins at which dots become stronger: below the first an item could as well be elsewhere.
DEPTHS = (0.1, 0.3, 0.6)
# Up to so many dots, how wide each is.
DOT_SIZES = ((300, 8.0), (2000, 5.5), (np.inf, 3.5))
# Numbers in the picture are so far from one another, where some steps suffice for that.
MARK_SIZE, APART_STEPS = 24.0, 100
# Bars of a histogram between 0 and 1.
BINS = 20
# Between components in the heat map, as a part of all samples; steps of darkness; and the percent of the width that a number needs, on a
# phone too.
HEAT_GAP, HEAT_LEVELS, HEAT_NUMBERED, HEAT_NARROW = 0.004, 8, 2.0, 6.0


def figure(name: str, title: str, description: str, body: str, *, width: float = WIDTH, height: float = HEIGHT) -> str:
    """An SVG that a screen reader announces as one image with a title and a description."""
    return (
        f'<svg id="{name}" class="picture" viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="{name}-title {name}-desc">'
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
            for i in np.flatnonzero((numbers == model.n_components_) & ~(lengths <= level))  # what chance reaches needs no words
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


def curve_picture(key: str, title: str, numbers: Labels, values: Array, model: Any) -> str:
    """One quantity against the number of components, as a line with a dot for each; the numbers that stand out larger."""
    left, right, base, ceiling = 68.0, WIDTH - 14.0, 232.0, 18.0
    known = np.isfinite(values)
    numbers, values = numbers[known], values[known]
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    x = left + (numbers - numbers[0]) / max(int(numbers[-1] - numbers[0]), 1) * (right - left)
    y = base - (values - low) / max(high - low, np.finfo(float).tiny) * (base - ceiling)
    kinds = {**dict.fromkeys(coarser(model), " level"), model.n_components_: " chosen"}
    dots = "".join(
        f'<circle class="point{kinds.get(m, "")}" cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="{6 if m in kinds else 3.2}"/>'
        for i, m in enumerate(numbers.tolist())
    )
    step = -(-int(numbers[-1] - numbers[0] + 1) // 8)
    dots += "".join(
        f'<text x="{place:.1f}" y="{base + 17:g}" class="middle">{m}</text>'
        for m in range(int(numbers[0]), int(numbers[-1]) + 1, step)
        for place in np.interp([m], numbers, x)
    )
    ends = "".join(
        f'<text x="{left - 8:g}" y="{place + 4:g}" class="end">{number(value, 2)}</text>' for value, place in ((high, ceiling), (low, base))
    )
    body = (
        f'<line class="axis" x1="{left:g}" x2="{right:g}" y1="{base:g}" y2="{base:g}"/><polyline class="curve" points="'
        f'{_points(zip(x, y, strict=True))}"/>{dots}{ends}<text x="{(left + right) / 2:g}" y="{base + 36:g}" class="middle">number of '
        "components</text>"
    )
    here = values[numbers == model.n_components_]
    description = f"From {number(low, 3)} to {number(high, 3)}" + (f"; {number(here[0], 3)} at the number chosen." if len(here) else ".")
    return figure(key, title, description, body, height=276)


# -- the annealing -------------------------------------------------------------------------------------------------------------


def tree_picture(model: Any, frames: Frames) -> str:
    """The components along one direction against β, with a line at the current temperature."""
    lines = [f'<polyline class="branch" points="{_points(zip(frames.x, heights, strict=True))}"/>' for heights in frames.heights]
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
    found, m = criticals(model), model.n_components_
    return 2 <= m <= len(found) and bool(found[m - 1] > found[m - 2])


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
    trails = [f'<polyline class="trail" points="{_points(path[: i + 1])}"/>' for path in frames.points]
    dots = [
        f'<circle class="dot" cx="{path[i, 0]:.1f}" cy="{path[i, 1]:.1f}" r="{radius[i]:.1f}"/>'
        for path, radius in zip(frames.points, frames.radius, strict=True)
    ]
    description = "Each dot is a component; dots lie on one another until they part. A larger dot holds more of them."
    return figure("plane", "The components in the plane in which the data spread most", description, "".join(trails + dots))


def _points(pairs: Any) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


# -- bars in tables ------------------------------------------------------------------------------------------------------------


def size_bar(component: int, size: float, top: float, lower: float | None, upper: float | None) -> str:
    """A size as a bar, its bounds as ticks; the numbers stand beside it."""
    ticks = "".join(
        f'<rect class="{kind}" x="{200 * bound / top - 1:.1f}" y="0" width="2" height="16"/>' for bound, kind in _ticks(lower, upper)
    )
    bar = f'<rect class="hued {hue(component)}" y="3" width="{200 * size / top:.1f}" height="10"/>'
    return f'<svg class="size" viewBox="-1 0 202 16" preserveAspectRatio="none" aria-hidden="true">{bar}{ticks}</svg>'


def _ticks(lower: float | None, upper: float | None) -> list[tuple[float, str]]:
    return [(bound, kind) for bound, kind in ((lower, "least"), (upper, "most")) if bound is not None]


def weight_bar(share: float) -> str:
    """A weight relative to the largest, in the colour of what it stands in."""
    bar = f'<rect class="hued" width="{100 * share:.1f}" height="6"/>'
    return f'<svg class="weight" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{bar}</svg>'


def histogram(margin: Array, component: int) -> str:
    """How many of the margins are where between 0 and 1, those below 0 in front of a line; the highest bar is as high as the picture."""
    counts = np.histogram(np.clip(margin, -0.5 / BINS, 1), bins=np.linspace(-1 / BINS, 1, BINS + 2))[0]
    bars = "".join(
        f'<rect class="hued" x="{10 * i + 0.5:g}" y="{20 - 19 * n / counts.max():.1f}" width="9" height="{19 * n / counts.max():.1f}"/>'
        for i, n in enumerate(counts.tolist())
        if n
    )
    axis = '<path class="axis" d="M0 20H210M10 0V20"/>'
    size = f"0 0 {10 * (BINS + 1)} 20.5"
    return f'<svg class="histogram {hue(component)}" viewBox="{size}" preserveAspectRatio="none" aria-hidden="true">{bars}{axis}</svg>'


# -- the items -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dots:
    """The picture of the items, and which item each of its dots is, in the order in which they are drawn."""

    svg: str
    index: Labels


def items_picture(plane: Plane, item: str) -> Dots:
    """Items as dots in the colours of their components, paler where their margin is small, with a number where the most of each are."""
    points = placed(plane.points, ITEMS_WIDTH, ITEMS_HEIGHT).round(1)
    depth = np.full(len(points), len(DEPTHS)) if plane.margin is None else np.searchsorted(DEPTHS, plane.margin, side="right")
    size = next(width for most, width in DOT_SIZES if len(points) <= most)
    paths, order = [], []
    for level in range(len(DEPTHS) + 1):  # the clearest on top
        for j in np.unique(plane.labels).tolist():
            own = np.flatnonzero((plane.labels == j) & (depth == level))
            if len(own):
                dots = "".join(f"M{x:g} {y:g}h0" for x, y in points[own].tolist())
                paths.append(f'<path class="items depth{level} {hue(j)}" data-component="{j}" stroke-width="{size:g}" d="{dots}"/>')
                order.append(own)
    used = np.unique(plane.labels).tolist()
    middles = _apart(np.array([np.median(points[plane.labels == j], axis=0) for j in used]))
    marks = "".join(_mark(j, place) for j, place in zip(used, middles, strict=True))
    description = (
        f"{plural(len(points), item)} as dots in the plane in which the means of the components lie farthest apart, coloured by component. "
        f"It shows {percent(plane.share)} of the variance."
    )
    ring = '<circle id="ring" class="ring" r="7" visibility="hidden"/>'
    title = f"The {item}s in a plane"
    body = f"{''.join(paths)}{marks}{ring}"
    return Dots(figure("items-plane", title, description, body, width=ITEMS_WIDTH, height=ITEMS_HEIGHT), np.concatenate(order))


def _apart(places: Array) -> Array:
    """Places (n, 2) moved apart until no two numbers there cover one another, or for some steps."""
    places = places + 1e-3 * np.stack([np.cos(np.arange(len(places))), np.sin(np.arange(len(places)))], axis=1)  # none quite the same
    for _ in range(APART_STEPS):
        between = places[:, None] - places[None]
        distance = np.linalg.norm(between, axis=2) + np.where(np.eye(len(places)), np.inf, 0)
        push = np.maximum(MARK_SIZE - distance, 0) / 2 / distance
        if not push.any():
            break
        places = places + (push[:, :, None] * between).sum(axis=1)
    return np.clip(places, MARK_SIZE / 2, np.array([ITEMS_WIDTH, ITEMS_HEIGHT]) - MARK_SIZE / 2)


def _mark(j: int, place: Array) -> str:
    return f'<text class="mark" data-component="{j}" x="{place[0]:.1f}" y="{place[1] + 5:.1f}">{j}</text>'


def heat_picture(heat: Heat, names: list[str], item: str) -> str:
    """A row of blocks for each feature, in the colour of its component, under a line that tells the components of the samples."""
    gap = heat.sizes.sum() * HEAT_GAP
    change = np.append(0, np.cumsum(np.diff(heat.groups) != 0))
    left = np.append(0, np.cumsum(heat.sizes)[:-1]) + gap * change
    width = float(left[-1] + heat.sizes[-1])
    levels = np.ceil(heat.means * HEAT_LEVELS - 0.5).astype(int)
    rows = "".join(
        f'<div class="feature {hue(part)}">{_named(part, names[i])}{_strip(levels[i], left, heat.sizes, width)}</div>'
        for i, part in enumerate(heat.parts.tolist())
    )
    title = "The data in the order of the components"
    description = (
        f"{plural(len(heat.features), 'feature')} in rows, {item}s in columns, both by component: the stronger the colour, the larger. "
        "Blocks along the diagonal are what tells components apart."
    )
    return (
        f'<div class="heat" role="img" aria-label="{title}. {description}"><div class="feature heads"><span></span>'
        f"{_heads(heat, left, width)}</div>{rows}</div>"
    )


def _named(part: int, text: str) -> str:
    return f'<span class="label"><span class="part">{part}</span> {name(text)}</span>'


def _heads(heat: Heat, left: Array, width: float) -> str:
    """The components of the samples as bars with numbers."""
    bars = []
    for j in np.unique(heat.groups).tolist():
        own = np.flatnonzero(heat.groups == j)
        start, stop = 100 * left[own[0]] / width, 100 * (left[own[-1]] + heat.sizes[own[-1]]) / width
        bars.append(f'<rect class="hued {hue(j)}" x="{start:.2f}%" width="{stop - start:.2f}%" y="16" height="5"/>')
        if stop - start >= HEAT_NUMBERED:
            narrow = " narrow" if stop - start < HEAT_NARROW else ""
            bars.append(f'<text class="middle{narrow}" x="{(start + stop) / 2:.2f}%" y="11">{j}</text>')
    return f'<svg class="strip">{"".join(bars)}</svg>'


def _strip(levels: Labels, left: Array, sizes: Labels, width: float) -> str:
    """The blocks of one feature; neighbours of one level are one line."""
    drawn: dict[int, list[str]] = {}
    starts = np.flatnonzero(np.append(True, (np.diff(levels) != 0) | (left[1:] - left[:-1] > sizes[:-1])))
    for start, stop in pairwise([*starts.tolist(), len(levels)]):
        if levels[start]:
            drawn.setdefault(int(levels[start]), []).append(f"M{left[start]:.0f} .5H{left[stop - 1] + sizes[stop - 1]:.0f}")
    paths = "".join(f'<path class="level{level}" d="{"".join(lines)}"/>' for level, lines in sorted(drawn.items()))
    return f'<svg class="strip" viewBox="0 0 {width:.0f} 1" preserveAspectRatio="none">{paths}</svg>'
