"""scikit-learn's own checks of an estimator, for every compared method, both ways."""

import os

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthonmf.baselines import REGISTRY, OnmfApx, OnmfDing

# Few iterations: what is checked does not depend on how far the factors are from the best.
FEW = {"max_iter": 20, "n_components": 2}
CONFIGURATIONS = [
    *(method(orthogonal=orthogonal, **FEW) for method in REGISTRY.values() for orthogonal in ("samples", "features")),
    OnmfApx(double=True, **FEW),
    OnmfDing(double=True, **FEW),
]
REASON = "fit_transform returns the factor that the method found, transform the best one for its components alone"
COMPARING = ("check_transformer_general", "check_transformer_data_not_an_array")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def transform_is_fit_transform(model):
    name = type(model).__name__
    by_components = name in ("Pnmf", "Nhl", "Onmfs") and model.orthogonal == "features"
    return by_components or (name in ("OnmfApx", "OnmfEm") and not getattr(model, "double", False))


def expected_failures(model):
    return {} if transform_is_fit_transform(model) else dict.fromkeys(COMPARING, REASON)


@pytest.fixture(autouse=True)
def _array_api_allowed(monkeypatch):
    # scikit-learn leaves out its checks of array API input unless it is told that they may run.
    monkeypatch.setitem(os.environ, "SCIPY_ARRAY_API", "1")


@parametrize_with_checks(CONFIGURATIONS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
