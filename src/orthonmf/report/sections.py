"""The sections of the report, each as a piece of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.sizes import Sizes
from ..model.terms import Term
from ..model.track import Track, drawable, how_to_locate
from ..search.number.curve import Row, curve
from . import parts, pictures
from .frames import Frames
from .heat import Heat
from .hues import chip
from .plane import Plane
from .rival import Rival
from .shown import Shown
from .tables import Cell, table
from .text import aligned, count, escaped, number, percent, percents, plural
from .words import asked as questions
from .words import error_note, evidence, noun, relative_figure, unproven, versions, why

# What is known of each number of components.
NUMBER_HEADS = ("Components", "BIC, less the best", "Agreement of halves", "p-value", "First exist at β", "Persistence", "Distortion left")
# Letters of a name that the picture of the items shows.
NAME_SHOWN = 120

__all__ = ["Section", "annealing", "certificate", "components", "heat_map", "items", "key_figures", "made", "number_of_components", "sizes"]


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    key : str
        Its place in the address.
    link : str
        Its name in the list of sections.
    title : str
    body : str
        HTML.
    data : object or None, default=None
        What the script needs for it.
    """

    key: str
    link: str
    title: str
    body: str
    data: Any = None

    @property
    def html(self) -> str:
        """The element."""
        head = f'<h2 id="{self.key}-head">{self.title}</h2>'
        return f'<section id="{self.key}" aria-labelledby="{self.key}-head">{head}\n{self.body}\n</section>'


def key_figures(model: Any) -> str:
    """The four numbers to begin with."""
    proof = model.certificate_
    held = sum(proof.claims.values())
    verdict = f"all {held} claims hold; {'proven: none is better' if proof.optimal else 'not proven: that none is better'}"
    if not proof.holds:
        verdict = f"{len(proof.claims) - held} of {len(proof.claims)} claims fail"
    sizes = f"{count(min(model.counts_))} to {count(max(model.counts_))}"
    cells = [
        (count(model.n_components_), "component" if model.n_components_ == 1 else "components", ""),
        (sizes if min(model.counts_) < max(model.counts_) else count(max(model.counts_)), f"{noun(model)}s in a component", ""),
        (*relative_figure(model), ""),
        ("Certified" if proof.holds else "Not certified", verdict, "good" if proof.holds else "bad"),
    ]
    return "".join(f'<div><dt>{label}</dt><dd class="{kind}">{value}</dd></div>' for value, label, kind in cells)


def components(model: Any, terms: list[list[Term]], item_names: list[str] | None) -> Section:
    """What tells each component from the others."""
    text = (
        "<p>The features that tell each component from the others, the most distinctive first (weight × log of weight over mean weight). "
        "Bars are weights. Components are numbered from 0, as in <code>labels_</code>; each keeps its colour on this page.</p>"
    )
    body = text + parts.cards(model, terms, item_names) + parts.features(terms)
    return Section("components", "Components", "The components", body)


def items(model: Any, shown: Shown | None, terms: list[list[Term]], item_names: list[str] | None, rival: Rival | None) -> Section:
    """The items in a plane, and how clear it is where they belong."""
    item = noun(model)
    clear = parts.margins(model) + parts.another(model, rival)
    if shown is None:
        return Section("items", f"{item.capitalize()}s", f"The {item}s", f"<p>{_without_data(f'the {item}s in a plane')}</p>{clear}")
    plane = Plane.of(model, shown)
    dots = pictures.items_picture(plane, item)
    data = {"component": plane.labels[dots.index].tolist()}
    if plane.margin is not None:
        data["margin"] = plane.margin[dots.index].round(2).tolist()
    find = ""
    if item_names is not None:
        data["name"] = [item_names[i][:NAME_SHOWN] for i in plane.index[dots.index]]
        find = (
            f'<div class="controls" hidden><label for="find">Find a {item}</label><input id="find" type="search" autocomplete="off">'
            '<output id="found" for="find"></output></div>'
        )
    caption = f"<figcaption>{_plane_caption(plane, item)}</figcaption>"
    figure = f"<figure>{parts.legend(model, terms)}{dots.svg}{caption}</figure>"
    return Section("items", f"{item.capitalize()}s", f"The {item}s", f"{find}{figure}{clear}", data)


