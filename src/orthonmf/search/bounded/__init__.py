"""Bounds on the sizes of components: solvers of the relaxed problem, the exact assignment, and the search within bounds.

A solver is one file. The registry maps the name of a solver for bounded ones to its function, to the `Options` that it takes
and to the ability that it needs of a loss, imported when asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._common.registry import imported
from ...distortion.base import Distortion

REGISTRY = {
    "dual": ("orthonmf.search.bounded.dual:solve", "orthonmf.search.bounded.dual:DualParameters", "orthonmf.distortion.base:Splitting"),
    "cbf": ("orthonmf.search.bounded.cbf:solve", "orthonmf.search.bounded.flow:FlowParameters", "orthonmf.distortion.base:Flowing"),
}


def bounded_solver(name: str) -> Callable[..., Any]:
    """The function registered under ``name``: (engine, distortion, bounds, note, parameters, seed, offer) → Relaxed."""
    found: Callable[..., Any] = imported(REGISTRY["dual" if name == "auto" else name][0])
    return found


def solver_parameters(name: str, given: Any) -> Any:
    """The constants of the solver registered under ``name``, from what a user wrote."""
    return imported(REGISTRY["dual" if name == "auto" else name][1]).of(given)


def solver_needs(name: str) -> type[Distortion]:
    """The ability that the solver registered under ``name`` needs of a loss."""
    found: type[Distortion] = imported(REGISTRY["dual" if name == "auto" else name][2])
    return found
