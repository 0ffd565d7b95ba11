"""The annealing as frames of a moving picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.typing import Array, Labels
from ..model.track import Track, drawable, widest_view
from .text import number, plural

__all__ = ["Frames", "placed"]

# As many temperatures at the most: a smooth movement, and a small file.
MOST_FRAMES = 120
# Width and height of the pictures, and the room that is left around what is drawn.
WIDTH, HEIGHT, MARGIN = 440.0, 300.0, 18.0


@dataclass(frozen=True)
class Frames:
    """What is drawn at each temperature, in the units of the pictures.

    Attributes
    ----------
    beta : ndarray of shape (n_frames,)
    counts : ndarray of shape (n_frames,)
        Distinct components.
    free_energy, distortion : ndarray of shape (n_frames,)
    x : ndarray of shape (n_frames,)
        Where each temperature is on the logarithmic axis of the tree.
    heights : ndarray of shape (n_components, n_frames)
        The components in the tree.
    points : ndarray of shape (n_components, n_frames, 2)
        The components in the plane.
    radius : ndarray of shape (n_components, n_frames)
        The more components are still together, the larger.
    first : int
        The frame to begin with: the last one with as many components as the model has.
    """

    beta: Array
    counts: Labels
    free_energy: Array
    distortion: Array
    x: Array
    heights: Array
    points: Array
    radius: Array
    first: int

    @classmethod
    def of(cls, model: Any) -> Frames | None:
        """The frames of a fitted model; None where nothing splits, or the temperatures do not show where."""
        if not drawable(model):
            return None
        track = Track.of(model.history_)
        if len(track.beta) < 2 or len(track.ids[-1]) < 2:
            return None
        end, chosen = len(track.beta) - 1, track.last(model.n_components_)
        branches, paths = track.branches(end), track.paths(end)
        distinct = np.array([len(np.unique(branches[:, i])) for i in range(end + 1)])
        shown = _chosen_frames(distinct, track.start(end), chosen)
        history = model.history_
        return cls(
            beta=track.beta[shown],
            counts=distinct[shown],
            free_energy=np.asarray(history["free_energy"])[track.steps[shown]],
            distortion=np.asarray(history["distortion"])[track.steps[shown]],
            x=_fitted(np.log(track.beta[shown]), MARGIN, WIDTH - MARGIN),
            heights=_fitted(paths[:, shown] @ widest_view(track.projection[chosen]), HEIGHT - 2.4 * MARGIN, MARGIN),
            points=placed(paths[:, shown], WIDTH, HEIGHT),
            radius=5.0 * np.sqrt(1 + 0.35 * (_together(branches[:, shown]) - 1)),
            first=int(np.flatnonzero(shown == chosen)[0]),
        )

    def caption(self, i: int) -> str:
        """What a frame shows, in words."""
        return f"β = {number(self.beta[i])}: {plural(int(self.counts[i]), 'component')}"

    def data(self) -> dict[str, Any]:
        """What the page's script needs."""
        return {
            "captions": [self.caption(i) for i in range(len(self.beta))],
            "counts": self.counts.tolist(),
            "betas": [number(value) for value in self.beta],
            "energies": [number(value) for value in self.free_energy],
            "distortions": [number(value) for value in self.distortion],
            "x": np.round(self.x, 1).tolist(),
            "points": np.round(self.points, 1).tolist(),
            "radius": np.round(self.radius, 1).tolist(),
            "first": self.first,
        }


def _chosen_frames(distinct: Labels, start: int, chosen: int) -> Labels:
    """From ``start`` on: all temperatures, or where they are too many, some of them and those around a split."""
    end = len(distinct) - 1
    every = np.arange(min(start, chosen), end + 1)
    if len(every) <= MOST_FRAMES:
        return every
    splits = np.flatnonzero(np.diff(distinct)) + 1
    around = np.concatenate([splits - 1, splits, [chosen, end]])
    around = around[around >= every[0]]
    even = np.linspace(every[0], end, max(MOST_FRAMES - len(around), 2)).astype(np.intp)
    return np.unique(np.concatenate([around, even]))


def _together(branches: Labels) -> Array:
    """With how many others each component is still one, itself included."""
    return (branches[:, None, :] == branches[None, :, :]).sum(axis=1).astype(np.float64)


def _fitted(values: Array, low: float, high: float) -> Array:
    """Values moved and stretched to lie between two ends; in the middle where they do not differ."""
    least, most = float(np.min(values)), float(np.max(values))
    if most <= least:
        return np.full(np.shape(values), (low + high) / 2)
    return low + (np.asarray(values) / (most - least) - least / (most - least)) * (high - low)


def placed(points: Array, width: float, height: float) -> Array:
    """Points (…, 2) fitted into a picture, both directions to one scale, the second upwards."""
    low, high = (np.apply_over_axes(end, points, range(points.ndim - 1)).ravel() for end in (np.min, np.max))
    size = np.array([width, height])
    unit = max(float((high - low).max()), np.finfo(float).tiny)
    shape = (points - low) / unit  # first to order one: the units of X may be anything
    scale = float(np.min((size - 2.5 * MARGIN) / np.maximum((high - low) / unit, 1e-3)))
    return np.asarray((shape - (high - low) / unit / 2) * scale * (1, -1) + size / 2)
