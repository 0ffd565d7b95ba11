"""Tables of Arrow: a first column of words, or the index of a pandas table, names the rows. Feather and Arrow's own files and streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from .base import Data, needs, texts
from .columns import ALL, Columns, typed

# How pandas calls an index without a name.
_INDEX = "__index_level_"
# How a file begins, of the second and of the first version; a stream has no such sign.
_FILES = (b"ARROW1", b"FEA1")


def read(path: Path, key: str | None = None, columns: Columns = ALL) -> Data:
    """The columns of numbers, with their names."""
    needs("pyarrow", path.suffix.lower())
    import pyarrow.feather

    with path.open("rb") as file:
        start = file.read(max(map(len, _FILES)))
        file.seek(0)
        return matrix(pyarrow.feather.read_table(file) if start.startswith(_FILES) else pyarrow.ipc.open_stream(file).read_all(), columns)


def matrix(table: Any, columns: Columns) -> Data:
    """The columns of numbers of a table, those that are asked for."""
    names, index = table.column_names, _index(table)
    named = index[0] if len(index) == 1 else None
    choice = columns.chosen(names, named) if columns else None
    levels = index if choice is None or (choice.names is None and len(index) > 1) else [choice.names] if choice.names is not None else []
    kept = [j for j in (range(len(names)) if choice is None else choice.kept) if j not in levels]
    words = [j for j in kept if not _numeric(table.field(j).type)]
    if words:
        name = typed(names[words[0]])
        raise InvalidInputError(
            f"column {names[words[0]]!r} is of type {table.field(words[0]).type}; expected numbers, after at most one column of names. "
            f"Leave it out with --drop {name}, or take it as names of the rows with --id-column {name}."
        )
    if not kept:
        raise InvalidInputError("there is no column of numbers; expected numbers, after at most one column of names.")
    X = np.column_stack([_numbers(table.column(j), names[j], missing=columns.missing) for j in kept])
    lists = [table.column(j).to_pylist() for j in levels]
    rows = texts([", ".join(str(level) for level in name) for name in zip(*lists, strict=True)]) if lists else None
    return Data(X, rows, texts([names[j] for j in kept]))


def _index(table: Any) -> list[int]:
    """The columns that name the rows: those which pandas notes as its index, with or without a name, or a first column of words."""
    names, noted = table.column_names, (table.schema.pandas_metadata or {}).get("index_columns", ())
    index = [j for j, name in enumerate(names) if name in noted or name.startswith(_INDEX)]
    return index or ([0] if names and not _numeric(table.field(0).type) else [])


def _numeric(type_: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_) or types.is_decimal(type_))


def _numbers(column: Any, name: str, *, missing: bool) -> Array:
    if column.null_count and not missing:
        row = next(i for i, value in enumerate(column) if not value.is_valid)
        raise InvalidInputError(
            f"column {name!r} has no value in row {row + 1}; fill it, with 0 if that is meant, leave the column out with "
            f"--drop {typed(name)}, or fit what is there (on the command line, fit --missing ignore)."
        )
    values: Array = column.to_numpy()  # with NaN for what has no value
    return values.astype(np.float64) if values.dtype.kind not in "fiu" else values
