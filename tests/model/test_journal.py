"""A fit that was stopped between two checkpoints gets from its journal what its passes had found, and ends in the same bits."""

import os
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orthonmf import ONMF
from orthonmf.distortion.measure import Squared
from orthonmf.engines import ThreadTeam, journal
from orthonmf.engines.base import BLIND
from orthonmf.engines.dense import DenseEngine
from orthonmf.engines.journal import Journal
from orthonmf.exceptions import CheckpointWarning, InvalidInputError
from orthonmf.model import checkpoint
from orthonmf.model.archive import Archive
from orthonmf.model.notes import Notebook
from orthonmf.model.records import Records, packed
from orthonmf.passes.base import Found, host
from orthonmf.passes.columns import Renamed
from orthonmf.passes.hard import HardStats
from orthonmf.passes.raw import LabelSums, Scales

from .test_checkpoint import FITS, Killed, _whole_slow, assert_same, data, slow_data, started


@pytest.fixture(autouse=True)
def every_pass_is_noted(monkeypatch):
    monkeypatch.setattr(journal, "NOTED_SECONDS", 0.0)
    monkeypatch.setattr(journal, "NOTED_BYTES_PER_SECOND", np.inf)
    monkeypatch.setattr(checkpoint, "EVERY", 3600.0)  # no stage that ends writes a checkpoint


class Memory:
    """Pages that are a list."""

    def __init__(self, known=()):
        self.known, self.written, self.told = list(known), [], 0

    def notes(self):
        return iter(self.known)

    def write(self, note):
        self.written.append(note)

    def flush(self):
        pass

    def differs(self):
        self.told += 1


def passes(engine):
    """Three passes, of which the last reads what the first found."""
    first = engine.run(None, Scales(Squared(), np.eye(2)), {"labels": np.array([0, 1, 1])})
    named = engine.run(BLIND, Renamed(np.array([1, 0])), {"labels": np.array([0, 1, 1])})
    sums = engine.run(None, LabelSums(2, 2), {"labels": np.array([0, 1, 1]), "values": first.columns["scale"]})
    return first, named, sums


def test_by_hand():
    """Items (3, 4), (1, 2), (0, 5): 3, 2 and 5 along their axes; 3 (3, 4) in one part, 2 (1, 2) + 5 (0, 5) in the other."""
    pages = Memory()
    with ThreadTeam(1) as team:
        engine = DenseEngine(np.array([[3.0, 4.0], [1.0, 2.0], [0.0, 5.0]]), team=team)
        engine.columns_stay = True
        with Journal(pages).attached(team):
            passes(engine)
        assert [note.number for note in pages.written] == [0, 1, 2]
        assert pages.written[0].columns == {"scale": None}
        assert_array_equal(pages.written[2].total.sums, [[9, 12], [2, 29]])

        again = Memory(pages.written)
        counted = engine.passes
        with Journal(again).attached(team):
            engine.computed = None  # nothing is computed
            first, named, sums = passes(engine)
            del engine.computed
            assert_array_equal(sums.total.sums, [[9, 12], [2, 29]])
            assert engine.passes == counted + 2  # as if it had been; a pass that sees no items is none
            assert_array_equal(host(first.columns["scale"]), [3, 2, 5])
            assert_array_equal(host(named.columns["labels"]), [1, 0, 0])
            assert engine.passes == counted + 2
        assert again.written == []


def test_pass_that_differs_ends_the_answers():
    pages = Memory()
    with ThreadTeam(1) as team:
        engine = DenseEngine(np.array([[3.0, 4.0], [1.0, 2.0], [0.0, 5.0]]), team=team)
        with Journal(pages).attached(team):
            passes(engine)
        again = Memory(pages.written)
        with Journal(again).attached(team):
            found: Found = engine.run(None, Scales(Squared(), 2 * np.eye(2)), {"labels": np.array([0, 1, 1])})
        assert_array_equal(found.columns["scale"], [6, 4, 10])
        assert again.told == 1


@pytest.mark.parametrize(("seconds", "rate", "noted"), [(0.0, 1e9, True), (3600.0, 1e9, False), (0.0, 0.0, False)])
def test_what_is_noted(seconds, rate, noted, monkeypatch):
    monkeypatch.setattr(journal, "NOTED_SECONDS", seconds)
    monkeypatch.setattr(journal, "NOTED_BYTES_PER_SECOND", rate)
    pages = Memory()
    with ThreadTeam(1) as team:
        engine = DenseEngine(np.ones((3, 2)), team=team)
        with Journal(pages).attached(team):
            engine.run(None, Scales(Squared(), np.eye(2)), {"labels": np.zeros(3, int)})
    assert bool(pages.written) is noted


# -- the file ---------------------------------------------------------------------------------------------------------------------


def record(number):
    arrays = {"a": np.arange(6.0).reshape(2, 3) + number, "b": np.asfortranarray(np.ones((2, 3, 4), np.uint64)), "c": np.array([True])}
    return Archive({"number": number}, arrays)


def assert_records(path, numbers):
    found = list(Records(path).read())
    assert [each.document["number"] for each in found] == numbers
    for each in found:
        for name, array in record(each.document["number"]).arrays.items():
            assert_array_equal(each.arrays[name], array)
            assert each.arrays[name].flags.f_contiguous == array.flags.f_contiguous
            assert each.arrays[name].dtype == array.dtype


