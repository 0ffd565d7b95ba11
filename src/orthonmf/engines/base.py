"""What every engine offers: passes over blocks of items.

An engine is the only object that sees X. It cuts the items into blocks whose borders depend on X alone, lets a pass turn each block into
totals and columns, adds the totals and joins the columns in the order of the blocks. Threads, sparse rows, and later a device or a cluster
differ only in who computes the blocks: on one machine the number of threads changes no bit, and engines agree up to rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce as fold
from itertools import pairwise
from operator import add
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np

from .._common.typing import Array, Labels
from ..exceptions import IntegrityError
from ..passes.base import GIVEN_WEIGHT, INDEX, Columns, Found, Pass, host
from ..passes.raw import Digest, DigestSums, Energy, Scalar, Total, WeightedSum
from .journal import Again, Later
from .threads import ThreadTeam

# A block of this many bytes, and as many of logits, stays in a core's second-level cache.
BLOCK_BYTES = 1 << 20
MIN_BLOCK, MAX_BLOCK = 256, 8192
# Fewer items than that, where they would take more: what is made of a block is a few times as large.
MAX_BLOCK_BYTES = 8 << 20
# Blocks lie in chunks of about so many items, within which their totals are added first: another machine can add up a chunk of its own.
CHUNK_ITEMS = 1 << 17
# Framed blocks are kept between passes while they take no more than this: small problems are all overhead.
KEEP_BYTES = 8 << 20
# A block where every digit counts, and copies of it are made.
DOUBLED_BYTES = 2 << 20
# Numbers of all items that are held at once where the inner products of all pairs of them are formed.
OUTER_BYTES = 32 << 20


class Rows(Protocol):
    """Items of one block in a frame: x' = factor · x − along · ref, not necessarily formed."""

    def dot(self, vectors: Array) -> Array:
        """Inner products with ``vectors`` (k, n_dims): shape (k, block)."""

    def own(self, vectors: Array, labels: Labels) -> Array:
        """Inner products of each item with the vector of its label: shape (block,)."""

    def tdot(self, weights: Array) -> Array:
        """Weighted sums for ``weights`` (k, block): shape (k, n_dims)."""

    def sqnorms(self) -> Array:
        """Squared norms ‖x'‖², shape (block,)."""

    def growth(self, weight: Array, vectors: Array, labels: Labels | None = None) -> Array:
        """Σ (v + z) log(1 + z/v) over the dimensions with z = weight · x', which must be factor · x, for every vector v > 0: (k, block).

        With ``labels``, for the vector of each item's label alone: (block,).
        """

    def take(self, index: Any) -> Array:
        """The rows at ``index`` as a dense float64 array."""


class RawRows(Protocol):
    """Items of one block as the user gave them, times a power of two."""

    def __len__(self) -> int:
        """Items of the block."""

    def project(self, ref: Array) -> Array:
        """Inner products with one vector, shape (block,)."""

    def sqnorms(self) -> Array:
        """Squared norms in float64, shape (block,)."""

    def total(self, weight: Array) -> Array:
        """Σ weight_i x_i in float64, shape (n_dims,)."""

    def framed(self, factor: Array | None, along: Array | None, ref: Array) -> Rows:
        """The rows factor · x − along · ref; None stands for ones."""

    def residual_sq(self, scale: Array, labels: Labels, components: Array) -> Array:
        """Squared norms of x − scale · components[labels] by explicit subtraction in float64, shape (block,)."""

    def gram(self, weight: Array, ref: Array | None) -> Array:
        """Σ weight_i (x_i − ref)(x_i − ref)ᵀ in float64, shape (n_dims, n_dims)."""

    def inner(self, labels: Labels, centers: Array) -> Array:
        """x · centers[labels], item by item, accumulated in float64, shape (block,)."""

    def keys(self) -> Array:
        """One 64-bit number per item, equal for equal items."""


