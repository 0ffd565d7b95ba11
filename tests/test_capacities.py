"""Bounds on sizes in the estimator: the paper's genes, every configuration, the barrier flow on its way."""

import dataclasses
import re
import warnings
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import blobs, partition_cost
from scipy import sparse

from orthonmf import ONMF
from orthonmf.datasets import make_onmf
from orthonmf.exceptions import InvalidInputError
from orthonmf.search.bounded import cbf, flow
from orthonmf.search.bounded.dual import DualParameters

TIMES = range(7)
# Mean squared distance to the centre on the paper's genes, k = 3: the best known, to two digits.
STRICT = (47.34, 49.12, 48.80, 48.65, 51.36, 49.67, 48.04)  # at most 18 genes in a component
WIDER = (45.51, 47.02, 46.80, 46.82, 48.99, 47.64, 45.71)  # 19
FREE = (13.31, 12.18, 17.24, 16.36, 20.57, 17.96, 16.09)
# What the paper prints, for 19.
PAPER = (47.0, 56.7, 50.6, 64.7, 64.5, 48.8, 48.2)
PRINTED = 0.01


def genes(microarray, time):
    """The 53 genes in 27 patients, every patient scaled to [1, 10]."""
    X = microarray[:, :, time]
    low, high = X.min(axis=0), X.max(axis=0)
    return 1 + 9 * (X - low) / (high - low)


def mean_distortion(X, labels):
    return partition_cost(X, labels, "none") / len(X)


FEW = (10, 4, 3, 3)


def groups(seed=0, sizes=(20, 8, 6, 6), n_dims=6):
    """Positive data in groups of unequal size."""
    rng = np.random.default_rng(seed)
    drawn = blobs(rng.gamma(10.0, size=(len(sizes), n_dims)), list(sizes), 0.8, seed)
    return np.maximum(drawn.X, 0)


def within(model, lower, upper):
    counts = np.bincount(model.labels_, minlength=model.n_components_)
    assert_array_equal(counts, model.counts_)
    return (counts <= upper).all() and (counts >= lower).all()


# -- by hand -------------------------------------------------------------------------------------------------


def test_one_of_three_has_to_leave():
    # 1, 2, 3 and 10: two places each, so that the group {1, 2, 3} gives up its nearest to 10.
    model = ONMF(2, scaling="none", capacity=2).fit([[1.0], [2.0], [3.0], [10.0]])
    assert_array_equal(model.labels_ == model.labels_[0], [True, True, False, False])
    assert_allclose(model.reconstruction_err_**2, 0.5 + 24.5)
    assert model.certificate_.holds


def test_a_least_size_moves_the_cheapest_item():
    model = ONMF(2, scaling="none", min_size=2).fit([[1.0], [2.0], [3.0], [10.0]])
    assert sorted(model.counts_) == [2, 2]
    assert_allclose(model.reconstruction_err_**2, 25.0)


# -- the paper's genes ---------------------------------------------------------------------------------------


@pytest.mark.thinned(8)
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize(("capacity", "best"), [(18, STRICT), (19, WIDER), (None, FREE)])
def test_genes_are_as_good_as_the_best_known(microarray, time, capacity, best):
    X = genes(microarray, time)
    model = ONMF(3, scaling="none", capacity=capacity).fit(X)
    assert mean_distortion(X, model.labels_) <= best[time] + PRINTED
    assert within(model, 1, capacity or 53)
    assert model.certificate_.holds
    assert_allclose(model.reconstruction_err_**2 / 53, mean_distortion(X, model.labels_), rtol=1e-10)


@pytest.mark.parametrize("time", TIMES)
def test_a_fraction_of_the_genes_is_a_strict_bound(microarray, time):
    # 0.35 of 53 is 18.55: 18 genes, never 19.
    model = ONMF(3, scaling="none", capacity=0.35, refine=False).fit(genes(microarray, time))
    assert model.counts_.max() <= 18


@pytest.mark.thinned(7)
@pytest.mark.parametrize("time", TIMES)
def test_flow_is_within_a_percent_on_genes(microarray, time):
    X = genes(microarray, time)
    model = ONMF(3, scaling="none", capacity=18, solver="cbf").fit(X)
    assert model.counts_.max() <= 18
    assert mean_distortion(X, model.labels_) <= 1.01 * STRICT[time]
    assert model.certificate_.holds
    assert model.certificate_.kkt_residual <= flow.FlowParameters().tol


