"""scikit-learn's own checks of an estimator, for every compared method, both ways."""

import os

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthonmf.baselines import REGISTRY, Hals, Nhl, OnmfApx, OnmfDing, OnmfEm, Onmfs, Pnmf

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


# Where the two are one formula, and where they come within the checks' 1 % on the three blobs of the checks.
ONE_FORMULA = [(OnmfApx, "samples"), (OnmfApx, "features"), (OnmfEm, "samples"), (OnmfEm, "features")]
ONE_FORMULA += [(Pnmf, "features"), (Nhl, "features"), (Onmfs, "features")]
NEAR = [(OnmfDing, "features"), (Hals, "features"), (Onmfs, "samples")]


def expected_failures(model):
    agree = (type(model), model.orthogonal) in ONE_FORMULA + NEAR and not getattr(model, "double", False)
    return {} if agree else dict.fromkeys(COMPARING, REASON)


@pytest.fixture(autouse=True)
def _array_api_allowed(monkeypatch):
    # scikit-learn leaves out its checks of array API input unless it is told that they may run.
    monkeypatch.setitem(os.environ, "SCIPY_ARRAY_API", "1")


@pytest.mark.thinned(4)
@parametrize_with_checks(CONFIGURATIONS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
