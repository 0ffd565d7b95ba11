"""Parquet, as pandas, polars and R write it: a first column of words, or the index of a pandas table, names the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from .base import Data, needs, texts

# How pandas calls an index without a name.
_INDEX = "__index_level_"


def read(path: Path, key: str | None = None) -> Data:
    """The columns of numbers, with their names."""
    needs("pyarrow", ".parquet")
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:  # of a path with = in it, read_table would make columns
        table = file.read()
    names = table.column_names
    index = _index(table)
    kept = [j for j in range(len(names)) if j not in index]
    words = [names[j] for j in kept if not _numeric(table.field(j).type)]
    if words or not kept:
        what = f"column {words[0]!r} is of type {table.schema.field(words[0]).type}" if words else "there is no column of numbers"
        raise InvalidInputError(f"{what}; expected numbers, after at most one column of names.")
    X = np.column_stack([_numbers(table.column(j), names[j]) for j in kept])
    levels = [table.column(j).to_pylist() for j in index]
    rows = texts([", ".join(str(level) for level in name) for name in zip(*levels, strict=True)]) if levels else None
    return Data(X, rows, texts([names[j] for j in kept]))


def _index(table: Any) -> list[int]:
    """The columns that name the rows: those which pandas notes as its index, with or without a name, or a first column of words."""
    names, noted = table.column_names, (table.schema.pandas_metadata or {}).get("index_columns", ())
    index = [j for j, name in enumerate(names) if name in noted or name.startswith(_INDEX)]
    return index or ([0] if names and not _numeric(table.field(0).type) else [])


def _numeric(type_: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_) or types.is_decimal(type_))


def _numbers(column: Any, name: str) -> Array:
    if column.null_count:
        row = next(i for i, value in enumerate(column) if not value.is_valid)
        raise InvalidInputError(f"column {name!r} has no value in row {row}; fill or remove it.")
    values: Array = column.to_numpy()
    return values.astype(np.float64) if values.dtype.kind not in "fiu" else values
