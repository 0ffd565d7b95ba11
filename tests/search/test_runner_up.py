"""The runner-up is another partition at rest, no better than the best, and nearly the same is not another."""

import doctest
from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from problems import best_partition, subset_costs
from sklearn.metrics import adjusted_rand_score

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.base import weighted_mean
from orthonmf.engines.dense import DenseEngine
from orthonmf.search import runner_up as module
from orthonmf.search.partition import alternate, centered, refilled
from orthonmf.search.refine import refine, swapped_starts
from orthonmf.search.runner_up import ANOTHER, SWAPS_TRIED, elsewhere, runner_up

SQUARE = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0], [2.0, 2.0]])
ROUNDING = 1e-9  # of the cost: what a gain must exceed for the refinement to count it


def build(X, scaling="none"):
    engine = DenseEngine(np.asarray(X, dtype=float), team=ThreadTeam(1))
    return engine, REGISTRY["frobenius", scaling].about(weighted_mean(engine))


def refined(X, scaling, k):
    engine, distortion = build(X, scaling)
    start = alternate(engine, distortion, refilled(engine, distortion, np.repeat(distortion.origin, k, 0)))
    return engine, distortion, refine(engine, distortion, start)


def test_examples_run():
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("pairs", [[0, 0, 1, 1], [0, 1, 0, 1]], ids=["rows", "columns"])
def test_of_a_square_it_is_the_other_pairing(pairs):
    engine, distortion = build(SQUARE)
    part = centered(engine, distortion, np.array(pairs), np.repeat(distortion.origin, 2, 0))
    found = runner_up(engine, distortion, part)
    assert found.cost == pytest.approx(part.cost, rel=1e-12)
    assert found.elsewhere == 0.5
    # Every pair of one is parted by the other: 0 of (2 · 2 / 6) expected pairs in common, of 2 at most.
    assert adjusted_rand_score(pairs, found.labels) == pytest.approx(-0.5)


def test_of_two_far_pairs_it_costs_what_brute_force_says_another_does():
    # 0, 1 | 10, 11: from rest 0 | 1, 10, 11 and 0, 1, 10 | 11 lead back, so that nothing else is at rest.
    engine, distortion, part = refined([[0.0], [1.0], [10.0], [11.0]], "none", 2)
    assert part.cost == pytest.approx(best_partition(subset_costs(np.array([[0.0], [1.0], [10.0], [11.0]]), "none"), 2).cost)
    assert runner_up(engine, distortion, part) is None


def test_of_one_component_there_is_none():
    engine, distortion, part = refined(SQUARE, "none", 1)
    assert runner_up(engine, distortion, part) is None


@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("seed", range(6))
def test_it_is_at_rest_differs_and_costs_no_less_than_a_refined_partition(seed, scaling):
    X = np.random.default_rng(seed).gamma(2.0, size=(40, 3))
    engine, distortion, part = refined(X, scaling, 4)
    found = runner_up(engine, distortion, part)
    assert found.cost >= part.cost * (1 - ROUNDING)
    assert found.elsewhere == elsewhere(part.labels, found.labels) >= ANOTHER
    again = alternate(engine, distortion, centered(engine, distortion, found.labels, part.centers).centers)
    assert_array_equal(again.labels, found.labels)
    assert again.cost == pytest.approx(found.cost, rel=ROUNDING)


def test_the_same_partition_has_the_same_runner_up():
    X = np.random.default_rng(7).gamma(2.0, size=(60, 5))
    (first, one), (second, other) = ((runner_up(*each), each[2]) for each in (refined(X, "item", 5), refined(X, "item", 5)))
    assert first.cost == second.cost
    assert_array_equal(first.labels, second.labels)
    assert_array_equal(one.labels, other.labels)


@pytest.mark.parametrize("seed", range(4))
def test_of_all_that_the_swaps_lead_to_it_costs_least(seed):
    engine, distortion, part = refined(np.random.default_rng(seed).gamma(2.0, size=(80, 4)), "none", 5)
    ends = [alternate(engine, distortion, centers) for centers in islice(swapped_starts(engine, distortion, part), SWAPS_TRIED)]
    others = [end.cost for end in ends if end is not None and elsewhere(part.labels, end.labels) >= ANOTHER]
    assert max(others) > min(others)
    assert runner_up(engine, distortion, part).cost == min(others)
