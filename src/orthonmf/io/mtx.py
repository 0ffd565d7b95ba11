"""MatrixMarket, plain or compressed."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

from scipy import sparse
from scipy.io import mmread

from ..exceptions import InvalidInputError
from .base import Data


def read(path: Path, key: str | None = None) -> Data:
    """The matrix of the file: sparse from coordinates, dense from an array."""
    return Data(matrix(path))


def matrix(path: Path) -> Any:
    """As a CSR array, or an ndarray."""
    content = path.read_bytes()
    if path.suffix.lower() == ".gz":
        content = gzip.decompress(content)
    # scipy's reader looks for the end of each line, and past the end of the memory where a zero byte hides it or a file that is cut off has
    # none: the process is gone.
    if b"\0" in content:
        raise InvalidInputError("is not text: it holds zero bytes. Expected MatrixMarket.")
    found = mmread(io.BytesIO(content + b"\n"))
    return sparse.csr_array(found) if sparse.issparse(found) else found
