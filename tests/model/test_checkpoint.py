"""A fit that was stopped, at whatever point, and carried on from its checkpoint ends in the bits of one that never was."""

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orthonmf import ONMF
from orthonmf.exceptions import CheckpointWarning, FileAccessError, InvalidInputError
from orthonmf.model import checkpoint
from orthonmf.model.checkpoint import PARTIAL, Checkpoint
from orthonmf.model.values import flattened, restored
from orthonmf.search import stages
from orthonmf.search.factorize import Progress
from orthonmf.search.status import Status

FITS = {
    "given": {"n_components": 5},
    "auto": {"max_components": 8},
    "bounds": {"n_components": 4, "capacity": 260, "min_size": 100},
    "soft": {"n_components": 3, "capacity": 28, "capacity_penalty": 0.1},
    "flow": {"n_components": 3, "capacity": 25, "solver": "cbf"},
    "annealed": {"n_components": 4, "refine": False},
}


class Killed(Exception):
    """In the place of a signal that nothing survives."""


@pytest.fixture(autouse=True)
def at_every_stage(monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)


def data(name="given"):
    rng = np.random.default_rng(0)
    n_items = {"flow": 60, "soft": 100}.get(name, 700)
    return rng.gamma(2, 1, (4, 6))[rng.integers(4, size=n_items)] + rng.gamma(2, 0.3, (n_items, 6))


def assert_same(one, other):
    for name in ("labels_", "components_", "scale_", "margin_", "critical_betas_", "stability_", "bic_", "p_values_"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("beta", "passes", "n_components", "stage"):
        assert_array_equal(one.history_[name], other.history_[name])
    assert str(one.certificate_) == str(other.certificate_)
    assert (one.status_, one.n_iter_, one.n_sample_iter_) == (other.status_, other.n_iter_, other.n_sample_iter_)


def killed_after(monkeypatch, n_writes):
    """The process ends after it has written so many checkpoints."""
    keep, written = Checkpoint.keep, []

    def until(self, progress, **options):
        keep(self, progress, **options)
        written.append(progress)
        if len(written) == n_writes:
            raise Killed

    monkeypatch.setattr(Checkpoint, "keep", until)


def stopped_after(monkeypatch, n_writes, folder):
    """A fit that came so far."""
    with monkeypatch.context() as patch:
        killed_after(patch, n_writes)
        with pytest.raises(Killed):
            ONMF(5, checkpoint=folder).fit(data())


@pytest.mark.parametrize("name", FITS)
def test_killed_after_every_write(name, tmp_path, monkeypatch):
    X, whole, n_killed = data(name), ONMF(**FITS[name]).fit(data(name)), 0
    while True:
        with monkeypatch.context() as patch, warnings.catch_warnings():
            killed_after(patch, 1)
            try:
                ONMF(**FITS[name], checkpoint=tmp_path).fit(X)
                break
            except Killed:
                n_killed += 1
        assert len(list(tmp_path.glob("checkpoint-*"))) <= 2
        assert len(list(tmp_path.iterdir())) <= 4  # a journal for each
    assert n_killed >= 3
    assert_same(ONMF(**FITS[name], checkpoint=tmp_path).fit(X), whole)


def test_what_was_done_is_not_done_again(tmp_path, monkeypatch):
    stopped_after(monkeypatch, 3, tmp_path)
    monkeypatch.setattr(stages, "Annealing", None)
    assert_same(ONMF(5, checkpoint=tmp_path).fit(data()), ONMF.load(_saved(tmp_path)))


def _saved(folder):
    """The undisturbed model, made in another process, where nothing is patched."""
    code = (
        "import sys; sys.path[:0] = sys.argv[3:]; from test_checkpoint import data; from orthonmf import ONMF; "
        "ONMF(5).fit(data()).save(sys.argv[1])"
    )
    path = folder / "whole.onmf"
    subprocess.run([sys.executable, "-c", code, path, "", os.path.dirname(__file__)], check=True)
    return path


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[2])
from test_checkpoint import slow_data
from orthonmf import ONMF
from orthonmf.model import checkpoint
checkpoint.EVERY = 0.0
exec(sys.argv[3])
print("ready", flush=True)
ONMF(8, checkpoint=sys.argv[1]).fit(slow_data()).save(sys.argv[1] + "/done.onmf")
"""


def slow_data():
    return np.random.default_rng(3).gamma(2, 1, (1500, 5))


def started(folder, first=""):
    """A process that fits, after ``first`` was executed."""
    command = [sys.executable, "-c", PROGRAM, folder, os.path.dirname(__file__), first]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("trial", [*range(5), *(pytest.param(trial, marks=pytest.mark.long) for trial in range(5, 50))])
def test_killed_at_a_random_time(trial, tmp_path):
    seconds = 1.2 * np.random.default_rng(trial).random()
    with started(tmp_path) as process:
        time.sleep(seconds)
        process.kill()
    model = ONMF(8, checkpoint=tmp_path).fit(slow_data())
    assert_same(model, _whole_slow())


_KEPT = []


def _whole_slow():
    if not _KEPT:
        _KEPT.append(ONMF(8).fit(slow_data()))
    return _KEPT[0]


# The first checkpoint is followed by a wait, so that no fit is done before it is interrupted.
WAITING = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background inherits that it is ignored
keep, waits = checkpoint.Checkpoint.keep, [60]
def wait_once(*args, **values):
    keep(*args, **values)
    time.sleep(waits.pop() if waits else 0)
checkpoint.Checkpoint.keep = wait_once
"""


