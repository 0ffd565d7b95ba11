"""Where noise ends among the eigenvalues."""

import numpy as np
import pytest

from orthonmf.datasets import make_paper_synthetic
from orthonmf.search.number.edge import Edge, n_signals


def edge_of(items, repeats=None):
    """The edge of items in rows, and their eigenvalues."""
    repeats = np.ones(len(items), dtype=int) if repeats is None else repeats
    scaled = items * np.sqrt(repeats / repeats.sum())[:, None]
    left, singular, _ = np.linalg.svd(scaled, full_matrices=False)
    return Edge(scaled, left, repeats, float(repeats.sum())), singular**2


@pytest.mark.parametrize(("n", "p"), [(300, 30), (200, 200), (100, 400)])
@pytest.mark.parametrize("seed", range(2))
def test_equal_noise_ends_where_marchenko_and_pastur_say(n, p, seed):
    edge, _ = edge_of(3.0 * np.random.default_rng(seed).standard_normal((n, p)))
    noise = 9 * (1 + np.sqrt(p / n)) ** 2
    # The largest eigenvalue varies by some n^(−2/3) about its limit, and so much is the margin: at most a tenth.
    assert 0.95 * noise < edge.reached(1, 0.0) < 1.15 * noise


@pytest.mark.parametrize("seed", range(3))
def test_signal_is_counted_where_noise_differs_by_item(seed):
    # Three directions over noise whose deviations are 0.3 to 3: with equal noise of the mean variance the edge would be far lower.
    rng = np.random.default_rng(seed)
    signal = 10 * rng.standard_normal((300, 3)) @ np.linalg.qr(rng.standard_normal((100, 3)))[0].T
    edge, values = edge_of(signal + rng.standard_normal((300, 100)) * np.geomspace(0.3, 3, 300)[:, None])
    assert 3 <= n_signals(values, edge) <= 4
    equal = values[3:].sum() / 97 * (1 + np.sqrt(97 / 297)) ** 2
    assert np.count_nonzero(values > 1.1 * equal) > 4


@pytest.mark.parametrize("seed", range(3))
def test_a_direction_of_one_item_alone_is_not_shared(seed):
    rng = np.random.default_rng(seed)
    items = rng.standard_normal((60, 200))
    items[0] *= 4
    edge, values = edge_of(items + 3 * np.sign(rng.standard_normal((60, 1))) * rng.standard_normal(200))
    assert n_signals(values, edge) == 2
    assert n_signals(values, edge, shared=True) == 1


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    items, repeats = rng.standard_normal((40, 10)), rng.integers(1, 4, 40)
    weighted, repeated = edge_of(items, repeats)[0], edge_of(np.repeat(items, repeats, axis=0))[0]
    assert weighted.reached(2, 0.0) == pytest.approx(repeated.reached(2, 0.0), rel=1e-2)  # singular values to 1e-3


def test_some_stand_for_all():
    # Every fourth of equal items: the edge of fewer items is higher, and is brought back to that of all.
    items = np.random.default_rng(0).standard_normal((1600, 80))
    whole, _ = edge_of(items)
    some, _ = edge_of(items[::4])
    few = Edge(some.items, some.left, some.repeats, 1600.0)
    assert few.reached(1, 0.0) == pytest.approx(whole.reached(1, 0.0), rel=0.05)  # the draws vary by 2 %


def test_few_dimensions_are_all_taken():
    edge, values = edge_of(np.random.default_rng(0).standard_normal((100, 4)))
    assert n_signals(values, edge) == 4


@pytest.mark.parametrize("rare", [5, 3])
def test_rare_groups_along_features_of_their_own_stand_out(rare):
    # Signs cannot take away what lies in one feature: only all of these directions together stand out, even where they are more than half.
    items = np.random.default_rng(0).standard_normal((400, 8))
    for j in range(rare):
        items[10 * j : 10 * j + 10, j] += 100
    edge, values = edge_of(items)
    assert n_signals(values, edge) >= rare  # of few that are left, noise may follow


@pytest.mark.parametrize("seed", [0, 17])
def test_groups_may_take_all_dimensions(seed):
    # Twenty groups in ten dimensions, noise of a thousandth of their distances: what a few directions leave is no noise.
    X = make_paper_synthetic(1, seed).X
    edge, values = edge_of(X / np.linalg.norm(X, axis=1, keepdims=True))
    assert n_signals(values, edge) == 10
