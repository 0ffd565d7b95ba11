"""scikit-learn's own checks of an estimator under bounds; those that cannot hold say why.

With two components a least size of 0.4 is a capacity of 0.6, and is feasible for one component too.
"""

import os

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthonmf import ONMF

_SHARED = (
    "fit_transform(X) equals fit(X).transform(X) only without bounds: a fit shares the places among its "
    "samples, while transform maps each new one to its nearest component."
)
_ONE = "The check sets n_components=1, and one component of capacity 0.6 cannot hold all samples."

TRANSFORM = {"check_transformer_general": _SHARED, "check_transformer_data_not_an_array": _SHARED}
ONE_COMPONENT = dict.fromkeys(
    [
        "check_dont_overwrite_parameters",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
    ],
    _ONE,
)


def expected_failures(estimator):
    return TRANSFORM if estimator.capacity is None else TRANSFORM | ONE_COMPONENT


pytestmark = pytest.mark.usefixtures("_no_classifier")


@pytest.fixture(autouse=True)
def _array_api_allowed(monkeypatch):
    # scikit-learn leaves out its checks of array API input unless it is told that they may run.
    monkeypatch.setitem(os.environ, "SCIPY_ARRAY_API", "1")


@pytest.mark.thinned(2)
@parametrize_with_checks(
    [ONMF(n_components=2, capacity=0.6), ONMF(n_components=2, min_size=0.4)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
