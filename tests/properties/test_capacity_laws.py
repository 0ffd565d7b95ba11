"""Laws of bounded components that hold for every problem, on examples that Hypothesis finds."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from orthonmf import ONMF

# Relative: errors are square roots of sums of at most 60 squares.
ROUNDING = 1e-9
# A fit is a search of some tenths of a second.
FITS = settings(max_examples=20)
LONG = pytest.mark.long


def items(n, p=3):
    """Positive data, with repeated rows now and then."""
    return arrays(np.float64, (n, p), elements=st.integers(1, 60).map(lambda v: v / 4))


@st.composite
def problems(draw, most_items=14):
    """Data with bounds, one per component, that some assignment meets; half of them with Σ upper = n."""
    n, k = draw(st.integers(4, most_items)), draw(st.integers(1, 4))
    sizes = np.bincount(draw(arrays(np.intp, n - k, elements=st.integers(0, k - 1))), minlength=k) + 1
    below, above = draw(arrays(np.intp, (2, k), elements=st.integers(0, 4)))
    return draw(items(n)), np.maximum(sizes - below, 0), sizes + (0 if draw(st.booleans()) else above)


def fitted(X, lower, upper, **options):
    return ONMF(len(upper), capacity=list(upper), min_size=list(lower), **options).fit(X)


@pytest.mark.parametrize(
    ("scaling", "most_items"), [("item", 8), pytest.param("item", 14, marks=LONG), pytest.param("none", 14, marks=LONG)]
)
@FITS
@given(data=st.data())
def test_every_feasible_bound_is_kept_and_certified(scaling, most_items, data):
    X, lower, upper = data.draw(problems(most_items))
    model = fitted(X, lower, upper, scaling=scaling)
    counts = np.bincount(model.labels_, minlength=len(upper))
    assert (counts <= upper).all()
    assert (counts >= lower).all()
    assert model.certificate_.holds, str(model.certificate_)


@pytest.mark.parametrize(
    ("rounding", "beta_stop"), [("exact", 10.0), pytest.param("exact", 1e3, marks=LONG), pytest.param("nearest", 1e3, marks=LONG)]
)
@settings(max_examples=6)  # the flow takes seconds
@given(problem=problems())
def test_the_flow_keeps_every_feasible_bound(rounding, beta_stop, problem):
    X, lower, upper = problem
    options = {"beta_stop": beta_stop}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)  # the flow says where it used up its steps; its bounds are kept all the same
        model = fitted(X, lower, upper, solver="cbf", rounding=rounding, refine=False, solver_options=options)
    counts = np.bincount(model.labels_, minlength=len(upper))
    kept = bool((counts <= upper).all() and (counts >= lower).all())
    assert kept or rounding == "nearest"
    assert model.certificate_.claims["every size is within its bounds"] == kept


@pytest.mark.parametrize(
    ("scaling", "most_items"), [("none", 8), pytest.param("none", 14, marks=LONG), pytest.param("item", 14, marks=LONG)]
)
@FITS
@given(data=st.data(), random=st.randoms(use_true_random=False))
def test_permuted_bounds_permute_the_answer(scaling, most_items, data, random):
    X, lower, upper = data.draw(problems(most_items))
    order = random.sample(range(len(upper)), len(upper))
    model, permuted = (
        fitted(X, lower, upper, scaling=scaling),
        fitted(X, lower[order], upper[order], scaling=scaling),
    )
    assert (permuted.counts_ <= upper[order]).all()
    assert_allclose(
        permuted.reconstruction_err_,
        model.reconstruction_err_,
        rtol=ROUNDING,
        atol=ROUNDING * np.linalg.norm(X),
    )


@pytest.mark.parametrize("scaling", ["item", "none"])
@FITS
@given(problem=problems(most_items=30), data=st.data())
def test_more_capacity_never_raises_the_cost_of_an_assignment(scaling, problem, data):
    X, lower, upper = problem
    k = len(upper)
    centers = data.draw(items(k))
    model = ONMF(k, scaling=scaling, refine=False)
    # One item on each centre: the fit finds them, and X is assigned at these centres, whatever they are.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct centres than asked for
        model.fit(centers)
    if model.n_components_ < k:
        return

    def cost(labels):
        T = np.zeros((len(X), k))
        if scaling == "item":
            T[np.arange(len(X)), labels] = np.einsum("ij,ij->i", X, model.components_[labels])
        else:
            T[np.arange(len(X)), labels] = 1.0  # one item each: the components are the means
        return float(((X - T @ model.components_) ** 2).sum())

    more = upper + data.draw(arrays(np.intp, k, elements=st.integers(0, 5)))
    less = np.maximum(lower - data.draw(arrays(np.intp, k, elements=st.integers(0, 5))), 0)
    tight = cost(model.assign(X, capacity=list(upper), min_size=list(lower)))
    loose = cost(model.assign(X, capacity=list(more), min_size=list(less)))
    free = cost(model.predict(X))
    slack = ROUNDING * float((X**2).sum())
    assert loose <= tight + slack
    assert free <= loose + slack


@FITS
@given(n=st.integers(1, 5).map(lambda m: 3 * m), data=st.data())
def test_full_capacities_are_all_met(n, data):
    model = ONMF(3, capacity=n // 3, scaling="none").fit(data.draw(items(n)))
    assert_array_equal(np.bincount(model.labels_), n // 3)
