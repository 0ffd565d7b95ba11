"""Arrays and sparse matrices whose hot passes are compiled: one call for thousands of items, those of arrays framed a few at a time.

The plain passes are what the compiled ones are tested against, and what every other pass is made of. A compiled pass is a line in
``KERNELS`` and a class here that prepares the centres once and then turns items into what the plain pass would have found.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from .._common.arithmetic import shifted
from .._common.typing import Array, Labels
from ..distortion.base import Distortion
from ..distortion.euclidean import Euclidean
from ..distortion.line import Line
from ..exceptions import MissingExtraError
from ..passes.assigned import Arcs, Worth
from ..passes.base import INDEX, Columns, Count, Found, Pass
from ..passes.hard import Costs, HardStats, Labelled, Margins, Nearest, OwnAndOther, TwoCheapest
from ..passes.moves import MoveGains, Movers
from ..passes.raw import Coordinates, Subspace, Sums
from ..passes.samples import Shares, ShareSums
from ..passes.several import EachSums, NearestInEach
from ..passes.soft import Gibbs
from ..passes.state import Stats
from ..passes.swaps import Sides, SideSums, SwapCosts, Swaps
from .base import Engine, Framing, block_weight, multipliers
from .dense import DenseEngine, DenseRawRows, DenseRows
from .sparse import SparseEngine, SparseRawRows, SparseRows
from .threads import ThreadTeam

try:
    from . import kernels
except ImportError as error:
    raise MissingExtraError(
        f"Compiled passes need numba, which cannot be imported ({error}): pip install 'orthonmf[fast]', or use engine='auto'."
    ) from error

# A run of items, which one call sees: enough that the call itself takes no time, few enough for many threads, and for a copy of it.
RUN_BYTES = 1 << 22
MIN_RUN, MAX_RUN = 16, 1 << 15
# A run of sparse items stores so many numbers for each dimension, at least, times what a plain block does.
RUN_DIMS = 4
# Beyond 2 to this power, squares of the factor of the items may overflow: they are scaled first.
LARGEST_SHIFT = 256
# Losses that the kernels know, and what each item is described by.
NUMBERS: dict[type, Callable[..., None]] = {Line: kernels.line_numbers, Euclidean: kernels.mean_numbers}


# Of every item of a run: factor and along, with x' = factor · x − along · ref in its frame, ‖x'‖² and ω.
Numbers = tuple[Array, Array, Array, Array]


class _Centers:
    """Centres as the kernels read them, with the frame: along the reference, beside it, that squared, and its product with the reference.

    Those beside it are ``turned``, (n_dims, k), for products of all items with all of them.
    """

    def __init__(self, frame: Distortion, centers: Array, dtype: Any, *, turned: bool = True) -> None:
        self.shape, self.frame = centers.shape, frame
        rest = centers[..., int(frame.scaled) :]
        cosine = centers[..., 0].copy() if frame.scaled else np.zeros(centers.shape[:-1])
        squares = np.einsum("...d,...d->...", rest, rest)
        beside = np.ascontiguousarray(rest.T if turned else rest, dtype)
        self.read = (frame.ref, frame.scaled), (cosine.astype(dtype), beside, squares.astype(dtype), rest @ frame.ref)

    def room(self) -> tuple[Array, Array]:
        """Room for sums of items by their component: along the reference, and beside it."""
        return np.zeros(self.shape[:-1]), np.zeros((*self.shape[:-1], len(self.frame.ref)))

    def settled(self, values: Any, parallel: Array, beside: Array) -> Array:
        """The sums of the items' coordinates; from those of items that were not formed, what the reference adds up to is subtracted."""
        if not isinstance(values, tuple):
            return np.concatenate([parallel[..., None], beside], axis=-1) if self.frame.scaled else beside
        found = np.empty(self.shape) if self.frame.scaled else beside
        flat, whole = beside.reshape(-1, len(self.frame.ref)), found.reshape(-1, self.shape[-1])
        kernels.settled(flat, parallel.ravel(), self.frame.ref, whole)
        return found


