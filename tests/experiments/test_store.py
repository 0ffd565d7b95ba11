"""Finished cells survive, torn ones do not."""

import pytest

from orthonmf.experiments.store import Store, Task

TASK = Task("some.table1:cell", {"dataset": "5-raw-genes", "run": 0}, "a=1")
RECORD = {"arguments": TASK.arguments, "settings": TASK.settings, "status": "done", "error": 0.1}


def test_what_was_put_comes_back_exactly(tmp_path):
    store = Store(tmp_path / "new")
    assert store.get(TASK) is None
    store.put(TASK, {**RECORD, "error": 0.1 + 0.2})
    assert store.get(TASK) == {**RECORD, "error": 0.1 + 0.2}
    assert [path.name for path in store.folder.iterdir()] == ["table1_5-raw-genes_0.json"]


@pytest.mark.parametrize("content", ["", '{"status": "do', "[1, 2]", "\udcff"])
def test_a_torn_file_is_no_answer_and_can_be_replaced(tmp_path, content):
    store = Store(tmp_path)
    store.put(TASK, RECORD)
    (tmp_path / f"{TASK.key}.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert store.get(TASK) is None
    store.put(TASK, RECORD)
    assert store.get(TASK) == RECORD


def test_other_settings_are_another_cell(tmp_path):
    store = Store(tmp_path)
    store.put(TASK, RECORD)
    assert store.get(Task(TASK.function, TASK.arguments, "a=2")) is None
