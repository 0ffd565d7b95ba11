"""Signals that end a command, and those that come before it has begun."""

import os
import signal
import subprocess
import sys

import pytest

from orthonmf.cli._signals import Signals

# A program in which a signal comes at the moment when a module is imported, and the command that it runs.
AT_IMPORT = """
import signal, sys
from importlib.abc import MetaPathFinder

class Signal(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            signal.raise_signal(getattr(signal, sys.argv[2]))

signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background inherits that it is ignored
sys.meta_path.insert(0, Signal())
from orthonmf.cli import main
sys.exit(main(sys.argv[3:]))
"""


@pytest.fixture
def default():
    """The handlers that a process starts with."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in numbers[1:]:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize(("module", "name", "code"), [("typer", "SIGINT", 130), ("orthonmf.cli.app", "SIGTERM", 143)])
def test_a_signal_during_the_imports_is_an_exit_code_without_a_traceback(module, name, code):
    words = [sys.executable, "-c", AT_IMPORT, module, name, "--version"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")


@pytest.fixture
def signals(default):
    each = Signals()
    each.hear()
    yield each
    each.end()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_unwinds_as_an_interrupt_and_is_remembered(signals, number):
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert signals.code == 128 + number


def test_a_signal_waits_for_the_outer_of_two_blocks(signals):
    steps = []

    def work():
        with signals.held():
            with signals.held():
                signal.raise_signal(signal.SIGTERM)
            steps.append("inner ended")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["inner ended"]


def test_a_signal_waits_for_the_part_that_heeds_it(signals):
    steps = []

    def work():
        with signals.held():
            signal.raise_signal(signal.SIGTERM)
            steps.append("made")
            with signals.heeded():
                steps.append("worked")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["made"]


def test_an_error_in_a_held_block_is_not_hidden(signals):
    def work():
        with signals.held():
            signal.raise_signal(signal.SIGTERM)
            raise ValueError("an error")

    with pytest.raises(ValueError, match="an error"):
        work()
    assert signals.code == 143


def test_what_is_owed_is_undone_once_at_the_end_of_the_block(signals):
    steps = []
    with signals.owing(lambda: steps.append("undone")):
        steps.append("worked")
    signals.end()
    assert steps == ["worked", "undone"]


def test_what_a_signal_kept_from_being_undone_is_undone_at_the_end(signals):
    steps = []

    def undo():
        if not steps:
            steps.append("interrupted")
            signal.raise_signal(signal.SIGTERM)
        steps.append("undone")

    def work():
        with signals.owing(undo):
            pass

    with pytest.raises(KeyboardInterrupt):
        work()
    signals.end()
    assert steps == ["interrupted", "undone"]


def test_what_came_last_is_undone_first(signals):
    steps = []

    def undo():
        if not steps:
            steps.append("interrupted")
            signal.raise_signal(signal.SIGTERM)
        steps.append("inner")

    def work():
        with signals.owing(lambda: steps.append("outer")), signals.owing(undo):
            pass

    with pytest.raises(KeyboardInterrupt):
        work()
    signals.end()
    assert steps == ["interrupted", "inner", "outer"]


def test_an_error_while_undoing_is_told_once_and_the_rest_is_undone(signals):
    steps = []

    def fail():
        raise ValueError("in use")

    def work():
        with signals.owing(lambda: steps.append("outer")), signals.owing(fail):
            pass

    with pytest.raises(ValueError, match="in use"):
        work()
    signals.end()
    assert steps == ["outer"]


@pytest.mark.usefixtures("default")
def test_handlers_are_as_they_were_and_those_of_the_caller_stay():
    heard, signals = [], Signals()
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    signals.hear()
    os.kill(os.getpid(), signal.SIGTERM)
    signals.end()
    assert heard == [signal.SIGTERM]
    assert signals.code is None
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