class _Hard:
    """Labels, and the sums that they make: for one set of centres, or for several of equal size."""

    def __init__(self, work: Nearest | NearestInEach, frame: Distortion, dtype: Any) -> None:
        self.labelled, self.several = bool(work.reads), work.centers.ndim == 3
        self.n_sets = len(work.centers) if self.several else 1
        self.centers = _Centers(frame, work.centers.reshape(-1, work.centers.shape[-1]), dtype)

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        n_centers, n_items = self.centers.shape[0], len(numbers[0])
        labels = np.array(columns["labels"], dtype=np.intp) if self.labelled else np.full(n_items, -1)
        mass, sizes, cost = np.zeros(n_centers), np.zeros(n_centers, dtype=np.intp), np.zeros(n_centers)
        room, changed = self.centers.room(), np.zeros(self.n_sets, dtype=np.intp)
        found = labels.reshape(n_items, self.n_sets)
        kernels.hard(values, numbers, *self.centers.read, found, mass, sizes, cost, *room, changed)
        sums = self.centers.settled(values, *room)
        if self.several:
            shape = self.n_sets, n_centers // self.n_sets
            each = (mass.reshape(shape), sizes.reshape(shape), cost.reshape(shape), sums.reshape(*shape, -1))
            return Found(EachSums(n_items, *each, changed), {"labels": labels})
        stats = HardStats(n_items, mass, sizes, cost, sums, int(changed[0]))
        return Found(stats, {"labels": labels})


class _Given:
    """The sums of given labels."""

    def __init__(self, work: Labelled, frame: Distortion, dtype: Any) -> None:
        self.centers = _Centers(frame, work.centers, dtype, turned=False)

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        n_centers = self.centers.shape[0]
        mass, sizes, cost, room = np.zeros(n_centers), np.zeros(n_centers, dtype=np.intp), np.zeros(n_centers), self.centers.room()
        kernels.labelled(values, numbers, *self.centers.read, columns["labels"], mass, sizes, cost, *room)
        return Found(HardStats(len(numbers[0]), mass, sizes, cost, self.centers.settled(values, *room), 0))


@dataclass(frozen=True)
class _Leads:
    """The nearest of some centres in a frame, for every item of a run, and by how much it leads: √d to the next less √d to it."""

    frame: Distortion
    points: Array
    labels: Labels
    lead: Array


class _Led:
    """Nearest centres of items in CSR form, found anew where those of the last pass may no longer be it, and the sums that they make.

    Each run of items has its own ``_Leads``, of the last pass that it was seen in.
    """

    def __init__(self, work: Nearest, frame: Distortion, dtype: Any) -> None:
        self.labelled, self.frame, self.points = work.labelled, frame, work.centers
        self.centers, self.given = _Centers(frame, work.centers, dtype), _Given(Labelled(work.centers), frame, dtype)
        _, (cosine, _, rest_sq, _) = self.centers.read
        self.far = float(np.linalg.norm(frame.ref) + np.sqrt((cosine**2 + rest_sq).max()))
        self._moved: tuple[Any, Array] = None, np.zeros(len(work.centers))

    def follows(self, before: _Leads | None) -> _Leads | None:
        """What was found of items before, if that was in the same frame and of as many centres."""
        if before is None or before.frame is not self.frame or before.points.shape != self.points.shape:
            return None
        return before

    def moved(self, centers: Array) -> Array:
        """How far every centre is from where it was: for all runs of items the same."""
        last, moved = self._moved
        if last is not centers:
            step = self.points - centers
            moved = np.sqrt(np.einsum("ij,ij->i", step, step))
            self._moved = centers, moved
        return moved

    def __call__(self, values: Any, numbers: Numbers, columns: Columns, before: _Leads | None) -> tuple[Found, _Leads]:
        before, n_items = self.follows(before), len(numbers[0])
        moved = np.zeros(len(self.points)) if before is None else self.moved(before.points)
        labels = np.full(n_items, -1) if before is None else before.labels.astype(np.intp)
        lead = np.zeros(n_items) if before is None else before.lead.copy()
        (_, scaled), centers = self.centers.read
        kernels.led(*values, numbers, scaled, centers, moved, self.far, labels, lead)
        changed = int(np.count_nonzero(labels != columns["labels"])) if self.labelled else n_items
        stats = self.given(values, numbers, {"labels": labels}).total
        leads = _Leads(self.frame, self.points, labels.astype(np.int32), lead)
        return Found(replace(stats, changed=changed), {"labels": labels}), leads