@pytest.mark.thinned(3)
@pytest.mark.parametrize("time", TIMES)
def test_paper_s_own_algorithm_is_no_worse_than_printed(microarray, time):
    X = genes(microarray, time)
    model = ONMF(3, scaling="none", capacity=19, solver="cbf", refine=False, rounding="nearest").fit(X)
    assert mean_distortion(X, model.labels_) <= PAPER[time]


# -- every configuration -------------------------------------------------------------------------------------


@pytest.mark.thinned(5)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_bounds_and_certificate_hold(orthogonal, scaling, kind, weighted):
    X = groups(sizes=FEW)
    X = X if orthogonal == "samples" else np.ascontiguousarray(X.T)
    weight = np.random.default_rng(1).gamma(1.0, size=len(X)) if weighted else None
    given = X if kind == "dense" else sparse.csr_array(X)
    model = ONMF(4, orthogonal=orthogonal, scaling=scaling, capacity=6, min_size=4)
    model.fit(given, sample_weight=weight)
    assert within(model, 4, 6)
    assert model.certificate_.holds, str(model.certificate_)
    again = model.verify(given, sample_weight=weight)
    assert again.holds, str(again)
    assert_allclose(again.error, model.reconstruction_err_, rtol=1e-9)
    assert model.certificate_.bounds is not None
    # The free fit of these groups has components of 10 and of 3.
    assert model.certificate_.error > ONMF(4, orthogonal=orthogonal, scaling=scaling).fit(given, sample_weight=weight).reconstruction_err_


@pytest.mark.thinned(3)
@pytest.mark.parametrize("orthogonal", ["samples", "features"])
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_flow_on_weighted_sparse_data_keeps_bounds(scaling, orthogonal):
    X = sparse.csr_array(groups() if orthogonal == "samples" else groups().T)
    weight = np.random.default_rng(1).gamma(1.0, size=X.shape[0])
    model = ONMF(4, orthogonal=orthogonal, scaling=scaling, capacity=12, min_size=8, solver="cbf", refine=False)
    model.fit(X, sample_weight=weight)
    assert within(model, 8, 12)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_sparse_and_dense_give_one_answer(scaling):
    X = groups(1, FEW) * (np.random.default_rng(0).random((20, 6)) < 0.7)
    fits = [ONMF(4, scaling=scaling, capacity=6).fit(A) for A in (X, sparse.csr_array(X))]
    assert_array_equal(fits[0].labels_, fits[1].labels_)
    assert_allclose(fits[0].reconstruction_err_, fits[1].reconstruction_err_, rtol=1e-9)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_both_precisions(scaling, dtype):
    model = ONMF(4, scaling=scaling, capacity=6).fit(groups(sizes=FEW).astype(dtype))
    assert within(model, 1, 6)
    assert model.certificate_.holds, str(model.certificate_)
    assert model.components_.dtype == dtype


@pytest.mark.thinned(2)
@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_capacities_that_just_hold_all_items_are_all_tight(scaling, refine):
    model = ONMF(4, scaling=scaling, capacity=10, refine=refine).fit(groups())
    assert_array_equal(model.counts_, 10)
    uneven = ONMF(4, scaling=scaling, capacity=[1, 5, 30, 4], refine=refine).fit(groups())
    assert_array_equal(uneven.counts_, [1, 5, 30, 4])


@pytest.mark.thinned(5)
@pytest.mark.parametrize("solver", ["dual", "cbf"])
@pytest.mark.parametrize("capacity", [40, 10**30, 1.0])
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_capacity_for_all_equals_no_capacity(scaling, capacity, solver):
    free = ONMF(4, scaling=scaling).fit(groups())
    model = ONMF(4, scaling=scaling, capacity=capacity, solver=solver).fit(groups())
    assert_array_equal(model.labels_, free.labels_)
    assert_allclose(model.reconstruction_err_, free.reconstruction_err_, rtol=1e-10)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize(("capacity", "least"), [(12, 4), (0.3, 4), (25, 2), (1.0, 1)])
def test_auto_starts_where_all_items_fit(scaling, capacity, least):
    model = ONMF(scaling=scaling, capacity=capacity, max_components=6).fit(groups())
    assert least <= model.n_components_ <= 6
    assert within(model, 0, 40 if capacity == 1.0 else 12 if capacity == 0.3 else capacity)
    assert model.certificate_.holds, str(model.certificate_)