def _plane_caption(plane: Plane, item: str) -> str:
    """What is seen, what is not, and which of the items."""
    some = ""
    if len(plane.index) < plane.n_items:
        some = f" Shown are {count(len(plane.index))} of {count(plane.n_items)}, of every component the same part."
    pale = "" if plane.margin is None else f" The paler a dot, the smaller the margin: steps at {', '.join(map(str, pictures.DEPTHS))}."
    return (
        f"Each dot is a {item}, projected at right angles on the plane in which the means of the components lie farthest apart. The plane "
        f"shows {percent(plane.share)} of the variance of the {item}s and {percent(plane.between)} of that between the means: dots that "
        f"lie together here may be far apart in the other directions.{pale}{some}"
    )


def heat_map(model: Any, shown: Shown | None, feature_names: list[str]) -> Section:
    """The data in the order of the components."""
    title = "The data in the order of the components"
    if shown is None:
        return Section("data", "Data", title, f"<p>{_without_data('the data as a heat map')}</p>")
    heat = Heat.of(model, shown)
    features = "all features" if len(heat.features) == heat.n_features else f"{len(heat.features)} of {count(heat.n_features)} features"
    some = "" if heat.n_shown == heat.n_samples else f" of {count(heat.n_shown)} of {count(heat.n_samples)} samples, evenly taken"
    if noun(model) == "sample":
        rows, columns = "each under the component that it tells most", "by component, within it those with the largest margin first"
    else:
        rows, columns = "each under its component, the heaviest first", "by the component that they have most of"
    text = (
        f"Rows are {features}, {rows}; columns are samples, {columns}. A cell is the mean over a block of "
        f"{_range(heat.sizes)} samples{some}, in units of the largest cell of its row, in {pictures.HEAT_LEVELS} steps from nothing to "
        "full colour."
    )
    names = [feature_names[i] for i in heat.features]
    return Section("data", "Data", title, f"<p>{text}</p>{pictures.heat_picture(heat, names, 'sample')}")


def _range(sizes: Any) -> str:
    return count(min(sizes)) if min(sizes) == max(sizes) else f"{count(min(sizes))} to {count(max(sizes))}"


def _without_data(what: str) -> str:
    """How to get what is left out."""
    return (
        f"Without the data there is no picture of {what}. To have it, give the data of the fit, in memory where features are assigned: "
        "<code>write_report(model, path, X=X)</code>, or on the command line <code>orthonmf report DIR DATA</code>."
    )


def number_of_components(model: Any) -> Section:
    """Why there are this many, with what is known of every number."""
    body = "".join(f"<p>{escaped(sentence)}</p>" for sentence in why(model))
    rows = curve(model)
    if rows:
        left = _left(model, len(rows))
        cells = _number_rows(rows, left)
        found = table("Every number of components", NUMBER_HEADS, cells, chosen=model.n_components_)
        body += f"{_compared(model, rows, left)}<details><summary>The numbers behind the answer</summary>{found}</details>"
    return Section("number", "How many", "How many components, and why", body)


def _compared(model: Any, rows: list[Row], left: list[float]) -> str:
    """Pictures of what is known of the numbers, side by side, where at least two of them can be compared."""
    numbers = np.array([row.n_components for row in rows])
    captions = (
        ("bic", "BIC, less the best", [row.bic for row in rows], "The likelihood less what its parameters cost; 0 is the best."),
        (
            "agreement",
            "Agreement of halves",
            [row.agreement for row in rows],
            "Of partitions of halves; 1 is the same, 0 chance.",
        ),
        (
            "distortion",
            "Distortion left",
            left,
            "In the annealing, before refinement, where each number last exists: as a share of that of one component.",
        ),
    )
    shown = [
        _figure(pictures.curve_picture(f"{key}-curve", title, numbers, np.array(values), model), f"<b>{title}.</b> {caption}")
        for key, title, values, caption in captions
        if np.isfinite(values).sum() > 1
    ]
    if np.isfinite(model.persistence_).any():
        lasts = "The logarithm of the range of β over which each number lasts."
        shown.insert(0, _figure(pictures.persistence_picture(model), f"<b>Persistence.</b> {lasts}"))
    return f'<div class="pair">{"".join(shown)}</div>'


def _left(model: Any, most: int) -> list[float]:
    """The distortion where m = 1, 2, … components last exist in the annealing, as a share of that of one; NaN where it is not known."""
    left = np.full(most, np.nan)
    if drawable(model):
        track = Track.of(model.history_)
        for step, ids in zip(track.steps.tolist(), track.ids, strict=True):
            if len(ids) <= most:
                left[len(ids) - 1] = model.history_["distortion"][step]
    return list(left / left[0]) if left[0] > 0 else [np.nan] * most


