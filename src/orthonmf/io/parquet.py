"""Parquet, as pandas, polars and R write it."""

from __future__ import annotations

from pathlib import Path

from .arrow import matrix
from .base import Data, needs
from .columns import Columns


def read(path: Path, key: str | None = None, columns: Columns = Columns()) -> Data:  # noqa: B008 (it is frozen)
    """The columns of numbers, with their names."""
    needs("pyarrow", ".parquet")
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:  # of a path with = in it, read_table would make columns
        return matrix(file.read(), columns)
