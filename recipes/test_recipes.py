"""The recipes of docs/integrations.md with the packages themselves: ``make recipes`` installs them in an environment of their own."""

import importlib
import inspect
import warnings

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import orthonmf
from orthonmf import ONMF

# Genes that are known to tell the kinds of blood cells apart, as far as the data have them.
MARKERS = ({"MS4A1", "CD79A"}, {"GNLY", "NKG7"}, {"LYZ", "S100A8", "S100A9"}, {"FCGR3A", "LST1"}, {"CD3D", "IL7R"}, {"FCER1A", "CST3"})


@pytest.fixture(autouse=True)
def others_may_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def cells():
    scanpy = pytest.importorskip("scanpy")
    return scanpy.datasets.pbmc68k_reduced()


@pytest.mark.parametrize("k", [8, "auto"])
def test_scanpy_components_are_kinds_of_cells(cells, k):
    import scanpy as sc

    orthonmf.tl.onmf(cells, k, use_raw=True)
    names = np.asarray(cells.raw.var_names)
    lists = [[term.name for term in terms] for terms in orthonmf.top_terms(ONMF(k).fit(cells.raw.X), names, n_terms=5)]
    print(*(", ".join(each) for each in lists), sep="\n")
    led = [markers for markers in MARKERS if any(markers & set(each[:2]) for each in lists)]
    print(f"{len(led)} of {len(MARKERS)} pairs of markers lead their component")
    assert len(led) >= 5
    if k == 8:
        assert adjusted_rand_score(cells.obs["bulk_labels"], cells.obs["onmf"]) > 0.5
    sc.tl.rank_genes_groups(cells, "onmf")
    sc.pp.neighbors(cells, use_rep="X_onmf")


def docstrings():
    """The texts of the functions and classes of a few packages, which are installed in any case."""
    found = {}
    for package in ("numpy", "scipy.optimize", "scipy.stats", "scipy.signal", "scipy.linalg", "scipy.sparse", "sklearn.cluster"):
        module = importlib.import_module(package)
        for name in sorted(dir(module)):
            text = inspect.getdoc(getattr(module, name)) or ""
            if len(text) > 300:
                found[text] = f"{package}.{name}"
    return list(found)


def test_bertopic_takes_it_for_its_clustering():
    pytest.importorskip("bertopic")
    from bertopic import BERTopic
    from sklearn.decomposition import TruncatedSVD

    documents = docstrings()
    embeddings = TruncatedSVD(50, random_state=0).fit_transform(TfidfVectorizer(stop_words="english").fit_transform(documents))
    from umap import UMAP

    reduction = make_pipeline(UMAP(n_components=5, metric="cosine", random_state=0), MinMaxScaler(clip=True))
    cluster = ONMF(12, scaling="none", capacity=0.2)
    model = BERTopic(umap_model=reduction, hdbscan_model=cluster, vectorizer_model=TfidfVectorizer(stop_words="english"))
    topics, _ = model.fit_transform(documents, embeddings)
    sizes = np.bincount(topics)
    assert min(topics) == 0
    assert sizes.max() <= 0.2 * len(documents)
    assert len(model.get_topics()) == 12
    again, _ = model.transform(documents[:20], embeddings[:20])
    assert len(again) == 20


def test_hyperspy_takes_it_for_its_decomposition():
    hyperspy = pytest.importorskip("hyperspy.api")
    rng = np.random.default_rng(0)
    spectra, maps = rng.gamma(1, 1, (4, 100)), np.repeat(np.arange(4), 64).reshape(16, 16)
    s = hyperspy.signals.Signal1D(spectra[maps] * rng.gamma(5, 0.2, (16, 16, 1)) + 0.01 * rng.random((16, 16, 100)))
    s.change_dtype("float64")
    model = s.decomposition(algorithm=ONMF(4), return_info=True)
    labels = model.labels_.reshape(s.data.shape[:2])
    assert adjusted_rand_score(maps.ravel(), labels.ravel()) == 1.0
    assert s.get_decomposition_factors().data.shape == (4, 100)
