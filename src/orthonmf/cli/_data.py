"""What a command takes of a file: which matrix, which columns, and which way round."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path

from scipy.sparse import csr_array, issparse

from .._common.files import STDIN
from .._common.memory import free_bytes
from .._common.typing import Array
from ..exceptions import InvalidInputError
from ..io import Columns, Data
from ..io.apart import read
from ..io.base import texts
from ..io.columns import ALL, listed, repeated
from ..io.large import KINDS, only_piece_by_piece, open_stored
from ..sources import ON_DISK

# Data that take a larger share of the free memory stay on disk: a fit needs some as well.
ROOM = 0.5
# Numbers seldom take less than this part of their room where they are compressed: smaller files are not even opened to see.
PACKED = 32


@dataclass(frozen=True)
class Taken:
    """What is taken of a file. All names are those of the file as it is; it is transposed last."""

    key: str | None = None
    columns: Columns = ALL
    names: Path | None = None
    transpose: bool = False

    def read(self, path: Path) -> Data:
        """The matrix that is meant; one that does not fit in memory stays on disk, if it is of a kind that is read piece by piece."""
        names = None if self.names is None else _lines(self.names)
        data = self._left_on_disk(path)
        if data is not None and isinstance(data.X, ON_DISK):
            return data
        if data is None and names is None:
            data = read(path, key=self.key, columns=self.columns)
        else:
            data = read(path, key=self.key) if data is None else data
            data = self.columns.of(data if names is None else _named(data, names, self.names, source(path)))
        _check_unscaled(path, data)
        return _transposed(data) if self.transpose else data

    def _left_on_disk(self, path: Path) -> Data | None:
        """The matrix on disk, where it is too large for memory; and one that no other reader knows."""
        alone = only_piece_by_piece(path)
        if not alone and (path.suffix.lower() not in KINDS or not path.is_file() or path.stat().st_size <= ROOM * free_bytes() / PACKED):
            return None
        data = open_stored(path, self.key)
        if data.X.nbytes <= ROOM * free_bytes():
            return replace(data, X=data.X.loaded()) if alone else None
        if self != Taken(self.key):
            raise InvalidInputError(
                f"{path} has {data.X.nbytes / 2**30:.1f} GiB of numbers, which do not fit in memory, where --drop, --keep, --id-column, "
                "--names and --transpose need them. Write the file first as it is meant."
            )
        return data


def taken(
    *,
    key: str | None = None,
    drop: str | None = None,
    keep: str | None = None,
    id_column: str | None = None,
    names: Path | None = None,
    transpose: bool = False,
) -> Taken:
    """What the options say."""
    columns = Columns(_words("drop", drop), None if keep is None else _words("keep", keep), id_column)
    return Taken(key, columns, names, transpose)


def source(path: Path) -> str:
    """A file in a message."""
    return "standard input" if path == STDIN else str(path)


def _check_unscaled(path: Path, data: Data) -> None:
    """Refuse cells that were centred, with where the others are."""
    if path.suffix == ".h5ad" and data.X.size and (least := float(data.X.min())) < 0:
        raise InvalidInputError(
            f"{path} has negative numbers, the least {least:.3g}: they were centred or scaled. Take those from before, --key raw or --key "
            "with the name of a layer."
        )


def _words(option: str, text: str | None) -> tuple[str, ...]:
    """Names with commas between; one that holds a comma is in quotes."""
    if text is None:
        return ()
    try:
        names = tuple(name.strip() for name in next(csv.reader([text], strict=True, skipinitialspace=True), []))
    except csv.Error:
        names = ()
    if not names or not all(names):
        raise InvalidInputError(
            f"--{option} {text!r} is not usable; expected names of columns with commas between (a,b), those with a comma in quotes "
            "('\"a, b\",c')."
        )
    return names


def _named(data: Data, names: Array, path: Path | None, where: str) -> Data:
    """The same with the names of the file ``path``."""
    if data.column_names is not None:
        raise InvalidInputError(f"{where} has names of its columns ({listed(data.column_names[:3])}); leave --names out.")
    if len(names) != data.X.shape[1]:
        raise InvalidInputError(f"--names {path} holds {len(names)} names, {where} has {data.X.shape[1]} columns; expected one for each.")
    return replace(data, column_names=names)


def _lines(path: Path) -> Array:
    """The lines of a file of names, but for blank ones at its end."""
    if not path.is_file():
        raise InvalidInputError(f"--names {path} is not a file; expected a text file with a name in each line.")
    try:
        names = [line.strip() for line in path.read_text(encoding="utf-8-sig").rstrip().splitlines()]
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"--names {path} is no text in UTF-8 ({error.reason}); expected a name in each line.") from error
    if "" in names:
        raise InvalidInputError(f"--names {path}: line {names.index('') + 1} is blank; expected a name in each line.")
    if twice := repeated(names):
        lines = " and ".join(str(i + 1) for i, name in enumerate(names) if name == twice[0])
        raise InvalidInputError(f"--names {path}: the name {twice[0]!r} stands in lines {lines}; give each column a name of its own.")
    return texts(names)


def _transposed(data: Data) -> Data:
    return Data(csr_array(data.X.T) if issparse(data.X) else data.X.T, data.column_names, data.row_names)