def test_records_cut_or_changed_anywhere(tmp_path):
    path, whole = tmp_path / "records", Records(tmp_path / "records")
    ends = []
    for number in range(3):
        whole.add([packed(record(number))])
        ends.append(path.stat().st_size)
    content = path.read_bytes()
    assert_records(path, [0, 1, 2])
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        assert_records(path, [number for number in range(3) if ends[number] <= size])
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        assert_records(path, [number for number in range(3) if ends[number] <= place])


def test_record_takes_the_place_of_a_torn_one(tmp_path):
    path = tmp_path / "records"
    Records(path).add([packed(record(0)), packed(record(1))])
    path.write_bytes(path.read_bytes()[:-5])
    again = Records(path)
    list(again.read())
    again.add([packed(record(2)), packed(record(1))])
    assert_records(path, [0, 2, 1])


# -- fits -------------------------------------------------------------------------------------------------------------------------


def stopping(monkeypatch, n_notes):
    """The fit ends after so many notes."""
    write, written = Notebook.write, []

    def until(self, note):
        write(self, note)
        written.append(note)
        if len(written) == n_notes:
            raise Killed

    monkeypatch.setattr(Notebook, "write", until)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in ("soft", "auto") else name for name in FITS])
def test_killed_between_checkpoints(name, tmp_path, monkeypatch):
    X, whole, n_killed, n_notes = data(name), ONMF(**FITS[name]).fit(data(name)), 0, 1
    while True:
        with monkeypatch.context() as patch:
            stopping(patch, n_notes)
            try:
                found = ONMF(**FITS[name], checkpoint=tmp_path).fit(X)
                break
            except Killed:
                n_killed, n_notes = n_killed + 1, 4 * n_notes
    assert n_killed >= 3
    assert_same(found, whole)


def wide_enough():
    """More numbers than are searched for equal items: columns of them stay with the engine."""
    rng = np.random.default_rng(2)
    X = 5 + rng.standard_normal((66_000, 64)).astype(np.float32)
    return np.maximum(X + 4 * rng.random((3, 64))[np.arange(len(X)) % 3].astype(np.float32), 0)


def test_passes_over_many_items_are_not_made_again(tmp_path, monkeypatch):
    X, computed, compute = wide_enough(), [], DenseEngine.computed
    monkeypatch.setattr(journal, "NOTED_SECONDS", 0.003)  # all over many items, and few over samples

    def counted(self, frame, work, columns=None):
        if self.n_items == len(X) and frame is not BLIND:
            computed.append(type(work).__name__)
        return compute(self, frame, work, columns)

    monkeypatch.setattr(DenseEngine, "computed", counted)
    whole = ONMF(4, engine="dense", checkpoint=tmp_path / "whole").fit(X)
    n_whole = len(computed)
    with monkeypatch.context() as patch:
        interrupted = []

        def write(self, note, keep=Notebook.write):
            keep(self, note)
            interrupted.extend([note] * (isinstance(note.total, HardStats) and note.total.count == len(X)))
            if len(interrupted) == 8:
                raise Killed

        patch.setattr(Notebook, "write", write)
        with pytest.raises(Killed):
            ONMF(4, engine="dense", checkpoint=tmp_path).fit(X)
    computed.clear()
    assert_same(ONMF(4, engine="dense", checkpoint=tmp_path).fit(X), whole)
    assert len(computed) <= n_whole - 6  # of eight that were noted, no more than two had columns that are read afterwards


def test_journal_of_another_fit_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stopping(patch, 5)
        with pytest.raises(Killed):
            ONMF(5, checkpoint=tmp_path).fit(data())
    with pytest.raises(InvalidInputError, match=r"belongs to another fit: n_components differs"):
        ONMF(4, checkpoint=tmp_path).fit(data())


def test_full_disk_costs_the_journal_not_the_fit(tmp_path, monkeypatch):
    def full(self, contents):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(checkpoint, "write", lambda path, archive: None)
    monkeypatch.setattr(Records, "add", full)
    with pytest.warns(CheckpointWarning, match="No space left on device.*goes on without it"):
        model = ONMF(5, checkpoint=tmp_path).fit(data())
    assert_same(model, ONMF(5).fit(data()))


NOTING = "from orthonmf.engines import journal; journal.NOTED_SECONDS = 0.0; journal.NOTED_BYTES_PER_SECOND = 1e18"


@pytest.mark.parametrize("trial", [0, *(pytest.param(trial, marks=pytest.mark.long) for trial in range(1, 50))])
def test_killed_again_and_again(trial, tmp_path):
    """By a signal that nothing survives, at random times after the first note, until the fit has come to its end."""
    rng = np.random.default_rng(trial)
    for _ in range(2):
        with started(tmp_path, f"{NOTING}; from orthonmf.model.checkpoint import Checkpoint; Checkpoint.keep = lambda *_: None") as process:
            while not os.listdir(tmp_path):
                time.sleep(0.01)
            time.sleep(1.5 * rng.random())
            process.kill()
    assert_same(ONMF(8, checkpoint=tmp_path).fit(slow_data()), _whole_slow())
