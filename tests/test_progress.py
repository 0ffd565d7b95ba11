"""Who listens to a fit hears every temperature, in the units of X."""

import io
import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from orthonmf import ONMF, progress
from orthonmf.bars import bar
from orthonmf.progress import StopRequested, listening, plane

X = np.array([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 3.0]])


@pytest.mark.thinned(3)
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("factor", [1.0, 1000.0])
def test_what_is_heard_is_the_history(scaling, factor):
    heard, stages = [], []
    with listening(heard.append, stages.append):
        model = ONMF(scaling=scaling).fit(factor * X)
    for name in ("beta", "n_components", "free_energy", "distortion", "entropy"):
        np.testing.assert_array_equal([getattr(each, name) for each in heard], model.history_[name])
    assert stages == [
        "asking 4 items how many components they have, and how sure that is",
        f"refining {model.n_components_} components on 4 items",
    ]


def test_nobody_hears_outside_the_block_and_all_do_inside():
    first, second = [], []
    with listening(first.append):
        with listening(second.append):
            ONMF(2, schedule=2.0).fit(X)
        ONMF(2, schedule=2.0).fit(X)
    ONMF(2, schedule=2.0).fit(X)
    assert len(first) == 2 * len(second) > 0


def test_a_listener_may_stop_the_fit():
    def enough(temperature):
        if temperature.n_components > 1:
            raise StopRequested

    with listening(enough), pytest.warns(match="Stopped by a callback"):
        model = ONMF().fit(X)
    assert not model.converged_


@pytest.mark.parametrize("shape", [(40, 6), (40, 40), (12, 300), (2, 9), (1, 5), (3, 1)])
def test_plane_holds_what_spreads_most(shape):
    points = np.random.default_rng(0).gamma(1.0, size=shape) * np.linspace(3, 1, shape[1])
    basis, spread = plane(points), points - points.mean(axis=0)
    n_directions = min(2, *shape)
    assert_allclose((basis.T @ basis)[:n_directions, :n_directions], np.eye(n_directions), atol=1e-12)
    most = np.linalg.svd(spread, compute_uv=False)[:2]
    assert_allclose(np.sum((spread @ basis) ** 2), np.sum(most**2), rtol=1e-10, atol=1e-20)


# -- how far a fit is -------------------------------------------------------------------------------------------------------------


def problem(n_items, n_dims=5, n_clouds=6):
    rng = np.random.default_rng(0)
    return rng.gamma(1, 1, (n_clouds, n_dims))[rng.integers(n_clouds, size=n_items)] + rng.gamma(1, 0.3, (n_items, n_dims))


def moments(model, data):
    heard = []
    with listening(on_moment=heard.append):
        model.fit(data)
    return heard


@pytest.fixture
def at_once(monkeypatch):
    """Every report is passed on."""
    monkeypatch.setattr(progress, "EVERY", 0.0)


FITS = {
    "given": (ONMF(6), 300, {"annealing", "refining"}),
    "auto": (ONMF(max_components=5), 80, {"counting components", "annealing", "refining"}),
    "bounds": (ONMF(4, capacity=10), 30, {"annealing", "refining", "meeting the bounds"}),
    "samples": (ONMF(4), 4200, {"annealing", "searching on samples", "refining"}),
    "start": (ONMF(4, init=np.arange(30) % 4), 30, {"annealing", "refining", "refining the given start"}),
    "flow": (ONMF(3, capacity=12, solver="cbf"), 30, {"annealing", "refining", "meeting the bounds"}),
}
# Calls of Python's functions between two reports, at most: a tenth of a second or less. Most fits make fewer than 4000; a step of the
# flow solves a quadratic programme, and makes 12 000.
CALLS = 15_000


@pytest.mark.parametrize("name", FITS)
def test_silence_is_short_in_work(name, at_once):
    """Counted in calls, which no busy machine makes more of: whatever is computed without a report would be seen here."""
    model, n_items, _ = FITS[name]
    model.fit(problem(n_items))  # so that what is imported and compiled once is not counted
    calls, longest, where = 0, 0, ""

    def heard(moment):
        nonlocal calls, longest, where
        if calls > longest:
            longest, where = calls, f"{moment.phase}: {moment.detail}"
        calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    data = problem(n_items)
    with listening(on_moment=heard):
        sys.setprofile(count)
        try:
            clone(model).fit(data)
        finally:
            sys.setprofile(None)
    assert longest <= CALLS, where


@pytest.mark.parametrize("name", FITS)
def test_every_phase_is_told_and_the_share_never_falls(name, at_once):
    model, n_items, phases = FITS[name]
    heard = moments(clone(model), problem(n_items))
    assert {moment.phase for moment in heard} - {"reading", "certifying"} == phases
    shares = [moment.share for moment in heard]
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert shares[-1] <= 1
    order = [list(progress.PHASES).index(moment.phase) for moment in heard]
    assert order == sorted(order)
    told = [moment for moment in heard if moment.left is not None]
    assert all(moment.left == pytest.approx(moment.seconds * (1 - moment.share) / moment.share) for moment in told)


def test_reports_come_no_faster_than_the_eye_follows():
    heard = moments(ONMF(6), problem(300))
    within = [b.seconds - a.seconds for a, b in pairwise(heard) if a.phase == b.phase]
    assert all(gap >= progress.EVERY for gap in within)


def test_who_listens_changes_no_bit(at_once):
    heard, quiet = ONMF(4), ONMF(4).fit(problem(120))
    assert moments(heard, problem(120))
    np.testing.assert_array_equal(heard.components_, quiet.components_)


# -- bars -------------------------------------------------------------------------------------------------------------------------


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_bar_on_a_terminal_is_one_line_and_leaves_none(monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    with bar():
        ONMF(3).fit(problem(60))
    assert "refining" in screen.getvalue()
    assert "\n" not in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_bar_in_a_file_is_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with bar():
        ONMF(3).fit(problem(60))
    assert log.getvalue() == ""


def test_bar_in_a_notebook_is_an_element_that_changes(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(display=lambda first, display_id: handle, HTML=str)
    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None), display=display)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with bar():
        ONMF(3).fit(problem(60))
    assert any("<progress" in each and "refining" in each for each in shown)
    assert shown[-1] == ""
