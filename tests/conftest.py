"""What every test shares: seeds in test ids, repeatable Hypothesis runs, data that may be missing."""

import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import settings

from orthonmf import ONMF
from orthonmf.datasets import fetch_microarray
from orthonmf.exceptions import DataUnavailableError

# The same examples in every run, and no limit on the time of one: neither should depend on the machine.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Show what a bare number in a test id is: ``seed=3``."""
    return f"{argname}={val}" if isinstance(val, int | float) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked ``thinned(n)``, only every n-th case is run by `make test`; the others are long."""
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("thinned")
        if mark is not None:
            name = item.nodeid.partition("[")[0]
            if seen[name] % mark.args[0]:
                item.add_marker(pytest.mark.long)
            seen[name] += 1
        if "check_estimator_sparse_matrix" in item.nodeid:  # as with sparse arrays, in older classes of SciPy
            item.add_marker(pytest.mark.long)


@pytest.fixture
def _no_classifier(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Let scikit-learn's checks of sparse input run to their end.

    Of whatever has ``predict_proba`` they ask a tag that only classifiers have, and one column for each of four classes.
    """
    if request.node.callspec.params["check"].func.__name__ in ("check_estimator_sparse_array", "check_estimator_sparse_matrix"):
        monkeypatch.delattr(ONMF, "predict_proba")


@pytest.fixture(scope="session")
def microarray() -> np.ndarray:
    """The paper's gene expression data, (53, 27, 7); without it the test is skipped, or fails in CI."""
    try:
        data = fetch_microarray(download=False)
    except DataUnavailableError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    data.flags.writeable = False
    return data
