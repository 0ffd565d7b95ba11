"""Seconds of a call, and how busy the machine is."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

REPEATS = 5

Value = TypeVar("Value")


def timed(call: Callable[[], Value]) -> tuple[Value, float]:
    """What a call returns, and its seconds."""
    start = time.perf_counter()
    value = call()
    return value, time.perf_counter() - start


def processor_timed(call: Callable[[], Value]) -> tuple[Value, float]:
    """What a call returns, and its seconds of the processor, on all threads."""
    start = time.process_time()
    value = call()
    return value, time.process_time() - start


def least_processor_seconds(call: Callable[[], object], *, repeats: int = REPEATS) -> float:
    """The least seconds of the processor of ``repeats`` calls after a warm-up: where the machine is busy."""
    call()
    return min(processor_timed(call)[1] for _ in range(repeats))


def median_seconds(call: Callable[[], object], *, repeats: int = REPEATS) -> float:
    """Median of ``repeats`` calls after a warm-up."""
    call()
    return statistics.median(timed(call)[1] for _ in range(repeats))


def alternating_seconds(*calls: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Medians of several calls made in turn, so that a busy moment of the machine slows all of them."""
    for call in calls:
        call()
    rounds = [[timed(call)[1] for call in calls] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def machine() -> str:
    """The machine in a line. On a busy one threads wait for each other, and ratios mean little."""
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    return f"{cores} cores, load {load:.1f}" + (": BUSY, do not quote these times" if load > cores / 2 else "")