class _Soft:
    """The sums of Gibbs responsibilities."""

    def __init__(self, work: Gibbs, frame: Distortion, dtype: Any) -> None:
        self.state, self.centers = work.state, _Centers(frame, work.state.centers, dtype)

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        mass, room = np.zeros(self.centers.shape[0]), self.centers.room()
        totals = kernels.soft(values, numbers, *self.centers.read, self.state.beta, self.state.log_mass, mass, *room)
        weight, log_partition, distortion = totals
        sums = self.centers.settled(values, *room)
        return Found(Stats(len(numbers[0]), weight=weight, mass=mass, sums=sums, log_partition=log_partition, distortion=distortion))


class _Shares:
    """What every item costs about its nearest centre."""

    def __init__(self, work: Shares, frame: Distortion, dtype: Any) -> None:
        self.centers = _Centers(frame, work.centers, dtype)

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        weight = numbers[-1]
        labels, least = np.empty(len(weight), dtype=np.int32), np.empty(len(weight))
        kernels.nearest(values, numbers, *self.centers.read, labels, least)
        cost = weight * np.maximum(least, 0)
        total = ShareSums(len(weight), float(cost.sum()), np.bincount(labels, weight, self.centers.shape[0]))
        return Found(total, {"labels": labels, "cost": cost, "mass": weight.copy()})


class _Costs:
    """What every item costs in every component."""

    def __init__(self, work: Costs, frame: Distortion, dtype: Any) -> None:
        self.centers = _Centers(frame, work.centers, dtype)

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        costs = np.empty((len(numbers[0]), self.centers.shape[0]))
        kernels.costs(values, numbers, *self.centers.read, costs)
        return Found(Count(len(numbers[0])), {"costs": costs})


class _FromCosts(_Costs):
    """What is found from what every item costs in every component."""

    def __init__(self, work: Arcs | Worth, frame: Distortion, dtype: Any) -> None:
        super().__init__(Costs(work.centers), frame, dtype)
        self.work = work

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        return self.work.of(super().__call__(values, numbers, columns).columns["costs"].T, columns)


class _TwoCheapest:
    """Where every item is cheapest, and next."""

    def __init__(self, work: TwoCheapest, frame: Distortion, dtype: Any) -> None:
        self.prices, self.centers = work.prices, _Centers(frame, work.centers, dtype)

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        (labels, runner), slack = np.empty((2, len(numbers[0])), dtype=np.intp), np.empty(len(numbers[0]))
        kernels.two_cheapest(values, numbers, *self.centers.read, self.prices, labels, runner, slack)
        return Found(Count(len(numbers[0])), {"labels": labels, "runner": runner, "slack": slack})


class _Distances:
    """Distances to an item's own centre and to the nearest other."""

    def __init__(self, work: OwnAndOther | Margins, frame: Distortion, dtype: Any) -> None:
        self.work, self.centers = work, _Centers(frame, work.centers, dtype)

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        own, other = np.empty((2, len(numbers[0])))
        kernels.own_and_other(values, numbers, *self.centers.read, columns["labels"], own, other)
        return Found(Count(len(numbers[0])), self.columns(own, other, numbers))

    def columns(self, own: Array, other: Array, numbers: Numbers) -> dict[str, Array]:
        """What is said of every item."""
        *_, sq, weight = numbers
        return {"own": np.maximum(own, 0), "second": np.maximum(other, 0), "sq": sq.astype(np.float64), "weight": weight.copy()}


class _Margins(_Distances):
    """The margin between the two distances."""

    work: Margins

    def columns(self, own: Array, other: Array, numbers: Numbers) -> dict[str, Array]:
        return {"margin": self.work.between(own, other, numbers[2])}


