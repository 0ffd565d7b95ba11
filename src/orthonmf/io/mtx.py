"""MatrixMarket, plain or compressed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scipy import sparse
from scipy.io import mmread

from .base import Data


def read(path: Path, key: str | None = None) -> Data:
    """The matrix of the file: sparse from coordinates, dense from an array."""
    return Data(matrix(path))


def matrix(path: Path) -> Any:
    """As a CSR array, or an ndarray."""
    found = mmread(path)
    return sparse.csr_array(found) if sparse.issparse(found) else found
