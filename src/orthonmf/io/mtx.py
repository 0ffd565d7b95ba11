"""MatrixMarket, plain or compressed.

scipy's reader trusts the size that a file claims, and ends the process where a matrix has no rows or a symmetric one is not square. So the
banner and the size are read here, refused where they cannot be true, and written anew for it.
"""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import sparse
from scipy.io import mmread

from ..exceptions import InvalidInputError
from .base import Data

# What the words of the banner may be, after %%MatrixMarket. A skew-symmetric matrix has negative entries, a hermitian one complex ones.
BANNER = (
    ("matrix",),
    ("coordinate", "array"),
    ("real", "double", "integer", "unsigned-integer", "pattern"),
    ("general", "symmetric"),
)
# As many digits has the largest size that 8 bytes hold.
MOST_DIGITS = 18


def read(path: Path, key: str | None = None) -> Data:
    """The matrix of the file: sparse from coordinates, dense from an array."""
    return Data(matrix(path))


def matrix(path: Path) -> Any:
    """As a CSR array, or an ndarray."""
    content = path.read_bytes()
    if path.suffix.lower() == ".gz":
        content = gzip.decompress(content)
    # scipy's reader looks for the end of each line, and past the end of the memory where a zero byte hides it or a file that is cut off has
    # none: the process is gone.
    if b"\0" in content:
        raise InvalidInputError("is not text: it holds zero bytes. Expected MatrixMarket.")
    head = _Head.of(content)
    found = mmread(io.BytesIO(b"".join((head.text(), memoryview(content)[head.end :], b"\n"))))
    return sparse.csr_array(found) if sparse.issparse(found) else found


@dataclass(frozen=True)
class _Head:
    """The banner and the size of a file, the lines that they take with the comments between them, and where they end."""

    banner: list[str]
    size: list[int]
    n_lines: int
    end: int

    @classmethod
    def of(cls, content: bytes) -> _Head:
        lines = io.BytesIO(content)
        banner = _banner(lines.readline())
        n_lines = 1
        for line in lines:
            n_lines += 1
            if line.strip() and not line.startswith(b"%"):
                size = _size(line, banner)
                _check_size(size, banner, len(content) - lines.tell())
                return cls(banner, size, n_lines, lines.tell())
        raise InvalidInputError("is cut off: there is no line with the size of the matrix.")

    def text(self) -> bytes:
        """The same on as many lines, so that an error names the right one."""
        comments = "%\n" * (self.n_lines - 2)
        return f"%%MatrixMarket {' '.join(self.banner)}\n{comments}{' '.join(map(str, self.size))}\n".encode("ascii")


def _banner(line: bytes) -> list[str]:
    first, *words = line.decode("latin-1").lower().split() or [""]
    if first not in ("%%matrixmarket", "%matrixmarket"):
        raise InvalidInputError("is no MatrixMarket file: its first line does not start with %%MatrixMarket.")
    good = len(words) == len(BANNER) and all(word in known for word, known in zip(words, BANNER, strict=True))
    if not good or words[1:3] == ["array", "pattern"]:
        expected = ", then ".join(" or ".join(known) for known in BANNER)
        raise InvalidInputError(f"holds {' '.join(words)[:60]!r}, which is not read; expected {expected}; no array of pattern.")
    return words


def _size(line: bytes, banner: list[str]) -> list[int]:
    """The numbers of rows and columns and, of coordinates, of entries."""
    words = line.split()
    if len(words) != (3 if banner[1] == "coordinate" else 2) or not all(word.isdigit() and len(word) <= MOST_DIGITS for word in words):
        expected = "rows, columns and entries" if banner[1] == "coordinate" else "rows and columns"
        raise InvalidInputError(f"has the size {line.decode('latin-1').strip()[:60]!r}; expected the numbers of {expected}.")
    return [int(word) for word in words]


def _check_size(size: list[int], banner: list[str], room: int) -> None:
    """Refuse a size that no matrix has, or for which too few bytes follow: an entry takes four at least ("1 1" and the end of its line), a
    value of an array two.
    """
    n_rows, n_columns, *entries = size
    if not n_rows or not n_columns:
        raise InvalidInputError(f"holds a matrix of {n_rows} rows and {n_columns} columns; expected at least one of each.")
    if banner[3] == "symmetric" and n_rows != n_columns:
        raise InvalidInputError(f"holds a symmetric matrix of {n_rows} rows and {n_columns} columns; expected as many of each.")
    values = n_rows * n_columns if banner[3] == "general" else n_rows * (n_rows + 1) // 2
    expected = 4 * entries[0] if entries else 2 * values
    if expected > room + 1:  # the last line may have no end
        raise InvalidInputError(f"is cut off, or damaged: {entries[0] if entries else values} entries do not fit into {room} bytes.")
