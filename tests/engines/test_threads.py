"""A team leaves the process as it was: the threads of BLAS, the cores it took, its workers and numpy's answer to errors."""

import signal
import sys
import threading
import time
import timeit
from contextlib import closing

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from orthonmf import ONMF
from orthonmf.engines import ThreadTeam, base, threads

CORES = 4
X = np.random.default_rng(0).gamma(1.0, size=(40, 3))


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Four cores, two threads of BLAS, and blocks of 16 items, so that small data keep several workers busy."""
    monkeypatch.setattr(base, "MIN_BLOCK", 16)
    monkeypatch.setattr(base, "MAX_BLOCK", 16)
    monkeypatch.setattr(threads, "n_cores", lambda: CORES)
    with threadpool_limits(2, user_api="blas"):
        yield


BLAS = ThreadpoolController().select(user_api="blas")


def blas_threads():
    return [pool["num_threads"] for pool in BLAS.info()]


def workers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("orthonmf")]


def use_all_cores(done):
    """A new team gets a worker for every core: each waits until all have begun."""
    begun = threading.Barrier(CORES)
    with ThreadTeam(CORES) as team:
        list(team.map(lambda _: begun.wait(timeout=5), range(CORES)))
    done.set()


def assert_as_before(blas, errors):
    deadline = time.monotonic() + 10
    while workers() and time.monotonic() < deadline:  # one whose start was interrupted ends by itself
        time.sleep(0.001)
    assert not workers()
    assert blas_threads() == blas
    assert np.geterr() == errors
    done = threading.Event()
    threading.Thread(target=use_all_cores, args=[done], daemon=True).start()
    assert done.wait(timeout=10)  # a lock that was left locked would keep another thread waiting
    assert blas_threads() == blas


def use_a_team():
    with ThreadTeam(3) as team:
        list(team.map(abs, range(5)))


def use_two_teams():
    with ThreadTeam(3) as first, closing(first):
        list(first.map(abs, range(5)))
        with ThreadTeam(2) as second, closing(second):
            list(second.map(abs, range(5)))


def predict():
    MODEL.predict(X)


MODEL = ONMF(2, n_jobs=2).fit(X)
WORKS = [pytest.param(use_a_team, marks=pytest.mark.long), use_two_teams, predict]


def interrupted(work, at):
    """Interrupt ``work`` at line number ``at`` of those it executes in threads.py; how many there were."""
    seen = 0

    def trace(frame, event, arg):
        nonlocal seen
        if frame.f_code.co_filename != threads.__file__:
            return None
        if event == "line":
            seen += 1
            if seen == at:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return seen


def test_few_answers_wait_for_a_slow_one():
    begun, late = [], threading.Event()

    def task(number):
        begun.append(number)
        if number == 0:
            late.wait(0.3)  # while others could do all that follow
            begun.append("answered")
        return number

    with ThreadTeam(3) as team:
        assert list(team.map(task, range(200))) == list(range(200))
    assert begun.index("answered") <= 3 * threads.ANSWERS_AHEAD


def test_every_thread_stays_at_work():
    together = threading.Barrier(3)  # nobody goes on before all three have a task
    with ThreadTeam(3) as team:
        assert len(list(team.map(lambda _: together.wait(timeout=5), range(3 * 100)))) == 300


@pytest.mark.parametrize("work", WORKS)
def test_interrupt_at_any_line_leaves_nothing_behind(work):
    blas, errors = blas_threads(), np.geterr()
    lines = interrupted(work, None)
    assert lines > 20
    for at in range(1, lines + 1):
        interrupted(work, at)
        assert_as_before(blas, errors)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals")
@pytest.mark.parametrize("work", [use_two_teams, predict])
@pytest.mark.parametrize("seed", range(3))
def test_signal_at_any_time_leaves_nothing_behind(work, seed):
    def ring(*_):
        raise KeyboardInterrupt

    blas, errors, rng = blas_threads(), np.geterr(), np.random.default_rng(seed)
    duration = min(timeit.repeat(work, number=1, repeat=20))
    before, caught = signal.signal(signal.SIGALRM, ring), 0
    try:
        for _ in range(1000):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 1.2 * duration))
                work()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                caught += 1
            assert_as_before(blas, errors)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught > 100
