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


@pytest.mark.usefixtures("default")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_unwinds_as_an_interrupt_and_is_remembered(number):
    signals, steps = Signals(), []

    def work():
        with signals.heard():
            try:
                signal.raise_signal(number)
                steps.append("gone on")
            finally:
                steps.append("cleaned")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["cleaned"]
    assert signals.code == 128 + number


@pytest.mark.usefixtures("default")
def test_a_signal_waits_for_the_outer_of_two_blocks():
    signals, steps = Signals(), []

    def work():
        with signals.heard(), signals.held():
            with signals.held():
                signal.raise_signal(signal.SIGTERM)
            steps.append("inner ended")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["inner ended"]


@pytest.mark.usefixtures("default")
def test_an_error_in_a_held_block_is_not_hidden():
    signals = Signals()

    def work():
        with signals.heard(), signals.held():
            signal.raise_signal(signal.SIGTERM)
            raise ValueError("an error")

    with pytest.raises(ValueError, match="an error"):
        work()
    assert signals.code == 143


@pytest.mark.usefixtures("default")
def test_handlers_of_the_caller_stay():
    heard, signals = [], Signals()
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    with signals.heard():
        os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [signal.SIGTERM]
    assert signals.code is None
