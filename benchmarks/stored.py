"""A matrix larger than what a fit may hold: time and memory on disk beside the same in memory, bit for bit.

Run ``python -m benchmarks stored`` (6 GB on disk beside this, and as much memory for the fit it is compared with; ``--gb 0.6`` is a quick
look). The file is a .npy of float32 rows of 256 dimensions in 20 groups. ``--fits predict`` writes the labels of a file of rows of 16
dimensions, 1e8 of them with ``--gb 6.4``. Each fit is a process of its own, which samples its anonymous resident memory: what the file
system holds of the file is not its own. *Cold* reads the file once after the system was asked to forget it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from orthonmf import ONMF
from orthonmf.sources import write

from . import scaling
from ._table import Column, Table
from ._timing import machine, timed

DIMS, NARROW, CHUNK = 256, 16, 1 << 24
COLUMNS = (
    Column("what", 34),
    Column("s", 8, ".1f"),
    Column("MiB, anonymous", 14, ".0f"),
    Column("bits", 18),
)


def make(path: Path, n_items: int, dims: int = DIMS) -> None:
    """Write the file block by block."""
    target = np.lib.format.open_memmap(path, "w+", np.float32, (n_items, dims))
    scaling.fill(target)
    target.flush()


def cold_read(path: Path) -> float:
    """Seconds of reading the file once, which the system was asked to forget."""
    with path.open("rb", buffering=0) as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        room = bytearray(CHUNK)
        return timed(lambda: all(iter(lambda: file.readinto(room), 0)))[1]


@contextmanager
def sampled() -> Iterator[dict[str, float]]:
    """The peak of the anonymous resident memory within the block, in MiB, beyond what there was."""
    found, over = {"peak": 0.0}, threading.Event()
    start = _anonymous()

    def watch() -> None:
        while not over.wait(0.005):
            found["peak"] = max(found["peak"], _anonymous() - start)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield found
    finally:
        over.set()
        watcher.join()


def _anonymous() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


def measure(path: str, where: str, what: str) -> dict[str, Any]:
    """A fit, or labels, of the file on disk or in memory; in this process."""
    ONMF(2).fit(scaling.draw(20_000))  # what is imported and compiled on first use
    parameters: dict[str, Any] = {"bounded": {"capacity": 0.06}, "auto": {"n_components": "auto"}}.get(what, {})
    model = ONMF(**{"n_components": scaling.COMPONENTS, **parameters})
    X: Any = np.load(path) if where == "memory" else path
    with sampled() as memory:
        began = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - began
    bits = sha256(model.labels_.tobytes() + model.components_.tobytes() + str(model.certificate_).encode()).hexdigest()
    return {"seconds": seconds, "peak": memory["peak"], "bits": bits[:16], "passes": model.n_iter_}


def labels(path: str) -> dict[str, Any]:
    """The labels of all rows of the file, written to another one; in this process."""
    model = ONMF(scaling.COMPONENTS).fit(np.load(path, mmap_mode="r")[:100_000].copy())
    target = Path(path).with_name("labels.npy")
    with sampled() as memory:
        began = time.perf_counter()
        write(model.predict, path, target)
        seconds = time.perf_counter() - began
    return {"seconds": seconds, "peak": memory["peak"], "bits": sha256(target.read_bytes()).hexdigest()[:16], "passes": 1}


def asked(path: Path, what: str, *where: str) -> list[dict[str, Any]]:
    """What a process of its own measures, one after the other."""
    command = [sys.executable, "-m", "benchmarks.stored", "--one", str(path), what, *where]
    found: list[dict[str, Any]] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks stored")
    parser.add_argument("--gb", type=float, default=6.0, help="size of the file (%(default)s)")
    parser.add_argument("--fits", nargs="+", choices=("free", "bounded", "auto", "predict"), default=["free"])
    parser.add_argument("--folder", type=Path, help="where the file is written; a temporary folder by default")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        path, what, *places = options.one
        print(json.dumps([labels(path) if what == "predict" else measure(path, where, what) for where in places]))
        return
    print(f"{machine()}\n", flush=True)
    table = Table(COLUMNS)
    table.header()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for what in options.fits:
            path, dims = Path(folder, "X.npy"), NARROW if what == "predict" else DIMS
            make(path, int(options.gb * 1e9) // (4 * dims), dims)
            table.row("a cold read", cold_read(path), None, None)
            for where in ("disk",) if what == "predict" else ("disk", "memory"):
                (found,) = asked(path, what, where)
                table.row(f"{what}, from {where}, {found['passes']} passes", found["seconds"], found["peak"], found["bits"])


if __name__ == "__main__":
    main()
