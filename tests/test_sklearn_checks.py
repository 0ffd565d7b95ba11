"""scikit-learn's own checks of an estimator, in every configuration."""

import os

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthonmf import ONMF

# The default searches up to 32 components; these stop at 4, which changes nothing that is checked.
CONFIGURATIONS = [ONMF(max_components=4), ONMF(n_components=2)]
OTHERS = [
    ONMF(max_components=4, scaling="none"),
    ONMF(max_components=4, orthogonal="features"),
    ONMF(max_components=4, orthogonal="features", scaling="none"),
]
# The other loss, given the number so that the checks are short.
COUNTS = [
    ONMF(n_components=2, orthogonal=orthogonal, scaling=scaling, loss="kullback-leibler")
    for orthogonal in ("samples", "features")
    for scaling in ("item", "none")
]

pytestmark = pytest.mark.usefixtures("_no_classifier")


@pytest.fixture(autouse=True)
def _array_api_allowed(monkeypatch):
    # scikit-learn leaves out its checks of array API input unless it is told that they may run.
    monkeypatch.setitem(os.environ, "SCIPY_ARRAY_API", "1")


def expected(estimator):
    """With means and no number given, two components of equal weight change places when items of no weight are left out."""
    if estimator.scaling == "none" and estimator.orthogonal == "samples":
        return dict.fromkeys(
            ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"],
            "components of equal weight change places, and with them the columns of predict_proba",
        )
    return {}


@parametrize_with_checks(CONFIGURATIONS, expected_failed_checks=expected)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([ONMF()], expected_failed_checks=expected)
def test_scikit_learn_check_of_the_default(estimator, check):
    check(estimator)


@pytest.mark.thinned(4)
@parametrize_with_checks(COUNTS, expected_failed_checks=expected)
def test_scikit_learn_check_of_counts(estimator, check):
    check(estimator)


@pytest.mark.thinned(3)
@parametrize_with_checks(OTHERS, expected_failed_checks=expected)
def test_scikit_learn_check_of_other_forms(estimator, check):
    check(estimator)
