"""Regroupings: what a split gains and a merger costs, and what they find in many dimensions."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfTransformer

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.base import weighted_mean
from orthonmf.engines.dense import DenseEngine
from orthonmf.search import regroup
from orthonmf.search.partition import alternate, centered, distances, nearest_pass
from orthonmf.search.regroup import first_of_each, regrouped


def partition(X, scaling, labels):
    engine = DenseEngine(np.asarray(X, dtype=float), team=ThreadTeam(1))
    distortion = REGISTRY["frobenius", scaling].about(weighted_mean(engine))
    start = np.repeat(distortion.origin, labels.max() + 1, 0)
    return engine, distortion, centered(engine, distortion, labels, start)


def starts(X, scaling, labels):
    engine, distortion, part = partition(X, scaling, labels)
    return engine, distortion, part, list(regrouped(engine, distortion, part, distances(engine, distortion, part)))


def test_first_of_each():
    labels, key = np.array([0, 1, 0, 1, 0]), np.array([3.0, 1.0, 2.0, 0.0, 1.0])
    assert_array_equal(first_of_each(labels, key), [4, 3])
    assert_array_equal(first_of_each(labels, key, 1), [2, 1])
    assert_array_equal(first_of_each(labels, key, 9), [0, 1])


def test_four_points_by_hand():
    # {0, 10}, {20}, {21}: splitting the first gains 2 · 5², merging the others costs ½; the sure regrouping comes first.
    X, labels = np.array([[0.0], [10.0], [20.0], [21.0]]), np.array([0, 0, 1, 2])
    engine, distortion, part, found = starts(X, "none", labels)
    assert_allclose(part.cost, 50)
    assert_allclose(sorted(distortion.to_data(found[0])[:, 0]), [0, 10, 20.5])
    assert_allclose(alternate(engine, distortion, found[0]).cost, 0.5)


def test_a_half_is_merged_with_another_component():
    # {0, 9}, {10, 11} and {30}: 9 belongs to its neighbours.
    X, labels = np.array([[0.0], [9.0], [10.0], [11.0], [30.0]]), np.array([0, 0, 1, 1, 2])
    _, distortion, _, found = starts(X, "none", labels)
    assert_allclose(sorted(distortion.to_data(found[0])[:, 0]), [0, 10, 30])


@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("seed", range(10))
def test_a_regrouping_costs_no_more_than_it_is_expected_to(monkeypatch, scaling, seed):
    rng = np.random.default_rng(seed)
    X, labels = rng.gamma(2.0, size=(60, 5)), np.concatenate([np.arange(6), rng.integers(6, size=54)])
    engine, distortion, part = partition(X, scaling, labels)
    made = []
    after = regroup._Parts.centers_after

    def watched(self, distortion, regroupings):
        made.append((sum(each.rise for each in regroupings), after(self, distortion, regroupings)))
        return made[-1][1]

    monkeypatch.setattr(regroup._Parts, "centers_after", watched)
    list(regrouped(engine, distortion, part, distances(engine, distortion, part)))
    assert made
    for rise, centers in made:
        assert nearest_pass(engine, distortion, centers)[0].total <= (part.cost + rise) * (1 + 1e-9)


def documents(n_items, n_words, n_topics, seed):
    """Counts of sixty words, half of a topic and half of all, weighed by how rare they are: noise in hundreds of dimensions."""
    rng = np.random.default_rng(seed)
    topics, topic = rng.dirichlet(np.full(n_words, 0.02), n_topics), rng.integers(0, n_topics, n_items)
    common = 1 / np.arange(1, n_words + 1)
    counts = np.stack([rng.multinomial(60, (topics[each] + common / common.sum()) / 2) for each in topic])
    return TfidfTransformer().fit_transform(sp.csr_array(counts)).astype(float)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(3))
def test_documents_of_more_topics_than_components(seed):
    X = documents(1200, 1000, 12, seed)
    best = min(KMeans(10, n_init=1, random_state=start).fit(X).inertia_ for start in range(5))
    assert ONMF(10, scaling="none").fit(X).reconstruction_err_ ** 2 <= best * (1 + 1e-3)
