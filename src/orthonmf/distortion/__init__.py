"""Distortions: what it costs to put an item into a component. One file each; the registry maps a loss and a scaling to its class."""

from __future__ import annotations

from .base import Distortion, Items, Pairs
from .euclidean import Euclidean
from .kullback_leibler import Poisson, Profile
from .line import Line

REGISTRY: dict[tuple[str, str], type[Distortion]] = {
    ("frobenius", "item"): Line,
    ("frobenius", "none"): Euclidean,
    ("kullback-leibler", "item"): Profile,
    ("kullback-leibler", "none"): Poisson,
}


def losses() -> tuple[str, ...]:
    """Names of the losses."""
    return tuple(dict.fromkeys(loss for loss, _ in REGISTRY))


def scalings(loss: str) -> tuple[str, ...]:
    """Names of the scalings of a loss."""
    return tuple(scaling for name, scaling in REGISTRY if name == loss)


def loss_of(model: object) -> type[Distortion]:
    """The class of the loss that an estimator asks for."""
    return REGISTRY[getattr(model, "loss", "frobenius"), model.scaling]  # type: ignore[attr-defined]


__all__ = ["REGISTRY", "Distortion", "Euclidean", "Items", "Line", "Pairs", "Poisson", "Profile", "loss_of", "losses", "scalings"]
