"""What was done to the data of a fit is done to new ones, and travels with the model."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from orthonmf import ONMF
from orthonmf.exceptions import InvalidInputError
from orthonmf.model.preparation import STEPS, Preparation
from orthonmf.model.units import dominant

WINE = load_wine()


@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("names", [*STEPS, "log1p,max", "std,l2", "tfidf,max"])
def test_new_data_get_the_same(names, kind):
    X = kind(np.random.default_rng(0).poisson(1.0, (30, 5)) + 0.0)
    preparation, made = Preparation.of(names, X)
    assert sp.issparse(made) == sp.issparse(X)
    again = preparation(X[7:12])
    assert_allclose(again.toarray() if sp.issparse(again) else again, (made.toarray() if sp.issparse(made) else made)[7:12], rtol=1e-12)


def test_by_hand():
    X = np.array([[1.0, 8.0], [3.0, 2.0]])
    assert_allclose(Preparation.of("max", X)[1], X / [3.0, 8.0])
    assert_allclose(Preparation.of("std", X)[1], X / [1.0, 3.0])
    assert_allclose(Preparation.of("l2", X)[1], X / np.linalg.norm(X, axis=1)[:, None])
    assert_allclose(Preparation.of("log1p", X)[1], np.log(1 + X))


def test_a_step_that_is_not_known_is_named_with_those_that_are():
    with pytest.raises(InvalidInputError, match=r"normalize: 'zscore' is not known.*max \(divide each feature by its largest value\)"):
        Preparation.of("log1p, zscore", WINE.data)


def test_it_travels_with_the_model(tmp_path):
    model = ONMF(3)
    model._preparation, X = Preparation.of("log1p,max", WINE.data)
    model.fit(X).save(tmp_path / "wine.onmf")
    found = ONMF.load(tmp_path / "wine.onmf")
    assert found._preparation.names == ("log1p", "max")
    assert_array_equal(found.predict(found._preparation(WINE.data)), model.labels_)
    ONMF(3).fit(X).save(tmp_path / "plain.onmf")
    assert ONMF.load(tmp_path / "plain.onmf")._preparation is None


def test_wine_in_its_own_units_is_one_feature_and_scaled_it_is_wine():
    features, share = dominant(WINE.data)
    assert [WINE.feature_names[i] for i in features] == ["proline"]
    assert share == pytest.approx(0.984, abs=1e-3)
    assert adjusted_rand_score(WINE.target, ONMF(3).fit_predict(WINE.data)) < 0.4
    _, X = Preparation.of("max", WINE.data)
    assert dominant(X) is None
    assert adjusted_rand_score(WINE.target, ONMF(3).fit_predict(X)) >= 0.7


def test_a_few_of_many_features_are_counted_dense_and_sparse():
    X = np.random.default_rng(1).random((500, 60))
    assert dominant(X) is None
    X[:, [7, 31]] *= 1e160  # squares would overflow
    for data in (X, sp.csr_array(X)):
        features, share = dominant(data)
        assert set(features) == {7, 31}
        assert share == pytest.approx(1.0)
    assert dominant(np.zeros((3, 5))) is None
