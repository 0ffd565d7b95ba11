"""The features that speak for a component, by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._common.typing import Array
from .._common.validation import check_choice, check_count
from ..exceptions import InvalidInputError

__all__ = ["Term", "distinctiveness", "feature_names", "top_terms"]


# Decimals in which scores differ by more than rounding.
SCORE_DECIMALS = 12


class Term(NamedTuple):
    """A feature, its weight in a component, and how far that weight tells the component from the others.

    Examples
    --------
    >>> from orthonmf import ONMF, top_terms
    >>> first = top_terms(ONMF(1).fit([[3.0, 4.0]]), ["salt", "pepper"])[0][0]
    >>> first.name, round(first.weight, 3)
    ('pepper', 0.8)
    """

    name: str
    weight: float
    distinctiveness: float


def distinctiveness(components: Any) -> Array:
    """How far each weight tells its component from the others: c log(c / c̄), with rows of unit norm and c̄ the mean of all components.

    Summed over features it is a divergence of the component from the mean one. A feature that all components have in equal measure scores
    0, one that others have more of scores below; of features that one component alone has, the heaviest scores most.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)

    Returns
    -------
    scores : ndarray of shape (n_components, n_features)

    Examples
    --------
    >>> from orthonmf.model.terms import distinctiveness
    >>> distinctiveness([[4.0, 3.0, 0.0], [4.0, 0.0, 3.0]]).round(2)
    array([[0.  , 0.42, 0.  ],
           [0.  , 0.  , 0.42]])
    """
    rows = np.asarray(components, dtype=np.float64)
    rows = np.ldexp(rows, -np.frexp(rows.max(axis=1, keepdims=True, initial=0))[1])  # so that squares neither overflow nor vanish
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.divide(rows, size, out=np.zeros_like(rows), where=size > 0)
    ratio = np.divide(rows, rows.mean(axis=0), out=np.ones_like(rows), where=rows > 0)
    scores: Array = rows * np.log(ratio)
    return scores


def top_terms(model: Any, feature_names: Any = None, *, n_terms: int = 10, by: str = "distinctiveness") -> list[list[Term]]:
    """The features that tell each component from the others, the most distinctive first; or those of largest weight.

    Parameters
    ----------
    model : ONMF or Pipeline
        Fitted. A pipeline ends in the factorisation; the step before it names the features.
    feature_names : array-like of shape (n_features,) or None
        Names of the features; by default those the pipeline gives, those seen in fit, or x0, x1, …
    n_terms : int, default=10
        At most this many for a component. A feature of weight zero is never among them.
    by : {"distinctiveness", "weight"}, default="distinctiveness"
        What comes first. By weight, features that all components have lead all lists. Of features that tell as much (all of them, where
        there is one component) the heavier comes first.

    Returns
    -------
    terms : list of lists of (name, weight, distinctiveness)
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
    check_choice("by", by, ("distinctiveness", "weight"))
    factors = model[-1] if isinstance(model, Pipeline) else model
    check_is_fitted(factors)
    components = np.asarray(factors.components_)
    names = _names(model, factors, feature_names, components.shape[1])
    scores = distinctiveness(components)
    least = np.finfo(components.dtype).eps * components.max(axis=1, initial=0, keepdims=True)  # what is left by rounding is no weight
    first = np.where(components > least, scores if by == "distinctiveness" else components, -np.inf)
    found = []
    for row, score, keys in zip(components, scores, first, strict=True):
        best = np.lexsort((-row, -keys.round(SCORE_DECIMALS)))[:n_terms]
        found.append([Term(str(names[i]), float(row[i]), float(score[i])) for i in best if np.isfinite(keys[i])])
    return found


def feature_names(model: Any, given: Any = None) -> list[str]:
    """The name of every feature of a fitted model or pipeline: as given, or by default as in `top_terms`.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.model.terms import feature_names
    >>> feature_names(ONMF(1).fit([[3.0, 4.0]]))
    ['x0', 'x1']
    """
    factors = model[-1] if isinstance(model, Pipeline) else model
    return [str(name) for name in _names(model, factors, given, factors.components_.shape[1])]


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
