"""What is computed of one chunk of items, on whatever machine: a pass, in the blocks and with the engine that all chunks have.

Columns are values: of a chunk they can be found again from what made them (a pass, its frame, the columns that it read), whoever has died.
What a process has found before of a chunk it remembers, within limits, because that is quicker; it changes no bit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._common.typing import Array
from ..passes.base import Found, Pass, host
from ..sources.chunked import rows_of
from . import engine_class
from .base import BLIND, Engine, Framing, doubled, in_chunks
from .threads import ThreadTeam

# What a process remembers of all its chunks, in bytes, and as a part of what a worker may hold; of a chunk, so many columns.
REMEMBERED_BYTES, REMEMBERED_PART = 256 << 20, 1 / 16
REMEMBERED_COLUMNS, REMEMBERED_FRAMES = 8, 16
# What the frame of an item takes.
FRAME_BYTES = 28


@dataclass(frozen=True)
class Part:
    """An array of the client, of one number or row for each item; a task gets the part of its chunk."""

    key: str


@dataclass(frozen=True)
class Sight:
    """How the items of a chunk, or of all, are seen.

    Attributes
    ----------
    key : str
        Names it.
    engine : str
        The name of the engine that computes a chunk.
    dtype : dtype
        In which it computes; float64 may be more than the items have.
    shift, row_width, block_items : int
        As an engine has them for all items.
    turned : bool
        Whether the chunk's columns are the items.
    dim_factor : ndarray of shape (n_dims,) or None
    weight, size : Part or None
    """

    key: str
    engine: str
    dtype: Any
    shift: int
    row_width: int
    block_items: int
    turned: bool
    dim_factor: Array | None
    weight: Part | None
    size: Part | None

    @property
    def parts(self) -> set[Part]:
        """Arrays that are needed."""
        return {each for each in (self.weight, self.size) if each is not None}

    def engine_on(self, rows: Any, first: int, parts: Mapping[Part, Array], team: ThreadTeam) -> Engine:
        """The engine on the rows of a chunk, with the parts of it that the arrays have."""
        weight, size = (None if each is None else parts[each] for each in (self.weight, self.size))
        engine = engine_class(self.engine).of(rows, weight, self.dim_factor, self.shift, team)
        engine.row_width, engine.first, engine.size = self.row_width, first, size
        in_chunks(engine, np.array([0, engine.n_items]))
        if engine.dtype != self.dtype:
            engine = doubled(engine)
        engine._cut(self.block_items)
        return engine


@dataclass(frozen=True)
class Recipe:
    """How a column is found: by a pass over items seen in a frame, from other columns.

    Attributes
    ----------
    key, name : str
        Of the pass, and of the column among those it finds.
    sight : Sight
    frame, frame_key
    work : Pass
    columns : dict of str to Part or Recipe
        Those that it reads.
    """

    key: str
    name: str
    sight: Sight
    frame: Framing | None
    frame_key: str
    work: Pass
    columns: Mapping[str, Any]

    @property
    def unweighted(self) -> Recipe:
        """The same without the weights and sizes of items, for a column that does not depend on them."""
        sight = replace(self.sight, key=f"{self.sight.key} without weights", weight=None, size=None)
        columns = {name: each if isinstance(each, Part) else each.unweighted for name, each in self.columns.items()}
        return replace(self, sight=sight, columns=columns)

    @property
    def parts(self) -> set[Part]:
        """Arrays of the client that are needed to find it, whatever is remembered."""
        return self.sight.parts.union(*({each} if isinstance(each, Part) else each.parts for each in self.columns.values()))


class Place(NamedTuple):
    """Which chunk it is: its number, its first item, and how many it has."""

    number: int
    first: int
    n_items: int


@dataclass(frozen=True)
class Order:
    """What is asked of every chunk.

    Attributes
    ----------
    fit : str
        Names the data.
    n_dims : int
    recipe : Recipe
        The pass; its name is that of the column that is sent back: "" for none, "*" for all.
    parts : tuple of Part
        Of which arrays a chunk's parts come with it, in this order.
    totals : bool
        Whether the totals of the pass are asked for, or the column alone.
    """

    fit: str
    n_dims: int
    recipe: Recipe
    parts: tuple[Part, ...] = ()
    totals: bool = True


@dataclass(frozen=True)
class Answer:
    """What was found in a chunk.

    Attributes
    ----------
    total
        None where it was not asked for.
    columns : dict of str to ndarray
        Those that were asked for.
    names : tuple of str
        Of all columns that the pass finds.
    arithmetic : str
        A digest of how this machine rounds.
    """

    total: Any
    columns: dict[str, Array]
    names: tuple[str, ...]
    arithmetic: str


@dataclass
class _Remembered:
    """What a process has found of a chunk; one task at a time has it."""

    kept: dict[str, Any] = field(default_factory=dict)
    columns: OrderedDict[tuple[str, str], Array] = field(default_factory=OrderedDict)
    lock: Any = field(default_factory=Lock)

    def nbytes(self, n_items: int) -> int:
        return sum(each.nbytes for each in self.columns.values()) + FRAME_BYTES * n_items * len(self.kept)


_memory: OrderedDict[tuple[str, int], tuple[_Remembered, int]] = OrderedDict()
_frames: OrderedDict[tuple[str, str], Any] = OrderedDict()
_lock = Lock()


@contextmanager
def _remembered(fit: str, place: Place) -> Iterator[_Remembered]:
    """What is known of a chunk, and what is found of it within the block; nothing where another task of the same chunk is at it."""
    with _lock:
        found, _ = _memory.get((fit, place.number), (_Remembered(), 0))
        mine = found.lock.acquire(blocking=False)
    if not mine:
        yield _Remembered()
        return
    try:
        yield found
        _remember(fit, place, found)
    finally:
        found.lock.release()


def _same_frame(fit: str, key: str, frame: Any) -> Any:
    """A frame as it came first: what is kept of items is kept for that object."""
    with _lock:
        found = _frames.setdefault((fit, key), frame)
        _frames.move_to_end((fit, key))
        while len(_frames) > REMEMBERED_FRAMES:
            _frames.popitem(last=False)
        return found


def _remember(fit: str, place: Place, found: _Remembered) -> None:
    """Keep what was found, and forget what was used longest ago."""
    while len(found.columns) > REMEMBERED_COLUMNS:
        found.columns.popitem(last=False)
    with _lock:
        _memory[fit, place.number] = found, found.nbytes(place.n_items)
        _memory.move_to_end((fit, place.number))
        while _memory and sum(nbytes for _, nbytes in _memory.values()) > min(REMEMBERED_BYTES, REMEMBERED_PART * _limit()):
            _memory.popitem(last=False)


@cache
def _limit() -> float:
    """Bytes that the worker, if this process is one, may hold."""
    try:
        from distributed import get_worker

        return float(get_worker().memory_manager.memory_limit or np.inf)
    except (ImportError, ValueError):
        return np.inf


class _Chunk:
    """One chunk, whose numbers are loaded when a pass looks at them."""

    def __init__(self, block: Any, order: Order, place: Place, parts: tuple[Array, ...], memory: _Remembered, team: ThreadTeam) -> None:
        self._block, self._order, self._place, self._memory, self._team = block, order, place, memory, team
        self._parts = dict(zip(order.parts, map(unpacked, parts), strict=True))
        self._rows: Any = None

    def found(self, recipe: Recipe) -> Found:
        """What a pass finds."""
        columns = {name: self.column(each) if isinstance(each, Recipe) else self._parts[each] for name, each in recipe.columns.items()}
        blind = recipe.frame is BLIND
        sight = recipe.sight
        engine = sight.engine_on(self._stand_in() if blind else self._loaded(), self._place.first, self._parts, self._team)
        frame = recipe.frame
        if not blind and frame is not None:
            frame = _same_frame(self._order.fit, recipe.frame_key, frame)
            if engine.lasting and engine.frames_are_few:
                engine._kept = self._memory.kept.setdefault(sight.key, {})
        found = engine.run(frame, recipe.work, columns)
        found = replace(found, columns={name: host(values) for name, values in found.columns.items()})  # from a device, where it was there
        if recipe.name != "*":  # what is sent back is not asked for again
            for name, values in found.columns.items():
                self._memory.columns[recipe.key, name] = values
        return found

    def column(self, recipe: Recipe) -> Array:
        """A column, found again where it is not remembered."""
        known = self._memory.columns.get((recipe.key, recipe.name))
        return self.found(recipe).columns[recipe.name] if known is None else known

    def _loaded(self) -> Any:
        if self._rows is None:
            self._rows = rows_of(self._block, turned=self._order.recipe.sight.turned)
        return self._rows

    def _stand_in(self) -> Any:
        """As many items, without numbers."""
        shape = self._place.n_items, self._order.n_dims
        if engine_class(self._order.recipe.sight.engine).reads_sparse:
            return sparse.csr_array(shape)
        return np.broadcast_to(np.zeros((1, 1)), shape)


def computed(order: Order, block: Any, place: tuple[int, int, int], *parts: Array) -> Answer:
    """Do what is asked of a chunk, with its parts of other arrays."""
    where = Place(*place)
    with ThreadTeam(1) as team, closing(team), _remembered(order.fit, where) as memory:
        chunk = _Chunk(block, order, where, parts, memory, team)
        recipe = order.recipe
        if order.totals:
            found = chunk.found(recipe)
            sent = found.columns if recipe.name == "*" else {}
        else:
            found, sent = Found(None), {recipe.name: chunk.column(recipe)}
        packed_columns = {name: packed(values) for name, values in sent.items()}
        return Answer(found.total, packed_columns, tuple(found.columns), arithmetic())


def packed(values: Array) -> Array:
    """Numbers as they travel: those that are whole and not negative, as labels are, in the fewest bytes."""
    if values.dtype != np.intp or not values.size or values.min() < 0:
        return values
    return values.astype(np.min_scalar_type(int(values.max())))


def unpacked(values: Array) -> Array:
    """What ``packed`` made this of: no pass has whole numbers without a sign, but keys of eight bytes."""
    return values.astype(np.intp) if values.dtype.kind == "u" and values.dtype.itemsize < 8 else values


class Shown:
    """A column as a function of a chunk, for an array of dask that is computed when it is asked for.

    It is no dataclass: dask would look into one.

    Parameters
    ----------
    fit, n_dims, recipe
        As in ``Order``.
    places : dict of int to tuple of int
        By the number of the chunk in X: that among those with items, its first item, and how many.
    """

    def __init__(self, fit: str, n_dims: int, recipe: Recipe, places: Mapping[int, tuple[int, int, int]]) -> None:
        self._fit, self._n_dims, self._recipe, self._places = fit, n_dims, recipe, places

    def __call__(self, block: Any, dtype: Any, block_id: tuple[int, ...]) -> Array:
        """The part of one chunk."""
        if block_id[0] not in self._places:
            return np.zeros(0, dtype)
        order = Order(self._fit, self._n_dims, self._recipe, totals=False)
        return unpacked(computed(order, block, self._places[block_id[0]]).columns[self._recipe.name])


@cache
def arithmetic() -> str:
    """A digest of a fixed product: equal on machines that round alike."""
    numbers = np.random.default_rng(0).random((96, 80))
    with ThreadTeam(1) as team, closing(team):
        parts = [
            numbers @ numbers.T,
            (numbers.astype(np.float32) @ numbers.astype(np.float32).T).astype(np.float64),
            np.exp(numbers),
            np.log(numbers),
        ]
    return sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]
