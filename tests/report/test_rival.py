"""The report says how much worse, and how different, the best other partition is: of free fits, on what it looks at of the data."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from orthonmf import ONMF
from orthonmf.report import parts, render, rival
from orthonmf.report.rival import Rival
from orthonmf.report.shown import Shown

X = load_digits().data[:200]
SQUARE = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0], [2.0, 2.0]])
SUPPORT = "The data support both"


@pytest.fixture(scope="module")
def model():
    return ONMF(4, scaling="none").fit(X)


def rival_of(model, data):
    return Rival.of(model, Shown.of(model, model, data))


def said(model, data):
    found = re.search(r"<h3>Another partition</h3><p>(.*?)</p>", render(model, X=data))
    return None if found is None else found[1]


def test_of_a_square_the_other_pairing_is_as_good():
    words = said(ONMF(2, scaling="none").fit(SQUARE), SQUARE)
    assert words.startswith(
        "The best other partition that was found has the same error and puts 50 % of the samples elsewhere (adjusted Rand index −0.50). "
        f"{SUPPORT}: other samples of their kind, or these in another order, may decide which of the two a fit finds."
    )


@pytest.mark.parametrize(
    ("excess", "words", "both"), [(0.004, "0.4 % higher", False), (0.0004, "0.04 % higher", True), (-0.02, "2 % lower", True)]
)
def test_only_where_errors_are_near_the_data_support_both(model, excess, words, both):
    text = parts.another(model, Rival(excess, 0.12, 0.81, len(X)))
    assert f"has an error {words} and puts 12 % of the samples elsewhere (adjusted Rand index 0.81)." in text
    assert (SUPPORT in text) == both
    assert " of the 200 " not in text
    assert "Others were tried on 150 of the 200 samples, by closing" in parts.another(model, Rival(excess, 0.12, 0.81, 150))


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_of_a_refined_fit_it_has_no_smaller_error(scaling, loss):
    found = rival_of(ONMF(4, scaling=scaling, loss=loss).fit(X), X)
    assert found.excess > -1e-9
    assert found.elsewhere >= 0.05
    assert found.n_items == len(X)


def test_the_excess_is_that_of_the_error(model, monkeypatch):
    kept = []
    search = rival.runner_up
    monkeypatch.setattr(rival, "runner_up", lambda *given: kept.append(search(*given)) or kept[0])
    found = rival_of(model, X)
    means = np.stack([X[kept[0].labels == j].mean(axis=0) for j in range(4)])
    error = np.linalg.norm(X - means[kept[0].labels])
    assert found.excess == pytest.approx(error / model.reconstruction_err_ - 1, abs=1e-9)


@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_sparse_and_dense_data_have_one(orthogonal):
    model = ONMF(3, orthogonal=orthogonal).fit(X)
    dense, thin = rival_of(model, X), rival_of(model, sparse.csr_array(X))
    assert dense.n_items == thin.n_items == (len(X) if orthogonal == "samples" else np.count_nonzero(X.any(axis=0)))
    assert thin.excess == pytest.approx(dense.excess, abs=1e-9)
    assert (thin.elsewhere, thin.agreement) == (dense.elsewhere, dense.agreement)


def test_of_many_an_even_choice_is_looked_at(model, monkeypatch):
    monkeypatch.setattr(rival, "MOST_ITEMS", 150)
    assert "Others were tried on 150 of the 200 samples, " in said(model, X)


@pytest.mark.parametrize(
    ("parameters", "weight"),
    [({"n_components": 1}, None), ({"n_components": 4, "capacity": 60}, None), ({"n_components": 4}, np.arange(200) % 3 + 1.0)],
    ids=["one", "bounds", "weights"],
)
def test_where_there_is_nothing_to_compare_nothing_is_said(parameters, weight):
    assert said(ONMF(**parameters, scaling="none").fit(X, sample_weight=weight), X) is None


def test_missing_numbers_and_other_labels_have_none(model):
    holes = X.copy()
    holes[3, 20] = np.nan
    assert said(ONMF(3, missing="ignore").fit(holes), holes) is None
    restless = ONMF(4, scaling="none").fit(X)
    restless.labels_ = np.arange(len(X)) % 4
    restless.counts_ = restless._weight = np.bincount(restless.labels_)
    assert rival_of(restless, X) is None


def test_without_data_nothing_is_said(model):
    assert "Another partition" not in render(model)
