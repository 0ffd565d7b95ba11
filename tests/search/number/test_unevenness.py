"""How the noise of lines differs by item."""

import numpy as np
import pytest

from orthonmf.search.number.unevenness import unevenness


@pytest.mark.parametrize(("added", "grown"), [(1.0, 0.0), (0.0, 1.0), (0.6, 0.4)])
def test_what_was_added_and_what_grows_are_told_apart(added, grown):
    rng = np.random.default_rng(0)
    sq = rng.gamma(9, 0.1, 400) ** 2
    variance = added + grown * sq
    rest = variance * rng.chisquare(100, 400)
    found = unevenness(sq, rest, np.ones(400))
    assert found == pytest.approx(variance / sq / np.mean(variance / sq), rel=0.1)


def test_without_rest_noise_is_even():
    assert unevenness(np.arange(1.0, 5.0), np.zeros(4), np.ones(4)).tolist() == [1, 1, 1, 1]


def test_units_play_no_part():
    rng = np.random.default_rng(1)
    sq, rest = rng.random(50) + 0.1, rng.random(50)
    assert unevenness(4 * sq, 9 * rest, 3 * np.ones(50)) == pytest.approx(unevenness(sq, rest, np.ones(50)), rel=1e-9)


def test_weights_are_repetitions():
    rng = np.random.default_rng(2)
    sq, rest, weight = rng.random(30) + 0.1, rng.random(30), rng.integers(1, 4, 30)
    repeated = unevenness(np.repeat(sq, weight), np.repeat(rest, weight), np.ones(weight.sum()))
    assert np.repeat(unevenness(sq, rest, weight.astype(float)), weight) == pytest.approx(repeated, rel=1e-9)
