"""Distortions: what it costs to put an item into a component. One file each; the registry maps a scaling to its class."""

from __future__ import annotations

from .base import Distortion, Items, Pairs
from .euclidean import Euclidean
from .line import Line

REGISTRY: dict[str, type[Distortion]] = {"item": Line, "none": Euclidean}


def has_scales(scaling: str) -> bool:
    """Whether each item has a scale of its own: components are directions then, and means otherwise."""
    return REGISTRY[scaling].scaled


__all__ = ["REGISTRY", "Distortion", "Euclidean", "Items", "Line", "Pairs", "has_scales"]
