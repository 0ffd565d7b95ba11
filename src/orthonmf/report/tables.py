"""Tables that can be sorted, searched and taken along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Cell", "table"]

# The value to sort by, or None, and what is shown, as HTML.
Cell = tuple[Any, str]


def table(caption: str, header: Sequence[str], rows: list[list[Cell]], chosen: Any = None) -> str:
    """A table whose columns with values can be sorted; the script adds a field to search it and a button that saves it as CSV."""
    anchor = caption.split(",")[0].replace(" ", "-").lower()
    heads = "".join(_head(title, rows[0][i][0]) for i, title in enumerate(header))
    body = "".join(f"<tr{' class=chosen' if chosen is not None and row[0][0] == chosen else ''}>{_cells(row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" aria-labelledby="{anchor}" tabindex="0"><table><caption id="{anchor}">{caption}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _head(title: str, value: Any) -> str:
    kind = ' class="number"' if _numeric(value) else ""
    return f'<th scope="col"{kind}{"" if value is None else " data-sort"}>{title or "<span class=unseen>Picture</span>"}</th>'


def _cells(row: list[Cell]) -> str:
    return "".join(_cell(value, shown, head=i == 0) for i, (value, shown) in enumerate(row))


def _cell(value: Any, shown: str, *, head: bool) -> str:
    attributes = f' class="number" data-value="{float(value)!r}"' if _numeric(value) else ""
    return f'<th scope="row"{attributes}>{shown}</th>' if head else f"<td{attributes}>{shown}</td>"


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
