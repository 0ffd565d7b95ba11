"""The method as the paper prints it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf.datasets import make_onmf
from orthonmf.experiments.mep import MepAsPrinted

# Means (2, 0) and (0, 4); the best scales for them are the lengths over those of the means.
X = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 3.0], [0.0, 5.0]])


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_by_hand(orthogonal):
    A = X if orthogonal == "samples" else X.T
    model = MepAsPrinted(2, orthogonal=orthogonal)
    T = model.fit_transform(A)
    assert_allclose(T @ model.components_, A, atol=1e-4)  # the last temperature is not zero, the means are soft


def test_scales_are_solved_after_the_fit_for_the_means():
    # One mean, (3, 2): θ = (9, 15, 4) / 13, which lines would beat.
    model = MepAsPrinted(1)
    T = model.fit_transform(np.array([[3.0, 0.0], [5.0, 0.0], [1.0, 6.0]]))
    assert_allclose(T @ model.components_, np.outer(np.array([9.0, 15.0, 15.0]) / 13, [3.0, 2.0]))


def test_nothing_is_refined():
    # Refined means would be exact; these are the soft ones of the last temperature.
    model = MepAsPrinted(2)
    assert np.abs(model.fit_transform(X) @ model.components_ - X).max() > 1e-9


def test_items_that_are_all_zero():
    # With more components than groups β grows until nothing of the others is left in the mean of the zeros.
    rows = np.vstack([make_onmf(60, 8, 3, noise=0.5, random_state=0).X, np.zeros((100, 8))])
    model = MepAsPrinted(6)
    T = model.fit_transform(rows)
    assert np.count_nonzero(model.components_.any(axis=1)) == 5
    assert_array_equal(T[60:], 0)
    assert np.isfinite(T @ model.components_).all()