class _Moves:
    """Items whose move pays."""

    def __init__(self, work: MoveGains, frame: Distortion, dtype: Any) -> None:
        self.work, self.centers = work, _Centers(frame, work.centers, dtype)

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        gain, goal, labels = np.empty(len(numbers[0])), np.zeros(len(numbers[0]), dtype=np.intp), columns["labels"]
        moving = columns["together"] if self.work.together else numbers[-1]
        kernels.moves(values, numbers, *self.centers.read, labels, moving, self.work.mass, self.work.cost, gain, goal)
        pays = np.flatnonzero(gain > self.work.least)
        return Found(Movers(len(numbers[0]), columns[INDEX][pays], gain[pays], labels[pays], goal[pays]))


class _Sides:
    """The sums of both halves of every component."""

    def __init__(self, work: Sides, frame: Distortion, dtype: Any) -> None:
        self.centers = _Centers(frame, work.halves, dtype, turned=False)

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        shape = self.centers.shape
        mass, cost, room = np.zeros(shape[:2]), np.zeros(shape[:2]), self.centers.room()
        kernels.sides(values, numbers, *self.centers.read, columns["labels"], mass, cost, *room)
        return Found(SideSums(len(numbers[0]), mass, cost, self.centers.settled(values, *room)))


class _Swaps:
    """What swaps cost before anything adapts."""

    def __init__(self, work: Swaps, frame: Distortion, dtype: Any) -> None:
        self.work, self.centers = work, _Centers(frame, work.centers, dtype)

    def __call__(self, values: Any, numbers: Numbers, columns: Columns) -> Found:
        n_places = len(self.work.home)
        bare, (gain, stir) = np.zeros((n_places, self.work.n_components)), np.zeros((2, n_places))
        read = columns["labels"], columns["own"], columns["second"]
        kernels.swaps(values, numbers, *self.centers.read, *read, self.work.home, bare, gain, stir)
        return Found(SwapCosts(len(numbers[0]), bare - gain[:, None], gain, stir))


KERNELS: dict[type, Any] = {
    Nearest: _Hard,
    Labelled: _Given,
    NearestInEach: _Hard,
    Gibbs: _Soft,
    Shares: _Shares,
    Costs: _Costs,
    Arcs: _FromCosts,
    Worth: _FromCosts,
    TwoCheapest: _TwoCheapest,
    OwnAndOther: _Distances,
    Margins: _Margins,
    MoveGains: _Moves,
    Sides: _Sides,
    Swaps: _Swaps,
}


class _Coordinates:
    """What items in CSR form have in common with some vectors, about a point."""

    def __init__(self, work: Coordinates | Subspace) -> None:
        self.about, self.beside = work.about, np.ascontiguousarray(work.vectors.T, np.float32)
        self.offset = (work.vectors @ work.about).astype(np.float32)

    def inner(self, values: Any, scale: float) -> Array:
        """The inner products, (n_items, n_vectors): a sketch needs no more than float32."""
        found = np.empty((len(values[-1]) - 1, self.beside.shape[1]), np.float32)
        kernels.coordinates(*values, scale, self.beside, self.offset, found)
        return found

    def __call__(self, values: Any, scale: float, weight: Array) -> Found:
        return Found(Count(len(weight)), {"coordinates": self.inner(values, scale)})


class _Subspace(_Coordinates):
    """A step of those vectors towards the leading directions."""

    def __call__(self, values: Any, scale: float, weight: Array) -> Found:
        sums, total = np.zeros(self.beside.shape, np.float32), np.zeros(self.beside.shape[1])
        kernels.spread_back(*values, scale, weight, self.inner(values, scale), sums, total)
        turned = sums.T.astype(np.float64, order="C")
        kernels.settled(turned, total, self.about, turned)
        return Found(Sums(len(weight), turned))


# Passes over items in CSR form as they were given.
RAW_KERNELS: dict[type, Any] = {Coordinates: _Coordinates, Subspace: _Subspace}


