"""scikit-learn's own checks of an estimator under capacities; one cannot hold, and says why."""

import os

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthonmf import ONMF

EXPECTED = {
    "check_transformer_general": (
        "fit_transform(X) equals fit(X).transform(X) only without capacities: a fit shares the places among its "
        "samples, while transform maps each new one to its nearest component."
    )
}


@pytest.fixture(autouse=True)
def _array_api_allowed(monkeypatch):
    # scikit-learn leaves out its checks of array API input unless it is told that they may run.
    monkeypatch.setitem(os.environ, "SCIPY_ARRAY_API", "1")


@parametrize_with_checks(
    [ONMF(n_components=2, capacity=0.6)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
