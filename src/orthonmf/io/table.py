"""Tables of results: columns with names, as CSV or Parquet."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from .._common.files import atomic
from .._common.typing import Array
from ..exceptions import InvalidInputError
from .base import needs, texts

# What makes a spreadsheet calculate, also after the apostrophes that keep it from doing so; the wide forms are those of Japanese ones.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
# What ends a cell or a line, here or where a semicolon or a tab does.
_QUOTED = re.compile(r'[",;\t\r\n]')


def write_table(path: str | os.PathLike[str], columns: Iterable[tuple[str, Any]]) -> None:
    """Write a table, whole or not at all; the same columns give the same bytes.

    Parameters
    ----------
    path : path-like
        Ends in ``.csv`` or ``.parquet``.
    columns : iterable of (name, values)
        Numbers are written so that they read back as they were. In Parquet a name that was there before gets a number.

    Notes
    -----
    Words that a spreadsheet would calculate (those that start with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line, and are no
    numbers) get an apostrophe in front in CSV, and so do words that start with apostrophes and then such a sign. `read` and `read_names`
    take it away again.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from orthonmf.io import write_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "parts.csv")
    ...     write_table(path, [("item", ["a", "b"]), ("component", [0, 1]), ("scale", [0.5, 2.0])])
    ...     print(path.read_text(), end="")
    item,component,scale
    a,0,0.5
    b,1,2.0
    """
    check_table(path)
    columns = [(name, _column(values)) for name, values in columns]
    with atomic(path) as draft:
        _WRITERS[draft.suffix.lower()](draft, columns)


def check_table(path: str | os.PathLike[str]) -> None:
    """Refuse the name of a table that cannot be written here."""
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise InvalidInputError(f"{path} is no name for a table; expected one that ends in {' or '.join(_WRITERS)}.")
    if suffix == ".parquet":
        needs("pyarrow", suffix)


def as_csv(columns: Iterable[tuple[str, Any]]) -> str:
    """A table as text, a line for each row under a line of names.

    Parameters
    ----------
    columns : iterable of (name, values)

    Returns
    -------
    text : str

    Examples
    --------
    >>> from orthonmf.io import as_csv
    >>> as_csv([("item", ["a", "b, c"]), ("scale", [0.1, 2.0])])
    'item,scale\\na,0.1\\n"b, c",2.0\\n'
    """
    names, values = zip(*columns, strict=True)
    rows = zip(*(_cells(_column(each)) for each in values), strict=True)
    return "".join(",".join(row) + "\n" for row in [[_text(str(name)) for name in names], *rows])


def _column(values: Any) -> Array:
    """Values as an array; what is no array yet becomes one of objects, in which a long name takes its own room alone."""
    return values if isinstance(values, np.ndarray) else np.array(list(values), dtype=object)


def _cells(values: Array) -> list[str]:
    """A column as text. numpy's text of a float is the shortest that reads back the same, in float32 too."""
    if values.dtype.kind in "biuf":
        numbers: list[str] = values.astype(str).tolist()
        return numbers
    return [str(each) if isinstance(each, int | float | np.number) else _text(str(each)) for each in values.tolist()]


def _text(cell: str) -> str:
    """A cell of words, in quotes where a program may take a part of it for the end of the cell or of the line."""
    cell = guarded(cell)
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if not cell or _QUOTED.search(cell) else cell


def guarded(cell: str) -> str:
    """A cell of words that no spreadsheet takes for a formula: one that might be gets an apostrophe in front, a number stays as it is."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """The cell that ``guarded`` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def read_names(path: str | os.PathLike[str]) -> Array:
    """The first column of a table that ``write_table`` wrote, as text.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    names : ndarray of str of shape (n_rows,)

    Raises
    ------
    InvalidInputError
        The file is damaged, or of another kind.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from orthonmf.io import read_names, write_table
    >>> with TemporaryDirectory() as folder:
    ...     write_table(Path(folder, "parts.csv"), [("item", ["a", "b"]), ("component", [0, 1])])
    ...     read_names(Path(folder, "parts.csv"))
    array(['a', 'b'], dtype=object)
    """
    path = Path(path)
    try:
        return texts(_first_column(path))
    except (ValueError, csv.Error, IndexError) as error:
        raise InvalidInputError(f"{path} is no table that can be read: {error}. Write it again.") from error


def _first_column(path: Path) -> list[str]:
    if path.suffix.lower() == ".parquet":
        needs("pyarrow", ".parquet")
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            return list(file.read(columns=file.schema_arrow.names[:1]).column(0).to_pylist())
    with path.open(encoding="utf-8", newline="") as file:
        return [unguarded(row[0]) for row in csv.reader(file) if row][1:]


def _csv(path: Path, columns: Sequence[tuple[str, Array]]) -> None:
    path.write_text(as_csv(columns), encoding="utf-8", newline="")


def _parquet(path: Path, columns: Sequence[tuple[str, Array]]) -> None:
    pyarrow = needs("pyarrow", ".parquet")
    import pyarrow.parquet as pq

    arrays = [pyarrow.array(values.tolist() if values.dtype.kind in "UO" else values) for _, values in columns]
    pq.write_table(pyarrow.Table.from_arrays(arrays, names=_unique([name for name, _ in columns])), path)


def _unique(names: Sequence[str]) -> list[str]:
    """The names, numbered where they repeat: a, a.1, a.2."""
    taken: set[str] = set()
    result = []
    for name in names:
        free = next(each for i in count() if (each := f"{name}.{i}" if i else name) not in taken)
        taken.add(free)
        result.append(free)
    return result


_WRITERS = {".csv": _csv, ".parquet": _parquet}