class _CompiledRawRows(DenseRawRows):
    """Items of one block, framed by a kernel, for the passes that have none."""

    def sqnorms(self) -> Array:
        found = np.empty(len(self.values))
        kernels.squared_norms(self.values, found)
        return found

    def residual_sq(self, scale: Array, labels: Labels, components: Array) -> Array:
        found = np.empty(len(self.values))
        kernels.squared_residuals(self.values, scale.astype(np.float64), labels, components.astype(np.float64), found)
        return found

    def keys(self) -> Array:
        found = np.empty(len(self.values), np.uint64)
        kernels.keys(self.values, multipliers(self.values.shape[1]), found)
        return found

    def framed(self, factor: Array | None, along: Array | None, ref: Array) -> DenseRows:
        ones, rest, whole = np.ones(len(self.values)), np.empty_like(self.values), slice(0, len(self.values))
        kernels.framed(self.values, whole, ones if factor is None else factor, ones if along is None else along, ref, rest)
        return DenseRows(rest)


class _CompiledSparseRows(SparseRows):
    """Framed items of one block, summed and multiplied by kernels, for the passes that have none."""

    def _products(self, vectors: Array) -> Array:
        found = np.empty((len(vectors), self.matrix.shape[0]))
        kernels.turned_products(*_csr(self.matrix), np.ascontiguousarray(vectors.T, np.float64), found)
        return found

    def _sums_of_few(self, weights: Array, along: Array) -> Array:
        sums = np.zeros((len(weights), self.matrix.shape[1]))
        kernels.sums_of_few(*_csr(self.matrix), weights.astype(np.float64, order="C"), sums)
        kernels.settled(sums, along.astype(np.float64), self.ref, sums)
        return sums


class _CompiledSparseRawRows(SparseRawRows):
    """Items of one block, compared with components by a kernel."""

    kind = _CompiledSparseRows

    def _stored_residual(self, scale: Array, labels: Labels, components: Array) -> tuple[Array, Array]:
        stored, covered = np.empty((2, len(self)))
        exact = scale.astype(np.float64), labels, components.astype(np.float64, copy=False)
        kernels.stored_residuals(*_csr(self.matrix), *exact, stored, covered)
        return stored, covered


def _csr(matrix: Any) -> tuple[Array, Array, Array]:
    return _read_only(matrix.data), _read_only(matrix.indices), _read_only(matrix.indptr)