def test_auto_goes_past_max_components_when_the_items_need_it():
    model = ONMF(scaling="none", capacity=5, max_components=2).fit(groups(sizes=FEW))
    assert model.n_components_ == 4
    assert_array_equal(model.counts_, 5)


@pytest.mark.parametrize("name", ["capacity", "min_size"])
def test_auto_needs_one_bound_for_all(name):
    with pytest.raises(InvalidInputError, match=f"{name}=.*one value per component"):
        ONMF(**{name: [20, 20, 20]}).fit(groups())


@pytest.mark.thinned(7)
@pytest.mark.parametrize("solver", ["dual", "cbf"])
@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_component_j_keeps_bound_j(scaling, refine, solver):
    lower, upper = [0, 9, 0, 15], [5, 10, 20, 16]
    model = ONMF(4, scaling=scaling, capacity=upper, min_size=lower, refine=refine, solver=solver).fit(groups())
    assert within(model, lower, upper)
    assert model.components_.shape[0] == 4


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_components_with_one_bound_are_ordered_by_mass(orthogonal):
    X = groups(sizes=FEW) if orthogonal == "samples" else groups(sizes=FEW).T
    model = ONMF(4, capacity=6, orthogonal=orthogonal).fit(X)
    squares = (X**2).sum(axis=1 if orthogonal == "samples" else 0)
    mass = np.bincount(model.labels_, squares)
    assert (np.diff(mass) <= 0).all()


@pytest.mark.parametrize("scaling", ["item", "none"])
def test_one_row_is_predicted_and_transformed_after_a_constrained_fit(scaling):
    X = groups(sizes=FEW)
    model = ONMF(4, scaling=scaling, capacity=5).fit(X)
    for row in X[:5]:
        (label,) = model.predict(row[None])
        T = model.transform(row[None])
        assert np.count_nonzero(T) == 1
        assert T[0, label] > 0
        assert_array_equal(model.assign(row[None], capacity=1), [label])


@pytest.mark.parametrize("scaling", ["item", "none"])
def test_assign_respects_capacities_on_new_data(scaling):
    model = ONMF(4, scaling=scaling).fit(groups())
    new = groups(seed=3, sizes=(15, 7, 5, 3))
    assert_array_equal(model.assign(new), model.predict(new))
    assert_array_equal(model.assign(new, capacity=1.0), model.predict(new))
    labels = model.assign(new, capacity=8)
    assert np.bincount(labels).max() <= 8
    named = model.assign(new, capacity=[3, 9, 9, 9], min_size=[0, 8, 0, 0])
    counts = np.bincount(named, minlength=4)
    assert (counts <= [3, 9, 9, 9]).all()
    assert counts[1] >= 8
    sparse_labels = model.assign(sparse.csr_array(new), capacity=8)
    assert_array_equal(sparse_labels, labels)


def test_assign_is_the_best_of_all_assignments():
    model = ONMF(2, scaling="none").fit(groups(sizes=(10, 10)))
    new = groups(seed=5, sizes=(6, 2))
    means = model.components_ / np.sqrt(model.counts_)[:, None]
    costs = ((new[:, None] - means) ** 2).sum(axis=2)
    labels = model.assign(new, capacity=4)
    best = min(costs[np.arange(8), list(each)].sum() for each in product(range(2), repeat=8) if sum(each) == 4)
    assert_allclose(costs[np.arange(8), labels].sum(), best, rtol=1e-12)


# -- rounding ------------------------------------------------------------------------------------------------


def test_nearest_rounding_reports_what_it_exceeds():
    # Pairs of equal items: halves of items fill three places each, whole items cannot.
    X = np.repeat([[1.0, 9.0], [2.0, 7.0], [9.0, 1.0]], 2, axis=0)
    exact = ONMF(2, scaling="none", capacity=3).fit(X)
    assert_array_equal(exact.counts_, 3)
    assert exact.certificate_.holds
    model = ONMF(2, scaling="none", capacity=3, rounding="nearest").fit(X)
    assert sorted(model.counts_) == [2, 4]
    assert "exceeded by 1" in model.status_
    claims = model.certificate_.claims
    assert not claims["every size is within its bounds"]
    assert not model.certificate_.holds
    assert not model.verify(X).holds


@pytest.mark.thinned(5)
@pytest.mark.parametrize("solver", ["dual", "cbf"])
@pytest.mark.parametrize("seed", range(3))
def test_nearest_rounding_says_nothing_when_nothing_is_exceeded(seed, solver):
    model = ONMF(3, scaling="none", capacity=15, rounding="nearest", solver=solver).fit(groups(seed, (16, 14, 10)))
    assert ("exceeded" in model.status_) == (model.counts_.max() > 15)
    assert model.certificate_.claims["every size is within its bounds"] == (model.counts_.max() <= 15)


