"""A partition that is proven to be the best is the best: against all others, one by one."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from problems import SCALINGS, best_partition, partition_cost, subset_costs

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.dense import DenseEngine
from orthonmf.passes.hard import FarthestItems
from orthonmf.search.partition import centered
from orthonmf.search.proof import CONCLUSIVE, farthest_if_proven, separation

CLAIM = "no other partition has a smaller error"


def looked_at(X, labels, scaling, weight=None):
    """An engine, the loss, and the partition with its best centres."""
    engine = DenseEngine.of(X, weight, None, 0, ThreadTeam(1))
    distortion = REGISTRY["frobenius", scaling].of(engine)
    points = np.stack([X[labels == j].mean(axis=0) for j in np.unique(labels)])
    return engine, distortion, centered(engine, distortion, labels, distortion.to_frame(points))


def ratio(X, labels, scaling, weight=None):
    """The separation of a partition with its best centres."""
    engine, distortion, part = looked_at(X, labels, scaling, weight)
    own = engine.run(distortion, FarthestItems(part.centers), {"labels": labels}).total.own
    return separation(distortion.apart(part.centers), part.stats.mass, part.stats.cost, own)


def test_two_pairs_by_hand():
    # c = 1 and 21, m = 2, E_a = 2, E = 4, T = (2 + √2)/√2, r = 1.
    X = np.array([[0.0], [2.0], [20.0], [22.0]])
    needed = 2 * (2 + np.sqrt(2)) / np.sqrt(2) + 2
    assert ratio(X, np.array([0, 0, 1, 1]), "none") == pytest.approx(20 / needed, rel=1e-12)


def test_lines_by_hand():
    # Two axes, and an item at the angle whose tangent is 0.1 beside each: sin² of half of it each, of items of weight 1 and 1.01.
    X = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    part = looked_at(X, np.array([0, 0, 1, 1]), "item")[2]
    assert part.stats.total == pytest.approx(2 * partition_cost(X[:2], np.zeros(2), "item"), rel=1e-9)
    found = ratio(X, np.array([0, 0, 1, 1]), "item")
    # Both centres are near an angle of half of arctan 0.1, so that the angle between them is near π/2 − arctan 0.1.
    cost = part.stats.total
    within = (np.sqrt(cost) + np.sqrt(cost / 2)) / np.sqrt(2.01)
    assert found == pytest.approx(np.cos(np.arctan(0.1)) / (2 * within + 2 * np.sin(np.arctan(0.1) / 2)), rel=1e-2)


def drawn(rng, scaling):
    """Few items in groups that are more or less far apart, some repeated, some without weight."""
    k, n = int(rng.integers(2, 4)), 8
    centers = rng.gamma(2.0, 1.0, (k, 3)) + 0.1
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    noise = 10.0 ** rng.uniform(-2.5, -0.3)
    X = np.abs(centers[labels] + noise * rng.standard_normal((n, 3)))
    X[-1] = X[0]
    labels[-1] = labels[0]
    if scaling == "item":
        X *= rng.uniform(0.5, 2.0, (n, 1))
    weight = rng.choice([0.0, 0.3, 1.0, 3.0], n)
    weight[:k] = np.maximum(weight[:k], 0.3)
    return X, labels, weight, k


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_proven_is_the_only_best_partition(scaling, seed):
    rng, n_proven, barely = np.random.default_rng(seed), 0, 0
    for _ in range(60):
        X, labels, weight, k = drawn(rng, scaling)
        costs = subset_costs(X, scaling, weight)
        best = best_partition(costs, k)
        found = ratio(X, labels, scaling, weight)
        n_proven += found > CONCLUSIVE
        barely += CONCLUSIVE < found < 1.5
        mine = partition_cost(X, labels, scaling, weight)
        if found > CONCLUSIVE:
            assert mine == pytest.approx(best.cost, rel=1e-9, abs=1e-12)
            heavy = weight > 0
            parts = {frozenset(i for i in np.flatnonzero(heavy) if part >> i & 1) for part in best.parts} - {frozenset()}
            assert parts == {frozenset(np.flatnonzero(heavy & (labels == j))) for j in range(k)}
        # Another partition is never proven beside it: that would be two best ones.
        other = labels.copy()
        other[int(rng.integers(k, len(X)))] = int(rng.integers(k))
        if partition_cost(X, other, scaling, weight) > best.cost * (1 + 1e-9) + 1e-12:
            assert ratio(X, other, scaling, weight) <= CONCLUSIVE
    assert n_proven >= 10
    assert barely >= 1


@pytest.mark.parametrize("scaling", SCALINGS)
def test_items_without_weight_are_left_out(scaling):
    X = np.array([[9.0, 1.0], [9.0, 1.1], [1.0, 9.0], [1.0, 9.1], [5.0, 5.0]])
    labels = np.array([0, 0, 1, 1, 0])
    assert ratio(X, labels, scaling) <= CONCLUSIVE < ratio(X, labels, scaling, np.array([1.0, 1.0, 1.0, 1.0, 0.0]))


def test_a_component_without_weight_proves_nothing():
    X = np.array([[9.0, 1.0], [9.0, 1.1], [1.0, 9.0]])
    assert ratio(X, np.array([0, 0, 1]), "none", np.array([1.0, 1.0, 0.0])) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_that_are_rounding_prove_nothing(dtype):
    # Two groups at 1e-7 (or 1e-16) of the offset apart: their distance is a rounding of the items.
    eps = np.finfo(dtype).eps
    X = np.full((20, 3), 1.0, dtype=dtype)
    X[:10] += dtype(2 * eps)
    engine, distortion, part = looked_at(X, np.repeat([0, 1], 10), "none")
    assert farthest_if_proven(engine, distortion, part) is None
    X[:10] += dtype(0.5)
    assert farthest_if_proven(*looked_at(X, np.repeat([0, 1], 10), "none")) is not None


# -- fits -------------------------------------------------------------------------------------------------------------------------


def groups(seed=0, noise=0.02, sizes=(40, 30, 90, 200), p=5):
    """Items of four directions, of unequal number and length."""
    rng = np.random.default_rng(seed)
    centers = np.eye(4, p) + 0.05
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return np.abs(centers[labels] + noise * rng.standard_normal((len(labels), p))) * rng.uniform(0.9, 1.1, (len(labels), 1))


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
@pytest.mark.parametrize("kind", [np.array, np.float32, sp.csr_array], ids=["float64", "float32", "sparse"])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_fit_of_groups_far_apart_is_proven_and_ends_at_once(scaling, kind, orthogonal):
    X = groups() if orthogonal == "samples" else groups().T
    model, annealed = (ONMF(4, scaling=scaling, orthogonal=orthogonal, schedule=schedule).fit(kind(X)) for schedule in ("adaptive", 1.5))
    assert model.certificate_.optimal
    assert model.certificate_.claims[CLAIM]
    assert model.certificate_.holds
    assert model.status_ == "Converged. No other partition into 4 components has a smaller error."
    assert model.verify(kind(X)) == model.certificate_
    # No temperature is needed; where they are asked for they are there, and the answer is the same.
    assert len(model.history_["beta"]) == 0
    assert model.history_["splits"] == []
    assert len(annealed.history_["beta"]) > 0
    assert annealed.certificate_.optimal
    assert np.array_equal(model.labels_, annealed.labels_)
    assert model.reconstruction_err_ == pytest.approx(annealed.reconstruction_err_, rel=1e-6)


def test_groups_that_overlap_are_annealed_and_nothing_is_claimed():
    model = ONMF(4).fit(groups(noise=0.4))
    assert len(model.history_["beta"]) > 0
    assert not model.certificate_.optimal
    assert CLAIM not in model.certificate_.claims
    assert model.certificate_.holds
    assert 0 < model.certificate_.separation < 1


@pytest.mark.parametrize(("capacity", "optimal"), [(250, True), (120, False)])
def test_under_bounds_the_best_of_all_sizes_is_claimed_where_it_meets_them(capacity, optimal):
    model = ONMF(4, capacity=capacity).fit(groups())
    assert model.certificate_.holds
    assert model.certificate_.optimal == optimal


@pytest.mark.parametrize("n_components", [3, 5])
def test_another_number_than_that_of_the_groups_is_not_proven(n_components):
    assert not ONMF(n_components).fit(groups()).certificate_.optimal


def test_one_component_claims_nothing():
    model = ONMF(1).fit(groups())
    assert model.certificate_.separation is None
    assert CLAIM not in model.certificate_.claims
    assert model.certificate_.holds


def test_a_separation_that_was_changed_is_noticed(tmp_path):
    X = groups(noise=0.4)
    model = ONMF(4).fit(X)
    model.certificate_ = replace(model.certificate_, separation=2.0)
    assert "separation" in model.verify(X).contradiction
    model.save(tmp_path / "claimed.onmf")
    assert "separation" in ONMF.load(tmp_path / "claimed.onmf").verify(X).contradiction
    model.certificate_ = replace(model.certificate_, separation=None)  # as an older version wrote it
    assert model.verify(X).holds


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_passes_of_a_proof_are_counted_once(dtype):
    model = ONMF(4).fit(groups(sizes=(10, 10, 10, 10)).astype(dtype))  # so few that none are drawn
    assert model.certificate_.optimal
    assert model.n_sample_iter_ == 0
