"""Files read in a process of their own, which may die of them.

HDF5, Parquet, Feather and MatrixMarket are read by libraries in C and C++, and compressed files may hold a thousand times their size: a
damaged file can crash its reader, hold it up for ever, or take all memory. The command line therefore reads through this module. Plain
text, which we parse ourselves, and .npy, which is mapped and not read, are read where they are asked for; all other files by a new Python
process, under two limits that the kernel keeps:

- **Time**: a minute, and a second more for each MiB of the file; other than on Windows. ``ORTHONMF_READ_SECONDS`` sets another limit.
- **Memory**: what the machine has; on Linux. ``ORTHONMF_READ_GIB`` sets another limit.

Whatever the reader dies of, the error is an InvalidInputError of one line. What comes back is JSON and the bytes of arrays of numbers,
checked like those of a file; nothing is unpickled.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from .. import exceptions
from .._common.files import STDIN
from .._common.typing import Array
from ..exceptions import InvalidInputError, OrthonmfError
from . import named, place, table, text
from . import read as read_here
from .base import Data, compressed, texts
from .columns import ALL, Columns
from .packed import PACKED

__all__ = ["read", "read_names"]

SECONDS, GIB = "ORTHONMF_READ_SECONDS", "ORTHONMF_READ_GIB"
# Seconds for any file: starting Python takes one, reading a file of some MiB another.
LEAST_SECONDS = 60.0
# Read in this process: what is parsed here, and what is mapped.
HARMLESS = ("orthonmf.io.text:read", "orthonmf.io.npy:read")
# What the new process runs; a package that is not installed is where this one is.
PROGRAM = """
import sys
sys.path.append(sys.argv.pop(1))
from orthonmf.io.apart import serve
serve(*sys.argv[1:])
"""


def read(path: str | os.PathLike[str], *, key: str | None = None, columns: Columns | None = None) -> Data:
    """As ``orthonmf.io.read``, by a process of its own where the file could end this one; a dash is standard input, as text."""
    path = Path(path)
    if path == STDIN:
        return _of_stdin(ALL if columns is None else columns)
    if place(path) in HARMLESS and path.suffix.lower() not in PACKED:
        return read_here(path, key=key, columns=columns)
    answer = _asked("matrix", path, _size(path), json.dumps({"key": key, "columns": asdict(ALL if columns is None else columns)}))
    head, arrays = answer.head, answer.arrays
    X = compressed("csr", tuple(arrays), tuple(head["shape"])) if head["sparse"] else arrays[0]  # type: ignore[arg-type]
    return Data(X, head["rows"], head["columns"])


def _of_stdin(columns: Columns) -> Data:
    with named("standard input"):
        content = b"" if sys.stdin is None else sys.stdin.buffer.read()  # None where it is closed
        if not content.strip():
            raise InvalidInputError("is empty; expected a matrix of numbers as text, with commas, semicolons or tabs between the columns.")
        data = text.matrix(content, columns)
        return columns.of(data) if data.column_names is None else data


def read_names(path: str | os.PathLike[str]) -> Array:
    """As ``orthonmf.io.read_names``, by a process of its own where the file could end this one."""
    path = Path(path)
    if path.suffix.lower() != ".parquet":
        return table.read_names(path)
    return texts(_asked("names", path, _size(path)).head["rows"])


def _size(path: Path) -> int:
    """The bytes of a file, or of the files in a folder."""
    return sum(each.stat().st_size for each in path.iterdir() if each.is_file()) if path.is_dir() else path.stat().st_size


# -- what both processes know -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Answer:
    """A JSON object, and arrays of numbers."""

    head: dict[str, Any]
    arrays: list[Array]

    def write(self, stream: IO[bytes]) -> None:
        """The length of the head in eight bytes, the head, and the arrays one behind the other."""
        # A matrix by columns is sent as its transpose, so that it arrives by columns.
        turned = [each.flags.f_contiguous and not each.flags.c_contiguous for each in self.arrays]
        sent = [np.ascontiguousarray(each.T if turn else each) for each, turn in zip(self.arrays, turned, strict=True)]
        forms = [(each.dtype.str, each.shape, turn) for each, turn in zip(sent, turned, strict=True)]
        head = json.dumps({**self.head, "arrays": forms}).encode("ascii")
        stream.write(len(head).to_bytes(8, "big") + head)
        for each in sent:
            stream.write(each.reshape(-1).view(np.uint8).data)
        stream.flush()

    @classmethod
    def read(cls, stream: IO[bytes]) -> _Answer:
        """What ``write`` wrote; an error of some kind where it is not that."""
        head = json.loads(_exactly(stream, int.from_bytes(_exactly(stream, 8), "big")))
        return cls(head, [_array(stream, *form) for form in head.pop("arrays")])


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _array(stream: IO[bytes], dtype: str, shape: list[int], turned: bool) -> Array:
    array = np.empty(shape, dtype=np.dtype(dtype))
    if array.dtype.kind not in "fiub":
        raise TypeError
    if stream.readinto(array.reshape(-1).view(np.uint8).data) < array.nbytes:  # type: ignore[attr-defined]
        raise EOFError
    return array.T if turned else array


# -- the process that asks --------------------------------------------------------------------------------------------------------


def _asked(what: str, path: Path, size: int, *words: str) -> _Answer:
    """The answer of a new process, or in a line why there is none."""
    seconds, gib = _limit(SECONDS, LEAST_SECONDS + size / 2**20), _limit(GIB, _memory() / 2**30)
    # -P: a module that lies beside the data is not imported.
    command = [sys.executable, "-P", "-W", "ignore", "-c", PROGRAM, str(Path(__file__).parents[2])]
    with _started([*command, what, str(seconds), str(int(gib * 2**30)), os.fspath(path), *words]) as process:
        try:
            answer = _Answer.read(process.stdout)  # type: ignore[arg-type]
        except (EOFError, KeyError, OverflowError, TypeError, ValueError):  # whoever dies may have written anything before
            raise InvalidInputError(f"{path} cannot be read: {_death(process.wait(), seconds, gib)}") from None
    head = answer.head
    if head.get("error") == MemoryError.__name__:
        raise InvalidInputError(f"{head['text']} Its reader may take {gib:.3g} GiB; {GIB} sets another limit.")
    if "error" in head:
        raise getattr(exceptions, head["error"])(head["text"])
    return answer


@contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone when the block ends, however it ends."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # readers multiply nothing, and threads take memory
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def _limit(name: str, usual: float) -> float:
    text = os.environ.get(name)
    if text is None:
        return usual
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 < value < np.inf:
        raise InvalidInputError(f"{name}={text!r} is not usable; expected a number above 0.")
    return value


def _memory() -> int:
    """The bytes of memory that the machine has; where it does not tell, more than any has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**50


