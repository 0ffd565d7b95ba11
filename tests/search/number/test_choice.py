"""The number of components and what is said about it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from clouds import number_of

from orthonmf.datasets import make_nested


@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("seed", range(1))
def test_nested_data_have_levels(scaling, seed):
    X = make_nested(320, 20, group_spread=10, cluster_spread=2, noise_spread=0.2, random_state=seed).X
    found = number_of(X, scaling, most=24)
    assert found.answer == 16
    assert 4 in found.levels
    assert " or 4" in found.sentence


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("n", "p", "level"), [(60, 400, 0.2), (60, 100, 0.2), (200, 400, 1.0)])
@pytest.mark.parametrize("seed", range(2))
def test_short_items_over_a_background_are_no_components_of_their_own(n, p, level, seed):
    # Noise turns the lines of short items farther; each would have a direction of its own in many dimensions.
    rng = np.random.default_rng(seed)
    centers, labels = rng.gamma(1, 1, (5, p)), rng.integers(5, size=n)
    X = centers[labels] * rng.gamma(9, 0.1, (n, 1)) + level * rng.random((n, p))
    assert number_of(X, "item", most=16).answer == 5


def separated(k, seed, n=240, p=12):
    rng = np.random.default_rng(seed)
    return 30 + 10 * rng.standard_normal((k, p))[np.arange(n) % k] + rng.standard_normal((n, p))


class TestTheLargestNumber:
    @pytest.mark.parametrize("seed", range(2))
    def test_an_answer_at_it_says_so(self, seed):
        found = number_of(separated(8, seed), most=5)
        assert found.answer == 5
        assert found.at_most
        assert "ended at max_components" in found.sentence

    @pytest.mark.parametrize("seed", range(2))
    def test_an_answer_below_it_does_not(self, seed):
        found = number_of(separated(5, seed), most=9)
        assert found.answer == 5
        assert not found.at_most
        assert "max_components" not in found.sentence


@cache
def of_four(seed):
    return number_of(separated(4, seed))


class TestWhatSpeaksForIt:
    @pytest.mark.parametrize("seed", range(2))
    def test_likelihood_is_best_there(self, seed):
        assert np.nanargmax(of_four(seed).bic) + 1 == 4

    @pytest.mark.parametrize("seed", range(2))
    def test_one_fewer_is_rejected_and_one_more_is_noise(self, seed):
        found = of_four(seed)
        assert found.p_values[3] == 0.01  # of 99 draws none gains as much
        assert found.p_values[4] > 0.05

    @pytest.mark.parametrize("seed", range(2))
    def test_halves_agree_there(self, seed):
        found = of_four(seed)
        assert found.agreement[3] == pytest.approx(1.0)
        assert np.nanmin(found.stability(np.arange(240) % 4, 4)) == pytest.approx(1.0)

    def test_a_component_that_is_none_does_not_come_back(self):
        # The third component is half of the second, drawn by lot: the parts of the halves share at most half of what both have.
        labels = np.arange(240) % 2 * (1 + np.random.default_rng(0).integers(0, 2, 240))
        stability = number_of(separated(2, 0)).stability(labels, 3)
        assert stability[0] == pytest.approx(1.0)
        assert stability[1:].max() < 0.7


@pytest.mark.thinned(5)
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("p", [20, 100, 400])
@pytest.mark.parametrize("seed", range(3))
def test_noise_has_one_and_says_so(scaling, p, seed):
    # One set in five has a direction above the edge, which does no harm: the noise along it is as wide as along others.
    found = number_of(20 + np.random.default_rng(seed).standard_normal((300, p)), scaling)
    assert found.answer == 1
    assert found.sentence.startswith("Nothing stands out")


@pytest.mark.parametrize(("p", "words"), [(0.4, "one more is noise"), (0.01, "one more may be real")])
def test_one_more_is_noise_only_where_chance_often_gains_as_much(p, words):
    found = replace(of_four(0), p_values={4: p})
    assert f"4 components stand out; {words} (chance gains as much with probability {p:.2f}); halves of the items" in found.sentence
