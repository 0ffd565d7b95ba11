"""Signals at every line of writing: the folder holds the old files or the new ones, and nothing else is left."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("typer")

import orthonmf.cli.fit
from orthonmf import ONMF
from orthonmf.cli import main
from orthonmf.cli._signals import signals
from orthonmf.io import read

# A signal may come between the opening of a file and the block that closes it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ROWS = "gene,a,b,c\ng1,1,2,0\ng2,2,4,0\ng3,0,0,3\ng4,0,0.1,5\n"
# The lines at which signals come: those of the command, of the files, and of the blocks that clean up.
WATCHED = (f"orthonmf{os.sep}cli{os.sep}", f"orthonmf{os.sep}_files.py", "contextlib.py")


class Lines:
    """Count the lines that run while signals are heard, and send one at one of them."""

    def __init__(self, at=None, number=None):
        self.count, self.at, self.number = 0, at, number

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.endswith(WATCHED[1:]) and WATCHED[0] not in frame.f_code.co_filename:
            return None
        if event == "line" and getattr(signal.getsignal(signal.SIGTERM), "__self__", None) is signals:
            self.count += 1
            if self.count == self.at:
                signal.raise_signal(self.number)
        return self


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A table, the folder of a fit, and handlers as a process has them; fits themselves are done once."""
    before = [signal.getsignal(number) for number in ENDING]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ENDING[1:]:
        signal.signal(number, signal.SIG_DFL)
    (tmp_path / "genes.csv").write_text(ROWS)
    data = read(tmp_path / "genes.csv")
    models = {k: ONMF(k).fit(data.X) for k in (2, 3)}
    monkeypatch.setattr(orthonmf.cli.fit, "fitted", lambda model, given, quiet: vars(model).update(vars(models[model.n_components])))
    yield tmp_path
    for number, handler in zip(ENDING, before, strict=True):
        signal.signal(number, handler)


def command(place, k, *options):
    return ["fit", str(place / "genes.csv"), "-k", str(k), "--out", str(place / "deep" / "parts"), "--force", "--quiet", *options]


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def traced(lines, words):
    sys.settrace(lines)
    try:
        return main(words)
    finally:
        sys.settrace(None)


def check(place, others, number, chosen):
    """Run the command with a signal at each of the chosen lines; ``others`` is what stands in the folder beforehand."""
    folder = place / "deep" / "parts"
    assert main(command(place, 3)) == 0
    new = files(folder)
    assert main(command(place, 2)) == 0
    old = files(folder)
    lines = Lines()
    assert traced(lines, command(place, 3)) == 0
    for at in chosen(lines.count):
        for path in folder.iterdir():
            path.unlink()
        for name, content in {"none": {}, "old": old, "mixed": {**old, "notes.txt": b"mine"}}[others].items():
            (folder / name).write_bytes(content)
        kept = files(folder)
        if others == "none":
            folder.rmdir()
            folder.parent.rmdir()
        code = traced(Lines(at, number), command(place, 3))
        assert code in (0, 128 + number), at
        expected = {**new, **{name: content for name, content in kept.items() if name == "notes.txt"}}
        assert files(folder) in (kept, expected), at
        assert code != 0 or files(folder) == expected, at
        assert sorted(os.listdir(place)) == (["deep", "genes.csv"] if folder.exists() else ["genes.csv"]), at
        assert not folder.exists() or os.listdir(folder.parent) == ["parts"], at
        folder.mkdir(parents=True, exist_ok=True)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("others", ["none", "old", "mixed"])
def test_a_signal_at_some_lines(place, others, seed):
    draw = random.Random(f"{others} {seed}")
    check(place, others, ENDING[seed], lambda n: sorted(draw.sample(range(1, n + 1), 8)))


@pytest.mark.long
@pytest.mark.parametrize("others", ["none", "old", "mixed"])
def test_a_signal_at_every_line(place, others):
    check(place, others, signal.SIGTERM, lambda n: range(1, n + 1))


@pytest.mark.long
@pytest.mark.parametrize("number", [*ENDING, signal.SIGKILL])
@pytest.mark.parametrize("seed", range(12))
def test_a_signal_to_a_process_at_any_time(tmp_path, number, seed):
    (tmp_path / "genes.csv").write_text(ROWS)
    folder = tmp_path / "deep" / "parts"
    assert main(command(tmp_path, 3)) == 0
    new = files(folder)
    assert main(command(tmp_path, 2)) == 0
    old = files(folder)
    start = time.monotonic()
    subprocess.run([sys.executable, "-m", "orthonmf", *command(tmp_path, 2)], check=True)
    usual = time.monotonic() - start
    with subprocess.Popen([sys.executable, "-m", "orthonmf", *command(tmp_path, 3)], stderr=subprocess.PIPE, text=True) as process:
        time.sleep(usual * random.Random(seed).random())
        process.send_signal(number)
        code, err = process.wait(timeout=60), process.stderr.read()
    assert code in (0, 128 + number, -number)  # below zero where the interpreter was starting or ending
    assert "Traceback" not in err or code == -signal.SIGINT
    assert files(folder) in (old, new)
    if number == signal.SIGKILL:  # nobody can clean up after that but the next
        assert main(command(tmp_path, 3)) == 0
        assert files(folder) == new
    assert os.listdir(tmp_path / "deep") == ["parts"]
    assert sorted(os.listdir(tmp_path)) == ["deep", "genes.csv"]
