"""Numbers for people, and names made safe for HTML."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable
from typing import Any

__all__ = ["aligned", "count", "embedded", "escaped", "name", "number", "percent", "percents", "plural"]

# Longer names are cut; some feature names are whole sentences.
NAME_LENGTH = 120
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# A narrow space that does not break, between thousands.
_THIN = "\u202f"
# Control characters, which are no text; they become the sign for a character that cannot be shown.
_CONTROL = dict.fromkeys([*range(32), *range(127, 160)], "\ufffd")


def number(value: float, digits: int = 4) -> str:
    """A number to so many significant digits, powers of ten written out.

    Examples
    --------
    >>> number(0.000012345), number(1234567.0), number(2.5), number(float("inf"))
    ('1.234\u202f×\u202f10⁻⁵', '1\u202f235\u202f000', '2.5', '∞')
    """
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return _minus(f"{mantissa}{_THIN}×{_THIN}10{str(int(exponent)).translate(_SUPERSCRIPT)}")
    rounded = float(f"{value:.{digits}g}")
    return _minus(f"{int(rounded):,}".replace(",", _THIN) if rounded == int(rounded) else f"{rounded:.{digits}g}")


def aligned(values: Iterable[float], digits: int = 3) -> list[str]:
    """Numbers that stand under one another: with as many decimals as give the largest so many digits, and no more than any of them needs;
    nothing for what is not known.

    Examples
    --------
    >>> aligned([9.8497, 8.4, 0.565]), aligned([14.9, 0.565]), aligned([0.5, float("nan"), 0.25])
    (['9.85', '8.40', '0.56'], ['14.9', '0.6'], ['0.50', '', '0.25'])
    """
    given = [float(value) for value in values]
    known = [value for value in given if math.isfinite(value)]
    largest = max(map(abs, known), default=0.0)
    if not 1e-3 <= largest < 1e7:
        return ["" if math.isnan(value) else number(value, digits) for value in given]
    most = max(digits - 1 - math.floor(math.log10(largest)), 0)
    decimals = next(less for less in range(most + 1) if all(round(value, less) == round(value, most) for value in known))
    return ["" if math.isnan(value) else _fixed(value, decimals) for value in given]


def _fixed(value: float, decimals: int) -> str:
    return _minus(f"{round(value, decimals) + 0.0:,.{decimals}f}".replace(",", _THIN)) if math.isfinite(value) else number(value)


def percents(shares: Iterable[float], digits: int = 3) -> list[str]:
    """Shares in percent that stand under one another.

    Examples
    --------
    >>> percents([0.0996, 0.084])
    ['9.96 %', '8.40 %']
    """
    return [f"{text} %" for text in aligned((100 * share for share in shares), digits)]


def count(value: float) -> str:
    """A whole number with thin spaces between thousands; a sum of sizes to four digits.

    Examples
    --------
    >>> count(20000), count(12.25)
    ('20\u202f000', '12.25')
    """
    return f"{int(value):,}".replace(",", _THIN) if value == int(value) else number(value)


def percent(share: float) -> str:
    """A share in percent, to three digits.

    Examples
    --------
    >>> percent(0.4009), percent(1.0), percent(1e-9)
    ('40.1 %', '100 %', 'less than 0.001 %')
    """
    return "less than 0.001 %" if 0 < share < 1e-5 else f"{number(100 * share, 3)} %"


def plural(value: int, noun: str) -> str:
    """A count and its noun.

    Examples
    --------
    >>> plural(1, "component"), plural(3, "component")
    ('1 component', '3 components')
    """
    return f"{count(value)} {noun if value == 1 else noun + 's'}"


def escaped(value: Any) -> str:
    """Text that HTML shows as it is: markup escaped, what cannot be shown replaced.

    Examples
    --------
    >>> escaped("<b>a & b</b>")
    '&lt;b&gt;a &amp; b&lt;/b&gt;'
    """
    return html.escape(str(value).encode("utf-8", "replace").decode().translate(_CONTROL))


def name(value: Any) -> str:
    """A name from the data as an element of its own, escaped, cut where it is very long.

    Examples
    --------
    >>> name("<b>")
    '<bdi class="name">&lt;b&gt;</bdi>'
    """
    text = str(value)
    return f'<bdi class="name">{escaped(text if len(text) <= NAME_LENGTH else text[: NAME_LENGTH - 1] + "…")}</bdi>'


def embedded(value: Any) -> str:
    r"""JSON that may stand inside a script element: nothing in it ends the element or opens a comment.

    Examples
    --------
    >>> embedded({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _minus(text: str) -> str:
    return f"−{text[1:]}" if text.startswith("-") else text
