"""Large files in little memory: the benchmark measures, this asks for its figures. Full sizes are long; `make test` has a tenth of them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import stored

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="anonymous memory is read from /proc")


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """The processes that measure find the benchmarks."""
    root = str(Path(stored.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))


@pytest.mark.parametrize(("gb", "most"), [(0.6, 0.3), pytest.param(6.0, 1.0, marks=pytest.mark.long)])
def test_fit_of_a_file_has_the_bits_of_memory_and_holds_little(gb, most, tmp_path):
    path = tmp_path / "X.npy"
    stored.make(path, int(gb * 1e9) // (4 * stored.DIMS))
    disk, memory = stored.asked(path, "free", "disk", "memory")
    path.unlink()
    assert (disk["bits"], disk["passes"]) == (memory["bits"], memory["passes"])
    assert disk["peak"] * 2**20 <= most * 1e9


@pytest.mark.parametrize("rows", [10**7, pytest.param(10**8, marks=pytest.mark.long)])
def test_labels_of_a_file_are_written_in_constant_memory(rows, tmp_path):
    path = tmp_path / "X.npy"
    stored.make(path, rows, stored.NARROW)
    (found,) = stored.asked(path, "predict", "disk")
    assert np.load(tmp_path / "labels.npy", mmap_mode="r").shape == (rows,)
    for each in tmp_path.iterdir():
        each.unlink()
    assert found["peak"] <= 512  # pieces, and what is made of one; whatever the number of rows


LIMITED = """
import resource, sys
import numpy as np
from pathlib import Path
from orthonmf import ONMF
n_items, allowed = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
ONMF(100, n_jobs=2).fit(rng.random((20_000, 8), dtype=np.float32))  # what is loaded and compiled on first use
X = rng.random((n_items, 8), dtype=np.float32)
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + allowed, size + allowed))
model = ONMF(100, n_jobs=2, max_iter=5, time_limit=60).fit(X)
assert model.n_components_ == 100
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is kept by Linux")
def test_memory_beside_five_million_items_under_a_limit():
    """A number for each item and component would take 800 bytes an item; a fit may address a quarter of that, and 256 MiB for blocks."""
    n_items = 5_000_000
    command = [sys.executable, "-W", "ignore", "-c", LIMITED, str(n_items), str(200 * n_items + (256 << 20))]
    # Without a limit the C library reserves 64 MiB of addresses for every thread.
    subprocess.run(command, check=True, env={**os.environ, "MALLOC_ARENA_MAX": "1"})
