"""From a user's matrix to the engine that sees it: which way round the items lie, and in what units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.typing import Array
from ..exceptions import InvalidInputError
from ..passes.raw import Digest, FirstLook, FirstSums, WeightedSum
from ..sources import ON_DISK, Stored, StoredRows, is_chunked, is_sparse
from . import SPARSE, available, engine_class
from .base import Engine, median_items, sampled
from .threads import ThreadTeam

# Numbers in X, and stored ones in a sparse X, from which compiled passes are worth loading numba for, and the first time compiling them,
# which takes some ten seconds.
COMPILED_NUMBERS, COMPILED_ENTRIES = 1 << 20, 1 << 18
# Numbers in X from which they are where compiled loops are loaded in any case, for an assignment under bounds: 4000 × 50 took nine tenths
# of the time, 10 000 × 100 eight, a first fit in a process as long.
COMPILED_BOUNDED = 1 << 17
# Items from which an assignment under bounds is: loading its loops takes half a second, once in a process, and a fit of 180 items took
# 0.7 s longer without them, under soft bounds four, and one of 600 items four.
COMPILED_ITEMS = 1 << 7
# Rows on disk whose frame is kept in memory, at most: 28 bytes each, 224 MiB.
MANY_STORED = 1 << 23
# Rows that are looked at together for the largest number of those that weigh.
WEIGHED_ROWS = 4096


# Engines whose place the one for missing numbers takes.
MASKED = ("dense", "compiled", "masked")


@dataclass(frozen=True)
class Layout:
    """How a user's matrix becomes items.

    Attributes
    ----------
    orthogonal : str
        "samples": items are rows; "features": items are columns.
    engine : str
        "auto", or a name from the registry of engines.
    power : int
        By which power of X costs grow.
    masked : bool
        Whether NaN is a missing number.
    bounded : bool
        Whether sizes are bounded.
    """

    orthogonal: str
    engine: str
    power: int = 2
    masked: bool = False
    bounded: bool = False

    def build(self, X: Any, sample_weight: Array | None, team: ThreadTeam, shift: int | None = None) -> Engine:
        """The engine for a checked matrix. ``shift`` fixes the power of two by which it is scaled."""
        far = is_chunked(X)  # an engine of one machine sees each chunk
        n_items = X.shape[0 if self.orthogonal == "samples" else 1]
        least = COMPILED_BOUNDED if self.bounded and n_items >= COMPILED_ITEMS else COMPILED_NUMBERS
        name = automatic(X, least) if self.engine == "auto" or (far and self.engine == "dask") else self.engine
        if self.masked:
            name = "masked"
        if name == "dask":
            raise InvalidInputError("engine='dask' reads dask arrays and data frames; use engine='auto', or dask.array.from_array(X).")
        name = SPARSE.get(name, name) if is_sparse(X) else name
        if not far and getattr(X, "engine", name) != name:
            raise InvalidInputError(f"engine={name!r} reads arrays of this process, and X lies on a device; use engine='auto', or X.cpu().")
        cls = engine_class(name)
        if cls.reads_sparse != is_sparse(X):
            kind = "sparse" if is_sparse(X) else "dense"
            raise InvalidInputError(f"engine={name!r} cannot read a {kind} matrix; use engine='auto' or convert X.")
        if far:
            cls, X = engine_class("dask"), X.seen_by(name)
        shift = self.shift(X, sample_weight) if shift is None else shift
        weight_shift = power_of_four(sample_weight)
        weight = None if sample_weight is None else np.ldexp(sample_weight, 2 * weight_shift)
        if self.orthogonal == "samples":
            engine = cls.of(X, weight, None, shift, team)
        else:  # the weights of the samples belong to the dimensions of the features
            roots = None if weight is None else np.sqrt(weight) if self.power == 2 else weight
            engine = cls.of(X.T, None, roots, shift, team)
        engine.weight_shift = weight_shift
        allowed = self.engine not in ("dense", "sparse") and engine.n_items >= COMPILED_ITEMS
        engine.compiles = allowed and available("compiled")
        engine.lasting = not isinstance(X, ON_DISK) or engine.n_items <= MANY_STORED
        return engine

    def shift(self, X: Any, sample_weight: Array | None) -> int:
        """The power of two by which X is scaled: even where costs grow like X, so that half of it is a whole number as well."""
        return self._even(power_of_two(X, sample_weight))

    def _even(self, shift: int) -> int:
        return shift if self.power == 2 else shift - shift % 2

    def first_seen(self, X: Any, sample_weight: Array | None, team: ThreadTeam) -> Engine:
        """The engine for a matrix; one on disk whose numbers are being watched is read once for all that is asked of it first.

        That pass checks the numbers, finds the largest, the digest and the sum, and keeps the items from which a median is taken. Digest
        and sum depend on the power of two that the largest number makes, which the first pieces suggest; where they mislead, a second
        pass finds these.
        """
        if not isinstance(X, ON_DISK):
            return self.build(X, sample_weight, team)
        if isinstance(X, StoredRows):
            engine = self.build(X, sample_weight, team)
        else:
            rows = X if isinstance(X, Stored) else X.T
            engine = self.build(X, sample_weight, team, 0)
            rows.expect(engine.slices, sampled(engine, median_items(engine), 0))
            engine = self.build(X, sample_weight, team, self._even(_shift(rows.peek())))
        with team.unhurried():
            seen: FirstSums = engine.run(None, FirstLook()).total
            if (shift := self.shift(X, sample_weight)) != engine.shift:
                engine = self.build(X, sample_weight, team, shift)
                seen = engine.run(None, FirstLook()).total
        engine.passes = team.passes = 0  # those that ask for what it found are counted
        engine.seen = {Digest(): seen.digest, WeightedSum(): seen.weighted}
        return engine


def in_memory(engine: Engine, values: Array, weight: Array | None) -> Engine:
    """An engine on few of an engine's items, or on what stands for them, as an array in float64."""
    name = automatic(values) if engine.in_memory == "auto" else engine.in_memory
    held = engine_class(name).of(values, weight, None, 0, engine.team)
    held.given_dtype, held.compiles = engine.given_dtype, engine.compiles
    return held


