"""How sure of each item: probabilities of a mixture that agrees with itself, and margins."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.dense import DenseEngine
from orthonmf.exceptions import InvalidInputError
from orthonmf.model import posterior
from orthonmf.model.posterior import Mixture
from orthonmf.progress import StopRequested, listening

SCALINGS = ("item", "none")


@pytest.fixture(params=SCALINGS)
def scaling(request):
    return request.param


def overlapping(scaling, n, *, p=10, k=3, sd=4.0, seed=0, shares=None):
    """Items of components that overlap, and the component each was drawn from; far from 0, so that hardly any entry is clipped."""
    rng = np.random.default_rng(seed)
    centers = 20 + rng.gamma(10.0, size=(k, p)) if scaling == "none" else rng.gamma(10.0, size=(k, p))
    labels = rng.choice(k, n, p=shares)
    items = np.maximum(centers[labels] + sd * rng.normal(size=(n, p)), 0)
    return (items * rng.gamma(10.0, 0.1, n)[:, None] if scaling == "item" else items), labels


def matched(probabilities, labels):
    """One column per drawn component, in the order that agrees best with the labels."""
    votes = np.array([probabilities[labels == j].sum(axis=0) for j in range(probabilities.shape[1])])
    return probabilities[:, linear_sum_assignment(-votes)[1]]


def engine_on(X):
    return DenseEngine(np.asarray(X, dtype=float), team=ThreadTeam(1))


# -- probabilities ----------------------------------------------------------------------------------------------------------------


def test_a_posterior_worked_by_hand():
    # d = (0, 4) for x = 0 and (1, 1) for x = 1; with σ = 1, π_j exp(−d/2) is 0.75 : 0.25 e⁻² and 0.75 : 0.25.
    mixture = Mixture(np.array([[0.0], [2.0]]), np.array([0.75, 0.25]), 1.0)
    found = posterior.posterior(engine_on([[0.0], [1.0]]), REGISTRY["frobenius", "none"](np.zeros(1)), mixture)
    far = 0.25 * np.exp(-2)
    assert_allclose(found, [[0.75 / (0.75 + far), far / (0.75 + far)], [0.75, 0.25]], rtol=1e-14)


def test_one_component_by_hand():
    # About the mean 2 the squared distances are 1: σ² = 1. Unit items at 45° ± φ: d = sin² φ, in the one direction there is.
    means = ONMF(1, scaling="none").fit([[1.0], [3.0]])
    assert means._mixture.deviation == pytest.approx(1.0, rel=1e-12)
    lines = ONMF(1).fit([[1.0, 3.0], [6.0, 2.0]])
    # at rest to 1e-7 in likelihood
    assert lines._mixture.deviation**2 == pytest.approx((3 - 1) ** 2 / (2 * (1 + 9)), rel=1e-6)
    for model in (means, lines):
        assert_array_equal(model.predict_proba(np.ones((4, model.n_features_in_))), np.ones((4, 1)))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_probable_is_as_frequent(scaling, seed):
    X, labels = overlapping(scaling, 12_000, sd=4.5, seed=seed, shares=(0.6, 0.3, 0.1) if seed else None)
    model = ONMF(3, scaling=scaling).fit(X[:1500])
    found = matched(model.predict_proba(X[1500:]), labels[1500:])
    true = labels[1500:, None] == np.arange(3)
    bins = np.minimum((found * 10).astype(int), 9)
    for each in range(10):
        inside = bins == each
        assert inside.sum() >= 100  # they overlap enough that every bin counts
        # Three times the chance of 300 items; a width taken from labels is off by more.
        assert abs(true[inside].mean() - found[inside].mean()) < 0.1, each


def test_posteriors_that_are_known_are_found():
    # With the centres 6 apart and a spread of 2 the log odds are linear in x, (6 x − …)/4; 4000 items tell centres to 2/√2000.
    rng = np.random.default_rng(0)
    labels = rng.random(4000) < 0.25
    X = np.column_stack([np.where(labels, 36.0, 30.0), np.full(4000, 30.0)]) + 2 * rng.normal(size=(4000, 2))
    true = 1 / (1 + 3 * np.exp(-(6 * (X[:, 0] - 33)) / 4))
    found = ONMF(2, scaling="none").fit(X).predict_proba(X)
    assert np.abs(matched(found, labels.astype(int))[:, 1] - true).max() < 0.06


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_mixture_agrees_with_itself(scaling, seed):
    X, _ = overlapping(scaling, 400, p=6, sd=3.0, seed=seed)
    weight = np.random.default_rng(seed).integers(1, 4, 400).astype(float)
    model = ONMF(3, scaling=scaling).fit(X, sample_weight=weight)
    found, items = model.predict_proba(X), X / np.linalg.norm(X, axis=1)[:, None] if scaling == "item" else X
    mass = weight[:, None] * found
    # The mixture is at rest to 1e-7 in likelihood: to some 1e-3 in what it is made of.
    assert_allclose(model._mixture.share, mass.sum(axis=0) / weight.sum(), atol=2e-3)
    if scaling == "item":
        centers = np.array([np.abs(np.linalg.svd(items * np.sqrt(mass[:, [j]]))[2][0]) for j in range(3)])
        distance = 1 - (items @ centers.T) ** 2
    else:
        centers = mass.T @ items / mass.sum(axis=0)[:, None]
        distance = np.square(items[:, None] - centers).sum(axis=2)
    assert_allclose(model._mixture.centers, centers, atol=5e-3 * np.abs(centers).max())
    n_directions = 5 if scaling == "item" else 6
    assert model._mixture.deviation**2 == pytest.approx((mass * distance).sum() / (weight.sum() * n_directions), rel=5e-3)


@pytest.mark.parametrize(
    ("X", "lines", "means"),
    [
        ([[1, 0, 1], [0, 1, 1], [2, 1, 3], [1, 3, 4]], 1, 2),  # in a plane through 0
        ([[1, 5, 0], [2, 5, 0], [4, 5, 0], [9, 5, 0]], 1, 1),  # all on a line that misses 0
        ([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], 2, 2),  # fewer items than dimensions
        ([[1, 0], [1e-9, 0], [0, 1e-9]], 1, 1),  # lines do not see sizes; in units of the largest, the last is rounding
    ],
)
def test_directions_in_which_items_differ(X, lines, means):
    engine = engine_on(X)
    assert [posterior._n_directions(engine, REGISTRY["frobenius", scaling].of(engine)) for scaling in SCALINGS] == [lines, means]


def test_directions_of_many_dimensions_are_those_that_are_not_zero(scaling, monkeypatch):
    monkeypatch.setattr(posterior, "RANK_SIDE", 2)
    engine = engine_on([[1, 2, 0, 1], [2, 1, 0, 3], [1, 5, 0, 2], [1, 4, 0, 1], [7, 1, 0, 2]])
    assert posterior._n_directions(engine, REGISTRY["frobenius", scaling].of(engine)) == (2 if scaling == "item" else 3)


def test_rows_sum_to_one_and_argmax_may_differ_from_predict(scaling):
    X, _ = overlapping(scaling, 600, sd=5.0, shares=(0.8, 0.15, 0.05))
    model = ONMF(3, scaling=scaling).fit(X)
    found = model.predict_proba(X)
    assert_allclose(found.sum(axis=1), 1, rtol=1e-14)
    assert found.min() >= 0
    assert (found.argmax(axis=1) != model.predict(X)).any()  # a small component is given less than its half of the way
    heaviest = model._mixture.share.argmax()
    other = found.argmax(axis=1) != model.predict(X)
    assert (found.argmax(axis=1)[other] == heaviest).mean() > 0.5


def test_weights_equal_repetition(scaling):
    X, _ = overlapping(scaling, 80, p=5)
    weight = np.random.default_rng(0).integers(0, 4, 80)
    weighted = ONMF(3, scaling=scaling).fit(X, sample_weight=weight.astype(float))
    repeated = ONMF(3, scaling=scaling).fit(np.repeat(X, weight, axis=0))
    # The fits are equal but for the rounding of sums.
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)
    assert_allclose(np.repeat(weighted.margin_, weight), repeated.margin_, atol=1e-9)


def test_the_order_of_items_does_not_matter(scaling):
    X, _ = overlapping(scaling, 90, p=5)
    order = np.random.default_rng(0).permutation(90)
    one, other = ONMF(3, scaling=scaling).fit(X), ONMF(3, scaling=scaling).fit(X[order])
    assert_allclose(one.predict_proba(X)[order], other.predict_proba(X[order]), atol=1e-9)
    assert_allclose(one.margin_[order], other.margin_, atol=1e-9)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("power", [-900, -3, 5, 900])
def test_a_power_of_two_changes_no_bit(scaling, power):
    X, _ = overlapping(scaling, 60, p=4)
    one, other = ONMF(3, scaling=scaling).fit(X), ONMF(3, scaling=scaling).fit(np.ldexp(X, power))
    assert_array_equal(one.predict_proba(X), other.predict_proba(np.ldexp(X, power)))
    assert_array_equal(one.margin_, other.margin_)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_samples_of_any_size_have_probabilities(scaling, scale):
    X, _ = overlapping(scaling, 60, p=4)
    model = ONMF(3, scaling=scaling).fit(X)
    found = model.predict_proba(X * scale)
    assert_allclose(found.sum(axis=1), 1, rtol=1e-14)
    if scaling == "item":
        assert_allclose(found, model.predict_proba(X), atol=1e-9)


def test_item_scales_do_not_matter_to_lines():
    X, _ = overlapping("item", 300, p=5)
    scaled = X * np.exp2(np.random.default_rng(0).integers(-3, 4, 300))[:, None]
    model = ONMF(3).fit(X)
    assert_array_equal(model.predict_proba(X), model.predict_proba(scaled))


def test_dense_equals_sparse(scaling):
    X, _ = overlapping(scaling, 120, p=6)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, 0.0, X)
    dense, other = ONMF(3, scaling=scaling).fit(X), ONMF(3, scaling=scaling).fit(sparse.csr_matrix(X))
    assert_allclose(dense.predict_proba(X), other.predict_proba(sparse.csr_matrix(X)), atol=1e-6)
    assert_allclose(dense.margin_, other.margin_, atol=1e-9)


def test_float32(scaling):
    X, _ = overlapping(scaling, 200, p=6)
    X = X.astype(np.float32)
    single, double = ONMF(3, scaling=scaling).fit(X), ONMF(3, scaling=scaling).fit(X.astype(np.float64))
    found = single.predict_proba(X)
    assert found.dtype == single.margin_.dtype == np.float32
    # The components are rounded to float32, and d with them.
    assert_allclose(found, double.predict_proba(X.astype(np.float64)), atol=1e-4)
    assert_allclose(single.margin_, double.margin_, atol=1e-4)


def test_items_without_direction_get_the_shares():
    X, _ = overlapping("item", 100, p=5)
    X[::10] = 0
    model = ONMF(3).fit(X)
    found = model.predict_proba(X)
    assert_allclose(found[::10], np.tile(model._mixture.share, (10, 1)), rtol=1e-12)
    assert_array_equal(model.margin_[::10], 0)
    bare = ONMF(3).fit(np.delete(X, np.s_[::10], axis=0))
    assert_allclose(found[1::10], bare.predict_proba(X[1::10]), atol=1e-9)  # they count for nothing


def test_items_that_lie_on_their_centres_are_sure(scaling):
    X = np.repeat([[1.0, 2.0, 0.0], [0.0, 1.0, 5.0]], [3, 1], axis=0)
    model = ONMF(2, scaling=scaling).fit(X)
    assert model._mixture.deviation == 0
    assert_allclose(model._mixture.share, [0.75, 0.25] if model.labels_[0] == 0 else [0.25, 0.75], rtol=1e-12)
    assert_array_equal(model.predict_proba(X), np.eye(2)[model.labels_])
    assert_array_equal(ONMF(1, scaling=scaling).fit(np.zeros((3, 2))).predict_proba(np.ones((2, 2))), np.ones((2, 1)))


def test_a_sample_of_large_data_gives_nearly_the_same(scaling, monkeypatch):
    X, _ = overlapping(scaling, 1200, p=5, sd=3.0)
    whole = ONMF(3, scaling=scaling).fit(X).predict_proba(X)
    monkeypatch.setattr(posterior, "MIXTURE_ITEMS", 400)
    # A third of the items: shares are known to 0.03, log odds to 0.3; most items are near 0 or 1, where that changes little.
    assert 0 < np.abs(ONMF(3, scaling=scaling).fit(X).predict_proba(X) - whole).mean() < 0.05


def test_features_have_no_probabilities():
    model = ONMF(2, orthogonal="features").fit(overlapping("item", 20, p=5)[0])
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(np.ones((2, 5)))


def test_a_fit_that_was_stopped_says_what_to_do():
    def stop(temperature):
        raise StopRequested

    with listening(stop), pytest.warns(UserWarning, match="Stopped by a callback"):
        model = ONMF(3).fit(overlapping("item", 50)[0])
    assert model.margin_.shape == (50,)
    with pytest.raises(InvalidInputError, match="Fit it again, with a longer time_limit"):
        model.predict_proba(np.ones((1, 10)))


# -- margins ----------------------------------------------------------------------------------------------------------------------


def test_margins_by_hand():
    # Means 1 and 11: items 2 and 10 are at 1 from their own and 81 from the other; 0 and 12 at 1 and 121.
    model = ONMF(2, scaling="none").fit([[0.0], [2.0], [10.0], [12.0]])
    assert_allclose(model.margin_, [1 - 1 / 121, 1 - 1 / 81, 1 - 1 / 81, 1 - 1 / 121], rtol=1e-12)
    # Lines (1, 0) and (0, 1): (4, 3)/5 has d = 9/25 and 16/25.
    model = ONMF(2).fit(np.repeat([[1.0, 0.0], [0.0, 1.0]], 5, axis=0))
    assert_allclose(model._certainty(np.array([[4.0, 3.0]]), model.predict([[4.0, 3.0]]))["margin"], [1 - 9 / 16], rtol=1e-12)


def test_a_bound_that_keeps_an_item_from_its_nearest_component_makes_its_margin_negative():
    # Two may be together: 0, 0 | 0, 10 with means 0 and 5. The third 0 is 25 from its own and 0 from the other; 10 is 25 and 100 away.
    model = ONMF(2, scaling="none", capacity=2).fit([[0.0], [0.0], [0.0], [10.0]])
    assert_allclose(np.sort(model.margin_), [-1, 0.75, 1, 1], atol=1e-12)


def test_margins_of_equal_items_and_of_one_component(scaling):
    X = np.tile([1.0, 2.0, 4.0], (6, 1))
    assert_array_equal(ONMF(2, scaling=scaling, capacity=3).fit(X).margin_, 0)  # both components are where all items are
    assert_array_equal(ONMF(1, scaling=scaling).fit(X + np.eye(6, 3)).margin_, 1)


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_a_margin_that_was_changed_does_not_verify(scaling, orthogonal):
    X, _ = overlapping(scaling, 30, p=12)
    model = ONMF(3, scaling=scaling, orthogonal=orthogonal).fit(X)
    assert model.verify(X).holds
    assert model.margin_.shape == model.labels_.shape
    assert -1 <= model.margin_.min() < model.margin_.max() <= 1
    model.margin_ = model.margin_.copy()
    model.margin_[0] = (model.margin_[0] + 0.5) % 1
    assert not model.verify(X).holds
