"""One colour for each component, the same in every section."""

from __future__ import annotations

__all__ = ["N_HUES", "chip", "hue"]

# Colours of the style sheet. The first eight stay well apart for colour-blind readers; then comes whichever is farthest from all before it.
# Beyond them colours come again, and the number beside a colour tells which component it is.
N_HUES = 20


def hue(component: int) -> str:
    """The class that gives an element the colour of a component."""
    return f"hue{component % N_HUES}"


def chip(component: int) -> str:
    """A component's colour and number.

    Examples
    --------
    >>> chip(3)
    '<span class="chip hue3">3</span>'
    """
    return f'<span class="chip {hue(component)}">{component}</span>'
