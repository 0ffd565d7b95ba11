"""Numbers in a text file, with names: CSV and TSV, plain or compressed.

What is taken for what:

- **Separator.** A tab in .tsv. Otherwise the comma; or the semicolon, or the tab, where the first line has it and no comma, or where it
  separates numbers with decimal commas.
- **Decimal comma.** Read as such where the separator is not a comma. Decimal points and commas in one file are refused, since one of them
  may group thousands. With commas between the columns a line of decimal commas has more columns than the header, and is refused.
- **Header.** The first line, where it is words or mostly words; not where it is all numbers. A few words and more numbers are a header
  where the numbers run up or down (1, 2, 3; 1990, 2000, 2010; the wavelengths of a spectrum; fewer than five must be whole and equally
  far apart, and two must follow one another), and else the first row.
- **Names of the rows.** The first column, where it starts with a word (and not with a sign for what is missing, such as NA), or where the
  header leaves its head empty, or out as R does (between commas a number under no head is a decimal comma, and no name).
- **Apostrophes** before ``=``, ``+``, ``-`` or ``@`` in a name: the first is left out. It keeps spreadsheets from calculating the name, and
  ``write_table`` puts it there.
- **Encoding.** UTF-8, with or without a byte order mark; UTF-16 with one; otherwise Latin-1.

Every other entry must be a finite number; the first that is not is named by line and column.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from math import isfinite
from pathlib import Path

import numpy as np

from ..exceptions import InvalidInputError
from .base import Data, texts
from .table import unguarded

Row = list[str]

# Fewer numbers than this in a first line may run up or down by chance; as names they must be whole and equally far apart.
FEW = 5
# What stands where a number should: a number with marks of its own (1.234,5), or a sign that there is none.
_NO_WORD = re.compile(r"[-+]?[\d.,\s]*|na|n/a|null|none|\?|-", re.IGNORECASE)


def read(path: Path, key: str | None = None) -> Data:
    """The matrix of the file."""
    content = path.read_bytes()
    name = path.name.lower()
    if name.endswith(".gz"):
        content, name = gzip.decompress(content), name.removesuffix(".gz")
    text = _Text.of(content)
    first = next((line for line in text.lines() if line.strip()), "")
    return _parse(text, "\t" if name.endswith(".tsv") else separator(first))


@dataclass(frozen=True)
class _Text:
    """Bytes and what makes letters of them: decoded a little at a time, since as letters they take several times the room."""

    content: bytes
    encoding: str

    @classmethod
    def of(cls, content: bytes) -> _Text:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            content = content.decode("utf-16").encode("utf-8")
        if b"\0" in content[:4096]:
            raise InvalidInputError("is not text: it holds zero bytes. Expected lines of numbers.")
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            return cls(content, "latin-1")
        return cls(content, "utf-8-sig")

    def lines(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(self.content), self.encoding, newline="")

    def __contains__(self, mark: str) -> bool:
        return mark.encode("ascii") in self.content


def separator(line: str) -> str:
    """What separates the columns of a first line: a comma, a semicolon or a tab."""
    bare = "".join(line.split('"')[::2])  # what stands between quotes separates nothing
    for mark in ";\t":
        numbers = line.split(mark)[1:]
        if mark in bare and ("," not in bare or all(_is_number(each.replace(",", ".", 1)) for each in numbers)):
            return mark
    return ","


def _rows(text: _Text, mark: str) -> Iterator[tuple[int, Row]]:
    """The lines that are not blank, as fields, each with its number in the file."""
    reader = csv.reader(text.lines(), delimiter=mark, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise InvalidInputError(f"line {reader.line_num}: {error}; are the quotes in pairs?") from error


def _parse(text: _Text, mark: str) -> Data:
    rows = _rows(text, mark)
    line, first = next(rows, (1, []))
    if not first:
        raise InvalidInputError("holds only blank lines; expected lines of numbers.")
    header = first if _is_header(first) else None
    body = rows if header else chain([(line, first)], rows)
    start, second = next(body, (0, []))
    if not second:
        raise InvalidInputError("there is no line under the header; expected lines of numbers.")
    if len(second) == 1 and len(second[0].split()) > 1:
        raise InvalidInputError(f"line {start} has spaces between its columns, it seems; separate them with commas, semicolons or tabs.")
    fits = header is not None and len(header) == len(second) - 1
    short = fits and (mark != "," or _is_word(second[0]))
    named = short or (header is not None and not header[0].strip()) or _is_word(second[0])
    width = len(second) if header is None or short else len(header)
    numbers = _Numbers(width, named, mark, _converter(text, mark))
    for line, row in chain([(start, second)], body):
        numbers.add(line, row)
    columns = None if header is None else texts([unguarded(name.strip()) for name in header[0 if short else named :]])
    return Data(numbers.matrix(), texts(numbers.names) if named else None, columns)


def _is_header(row: Row) -> bool:
    """Whether a first line holds names: mostly words, or words and numbers that run steadily up or down."""
    if all(_is_number(entry) for entry in row):
        return False
    values = [float(entry.replace(",", ".", 1)) for entry in row if _is_number(entry)]
    numbers = [value for value in values if isfinite(value)]  # a name may be NaN
    if sum(_is_word(entry) for entry in row[1:]) > len(numbers):
        return True
    steps = [other - one for one, other in pairwise(numbers)]
    if 0 < len(numbers) < FEW:
        equal = len(set(steps)) == 1 and (len(steps) > 1 or abs(steps[0]) == 1)
        return equal and steps[0] != 0 and all(number.is_integer() for number in numbers)
    return all(step > 0 for step in steps) or all(step < 0 for step in steps)


def _is_number(entry: str) -> bool:
    """Whether an entry is a number, with a point or a comma; Python's 1_000 is a name."""
    try:
        float(entry.replace(",", ".", 1))
    except ValueError:
        return False
    return "_" not in entry


