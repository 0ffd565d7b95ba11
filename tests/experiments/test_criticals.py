"""Splits without a temperature, and the number that lasts."""

import numpy as np
from numpy.testing import assert_allclose

from orthonmf.experiments.criticals import longest, peak, table
from orthonmf.experiments.greedy import GreedySplits, greedy_splits

# Three groups of two points: at 0 and 2, 20 and 22, 100 and 102.
X = np.array([[0.0], [2.0], [20.0], [22.0], [100.0], [102.0]])


def test_splits_by_hand():
    # Total distortions: all 11 206 about the mean 41; the four left ones 404 about 11, the right ones 2; then 2 in each of three.
    splits = greedy_splits(X, 4)
    assert_allclose(splits.persistence_, np.log([11206 / 404, 404 / 2, 1.0]))
    assert peak(splits) == 3


def test_a_split_is_at_no_smaller_beta_than_the_one_before():
    rng = np.random.default_rng(0)
    assert (greedy_splits(rng.random((40, 5)), 8).persistence_ >= 0).all()


def test_numbers_below_the_least_are_not_judged():
    assert peak(greedy_splits(X, 4, least=4)) is None
    assert longest(greedy_splits(X, 4, least=4)) == 4
    assert np.isnan(greedy_splits(X, 4, least=4).persistence_[:2]).all()


def test_none_where_no_number_lasts():
    assert peak(GreedySplits(np.array([0.1, 0.5, np.inf]))) is None
    assert peak(GreedySplits(np.array([0.1, 0.9, np.inf]))) == 3


def test_what_hardly_lasts_is_in_parentheses():
    found = {"a": [GreedySplits(np.array([0.1, 0.9])), GreedySplits(np.array([0.5, 0.1]))]}
    assert table(found).rows[1] == ("a", "3 [0.90]", "(2 [0.50])")
