"""Distortions: what it costs to put an item into a component. One file each; the registry maps a loss and a scaling to its class."""

from __future__ import annotations

from collections.abc import Mapping

from .base import Distortion, Items, Pairs
from .euclidean import Euclidean
from .kullback_leibler import Poisson, Profile
from .line import Line
from .partial import Partial, PartialEuclidean, PartialLine
from .partial_counts import PartialPoisson, PartialProfile

REGISTRY: dict[tuple[str, str], type[Distortion]] = {
    ("frobenius", "item"): Line,
    ("frobenius", "none"): Euclidean,
    ("kullback-leibler", "item"): Profile,
    ("kullback-leibler", "none"): Poisson,
}
#: The same over the numbers that are there, where some are missing.
PARTIAL: dict[tuple[str, str], type[Partial]] = {
    ("frobenius", "item"): PartialLine,
    ("frobenius", "none"): PartialEuclidean,
    ("kullback-leibler", "item"): PartialProfile,
    ("kullback-leibler", "none"): PartialPoisson,
}
# What is done about missing numbers, and the losses for it.
MISSING: dict[str, Mapping[tuple[str, str], type[Distortion]]] = {"error": REGISTRY, "ignore": PARTIAL}


def losses() -> tuple[str, ...]:
    """Names of the losses."""
    return tuple(dict.fromkeys(loss for loss, _ in REGISTRY))


def scalings(loss: str) -> tuple[str, ...]:
    """Names of the scalings of a loss."""
    return tuple(scaling for name, scaling in REGISTRY if name == loss)


def loss_of(model: object) -> type[Distortion]:
    """The class of the loss that an estimator, or a request, asks for."""
    named = getattr(model, "loss", "frobenius"), model.scaling  # type: ignore[attr-defined]
    return MISSING[getattr(model, "missing", "error")][named]


__all__ = [
    "MISSING",
    "PARTIAL",
    "REGISTRY",
    "Distortion",
    "Euclidean",
    "Items",
    "Line",
    "Pairs",
    "Poisson",
    "Profile",
    "loss_of",
    "losses",
    "scalings",
]
