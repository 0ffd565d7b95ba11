"""A sheet of a spreadsheet, with the rules for text: what Excel and others store as .xlsx, and formulas as they were last calculated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from .base import Data, chosen, needs
from .columns import ALL, Columns
from .text import Row, parsed

# Cells are no text, so that nothing separates them.
_NO_MARK = ""


def read(path: Path, key: str | None = None, columns: Columns = ALL) -> Data:
    """The first sheet, or the one named ``key``."""
    openpyxl = needs("openpyxl", ".xlsx")
    with path.open("rb") as file, closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book:
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        sheet = sheets[chosen(sheets if key is not None else list(sheets)[:1], key, "sheet")]
        sheet.reset_dimensions()  # a file may claim any size
        return parsed(_rows(sheet), _NO_MARK, float, columns)


def _rows(sheet: Any) -> Iterator[tuple[int, Row]]:
    """The rows that are not blank, as wide as the first of them where what is missing is at their end."""
    width = 0
    for line, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        row = _trimmed([_text(cell) for cell in cells])
        if row and not (width == 0 and row[0].startswith("#") and len(row) == 1):
            width = width or len(row)
            yield line, row + [""] * (width - len(row))


def _trimmed(row: Row) -> Row:
    """Without the blank cells at the end."""
    return row[: max((j + 1 for j, entry in enumerate(row) if entry.strip()), default=0)]


def _text(cell: Any) -> str:
    """A number as the shortest text that reads back the same."""
    return "" if cell is None else str(cell)
