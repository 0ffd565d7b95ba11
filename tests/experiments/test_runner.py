"""Cells in processes: order, limit, failure, resumption."""

from pathlib import Path

import pytest

from orthonmf.exceptions import InvalidInputError
from orthonmf.experiments.runner import DONE, FAILED, OVER, run
from orthonmf.experiments.store import Store, Task


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    """A started process finds the cells of these tests."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def task(function, argument):
    name = {"double": "number", "sleep": "seconds", "fail": "number", "die": "code"}[function]
    return Task(f"cells_for_tests:{function}", {name: argument}, function)


def test_limit_failure_and_a_dead_process_leave_the_others_alone(tmp_path):
    tasks = [task("sleep", 30), task("double", 1), task("fail", 3), task("die", 7), task("double", 2)]
    tasks = [Task(one.function, one.arguments, f"{i}") for i, one in enumerate(tasks)]
    told = []
    records = run(tasks, Store(tmp_path), jobs=2, limit=1.0, report=lambda task, record: told.append(record))
    assert [record["status"] for record in records] == [OVER, DONE, FAILED, FAILED, DONE]
    assert records[0]["limit"] == 1.0
    assert [records[1]["double"], records[4]["double"]] == [2, 4]
    assert records[2]["why"] == "ValueError: 3 is not to be had"
    assert "exit code 7" in records[3]["why"]
    assert len(told) == 5


def test_finished_cells_are_not_run_again_and_fresh_ones_are(tmp_path):
    store, one = Store(tmp_path), task("double", 4)
    store.put(one, {"arguments": one.arguments, "settings": one.settings, "status": DONE, "double": -1})
    assert run([one], store)[0]["double"] == -1
    assert run([one], store, fresh=True)[0]["double"] == 8
    assert store.get(one)["double"] == 8


def test_a_larger_limit_tries_again_and_a_smaller_one_does_not(tmp_path):
    store, one = Store(tmp_path), task("sleep", 0.0)
    store.put(one, {"arguments": one.arguments, "settings": one.settings, "status": OVER, "limit": 5.0})
    assert run([one], store, limit=4.0)[0]["status"] == OVER
    assert run([one], store, limit=6.0)[0]["status"] == DONE


@pytest.mark.parametrize(("option", "value"), [("jobs", 0), ("limit", 0.0), ("limit", -1.0)])
def test_unusable_options_name_their_value(tmp_path, option, value):
    with pytest.raises(InvalidInputError, match=f"{option}={value}"):
        run([], Store(tmp_path), **{option: value})
