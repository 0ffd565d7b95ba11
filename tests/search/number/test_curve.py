"""What a model knows of each number of components, as rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from orthonmf.search.number.curve import chance, coarser, curve, second, stands_out

NOTHING = np.zeros(0)


def known(**attributes):
    """A model of four components, of which 2 and 4 stand out; two transitions more were met."""
    given = {
        "n_components_": 4,
        "levels_": np.array([4, 2]),
        "critical_betas_": np.array([1.0, 8.0, 16.0, 64.0, 128.0]),
        "persistence_": np.log([8.0, 2.0, 4.0, 2.0]),
        "bic_": np.array([-30.0, -20.0, -15.0, -10.0]),
        "agreement_": np.array([1.0, 1.0, 0.5, np.nan]),
        "p_values_": np.array([np.nan, np.nan, 0.01, 0.4]),
    }
    return SimpleNamespace(**given | attributes)


def test_rows_by_hand():
    rows = curve(known())
    assert [row.n_components for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row.mark for row in rows] == ["", "level", "", "answer", "", ""]
    assert [row.bic for row in rows[:4]] == [-20.0, -10.0, -5.0, 0.0]
    np.testing.assert_array_equal([row.critical_beta for row in rows], [np.nan, 1, 8, 16, 64, 128])
    np.testing.assert_array_equal([row.p_value for row in rows], [np.nan, np.nan, 0.01, 0.4, np.nan, np.nan])
    np.testing.assert_array_equal([row.agreement for row in rows], [1, 1, 0.5, np.nan, np.nan, np.nan])


def test_nothing_is_known_of_a_number_that_was_given():
    given = dict.fromkeys(("levels_", "critical_betas_", "persistence_", "bic_", "agreement_", "p_values_"), NOTHING)
    model = known(**given)
    assert curve(model) == []
    assert stands_out(model)
    assert second(model) is None
    assert np.isnan(chance(model))


def test_chance_is_the_longest_persistence_beyond_what_stands_out():
    assert chance(known()) == pytest.approx(np.log(2))  # of five; four, which last over a factor 4, stand out
    assert chance(known(levels_=np.array([1]), n_components_=1)) == pytest.approx(np.log(8))  # all numbers are by chance
    assert np.isnan(chance(known(levels_=np.array([5]), n_components_=5)))


def test_capacities_that_need_more_leave_the_answer_of_the_data_a_level():
    model = known(n_components_=5)
    assert coarser(model) == [4, 2]
    assert second(model) == 2  # over a factor 8
    assert [row.n_components for row in curve(model) if row.mark == "answer"] == [5]


def test_one_component_is_no_level():
    model = known(levels_=np.array([1]), n_components_=1)
    assert coarser(model) == []
    assert not stands_out(model)
