"""Tables that are printed row by row: aligned text, or Markdown for the README."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """Title, width in plain text, and format of the values."""

    title: str
    width: int
    format: str = ""

    @property
    def words(self) -> bool:
        return not self.format


@dataclass(frozen=True)
class Table:
    """Prints its header first and then each row as soon as it is known."""

    columns: tuple[Column, ...]
    markdown: bool = False

    def header(self) -> None:
        """Print the titles."""
        self._line([column.title for column in self.columns])
        if self.markdown:
            self._line(["---" if column.words else "---:" for column in self.columns])

    def row(self, *values: object) -> None:
        """Print one row; a None leaves its cell empty."""
        cells = zip(self.columns, values, strict=True)
        self._line(["" if value is None else format(value, column.format) for column, value in cells])

    def _line(self, cells: list[str]) -> None:
        if self.markdown:
            print("| " + " | ".join(cells) + " |", flush=True)
            return
        pairs = zip(self.columns, cells, strict=True)
        aligned = [cell.ljust(c.width) if c.words else cell.rjust(c.width) for c, cell in pairs]
        print("  ".join(aligned).rstrip(), flush=True)
