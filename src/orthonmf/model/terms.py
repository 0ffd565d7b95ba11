"""The features that speak for a component, by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._common.validation import check_count
from ..exceptions import InvalidInputError

__all__ = ["Term", "top_terms"]


class Term(NamedTuple):
    """A feature and its weight in a component.

    Examples
    --------
    >>> from orthonmf import ONMF, top_terms
    >>> first = top_terms(ONMF(1).fit([[3.0, 4.0]]), ["salt", "pepper"])[0][0]
    >>> first.name, round(first.weight, 3)
    ('pepper', 0.8)
    """

    name: str
    weight: float


def top_terms(model: Any, feature_names: Any = None, *, n_terms: int = 10) -> list[list[Term]]:
    """The features of largest weight in each component, largest first.

    Parameters
    ----------
    model : ONMF or Pipeline
        Fitted. A pipeline ends in the factorisation; the step before it names the features.
    feature_names : array-like of shape (n_features,) or None
        Names of the features; by default those the pipeline gives, those seen in fit, or x0, x1, …
    n_terms : int, default=10
        At most this many for a component. A feature of weight zero is never among them.

    Returns
    -------
    terms : list of lists of (name, weight)
        One list for each component.

    Examples
    --------
    >>> from orthonmf import ONMF, top_terms
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> texts = ["apple pear apple", "pear apple", "bolt nut", "nut bolt bolt"]
    >>> pipeline = make_pipeline(TfidfVectorizer(), ONMF(2)).fit(texts)
    >>> [[term.name for term in terms] for terms in top_terms(pipeline)]
    [['apple', 'pear'], ['bolt', 'nut']]
    """
    check_count("n_terms", n_terms, least=1)
    factors = model[-1] if isinstance(model, Pipeline) else model
    check_is_fitted(factors)
    components = np.asarray(factors.components_)
    names = _names(model, factors, feature_names, components.shape[1])
    order = np.argsort(-components, axis=1, kind="stable")[:, :n_terms]
    least = np.finfo(components.dtype).eps * components.max(axis=1, initial=0)  # what is left by rounding is no weight
    return [
        [Term(str(names[i]), float(row[i])) for i in best if row[i] > floor]
        for row, best, floor in zip(components, order, least, strict=True)
    ]


def _names(model: Any, factors: Any, given: Any, n_features: int) -> Any:
    """The names given, those of the pipeline's steps before the last, those seen in fit, or numbers."""
    if given is not None:
        if not hasattr(given, "__len__"):
            raise InvalidInputError(f"feature_names={given!r} is not usable; expected one name per feature (n_terms says how many terms).")
        if len(given) != n_features:
            raise InvalidInputError(f"feature_names has {len(given)} entries; expected {n_features}, one for each feature.")
        return list(given)
    names = _names_before(model) if model is not factors and len(model.steps) > 1 else None
    return getattr(factors, "feature_names_in_", [f"x{i}" for i in range(n_features)]) if names is None else names


def _names_before(pipeline: Pipeline) -> Any:
    """What the steps before the last call the features; None where one does not tell, as a FunctionTransformer or "passthrough"."""
    try:
        return pipeline[:-1].get_feature_names_out()
    except AttributeError:
        return None