def automatic(X: Any, least: int = COMPILED_NUMBERS) -> str:
    """The name of the engine for a matrix; an array of ``least`` numbers or more is compiled."""
    if (own := getattr(X, "engine", None)) is not None:
        return str(own)
    if is_sparse(X):
        return "compiled-sparse" if X.nnz >= COMPILED_ENTRIES and available("compiled-sparse") else "sparse"
    return "compiled" if X.size >= least and available("compiled") else "dense"


def power_of_two(X: Any, sample_weight: Array | None) -> int:
    """The shift s with max X · 2**s in [0.5, 1), so that squares neither overflow nor vanish; 0 for X = 0."""
    weighs = None if sample_weight is None or sample_weight.all() else sample_weight > 0
    if is_chunked(X):
        largest = X.max(initial=0) if weighs is None else X.largest_of(weighs)
    elif is_sparse(X):
        largest = float(X.data.max(initial=0))
    elif weighs is not None:
        blocks = (slice(start, start + WEIGHED_ROWS) for start in range(0, X.shape[0], WEIGHED_ROWS))
        largest = max(_largest(X[block][weighs[block]]) for block in blocks)
    else:
        largest = _largest(X)
    return _shift(largest)


def _largest(X: Any) -> float:
    """The largest number, of those that are there."""
    found = float(X.max(initial=0))
    return found if found == found else float(np.fmax.reduce(X, axis=None, initial=0))


def _shift(largest: float) -> int:
    """The power of two that brings the largest number into [0.5, 1)."""
    return -int(np.frexp(largest)[1]) if largest > 0 else 0


# Between 2 to this power and its inverse, squares of weights neither overflow nor vanish, and the weights stay as they are.
PLAIN_WEIGHT = 256


def power_of_four(weight: Array | None) -> int:
    """The shift s with the largest weight · 4**s about one where it is very large or small; else 0. Its root is then a power of two."""
    exponent = 0 if weight is None else int(np.frexp(weight.max())[1])
    return -(exponent // 2) if abs(exponent) > PLAIN_WEIGHT else 0
