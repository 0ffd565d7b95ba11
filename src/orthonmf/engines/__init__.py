"""Engines: the only objects that see X. One file each; the registry maps a name to its class, imported when asked for."""

from __future__ import annotations

from functools import cache

from .._common.registry import imported
from ..exceptions import MissingExtraError
from .base import Engine
from .threads import ThreadTeam

REGISTRY = {
    "compiled": "orthonmf.engines.compiled:CompiledEngine",
    "compiled-sparse": "orthonmf.engines.compiled:CompiledSparseEngine",
    "dask": "orthonmf.engines.dask:DaskEngine",
    "dense": "orthonmf.engines.dense:DenseEngine",
    "masked": "orthonmf.engines.masked:MaskedEngine",
    "sparse": "orthonmf.engines.sparse:SparseEngine",
    "torch": "orthonmf.engines.torch:TorchEngine",
    "torch-sparse": "orthonmf.engines.torch_sparse:TorchSparseEngine",
}
#: Of a name that means dense items the engine for sparse ones.
SPARSE = {"torch": "torch-sparse"}


def engine_class(name: str) -> type[Engine]:
    """The engine registered under ``name``."""
    found: type[Engine] = imported(REGISTRY[name])
    return found


@cache
def available(name: str) -> bool:
    """Whether the engine registered under ``name`` has all that it needs."""
    try:
        engine_class(name)
    except MissingExtraError:
        return False
    return True


__all__ = ["REGISTRY", "SPARSE", "Engine", "ThreadTeam", "available", "engine_class"]
