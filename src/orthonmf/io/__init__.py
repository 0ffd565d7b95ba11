"""Matrices and tables from files, with their names. One format per file; nothing that a file holds is ever executed.

The registry maps the end of a file's name to its reader, imported when asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .._common.files import no_file
from .._common.registry import imported
from ..exceptions import InvalidInputError, OrthonmfError
from .base import Data
from .columns import ALL, Columns
from .packed import PACKED, PACKS
from .table import as_csv, read_names, write_table

__all__ = ["REGISTRY", "Columns", "Data", "as_csv", "read", "read_names", "write_table"]

REGISTRY = {
    **{f"{kind}{pack}": "orthonmf.io.text:read" for kind in (".csv", ".tsv", ".txt") for pack in ("", *PACKS)},
    ".zip": "orthonmf.io.text:read",
    ".xlsx": "orthonmf.io.xlsx:read",
    ".feather": "orthonmf.io.arrow:read",
    ".arrow": "orthonmf.io.arrow:read",
    ".parquet": "orthonmf.io.parquet:read",
    ".npy": "orthonmf.io.npy:read",
    ".npz": "orthonmf.io.npz:read",
    ".mtx": "orthonmf.io.mtx:read",
    ".mtx.gz": "orthonmf.io.mtx:read",
    ".h5": "orthonmf.io.hdf5:read",
    ".hdf5": "orthonmf.io.hdf5:read",
    ".h5ad": "orthonmf.io.h5ad:read",
    ".mat": "orthonmf.io.mat:read",
}
_FOLDER = "orthonmf.io.tenx:read"
# These choose among their columns while they read, since a column that is left out may hold words.
_TABLES = ("orthonmf.io.text:read", "orthonmf.io.xlsx:read", "orthonmf.io.arrow:read", "orthonmf.io.parquet:read")

# Reading these runs what they hold.
_UNSAFE = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".pkl.gz")


def read(path: str | os.PathLike[str], *, key: str | None = None, columns: Columns | None = None) -> Data:
    """A matrix from a file, or from a 10x folder, with the names of its rows and columns where it has them.

    Parameters
    ----------
    path : path-like
        ``.csv``, ``.tsv`` or ``.txt`` (each also ``.gz``, ``.bz2``, ``.xz``, ``.zst``, or the only file in a ``.zip``), ``.xlsx``,
        ``.parquet``, ``.feather``, ``.arrow``, ``.npy``, ``.npz`` (of numpy or scipy.sparse), ``.mtx`` (also ``.gz``), ``.h5``, ``.hdf5``,
        ``.h5ad``, ``.mat``; or a folder with ``matrix.mtx``, ``barcodes.tsv`` and ``features.tsv`` (or ``genes.tsv``), each also ``.gz``,
        whose cells become the rows. How words, numbers and decimal commas are told apart in text is said in ``orthonmf.io.text``.
    key : str or None, default=None
        Which array, where a file holds several: its name in ``.npz`` and ``.mat``, its path in HDF5, the layer of an ``.h5ad`` ("raw" for
        its raw counts; None for X), the sheet of an ``.xlsx`` (None for the first).
    columns : Columns or None, default=None
        Which columns are read, and which one names the rows; None for all.

    Returns
    -------
    data : Data
        With ``X``, ``row_names`` and ``column_names``.

    Raises
    ------
    InvalidInputError
        The file is missing, damaged, of no known kind, of one that is not safe to read, holds several arrays and no key is given, or is
        HDF5 and takes anything from another file.
    MissingExtraError
        The format needs a package that is not installed.

    Notes
    -----
    Reading happens in this process. The libraries behind HDF5, Parquet and MatrixMarket can crash on a damaged file; the command
    ``orthonmf`` reads these in a process of their own, with limits on time and memory.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from orthonmf.io import read
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "fruit.csv")
    ...     _ = path.write_text("basket,apples,pears\\nAnn,3,0\\nBob,1,2\\n")
    ...     data = read(path)
    >>> data.X
    array([[3., 0.],
           [1., 2.]])
    >>> data.row_names.tolist(), data.column_names.tolist()
    (['Ann', 'Bob'], ['apples', 'pears'])
    """
    path = Path(path)
    where, columns = place(path), ALL if columns is None else columns
    reader = imported(where)
    with named(str(path)):
        if where not in _TABLES:
            return columns.of(reader(path, key))
        data: Data = reader(path, key, columns)
        return columns.of(data) if data.column_names is None else data


@contextmanager
def named(source: str) -> Iterator[None]:
    """Whatever is wrong with what is read in the block is said of ``source``."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{source}: {error}") from error
    except (OrthonmfError, KeyboardInterrupt):
        raise
    except MemoryError as error:
        raise InvalidInputError(f"{source} does not fit in memory: {_first_line(error)}.") from error
    except Exception as error:  # a damaged file makes the parsers raise whatever they like
        raise InvalidInputError(f"{source} cannot be read: {_first_line(error)}. Is it complete, and what its name says?") from error


def place(path: Path) -> str:
    """Where the reader for a path is, or why there is none."""
    if path.is_dir():
        return _FOLDER
    if not path.is_file():
        raise InvalidInputError(f"{no_file(path)}; expected a matrix: {_known()}.")
    name = path.name.lower()
    if name.endswith(_UNSAFE):
        raise InvalidInputError(f"{path} is not read: a file of this kind can run code. Save the matrix as .npy, .npz or .parquet.")
    suffix = max((suffix for suffix in REGISTRY if name.endswith(suffix)), key=len, default=None)
    if suffix is None:
        raise InvalidInputError(f"{path} is of no known kind; expected {_known()}.")
    if path.stat().st_size == 0:
        raise InvalidInputError(f"{path} is empty; expected a matrix of numbers.")
    return REGISTRY[suffix]


def _known() -> str:
    plain = ", ".join(suffix for suffix in REGISTRY if not suffix.endswith(PACKED))
    return f"{plain} (text also in {', '.join(PACKED)}; .mtx in .gz), or a folder with matrix.mtx"


def _first_line(error: BaseException) -> str:
    """What an error says, in a line."""
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__