def test_interrupt_leaves_the_best_model_and_can_be_carried_on(tmp_path):
    with started(tmp_path, WAITING) as process:
        while not list(tmp_path.glob("checkpoint-*")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.wait()
    assert not (tmp_path / "done.onmf").exists()
    partial = ONMF.load(tmp_path)
    assert partial.status_.startswith(Status.INTERRUPTED.sentence)
    assert not partial.converged_
    assert partial.labels_.shape == (1500,)
    assert_same(ONMF(8, checkpoint=tmp_path).fit(slow_data()), _whole_slow())


def interrupted_in(monkeypatch, stage):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, stage, interrupt)


def test_interrupt_leaves_the_estimator_as_it_was(tmp_path, monkeypatch):
    model = ONMF(3, checkpoint=tmp_path).fit(data())
    before = model.labels_
    shutil.rmtree(tmp_path)
    interrupted_in(monkeypatch, "_all_items")
    with pytest.raises(KeyboardInterrupt):
        model.set_params(n_components=5).fit(data())
    assert model.labels_ is before
    assert ONMF.load(tmp_path).n_components_ == 5


def test_the_model_of_an_interrupt_goes_when_the_fit_is_whole(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupted_in(patch, "_all_items")
        with pytest.raises(KeyboardInterrupt):
            ONMF(5, checkpoint=tmp_path).fit(data())
    assert (tmp_path / checkpoint.PARTIAL).exists()
    ONMF(5, checkpoint=tmp_path).fit(data())
    with pytest.raises(FileAccessError, match="no model of an interrupted fit"):
        ONMF.load(tmp_path)


def test_an_interrupt_says_where_the_best_model_is_and_how_to_go_on(tmp_path, monkeypatch):
    interrupted_in(monkeypatch, "_all_items")
    with pytest.raises(KeyboardInterrupt) as caught:
        ONMF(5, checkpoint=tmp_path).fit(data())
    remedy = f"To go on, call fit with the same data, parameters and checkpoint='{tmp_path}'."
    assert str(caught.value) == f"The best model so far is in '{tmp_path / PARTIAL}'. {remedy}"


def test_an_interrupt_without_a_model_says_how_to_go_on(tmp_path, monkeypatch):
    interrupted_in(monkeypatch, "_all_items")
    monkeypatch.setattr(ONMF, "_store", stages._all_items)  # a second one, while the first is answered
    with pytest.raises(KeyboardInterrupt, match=r"^To go on, call fit with the same data, parameters and checkpoint="):
        ONMF(5, checkpoint=tmp_path).fit(data())


def test_without_a_folder_an_interrupt_leaves_nothing(monkeypatch):
    interrupted_in(monkeypatch, "_all_items")
    model = ONMF(5)
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        model.fit(data())
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_components": 4}, "n_components differs"),
        ({"scaling": "none"}, "scaling differs"),
        ({"capacity": 200}, "capacity differs"),
        ({"engine": "compiled"}, "engine"),
    ],
    ids=str,
)
def test_other_parameters_are_refused(change, words, tmp_path):
    ONMF(5, checkpoint=tmp_path).fit(data())
    with pytest.raises(InvalidInputError, match=f"belongs to another fit: .*{words}"):
        ONMF(**{"n_components": 5, **change}, checkpoint=tmp_path).fit(data())


