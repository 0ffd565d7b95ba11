"""Engines: the only objects that see X. One file each; the registry maps a name to its class, imported when asked for."""

from __future__ import annotations

from .._common.registry import imported
from .base import Engine
from .threads import ThreadTeam

REGISTRY = {
    "dense": "orthonmf.engines.dense:DenseEngine",
    "sparse": "orthonmf.engines.sparse:SparseEngine",
}


def engine_class(name: str) -> type[Engine]:
    """The engine registered under ``name``."""
    found: type[Engine] = imported(REGISTRY[name])
    return found


__all__ = ["REGISTRY", "Engine", "ThreadTeam", "engine_class"]
