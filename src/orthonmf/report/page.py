"""The report put together from its sections."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from .._common.files import atomic
from ..exceptions import InvalidInputError
from ..model.terms import feature_names as feature_names_of
from ..model.terms import top_terms
from . import sections
from .frames import Frames
from .rival import Rival
from .shown import Shown
from .text import embedded, escaped, plural
from .words import noun, summary

__all__ = ["render", "write_report"]

# Features of a component in the table of all: as many as can be named from memory, and a small file with many components.
LISTED = 20


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    item_names: Any = None,
    feature_names: Any = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
) -> Path:
    """Write a report on a fitted model: one HTML file that needs no network.

    Parameters
    ----------
    model : ONMF or Pipeline
        Fitted.
    path : path-like
        The file to write; an old one is replaced, whole or not at all.
    X : {array-like, sparse matrix, dask array, matrix on disk} of shape (n_samples, n_features) or None, default=None
        The data of the fit, for the picture of the items, the heat map and the best other partition; at most 10 000 samples are looked at.
        Without it these are left out. The digest must be that of the fit.
    item_names : array-like of shape (n_items,) or None, default=None
        Names of the samples, to show some of each component; with ``orthogonal="features"`` the names of the features.
    feature_names : array-like of shape (n_features,) or None, default=None
        By default those that the model or the pipeline knows.
    title : str or None, default=None
        Title of the page.
    provenance : dict of str to str or None, default=None
        Lines to add to what the report says of how it was made, such as a command, a date or the seconds of the fit. By itself it holds
        no date, so that the same model gives the same bytes.

    Returns
    -------
    path : Path

    See Also
    --------
    render : The same as a string.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from orthonmf import ONMF
    >>> from orthonmf.report import write_report
    >>> model = ONMF(3).fit(load_iris(as_frame=True).data)
    >>> with TemporaryDirectory() as folder:
    ...     write_report(model, Path(folder) / "iris.html").name
    'iris.html'
    """
    text = render(model, X=X, item_names=item_names, feature_names=feature_names, title=title, provenance=provenance)
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def render(
    model: Any,
    *,
    X: Any = None,
    item_names: Any = None,
    feature_names: Any = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
) -> str:
    """The report on a fitted model, as a string. The same model gives the same bytes.

    Parameters
    ----------
    model : ONMF or Pipeline
        Fitted.
    X, item_names, feature_names, title, provenance
        As in `write_report`.

    Returns
    -------
    html : str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from orthonmf import ONMF
    >>> from orthonmf.report import render
    >>> page = render(ONMF(3).fit(load_iris(as_frame=True).data), title="Irises")
    >>> "<title>Irises</title>" in page, "https:" in page
    (True, False)
    """
    factors = model[-1] if isinstance(model, Pipeline) else model
    check_is_fitted(factors)
    factors = getattr(factors, "_gathered", factors)  # labels may lie with a cluster
    names = _item_names(factors, item_names)
    if factors.orthogonal == "features" and feature_names is None:
        feature_names = names
    terms = top_terms(model, feature_names, n_terms=LISTED)
    drawn = None if X is None else Shown.of(model, factors, X)
    rival = None if drawn is None else Rival.of(factors, drawn)
    found = (
        sections.components(factors, terms, names if factors.orthogonal == "samples" else None),
        sections.items(factors, drawn, terms, names, rival),
        sections.heat_map(factors, drawn, feature_names_of(model, feature_names)),
        sections.sizes(factors),
        sections.number_of_components(factors),
        sections.annealing(factors, Frames.of(factors)),
        sections.certificate(factors),
        sections.made(factors, provenance or {}),
    )
    style, script = _part("report.css"), _part("report.js")
    return Template(_part("page.html")).substitute(
        title=escaped(title or _title(factors)),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=embedded({section.key: section.data for section in found}),
        summary=escaped(summary(factors)),
        status=escaped(factors.status_),
        key_figures=sections.key_figures(factors),
        links="".join(f'<li><a href="#{section.key}">{section.link}</a></li>' for section in found),
        sections="\n".join(section.html for section in found),
        version=escaped(__version__),
    )


def _title(model: Any) -> str:
    return f"{plural(model.n_components_, 'component')} of {plural(len(model.labels_), noun(model))}"


def _item_names(model: Any, names: Any) -> list[str] | None:
    if names is None:
        return None
    if len(names) != len(model.labels_):
        raise InvalidInputError(f"item_names has {len(names)} entries; expected {len(model.labels_)}, one for each {noun(model)}.")
    return [str(name) for name in np.asarray(names, dtype=object)]


def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the page's security policy allows: this very text, and no other inline code."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