class CountRows(RawRows, Protocol):
    """The same with what counts need beside."""

    def sums(self) -> Array:
        """Σ x of every item in float64, shape (block,)."""

    def divergence(self, scale: Array, labels: Labels, components: Array, least: Array) -> Array:
        """Σ x log(x/y) − x + y with y = scale · components[labels], term by term in float64, shape (block,).

        Under the logarithm no component is less than ``least`` (n_dims,).
        """

    def pearson(self, scale: Array, labels: Labels, components: Array, least: Array) -> Array:
        """Σ (x − y)² / y with the same y, which under the fraction is no less than scale · ``least``, shape (block,)."""

    def times(self, factor: Array, dim_factor: Array) -> Any:
        """The items times a factor each and one for each dimension, in float64, as their engine reads them."""

    def rooted(self) -> RawRows:
        """The square roots of the items."""


def as_counts(raw: RawRows) -> CountRows:
    """Items as counts: every engine has them."""
    return cast(CountRows, raw)


class PartialFrame(Rows, Protocol):
    """Items of one block in a frame, 0 where they are missing, in float64: with what those dimensions add up to that are there."""

    @property
    def values(self) -> Array:
        """The items, (block, n_dims)."""

    @property
    def there(self) -> Array:
        """1 where they are there, and else 0, (block, n_dims)."""

    def seen(self, vectors: Array) -> Array:
        """Σ of ``vectors`` (k, n_dims) over the dimensions that each item has: shape (k, block)."""

    def own_seen(self, vectors: Array, labels: Labels) -> Array:
        """The same of the vector of each item's label: shape (block,)."""

    def tseen(self, weights: Array) -> Array:
        """Σ of ``weights`` (k, block) over the items that have each dimension: shape (k, n_dims)."""


class PartialRows(CountRows, Protocol):
    """Items of which some numbers are missing: sums and errors are over those that are there."""

    def present(self, factor: Array | None, ref: Array) -> PartialFrame:
        """factor · x − ref where x is there, and 0 elsewhere; None stands for ones."""

    def presence(self, weight: Array) -> Array:
        """Σ of the weights of the items that have each dimension, shape (n_dims,)."""

    def within(self, labels: Labels, vectors: Array) -> Array:
        """Σ vectors[labels] over the dimensions that each item has, shape (block,)."""


def as_partial(raw: RawRows) -> PartialRows:
    """Items with missing numbers: the engine for them has these."""
    return cast(PartialRows, raw)


@dataclass(frozen=True)
class _Block:
    """Items of one block as the user gave them, with their weights w (block,)."""

    rows: RawRows
    weight: Array


class Framing(Protocol):
    """What an engine needs from a distortion: how it sees a block."""

    def items(self, raw: RawRows, weight: Array) -> Any:
        """The items of a block in the distortion's frame."""


class _Blind:
    """The frame of a pass that reads columns alone: the same object in every process."""

    def __reduce__(self) -> str:
        return "BLIND"

    def items(self, raw: RawRows, weight: Array) -> Any:
        """Nothing."""
        return None


#: For passes that read columns alone: they see no items, and count as no pass over them.
BLIND = _Blind()


class Holder:
    """Who holds the columns of items: here this process does, as arrays."""

    def near(self) -> Engine:
        """The same items on an engine whose columns are arrays of this process."""
        return cast(Engine, self)

    def hold(self, values: Array) -> Any:
        """An array of this process, (n_items, …), as a column."""
        return values

    def at_hand(self, column: Any) -> Any:
        """A column as an engine in memory reads it."""
        return host(column)

    def shown(self, column: Any, dtype: Any) -> Any:
        """A column of numbers of this type as the user gets it: an array of this process, unless the items are too many for one."""
        return host(column)

    def promised(self, frame: Framing | None, work: Pass, columns: Columns, names: Iterable[str]) -> dict[str, Any]:
        """The columns of a pass whose total is known, found when they are read."""
        again = Again(cast(Engine, self), frame, work, columns)
        return {name: Later(again, name) for name in names}