# -- the flow ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["item", "none"])
def test_flow_keeps_rows_box_capacity_and_descent(scaling, monkeypatch):
    visited = []
    point = flow._Landscape.point

    def watched(self, resp, centers):
        visited.append(resp)
        return point(self, resp, centers)

    monkeypatch.setattr(flow._Landscape, "point", watched)
    model = ONMF(3, scaling=scaling, capacity=15, solver="cbf", solver_options={"beta_stop": 1e3})
    model.fit(groups(sizes=(20, 12, 8)))
    assert len(visited) > 50
    for resp in visited:
        assert_allclose(resp.sum(axis=1), 1, atol=1e-13)  # a rounding of 1e-16 at each step
        assert (resp > 0).all()
        assert (resp < 1).all()
        # The programme is solved to 1e-10 of the speeds.
        assert (resp.sum(axis=0) <= 15 + 1e-8).all()
    heights = [height for height in model.history_["lyapunov"] if height is not None]
    assert len(heights) > 5
    for height in heights:
        # Relative to V: a sum of nonnegative terms, whose rounding is a few units in the last place.
        assert (np.diff(height) <= 2e-15 * height[:-1]).all()
        assert (height >= 0).all()


def test_flow_refuses_above_its_memory():
    X = groups()
    needed = flow._LIVE_ARRAYS * 8 * 40 * 4
    model = ONMF(4, capacity=12, solver="cbf", solver_options={"max_bytes": needed - 1})
    with pytest.raises(InvalidInputError, match=r"40 × 4 responsibilities"):
        model.fit(X)
    model.set_params(solver_options={"max_bytes": needed, "beta_stop": 10.0}).fit(X)


@pytest.mark.parametrize("bounds", [{}, {"capacity": 30}], ids=["free", "bounded"])
@pytest.mark.parametrize("solver", ["auto", "dual", "cbf"])
@pytest.mark.parametrize("options", [{"gamma": 1.0}, {3: 1.0}, {"growth": 3.0, None: 1.0}], ids=str)
def test_unknown_solver_options_are_named(solver, options, bounds):
    with pytest.raises(InvalidInputError, match=f"{list(options)[-1]!r}, which is not known; expected a dict with names among .*growth"):
        ONMF(2, solver=solver, solver_options=options, **bounds).fit(groups())


@pytest.mark.parametrize(
    ("solver", "name", "value"),
    [
        ("auto", "growth", 1.0),
        ("dual", "growth", 1.0),
        ("dual", "growth", 0.5),
        ("dual", "growth", 1 + 1e-9),  # millions of temperatures
        ("dual", "growth", np.nan),
        ("dual", "growth", np.inf),
        ("dual", "growth", "2"),
        ("dual", "growth", True),
        ("cbf", "growth", 1.0),
        ("cbf", "beta_stop", -1.0),
        ("cbf", "max_steps", 0),
        ("cbf", "max_steps", 2.5),
        ("cbf", "metric", "l1"),
        ("cbf", "tol", None),
    ],
)
def test_solver_options_out_of_range_are_named_before_any_work(solver, name, value):
    with pytest.raises(InvalidInputError, match=re.escape(f"{name}={value!r}") + " is not .*expected"):
        ONMF(2, capacity=30, solver=solver, solver_options={name: value}).fit(groups())


def test_every_constant_of_a_solver_has_a_range():
    # each refuses None, and its own default passes
    for parameters in (DualParameters(), flow.FlowParameters()):
        for each in dataclasses.fields(parameters):
            with pytest.raises(InvalidInputError, match=f"{each.name}=None"):
                type(parameters).of({each.name: None})
            assert type(parameters).of({each.name: each.default}) == parameters


def test_flow_reads_its_constants(monkeypatch):
    seen = []
    follow = cbf.barrier_flow

    def watched(*args, parameters, **rest):
        seen.append(parameters)
        return follow(*args, parameters=parameters, **rest)

    monkeypatch.setattr(cbf, "barrier_flow", watched)
    options = {"descent_rate": 0.5, "capacity_rate": 3.0, "growth": 3.0, "beta_stop": 50.0}
    ONMF(2, capacity=25, solver="cbf", solver_options=options).fit(groups())
    assert {name: getattr(seen[0], name) for name in options} == options


