"""A sketch of wide items: the problem is the same up to a constant, and its components are where the search in all dimensions begins."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY, scalings
from orthonmf.engines import ThreadTeam
from orthonmf.engines.layout import Layout
from orthonmf.progress import StopRequested, listening
from orthonmf.search.budget import BUDGET
from orthonmf.search.partition import nearest_pass
from orthonmf.search.sketch import Sketch, _levelled, n_directions, wide

LOSSES = scalings("frobenius")


def topics(seed, n_items=400, n_dims=1200, n_topics=6, length=60):
    """Counts of words, half of each item from the words of its topic; and the topics."""
    rng = np.random.default_rng(seed)
    own = rng.permutation(n_dims)[: 40 * n_topics].reshape(n_topics, 40)
    topic = np.arange(n_items) % n_topics
    X = np.zeros((n_items, n_dims))
    for i, j in enumerate(topic):
        np.add.at(X[i], rng.choice(own[j], length // 2), 1.0)
        np.add.at(X[i], rng.integers(n_dims, size=length // 2), 1.0)
    return X, topic


def engine_of(X, weight=None):
    return Layout("samples", "auto").build(X, weight, ThreadTeam(1), shift=0)


def test_two_axes_by_hand():
    # Items on two axes of many: the leading directions are these axes, and coordinates are the items' own numbers up to signs.
    X = np.zeros((6, 1024))
    X[:3, 5], X[3:, 900] = [3.0, 4.0, 5.0], [1.0, 2.0, 2.0]
    engine = engine_of(X)
    sketch = Sketch.of(engine, REGISTRY["frobenius", "item"].of(engine), 2, 0)
    np.testing.assert_allclose(sketch.directions @ sketch.directions.T, np.eye(len(sketch.directions)), atol=1e-12)
    inside = sketch.engine.rows(slice(0, 6)).values.astype(float)
    # Coordinates are held in float32.
    np.testing.assert_allclose(inside @ inside.T, X @ X.T, atol=25 * np.finfo(np.float32).eps)


def test_a_sample_tells_the_directions_of_all(monkeypatch):
    # Three of four passes see a quarter of the items; noise, of which there is as much, makes the directions differ by two hundredths.
    X, _ = topics(0)
    engine = engine_of(sparse.csr_array(X))
    frame = REGISTRY["frobenius", "item"].of(engine)
    kept = []
    for few in (BUDGET.sketch_items, len(X) // 4):
        monkeypatch.setattr("orthonmf.search.sketch.BUDGET", replace(BUDGET, sketch_items=few))
        before = engine.passes
        kept.append(np.square(X @ Sketch.of(engine, frame, 6, 0).directions.T).sum())
    assert engine.passes - before == 2
    assert kept[1] > 0.98 * kept[0]


@pytest.mark.parametrize("scaling", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_cost_differs_by_constant(scaling, weighted, form):
    X, _ = topics(0)
    weight = 1.0 + np.arange(len(X)) % 3 if weighted else None
    engine = engine_of(form(X), weight)
    frame = REGISTRY["frobenius", scaling].of(engine)
    sketch = Sketch.of(engine, frame, 6, 0)
    inside = REGISTRY["frobenius", scaling].of(sketch.engine)
    rng, differences = np.random.default_rng(1), []
    for _ in range(3):
        some = rng.random((4, n_directions(6))) @ np.diag(np.abs(sketch.seen(frame.origin)).ravel() + 1)
        centers = inside.to_frame(some / np.linalg.norm(some, axis=1, keepdims=True))
        few, labels = nearest_pass(sketch.engine, inside, centers)
        whole, same = nearest_pass(engine, frame, sketch.lifted(inside.to_data(centers)))
        np.testing.assert_array_equal(labels, same)
        differences.append(whole.total - few.total)
    # Costs of the sketch carry the rounding of its coordinates.
    np.testing.assert_allclose(differences, differences[0], rtol=1e-5)


@pytest.mark.parametrize("scaling", LOSSES)
def test_centers_seen_and_lifted(scaling):
    X, _ = topics(0)
    engine = engine_of(X)
    sketch = Sketch.of(engine, REGISTRY["frobenius", scaling].of(engine), 6, 0)
    points = np.random.default_rng(0).standard_normal((3, n_directions(6)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)  # a line has no length
    np.testing.assert_allclose(sketch.seen(sketch.lifted(points)), points, atol=1e-12)


@pytest.mark.parametrize("scaling", LOSSES)
@pytest.mark.parametrize("seed", [0, 1])
def test_topics_found(scaling, seed):
    X, topic = topics(seed)
    model = ONMF(6, scaling=scaling).fit(sparse.csr_array(X))
    assert len(np.unique(np.column_stack([topic, model.labels_]), axis=0)) == 6
    assert model.certificate_.holds


def test_sparse_and_dense_agree():
    X, _ = topics(2)
    dense, compressed = ONMF(6).fit(X), ONMF(6).fit(sparse.csr_array(X))
    np.testing.assert_array_equal(dense.labels_, compressed.labels_)


def test_history_in_all_dimensions():
    X, _ = topics(0)
    model = ONMF(6).fit(sparse.csr_array(X))
    found = model.history_
    assert found["n_components"][-1] >= 1
    assert all(each.shape == (count, 2) for each, count in zip(found["projection"], found["n_components"], strict=True))
    assert pickle.loads(pickle.dumps(model)).history_["beta"].shape == found["beta"].shape


def test_stopped_within_sketch():
    # What the sketch has found is tried on all items when the fit is stopped.
    X, topic = topics(0)

    def stop(record):
        if record.n_components == 6:
            raise StopRequested

    with listening(stop), pytest.warns(ConvergenceWarning, match="Stopped by a callback"):
        model = ONMF(6).fit(sparse.csr_array(X))
    # The first answer, from items far apart, has topics in two components.
    assert len(np.unique(np.column_stack([topic, model.labels_]), axis=0)) == 6


def test_few_dimensions_not_sketched():
    X, _ = topics(0)
    engine, narrower = engine_of(X), engine_of(X[:, : BUDGET.sketch_dims - 1])
    assert wide(engine, REGISTRY["frobenius", "item"].of(engine), 6)
    assert not wide(narrower, REGISTRY["frobenius", "item"].of(narrower), 6)
    assert not wide(engine, REGISTRY["frobenius", "item"].of(engine), engine.n_dims // BUDGET.sketch_ratio)


@pytest.mark.parametrize("scaling", scalings("kullback-leibler"))
def test_other_losses_not_sketched(scaling):
    # Divergences are more than inner products: in a sketch they do not differ by a constant.
    engine = engine_of(topics(0)[0])
    assert not wide(engine, REGISTRY["kullback-leibler", scaling].of(engine), 6)


@pytest.mark.parametrize("rank", [6, 3])
def test_levelled_vectors_span_the_same(rank):
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((6, rank)) @ np.diag(np.geomspace(1, 1e-4, rank)) @ rng.standard_normal((rank, 40))
    levelled = _levelled(vectors)
    assert np.isfinite(levelled).all()
    onto = np.linalg.pinv(vectors) @ vectors
    size = np.linalg.svd(levelled, compute_uv=False)[:rank]
    assert np.abs(levelled @ onto - levelled).max() < 1e-9 * size[0]  # they lose five digits or so
    assert size[0] < 1.1 * size[-1]
