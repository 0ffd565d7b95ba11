"""Passes and fits on a GPU: what they take, beside what its memory gives."""

from __future__ import annotations

import argparse
import faulthandler
import statistics
import time

import numpy as np
import torch

from orthonmf import ONMF
from orthonmf.engines.base import Engine


def draw(n_items: int, n_dims: int, n_groups: int, seed: int = 0) -> torch.Tensor:
    """Items about gamma centres, drawn on the device."""
    generator = torch.Generator("cuda").manual_seed(seed)
    centers = torch.tensor(np.random.default_rng(seed).gamma(2.0, 1.0, (n_groups, n_dims)), dtype=torch.float32, device="cuda")
    labels = torch.randint(n_groups, (n_items,), generator=generator, device="cuda")
    X = torch.empty((n_items, n_dims), device="cuda")
    for start in range(0, n_items, 1 << 20):
        some = slice(start, min(start + (1 << 20), n_items))
        noise = torch.rand((some.stop - some.start, n_dims), generator=generator, device="cuda")
        torch.add(centers[labels[some]], noise.clamp_(min=1e-7).log_().neg_(), out=X[some])
    return X


def trace(n_items: int) -> None:
    """The passes over all items of one fit, and their milliseconds."""
    X = draw(n_items, 64, 20)
    log: list[tuple[str, str, float]] = []
    computed = Engine.computed

    def clocked(self, frame, work, columns=None):
        torch.cuda.synchronize()
        began = time.perf_counter()
        found = computed(self, frame, work, columns)
        torch.cuda.synchronize()
        log.append((type(self).__name__, type(work).__name__, 1e3 * (time.perf_counter() - began), self.n_items))
        return found

    for scaling in ("item", "none"):
        ONMF(20, scaling=scaling).fit(X[: 1 << 20])
        Engine.computed = clocked
        log.clear()
        began = time.perf_counter()
        model = ONMF(20, scaling=scaling).fit(X)
        torch.cuda.synchronize()
        whole = time.perf_counter() - began
        Engine.computed = computed
        mine = [each for each in log if each[3] == n_items]
        print(
            scaling,
            f"{whole:.3f} s",
            "device passes",
            round(sum(e[2] for e in mine)),
            "ms; host passes",
            round(sum(e[2] for e in log) - sum(e[2] for e in mine)),
            model.certificate_.holds,
            model.status_,
            flush=True,
        )
        for each in mine:
            print("  ", each[0], each[1], f"{each[2]:.1f}", flush=True)
        times = []
        for _ in range(3):
            began = time.perf_counter()
            ONMF(20, scaling=scaling).fit(X)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
        print("again", [round(t, 3) for t in times], statistics.median(times), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks gpu")
    parser.add_argument("--n", type=int, default=10_000_000)
    arguments = parser.parse_args()
    faulthandler.dump_traceback_later(45, exit=True)
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    trace(arguments.n)
