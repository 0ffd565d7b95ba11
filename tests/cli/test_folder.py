"""The folder of results: whole or not at all, one writer at a time, and nothing of anybody else's touched."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import orthonmf.cli._folder as folders
import orthonmf.cli.fit
from orthonmf.cli import main
from orthonmf.cli._folder import alone, together
from orthonmf.exceptions import InvalidInputError

NAMES = ("a", "b", "c")


def contents(folder):
    return {path.name: path.read_text() if path.is_file() else None for path in folder.iterdir()}


def write(folder, text, names=NAMES):
    for name in names:
        (folder / name).write_text(text)


def results(folder, text, names=NAMES):
    """Put the files ``names`` into a folder as a command does."""
    with alone(folder) as place, together(place, NAMES) as drafts:
        write(drafts, text, names)


def failing(after, folder, monkeypatch):
    """Let one move into ``folder`` fail, after the first few."""
    moves = [0]

    def move(real):
        def moved(source, target):
            if Path(target).parent == folder:
                moves[0] += 1
                if moves[0] == after + 1:
                    raise OSError(errno.ENOSPC, "No space left on device", str(target))
            return real(source, target)

        return moved

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, move(getattr(os, name)))


def test_by_hand(tmp_path):
    results(tmp_path / "out", "old")
    assert contents(tmp_path / "out") == dict.fromkeys(NAMES, "old")
    results(tmp_path / "out", "new", names=("a", "b"))
    assert contents(tmp_path / "out") == {"a": "new", "b": "new"}  # what is not written again does not stay
    assert os.listdir(tmp_path) == ["out"]


def test_a_new_folder_comes_with_all_its_files_in_one_rename(tmp_path, monkeypatch):
    seen, rename = [], os.rename

    def watched(source, target):
        seen.append((sorted(os.listdir(source)), Path(target).exists()))
        rename(source, target)

    monkeypatch.setattr(os, "rename", watched)
    results(tmp_path / "out", "new")
    assert seen == [(list(NAMES), False)]


@pytest.mark.parametrize("after", range(5))
def test_moves_that_fail_never_leave_a_mixture(after, matrix, fitted, monkeypatch, tmp_path, capfd):
    before = {path.name: path.read_bytes() for path in fitted.iterdir()}
    failing(after, fitted, monkeypatch)
    code = main(["fit", str(matrix), "-k", "3", "--out", str(fitted), "--force", "--quiet"])
    monkeypatch.undo()
    main(["fit", str(matrix), "-k", "3", "--out", str(tmp_path / "new"), "--quiet"])
    new = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    assert {path.name: path.read_bytes() for path in fitted.iterdir()} == (before if code else new)


@pytest.mark.parametrize("after", range(6))
def test_moves_that_fail_beside_files_of_others_are_undone(after, tmp_path, monkeypatch):
    out = tmp_path / "out"
    results(out, "old")
    (out / "notes.txt").write_text("mine")
    failing(after, out, monkeypatch)
    if after < len(NAMES):
        with pytest.raises(OSError, match="No space left"):
            results(out, "new")
    else:
        results(out, "new")
    monkeypatch.undo()
    assert contents(out) == {**dict.fromkeys(NAMES, "old" if after < len(NAMES) else "new"), "notes.txt": "mine"}
    assert os.listdir(tmp_path) == ["out"]


def test_where_the_system_knows_no_exchange_the_files_are_moved(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "exchanged", lambda one, other: False)
    results(tmp_path / "out", "old")
    results(tmp_path / "out", "new", names=("a", "b"))
    assert contents(tmp_path / "out") == {"a": "new", "b": "new"}
    assert os.listdir(tmp_path) == ["out"]


def test_what_others_have_in_the_folder_stays(tmp_path):
    out = tmp_path / "out"
    (out / "deep").mkdir(parents=True)
    (out / "deep" / "notes.txt").write_text("mine")
    number = out.stat().st_ino
    results(out, "old")
    results(out, "new")
    assert contents(out) == {**dict.fromkeys(NAMES, "new"), "deep": None}
    assert (out / "deep" / "notes.txt").read_text() == "mine"
    assert out.stat().st_ino == number


def test_what_others_put_there_meanwhile_stays(tmp_path, monkeypatch):
    out, exchange = tmp_path / "out", folders.exchanged
    results(out, "old")

    def late(one, other):
        (out / "notes.txt").write_text("mine")
        return exchange(one, other)

    monkeypatch.setattr(folders, "exchanged", late)
    results(out, "new")
    assert contents(out) == {**dict.fromkeys(NAMES, "new"), "notes.txt": "mine"}


def test_the_folder_that_one_works_in_keeps_its_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results(Path("."), "old")
    results(Path("."), "new")
    assert os.listdir(".") == os.listdir(tmp_path)
    assert contents(tmp_path) == dict.fromkeys(NAMES, "new")


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    results(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "real") == dict.fromkeys(NAMES, "new")


def test_the_permissions_of_the_folder_stay(tmp_path):
    results(tmp_path / "out", "old")
    (tmp_path / "out").chmod(0o750)
    results(tmp_path / "out", "new")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o750


@pytest.mark.parametrize("name", ["x" * 255, "\U0001f9ec" * 63])
def test_every_name_that_a_folder_may_have(tmp_path, name):
    results(tmp_path / name, "new")
    assert os.listdir(tmp_path) == [name]


def test_a_failure_leaves_no_folder_that_was_made_for_it(tmp_path, capfd):
    (tmp_path / "bad.csv").write_text("a,b\n1,x\n")
    assert main(["fit", str(tmp_path / "bad.csv"), "--out", str(tmp_path / "deep" / "er" / "parts")]) == 2
    assert os.listdir(tmp_path) == ["bad.csv"]


# -- one at a time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "report", "compare", "reproduce", "demo"])
def test_a_second_command_into_the_folder_is_refused(command, matrix, fitted, capfd):
    before = {path.name: path.stat().st_mtime_ns for path in fitted.iterdir()}
    words = {
        "fit": ["fit", str(matrix), "--force", "--out", str(fitted)],
        "report": ["report", str(fitted), "--force"],
        "compare": ["compare", str(matrix), "-k", "2", "--methods", "onmf", "--runs", "1", "--out", str(fitted)],
        "reproduce": ["reproduce", "table2", "--out", str(fitted)],
        "demo": ["demo", "--out", str(fitted)],
    }
    with alone(fitted.parent / "." / fitted.name):  # by whatever name
        assert main(words[command]) == 2
    assert "another command is writing to" in capfd.readouterr().err
    assert {path.name: path.stat().st_mtime_ns for path in fitted.iterdir()} == before


def test_the_second_is_refused_before_there_is_a_folder(matrix, tmp_path, capfd):
    with alone(tmp_path / "parts"):
        assert main(["fit", str(matrix), "--out", str(tmp_path / "parts")]) == 2
        with alone(tmp_path / "others"):
            pass
    assert os.listdir(tmp_path) == ["genes.csv"]


def test_the_lock_ends_with_its_process(tmp_path):
    code = "import sys, time\nfrom pathlib import Path\nfrom orthonmf.cli._folder import alone\n"
    code += "with alone(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(600)\n"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InvalidInputError, match="another command"):
            results(tmp_path / "out", "new")
        process.kill()
    results(tmp_path / "out", "new")
    assert os.listdir(tmp_path) == ["out"]


def test_drafts_of_a_command_that_was_killed_go_and_nothing_else(tmp_path):
    with alone(tmp_path / "out") as place, together(place, NAMES) as drafts:
        left = drafts
    left.mkdir()
    write(left, "half")
    (left / ".a.0123456789abcdef.draft").touch()
    results(tmp_path / "out", "new")
    assert os.listdir(tmp_path) == ["out"]
    left.mkdir()
    (left / "precious").write_text("mine")
    with pytest.raises(InvalidInputError, match="holds what orthonmf did not write; move it away"):
        results(tmp_path / "out", "newer")
    assert contents(left) == {"precious": "mine"}
    assert contents(tmp_path / "out") == dict.fromkeys(NAMES, "new")


# -- signals ------------------------------------------------------------------------------------------------------------------


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
@pytest.mark.parametrize("step", ["write_report", "write_table", "fitted"])
def test_a_signal_leaves_the_old_files_and_no_draft(name, code, step, matrix, fitted, monkeypatch, capfd):
    before = {path.name: path.read_bytes() for path in fitted.iterdir()}
    handlers = {each: signal.signal(getattr(signal, each), signal.SIG_DFL) for each in ("SIGINT", "SIGTERM", "SIGHUP")}
    monkeypatch.setattr(orthonmf.cli.fit, step, lambda *args, **kwargs: signal.raise_signal(getattr(signal, name)))
    try:
        assert main(["fit", str(matrix), "--out", str(fitted), "--force"]) == code
        assert all(signal.getsignal(getattr(signal, each)) == signal.SIG_DFL for each in handlers)
    finally:
        for each, handler in handlers.items():
            signal.signal(getattr(signal, each), handler)
    assert {path.name: path.read_bytes() for path in fitted.iterdir()} == before
    assert sorted(os.listdir(fitted.parent)) == ["genes.csv", "parts"]
    assert capfd.readouterr() == ("", "")


def test_a_signal_that_is_ignored_stays_ignored(matrix, tmp_path, monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    report = orthonmf.cli.fit.write_report
    monkeypatch.setattr(orthonmf.cli.fit, "write_report", lambda *a, **k: (signal.raise_signal(signal.SIGHUP), report(*a, **k)))
    try:
        assert main(["fit", str(matrix), "--out", str(tmp_path / "parts"), "--quiet"]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert len(os.listdir(tmp_path / "parts")) == 6


@pytest.mark.parametrize("others", [False, True])
def test_a_signal_during_the_swap_waits_for_its_end(others, matrix, fitted, monkeypatch):
    if others:
        (fitted / "notes.txt").touch()
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    put = folders._put

    def signalled(*args):
        signal.raise_signal(signal.SIGTERM)
        put(*args)

    monkeypatch.setattr(folders, "_put", signalled)
    try:
        assert main(["fit", str(matrix), "-k", "3", "--out", str(fitted), "--force", "--quiet"]) == 143
    finally:
        signal.signal(signal.SIGTERM, before)
    assert '"n_components": 3' in (fitted / "summary.json").read_text()
    assert sorted(os.listdir(fitted.parent)) == ["genes.csv", "parts"]
