"""Which columns of a table are numbers to be read, and which one names the rows."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from .base import Data, texts

# As many names are listed in a message.
LISTED = 12


@dataclass(frozen=True)
class Choice:
    """The places of the columns of numbers, and of the one that names the rows."""

    kept: list[int]
    names: int | None


@dataclass(frozen=True)
class Columns:
    """The columns that are asked for, by name.

    Parameters
    ----------
    drop : tuple of str
        Columns that are left out.
    keep : tuple of str or None
        The only columns of numbers that are read; None for all. The order is that of the file.
    names : str or None
        The column that names the rows; None for what the reader finds.
    missing : bool
        Whether an entry that is blank, or says that it is missing (NA, NaN, NULL, a point, a dash), is read as NaN, and not refused.

    Examples
    --------
    >>> from orthonmf.io import Columns, Data
    >>> data = Columns(drop=("b",), names="id").of(Data([[7, 1, 2], [8, 3, 4]], column_names=["id", "a", "b"]))
    >>> data.X.tolist(), data.row_names.tolist(), data.column_names.tolist()
    ([[1], [3]], ['7', '8'], ['a'])
    """

    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] | None = None
    names: str | None = None
    missing: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "drop", tuple(self.drop))
        object.__setattr__(self, "keep", None if self.keep is None else tuple(self.keep))

    def __bool__(self) -> bool:
        """Whether any columns are asked for."""
        return replace(self, missing=False) != ALL

    def chosen(self, heads: Sequence[str], names: int | None = None) -> Choice:
        """The places of the columns under these heads; ``names`` is the place of the column that would name the rows by itself."""
        asked = (("--drop", self.drop), ("--keep", self.keep or ()), ("--id-column", () if self.names is None else (self.names,)))
        for option, wanted in asked:
            _check_there(option, wanted, heads)
        if self.names is not None:
            names = heads.index(self.names)
        elif names is not None and heads[names] and heads[names] in (*self.drop, *(self.keep or ())):
            names = None
        out, only = set(self.drop), set(heads if self.keep is None else self.keep)
        kept = [j for j, head in enumerate(heads) if j != names and head not in out and head in only]
        if self and not kept:
            raise InvalidInputError("no column of numbers is left; take fewer names into --drop, or more into --keep.")
        return Choice(kept, names)

    def of(self, data: Data) -> Data:
        """Of a matrix with names of columns, those that are asked for."""
        if not self:
            return data
        if data.column_names is None:
            raise InvalidInputError(
                "its columns have no names, which --drop, --keep and --id-column ask for; name them with --names FILE, a name in each line."
            )
        choice = self.chosen(data.column_names.tolist())
        rows = data.row_names if choice.names is None else _as_names(data.X[:, [choice.names]])
        return Data(data.X[:, choice.kept], rows, data.column_names[choice.kept])


# Nothing is asked for.
ALL = Columns()


def listed(names: Iterable[str]) -> str:
    """Names in a message, the first few of many."""
    names = list(names)
    return ", ".join(map(repr, names[:LISTED])) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def typed(name: str) -> str:
    """A name as it is typed after an option that takes names with commas between."""
    cell = f'"{name.replace(chr(34), chr(34) * 2)}"' if '"' in name or "," in name else name
    return shlex.quote(cell)


def repeated(names: Iterable[str]) -> list[str]:
    """The names that are there more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def _check_there(option: str, wanted: Sequence[str], heads: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in heads]
    if missing:
        raise InvalidInputError(f"{option}: there is no column {listed(missing)}; there are {listed(head for head in heads if head)}.")
    twice = [name for name in repeated(heads) if name in wanted]
    if twice:
        places = " and ".join(str(j + 1) for j, head in enumerate(heads) if head == twice[0])
        raise InvalidInputError(f"{option}: the name {twice[0]!r} stands over columns {places}; give each a name of its own.")


def _as_names(column: Array) -> Array:
    """Numbers as names; a whole one has no point."""
    values = np.asarray(column.toarray() if hasattr(column, "toarray") else column).ravel()
    whole = values.dtype.kind == "f" and np.isfinite(values).all() and (values == np.round(values)).all()
    return texts((values.astype(np.int64) if whole else values).tolist())
