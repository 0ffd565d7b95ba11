"""What a command takes of a file: which matrix, which columns, and which way round."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from scipy.sparse import csr_array, issparse

from .._common.files import STDIN, no_file
from .._common.memory import free_bytes
from .._common.typing import Array
from .._common.validation import check_values
from ..exceptions import InvalidInputError
from ..io import Columns, Data
from ..io.apart import read
from ..io.base import texts
from ..io.columns import ALL, listed, repeated
from ..io.large import KINDS, only_piece_by_piece, open_stored
from ..sources import ON_DISK
from . import _options as options

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

    def read(self, path: Path, *, missing: bool = False) -> Data:
        """The matrix that is meant, every number of which a model takes; some may be ``missing``."""
        data = self.whole(path, missing=missing)
        check_numbers(data, missing=missing)
        return data

    def whole(self, path: Path, *, missing: bool = False) -> Data:
        """The matrix, whatever its numbers; one that does not fit in memory stays on disk where it can be read piece by piece."""
        return replace(self, columns=replace(self.columns, missing=missing))._whole(path)

    def _whole(self, path: Path) -> Data:
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
        if self != Taken(self.key, replace(ALL, missing=self.columns.missing)):
            raise InvalidInputError(
                f"{path} has {data.X.nbytes / 2**30:.1f} GiB of numbers, which do not fit in memory, where --drop, --keep, --id-column, "
                "--names and --transpose need them. Write the file first as it is meant."
            )
        return data


# By name, the options that say what is taken of a file.
_OPTIONS = {
    "key": options.Key,
    "drop": options.Drop,
    "keep": options.Keep,
    "id_column": options.IdColumn,
    "names": options.Names,
    "transpose": options.Transpose,
}


def taking(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter ``wanted`` stands for the options of what is taken of a file, as typer reads them."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[Parameter] = []
    for each in signature(command).parameters.values():
        if each.name != "wanted":
            parameters.append(each.replace(annotation=hints[each.name], kind=Parameter.KEYWORD_ONLY))
            continue
        defaults = {name: False if name == "transpose" else None for name in _OPTIONS}
        parameters += [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=option) for name, option in _OPTIONS.items()
        ]

    def run(**values: Any) -> None:
        command(wanted=_taken(**{name: values.pop(name) for name in _OPTIONS}), **values)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _taken(*, key: str | None, drop: str | None, keep: str | None, id_column: str | None, names: Path | None, transpose: bool) -> Taken:
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


def check_numbers(data: Data, *, missing: bool = False) -> None:
    """Refuse what no model takes, unless it is ``missing``, with its row and column counted from 1, and their names.

    What lies on disk is looked at by the fit.
    """

    def place(row: int, column: int) -> str:
        named = [(row, data.row_names), (column, data.column_names)]
        words = [f"{number + 1}" if names is None else f"{number + 1} ({str(names[number])!r})" for number, names in named]
        return f"row {words[0]}, column {words[1]}"

    if isinstance(data.X, (np.memmap, *ON_DISK)):
        return
    if not issparse(data.X):
        check_values(data.X, place, "orthonmf", missing=missing)
        return
    entries = data.X.tocoo()
    check_values(entries.data, lambda index: place(int(entries.row[index]), int(entries.col[index])), "orthonmf")


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
        raise InvalidInputError(f"--names {no_file(path)}; expected a text file with a name in each line.")
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
