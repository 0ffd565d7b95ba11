"""Items as points of few dimensions."""

import numpy as np
import pytest
from clouds import cloud_of_items

from orthonmf.search.number.cloud import effective_number, inflation


def groups(k, p, seed, n=300, spread=1.0):
    """k groups far apart, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    return 20 + 10 * rng.random((k, p))[labels] + spread * rng.standard_normal((n, p)), labels


class TestDirections:
    @pytest.mark.thinned(5)
    @pytest.mark.parametrize("scaling", ["item", "none"])
    @pytest.mark.parametrize("k", [2, 4, 7])
    @pytest.mark.parametrize("seed", range(3))
    def test_separated_groups_have_one_less_than_there_are(self, scaling, k, seed):
        # and now and then one that chance gives
        assert cloud_of_items(groups(k, 60, seed)[0], scaling).points.shape[1] in (k - 1, k)

    def test_the_rest_is_the_noise(self):
        # What 300 items leave of a variance of 1: (n − k) / n of it, and a little less for the directions taken.
        assert cloud_of_items(groups(4, 60, 0)[0]).noise == pytest.approx(1.0, abs=0.05)

    def test_few_dimensions_are_all_taken(self):
        assert cloud_of_items(20 + np.random.default_rng(0).standard_normal((100, 3))).points.shape[1] == 3


class TestSteps:
    def test_a_step_hides_a_twelfth_of_its_square(self):
        # Steps of 2 in three features and 4 in the fourth: (3 · 4 + 16) / 4 / 12.
        X = np.random.default_rng(0).integers(0, 9, (200, 4)) * np.array([2.0, 2.0, 2.0, 4.0])
        assert cloud_of_items(X).blur == pytest.approx(7 / 12)

    def test_lines_see_it_at_their_distance(self):
        # All of length 5: (3, 4) and (4, 3), in steps of 1.
        X = np.tile([[3.0, 4.0], [4.0, 3.0]], (10, 1))
        assert cloud_of_items(X, "item").blur == pytest.approx(1 / 12 / 25)

    def test_other_values_hide_little(self):
        X = np.random.default_rng(0).random((200, 4))
        assert cloud_of_items(X).blur < 1e-6 * X.var()


@pytest.mark.parametrize("scaling", ["item", "none"])
def test_distances_of_groups_remain(scaling):
    X, labels = groups(4, 60, 0, spread=0.1)
    found = cloud_of_items(X, scaling)
    seen = X / np.linalg.norm(X, axis=1, keepdims=True) if scaling == "item" else X
    far = [np.array([points[labels == j].mean(axis=0) for j in range(4)]) for points in (seen, found.points)]
    pairs = [np.linalg.norm(means[:, None] - means, axis=2) for means in far]
    np.testing.assert_allclose(pairs[1], pairs[0], rtol=0.01, atol=1e-6)  # the noise of 75 items turns directions a little


@pytest.mark.parametrize("scaling", ["item", "none"])
def test_features_of_zero_change_nothing_even_where_they_outnumber_the_items(scaling):
    # Zeros added to the features change nothing, whether the matrix of the items or that of the features is decomposed.
    X = groups(4, 60, 0, n=100)[0]
    narrow, wide = cloud_of_items(X, scaling), cloud_of_items(np.pad(X, ((0, 0), (0, 60))), scaling)
    pairs = [np.linalg.norm(found.points[:, None] - found.points, axis=2) for found in (narrow, wide)]
    np.testing.assert_allclose(pairs[1], pairs[0], atol=1e-9 * pairs[0].max())
    assert wide.noise == pytest.approx(narrow.noise)


def test_an_item_of_zero_has_no_direction():
    X = groups(3, 20, 0)[0]
    X[7] = 0
    assert 7 not in cloud_of_items(X, "item").used
    assert 7 in cloud_of_items(X, "none").used


class TestEffectiveNumber:
    def test_counts_count(self):
        assert effective_number(np.array([1.0, 2.0, 3.0])) == 6

    @pytest.mark.parametrize("factor", [0.1, 3.0, 1e-30])
    @pytest.mark.parametrize("weight", [[1.0, 2.0, 3.0], [0.3, 1.1, 2.7]])
    def test_multiples_change_nothing(self, factor, weight):
        assert effective_number(factor * np.array(weight)) == pytest.approx(effective_number(np.array(weight)))

    def test_others_are_worth_what_kish_says(self):
        # (1 + 2.5)² / (1 + 6.25)
        assert effective_number(np.array([1.0, 2.5])) == pytest.approx(12.25 / 7.25)

    def test_no_weight_is_no_item(self):
        assert effective_number(np.array([0.0, 1.0, 1.0])) == 2


class TestInflation:
    def test_by_hand(self):
        # A quarter of a dimension per item, noise 2: ℓ = 1 gives 2 (1 + 1)(1 + ¼) = 5, and noise that is 1 + ¼ times as wide.
        np.testing.assert_allclose(inflation(np.array([5.0]), 2.0, 0.25), [1.25])

    def test_at_the_edge_all_is_noise(self):
        # The variance of the edge, (1 + √γ)², is that of the noise along it.
        np.testing.assert_allclose(inflation(np.array([2.25, 1.0]), 1.0, 0.25), [1.5, 1.5])

    def test_without_noise_there_is_none(self):
        np.testing.assert_allclose(inflation(np.array([3.0, 1.0]), 0.0, 4.0), 1.0)
