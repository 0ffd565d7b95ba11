"""Parquet files, and folders of them: their columns, in pieces of whole row groups. What a data frame had as its index is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from .base import Stored


class RowGroups:
    """The row groups of files that have the same columns, in the order of the files' names."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.name = path.name
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not files:
            raise InvalidInputError(f"{str(path)!r} holds no .parquet file; expected a folder of them, or one file.")
        self._groups: list[tuple[Path, int]] = []
        rows, schema = [0], None
        for file in files:
            with pq.ParquetFile(file) as opened:
                schema = schema or opened.schema_arrow
                if opened.schema_arrow.names != schema.names:
                    raise InvalidInputError(f"{file.name} has other columns than {files[0].name}; all files of a folder need the same.")
                for group in range(opened.num_row_groups):
                    self._groups.append((file, group))
                    rows.append(rows[-1] + opened.metadata.row_group(group).num_rows)
        index = _index(schema)
        fields = [field for field in schema if field.name not in index]  # type: ignore[union-attr]
        if (text := next((field for field in fields if not _numeric(field.type)), None)) is not None:
            raise InvalidInputError(
                f"column {text.name!r} of {files[0].name} is of type {text.type}; a matrix on disk has columns of numbers alone. Write it "
                f"without that column, or with it as the index: frame.set_index({text.name!r}).to_parquet(path)."
            )
        self.columns = [field.name for field in fields]
        kinds = {np.dtype(field.type.to_pandas_dtype()) for field in fields}
        self.dtype = np.dtype(np.float32) if kinds == {np.dtype(np.float32)} else np.dtype(np.float64)
        self.borders = np.array(rows)
        self.shape: tuple[int, ...] = rows[-1], len(self.columns)

    def read(self, start: int, stop: int, out: Array) -> None:
        """Fill ``out`` with a row group, or with several that lie side by side; what has no value is NaN."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for number in range(np.searchsorted(self.borders, start), np.searchsorted(self.borders, stop)):
            path, group = self._groups[number]
            with pq.ParquetFile(path) as file:
                table = file.read_row_group(group, columns=self.columns)
            rows = slice(self.borders[number] - start, self.borders[number + 1] - start)
            for j, column in enumerate(self.columns):
                values = table.column(column)
                out[rows, j] = (values.cast(pa.float64()) if values.null_count else values).to_numpy()


def _index(schema: Any) -> set[str]:
    """Names of the columns that are no data, but the index of a data frame."""
    known = schema.pandas_metadata or {}
    return {name for name in known.get("index_columns", ()) if isinstance(name, str)}


def _numeric(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def of(X: Any) -> Stored:
    """The path of a file, or of a folder."""
    return Stored(RowGroups(Path(X)))
