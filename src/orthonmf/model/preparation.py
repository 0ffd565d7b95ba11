"""What is done to data before they are factorised, recorded so that new data get the same: a pipeline of scikit-learn's own steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer, StandardScaler

from .._common.typing import Array
from ..exceptions import InvalidInputError

__all__ = ["STEPS", "Preparation"]

# By name: the step, the attribute that holds what it learnt of the features, if anything, and what it does in a few words.
STEPS: dict[str, tuple[Any, str | None, str]] = {
    "max": (MaxAbsScaler, "scale_", "divide each feature by its largest value"),
    "std": (lambda: StandardScaler(with_mean=False), "scale_", "divide each feature by its standard deviation"),
    "l2": (Normalizer, None, "divide each row by its length"),
    "log1p": (lambda: FunctionTransformer(np.log1p, accept_sparse=True), None, "take log(1 + x) of every number"),
    "tfidf": (TfidfTransformer, "idf_", "weigh counts of words by how few documents have them"),
}

# Steps that divide a row by what all its numbers make.
WHOLE = ("l2", "tfidf")


@dataclass(frozen=True)
class Preparation:
    """Steps that were fitted.

    Attributes
    ----------
    names : tuple of str
        Keys of ``STEPS``, in the order in which they are done.
    numbers : ndarray of shape (n_learnt, n_features)
        What steps learnt, those that do, in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> from orthonmf.model.preparation import Preparation
    >>> preparation, X = Preparation.of("max", np.array([[1.0, 200.0], [4.0, 100.0]]))
    >>> X
    array([[0.25, 1.  ],
           [1.  , 0.5 ]])
    >>> preparation(np.array([[2.0, 50.0]]))
    array([[0.5 , 0.25]])
    """

    names: tuple[str, ...]
    numbers: Array

    @classmethod
    def of(cls, names: str | Sequence[str], X: Any) -> tuple[Preparation, Any]:
        """Steps fitted to X, named in a list or a text with commas, and what they make of X.

        Raises
        ------
        InvalidInputError
            A step that is not known.
        """
        given = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)
        if unknown := [name for name in given if name not in STEPS]:
            known = "; ".join(f"{name} ({words})" for name, (_, _, words) in STEPS.items())
            raise InvalidInputError(f"normalize: {unknown[0]!r} is not known. Known are: {known}. Several are joined by commas.")
        _check_whole(given, X)
        pipeline = _pipeline(given)
        made = pipeline.fit_transform(X)
        learnt = [_vector(pipeline[i], attribute) for i, name in enumerate(given) if (attribute := STEPS[name][1]) is not None]
        numbers = np.array(learnt, dtype=np.float64).reshape(len(learnt), X.shape[1])
        return cls(given, numbers), _kept(made, X)

    def __call__(self, X: Any) -> Any:
        """The same of new data."""
        _check_whole(self.names, X)
        return _kept(self._pipeline.transform(X), X)

    @property
    def _pipeline(self) -> Pipeline:
        """The steps, with what they learnt."""
        pipeline, rows = _pipeline(self.names), iter(self.numbers)
        for step, name in zip(pipeline, self.names, strict=True):
            if STEPS[name][1] is not None:
                _taught(step, STEPS[name][1], next(rows))
        return pipeline


def _check_whole(names: tuple[str, ...], X: Any) -> None:
    """Refuse steps that compare the numbers of a row where some are missing."""
    bad = [name for name in names if name in WHOLE]
    if bad and not sparse.issparse(X) and np.isnan(X).any():
        raise InvalidInputError(f"normalize: {bad[0]!r} needs every number of a row, and some are missing; leave it out.")


def _pipeline(names: tuple[str, ...]) -> Pipeline:
    return Pipeline([(f"{place}-{name}", STEPS[name][0]()) for place, name in enumerate(names)])


def _vector(step: Any, attribute: str) -> Array:
    found: Array = np.asarray(getattr(step, attribute), dtype=np.float64)
    return found


def _taught(step: Any, attribute: str | None, numbers: Array) -> None:
    """Give a step what it had learnt."""
    assert attribute is not None
    if isinstance(step, TfidfTransformer):
        step.idf_ = numbers
    else:
        setattr(step, attribute, numbers)
        step.n_samples_seen_ = 1
    step.n_features_in_ = len(numbers)


def _kept(made: Any, X: Any) -> Any:
    """As dense or as sparse as what was given."""
    if sparse.issparse(made) and not sparse.issparse(X):
        return made.toarray()
    return made
