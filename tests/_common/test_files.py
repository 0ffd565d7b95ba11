"""Files that are written whole or not at all."""

import os
import stat

import pytest

from orthonmf._common.files import atomic, exchanged
from orthonmf.exceptions import FileAccessError


def test_by_hand(tmp_path):
    with atomic(tmp_path / "a.txt") as draft:
        draft.write_text("new")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def _interrupted(path):
    with atomic(path) as draft:
        draft.write_text("half")
        raise KeyboardInterrupt


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("untouched")
    (tmp_path / "a.txt").symlink_to(tmp_path / "elsewhere")
    with atomic(tmp_path / "a.txt") as draft:
        draft.write_text("new")
    assert (tmp_path / "elsewhere").read_text() == "untouched"
    assert not (tmp_path / "a.txt").is_symlink()


@pytest.mark.parametrize("name", ["a." + "b" * 253, "\U0001f9ec" * 63], ids=["end", "letters"])
def test_every_name_that_a_file_may_have(tmp_path, name):
    with atomic(tmp_path / name) as draft:
        draft.write_text("new")
    assert os.listdir(tmp_path) == [name]


def test_others_may_read_it_as_they_may_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    with atomic(tmp_path / "a.txt") as draft:
        draft.write_text("")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_the_content_is_on_the_disk_before_it_takes_the_place(tmp_path, monkeypatch):
    calls, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda *args: (calls.append("fsync"), fsync(*args)))
    monkeypatch.setattr(os, "replace", lambda *args: (calls.append("replace"), replace(*args)))
    with atomic(tmp_path / "a.txt") as draft:
        draft.write_text("new")
    assert calls == ["fsync", "replace"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileAccessError, match=r"there is no folder '.*nowhere'; make it first"), atomic(tmp_path / "nowhere" / "a.txt"):
        pass


def test_the_permissions_of_other_threads_files_are_never_changed(tmp_path, monkeypatch):
    def changed(mask):
        raise AssertionError("the umask of the whole process was set")

    monkeypatch.setattr(os, "umask", changed)
    with atomic(tmp_path / "a.txt") as draft:
        draft.write_text("new")


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o000])
def test_the_permissions_are_those_that_the_umask_leaves(tmp_path, mask):
    before = os.umask(mask)
    try:
        with atomic(tmp_path / "a.txt") as draft:
            draft.write_text("new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("name", [".", "results"])
def test_a_folder_is_no_file_to_write(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    with pytest.raises(FileAccessError, match=r"it is a folder\. Pass the path of a file in it"), atomic(name):
        pass


def test_two_folders_change_places_in_one_step(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not exchanged(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system knows no exchange")
    assert (os.listdir(tmp_path / "a"), os.listdir(tmp_path / "b")) == (["b"], ["a"])


def test_what_cannot_change_places_stays(tmp_path):
    (tmp_path / "a").mkdir()
    assert not exchanged(tmp_path / "a", tmp_path / "none")
    assert os.listdir(tmp_path) == ["a"]
