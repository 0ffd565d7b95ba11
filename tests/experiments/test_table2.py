"""Table II: its solvers on items on a line, and the genes."""

import numpy as np
import pytest

from orthonmf.experiments import alternatives, table2
from orthonmf.experiments.alternatives import Energy
from orthonmf.experiments.problems import scaled_genes


def test_gradient_of_the_free_energy_is_that_of_differences():
    rng = np.random.default_rng(0)
    energy = Energy(rng.gamma(2.0, size=(7, 3)), 2)
    p = rng.dirichlet([2.0, 2.0], size=7)
    value, slope = energy(p, 3.0)
    step = 1e-6
    for i, j in ((0, 0), (3, 1)):
        moved = p.copy()
        moved[i, j] += step
        assert (energy(moved, 3.0)[0] - value) / step == pytest.approx(slope[i, j], rel=1e-4)


@pytest.mark.parametrize("method", [alternatives.penalty_method, alternatives.slsqp])
def test_alternatives_find_clear_groups_within_a_bound_that_does_not_bind(method):
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    labels = method(X, 2, 4.0)
    assert list(labels == labels[0]) == [True] * 3 + [False] * 3


def test_slsqp_moves_the_item_that_is_cheapest_to_move():
    # The penalty method leaves it where it is: one item too many costs less than the move.
    labels = alternatives.slsqp(np.array([[1.0], [2.0], [3.0], [10.0]]), 2, 2.0)
    assert list(labels == labels[0]) == [True, True, False, False]


@pytest.mark.parametrize("name", ["free", "strict", "flow-nearest", "penalty"])
def test_a_cell_of_the_genes(name, microarray):
    cell = table2.cell(name, 0)
    best = {"free": 13.307, "strict": 47.339, "flow-nearest": 45.51, "penalty": 47.339}[name]
    assert best - 0.01 <= cell["cost"] <= 1.2 * best
    assert cell["violation"] == max(0, round(53 * cell["share"]) - (table2.SOLVERS[name].capacity or 53))
    assert cell["seconds"] > 0


def test_genes_are_scaled_patient_by_patient(microarray):
    X = scaled_genes(2)
    assert X.shape == (53, 27)
    assert np.allclose(X.min(axis=0), 1)
    assert np.allclose(X.max(axis=0), 10)


def test_table_has_the_paper_s_rows_and_names_what_is_missing():
    done = {"status": "done", "cost": 13.31, "share": 44 / 53, "violation": 0, "seconds": 0.1}
    records = [
        {"arguments": {"solver": "free", "time": 0}, **done},
        {"arguments": {"solver": "slsqp", "time": 1}, "status": "over the limit", "limit": 5.0},
    ]
    table = table2.table(records)
    rows = {row[:2]: row[2:] for row in table.rows}
    assert rows["D", "paper, free"][0] == "13.80"
    assert rows["D", "ONMF"][:2] == ("13.31", "")
    assert rows["seconds", "SLSQP, ≤ 18, nearest"][1] == "> 5"
    assert "ONMF: D is at or below the printed one at 1 of 1." in table.notes
