"""Passes and fits on a GPU: one pass, whole fits with the seconds of the device and of this process, and data larger than the device.

Run ``python -m benchmarks gpu`` on a machine with an NVIDIA GPU of 80 GB or more (four minutes; ``--parts`` names some). Data are drawn on
the device: gamma centres and exponential noise in float32. A pass is a median of five after a warm-up, as the engine runs it, with its
totals brought to this process; beside it are reading X (a sum) and the same pass as plain tensors, and how far its sums are from those in
float64. A fit is a median of five after one, certificate included; those of sparse documents, of data larger than the device and under
bounds are one after one.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines import torch as torch_engine
from orthonmf.engines.base import Engine, doubled
from orthonmf.engines.tensors import Tensor
from orthonmf.engines.torch import TorchEngine
from orthonmf.engines.torch_sparse import TorchSparseEngine, checked
from orthonmf.passes.hard import Labelled, Nearest
from orthonmf.passes.soft import Gibbs
from orthonmf.passes.state import State
from orthonmf.search.partition import item_points

from ._table import Column, Table
from ._timing import median_seconds, timed

DRAWN = 1 << 20
SHAPES = ((10_000_000, 64, 20), (10_000_000, 64, 128), (10_000_000, 128, 1024))
PASSES = (
    Column("items", 10, "d"),
    Column("dims", 4, "d"),
    Column("k", 4, "d"),
    Column("pass", 12),
    Column("ms", 8, ".2f"),
    Column("× read", 7, ".2f"),
    Column("plain ms", 8, ".1f"),
    Column("off", 8, ".0e"),
)
FITS = (
    Column("fit", 40),
    Column("seconds", 7, ".2f"),
    Column("device", 7, ".2f"),
    Column("host", 7, ".2f"),
    Column("passes", 6, "d"),
    Column("relative error", 14, ".6%"),
    Column("holds", 5),
)


def draw(n_items: int, n_dims: int, n_groups: int, *, device: str = "cuda", seed: int = 0) -> torch.Tensor:
    """Items about gamma centres, drawn on the GPU; pinned in this process where ``device`` is "cpu"."""
    generator = torch.Generator("cuda").manual_seed(seed)
    centers = torch.tensor(np.random.default_rng(seed).gamma(2.0, 1.0, (n_groups, n_dims)), dtype=torch.float32, device="cuda")
    X = torch.empty((n_items, n_dims), device=device)
    for start in range(0, n_items, DRAWN):
        some = slice(start, min(start + DRAWN, n_items))
        labels = torch.randint(n_groups, (some.stop - some.start,), generator=generator, device="cuda")
        noise = torch.rand((some.stop - some.start, n_dims), generator=generator, device="cuda").clamp_(min=1e-7)
        X[some] = centers[labels] - noise.log_()
    return X


def works(engine: Engine, n_components: int) -> Iterator[tuple[str, object, object]]:
    """Soft and hard passes, lines and means, by name: frame and pass."""
    for scaling in ("item", "none"):
        frame = REGISTRY["frobenius", scaling].of(engine)
        centers = item_points(engine, frame, np.linspace(0, engine.n_items - 1, n_components).astype(np.intp))
        state = State(50.0, centers, np.full(n_components, -np.log(n_components)))
        kind = "lines" if frame.scaled else "means"
        yield f"soft, {kind}", frame, Gibbs(state)
        yield f"hard, {kind}", frame, Nearest(centers, labelled=False)


def off(engine: Engine, frame: object, work: object, labels: object) -> float:
    """How far the sums are from those in float64, relative to the largest; of a hard pass, for the labels that it found."""
    found = engine.run(frame, work).total
    exact = Labelled(work.centers) if isinstance(work, Nearest) else work
    expected = doubled(engine).run(frame, exact, {"labels": labels}).total
    differences = [(found.mass, expected.mass), (found.sums, expected.sums)]
    if isinstance(work, Gibbs):
        differences.append((np.array(found.log_partition), np.array(expected.log_partition)))
    return max(float(np.abs(one - other).max() / np.abs(other).max()) for one, other in differences)


def passes(table: Table) -> None:
    """A row for every pass of every shape."""
    for n_items, n_dims, n_components in SHAPES:
        passes_of(draw(n_items, n_dims, n_components), n_components, table)


def passes_of(X: torch.Tensor, n_components: int, table: Table) -> None:
    """A row for every pass over these items."""
    read = median_seconds(lambda: (X.sum(), torch.cuda.synchronize()))
    with ThreadTeam(1) as team:
        engine = TorchEngine.of(Tensor(X), None, None, 0, team)
        for name, frame, work in works(engine, n_components):
            seconds = median_seconds(lambda f=frame, w=work: engine.run(f, w))
            labels = engine.run(frame, work).columns.get("labels")
            with without_kernels():
                plain = median_seconds(lambda f=frame, w=work: engine.run(f, w), repeats=1)
            wrong = off(engine, frame, work, labels)
            table.row(len(X), X.shape[1], n_components, name, seconds * 1e3, seconds / read, plain * 1e3, wrong)


@contextmanager
def without_kernels() -> Iterator[None]:
    """Passes as plain tensors."""
    has_kernels = torch_engine.has_kernels
    torch_engine.has_kernels = lambda: False
    try:
        yield
    finally:
        torch_engine.has_kernels = has_kernels


@contextmanager
def clocks(n_items: int) -> Iterator[dict[str, float]]:
    """Seconds in passes over so many items, by their names."""
    seconds: dict[str, float] = defaultdict(float)
    run = Engine.run

    def clocked(self: Engine, *arguments: object) -> object:
        found, taken = timed(lambda: run(self, *arguments))
        if self.n_items == n_items:
            seconds[type(arguments[1]).__name__] += taken
        return found

    Engine.run = clocked
    try:
        yield seconds
    finally:
        Engine.run = run


def fit(name: str, X: torch.Tensor, table: Table, *, repeats: int = 5, **parameters: object) -> None:
    """One row, and beneath it where the seconds of the device went."""

    def fitted() -> ONMF:
        model = ONMF(**parameters).fit(X)
        torch.cuda.synchronize()
        return model

    fitted()
    runs = []
    for _ in range(repeats):
        with clocks(len(X)) as spent:
            model, seconds = timed(fitted)
        runs.append((seconds, sum(spent.values()), dict(spent), model))
    seconds, device, spent, model = sorted(runs, key=lambda run: run[0])[len(runs) // 2]
    certificate = model.certificate_
    table.row(name, seconds, device, seconds - device, model.n_iter_, certificate.relative_error, str(certificate.holds))
    parts = sorted(spent.items(), key=lambda part: -part[1])[:6]
    print("    " + ", ".join(f"{part} {taken * 1e3:.0f} ms" for part, taken in parts), flush=True)


def fits(table: Table) -> None:
    """Whole fits with X on the device."""
    X = draw(10_000_000, 64, 20)
    fit("1e7 × 64, k = 20, lines", X, table, n_components=20)
    fit("1e7 × 64, k = 20, means", X, table, n_components=20, scaling="none")


def bounds(table: Table) -> None:
    """A fit under bounds with X on the device."""
    X = draw(1_000_000, 64, 20)
    fit("1e6 × 64, k = 20, means, at most 5.5 %", X, table, n_components=20, scaling="none", capacity=0.055, repeats=1)


def documents(n_samples: int, n_words: int, n_drawn: int, n_topics: int, *, seed: int = 0) -> torch.Tensor:
    """Counts of words, of which every topic prefers some of its own, drawn on the device: sparse rows, 1 + log(count)."""
    generator = torch.Generator("cuda").manual_seed(seed)
    rng = np.random.default_rng(seed)
    topics = rng.gamma(0.3, 1.0, (n_topics, n_words)) / np.arange(10, n_words + 10)
    ends = torch.tensor(topics / topics.sum(axis=1, keepdims=True), device="cuda").cumsum(1)
    labels = torch.randint(n_topics, (n_samples,), generator=generator, device="cuda")
    places = []
    for topic in range(n_topics):
        some = torch.nonzero(labels == topic)
        drawn = torch.searchsorted(ends[topic], torch.rand((len(some), n_drawn), generator=generator, device="cuda", dtype=torch.float64))
        places.append((some * n_words + drawn.clamp_(max=n_words - 1)).ravel())
    place, counts = torch.unique(torch.cat(places), return_counts=True)
    borders = torch.searchsorted(place, torch.arange(n_samples + 1, device="cuda") * n_words)
    return torch.sparse_csr_tensor(borders, place % n_words, 1 + counts.float().log(), size=(n_samples, n_words))


def sparse(table: Table) -> None:
    """Whole fits of sparse rows on the device."""
    X = documents(500_000, 50_000, 96, 50)
    print(f"    {X._nnz()} entries", flush=True)
    sparse_passes(X, 50)
    for kind, scaling in (("lines", "item"), ("means", "none")):
        fit(f"5e5 × 5e4 sparse, k = 50, {kind}", X, table, repeats=1, n_components=50, scaling=scaling)


def sparse_passes(X: torch.Tensor, n_components: int) -> None:
    """A line for every pass over sparse rows, and whether its sums have the same bits again."""
    with ThreadTeam(1) as team:
        engine = TorchSparseEngine.of(checked(X, "ONMF"), None, None, 0, team)
        for name, frame, work in works(engine, n_components):
            one, other = (engine.run(frame, work).total for _ in range(2))
            seconds = median_seconds(lambda f=frame, w=work: engine.run(f, w))
            print(f"    {name}: {seconds * 1e3:.1f} ms, the same bits again: {np.array_equal(one.sums, other.sums)}", flush=True)


def large(table: Table) -> None:
    """1e8 items, on the device; and in this process, from where they are streamed."""
    X = draw(100_000_000, 64, 20)
    fit("1e8 × 64 on the device", X, table, n_components=20, repeats=1)
    del X
    torch.cuda.empty_cache()
    X = draw(100_000_000, 64, 20, device="cpu").numpy()
    torch_engine.SHARE_OF_DEVICE = 0.0
    with ThreadTeam(1) as team:
        engine, pinning = timed(lambda: TorchEngine.of(X, None, None, 0, team))
        frame = REGISTRY["frobenius", "none"].about(X[:1000].mean(axis=0))
        centers = item_points(engine, frame, np.arange(20))
        streamed = median_seconds(lambda: engine.run(frame, Nearest(centers, labelled=False)), repeats=2)
        held = engine._held
        copied = median_seconds(lambda: ([held[where] for where in engine.slices], torch.cuda.synchronize()), repeats=2)
    print(
        f"    a streamed pass {streamed:.2f} s, its pinned copy {copied:.2f} s: {streamed / copied:.2f}; pinning {pinning:.1f} s",
        flush=True,
    )


PARTS: dict[str, tuple[tuple[Column, ...], Callable[[Table], None]]] = {
    "passes": (PASSES, passes),
    "fits": (FITS, fits),
    "bounds": (FITS, bounds),
    "sparse": (FITS, sparse),
    "large": (FITS, large),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks gpu")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n", flush=True)
    for part in arguments.parts:
        columns, run = PARTS[part]
        table = Table(columns, arguments.markdown)
        table.header()
        run(table)
        print(flush=True)


if __name__ == "__main__":
    main()
