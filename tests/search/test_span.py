"""Items in the coordinates of their span: an isometry, with the answers of all dimensions."""

from time import monotonic

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import orthonmf.search.job
from orthonmf import ONMF
from orthonmf.distortion import REGISTRY, Line
from orthonmf.engines import ThreadTeam, engine_class
from orthonmf.passes.moves import AllDistances
from orthonmf.search.partition import item_points
from orthonmf.search.span import Span, narrow

SCALINGS = pytest.mark.parametrize("scaling", ["item", "none"])


@pytest.fixture
def team():
    with ThreadTeam(1) as found:
        yield found


def wide(seed=0, n=12, p=90):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1, 1, (n, p)) * (rng.random((n, p)) < 0.5)
    X[3] = X[7]
    return X


def engine_of(X, team, **options):
    return engine_class("sparse" if sparse.issparse(X) else "dense")(X, team=team, **options)


@SCALINGS
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
class TestIsometry:
    def test_distances_between_all_items_are_the_same(self, scaling, form, team):
        engine = engine_of(form(wide()), team)
        distortion = REGISTRY["frobenius", scaling].of(engine)
        span = Span.of(engine, distortion)
        each = np.arange(engine.n_items)
        inside = span.engine.run(span.distortion, AllDistances(item_points(span.engine, span.distortion, each))).columns
        outside = engine.run(distortion, AllDistances(item_points(engine, distortion, each))).columns
        np.testing.assert_allclose(inside["distance"], outside["distance"], rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(inside["weight"], outside["weight"], rtol=1e-13)

    def test_items_as_centres_are_lifted_to_where_they_were(self, scaling, form, team):
        engine = engine_of(form(wide()), team)
        distortion = REGISTRY["frobenius", scaling].of(engine)
        span = Span.of(engine, distortion)
        each = np.arange(engine.n_items)
        lifted = span.lifted(item_points(span.engine, span.distortion, each))
        np.testing.assert_allclose(lifted, item_points(engine, distortion, each), atol=1e-13)


@SCALINGS
def test_nothing_cancels_far_from_the_origin(scaling, team):
    # Whole numbers about 2**40: differences of one are exact, and must stay one to ten digits.
    near = np.eye(4, 60)
    engine = engine_of(2.0**40 + near, team)
    distortion = REGISTRY["frobenius", scaling].of(engine)
    span = Span.of(engine, distortion)
    points = item_points(span.engine, span.distortion, np.arange(4))
    apart = ((points[:, None] - points[None]) ** 2).sum(axis=2)[~np.eye(4, dtype=bool)]
    expected = 2.0 if scaling == "none" else 2.0 / (60 * 4.0**40)
    np.testing.assert_allclose(apart, expected, rtol=1e-10 if scaling == "none" else 1e-3)


def test_equal_items_have_equal_coordinates_and_their_order_changes_nothing(team):
    X = wide()
    order = np.random.default_rng(1).permutation(len(X))
    distortion = REGISTRY["frobenius", "item"].of(engine_of(X, team))
    coordinates = Span.of(engine_of(X, team), distortion).engine.rows(slice(0, 12)).values
    np.testing.assert_array_equal(coordinates[3], coordinates[7])
    np.testing.assert_array_equal(Span.of(engine_of(X[order], team), distortion).engine.rows(slice(0, 12)).values, coordinates[order])


def test_an_item_that_is_zero_stays_zero(team):
    X = wide()
    X[5] = 0
    engine = engine_of(X, team)
    assert not Span.of(engine, REGISTRY["frobenius", "item"].of(engine)).engine.rows(slice(5, 6)).values.any()


@pytest.mark.parametrize(("shape", "expected"), [((12, 90), True), ((12, 13), False), ((12, 14), True), ((90, 12), False)])
def test_items_are_held_in_their_span_where_that_is_narrower(shape, expected, team):
    assert narrow(engine_of(np.ones(shape), team), Line(np.ones(1))) is expected


def test_sparse_items_with_fewer_numbers_than_there_are_items_stay_as_they_are(team):
    assert not narrow(engine_of(sparse.random_array((50, 400), density=0.05, rng=0, format="csr"), team), Line(np.ones(1)))


@SCALINGS
@pytest.mark.parametrize("parameters", [{"max_components": 6}, {"n_components": 5}, {"n_components": 4, "capacity": 12}])
def test_same_answer_as_in_all_dimensions(scaling, parameters, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.gamma(1, 1, (4, 300))[rng.integers(4, size=40)] * rng.gamma(10, 0.1, (40, 1)) + 0.3 * rng.random((40, 300))
    inside = ONMF(scaling=scaling, **parameters).fit(X)
    monkeypatch.setattr(orthonmf.search.job, "narrow", lambda engine, distortion: False)
    outside = ONMF(scaling=scaling, **parameters).fit(X)
    assert adjusted_rand_score(inside.labels_, outside.labels_) == 1
    np.testing.assert_allclose(inside.reconstruction_err_, outside.reconstruction_err_, rtol=1e-10)
    np.testing.assert_allclose(inside.components_, outside.components_, atol=1e-7)
    assert inside.certificate_.holds


@SCALINGS
def test_annealing_alone_comes_close_to_the_same_answer(scaling, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.gamma(1, 1, (4, 300))[rng.integers(4, size=40)] + 0.3 * rng.random((40, 300))
    inside = ONMF(4, scaling=scaling, refine=False).fit(X)
    monkeypatch.setattr(orthonmf.search.job, "narrow", lambda engine, distortion: False)
    outside = ONMF(4, scaling=scaling, refine=False).fit(X)
    assert adjusted_rand_score(inside.labels_, outside.labels_) == 1
    np.testing.assert_allclose(inside.reconstruction_err_, outside.reconstruction_err_, rtol=1e-3)


def test_a_span_that_takes_long_is_not_sought_within_a_short_time_limit():
    X = np.ones((200, 3000))
    with ThreadTeam(1, deadline=monotonic() + 0.01) as hurried, ThreadTeam(1, deadline=monotonic() + 100) as patient:
        assert not narrow(engine_of(X, hurried), Line(np.ones(1)))
        assert narrow(engine_of(X, patient), Line(np.ones(1)))
