"""Parquet, as pandas, polars and R write it."""

from __future__ import annotations

from pathlib import Path

from .arrow import matrix
from .base import Data, needs
from .columns import ALL, Columns


def read(path: Path, key: str | None = None, columns: Columns = ALL) -> Data:
    """The columns of numbers, with their names."""
    needs("pyarrow", ".parquet")
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:  # of a path with = in it, read_table would make columns
        return matrix(file.read(), columns)
