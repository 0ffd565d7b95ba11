"""Items in the chunks of a dask array: every pass is one task for each chunk, and its totals are added here in the order of the chunks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from typing import Any, Self
from uuid import uuid4
from weakref import WeakKeyDictionary, ref

import numpy as np
from scipy import sparse

from .._common.typing import Array, Labels
from ..exceptions import DistributedWarning
from ..passes.base import GIVEN_WEIGHT, INDEX, Columns, Found, Pass
from ..sources import FEW_BYTES
from ..sources.chunked import Chunked
from . import engine_class
from .base import BLIND, Engine, Framing, RawRows, in_chunks
from .layout import automatic
from .remote import Answer, Order, Part, Recipe, Shown, Sight, computed, packed, unpacked
from .threads import ThreadTeam

# Items whose labels, scales and margins come to this process at the end: 16 bytes each of float32 data, 512 MiB in all, and some 40 on
# the way. Those of more are arrays of dask, found again from the centres when they are asked for, which takes a pass each time.
BROUGHT_ITEMS = 1 << 25


class DaskColumn:
    """A column that lies with the workers, or nowhere: a value from which each chunk's part is found again."""

    def __init__(self, engine: DaskEngine, recipe: Recipe) -> None:
        self._engine, self.recipe = engine, recipe

    def host(self) -> Array:
        """The column as one array of this process."""
        return self._engine.fetched(self.recipe)