def test_other_data_and_weights_are_refused(tmp_path):
    ONMF(5, checkpoint=tmp_path).fit(data())
    other = data()
    other[[3, 4]] = other[[4, 3]]
    for X, weight in ((other, None), (data() + 1, None), (data(), np.arange(700.0))):
        with pytest.raises(InvalidInputError, match=r"belongs to another fit: (X|sample_weight) differs"):
            ONMF(5, checkpoint=tmp_path).fit(X, sample_weight=weight)


def test_threads_verbosity_and_time_may_differ(tmp_path):
    ONMF(5, checkpoint=tmp_path).fit(data())
    assert_same(ONMF(5, checkpoint=tmp_path, n_jobs=2, time_limit=600, verbose=0).fit(data()), ONMF(5).fit(data()))


@pytest.mark.thinned(40)
@pytest.mark.parametrize("place", np.linspace(0, 1, 120, endpoint=False))
def test_flipped_byte_is_noticed_and_the_checkpoint_before_is_used(place, tmp_path):
    ONMF(5, checkpoint=tmp_path).fit(data())
    last = max(tmp_path.glob("checkpoint-*"))
    content = bytearray(last.read_bytes())
    content[int(place * len(content))] ^= 0x10
    last.write_bytes(content)
    with pytest.warns(CheckpointWarning, match="damaged"):
        model = ONMF(5, checkpoint=tmp_path).fit(data())
    assert_same(model, ONMF(5).fit(data()))


def test_all_damaged_starts_anew(tmp_path):
    ONMF(5, checkpoint=tmp_path).fit(data())
    for path in tmp_path.glob("checkpoint-*"):
        path.write_bytes(b"")
    with pytest.warns(CheckpointWarning, match="damaged"):
        assert_same(ONMF(5, checkpoint=tmp_path).fit(data()), ONMF(5).fit(data()))


def test_full_disk_costs_the_checkpoint_not_the_fit(tmp_path, monkeypatch):
    stopped_after(monkeypatch, 2, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("checkpoint-*")}

    def full(path, archive):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write", full)
    with pytest.warns(CheckpointWarning, match="No space left on device.*the fit goes on"):
        model = ONMF(5, checkpoint=tmp_path).fit(data())
    assert_same(model, ONMF(5).fit(data()))
    assert {path.name: path.read_bytes() for path in tmp_path.glob("checkpoint-*")} == before


def test_at_most_once_a_minute(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 60.0)
    ONMF(5, checkpoint=tmp_path).fit(data())
    assert list(tmp_path.iterdir()) == []


def test_folder_without_a_partial_model(tmp_path):
    with pytest.raises(FileAccessError, match=r"no model of an interrupted fit.*call fit"):
        ONMF.load(tmp_path)


@pytest.mark.parametrize("value", [3, b"folder", True])
def test_folder_that_is_none(value):
    with pytest.raises(InvalidInputError, match=r"checkpoint=.*path of a folder"):
        ONMF(2, checkpoint=value).fit(data())


def test_progress_goes_through_the_format_bit_for_bit(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(Checkpoint, "keep", lambda self, progress, **options: seen.append(progress))
    ONMF(**FITS["auto"], checkpoint=tmp_path).fit(data("auto"))
    for progress in seen:
        arrays = {}
        found = restored(flattened(progress, arrays), arrays)
        assert isinstance(found, Progress)
        assert flattened(found, again := {}) == flattened(progress, {})
        assert all(np.array_equal(again[name], arrays[name], equal_nan=True) for name in arrays)
    assert PARTIAL.endswith(".onmf")
