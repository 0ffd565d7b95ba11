"""Distortions: what it costs to put an item into a component. One file each; the registry maps a scaling to its class."""

from __future__ import annotations

from .base import Distortion, Items, Pairs
from .euclidean import Euclidean
from .line import Line

REGISTRY: dict[str, type[Distortion]] = {"item": Line, "none": Euclidean}

__all__ = ["REGISTRY", "Distortion", "Euclidean", "Items", "Line", "Pairs"]
