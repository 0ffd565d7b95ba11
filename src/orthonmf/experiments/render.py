"""A table as text, Markdown, CSV and picture, with what has to be said under it."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._common.files import atomic
from ..io.table import guarded

WIDTH = 150  # of the text under a table

# Columns of words are set to the left.
_WORDS = ("data", "method", "differs", "measure", "solver")


@dataclass(frozen=True)
class Table:
    """Rows of text for the eye, the same as numbers for CSV, and notes."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    notes: tuple[str, ...]
    data: Sequence[dict[str, Any]]


def plain(table: Table) -> str:
    """Aligned columns, a blank line where the first of two columns of words changes, notes."""
    lines = [table.header, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def aligned(row: Sequence[str]) -> str:
        cells = zip(table.header, row, widths, strict=True)
        return "  ".join(cell.ljust(w) if name in _WORDS else cell.rjust(w) for name, cell, w in cells).rstrip()

    body, last = [], None
    for row in table.rows:
        if last not in (None, row[0]) and table.header[1] in _WORDS:
            body.append("")
        body.append(aligned(row))
        last = row[0]
    notes = [textwrap.fill(note, WIDTH, initial_indent="· ", subsequent_indent="  ") for note in table.notes]
    return "\n".join([table.title, "", aligned(table.header), "  ".join("-" * w for w in widths), *body, "", *notes])


def markdown(table: Table) -> str:
    """A table and a list."""
    rule = [":--" if name in _WORDS else "--:" for name in table.header]
    rows = ["| " + " | ".join(row) + " |" for row in (table.header, rule, *table.rows)]
    return "\n".join([f"# {table.title}", "", *rows, "", *(f"- {note}" for note in table.notes), ""])


def comma_separated(table: Table) -> str:
    """The numbers, one line per row."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(table.data[0]) if table.data else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: guarded(each) if isinstance(each, str) else each for name, each in row.items()} for row in table.data)
    return out.getvalue()


def picture(table: Table) -> Any:
    """The plain text as a figure."""
    from matplotlib.figure import Figure

    lines = plain(table).splitlines()
    width, height = 0.075 * max(map(len, lines)) + 0.4, 0.15 * len(lines) + 0.4
    figure = Figure(figsize=(width, height))
    figure.text(
        0.2 / width, 1 - 0.2 / height, "\n".join(lines), family="monospace", fontsize=9, va="top", linespacing=1.2, parse_math=False
    )
    return figure


def write(table: Table, folder: Path) -> list[Path]:
    """Write all forms; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix, content in ((".txt", plain(table) + "\n"), (".md", markdown(table)), (".csv", comma_separated(table))):
        paths.append(folder / f"{table.name}{suffix}")
        with atomic(paths[-1]) as draft:
            draft.write_text(content, encoding="utf-8")
    return [*paths, *save(picture(table), folder / table.name)]


def save(figure: Any, stem: Path) -> list[Path]:
    """A figure as PNG and SVG; the same figure makes the same bytes."""
    import matplotlib as mpl

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}{suffix}") for suffix in (".png", ".svg")]
    for path in paths:
        clock = {"Date": None} if path.suffix == ".svg" else {}
        with atomic(path) as draft, mpl.rc_context({"svg.hashsalt": stem.name}):
            figure.savefig(draft, dpi=150, facecolor="white", metadata=clock)
    return paths
