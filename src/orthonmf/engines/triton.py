"""Soft and hard passes as Triton kernels: a tile of items is read once, and nothing of items times centres is written.

Items and centres are cut, padded and split into parts here, where kernels are called; the kernels are those of ``engines.tiles``, and of
``engines.hopper`` where these fit.

The module imports ``triton``; with TRITON_INTERPRET=1 its kernels run on the CPU (Triton 3.7 or later where NumPy is 2.4 or later).
"""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import torch
import triton

from . import hopper
from .tiles.hard import _hard_fused, _nearest, _nearest_two
from .tiles.labels import _joined, _of_runs, _own
from .tiles.pieces import INTERPRETED
from .tiles.soft import _normalizers, _soft_fused, _soft_tiles
from .tiles.values import K_TILE, Centers, HardSums, Items, SoftSums, Tensor, Tuning
from .tiles.words import _keys

__all__ = ["Centers", "HardSums", "Items", "SoftSums", "Tuning", "hard", "keys", "labelled", "nearest_two", "soft", "usual"]

NARROW_TORCH = torch.float32 if INTERPRETED else torch.bfloat16
INTERPRETED_MULTIPROCESSORS = 2

# What stands for −∞ and ∞ in float32, where a difference of two must not be undefined.
NEVER, FARTHEST = -1e30, 1e37
PER_NATURAL_LOG2 = 1 / log(2)
# Least size of a factor of ``tl.dot``, and largest tile of dimensions.
LEAST_SIDE, P_TILE = 16, 128
# Centres that the kernels of ``engines.hopper`` take at a time, padded dimensions of their items; and their layout where all sums do not
# fit in a program: items of a tile where sums are made and where they are not.
K_TILE_BY_HAND, P_BY_HAND, SUMMED_ROWS, READ_ROWS, WARPS_BY_HAND = 128, (64, 128), 64, 128, 8
# Numbers of a sum over items that a program holds in its registers beside the rest.
FUSED_NUMBERS = 1 << 13
# Items of a program, at most: beyond, float32 sums lose digits.
PROGRAM_ITEMS = 1 << 17
# Programs for each that is at work at a time, where they are many kinds.
WAVES = 4
# Items of one component that a program adds, numbers of them that it reads at once, and partial sums that are read at once.
RUN_ITEMS, RUN_NUMBERS, RUNS_AT_ONCE = 1 << 12, 1 << 13, 8
# Numbers whose keys a program makes.
KEY_NUMBERS = 1 << 12
# Types of labels that are sorted, by the number of components: the narrower the quicker.
LABEL_TYPES = torch.uint8, torch.int16, torch.int32


