"""A pass is a value: computed in another process, or block by block in any order, it finds the same, to the last bit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orthonmf import ONMF
from orthonmf.engines import REGISTRY
from tests.engines.toys import FarEngine

TOYS = {"shuffled": "tests.engines.toys:ShuffledEngine", "distant": "tests.engines.toys:DistantEngine"}
MODELS = {
    "lines": {"n_components": 3},
    "means": {"n_components": 3, "scaling": "none"},
    "the data decide": {"max_components": 5},
    "longest persistence": {"n_components": "persistence", "max_components": 5},
    "capacity": {"n_components": 3, "capacity": 11},
    "soft capacity": {"n_components": 3, "capacity": 8, "capacity_penalty": 0.1},
    "barrier flow": {"n_components": 2, "capacity": 17, "solver": "cbf"},
    "features": {"n_components": 2, "orthogonal": "features"},
}


FAR = {
    "lines": ({"n_components": 3}, True),
    "the data decide": ({"max_components": 4}, False),
    "means": ({"n_components": 3, "scaling": "none"}, False),
    "not refined": ({"n_components": 3, "refine": False}, True),
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", FAR)
def test_columns_stay_with_the_engine(name, monkeypatch):
    parameters, weighted = FAR[name]
    rng = np.random.default_rng(2)
    X = 5 + rng.standard_normal((70_000, 64)).astype(np.float32)  # more numbers than are searched for equal items
    X += 4 * rng.random((3, 64))[np.arange(len(X)) % 3].astype(np.float32)
    X = np.maximum(X, 0)
    weight = rng.gamma(1.0, 1.0, len(X)) if weighted else None
    expected = fitted({**parameters, "engine": "dense"}, X, weight)
    monkeypatch.setitem(REGISTRY, "far", "tests.engines.toys:FarEngine")
    monkeypatch.setattr("tests.engines.toys.FarEngine.fetched", [])
    assert_same(fitted({**parameters, "engine": "far"}, X, weight), expected)
    # The fit gives labels_, scale_ and margin_, prediction two and verification three more: whatever the number of passes.
    assert 0 < len(FarEngine.fetched) <= 10


def groups(n_items=30):
    """Three clouds that touch."""
    rng = np.random.default_rng(0)
    return np.maximum(rng.gamma(4.0, 1.0, (3, 4))[np.arange(n_items) % 3] + 0.5 * rng.standard_normal((n_items, 4)), 0)


def fitted(parameters, X, weight=None):
    """Everything that a fit gives, by name."""
    model = ONMF(**parameters).fit(X, sample_weight=weight)
    arrays = {name: getattr(model, name) for name in ("labels_", "components_", "critical_betas_", "margin_", "scale_", "counts_")}
    if parameters.get("orthogonal") != "features":
        arrays |= {"proba": model.predict_proba(X), "predicted": model.predict(X), "transformed": model.transform(X)}
    return arrays, (model.status_, model.n_iter_, str(model.verify(X)) if weight is None else str(model.certificate_))


def assert_same(one, other):
    for name, array in one[0].items():
        assert_array_equal(array, other[0][name], err_msg=name)
    assert one[1] == other[1]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("toy", TOYS)
def test_same_bits_on_any_engine(toy, name, monkeypatch):
    X = groups()
    expected = fitted({**MODELS[name], "engine": "dense"}, X)
    monkeypatch.setitem(REGISTRY, toy, TOYS[toy])
    assert_same(fitted({**MODELS[name], "engine": toy}, X), expected)


@pytest.mark.parametrize("toy", TOYS)
def test_same_bits_over_many_blocks(toy, monkeypatch):
    X, weight = groups(17_000).astype(np.float32), np.random.default_rng(1).gamma(1.0, 1.0, 17_000)
    expected = fitted({"n_components": 3, "engine": "dense"}, X, weight)
    monkeypatch.setitem(REGISTRY, toy, TOYS[toy])
    assert_same(fitted({"n_components": 3, "engine": toy}, X, weight), expected)