class _Compiled(Engine):
    """Passes that have a kernel, for losses that it knows, run compiled."""

    frames_are_few = True

    def stream(self, frame: Framing | None, work: Pass, columns: Columns | None = None) -> Iterator[tuple[slice, Found]]:
        if type(frame) not in NUMBERS or type(work) not in KERNELS:
            return super().stream(frame, work, columns)
        loss = cast(Distortion, frame)
        kernel = KERNELS[type(work)](work, loss, self.dtype)

        def part(where: slice) -> Found:
            values, scale = self._values(where)
            read = {name: self._column(columns or {}, name, where) for name in work.reads}
            found: Found = kernel(values, self._numbers(loss, where, values, scale), read)
            return found

        self.count_pass(frame)
        return zip(self._runs, self.team.map(part, self._runs), strict=True)

    @property
    def _runs(self) -> list[slice]:
        """Borders of the runs of items; they depend on X alone."""
        width = max(self.row_width, 1)
        size = max(RUN_BYTES // (self.dtype.itemsize * width), RUN_DIMS * self.block_numbers // width, MIN_RUN)
        return self._slices(min(size, MAX_RUN))

    @abstractmethod
    def _values(self, where: slice) -> tuple[Any, float]:
        """Items as the kernels read them, and the factor that they lack."""

    def _numbers(self, frame: Distortion, where: slice, values: Any, scale: float) -> Numbers:
        """What frames the items of a run, kept from one pass to the next in the same frame."""
        numbers: Numbers
        before, numbers = self._kept.get((None, where.start), (None, None))
        if before is not frame:
            size = where.stop - where.start
            numbers = np.empty(size), np.empty(size), np.empty(size, self.dtype), np.empty(size)
            self._frame(frame, values, scale, block_weight(self, where), numbers)
            if self.lasting:
                self._kept[None, where.start] = frame, numbers
        return numbers

    @abstractmethod
    def _frame(self, frame: Distortion, values: Any, scale: float, weight: Array, numbers: Numbers) -> None:
        """Find what frames the items of a run."""


class CompiledEngine(_Compiled, DenseEngine):
    """As ``DenseEngine``; passes that have a kernel, for losses that it knows, run compiled."""

    in_memory = "compiled"

    def rows(self, where: slice) -> _CompiledRawRows:
        return _CompiledRawRows(_read_only(super().rows(where).values))

    def _values(self, where: slice) -> tuple[Array, float]:
        if self._dim_factor is not None or abs(self.shift) > LARGEST_SHIFT:
            return self.rows(where).values, 1.0
        return _read_only(self._given(where)), 2.0**self.shift

    def _frame(self, frame: Distortion, values: Any, scale: float, weight: Array, numbers: Numbers) -> None:
        NUMBERS[type(frame)](values, scale, frame.ref, weight, *numbers)


class CompiledSparseEngine(_Compiled, SparseEngine):
    """As ``SparseEngine``; passes that have a kernel, for losses that it knows, run compiled."""

    def __init__(self, matrix: Any, weight: Array | None = None, *, shift: int = 0, team: ThreadTeam) -> None:
        super().__init__(matrix, weight, shift=shift, team=team)
        self._leads: dict[int, _Leads] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_leads": {}}  # a copy finds its own; nor are centres remembered with every chunk of another machine

    def stream(self, frame: Framing | None, work: Pass, columns: Columns | None = None) -> Iterator[tuple[slice, Found]]:
        if type(work) is Nearest and type(frame) in NUMBERS:
            return self._led(cast(Distortion, frame), work, columns or {})
        if type(work) not in RAW_KERNELS:
            return super().stream(frame, work, columns)
        kernel = RAW_KERNELS[type(work)](work)

        def part(where: slice) -> Found:
            found: Found = kernel(*self._values(where), block_weight(self, where))
            return found

        self.count_pass(frame)
        return zip(self._runs, self.team.map(part, self._runs), strict=True)

    def _led(self, frame: Distortion, work: Nearest, columns: Columns) -> Iterator[tuple[slice, Found]]:
        """One pass for the nearest centres, which begins with those of the last one."""
        kernel = _Led(work, frame, self.dtype)

        def part(where: slice) -> Found:
            values, scale = self._values(where)
            read = {name: self._column(columns, name, where) for name in work.reads}
            found, leads = kernel(values, self._numbers(frame, where, values, scale), read, self._leads.get(where.start))
            if self.lasting:
                self._leads[where.start] = leads
            return found

        self.count_pass(frame)
        return zip(self._runs, self.team.map(part, self._runs), strict=True)

    def rows(self, where: slice) -> _CompiledSparseRawRows:
        return _CompiledSparseRawRows(super().rows(where).matrix)

    def _values(self, where: slice) -> tuple[tuple[Array, Array, Array], float]:
        matrix = self._matrix
        start, stop = matrix.indptr[where.start], matrix.indptr[where.stop]
        data, scale = matrix.data[start:stop], 2.0**self.shift
        if abs(self.shift) > LARGEST_SHIFT:
            data, scale = shifted(data.astype(np.float64), self.shift), 1.0
        return (
            _read_only(data),
            _read_only(matrix.indices[start:stop]),
            _read_only(matrix.indptr[where.start : where.stop + 1] - start),
        ), scale

    def _frame(self, frame: Distortion, values: Any, scale: float, weight: Array, numbers: Numbers) -> None:
        kernels.sparse_numbers(*values, scale, frame.ref, weight, frame.scaled, *numbers)


def _read_only(values: Array) -> Array:
    """The same numbers, not to be written: to numba that is another type, and what cannot be written anyway needs no kernels of its own."""
    view = values.view()
    view.flags.writeable = False
    return view
