"""The components in words: what tells each from the others, and how clear its items are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..distortion import loss_of
from ..model.terms import Term
from ..search.runner_up import ANOTHER
from . import pictures
from .hues import chip, hue
from .rival import Rival
from .tables import Cell, table
from .text import aligned, count, name, percent, percents, plural
from .words import noun

__all__ = ["UNCLEAR", "another", "cards", "features", "legend", "margins"]

# Named samples that are shown of each component, features on its card, and features that stand for it in a legend.
N_EXAMPLES, N_TERMS, N_LEADING = 5, 8, 2
# An item whose margin is less could as well be in another component.
UNCLEAR = 0.1
# Errors that differ by a smaller part do not decide between two partitions: where they differed by 0.29 % (digits, ten components) 5 of 100
# random halves of the items preferred the other, where by 0.04 % (docstrings, twelve) 29.
NEARLY = 0.003
# Errors that differ by a smaller part are equal but for rounding.
SAME = 1e-9


def cards(model: Any, terms: list[list[Term]], item_names: list[str] | None) -> str:
    """A card for each component: its size, its leading features, and some of its samples where they have names."""
    shares = percents(model.counts_ / max(len(model.labels_), 1))
    found = "".join(
        _card(model, j, share, leading[:N_TERMS], item_names) for j, (share, leading) in enumerate(zip(shares, terms, strict=True))
    )
    return f'<div class="cards">{found}</div>'


def _card(model: Any, j: int, share: str, leading: list[Term], item_names: list[str] | None) -> str:
    weights = [term.weight for term in leading]
    lines = "".join(
        f'<li>{name(term.name)}<span class="value">{weight}</span><span class="value">{_hundredths(term.distinctiveness)}</span>'
        f"{pictures.weight_bar(term.weight / max(weights))}</li>"
        for term, weight in zip(leading, aligned(weights), strict=True)
    )
    heads = '<p class="heads" aria-hidden="true"><span>feature</span><span>weight</span><span>distinct.</span></p>'
    listed = f"{heads}<ol>{lines}</ol>" if leading else "<p>All weights are zero.</p>"
    examples = "" if item_names is None else _examples(model, j, item_names)
    size = plural(int(model.counts_[j]), noun(model))
    head = f'<h3><span class="swatch"></span>Component {j}</h3><p>{size}, {share}{_stability(model, j)}</p>'
    return f'<article class="{hue(j)}">{head}{listed}{examples}</article>'


def _hundredths(value: float) -> str:
    """To two decimals."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _stability(model: Any, j: int) -> str:
    """How often a component comes back, where halves of the items were asked."""
    value = model.stability_[j]
    return "" if np.isnan(value) else f"; comes back in halves of the {noun(model)}s: {percent(value)}"


def _examples(model: Any, j: int, names: list[str]) -> str:
    """The samples of largest scale, or where all have one scale the first, by name."""
    members = np.flatnonzero(model.labels_ == j)
    best = members[np.argsort(-model.scale_[members], kind="stable")][:N_EXAMPLES]
    listed = ", ".join(name(names[i]) for i in best)
    more = f" and {count(len(members) - len(best))} more" if len(members) > len(best) else ""
    return f'<p class="examples">{"Largest" if loss_of(model).scaled else "For example"}: {listed}{more}</p>'


def features(terms: list[list[Term]]) -> str:
    """More features of each component, with both numbers, in a table."""
    listed = [(j, term) for j, leading in enumerate(terms) for term in leading]
    rows: list[list[Cell]] = [
        [(j, chip(j)), (term.name, name(term.name)), (term.weight, weight), (term.distinctiveness, _hundredths(term.distinctiveness))]
        for (j, term), weight in zip(listed, aligned(term.weight for _, term in listed), strict=True)
    ]
    if not rows:
        return ""
    found = table("Features of the components, the most distinctive first", ("Component", "Feature", "Weight", "Distinctiveness"), rows)
    return f"<details><summary>{count(len(rows))} features in a table, to search and to download</summary>{found}</details>"


def legend(model: Any, terms: list[list[Term]]) -> str:
    """The colours, each with the features that tell its component most; the script makes buttons of them that show one alone."""
    lines = (
        f'<li data-component="{j}">{chip(j)} <span class="leading">{", ".join(name(term.name) for term in leading[:N_LEADING])}</span> '
        f'<span class="dim">{count(model.counts_[j])}</span></li>'
        for j, leading in enumerate(terms)
    )
    return f'<ul class="legend" aria-label="Components">{"".join(lines)}</ul>'


def margins(model: Any) -> str:
    """How clear it is where the items of each component belong; nothing where that is not known."""
    if model.margin_ is None or model.n_components_ == 1:
        return ""
    item = noun(model)
    members = [(j, model.margin_[model.labels_ == j].astype(float)) for j in np.unique(model.labels_).tolist()]
    unclear = [_unclear(margin) for _, margin in members]
    rows: list[list[Cell]] = []
    for (j, margin), share in zip(members, zip(unclear, percents(unclear), strict=True), strict=True):
        middle = float(np.median(margin))
        rows.append([(j, chip(j)), (middle, _hundredths(middle)), share, (None, pictures.histogram(margin, j))])
    text = (
        f"The margin of a {item} is 1 − d₁/d₂, for its squared distances d₁ to its own component and d₂ to the nearest other: 1 where it "
        f"lies on its own, 0 where both are as near, below 0 where a bound keeps it out of the nearest. "
        f"{percent(_unclear(model.margin_))} of all {item}s have a margin below {UNCLEAR}."
    )
    header = ("Component", "Median margin", f"{item.capitalize()}s below {UNCLEAR}", "Margins, from 0 to 1")
    return f"<h3>How clear-cut they are</h3><p>{text}</p>" + table(f"How clear the {item}s are", header, rows)


def _unclear(margin: Any) -> float:
    """The share of items that could as well be in another component."""
    return float(np.mean(margin < UNCLEAR))


def another(model: Any, rival: Rival | None) -> str:
    """How much worse, and how different, the best other partition is; nothing where none was found."""
    if rival is None:
        return ""
    item, total = noun(model), len(model.labels_)
    some = f"on {count(rival.n_items)} of the {count(total)} {item}s, " if rival.n_items < total else ""
    text = (
        f"The best other partition that was found has {_beside(rival.excess)} and puts {percent(rival.elsewhere)} of the {item}s elsewhere "
        f"(adjusted Rand index {_hundredths(rival.agreement)})."
    )
    if rival.excess < NEARLY:
        text += f" The data support both: other {item}s of their kind, or these in another order, may decide which of the two a fit finds."
    text += (
        f" Others were tried {some}by closing a component and opening one elsewhere, in the dozen cheapest ways; those that put fewer "
        f"than {percent(ANOTHER)} elsewhere do not count."
    )
    return f"<h3>Another partition</h3><p>{text}</p>"


def _beside(excess: float) -> str:
    """An error beside that of the fit."""
    if abs(excess) < SAME:
        return "the same error"
    return f"an error {percent(abs(excess))} {'higher' if excess > 0 else 'lower'}"