def _is_word(entry: str) -> bool:
    """Whether an entry can only be a name: no number, none that is written badly, and none that is missing."""
    return not (_is_number(entry) or _NO_WORD.fullmatch(entry.strip()))


def _converter(text: _Text, mark: str) -> Callable[[str], float]:
    """What makes a number of an entry: ``float`` itself, unless the text has what it must not take or cannot read."""
    if mark != "," and "," in text:
        return _OneMark()
    return _strict if "_" in text else float


def _strict(entry: str) -> float:
    if "_" in entry:
        raise ValueError(entry)
    return float(entry)


class _OneMark:
    """Numbers with decimal commas or with decimal points, as the first of them has; not with both."""

    mark = ""

    def __call__(self, entry: str) -> float:
        for mark in (mark for mark in ",." if mark in entry):
            if mark != (self.mark or mark):
                raise ValueError(entry)
            self.mark = mark
        return _strict(entry.replace(",", ".", 1))


class _Numbers:
    """Rows of numbers, one after the other."""

    def __init__(self, width: int, named: bool, mark: str, convert: Callable[[str], float]) -> None:
        self._width, self._first, self._mark, self._convert = width, int(named), mark, convert
        self._values, self._lines = array("d"), array("q")
        self.names: list[str] = []
        if width == self._first:
            raise InvalidInputError("there is no column of numbers beside the names.")

    def add(self, line: int, row: Row) -> None:
        if len(row) != self._width:
            raise InvalidInputError(self._ragged(line, row))
        if self._first:
            self.names.append(unguarded(row[0].strip()))
        try:
            self._values.extend(map(self._convert, row[self._first :]))
        except ValueError:
            self._refuse(line, row)
        self._lines.append(line)

    def matrix(self) -> np.ndarray:
        X = np.frombuffer(self._values).reshape(len(self._lines), -1)
        if not np.isfinite(X).all():
            i, j = np.argwhere(~np.isfinite(X))[0]
            raise InvalidInputError(
                f"line {self._lines[i]}, column {j + self._first + 1} is no finite number ({X[i, j]}); fill or remove it."
            )
        return X

    def _ragged(self, line: int, row: Row) -> str:
        told = f"line {line} has {len(row)} columns, those before {self._width}; expected the same number in each."
        decimal = self._mark == "," and len(row) > self._width
        return told + (" If its numbers have decimal commas, separate them with semicolons." if decimal else "")

    def _refuse(self, line: int, row: Row) -> None:
        for j, entry in enumerate(row[self._first :], start=self._first + 1):
            try:
                self._convert(entry)
            except ValueError:
                raise InvalidInputError(f"line {line}, column {j} is {entry[:40]!r}, not a number{self._hint(entry)}.") from None

    def _hint(self, entry: str) -> str:
        if not entry.strip():
            return "; fill it, with 0 if that is meant"
        if self._mark == "," and "," in entry and _is_number(entry):
            return "; write a decimal comma as a point, or separate the columns with semicolons"
        if isinstance(self._convert, _OneMark) and _is_number(entry.replace(".", "")):
            return "; write all numbers with a decimal point, or all with a decimal comma, and none with marks between thousands"
        return "; fill it if it is missing, and leave the column out if it holds words (only the first column may hold names)"
