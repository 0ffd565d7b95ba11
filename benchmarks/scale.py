"""What a fit would take on 1 to 1000 machines: arithmetic from measured rates, every assumption printed.

Run ``python -m benchmarks scale`` (seconds). Nothing of this size was run. A pass is the slowest of what the cores compute and what the
disks read, and after it what only one process does: the scheduler hands out a task for each chunk, the client adds up the totals.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields

from ._table import Column, Table


@dataclass(frozen=True)
class Assumptions:
    """Rates of a machine, of the scheduler and of the network; times are in seconds, sizes in bytes."""

    cores: int = 16
    core_rate: float = 2.4e9  # float32 that a core takes through a hard pass, k = 20, p = 64: benchmarks passes, one thread
    disk_rate: float = 1.0e9  # of a machine, where chunks are loaded in every pass
    memory: float = 100e9  # of a machine, for chunks that are held
    chunk: float = 128e6
    task: float = 13.4e-3 / 16  # of the scheduler and the client, for each task and answer: benchmarks clusters --parts fixed, hard passes
    network: float = 1.25e9  # into the client
    n_passes: int = 18  # of a free fit to a million items and more
    n_blind: int = 12  # passes that read columns alone: they cost their tasks
    search: float = 10.0  # on samples, in the client

    def seconds(self, n_items: float, n_dims: int, k: int, machines: int) -> tuple[float, float, float, bool]:
        """Of the cores or disks, of the scheduler, of the network, for a whole fit; and whether the chunks are held."""
        data = 4.0 * n_items * n_dims
        n_chunks = max(data / self.chunk, 1.0)
        held = data <= machines * self.memory
        busy = min(machines * self.cores, n_chunks)
        work = data / (busy * self.core_rate * 20 / max(k, 20))
        if not held:
            work = max(work, data / (machines * self.disk_rate))
        numbers = 8.0 * k * (n_dims + 1)
        tasks = n_chunks * self.task
        return self.n_passes * work, (self.n_passes + self.n_blind) * tasks, self.n_passes * 2 * n_chunks * numbers / self.network, held


COLUMNS = (
    Column("items", 7, ".0e"),
    Column("machines", 8, "d"),
    Column("chunks", 9, "d"),
    Column("cores or disks, s", 18, ".3g"),
    Column("scheduler, s", 13, ".3g"),
    Column("network, s", 11, ".3g"),
    Column("in all, h", 10, ".3g"),
    Column("chunks are", 10),
)


def main() -> None:
    """Print the assumptions and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunk", type=float, default=128e6, help="bytes of a chunk (%(default).3g)")
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    options = parser.parse_args()
    assumed = Assumptions(chunk=options.chunk)
    print("p = 64, k = 20, float32; " + ", ".join(f"{each.name} {getattr(assumed, each.name):.3g}" for each in fields(assumed)) + "\n")
    table = Table(COLUMNS, options.markdown)
    table.header()
    for n_items in (1e8, 1e9, 1e12):
        for machines in (1, 10, 100, 1000):
            work, tasks, network, held = assumed.seconds(n_items, 64, 20, machines)
            n_chunks = int(4 * n_items * 64 / assumed.chunk)
            hours = (work + tasks + network + assumed.search) / 3600
            table.row(n_items, machines, n_chunks, work, tasks, network, hours, "held" if held else "loaded")


if __name__ == "__main__":
    main()