def _death(code: int, seconds: float, gib: float) -> str:
    """What a process died of, from its exit code, and what to do."""
    if hasattr(signal, "SIGALRM") and code == -signal.SIGALRM:
        return f"it took longer than {seconds:.3g} s. Is it damaged? If it is sound, set {SECONDS} to more."
    known = {each.value: each.name for each in signal.Signals}
    told = f"exit code {code}" if code >= 0 else known.get(-code, f"signal {-code}")
    return f"its reader died ({told}). It is damaged, or needs more than {gib:.3g} GiB of memory; {GIB} sets another limit."


# -- the process that reads -------------------------------------------------------------------------------------------------------


def serve(what: str, seconds: str, memory: str, path: str, *words: str) -> None:
    """Read a file and write what it holds, or what is wrong with it, to standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # a library that prints must not break into the answer
    _bound(float(seconds), int(memory))
    try:
        answer = _WORK[what](path, *words)
    except OrthonmfError as error:
        kind = MemoryError if isinstance(error.__cause__, MemoryError) else type(error)
        answer = _Answer({"error": kind.__name__, "text": str(error)}, [])
    _unbound()
    answer.write(answers)


def _bound(seconds: float, memory: int) -> None:
    """Limits that the kernel keeps, whatever this process does; what is not there on a system is left out."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _unbound() -> None:
    """From here on nothing depends on the file; who reads the answer may take his time."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


def _matrix(path: str, wanted: str) -> _Answer:
    asked = json.loads(wanted)
    data = read_here(path, key=asked["key"], columns=Columns(**asked["columns"]))
    head = {
        "sparse": sparse.issparse(data.X),
        "shape": data.X.shape,
        "rows": None if data.row_names is None else data.row_names.tolist(),
        "columns": None if data.column_names is None else data.column_names.tolist(),
    }
    return _Answer(head, [data.X.data, data.X.indices, data.X.indptr] if head["sparse"] else [data.X])


def _names(path: str) -> _Answer:
    return _Answer({"rows": table.read_names(path).tolist()}, [])


_WORK: dict[str, Callable[..., _Answer]] = {"matrix": _matrix, "names": _names}
