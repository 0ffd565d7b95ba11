"""Names made visible: nothing that a name holds may act on a terminal."""

from __future__ import annotations

import unicodedata

__all__ = ["visible"]

# Characters that a terminal obeys instead of showing them, or that hide or reorder what is shown: control characters, formats (as bidi
# overrides), halves of pairs, separators of lines.
_OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Formats without which some languages cannot be written; they neither hide nor reorder anything.
_JOINERS = "\u200c\u200d"


def visible(text: str, keep: str = "") -> str:
    r"""Text in which every character that a terminal would obey is written out, as \x1b, but for those to keep.

    Examples
    --------
    >>> print(visible("a\x1b[31mb\u202e"))
    a\x1b[31mb\u202e
    """
    if text.isprintable():
        return text
    kept = keep + _JOINERS
    return "".join(each if each in kept or unicodedata.category(each) not in _OBEYED else _written(each) for each in text)


def _written(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
