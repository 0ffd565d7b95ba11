"""The sections of the report, each as a piece of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._common.sizes import Sizes
from ..distortion import loss_of
from ..model.terms import Term
from ..model.track import drawable, how_to_locate
from ..search.number.curve import Row, curve
from . import pictures
from .frames import Frames
from .text import count, escaped, name, number, percent, plural
from .words import asked as questions
from .words import error_note, evidence, noun, relative_figure, why

__all__ = ["annealing", "asked", "certainty", "certificate", "components", "key_figures", "number_of_components", "sizes"]

# Named samples that are shown of each component.
N_EXAMPLES = 5
# An item whose margin is less could as well be in another component.
UNCLEAR = 0.1


def key_figures(model: Any) -> str:
    """The four numbers to begin with."""
    proof = model.certificate_
    held = sum(proof.claims.values())
    verdict = f"all {held} claims hold" if proof.holds else f"{len(proof.claims) - held} of {len(proof.claims)} claims fail"
    sizes = f"{count(min(model.counts_))} to {count(max(model.counts_))}"
    cells = [
        (count(model.n_components_), "component" if model.n_components_ == 1 else "components", ""),
        (sizes if min(model.counts_) < max(model.counts_) else count(max(model.counts_)), f"{noun(model)}s in a component", ""),
        (*relative_figure(model), ""),
        ("Certified" if proof.holds else "Not certified", verdict, "good" if proof.holds else "bad"),
    ]
    return "".join(f'<div><dt>{label}</dt><dd class="{kind}">{value}</dd></div>' for value, label, kind in cells)


def asked(model: Any) -> str:
    """The parameters in words."""
    return "".join(f"<div><dt>{escaped(question)}</dt><dd>{escaped(answer)}</dd></div>" for question, answer in questions(model))


def number_of_components(model: Any) -> str:
    """Why there are this many, with what is known of every number."""
    text = "".join(f"<p>{escaped(sentence)}</p>" for sentence in why(model))
    rows = curve(model)
    if not rows:
        return text
    picture = pictures.persistence_picture(model) if np.isfinite(model.persistence_).any() else ""
    header = ("Components", "BIC, less the best", "Agreement of halves", "p-value", "First exist at β", "Persistence")
    table = _table("Every number of components", header, [_number_row(row) for row in rows], chosen=model.n_components_)
    return f"{text}{picture}<details><summary>The numbers behind the answer</summary>{table}</details>"


def _number_row(row: Row) -> list[tuple[Any, str]]:
    values = (row.bic, row.agreement, row.p_value, row.critical_beta, row.persistence)
    level = " (coarser level)" if row.mark == "level" else ""
    return [(row.n_components, f"{row.n_components}{level}"), *((value, "" if np.isnan(value) else number(value, 3)) for value in values)]


def annealing(model: Any, frames: Frames | None) -> str:
    """The moving picture."""
    if not drawable(model):
        return f"<p>{escaped(how_to_locate(model))}</p>"
    if frames is None:
        nothing = "There is one component, so nothing parts."
        unseen = "No split was recorded at a temperature that can be drawn: in the units of X, β may be out of the range of numbers."
        return f"<p>{nothing if model.n_components_ == 1 else unseen}</p>"
    first, last = frames.first, len(frames.beta) - 1
    shade = f" Shaded: where {plural(model.n_components_, 'component')} last." if pictures.lasting(model) else ""
    tree = "The components, seen along one direction, as β grows."
    plane = "The same in the plane in which the data spread most, at the β above. Lines show where each came from."
    facts = (
        ("β", "beta", number(frames.beta[first])),
        ("components", "count", str(frames.counts[first])),
        ("free energy J", "energy", number(frames.free_energy[first])),
        ("distortion D", "distortion", number(frames.distortion[first])),
    )
    readings = "".join(f'<div><dt>{label}</dt><dd id="at-{key}">{value}</dd></div>' for label, key, value in facts)
    return (
        f"<p>{_how_annealed(model)}</p>"
        '<div class="controls" hidden><label for="temperature">Inverse temperature β</label>'
        f'<input id="temperature" type="range" min="0" max="{last}" value="{first}" step="1" aria-valuetext="{frames.caption(first)}">'
        '<button id="play" type="button">Play</button></div>'
        f'<dl class="readings">{readings}</dl>'
        f'<div class="pair">{_figure(pictures.tree_picture(model, frames), tree + shade)}'
        f"{_figure(pictures.plane_picture(frames), plane)}</div>"
    )


def _how_annealed(model: Any) -> str:
    """What the picture is, and what it is not."""
    text = "Each item belongs to every component with a probability; as β grows, these sharpen and components part."
    if not model.certificate_.free:
        text += " This is the annealing under the bounds."
    return text + (" The result was then refined, so the components at the end are near these, not equal to them." if model.refine else "")


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


def sizes(model: Any) -> str:
    """The size of each component against its bounds."""
    found = Sizes.of_model(model)
    bounds = {side: bound for side, bound in (("Fewest", found.lower), ("Most", found.upper)) if bound is not None}
    values, total = found.values.tolist(), max(float(found.values.sum()), 1e-300)
    top = float(max(max(values), 1, *(max(bound) for bound in bounds.values())))
    rows = []
    for j, value in enumerate(values):
        limits = {side: float(bound[j]) for side, bound in bounds.items()}
        cells = [(j, str(j)), (value, count(value)), (value / total, percent(value / total))]
        cells += [(limit, count(limit)) for limit in limits.values()]
        rows.append([*cells, (None, pictures.size_bar(value, top, limits.get("Fewest"), limits.get("Most")))])
    header = ["Component", found.of.capitalize(), "Share", *bounds, ""]
    return f"<p>{_size_summary(found)}</p>" + _table("Size of each component", header, rows)


def _size_summary(found: Sizes) -> str:
    values, upper = found.values, found.upper
    if upper is None:
        return f"No upper bound was in force. The largest component has {percent(values.max() / values.sum())} of all."
    over = int(np.sum(values > upper * (1 + 1e-9)))
    if over:
        return f"{plural(over, 'component')} of {len(values)} exceed their bound. Marks on the bars are the bounds."
    return f"{int(np.sum(values >= upper))} of {len(values)} components are full. Marks on the bars are the bounds."


def components(model: Any, terms: list[list[Term]], item_names: list[str] | None) -> str:
    """A card for each component: its size, its leading features, and some of its samples where they have names."""
    return '<div class="cards">' + "".join(_card(model, j, leading, item_names) for j, leading in enumerate(terms)) + "</div>"


def certainty(model: Any) -> str:
    """How clear it is where the items of each component belong."""
    if model.margin_ is None or model.n_components_ == 1:
        return ""
    item, rows = noun(model), []
    for j in range(model.n_components_):
        margin = model.margin_[model.labels_ == j].astype(float)
        if len(margin):
            unclear = float(np.mean(margin < UNCLEAR))
            middle = float(np.median(margin))
            rows.append([(j, str(j)), (middle, number(middle, 2)), (unclear, percent(unclear))])
    text = (
        f"The margin of a {item} is 1 − d₁/d₂, for its squared distances d₁ to its own component and d₂ to the nearest other: 1 where it "
        f"lies on its own, 0 where both are as near, below 0 where a bound keeps it out of the nearest. "
        f"{percent(float(np.mean(model.margin_ < UNCLEAR)))} of all {item}s have a margin below {UNCLEAR}."
    )
    header = ("Component", "Median margin", f"{item.capitalize()}s below {UNCLEAR}")
    return f"<p>{text}</p>" + _table(f"How clear the {item}s are", header, rows)


def _card(model: Any, j: int, leading: list[Term], item_names: list[str] | None) -> str:
    size, share = int(model.counts_[j]), model.counts_[j] / max(len(model.labels_), 1)
    top = max((term.weight for term in leading), default=1.0)
    lines = "".join(
        f'<li>{name(term.name)}{pictures.weight_bar(term.weight / top)}<span class="value">{number(term.weight, 3)}</span></li>'
        for term in leading
    )
    listed = f"<ol>{lines}</ol>" if leading else "<p>All weights are zero.</p>"
    examples = "" if item_names is None else _examples(model, j, item_names)
    head = f"<h3>Component {j}</h3><p>{plural(size, noun(model))}, {percent(share)}</p>"
    return f"<article>{head}{_stability(model.stability_[j])}{listed}{examples}</article>"


def _stability(value: float) -> str:
    """How often a component comes back, where halves of the items were asked."""
    return "" if np.isnan(value) else f"<p>comes back in halves of the items: {percent(value)}</p>"


def _examples(model: Any, j: int, names: list[str]) -> str:
    """The samples of largest scale, or where all have one scale the first, by name."""
    members = np.flatnonzero(model.labels_ == j)
    best = members[np.argsort(-model.scale_[members], kind="stable")][:N_EXAMPLES]
    listed = ", ".join(name(names[i]) for i in best)
    more = f" and {count(len(members) - len(best))} more" if len(members) > len(best) else ""
    return f'<p class="examples">{"Largest" if loss_of(model).scaled else "For example"}: {listed}{more}</p>'


def certificate(model: Any) -> str:
    """Every claim, whether it holds, and the number that says so."""
    proof = model.certificate_
    words = evidence(proof, noun(model))
    rows = [
        [(claim, claim[0].upper() + claim[1:]), (held, _verdict(held)), (None, words.get(claim, ""))]
        for claim, held in proof.claims.items()
    ]
    notes = error_note(model)
    if proof.loads is not None:
        notes += " Items have sizes: whether the assignment is the best is a packing problem, and not claimed."
    if proof.kkt_residual is not None:
        notes += f" The relaxed problem under the bounds was solved to a residual of {number(proof.kkt_residual, 2)}."
    return f"<p>{notes}</p>" + _table("What is claimed, and what proves it", ("Claim", "Holds", "Evidence"), rows)


def _verdict(held: bool) -> str:
    return '<span class="good">✓ yes</span>' if held else '<span class="bad">✗ no</span>'


# -- helpers -------------------------------------------------------------------------------------------------------------------


def _table(caption: str, header: Sequence[str], rows: list[list[tuple[Any, str]]], chosen: Any = None) -> str:
    """A table whose columns with values can be sorted; cells are (value or None, HTML)."""
    anchor = caption.split(",")[0].replace(" ", "-").lower()
    heads = "".join(_head(title, *rows[0][i]) for i, title in enumerate(header))
    body = "".join(f"<tr{' class=chosen' if chosen is not None and row[0][0] == chosen else ''}>{_cells(row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" aria-labelledby="{anchor}" tabindex="0"><table><caption id="{anchor}">{caption}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _head(title: str, value: Any, _: str) -> str:
    kind = ' class="number"' if _numeric(value) else ""
    return f'<th scope="col"{kind}{"" if value is None else " data-sort"}>{title or "<span class=unseen>Bar</span>"}</th>'


def _cells(row: list[tuple[Any, str]]) -> str:
    return "".join(_cell(value, shown, head=i == 0) for i, (value, shown) in enumerate(row))


def _cell(value: Any, shown: str, *, head: bool) -> str:
    attributes = f' class="number" data-value="{float(value)!r}"' if _numeric(value) else ""
    return f'<th scope="row"{attributes}>{shown}</th>' if head else f"<td{attributes}>{shown}</td>"


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
