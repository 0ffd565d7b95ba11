"""The features that speak for a component."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from orthonmf import ONMF, top_terms
from orthonmf.exceptions import InvalidInputError
from orthonmf.model.terms import distinctiveness

# Two parts: the first two columns, and the last; the second column weighs least.
X = pd.DataFrame([[3.0, 1.0, 0.0], [6.0, 2.0, 0.0], [0.0, 0.0, 5.0]], columns=["a", "b", "c"])


def test_by_hand():
    model = ONMF(2).fit(X)
    first, second = top_terms(model)
    assert [term.name for term in first] == ["a", "b"]
    np.testing.assert_allclose([term.weight for term in first], np.array([3.0, 1.0]) / np.sqrt(10.0), rtol=1e-12)
    assert [(term.name, term.weight) for term in second] == [("c", 1.0)]
    assert second[0].distinctiveness == pytest.approx(np.log(2.0))  # c̄ = ½: the other component has none of it


# All parts have much of the first feature; the others tell them apart.
SHARED = np.array([[9.0, 2.0, 0.0, 0.1], [9.0, 2.2, 0.0, 0.1], [9.0, 0.0, 3.0, 0.1], [9.0, 0.0, 3.1, 0.1]])


def test_what_all_components_have_comes_last_unless_weights_are_asked_for():
    model = ONMF(2).fit(SHARED)
    names = ["everywhere", "first", "second", "little"]
    assert [terms[0].name for terms in top_terms(model, names, by="weight")] == ["everywhere", "everywhere"]
    assert {terms[0].name for terms in top_terms(model, names)} == {"first", "second"}
    for terms in top_terms(model, names):
        scores = [term.distinctiveness for term in terms]
        assert scores == sorted(scores, reverse=True)


def test_scores_add_up_to_a_divergence():
    rows = np.random.default_rng(0).random((4, 9))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    expected = [np.sum(row * np.log(row / rows.mean(axis=0))) for row in rows]
    np.testing.assert_allclose(distinctiveness(7.0 * rows).sum(axis=1), expected, rtol=1e-12)
    assert not distinctiveness(np.ones((3, 2))).any()
    assert not distinctiveness(np.zeros((1, 2))).any()


def test_a_single_component_is_led_by_its_weights():
    assert [term.name for term in top_terms(ONMF(1).fit(SHARED), list("abcd"))[0]] == ["a", "c", "b", "d"]


@pytest.mark.parametrize("by", ["distinctiveness", "weight"])
def test_parts_of_features_have_their_members_by_weight(by):
    model = ONMF(2, orthogonal="features").fit(SHARED)
    for j, terms in enumerate(top_terms(model, range(4), by=by)):
        assert {int(term.name) for term in terms} == set(np.flatnonzero(model.labels_ == j))
        weights = [term.weight for term in terms]
        assert weights == sorted(weights, reverse=True)


def test_another_order_is_refused():
    with pytest.raises(InvalidInputError, match="by='size'"):
        top_terms(ONMF(2).fit(X), by="size")


def test_names_given_come_before_those_of_fit():
    assert [[term.name for term in terms] for terms in top_terms(ONMF(2).fit(X), ["x", "y", "z"])] == [["x", "y"], ["z"]]


def test_names_are_numbers_where_none_are_known():
    assert top_terms(ONMF(2).fit(X.to_numpy()))[1][0].name == "x2"


def test_no_more_than_asked_for():
    assert [len(terms) for terms in top_terms(ONMF(2).fit(X), n_terms=1)] == [1, 1]


def test_a_pipeline_names_its_words():
    texts = ["apple pear apple", "pear apple", "bolt nut", "nut bolt bolt"]
    pipeline = make_pipeline(TfidfVectorizer(), ONMF(2)).fit(texts)
    assert [[term.name for term in terms] for terms in top_terms(pipeline)] == [["apple", "pear"], ["bolt", "nut"]]


@pytest.mark.parametrize("step", [FunctionTransformer(np.log1p), "passthrough"], ids=["function", "passthrough"])
def test_a_step_that_names_nothing_passes_names_on(step):
    for data, expected in ((X, [["a", "b"], ["c"]]), (X.to_numpy(), [["x0", "x1"], ["x2"]])):
        pipeline = make_pipeline(step, ONMF(2)).fit(data)
        assert [[term.name for term in terms] for terms in top_terms(pipeline)] == expected


def test_names_of_another_number_are_refused():
    with pytest.raises(InvalidInputError, match="2 entries; expected 3"):
        top_terms(ONMF(2).fit(X), ["x", "y"])


def test_a_number_of_terms_in_the_place_of_names_is_refused():
    with pytest.raises(InvalidInputError, match=r"feature_names=3 is not usable.*n_terms"):
        top_terms(ONMF(2).fit(X), 3)
