"""Implementations by the place where they are, imported when asked for, so that a missing extra never breaks an import."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["imported"]


def imported(place: str) -> Any:
    """What "module:name" names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
