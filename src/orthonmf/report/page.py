"""The report put together from its sections."""

from __future__ import annotations

import base64
import hashlib
import os
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
from ..model.terms import top_terms
from . import sections
from .frames import Frames
from .text import embedded, escaped, plural
from .words import noun, summary

__all__ = ["render", "write_report"]


def write_report(
    model: Any, path: str | os.PathLike[str], *, item_names: Any = None, feature_names: Any = None, title: str | None = None
) -> Path:
    """Write a report on a fitted model: one HTML file that needs no network.

    Parameters
    ----------
    model : ONMF or Pipeline
        Fitted.
    path : path-like
        The file to write; an old one is replaced, whole or not at all.
    item_names : array-like of shape (n_items,) or None, default=None
        Names of the samples, to show some of each component; with ``orthogonal="features"`` the names of the features.
    feature_names : array-like of shape (n_features,) or None, default=None
        By default those that the model or the pipeline knows.
    title : str or None, default=None
        Title of the page.

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
    text = render(model, item_names=item_names, feature_names=feature_names, title=title)
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def render(model: Any, *, item_names: Any = None, feature_names: Any = None, title: str | None = None) -> str:
    """The report on a fitted model, as a string. The same model gives the same bytes.

    Parameters
    ----------
    model : ONMF or Pipeline
        Fitted.
    item_names, feature_names, title
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
    names = _item_names(factors, item_names)
    if factors.orthogonal == "features" and feature_names is None:
        feature_names = names
    terms = top_terms(model, feature_names)
    frames = Frames.of(factors)
    style, script = _part("report.css"), _part("report.js")
    return Template(_part("page.html")).substitute(
        title=escaped(title or _title(factors)),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=embedded(None if frames is None else frames.data()),
        summary=escaped(summary(factors)),
        status=escaped(factors.status_),
        key_figures=sections.key_figures(factors),
        asked=sections.asked(factors),
        number=sections.number_of_components(factors),
        annealing=sections.annealing(factors, frames),
        sizes=sections.sizes(factors),
        components=sections.components(factors, terms, names if factors.orthogonal == "samples" else None) + sections.certainty(factors),
        certificate=sections.certificate(factors),
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
