"""Solvers: how responsibilities, prices and centres are found at a temperature. One file each.

``gibbs`` serves free components. The registry maps the name of a solver for bounded ones to its function, imported when asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._registry import imported

REGISTRY = {
    "dual": "orthonmf.solvers.dual:solve",
    "cbf": "orthonmf.solvers.cbf:solve",
}


def bounded_solver(name: str) -> Callable[..., Any]:
    """The function registered under ``name``: (engine, distortion, bounds, monitor, options) → Relaxed."""
    found: Callable[..., Any] = imported(REGISTRY["dual" if name == "auto" else name])
    return found
