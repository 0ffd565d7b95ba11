"""Clouds of points for the tests of the number of components."""

from __future__ import annotations

import numpy as np

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.dense import DenseEngine
from orthonmf.search.number import Number, number_of_components
from orthonmf.search.number.cloud import Cloud, clouds_of, effective_number


def cloud_of_points(points: np.ndarray, weight: np.ndarray | None = None) -> Cloud:
    """Points as they are, without noise that is known."""
    return Cloud(points, np.ones(len(points)) if weight is None else weight, 0.0, 0.0, np.arange(len(points)), np.ones(len(points)))


def cloud_of_items(X: np.ndarray, scaling: str = "none", most: int = 16) -> Cloud | None:
    """The cloud of the rows of X."""
    with ThreadTeam(1) as team:
        engine = DenseEngine(np.asarray(X, dtype=float), None, shift=0, team=team)
        return next(iter(clouds_of(engine, REGISTRY["frobenius", scaling].of(engine), most, effective_number(np.ones(len(X))))), None)


def number_of(X: np.ndarray, scaling: str = "none", most: int = 16) -> Number:
    """How many components the rows of X have."""
    with ThreadTeam(1) as team:
        engine = DenseEngine(np.asarray(X, dtype=float), None, shift=0, team=team)
        return number_of_components(engine, REGISTRY["frobenius", scaling].of(engine), most, effective_number(np.ones(len(X))))
