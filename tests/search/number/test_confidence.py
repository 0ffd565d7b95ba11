"""P-values are those of chance where the number is right, and small where it is not; agreement by hand."""

import numpy as np
import pytest
from clouds import cloud_of_items

from benchmarks.number import drawn
from orthonmf.search.number import gain_test
from orthonmf.search.number.confidence import adjusted_rand, component_agreement

LEVEL = 0.05


def rejected(n_components, more, seeds, draws=19):
    """In how many sets the number is rejected: with 19 draws, when none gains as much as the data."""
    sets = [(drawn(n_components, seed, more), seed) for seed in seeds]
    return sum(gain_test(cloud_of_items(X), labels, seed, draws) <= LEVEL for (X, labels), seed in sets)


@pytest.mark.parametrize("n_components", [1, 4])
class TestPValues:
    # By chance 1 of 12 sets is rejected at most 88 times in 100, more than 3 once in 500; the seeds are fixed.
    def test_a_right_number_is_rarely_rejected(self, n_components):
        assert rejected(n_components, False, range(12)) <= 2

    def test_one_component_too_few_is_rejected(self, n_components):
        assert rejected(n_components, True, range(6)) == 6

    @pytest.mark.long
    def test_over_200_sets(self, n_components):
        assert rejected(n_components, False, range(200), 99) <= 16  # 10 expected, 16 exceeded with probability 0.03
        assert rejected(n_components, True, range(200), 99) >= 180


class TestAdjustedRand:
    def test_by_hand(self):
        # 0 0 1 1 against 0 0 1 2: pairs in common 1, of rows 2, of columns 1, of all 6; (1 − 1/3) / (3/2 − 1/3) = 4/7.
        assert adjusted_rand(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2]), np.ones(4)) == pytest.approx(4 / 7)

    def test_weights_equal_repetition(self):
        one, other, times = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 0]), np.array([3, 1, 2, 1, 2])
        repeated = adjusted_rand(np.repeat(one, times), np.repeat(other, times), np.ones(times.sum()))
        assert adjusted_rand(one, other, times.astype(float)) == pytest.approx(repeated)

    def test_one_group_agrees_with_itself(self):
        assert adjusted_rand(np.zeros(5, dtype=int), np.zeros(5, dtype=int), np.ones(5)) == 1.0


class TestComponentAgreement:
    def test_by_hand(self):
        # {0, 1} comes back whole; {2, 3} best as {2} or as {3, 4}: ½ and ⅓ of both together; {4}: ½.
        found = component_agreement(np.array([0, 0, 1, 1, 2]), [np.array([0, 0, 1, 2, 2])], 3)
        np.testing.assert_allclose(found, [1.0, 0.5, 0.5])

    def test_unknown_without_partitions(self):
        assert np.isnan(component_agreement(np.array([0, 1]), [], 2)).all()
