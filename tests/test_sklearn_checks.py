"""scikit-learn's own checks of an estimator, in every configuration, with no expected failure."""

import os

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthonmf import ONMF

CONFIGURATIONS = [
    ONMF(),
    ONMF(scaling="none"),
    ONMF(orthogonal="features"),
    ONMF(orthogonal="features", scaling="none"),
    ONMF(n_components=2),
    ONMF(n_components=2, orthogonal="features", scaling="none"),
]


@pytest.fixture(autouse=True)
def _as_in_scikit_learn(monkeypatch):
    # Some checks look at array API input only when told that they may.
    monkeypatch.setitem(os.environ, "SCIPY_ARRAY_API", "1")


@parametrize_with_checks(CONFIGURATIONS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
