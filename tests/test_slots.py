"""What other packages ask of an object that they take in place of their own; none of them is needed here.

BERTopic takes a clustering as ``hdbscan_model`` and a reduction as ``umap_model``; hyperspy takes a decomposition as ``algorithm``. Each
test does with the object what the package does with it.
"""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from orthonmf import ONMF
from orthonmf.datasets import make_onmf

DATA = make_onmf(30, 6, 3, noise=0.2, random_state=0)


def test_by_hand():
    cluster = ONMF(2)
    assert cluster.fit(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), y=None) is cluster
    assert cluster.labels_.tolist() == [0, 0, 1]
    assert cluster.predict(np.array([[0.0, 7.0]])).tolist() == [1]


def topics(embeddings, reduction, cluster, new):
    """BERTopic's steps: reduce, cluster, read the labels; then the same for new documents."""
    reduction.fit(embeddings, y=None)
    reduced = np.nan_to_num(reduction.transform(embeddings))
    cluster.fit(reduced, y=None)
    return cluster.labels_, cluster.predict(np.nan_to_num(reduction.transform(new)))


def test_clusters_reduced_embeddings_of_either_sign():
    embeddings = DATA.X - DATA.X.mean(axis=0)
    reduction = make_pipeline(PCA(3), MinMaxScaler(clip=True))
    cluster = ONMF(3, scaling="none", capacity=12)
    labels, new = topics(embeddings, reduction, cluster, 2 * embeddings[:5])
    assert labels.shape == (30,)
    assert labels.min() == 0  # BERTopic reads −1 as "no topic"
    assert np.bincount(labels).max() <= 12
    assert set(new) <= {0, 1, 2}
    for group in range(3):
        assert len(set(labels[DATA.labels == group])) == 1


@pytest.mark.parametrize("name", ["probabilities_", "partial_fit"])
def test_promises_nothing_that_bertopic_would_use(name):
    assert not hasattr(ONMF(3).fit(DATA.X), name)


@pytest.mark.parametrize("algorithm", [ONMF(3), make_pipeline(MinMaxScaler(), ONMF(3))], ids=["alone", "pipeline"])
def test_decomposes_as_hyperspy_asks(algorithm):
    loadings = algorithm.fit_transform(DATA.X)
    last = algorithm[-1] if hasattr(algorithm, "steps") else algorithm
    factors = last.components_.T
    assert (loadings.shape, factors.shape) == ((30, 3), (6, 3))
    for name in ("explained_variance_", "mean_"):  # where present, hyperspy adds the mean back and draws a scree plot
        assert not hasattr(last, name)


def test_loadings_and_factors_give_the_signal_back():
    model = ONMF(3)
    loadings = model.fit_transform(DATA.X)
    assert np.linalg.norm(DATA.X - loadings @ model.components_) == pytest.approx(model.reconstruction_err_)
    np.testing.assert_array_equal(model.transform(DATA.X), loadings)  # reproject="navigation"


def test_clusters_as_hyperspy_asks():
    model = ONMF(3)
    assert not hasattr(model, "labels_")  # an object with labels is taken as already fitted
    model.fit_predict(DATA.X)
    assert len(set(zip(model.labels_, DATA.labels, strict=True))) == 3