@pytest.mark.thinned(5)
@pytest.mark.parametrize("orthogonal", ["samples", "features"])
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize(("capacity", "n_components"), [(5, 2), (4, 3), (0.3, 4), (1, 10)])
def test_equal_items_get_as_many_components_as_the_capacity_needs(capacity, n_components, scaling, orthogonal):
    # ten items of at most 5, 4, 3 and 1
    X = np.ones((10, 3)) if orthogonal == "samples" else np.ones((3, 10))
    model = ONMF(capacity=capacity, scaling=scaling, orthogonal=orthogonal).fit(X)
    assert model.n_components_ == n_components
    assert model.counts_.sum() == 10
    assert model.counts_.max() <= -(-10 // n_components)
    assert model.verify(X).holds


# -- odd data ------------------------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize("solver", ["dual", "cbf"])
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_zero_rows_are_counted(scaling, solver):
    X = np.vstack([groups(sizes=(10, 6, 4)), np.zeros((10, 6))])
    model = ONMF(3, scaling=scaling, capacity=10, solver=solver).fit(X)
    assert_array_equal(model.counts_, 10)
    assert (np.bincount(model.labels_) == 10).all()
    assert model.certificate_.holds, str(model.certificate_)
    if scaling == "item":
        assert_array_equal(model.scale_[20:], 0)


@pytest.mark.parametrize("solver", ["dual", "cbf"])
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_equal_rows_are_divided(value, scaling, solver):
    X = np.full((10, 3), value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ONMF(2, scaling=scaling, capacity=0.5, solver=solver).fit(X)
    assert_array_equal(np.bincount(model.labels_), [5, 5])
    assert model.n_components_ == 2
    assert_allclose(model.reconstruction_err_, 0, atol=1e-12)
    assert_allclose(model.inverse_transform(model.fit_transform(X)), X, atol=1e-12)


def test_weights_never_count():
    X = groups()
    weight = np.ones(40)
    weight[:5] = 100.0
    model = ONMF(4, scaling="none", capacity=10).fit(X, sample_weight=weight)
    assert_array_equal(np.bincount(model.labels_), 10)


def test_one_component_one_item_and_one_each():
    X = groups()
    assert ONMF(1, capacity=40).fit(X).counts_.tolist() == [40]
    assert ONMF(1, capacity=1).fit(X[:1]).counts_.tolist() == [1]
    each = ONMF(40, scaling="none", capacity=1).fit(X)
    assert_array_equal(each.counts_, 1)
    assert_allclose(each.reconstruction_err_, 0, atol=1e-9 * np.linalg.norm(X))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("solver", ["dual", "cbf"])
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_the_same_again(scaling, solver):
    fits = [ONMF(4, scaling=scaling, capacity=6, solver=solver, n_jobs=jobs).fit(groups(sizes=FEW)) for jobs in (1, 2)]
    for other in fits[1:]:
        assert_array_equal(other.labels_, fits[0].labels_)
        assert_array_equal(other.components_, fits[0].components_)


@pytest.mark.parametrize(
    ("scaling", "sizes"),
    [
        ("item", (90, 30, 15)),
        pytest.param("item", (360, 120, 80, 40), marks=pytest.mark.long),
        pytest.param("none", (360, 120, 80, 40), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_more_items_than_the_annealing_sees(scaling, sizes):
    X = groups(sizes=sizes)
    places = len(X) // len(sizes)
    model = ONMF(len(sizes), scaling=scaling, capacity=places).fit(X)
    assert_array_equal(model.counts_, places)
    assert model.certificate_.holds, str(model.certificate_)


def test_a_failed_refit_leaves_the_model():
    X = groups()
    model = ONMF(4, capacity=12).fit(X)
    labels = model.labels_
    model.set_params(capacity=9)
    with pytest.raises(ValueError, match="4 fewer than the 40"):
        model.fit(X)
    assert model.labels_ is labels


def test_auto_says_when_the_capacities_rule_out_the_number_that_lasts():
    X = make_onmf(60, 8, 3, noise=0.05, random_state=0).X
    assert ONMF(max_components=8).fit(X).n_components_ == 3
    model = ONMF(max_components=8, capacity=12).fit(X)  # 60 items need five components of 12
    assert model.n_components_ >= 5
    assert "3 components stand out" in model.status_
    assert "The capacities need 5 components. For 3, raise capacity." in model.status_
