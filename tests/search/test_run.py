"""What a stopped fit returns: an answer within its bounds, and the best so far."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from orthonmf import ONMF, estimator
from orthonmf.engines import threads
from orthonmf.progress import StopRequested, listening
from orthonmf.search import stages
from orthonmf.search.bounded import dual, flow, search
from orthonmf.search.status import Status

BOUNDS = {"free": {}, "capacity": {"capacity": 9}, "both": {"capacity": 0.4, "min_size": 0.1}, "vectors": {"capacity": [3, 8, 12, 10]}}


class Ticks:
    """A clock that goes on by one whenever it is looked at: before each block, and at the ends of a pass."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        self.now += 1
        return self.now


def gamma(seed, shape):
    return np.random.default_rng(seed).gamma(1.0, size=shape)


def after(ticks, X, monkeypatch, **parameters):
    clock = Ticks()
    monkeypatch.setattr(threads, "monotonic", clock)
    monkeypatch.setattr(estimator, "monotonic", clock)
    return ONMF(time_limit=ticks, n_jobs=1, **parameters).fit(X)


@pytest.mark.thinned(3)
@pytest.mark.filterwarnings("ignore:ONMF did not converge. Stopped")
@pytest.mark.parametrize(("orthogonal", "scaling"), [("samples", "item"), ("features", "none")])
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("seed", [0])
def test_more_time_is_never_worse(monkeypatch, orthogonal, scaling, bounds, seed):
    """Also: whatever the limit, there are as many components as asked for, within the bounds."""
    X = gamma(seed, (30, 4))
    X = X if orthogonal == "samples" else X.T
    errors = []
    for ticks in (1e-9, 40, 80, 150, 300, 600, 10**9):
        model = after(ticks, X, monkeypatch, n_components=4, orthogonal=orthogonal, scaling=scaling, **BOUNDS[bounds])
        assert model.n_components_ == 4
        assert bounds == "free" or model._bounds.outside(model.counts_) == 0, model.counts_
        errors.append(model.reconstruction_err_)
    assert model.converged_
    assert (np.diff(errors) <= 1e-12 * errors[0]).all(), errors  # the errors themselves are rounded
    assert len(set(errors)) > 2, errors  # what is reached on the way is kept


@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("seed", [0, 1])
def test_stopped_fit_is_within_its_bounds_and_certified_for_them(scaling, seed):
    X = gamma(seed, (40, 6))
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        model = ONMF(4, capacity=2, orthogonal="features", scaling=scaling, time_limit=1e-9).fit(X)
    assert sorted(model.counts_.tolist()) == [1, 1, 2, 2]
    assert model.certificate_.claims["every size is within its bounds"]
    assert model.verify(X).claims["every size is within its bounds"]


@pytest.mark.parametrize("n_components", [4, "auto"])
def test_stopping_callback_leaves_the_bounds_as_they_are(n_components):
    def stop(temperature):
        raise StopRequested

    X = gamma(0, (40, 6))
    with listening(stop), pytest.warns(ConvergenceWarning, match="Stopped by a callback"):
        model = ONMF(n_components, capacity=10).fit(X)
    assert_array_equal(model.counts_, [10, 10, 10, 10])
    assert model.certificate_.claims["every size is within its bounds"]


@pytest.mark.filterwarnings("ignore:ONMF did not converge. Stopped")
def test_more_time_is_never_worse_on_samples(monkeypatch):
    """Swaps are searched for on a sample; what they gain there is tried on all items before it is kept."""
    X = gamma(0, (5000, 4))
    errors = [after(ticks, X, monkeypatch, n_components=6, scaling="none").reconstruction_err_ for ticks in (1e-9, 400, 800, 6400)]
    assert (np.diff(errors) <= 1e-9 * errors[0]).all(), errors  # what counts as a gain
    assert len(set(errors)) > 2, errors


@pytest.mark.filterwarnings("ignore:ONMF did not converge. Stopped")
def test_barrier_flow_ends_between_two_steps_when_the_time_is_over(monkeypatch):
    X, solve, solved = gamma(0, (40, 4)), flow.solve_velocities, []

    def counted(problem, start):
        solved.append(1)
        return solve(problem, start=start)

    monkeypatch.setattr(flow, "solve_velocities", counted)
    errors, steps = [], []
    for ticks in (1e-9, 200, 300):
        solved.clear()
        model = after(ticks, X, monkeypatch, n_components=3, capacity=14, solver="cbf", refine=False)
        assert model.counts_.max() <= 14
        errors.append(model.reconstruction_err_)
        steps.append(len(solved))
    assert 0 == steps[0] < steps[1] < steps[2] <= 300, steps
    assert (np.diff(errors) <= 1e-12 * errors[0]).all(), errors


@pytest.mark.parametrize("metric", ["fisher", "euclidean"])
def test_flow_that_has_used_up_its_steps_is_not_converged(metric):
    model = ONMF(3, capacity=14, solver="cbf", solver_options={"max_steps": 3, "metric": metric}, refine=False)
    with pytest.warns(ConvergenceWarning, match="raise max_steps"):
        model.fit(gamma(0, (40, 4)))
    assert not model.converged_
    assert model.status_ == Status.FLOW_STEPS.sentence
    assert model.certificate_.kkt_residual > 1e-4  # the tolerance of the flow


def test_random_state_chooses_the_sample_of_the_prices(monkeypatch):
    """Each sample that is drawn, by any stage, is drawn with the same seed, and another state is another seed."""
    seeds, draw = [], stages.sample

    def noted(engine, n_items, seed):
        seeds.append(seed)
        return draw(engine, n_items, seed)

    for module in (stages, search, dual):
        monkeypatch.setattr(module, "sample", noted)
    X = gamma(0, (700, 3))
    for state in (None, 1):
        seeds.clear()
        ONMF(2, capacity=400, random_state=state).fit(X)
        assert len(seeds) > 1
        assert len(set(seeds)) == 1, (state, seeds)


def test_passes_are_counted_over_the_data_and_over_samples_apart():
    """Every pass is counted once: at its temperature in the history, over all items or over a sample."""
    small = ONMF(3, refine=False).fit(gamma(0, (60, 4)))
    assert small.n_sample_iter_ == 0  # all items are annealed
    assert small.history_["passes"].sum() < small.n_iter_
    large = ONMF(3, capacity=300, refine=False).fit(gamma(0, (700, 4)))
    assert large.n_sample_iter_ > large.history_["passes"].sum()
    passes = large.history_["passes"]
    assert (np.diff(passes) < 0).any()  # of one temperature each, not of all so far


def test_lower_bound_is_left_out_where_there_is_no_time_for_it():
    X = gamma(0, (40, 6))
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        model = ONMF(2, time_limit=1e-9).fit(X)
    assert model.certificate_.lower_bound is None
    assert model.verify(X).lower_bound > 0  # which has all the time
    assert ONMF(2, time_limit=1e9, refine=False).fit(X).certificate_.lower_bound > 0


@pytest.mark.parametrize(("solver", "stage"), [("dual", "prices"), ("cbf", "flow")])
def test_a_temperature_says_which_search_it_belongs_to(solver, stage):
    X = np.random.default_rng(0).gamma(2, 1, (40, 4))
    assert set(ONMF(2).fit(X).history_["stage"]) == {"annealing"}
    assert set(ONMF(2, capacity=22, solver=solver).fit(X).history_["stage"]) == {"annealing", stage}
