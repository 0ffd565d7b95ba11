"""The annealing as branches: β only grows, and every component has one ancestor."""

import doctest

import numpy as np
import pytest

from orthonmf import ONMF
from orthonmf.datasets import make_nested
from orthonmf.model import track
from orthonmf.model.track import Track, drawable, located, widest_view


def written(beta, ids, positions, splits=()):
    """A history of centres on a line."""
    return {
        "beta": np.array(beta, dtype=float),
        "ids": ids,
        "projection": [np.array([[x, 0.0] for x in at]) for at in positions],
        "splits": list(splits),
    }


@pytest.mark.long
def test_examples_run():
    assert doctest.testmod(track).failed == 0


def test_a_child_comes_from_its_parent_in_the_tree():
    # Component 2 leaves 0 at β = 4, where 1 is nearer: the tree knows better than the distance.
    history = written([1, 2, 4], [(0,), (0, 1), (0, 1, 2)], [[0], [0, 10], [0, 10, 9]], [(2, 0, 1), (4, 0, 2)])
    track = Track.of(history)
    assert track.branches(2).tolist() == [[0, 0, 0], [0, 1, 1], [0, 0, 2]]
    assert track.paths(2)[2, :, 0].tolist() == [0, 0, 9]


def test_without_a_tree_a_child_comes_from_the_nearest():
    track = Track.of(written([1, 2, 4], [(0,), (0, 1), (0, 1, 2)], [[0], [0, 10], [0, 10, 9]], [(2, 0, 1)]))
    assert track.branches(2).tolist() == [[0, 0, 0], [0, 1, 1], [0, 1, 2]]


def test_of_two_looks_at_a_temperature_the_last_counts():
    track = Track.of(written([1, 4, 2, 3, 3], [(0,), (0,), (0,), (0,), (0, 1)], [[0], [1], [2], [3], [3, 4]]))
    assert track.beta.tolist() == [1, 2, 3]
    assert track.steps.tolist() == [0, 2, 4]


def test_a_second_annealing_replaces_the_first():
    track = Track.of(written([1, 8, 2, 4], [(0,), (0, 1), (0,), (0, 1)], [[0], [0, 1], [5], [5, 6]]))
    assert track.steps.tolist() == [2, 3]


def test_a_split_that_did_not_last_is_nobodys_ancestor():
    track = Track.of(written([1, 2, 3], [(0,), (0, 1), (0, 2)], [[0], [0, 5], [0, 5]]))
    assert len(track.branches(2)) == 2
    assert track.last(2) == 2
    assert track.last(9) == 2
    assert track.last(1) == 0
    assert Track.of(written([1, 2], [(0, 1), (0, 1)], [[0, 1], [0, 2]])).last(1) == 1


def test_a_refused_split_does_not_count():
    # At β = 2 component 1 is tried; at 3 it is gone, and 2 comes in its place.
    ids = [(0,), (0,), (0, 1), (0,), (0, 2)]
    track = Track.of(written([1, 2, 2, 3, 3], ids, [list(names) for names in ids]))
    assert track.steps.tolist() == [0, 1, 4]
    assert [len(names) for names in track.ids] == [1, 1, 2]


def test_infinite_temperatures_are_left_out():
    assert Track.of(written([1, np.inf], [(0,), (0,)], [[0], [0]])).beta.tolist() == [1]


def test_the_start_leaves_some_trunk():
    beta = 2.0 ** np.arange(12)
    ids = [(0,)] * 8 + [(0, 1)] * 4
    track = Track.of(written(beta, ids, [list(names) for names in ids], [(2.0**8, 0, 1)]))
    # The last temperature before the split is 2⁷, four octaves before the end: a fifth of them is less than one.
    assert track.start(11) == 7
    assert Track.of(written([1, 2], [(0,), (0,)], [[0], [0]])).start(1) == 0


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", [0, 1])
def test_branches_merge_and_never_part_backwards(seed):
    model = ONMF(scaling="none").fit(make_nested(64, 10, random_state=seed).X)
    track = Track.of(model.history_)
    branches = track.branches(len(track.beta) - 1)
    assert (np.diff(track.beta) > 0).all()
    for i in range(1, branches.shape[1]):
        together = branches[:, None, i] == branches[None, :, i]
        before = branches[:, None, i - 1] == branches[None, :, i - 1]
        assert (before | ~together).all()


def test_the_widest_view_keeps_the_closest_apart():
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    seen = np.sort(square @ widest_view(square))
    # The direction (1, 2) / √5, to half a degree, which moves a gap by at most √2 · 0.0088.
    assert np.diff(seen).min() == pytest.approx(1 / np.sqrt(5), abs=0.0125)


@pytest.mark.parametrize(("model", "expected"), [(ONMF(), True), (ONMF(3), False), (ONMF(3, schedule=1.1), True)])
def test_critical_values_are_located_unless_the_number_is_given(model, expected):
    assert located(model) is expected


def test_a_given_number_has_no_critical_values_unless_beta_grows_in_steps():
    X = make_nested(64, 10, random_state=0).X
    leaping, stepping = ONMF(4).fit(X), ONMF(4, schedule=1.3).fit(X)
    assert (leaping.critical_betas_.size, leaping.persistence_.size) == (0, 0)
    assert (stepping.critical_betas_.size, stepping.persistence_.size) == (3, 2)
    assert [drawable(model) for model in (leaping, stepping, ONMF(4, capacity=16).fit(X))] == [False, True, True]