class Blocks:
    """The places of the blocks of all items, which are too many for a list where the items are.

    Parameters
    ----------
    chunks : ndarray of shape (n_chunks + 1,)
    size : int
        Items of a block; the last of a chunk has fewer.
    """

    def __init__(self, chunks: Labels, size: int) -> None:
        self._chunks, self._size = chunks, size
        self._first = np.append(0, np.cumsum(-(-np.diff(chunks) // size)))

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, number: int) -> slice:
        chunk = int(np.searchsorted(self._first, number, "right")) - 1
        start = int(self._chunks[chunk] + (number - self._first[chunk]) * self._size)
        return slice(start, min(start + self._size, int(self._chunks[chunk + 1])))

    def __iter__(self) -> Iterator[slice]:
        for begin, stop in pairwise(self._chunks.tolist()):
            yield from (slice(start, min(start + self._size, stop)) for start in range(begin, stop, self._size))


class HeldColumn:
    """A column that came from this process, and whose parts lie with the workers."""

    def __init__(self, values: Array, part: Part) -> None:
        self._values, self.recipe = values, part

    def host(self) -> Array:
        """The column as one array of this process."""
        return self._values


class DaskEngine(Engine):
    """Items are those of a matrix in chunks; each chunk is seen by an engine of one machine, named ``local``.

    Parameters
    ----------
    items : Chunked
    weight : ndarray of shape (n_items,) or None
    dim_factor : ndarray of shape (n_dims,) or None
    shift : int
    team : ThreadTeam
    """

    chunks: Labels
    #: Whether columns come to this process with every pass.
    _near = False

    def __init__(self, items: Chunked, weight: Array | None, dim_factor: Array | None, shift: int, team: ThreadTeam) -> None:
        self._data, self.local, self._dim_factor = items, items.engine or automatic(items), dim_factor
        empty = sparse.csr_array((0, items.shape[1]), dtype=items.dtype) if items.is_sparse else np.empty((0, items.shape[1]), items.dtype)
        like = engine_class(self.local).of(empty, None, dim_factor, shift, team)
        self.reads_sparse, self.forms_rows, self.in_memory, self.block_numbers = (
            like.reads_sparse,
            like.forms_rows,
            like.in_memory,
            like.block_numbers,
        )
        self.row_width = -(-items.nnz // items.shape[0]) if items.is_sparse else items.shape[1]
        self.chunks = np.append(0, np.cumsum(items.lengths))
        super().__init__(*items.shape, like.dtype, weight, shift, team)
        self.given_dtype = like.given_dtype
        self._fit, self._numbers = uuid4().hex, count()
        self._frames: list[tuple[Any, str]] = []
        self._sights: list[Sight] = []
        self._arithmetic: set[str] = set()
        #: Of every array of this process that tasks read, while anything refers to it: what stands for its parts, or it itself.
        self._arrays: WeakKeyDictionary[Part, Any] = WeakKeyDictionary()
        self._sent: list[tuple[ref[Array], ref[Part]]] = []

    @classmethod
    def of(cls, items: Chunked, weight: Array | None, dim_factor: Array | None, shift: int, team: ThreadTeam) -> Self:
        return cls(items, weight, dim_factor, shift, team)

    # -- passes -----------------------------------------------------------------------------------------------------------------

    def computed(self, frame: Framing | None, work: Pass, columns: Columns | None = None) -> Found:
        if self._near and frame is BLIND:  # all that it reads is here
            return super().computed(frame, work, columns)
        began = self.team.clock()
        recipe = self._recipe(frame, work, columns or {})
        joined: dict[str, Any] = {}
        total: Any = None
        names: tuple[str, ...] = ()
        for where, answer in self._answers(replace(recipe, name="*" if self._near else "")):
            total = answer.total if total is None else total + answer.total
            names = answer.names
            for name, values in answer.columns.items():
                self._join(joined, name, where, values)
        found = Found(self._added([total]), joined)
        self.pass_seconds = self.team.clock() - began
        if not self._near:
            found.columns.update(self._left(recipe, names))
        return found

    def promised(self, frame: Framing | None, work: Pass, columns: Columns, names: Iterable[str]) -> dict[str, Any]:
        return super().promised(frame, work, columns, names) if self._near else self._left(self._recipe(frame, work, columns), names)

    def _left(self, recipe: Recipe, names: Iterable[str]) -> dict[str, Any]:
        """The columns that a pass leaves with the workers."""
        settled = _settled(recipe)
        return {name: DaskColumn(self, replace(settled, name=name)) for name in names}

    def stream(self, frame: Framing | None, work: Pass, columns: Columns | None = None) -> Iterator[tuple[slice, Found]]:
        if self._near and frame is BLIND:
            return super().stream(frame, work, columns)
        recipe = self._recipe(frame, work, columns or {})
        return ((where, Found(each.total, each.columns)) for where, each in self._answers(replace(recipe, name="*")))

    def fetched(self, recipe: Recipe) -> Array:
        """A column as one array of this process."""
        joined: dict[str, Array] = {}
        for where, answer in self._answers(recipe, totals=False):
            self._join(joined, recipe.name, where, answer.columns[recipe.name])
        return joined[recipe.name]

    def shown(self, column: Any, dtype: Any) -> Any:
        if not isinstance(column, DaskColumn) or self.n_items <= BROUGHT_ITEMS:
            return super().shown(column, dtype)
        recipe = column.recipe.unweighted
        places = zip(range(len(self.chunks) - 1), self.chunks[:-1].tolist(), np.diff(self.chunks).tolist(), strict=True)
        return self._data.later(
            recipe.name, Shown(self._fit, self.n_dims, recipe, dict(zip(self._data.numbers, places, strict=True))), dtype
        )

    def near(self) -> Engine:
        """Few items in this process; else the same, with columns that are."""
        if self._data.nbytes <= FEW_BYTES:
            rows = self._data.taken(np.arange(self.n_items), self.team.check)
            here = engine_class(self.local).of(rows, self.weight, self._dim_factor, self.shift, self.team)
            here.weight_shift, here.size = self.weight_shift, self.size
            return in_chunks(here, self.chunks).near()
        other = copy(self)
        other._near = True
        return other

    def hold(self, values: Any) -> Any:
        if self._near or not isinstance(values, np.ndarray):
            return values
        return HeldColumn(values, self._held(values))

    def _answers(self, recipe: Recipe, *, totals: bool = True) -> Iterator[tuple[slice, Answer]]:
        """What every chunk says, in order."""
        if totals:
            self.count_pass(recipe.frame)
        parts = tuple(sorted(recipe.parts, key=lambda part: part.key))
        arrays = [self._arrays[part] for part in parts]
        work = partial(computed, Order(self._fit, self.n_dims, recipe, parts, totals))
        borders = list(pairwise(self.chunks.tolist()))
        arguments = [
            (
                (number, start, stop - start),
                *(packed(each[start:stop]) if isinstance(each, np.ndarray) else each for each in arrays),
            )
            for number, (start, stop) in enumerate(borders)
        ]
        name, heavy = type(recipe.work).__name__.lower(), recipe.name == "*"
        for border, answer in zip(borders, self._data.map(name, work, arguments, self.team.check, heavy=heavy), strict=True):
            self._compare(answer.arithmetic)
            yield slice(*border), replace(answer, columns={name: unpacked(values) for name, values in answer.columns.items()})

    def _recipe(self, frame: Framing | None, work: Pass, columns: Columns) -> Recipe:
        read = {name: columns[name] for name in work.reads if name not in (INDEX, GIVEN_WEIGHT)}
        read = {name: self._part(each) if isinstance(each, np.ndarray) else each.recipe for name, each in read.items()}
        return Recipe(f"{next(self._numbers)}", "", self._sight(), frame, self._frame_key(frame), work, read)

    def _part(self, values: Array) -> Part:
        """An array of this process as what tasks read: sent with them where columns come back with every pass, else held."""
        if not self._near:
            return self._held(values)
        part = Part(f"{next(self._numbers)}")
        self._arrays[part] = values
        return part

    def _held(self, values: Array) -> Part:
        """An array of this process as what tasks read, sent once."""
        for array, sent in self._sent:
            if array() is values and (known := sent()) is not None:
                return known
        part = Part(f"{next(self._numbers)}")
        self._arrays[part] = self._data.hold(packed(values))
        self._sent = [each for each in self._sent if each[1]() is not None] + [(ref(values), ref(part))]
        return part

    def _frame_key(self, frame: Any) -> str:
        """Names a frame; the same one has the same name."""
        for known, key in self._frames:
            if known is frame:
                return key
        self._frames.append((frame, f"{next(self._numbers)}"))
        return self._frames[-1][1]

    def _sight(self) -> Sight:
        """How the items are seen now."""
        weight, size = (None if each is None else self._held(each) for each in (self.weight, self.size))
        for known in self._sights:
            same = (known.weight, known.size) == (weight, size)
            if same and (known.dtype, known.block_items) == (self.dtype, self.block_items):
                return known
        key = f"{next(self._numbers)}"
        found = Sight(
            key=key,
            engine=self.local,
            dtype=self.dtype,
            shift=self.shift,
            row_width=self.row_width,
            block_items=self.block_items,
            turned=self._data.turned,
            dim_factor=self._dim_factor,
            weight=weight,
            size=size,
        )
        self._sights.append(found)
        return found

    def _compare(self, arithmetic: str) -> None:
        if self._arithmetic and arithmetic not in self._arithmetic:
            warnings.warn(
                "Workers of this cluster round differently, as processors of different types do: the last digits of the result depend on "
                "who computed what. For the same bits every time, use workers of one type.",
                DistributedWarning,
                stacklevel=2,
            )
        self._arithmetic.add(arithmetic)

    # -- items in this process --------------------------------------------------------------------------------------------------

    def _slices(self, size: int) -> Any:
        return Blocks(self.chunks, size)

    def select(self, index: Labels) -> Engine:
        weight = None if self.weight is None else self.weight[index]
        return self._here(index, weight).select(np.arange(len(index)))

    def rows(self, where: slice) -> RawRows:
        return self._here(np.arange(where.start, where.stop), None).rows(slice(0, where.stop - where.start))

    def outer(self, ref: Array | None, *, rooted: bool = False) -> Array:
        return self._here(np.arange(self.n_items), self.weight).outer(ref, rooted=rooted)

    def _here(self, index: Labels, weight: Array | None) -> Engine:
        """Some items, as they were given, on an engine of this process."""
        rows = self._data.taken(index, self.team.check)
        return engine_class(self.local).of(rows, weight, self._dim_factor, self.shift, self.team)


def _settled(recipe: Recipe) -> Recipe:
    """The shortest way to the same columns: without those that were only compared, and two changes in a row as one."""
    work: Any = getattr(recipe.work, "bare", recipe.work)
    recipe = replace(recipe, work=work, columns={name: each for name, each in recipe.columns.items() if name in work.reads})
    before = recipe.columns.get(getattr(work, "changes", ""))
    if not isinstance(before, Recipe) or not isinstance(before.work, type(work)):
        return recipe
    if (before.sight.key, before.frame_key) != (recipe.sight.key, recipe.frame_key):
        return recipe
    both: Pass = work.after(before.work)
    return replace(recipe, work=both, columns=before.columns)