def _number_rows(rows: list[Row], left: list[float]) -> list[list[Cell]]:
    """What is known of each number: decades of β with three digits each, other columns with as many decimals in every row."""
    betas = [row.critical_beta for row in rows]
    columns = [
        [row.bic for row in rows],
        [row.agreement for row in rows],
        [row.p_value for row in rows],
        [row.persistence for row in rows],
        left,
    ]
    cells = [list(zip(column, aligned(column), strict=True)) for column in columns]
    cells.insert(3, [(beta, "" if np.isnan(beta) else number(beta, 3)) for beta in betas])
    heads = [(row.n_components, f"{row.n_components}{' (coarser level)' if row.mark == 'level' else ''}") for row in rows]
    return [list(row) for row in zip(heads, *cells, strict=True)]


def annealing(model: Any, frames: Frames | None) -> Section:
    """The moving picture."""
    return Section("annealing", "Annealing", "How they part", _moving(model, frames), None if frames is None else frames.data())


def _moving(model: Any, frames: Frames | None) -> str:
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
    refined = " The result was then refined: the components at the end are near these, not equal to them, and so none has its colour here."
    return text + (refined if model.refine else "")


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


def sizes(model: Any) -> Section:
    """The size of each component against its bounds."""
    found = Sizes.of_model(model)
    bounds = {side: bound for side, bound in (("Fewest", found.lower), ("Most", found.upper)) if bound is not None}
    values, total = found.values.tolist(), max(float(found.values.sum()), 1e-300)
    top = float(max(max(values), 1, *(max(bound) for bound in bounds.values())))
    shares = percents(value / total for value in values)
    rows = []
    for j, value in enumerate(values):
        limits = {side: float(bound[j]) for side, bound in bounds.items()}
        cells: list[Cell] = [(j, chip(j)), (value, count(value)), (value / total, shares[j])]
        cells += [(limit, count(limit)) for limit in limits.values()]
        rows.append([*cells, (None, pictures.size_bar(j, value, top, limits.get("Fewest"), limits.get("Most")))])
    header = ["Component", found.of.capitalize(), "Share", *bounds, ""]
    return Section("sizes", "Sizes", "Sizes", f"<p>{_size_summary(found)}</p>" + table("Size of each component", header, rows))


def _size_summary(found: Sizes) -> str:
    values, upper = found.values, found.upper
    if upper is None:
        return f"No upper bound was in force. The largest component has {percent(values.max() / values.sum())} of all."
    over = int(np.sum(values > upper * (1 + 1e-9)))
    if over:
        return f"{plural(over, 'component')} of {len(values)} exceed their bound. Marks on the bars are the bounds."
    return f"{int(np.sum(values >= upper))} of {len(values)} components are full. Marks on the bars are the bounds."


def certificate(model: Any) -> Section:
    """Every claim, whether it holds, the number that says so, and what is not claimed."""
    proof = model.certificate_
    words = evidence(proof, noun(model))
    rows: list[list[Cell]] = [
        [(claim, claim[0].upper() + claim[1:]), (held, _verdict(held)), (None, words.get(claim, ""))]
        for claim, held in proof.claims.items()
    ]
    notes = error_note(model)
    if proof.loads is not None:
        notes += " Items have sizes: whether the assignment is the best is a packing problem, and not claimed."
    if proof.kkt_residual is not None:
        notes += f" The relaxed problem under the bounds was solved to a residual of {number(proof.kkt_residual, 2)}."
    open_ = "".join(f"<li>{sentence}</li>" for sentence in unproven(model, parts.UNCLEAR))
    claims = table("What is claimed, and what proves it", ("Claim", "Holds", "Evidence"), rows)
    body = f"<p>{notes}</p>{claims}<h3>What is not proven</h3><ul>{open_}</ul>"
    return Section("certificate", "Certificate", "What is certain, and what is not", body)


def _verdict(held: bool) -> str:
    return '<span class="good">✓ yes</span>' if held else '<span class="bad">✗ no</span>'


def made(model: Any, provenance: Mapping[str, str]) -> Section:
    """What was asked, of which data, and with what."""
    digest = [] if model.data_digest_ is None else [("Digest of the data", model.data_digest_)]
    lines = [*questions(model), *digest, *provenance.items(), ("Written with", versions())]
    listed = "".join(f"<div><dt>{escaped(question)}</dt><dd>{escaped(answer)}</dd></div>" for question, answer in lines)
    note = "The digest depends on every number and on the order of the items; <code>verify</code> compares it with that of its data."
    body = f'<dl class="facts">{listed}</dl>' + (f'<p class="dim">{note}</p>' if digest else "")
    return Section("made", "Provenance", "What was asked, and how it was made", body)
