"""Tables as files."""

import pytest

from orthonmf.experiments.render import Table, write

TABLE = Table("t", "costs in $_$", ("method", "E"), [("a", "1")], (), [{"method": "a", "E": 1}])


def test_every_form_is_written_whatever_the_title(tmp_path):
    # Between two dollars matplotlib would read a formula, and refuse this one.
    assert [path.name for path in write(TABLE, tmp_path)] == ["t.txt", "t.md", "t.csv", "t.png", "t.svg"]
    assert (tmp_path / "t.csv").read_text() == "method,E\na,1\n"


@pytest.mark.parametrize("suffix", ["txt", "md", "csv", "png", "svg"])
def test_a_link_is_replaced_and_no_draft_is_left(tmp_path, suffix):
    (tmp_path / "elsewhere").write_text("untouched")
    (tmp_path / f"t.{suffix}").symlink_to(tmp_path / "elsewhere")
    write(TABLE, tmp_path)
    assert (tmp_path / "elsewhere").read_text() == "untouched"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "t.csv", "t.md", "t.png", "t.svg", "t.txt"]


def test_the_same_table_makes_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # the clock of matplotlib
    first = [path.read_bytes() for path in write(TABLE, tmp_path / "first")]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert [path.read_bytes() for path in write(TABLE, tmp_path / "second")] == first
