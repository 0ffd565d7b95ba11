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
- **Comments.** Lines before the first that start with ``#``. The last of them is the header where it has as many columns as the line under
  it and that is none itself (as numpy's ``savetxt`` writes it), or holds numbers and the sign stands close to the name (``#OTU ID``).
- **Booleans.** true and yes are 1, false and no are 0, in small or large letters; yes and no at the start of a line are names.
- **Encoding.** UTF-8, with or without a byte order mark; UTF-16 with one; otherwise Latin-1.

Every other entry must be a finite number; the first that is not, or that says it is missing (NA, N/A, NaN, NULL, a point, a dash, nothing),
is named by line and column. Where missing entries are asked for, they are NaN.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import isfinite, nan
from pathlib import Path

import numpy as np

from ..exceptions import InvalidInputError
from .base import Data, texts
from .columns import ALL, Choice, Columns, typed
from .packed import opened
from .table import unguarded

Row = list[str]

# Fewer numbers than this in a first line may run up or down by chance; as names they must be whole and equally far apart.
FEW = 5
# What stands where a number should and says that there is none.
_MISSING = re.compile(r"\s*|\.|-+|\?|#?n/?a|<na>|nan|null|none", re.IGNORECASE)
# A number with marks of its own (1.234,5), or what can only be a boolean.
_NO_WORD = re.compile(r"[-+]?[\d.,\s]*|true|false", re.IGNORECASE)
BOOLEANS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
# Blank lines and comments at the start of a text, and each of the comments.
_BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*")
_COMMENT = re.compile(rb"#+[ \t]*([^\r\n]*)")
SUFFIXES = (".csv", ".tsv", ".txt")


def read(path: Path, key: str | None = None, columns: Columns = ALL) -> Data:
    """The matrix of the file."""
    content, name = opened(path)
    if not name.endswith(SUFFIXES):
        raise InvalidInputError(f"holds {name!r}; expected a file in it that ends in {', '.join(SUFFIXES)}.")
    return matrix(content, columns, "\t" if name.endswith(".tsv") else None)


def matrix(content: bytes, columns: Columns, mark: str | None = None) -> Data:
    """The matrix of a text, whose columns the mark separates; None where the text tells."""
    text = _Text.of(content)
    mark = mark or separator(next((line for line in text.lines() if line.strip()), ""))
    text = text.headed(mark)
    return parsed(_rows(text, mark), mark, _converter(text, mark), columns)


@dataclass(frozen=True)
class _Text:
    """Bytes and what makes letters of them: decoded a little at a time, since as letters they take several times the room."""

    content: bytes
    encoding: str
    start: int = 0

    @classmethod
    def of(cls, content: bytes) -> _Text:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            content = content.decode("utf-16").encode("utf-8")
        if b"\0" in content[:4096]:
            raise InvalidInputError("is not text: it holds zero bytes. Expected lines of numbers.")
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            return cls(content, "latin-1", _end(_BEFORE, content))
        return cls(content, "utf-8-sig", _end(_BEFORE, content))

    def lines(self) -> io.TextIOWrapper:
        """What comes after the comments."""
        buffer = io.BytesIO(self.content)
        buffer.seek(self.start)
        return io.TextIOWrapper(buffer, self.encoding, newline="")

    def skipped(self) -> int:
        """The number of lines that end before those."""
        return sum(line.endswith((b"\n", b"\r")) for line in self.content[: self.start].splitlines(keepends=True))

    def headed(self, mark: str) -> _Text:
        """The same with the last comment, where that is the header."""
        comments = list(_COMMENT.finditer(self.content, 0, self.start))
        if not comments:
            return self
        words = next(csv.reader([comments[-1][1].decode(self.encoding)], delimiter=mark), [])
        first = next(csv.reader(self.lines(), delimiter=mark), [])
        start = comments[-1].start(1)
        close = self.content[start - 1 : start] == b"#" and any(_is_number(entry) for entry in first[1:])  # no sentence begins so
        fits = len(words) == len(first) > 1 and _is_header(words) and (close or not _is_header(first))
        return replace(self, start=start) if fits else self

    def __contains__(self, mark: str) -> bool:
        return mark.encode("ascii") in self.content


def _end(pattern: re.Pattern[bytes], content: bytes) -> int:
    found = pattern.match(content)
    return found.end() if found else 0


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
    skipped = text.skipped()
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield skipped + reader.line_num, row
    except csv.Error as error:
        raise InvalidInputError(f"line {skipped + reader.line_num}: {error}; are the quotes in pairs?") from error


def parsed(rows: Iterator[tuple[int, Row]], mark: str, convert: Callable[[str], float], columns: Columns) -> Data:
    """The matrix of rows of entries, each with the number of its line."""
    line, first = next(rows, (1, []))
    if not first:
        raise InvalidInputError("holds only blank lines and comments; expected lines of numbers.")
    header = first if _is_header(first) and not (columns.missing and _has_holes(first)) else None
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
    heads = None if header is None else [unguarded(name.strip()) for name in (["", *header] if short else header)]
    choice = Choice(list(range(named, width)), 0 if named else None) if heads is None else columns.chosen(heads, 0 if named else None)
    numbers = _Numbers(width, choice, heads, mark, convert, missing=columns.missing)
    for line, row in chain([(start, second)], body):
        numbers.add(line, row)
    names = None if heads is None else texts([heads[j] for j in choice.kept])
    return Data(numbers.matrix(), None if choice.names is None else texts(numbers.names), names)


def _is_header(row: Row) -> bool:
    """Whether a first line holds names: mostly words, or words and numbers that run steadily up or down."""
    if all(_is_number(entry) for entry in row) or _has_booleans(row):
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


def _has_holes(row: Row) -> bool:
    """Whether a line has entries that are missing, and no names: it is no header then, however its numbers run."""
    return any(_MISSING.fullmatch(entry.strip()) for entry in row) and not any(_is_word(entry) for entry in row[1:])


def _has_booleans(row: Row) -> bool:
    """Whether the entries of a line, after its name if it has one, are booleans and numbers; yes and no alone are two names."""
    words = [entry.strip().lower() for entry in row]
    entries = words if len(words) == 1 or words[0] in ("true", "false") else words[1:]
    booleans = [word for word in entries if word in BOOLEANS]
    return bool(booleans) and sorted(entries) != ["no", "yes"] and all(word in BOOLEANS or _is_number(word) for word in entries)


def _is_number(entry: str) -> bool:
    """Whether an entry is a number, with a point or a comma; Python's 1_000 is a name."""
    try:
        float(entry.replace(",", ".", 1))
    except ValueError:
        return False
    return "_" not in entry


def _is_word(entry: str) -> bool:
    """Whether an entry can only be a name: no number, none that is written badly, and none that is missing."""
    return not (_is_number(entry) or _MISSING.fullmatch(entry.strip()) or _NO_WORD.fullmatch(entry.strip()))


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

    def __init__(
        self, width: int, choice: Choice, heads: list[str] | None, mark: str, convert: Callable[[str], float], *, missing: bool
    ) -> None:
        self._width, self._choice, self._heads, self._mark, self._convert, self._holes = width, choice, heads, mark, convert, missing
        self._whole = choice.kept == list(range(width))[-len(choice.kept) :]  # then the entries are cut off, and not picked
        self._values, self._lines = array("d"), array("q")
        self.names: list[str] = []
        if not choice.kept:
            raise InvalidInputError("there is no column of numbers beside the names.")

    def add(self, line: int, row: Row) -> None:
        if len(row) != self._width:
            raise InvalidInputError(self._ragged(line, row))
        kept, held = self._choice.kept, len(self._values)
        if self._choice.names is not None:
            self.names.append(unguarded(row[self._choice.names].strip()))
        try:
            self._values.extend(map(self._convert, row[kept[0] :] if self._whole else [row[j] for j in kept]))
        except ValueError:  # in the middle of the row
            del self._values[held:]
            self._values.extend(self._value(line, j, row[j]) for j in kept)
        self._lines.append(line)

    def matrix(self) -> np.ndarray:
        X = np.frombuffer(self._values).reshape(len(self._lines), -1)
        bad = np.isinf(X) if self._holes else ~np.isfinite(X)
        if bad.any():
            i, j = np.argwhere(bad)[0]
            place = self._choice.kept[j]
            told = self._missing("nan", place) if np.isnan(X[i, j]) else f"is no finite number ({X[i, j]}); fill or remove it."
            raise InvalidInputError(f"{self._place(self._lines[i], place)} {told}")
        return X

    def _value(self, line: int, j: int, entry: str) -> float:
        """An entry of a row that is not all numbers: a number, a boolean, or refused."""
        if entry.strip().lower() in BOOLEANS:
            return BOOLEANS[entry.strip().lower()]
        if self._holes and _MISSING.fullmatch(entry.strip()):
            return nan
        try:
            return self._convert(entry)
        except ValueError:
            told = (
                self._missing(entry, j) if _MISSING.fullmatch(entry.strip()) else f"is {entry[:40]!r}, not a number{self._hint(entry, j)}."
            )
            raise InvalidInputError(f"{self._place(line, j)} {told}") from None

    def _place(self, line: int, j: int) -> str:
        return f"line {line}, column {j + 1}" + (f" ({self._heads[j][:40]!r})" if self._heads and self._heads[j] else "")

    def _missing(self, entry: str, j: int) -> str:
        return (
            f"is {entry!r}: a missing value. Fill it, with 0 if that is meant, or fit what is there (on the command line, fit --missing "
            f"ignore), or leave out its line{self._or_drop(j)}."
        )

    def _or_drop(self, j: int) -> str:
        return f", or its column with --drop {typed(self._heads[j])}" if self._heads and self._heads[j] else " or its column"

    def _ragged(self, line: int, row: Row) -> str:
        told = f"line {line} has {len(row)} columns, those before {self._width}; expected the same number in each."
        decimal = self._mark == "," and len(row) > self._width
        return told + (" If its numbers have decimal commas, separate them with semicolons." if decimal else "")

    def _hint(self, entry: str, j: int) -> str:
        if self._mark == "," and "," in entry and _is_number(entry):
            return "; write a decimal comma as a point, or separate the columns with semicolons"
        if isinstance(self._convert, _OneMark) and _is_number(entry.replace(".", "")):
            return "; write all numbers with a decimal point, or all with a decimal comma, and none with marks between thousands"
        if not self._heads or not self._heads[j]:
            return "; write a number, and leave the column out if it holds words (only the first column may hold names)"
        name = typed(self._heads[j])
        return f"; if the column holds words, leave it out with --drop {name}, or take them as names of the rows with --id-column {name}"
