"""What a model says of a matrix on disk, written to disk: rows in, rows out, in constant memory, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._common.files import atomic
from .._common.typing import Array
from ..exceptions import InvalidInputError, MissingExtraError
from .base import Stored, StoredRows
from .kinds import stored

# Takes rows, in order.
Put = Callable[[Array], None]


def write(method: Callable[[Any], Any], X: Any, target: str | os.PathLike[str]) -> None:
    """Write what a method of a model returns for every row of a matrix on disk, without holding either.

    Parameters
    ----------
    method : callable
        As ``model.predict``, ``model.transform`` or ``model.predict_proba``: from rows to as many rows, or numbers.
    X : path, or matrix on disk
        As ``ONMF.fit`` takes it, by rows.
    target : path-like
        A .npy, .h5 (its dataset "X"), .zarr or .parquet (columns "0", "1", …). It appears when it is complete, and replaces an older one.

    Raises
    ------
    InvalidInputError
        X is not on disk or not by rows, or the target is of no such kind, or is what is read.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from orthonmf import ONMF
    >>> from orthonmf.sources import write
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/X.npy", X)
    ...     write(ONMF(2).fit(X).predict, f"{folder}/X.npy", f"{folder}/labels.npy")
    ...     np.load(f"{folder}/labels.npy")
    array([1, 1, 0])
    """
    source, path = stored(X), Path(target)
    if not isinstance(source, Stored | StoredRows):
        raise InvalidInputError(f"X is a {type(X).__name__} that does not lie on disk by rows; call the method on it.")
    if path.suffix.lower() not in TARGETS:
        raise InvalidInputError(f"target={str(path)!r} is of no kind that can be written; expected {', '.join(TARGETS)}.")
    check_not_read(X, path)
    with _naming_extras(path), TARGETS[path.suffix.lower()](path, len(source)) as put:
        for _, part in source.parts():
            found = method(part)
            put(np.asarray(found.toarray() if hasattr(found, "toarray") else found))


def check_not_read(X: Any, path: Path) -> None:
    """Refuse to replace the file that a matrix is read from."""
    read = X if isinstance(X, str | os.PathLike) else getattr(getattr(X, "file", X), "filename", None)  # of h5py, or of a map
    if read is not None and path.exists() and path.samefile(read):
        raise InvalidInputError(f"{str(path)!r} is what is read, and would be replaced; choose another file to write to.")


@contextmanager
def _naming_extras(path: Path) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"{path.suffix} needs {error.name}, which is not installed: pip install 'orthonmf[io]'.") from error


@contextmanager
def _npy(path: Path, n_rows: int) -> Iterator[Put]:
    with atomic(path) as draft, draft.open("wb") as file:
        begun = False

        def put(rows: Array) -> None:
            nonlocal begun
            if not begun:
                described = {"descr": np.lib.format.dtype_to_descr(rows.dtype), "fortran_order": False, "shape": (n_rows, *rows.shape[1:])}
                np.lib.format.write_array_header_1_0(file, described)
                begun = True
            file.write(np.ascontiguousarray(rows).data)

        yield put
        file.flush()


@contextmanager
def _hdf5(path: Path, n_rows: int) -> Iterator[Put]:
    import h5py

    with atomic(path) as draft, h5py.File(draft, "w") as file:
        yield _into(n_rows, lambda shape, dtype: file.create_dataset("X", shape, dtype))


@contextmanager
def _zarr(path: Path, n_rows: int) -> Iterator[Put]:
    import zarr

    draft = path.with_name(f".{path.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        yield _into(n_rows, lambda shape, dtype: zarr.create_array(draft, shape=shape, dtype=dtype))
        shutil.rmtree(path, ignore_errors=True)
        os.replace(draft, path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _into(n_rows: int, made: Callable[[tuple[int, ...], Any], Any]) -> Put:
    """Fill an array that is made when its width is known."""
    array: Any = None
    start = 0

    def put(rows: Array) -> None:
        nonlocal array, start
        array = made((n_rows, *rows.shape[1:]), rows.dtype) if array is None else array
        array[start : start + len(rows)] = rows
        start += len(rows)

    return put


@contextmanager
def _parquet(path: Path, n_rows: int) -> Iterator[Put]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with atomic(path) as draft:
        writer: Any = None

        def put(rows: Array) -> None:
            nonlocal writer
            columns = rows.reshape(len(rows), -1)
            table = pa.table({str(j): np.ascontiguousarray(columns[:, j]) for j in range(columns.shape[1])})
            writer = writer or pq.ParquetWriter(draft, table.schema)
            writer.write_table(table)

        try:
            yield put
        finally:
            if writer is not None:
                writer.close()


TARGETS = {".npy": _npy, ".h5": _hdf5, ".zarr": _zarr, ".parquet": _parquet}
