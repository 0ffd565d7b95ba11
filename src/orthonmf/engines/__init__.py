"""Engines: the only objects that see X. One file each; the registry maps a name to its class, imported when asked for."""

from __future__ import annotations

from importlib import import_module

from .base import Engine
from .threads import ThreadTeam

REGISTRY = {
    "dense": "orthonmf.engines.dense:DenseEngine",
    "sparse": "orthonmf.engines.sparse:SparseEngine",
}


def engine_class(name: str) -> type[Engine]:
    """The engine registered under ``name``."""
    module, _, attribute = REGISTRY[name].partition(":")
    found: type[Engine] = getattr(import_module(module), attribute)
    return found


__all__ = ["REGISTRY", "Engine", "ThreadTeam", "engine_class"]
