"""numpy's .npy, mapped and not loaded: a matrix larger than memory can be read, and a size the file does not have is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Data


def read(path: Path, key: str | None = None) -> Data:
    """The array of the file."""
    return Data(np.lib.format.open_memmap(path, mode="r"))  # numpy.load advises to unpickle what it does not know
