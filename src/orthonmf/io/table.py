"""Tables of results: columns with names, as CSV or Parquet."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from .._files import atomic
from .._typing import Array
from ..exceptions import InvalidInputError
from .base import needs


def write_table(path: str | os.PathLike[str], columns: Iterable[tuple[str, Any]]) -> None:
    """Write a table, whole or not at all; the same columns give the same bytes.

    Parameters
    ----------
    path : path-like
        Ends in ``.csv`` or ``.parquet``.
    columns : iterable of (name, values)
        Numbers are written so that they read back as they were. In Parquet a name that was there before gets a number.

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
    columns = [(name, np.asarray(values)) for name, values in columns]
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
    lines = _Lines()
    writer = csv.writer(lines)
    writer.writerow(names)
    # numpy's text of a float is the shortest that reads back the same, in float32 too.
    writer.writerows(zip(*(np.asarray(each).astype(str).tolist() for each in values), strict=True))
    return "".join(lines)


class _Lines(list[str]):
    """What a csv writer writes, each line with the short end; given the long one, it puts quotes around a name with either half."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


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
    array(['a', 'b'], dtype='<U1')
    """
    path = Path(path)
    try:
        return np.array(_first_column(path), dtype=np.str_)
    except (ValueError, csv.Error, IndexError) as error:
        raise InvalidInputError(f"{path} is no table that can be read: {error}. Write it again.") from error


def _first_column(path: Path) -> list[str]:
    if path.suffix.lower() == ".parquet":
        needs("pyarrow", ".parquet")
        import pyarrow.parquet as pq

        return [str(name) for name in pq.read_table(path).column(0).to_pylist()]
    with path.open(encoding="utf-8", newline="") as file:
        return [row[0] for row in csv.reader(file) if row][1:]


def _csv(path: Path, columns: Sequence[tuple[str, Array]]) -> None:
    path.write_text(as_csv(columns), encoding="utf-8", newline="")


def _parquet(path: Path, columns: Sequence[tuple[str, Array]]) -> None:
    pyarrow = needs("pyarrow", ".parquet")
    import pyarrow.parquet as pq

    arrays = [pyarrow.array(values.tolist() if values.dtype.kind == "U" else values) for _, values in columns]
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