class _Shape(NamedTuple):
    """How items, dimensions and centres are cut; tiles are whole where all sums fit in the registers of a program."""

    n_items: int
    n_dims: int
    n_centers: int
    p_pad: int
    k_pad: int
    p_side: int
    k_side: int

    @classmethod
    def of(cls, values: Tensor, n_centers: int, k_tile: int) -> _Shape:
        n_items, n_dims = values.shape
        p_pad, k_pad = (max(LEAST_SIDE, triton.next_power_of_2(size)) for size in (n_dims, n_centers))
        if p_pad <= P_TILE and p_pad * k_pad <= FUSED_NUMBERS:
            return cls(n_items, n_dims, n_centers, p_pad, k_pad, p_pad, k_pad)
        return cls(n_items, n_dims, n_centers, p_pad, k_pad, min(p_pad, P_TILE), min(k_pad, k_tile))

    @property
    def tiles(self) -> int:
        return (self.p_pad // self.p_side) * (self.k_pad // self.k_side)

    def chunks(self, device: torch.device, tuning: Tuning) -> int:
        """Programs among which the items are divided."""
        wanted = max(_multiprocessors(device) * tuning.programs, triton.cdiv(self.n_items, PROGRAM_ITEMS))
        return min(triton.cdiv(self.n_items, tuning.rows), wanted)

    def numbers(self, columns: int, totals: int) -> int:
        """Size of a partial sum: (p_pad, k_pad), columns of k_pad and totals."""
        return (self.p_pad + columns) * self.k_pad + totals


def _multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":
        return INTERPRETED_MULTIPROCESSORS
    return torch.cuda.get_device_properties(device).multi_processor_count


def _sent(given: Tensor, device: torch.device) -> Tensor:
    """On a device; from pinned memory, so that nothing waits for what the device does at the time."""
    if given.device.type == "cpu" and device.type == "cuda":
        given = given.pin_memory()
    return given.to(device, non_blocking=True)


def _padded(given: Tensor, rows: int, columns: int) -> Tensor:
    return torch.nn.functional.pad(given, (0, columns - given.shape[1], 0, rows - given.shape[0]))


def _in_parts(beside: Tensor, terms: int) -> Tensor:
    """The parts of the centres, each (k_pad, p_pad): two of TF32, or three of bf16."""
    if terms == 3:
        high = (beside.float().view(torch.int32) & -0x2000).view(torch.float32)
        return torch.stack([high, (beside - high).float()])
    found, rest = [], beside
    for _ in range(3):
        found.append(rest.to(torch.bfloat16))
        rest = rest - found[-1]
    return torch.stack(found).to(NARROW_TORCH)


def _tables(centers: Centers, scaled: bool, log_mass: Tensor | None, k_pad: int) -> Tensor:
    """c, ‖b‖², b·(ref − ref32) and log₂ of the mass, (4, k_pad); those that are no centres are far and without mass."""
    table = torch.zeros((4, k_pad), dtype=torch.float64, device=centers.beside.device)
    k = len(centers.beside)
    table[1, k:], table[3, k:] = (FARTHEST if log_mass is None else 0.0), NEVER
    table[0, :k], table[2, :k] = centers.cosine, centers.offset
    table[1, :k] = centers.rest_sq if scaled else centers.rest_sq + 2 * centers.offset
    if log_mass is not None:
        table[3, :k] = torch.clamp(log_mass * PER_NATURAL_LOG2, min=NEVER)
    return table.float()


class _Prepared(NamedTuple):
    """What every kernel is given: X and what frames it, the reference, the centres' parts and numbers."""

    values: Tensor
    items: Items
    ref: Tensor
    parts: Tensor
    table: Tensor
    shape: _Shape
    tuning: Tuning
    options: dict[str, Any]

    @classmethod
    def of(
        cls, values: Tensor, items: Items, centers: Centers, ref: Tensor, scaled: bool, log_mass: Tensor | None, tuning: Tuning
    ) -> _Prepared:
        shape = _Shape.of(values, len(centers.beside), tuning.k_tile)
        beside = _padded(centers.beside.double(), shape.k_pad, shape.p_pad)
        parts = _sent(_in_parts(beside, tuning.terms), values.device)
        table = _sent(_tables(centers, scaled, log_mass, shape.k_pad), values.device)
        padded_ref = _sent(_padded(ref.float()[None], 1, shape.p_pad)[0], values.device)
        options = tuning.options | {"SCALED": scaled, "P": shape.n_dims, "P_PAD": shape.p_pad, "K_PAD": shape.k_pad}
        return cls(values, items, padded_ref, parts, table, shape, tuning, options)

    @property
    def fused(self) -> bool:
        return self.shape.tiles == 1

    @property
    def by_hand(self) -> bool:
        """Whether ``engines.hopper`` has kernels for it: a row of X fills most of its instructions, and there is such a device."""
        shape, device = self.shape, self.values.device
        fits = self.tuning.by_hand and self.tuning.terms != 3 and shape.p_pad in P_BY_HAND
        return fits and device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0)

    @property
    def of_items(self) -> tuple[Tensor, ...]:
        """What kernels are given of all items and centres."""
        return self.values, *self.items, self.ref, self.parts, self.table

    @property
    def fused_by_hand(self) -> dict[str, Any]:
        """What the kernels of ``engines.hopper`` are told that make all sums in a program."""
        options = {name: value for name, value in self.options.items() if name not in ("P_PAD", "K_PAD")}
        return options | {"DIMS": self.shape.n_dims, "P": self.shape.p_pad, "K": self.shape.k_pad, "TERMS": self.tuning.terms}

    def in_tiles_by_hand(self, rows: int) -> dict[str, Any]:
        """What those are told that have a tile of centres at hand."""
        side = min(self.shape.k_pad, K_TILE_BY_HAND)
        return self.fused_by_hand | {"SIDE": side, "ROWS": rows, "num_warps": WARPS_BY_HAND}

    @property
    def in_tiles(self) -> dict[str, Any]:
        """What the kernels of this module are told that have a tile of centres at hand."""
        return self.options | {"P_SIDE": self.shape.p_side, "K_SIDE": self.shape.k_side, "TERMS": self.tuning.terms}

    def programs(self, rows: int) -> int:
        """One of a multiprocessor, each for many tiles of so many items."""
        return min(triton.cdiv(self.shape.n_items, rows), _multiprocessors(self.values.device))

    def empty(self, *size: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(size, dtype=dtype, device=self.values.device)

    def added(self, partial: Tensor, columns: int) -> tuple[Tensor, list[Tensor], Tensor]:
        """Partial sums in float64, added in their order: (k, n_dims), each column (k,), and the totals."""
        shape = self.shape
        whole = partial.sum(0, dtype=torch.float64)
        per_center = whole[: shape.numbers(columns, 0)].view(-1, shape.k_pad)[:, : shape.n_centers]
        return per_center[: shape.n_dims].T, list(per_center[shape.p_pad :]), whole[shape.numbers(columns, 0) :]


def soft(
    values: Tensor,
    items: Items,
    centers: Centers,
    ref: Tensor,
    scaled: bool,
    beta: float,
    log_mass: Tensor,
    tuning: Tuning | None = None,
) -> SoftSums:
    """The sums of Gibbs responsibilities p ∝ exp(log_mass − β d).

    Parameters
    ----------
    values : Tensor of shape (n_items, n_dims)
        Float32, in rows that follow each other.
    ref : Tensor of shape (n_dims,)
        The frame's reference; taken in float32.
    log_mass : Tensor of shape (k,)
        On the device of the centres.
    """
    tuning = tuning or usual(values.shape[1], len(centers.beside))
    given = _Prepared.of(values, items, centers, ref, scaled, log_mass, tuning)
    if not given.fused:
        return _soft_in_tiles(given, beta * PER_NATURAL_LOG2)
    chunks, size = given.shape.chunks(values.device, tuning), given.shape.numbers(2, 2)
    partial = given.empty(chunks, size)
    if given.by_hand:
        hopper.soft_fused[(chunks,)](*given.of_items, partial, size, len(values), beta * PER_NATURAL_LOG2, **given.fused_by_hand)
    else:
        _soft_fused[(chunks,)](*given.of_items, partial, size, len(values), beta * PER_NATURAL_LOG2, TERMS=tuning.terms, **given.options)
    sums, (mass, share), (log_partition, distortion) = given.added(partial, 2)
    return SoftSums(mass, share if scaled else mass, sums, log_partition, distortion)


def _soft_in_tiles(given: _Prepared, beta: float) -> SoftSums:
    """The soft pass where log Z is found first."""
    (values, items), shape, n_items = given[:2], given.shape, len(given.values)
    tops = given.empty(2, n_items)  # the largest logits, and Z beside them
    with_tops = (values, *items, tops, given.ref, given.parts, given.table)
    if given.by_hand:
        programs, tiles = given.programs(READ_ROWS), shape.k_pad // K_TILE_BY_HAND
        totals = given.empty(programs)
        hopper.normalizers[(programs,)](*given.of_items, tops, totals, n_items, beta, **given.in_tiles_by_hand(READ_ROWS))
        chunks, size = _chunks_in_tiles(n_items, SUMMED_ROWS, _multiprocessors(values.device), tiles), shape.numbers(2, tiles)
        partial = given.empty(chunks, size)
        options = given.in_tiles_by_hand(SUMMED_ROWS)
        hopper.soft_tiles[(chunks * tiles,)](*with_tops, partial, size, n_items, chunks, beta, **options)
    else:
        programs, k_tiles = shape.chunks(values.device, given.tuning), shape.k_pad // shape.k_side
        totals = given.empty(programs)
        _normalizers[(programs,)](*given.of_items, tops, totals, n_items, beta, **given.in_tiles)
        at_once = _multiprocessors(values.device) * given.tuning.programs
        chunks, size = _chunks_in_tiles(n_items, given.tuning.rows, at_once, shape.tiles), shape.numbers(2, k_tiles)
        partial = given.empty(chunks, size)
        _soft_tiles[(chunks * shape.tiles,)](*with_tops, partial, size, n_items, chunks, beta, **given.in_tiles)
    sums, (mass, share), distortion = given.added(partial, 2)
    return SoftSums(mass, share if given.options["SCALED"] else mass, sums, totals.sum(dtype=torch.float64), distortion.sum())


def _chunks_in_tiles(n_items: int, rows: int, at_once: int, tiles: int) -> int:
    """Programs of a tile among which the items are divided, so that all programs fill whole rounds of those that are at work at a time."""
    rounds = triton.cdiv(triton.cdiv(n_items, PROGRAM_ITEMS) * tiles, at_once)
    return max(1, min(triton.cdiv(n_items, rows), max(rounds, WAVES) * at_once // tiles))


def hard(
    values: Tensor,
    items: Items,
    centers: Centers,
    ref: Tensor,
    scaled: bool,
    labels_before: Tensor | None,
    tuning: Tuning | None = None,
) -> HardSums:
    """The nearest centre of every item, the first of equal ones, and the sums that they make; all have changed where none had a label."""
    tuning = tuning or usual(values.shape[1], len(centers.beside))
    given = _Prepared.of(values, items, centers, ref, scaled, None, tuning)
    labels = given.empty(len(values), dtype=torch.int32)
    before, known = (labels, False) if labels_before is None else (labels_before, True)
    find = _hard_in_one if given.fused else _hard_in_tiles
    found = find(given, before, labels, {"LABELLED": known})
    return found if known else found._replace(changed=torch.full_like(found.changed, len(values)))


def _hard_in_one(given: _Prepared, before: Tensor, labels: Tensor, known: dict[str, bool]) -> HardSums:
    """The hard pass where a program has all sums."""
    n_items, size = len(labels), given.shape.numbers(4, 1)
    chunks = given.shape.chunks(labels.device, given.tuning)
    partial = given.empty(chunks, size)
    if given.by_hand:
        hopper.hard_fused[(chunks,)](*given.of_items, before, labels, partial, size, n_items, **known, **given.fused_by_hand)
    else:
        options = given.options | {"TERMS": given.tuning.terms} | known
        _hard_fused[(chunks,)](*given.of_items, before, labels, partial, size, n_items, **options)
    sums, (mass, share, sizes, cost), (changed,) = given.added(partial, 4)
    return HardSums(labels, mass, sizes, cost, share if given.options["SCALED"] else mass, sums, changed)


def _hard_in_tiles(given: _Prepared, before: Tensor, labels: Tensor, known: dict[str, bool]) -> HardSums:
    """The hard pass where labels are found first."""
    n_items = len(labels)
    shares, costs = given.empty(n_items), given.empty(n_items)
    programs = given.programs(READ_ROWS) if given.by_hand else given.shape.chunks(labels.device, given.tuning)
    totals = given.empty(programs)
    told = (*given.of_items, before, labels, shares, costs, totals, n_items)
    if given.by_hand:
        hopper.nearest[(programs,)](*told, **known, **given.in_tiles_by_hand(READ_ROWS))
    else:
        _nearest[(programs,)](*told, **known, **given.in_tiles)
    return _by_label(given, labels, shares, costs, totals.sum(dtype=torch.float64))


def labelled(
    values: Tensor, items: Items, centers: Centers, ref: Tensor, scaled: bool, labels: Tensor, tuning: Tuning | None = None
) -> HardSums:
    """The sums for given labels, none of which has changed."""
    tuning = tuning or usual(values.shape[1], len(centers.beside))
    given = _Prepared.of(values, items, centers, ref, scaled, None, tuning)
    shape = given.shape
    shares, costs = given.empty(len(values)), given.empty(len(values))
    beside = _sent(_padded(centers.beside.float(), shape.k_pad, shape.p_pad), values.device)
    of_items = (values, *items, given.ref, beside, given.table, labels, shares, costs, len(values))
    _own[(triton.cdiv(len(values), tuning.rows),)](*of_items, P_SIDE=shape.p_side, **given.options)
    return _by_label(given, labels, shares, costs, torch.zeros((), dtype=torch.float64, device=values.device))


def nearest_two(
    values: Tensor, items: Items, centers: Centers, ref: Tensor, scaled: bool, labels: Tensor | None, tuning: Tuning | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Distances of every item that say how sure its label is.

    Parameters
    ----------
    labels : Tensor of shape (n_items,) or None
        In int32.

    Returns
    -------
    labels : Tensor of shape (n_items,)
        Those given, or the nearest centre, the first of equal ones.
    first, second : Tensor of shape (n_items,)
        max(d, 0) in float32: to the centre of the label, and the least to any other; infinite where there is no other.
    """
    tuning = tuning or usual(values.shape[1], len(centers.beside))
    given = _Prepared.of(values, items, centers, ref, scaled, None, tuning)
    found = given.empty(len(values), dtype=torch.int32) if labels is None else labels
    first, second = given.empty(len(values)), given.empty(len(values))
    of_items = (values, items.factor, items.project, items.sq, given.ref, given.parts, given.table)
    told, known = (*of_items, found, first, second, len(values)), {"LABELLED": labels is not None}
    if given.by_hand:
        hopper.nearest_two[(given.programs(READ_ROWS),)](*told, **known, **given.in_tiles_by_hand(READ_ROWS))
    else:
        _nearest_two[(given.shape.chunks(values.device, tuning),)](*told, **known, **given.in_tiles)
    return found, first, torch.full_like(second, torch.inf) if len(centers.beside) == 1 else second


def keys(values: Tensor, scale: float, multipliers: Tensor) -> Tensor:
    """One 64-bit number per item, equal for equal items: those of ``RawRows.keys``, in int64.

    Parameters
    ----------
    values : Tensor of shape (n_items, n_dims)
        In rows that follow each other.
    scale : float
        A power of two.
    multipliers : Tensor of shape (n_dims,)
        In int64.
    """
    n_items, n_dims = values.shape
    found = torch.empty(n_items, dtype=torch.int64, device=values.device)
    side = min(triton.next_power_of_2(n_dims), P_TILE)
    rows = max(1, KEY_NUMBERS // side)
    _keys[(triton.cdiv(n_items, rows),)](values, multipliers, found, n_items, scale, P=n_dims, P_SIDE=side, ROWS=rows)
    return found


def _by_label(given: _Prepared, labels: Tensor, shares: Tensor, costs: Tensor, changed: Tensor) -> HardSums:
    """Sums of the items by label, with q and the cost of every item."""
    (values, items), shape = given[:2], given.shape
    order, starts, ends, runs = _runs(labels, shape.n_centers)
    size = shape.p_pad + LEAST_SIDE
    partial, whole = given.empty(len(runs), size), given.empty(shape.n_centers, size, dtype=torch.float64)
    of_items = (values, items.factor, items.project, items.weight, given.ref, shares, costs, order, runs)
    sides = {"P": shape.n_dims, "P_SIDE": shape.p_side, "P_PAD": shape.p_pad, "ROWS": max(LEAST_SIDE, RUN_NUMBERS // shape.p_side)}
    scaled = given.options["SCALED"]
    _of_runs[(len(runs), shape.p_pad // shape.p_side)](*of_items, partial, size, SCALED=scaled, **sides)
    _joined[(shape.n_centers, size // LEAST_SIDE)](partial, ends, whole, size, LOTS=RUNS_AT_ONCE, SIDE=LEAST_SIDE)
    mass, share, cost = whole[:, shape.p_pad : shape.p_pad + 3].T
    return HardSums(labels, mass, starts.diff().double(), cost, share if scaled else mass, whole[:, : shape.n_dims], changed)


def _runs(labels: Tensor, n_centers: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Items in the order of their labels; where each component starts there; its first run; and where runs start and stop.

    No item is in two runs, no run in two components. As many runs as there can be of so many items; those that are not needed are empty.
    """
    device, kind = labels.device, next(kind for kind in LABEL_TYPES if n_centers < torch.iinfo(kind).max)
    found, order = torch.sort(labels.to(kind), stable=True)
    starts = torch.searchsorted(found, torch.arange(n_centers + 1, dtype=kind, device=device))
    ends = torch.zeros_like(starts)
    torch.cumsum((starts.diff() + RUN_ITEMS - 1) // RUN_ITEMS, 0, out=ends[1:])
    run = torch.arange(len(labels) // RUN_ITEMS + n_centers, device=device)
    component = torch.searchsorted(ends, run, right=True) - 1
    first = starts[component] + (run - ends[component]) * RUN_ITEMS
    last = torch.minimum(first + RUN_ITEMS, starts[torch.clamp(component + 1, max=n_centers)])
    return order, starts, ends, torch.stack([first, last], 1)


def usual(n_dims: int, n_centers: int) -> Tuning:
    """What was quickest."""
    return Tuning(programs=2) if n_dims <= P_TILE // 2 and n_centers <= K_TILE // 2 else Tuning(warps=8, programs=1)