class Engine(Holder, ABC):
    """Blocks of items, and sums over them.

    Parameters
    ----------
    n_items, n_dims : int
    dtype : dtype
        float32 or float64.
    weight : ndarray of shape (n_items,) or None
        Weight w_i of each item.
    shift : int
        X is seen as X · 2**shift.
    team : ThreadTeam
        Who computes the blocks.

    Attributes
    ----------
    block_items : int
        Items of a block.
    slices : list of slice
        Borders of the blocks; they depend on X alone, never on the number of threads.
    """

    #: Whether it reads sparse matrices; if not, arrays.
    reads_sparse = False
    #: The name of the engine that holds some of its items as an array; "auto" follows their number.
    in_memory = "auto"
    #: Stored numbers per item; decides the size of a block.
    row_width: int
    #: Stored numbers that a block should have at least: a sum over its items is a vector of all dimensions, which costs as much as many
    #: numbers where most of them are zero.
    block_numbers = 0
    #: Bytes of a block, and of one where every digit counts.
    block_bytes, doubled_bytes = BLOCK_BYTES, DOUBLED_BYTES
    #: Whether items are formed in their frame; if not, distances carry the rounding of ‖x‖², not of the distance to the reference.
    forms_rows = True
    #: The precision in which the items were given: a copy of float32 items in float64 still has their roundings.
    given_dtype: Any
    #: Whether what is found about the items for one pass is worth keeping for the next.
    lasting = True
    #: Whether what is kept of an item is a few numbers, whatever its width.
    frames_are_few = False
    #: Whether what is computed of all items beside its passes is compiled.
    compiles = False
    #: Whether columns of it are read by passes alone, and need not be at hand before one reads them.
    columns_stay = False
    #: Weights are seen as w · 4**weight_shift.
    weight_shift = 0
    #: What each item counts towards a soft bound, float64 with mean one; None where all count the same.
    size: Array | None = None
    #: What passes over the items as they were given found of them, by the pass, where it is asked for more than once.
    seen: dict[Any, Any]
    #: Where the chunks of items begin and end, in which X was given; None where as many blocks as have ``CHUNK_ITEMS`` items are one.
    chunks: Labels | None = None
    #: The place of the first item among those of all machines.
    first = 0

    def __init__(self, n_items: int, n_dims: int, dtype: Any, weight: Array | None, shift: int, team: ThreadTeam) -> None:
        self.n_items, self.n_dims, self.dtype = n_items, n_dims, np.dtype(dtype)
        self.weight, self.shift, self.team, self.given_dtype = weight, shift, team, self.dtype
        self.passes, self.pass_seconds = 0, 0.0
        self._kept: dict[tuple[Framing | None, int], Any] = {}
        self.seen = {}
        width = self.dtype.itemsize * max(self.row_width, 1)
        self._cut(self._within(max(self.block_bytes // width, min(MIN_BLOCK, max(MAX_BLOCK_BYTES // width, 1)))))

    @classmethod
    @abstractmethod
    def of(cls, items: Any, weight: Array | None, dim_factor: Array | None, shift: int, team: ThreadTeam) -> Self:
        """The engine on the rows of a matrix, or of its transposed view.

        ``dim_factor`` (n_dims,) multiplies every item, dimension by dimension; None stands for ones.
        """

    @abstractmethod
    def rows(self, where: slice) -> RawRows:
        """The items of one block."""

    @abstractmethod
    def select(self, index: Labels) -> Engine:
        """An engine in memory and in float64 on the items at ``index``."""

    @abstractmethod
    def outer(self, ref: Array | None, *, rooted: bool = False) -> Array:
        """√w_i √w_l (x_i − ref)·(x_l − ref) of all items, or of their roots, in float64, shape (n_items, n_items): for few items.

        Beyond the result and X it takes ``OUTER_BYTES`` and a block or two for each thread.
        """

    def _block_weight(self, where: slice) -> Array:
        """Weights w_i of one block, float64, where its items are."""
        return np.ones(where.stop - where.start) if self.weight is None else self.weight[where]

    def _cut(self, block_items: int) -> None:
        """See the items in blocks of so many."""
        self.block_items, self.slices = block_items, self._slices(block_items)

    def _within(self, size: int) -> int:
        """Items of a block: about so many, within what a block may have."""
        return min(max(size, -(-self.block_numbers // max(self.row_width, 1))), MAX_BLOCK)

    def _slices(self, size: int) -> list[slice]:
        """So many items each, none of which lies in two chunks."""
        borders = [0, self.n_items] if self.chunks is None else self.chunks.tolist()
        return [slice(start, min(start + size, stop)) for begin, stop in pairwise(borders) for start in range(begin, stop, size)]

    def run(self, frame: Framing | None, work: Pass, columns: Columns | None = None) -> Found:
        """One pass over all items, seen in a frame, or as they were given where that is None; from the journal where it was noted.

        The totals of the blocks are added within a chunk, then those of the chunks, and columns are joined, in the order of the blocks.
        """
        journal = self.team.journal
        return self.computed(frame, work, columns) if journal is None else journal.found(self, frame, work, columns or {})

    def computed(self, frame: Framing | None, work: Pass, columns: Columns | None = None) -> Found:
        """One pass, computed."""
        began = self.team.clock()
        joined: dict[str, Array] = {}
        totals: list[Any] = []
        begins: set[int] = set()
        for where, part in self.stream(frame, work, columns):
            begins = begins or self._chunk_starts(where.stop)
            if where.start in begins:
                totals.append(part.total)
            else:
                totals[-1] += part.total
            for name, values in part.columns.items():
                self._join(joined, name, where, values)
        found = Found(self._added(totals), joined)
        self.pass_seconds = self.team.clock() - began
        return found

    def _chunk_starts(self, block_items: int) -> set[int]:
        """Where the blocks begin with which the chunks do."""
        if self.chunks is not None:
            return set(self.chunks.tolist())
        return set(range(0, self.n_items, -(-CHUNK_ITEMS // block_items) * block_items))

    def _added(self, totals: list[Any]) -> Any:
        """The sum of the totals of the chunks, of whose items none is missing."""
        total = fold(add, totals)
        if total.count != self.n_items:
            raise IntegrityError(
                f"A pass over the data saw {total.count} items; expected {self.n_items}. A block was lost or counted twice: "
                "run the fit again, and make sure that nothing changes the data meanwhile."
            )
        return total

    def stream(self, frame: Framing | None, work: Pass, columns: Columns | None = None) -> Iterator[tuple[slice, Found]]:
        """One pass, not added up: the place of every block and what is found in it, in order. For what is too large to be joined."""
        self.count_pass(frame)
        return zip(self.slices, self._parts(frame, work, columns or {}), strict=True)

    def _parts(self, frame: Framing | None, work: Pass, columns: Columns) -> Iterable[Found]:
        """What a pass finds in every block, in the order of the blocks, computed by the threads."""
        return self.team.map(lambda where: work(*self._seen(frame, work, columns, where)), self.slices)

    def count_pass(self, frame: Framing | None) -> None:
        """Count a pass, if it sees the items."""
        if frame is not BLIND:
            self.passes += 1
            self.team.passes += 1

    def _seen(self, frame: Framing | None, work: Pass, columns: Columns, where: slice) -> tuple[Any, Columns]:
        """Of one block, what a pass sees: its items in a frame, or as they were given where that is None, and the columns that it reads."""
        items: Any = None
        if frame is None:
            items = _Block(self.rows(where), block_weight(self, where))
        elif frame is not BLIND:
            items = self._items(frame, where)
        return items, {name: self._column(columns, name, where) for name in work.reads}

    def _column(self, columns: Columns, name: str, where: slice) -> Array:
        """The numbers of one block."""
        if name == INDEX:
            return np.arange(self.first + where.start, self.first + where.stop)
        return self._block_weight(where) if name == GIVEN_WEIGHT else columns[name][where]

    def _join(self, joined: dict[str, Array], name: str, where: slice, values: Array) -> None:
        if where.stop - where.start == self.n_items:
            joined[name] = values
            return
        if name not in joined:
            joined[name] = np.empty((self.n_items, *values.shape[1:]), dtype=values.dtype)
        joined[name][where] = values

    @property
    def _kept_whole(self) -> bool:
        """Whether framed blocks are kept between passes."""
        return self.n_items * self.row_width * 8 <= KEEP_BYTES

    def _items(self, framing: Framing, where: slice) -> Any:
        items = self._kept.get((framing, where.start))
        if items is None:
            items = self._framed(framing, where)
            if self.size is not None:
                items = replace(items, size=self.size[where])
            if self._kept_whole:
                self._kept[framing, where.start] = items
        return items

    def _framed(self, framing: Framing, where: slice) -> Any:
        """The items of one block in a frame; what took long to find of them is kept, without the items."""
        raw, place = self.rows(where), (framing, ~where.start)
        if place in self._kept:
            return replace(known := self._kept[place], rows=known.renew(raw))
        items = framing.items(raw, block_weight(self, where))
        if self.lasting and getattr(items, "renew", None) is not None:
            self._kept[place] = replace(items, rows=None)
        return items


def block_weight(engine: Engine, where: slice) -> Array:
    """Weights w_i of one block, float64, where its items are."""
    return engine._block_weight(where)


AnyEngine = TypeVar("AnyEngine", bound=Engine)


def doubled(engine: AnyEngine) -> AnyEngine:
    """The same items seen in float64, in blocks of no more than ``doubled_bytes``; a block is converted when it is read.

    An engine that sees few of them so already is that itself.
    """
    if engine.dtype == np.float64 and 8 * engine.row_width * min(engine.n_items, engine.block_items) <= engine.doubled_bytes:
        return engine
    other = copy(engine)
    other.dtype, other._kept, other.lasting, other.seen = np.dtype(np.float64), {}, False, {}
    other._cut(other._within(max(engine.doubled_bytes // (8 * max(engine.row_width, 1)), 1)))
    return other


def in_blocks(engine: AnyEngine, block_items: int) -> AnyEngine:
    """The same items in blocks of another size; none are copied."""
    other = copy(engine)
    other._kept, other.seen = {}, {}
    other._cut(block_items)
    return other


def in_chunks(engine: AnyEngine, chunks: Labels) -> AnyEngine:
    """The same items in chunks that begin and end at ``chunks`` (n_chunks + 1,), whose totals are those that another machine would find."""
    engine.chunks, engine.seen = chunks, {}
    engine._cut(engine.block_items)
    return engine


def reweighted(engine: AnyEngine, weight: Array | None) -> AnyEngine:
    """The same items with other weights (n_items,); none are copied."""
    other = copy(engine)
    other.weight, other._kept, other.seen = weight, {}, {}
    return other


def resized(engine: AnyEngine, frame: Framing, size: Array) -> AnyEngine:
    """Items with weights such that in a frame, where they weigh ``size`` (n_items,) now, each weighs one, or nothing where it did.

    The items that were kept in that frame are kept.
    """
    weight = np.divide(1.0, size, out=np.zeros_like(size), where=size > np.finfo(float).tiny)
    other = reweighted(engine, weight)
    for (each, start), items in engine._kept.items():
        if each is frame and start >= 0:  # numbers alone are found again
            where = slice(start, start + len(items))
            other._kept[each, start] = replace(items, weight=weight[where] * size[where])
    return other


def _once(engine: Engine, work: Any) -> Any:
    """The total of a pass over the items as they were given, computed when it is first asked for."""
    if work in engine.seen:
        engine.count_pass(None)  # a fit counts the same passes wherever its items lie
    else:
        engine.seen[work] = engine.run(None, work).total
    return engine.seen[work]


def weighted_mean(engine: Engine) -> Array:
    """Σ w_i x_i / Σ w_i, in the scaled units of the engine."""
    sums: Total = _once(engine, WeightedSum())
    return sums.total / sums.weight


def digest(engine: Engine) -> str:
    """Of the items in their order, as they were given, times a power of two: the same for arrays and sparse matrices, in any precision."""
    found: DigestSums = _once(engine, Digest())
    return f"{engine.n_items}x{engine.n_dims}-" + "".join(f"{int(word):016x}" for word in found.sums)


def mean_size(engine: Engine, power: int) -> float:
    """Σ w_i Σ x_i**power / n_items, in the scaled units of the engine, and above 0: of power 2, the mean squared norm."""
    energy: Scalar = engine.run(None, Energy(power)).total
    return max(energy.total / engine.n_items, np.finfo(float).tiny)


def sample(engine: Engine, n_items: int, seed: int) -> Engine:
    """The engine itself when it is small and in float64; else one in memory on a fixed random sample of the weighted items."""
    if engine.n_items <= n_items and engine.dtype == np.float64:
        return engine
    chosen = sampled(engine, n_items, seed)
    small = engine.select(chosen)
    small.size = None if engine.size is None else engine.size[chosen]
    return small


def sampled(engine: Engine, n_items: int, seed: int) -> Labels:
    """A fixed random sample of the places of weighted items, in their order."""
    weighted = None if engine.weight is None else np.flatnonzero(engine.weight > 0)
    n_weighted = engine.n_items if weighted is None else len(weighted)
    if n_weighted > n_items:
        chosen = np.sort(np.random.default_rng(seed).choice(n_weighted, n_items, replace=False))
    else:
        chosen = np.arange(n_weighted)
    return chosen if weighted is None else weighted[chosen]


# Numbers from which the median is taken: it need not be exact, only in the midst of the items.
MEDIAN_NUMBERS = 1 << 20


def median_items(engine: Engine) -> int:
    """Items of that sample."""
    return max(MEDIAN_NUMBERS // engine.n_dims, 16)


def median(engine: Engine) -> Array:
    """Weighted median of every dimension over a fixed sample of the items, in the scaled units of the engine."""
    few = sample(engine, median_items(engine), 0)
    whole = slice(0, few.n_items)
    items, weight = few.rows(whole).framed(None, None, np.zeros(few.n_dims)).take(np.arange(few.n_items)), block_weight(few, whole)
    if (weight == weight[0]).all():  # then there is no need for their order
        middle = (few.n_items - 1) // 2
        return np.ascontiguousarray(np.partition(items.T, middle, axis=1)[:, middle])
    order = items.argsort(axis=0, kind="stable")
    below = np.cumsum(weight[order], axis=0)
    middle = (below < below[-1] / 2).sum(axis=0)
    return np.take_along_axis(items, order, axis=0)[middle, np.arange(few.n_dims)]


# Odd multipliers of a multiplicative hash; the golden ratio in 64 bits spreads consecutive numbers.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def multipliers(n_dims: int) -> Any:
    """One odd 64-bit number per dimension, for ``keys``."""
    mixed = (np.arange(1, n_dims + 1, dtype=np.uint64) * _GOLDEN) ^ (np.arange(1, n_dims + 1, dtype=np.uint64) * _GOLDEN >> np.uint64(29))
    return mixed * _GOLDEN | np.uint64(1)


def scrambled(bits: Any) -> Any:
    """Bits of float64 numbers, well mixed in their place, and 0 for 0.

    Small whole numbers differ in their highest bits alone, which a multiplication cannot carry down.
    """
    moved = bits >> np.uint64(32)
    bits ^= moved
    bits *= _GOLDEN
    bits ^= np.right_shift(bits, np.uint64(29), out=moved)
    return bits
