"""Soft and hard passes as Triton kernels: a tile of items is read once, and nothing of items times centres is written.

Items are seen in their frame, x' = f (x − a · ref), formed in registers, so that nothing cancels; s = f a is their coordinate along the
reference. With centres b beside the reference and c along it, of an item and a centre

    inner = x'·b − s (b·(ref − ref32)),     d = ‖x'‖² + e,
    e = ‖b‖² − 2 inner  for means,          e = s² ‖b‖² − inner (2 s c + inner)  for lines.

Products are of numbers split in parts that the matrix units multiply exactly: h + m + l of 8 bits each (bf16), of which six products are
as good as float32 and four nearly so, or two of 11 bits (TF32) in three products. A matrix unit rounds its running sum towards zero, so
that each tile's sum begins at zero and is added to what was before by the ordinary units.

The grid is fixed by the shape of X alone. Every program sums over its tiles in registers and writes one partial sum; these are added in
float64 in their order: the same bits every time. Where the sums of all centres do not fit, one kernel finds Z or the label of every
item, and in a second each program has a tile of centres and of dimensions.

The module imports ``triton``; with TRITON_INTERPRET=1 its kernels run on the CPU (Triton 3.7 or later where NumPy is 2.4 or later).
"""

from __future__ import annotations

import os
from math import log
from typing import Any, NamedTuple, TypeAlias

import torch
import triton
import triton.language as tl

from . import hopper

Tensor: TypeAlias = Any  # of torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The interpreter multiplies bf16 as if they were integers; the same numbers in float32 have the same products.
IN_WORDS = tl.constexpr(INTERPRETED)
NARROW_TORCH = torch.float32 if INTERPRETED else torch.bfloat16
INTERPRETED_MULTIPROCESSORS = 2

# What stands for −∞ and ∞ in float32, where a difference of two must not be undefined.
NEVER, FARTHEST = -1e30, 1e37
PER_NATURAL_LOG2, NATURAL_LOG2 = 1 / log(2), tl.constexpr(log(2))
# The golden ratio in 64 bits, of ``engines.base``.
GOLDEN_WORD = tl.constexpr(0x9E3779B97F4A7C15)
# Least size of a factor of ``tl.dot``, and largest tiles of dimensions and of centres.
LEAST_SIDE, P_TILE, K_TILE = 16, 128, 64
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


class Items(NamedTuple):
    """What frames the items, float32 tensors of shape (n_items,) beside X.

    Attributes
    ----------
    factor, project, sq, weight : Tensor of shape (n_items,)
        f and a of x' = f (x − a · ref), ‖x'‖², and ω.
    """

    factor: Tensor
    project: Tensor
    sq: Tensor
    weight: Tensor


class Centers(NamedTuple):
    """Centres in the frame, float64 tensors on any device; on the host they are prepared there and sent at once.

    Attributes
    ----------
    beside : Tensor of shape (k, n_dims)
        b.
    cosine, rest_sq, offset : Tensor of shape (k,)
        c, 0 for means; ‖b‖²; b·(ref − ref32).
    """

    beside: Tensor
    cosine: Tensor
    rest_sq: Tensor
    offset: Tensor


class SoftSums(NamedTuple):
    """Float64 sums over items of responsibilities p, with q = ω p for means and ω p (x̂·u) for lines.

    Attributes
    ----------
    mass : Tensor of shape (k,)
        Σ ω p.
    along : Tensor of shape (k,)
        Σ q s.
    sums : Tensor of shape (k, n_dims)
        Σ q x'.
    log_partition, distortion : Tensor of shape ()
        Σ ω log Z and Σ ω p d.
    """

    mass: Tensor
    along: Tensor
    sums: Tensor
    log_partition: Tensor
    distortion: Tensor


class HardSums(NamedTuple):
    """Labels (n_items,) in int32, and float64 sums over the items of each component, with q = ω for means and ω (x̂·u) for lines.

    Attributes
    ----------
    labels : Tensor of shape (n_items,)
    mass, sizes, cost, along : Tensor of shape (k,)
        Σ ω, the number of items, Σ ω max(d, 0) and Σ q s.
    sums : Tensor of shape (k, n_dims)
        Σ q x'.
    changed : Tensor of shape ()
        Items whose label is not what it was before.
    """

    labels: Tensor
    mass: Tensor
    sizes: Tensor
    cost: Tensor
    along: Tensor
    sums: Tensor
    changed: Tensor


class Tuning(NamedTuple):
    """How a kernel is laid out on a device: it changes how quick it is, and, through ``terms`` alone, the last digits.

    Attributes
    ----------
    rows : int
        Items of a tile.
    warps, stages : int
        Of a program; the tiles that are read ahead.
    programs : int
        Of a multiprocessor.
    terms : int
        Products of the parts of an inner product: 6 or 4 of bf16, 3 of TF32.
    k_tile : int
        Centres of a tile, where they do not all fit.
    by_hand : bool
        By the kernels of ``engines.hopper``, where there are such.
    registers : int
        Of a thread, at most; 0 is as many as it takes.
    """

    rows: int = 64
    warps: int = 4
    stages: int = 2
    programs: int = 4
    terms: int = 6
    k_tile: int = K_TILE
    by_hand: bool = True
    registers: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """What the compiler is told."""
        limit = {"maxnreg": self.registers} if self.registers else {}
        return {"ROWS": self.rows, "num_warps": self.warps, "num_stages": self.stages, **limit}


# --- what the kernels are made of ---------------------------------------------------------------------------------------------------


@triton.jit
def _narrow(x):
    """The nearest number of 8 bits; two at a time, which conversions that Triton writes are not."""
    if IN_WORDS:
        return ((x.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    return tl.inline_asm_elementwise("cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,r,r", [x], dtype=tl.bfloat16, is_pure=True, pack=2)


@triton.jit
def _split(x):
    """h + m + l = x, of 8 bits each."""
    high = _narrow(x)
    rest = x - high.to(tl.float32)
    middle = _narrow(rest)
    return high, middle, _narrow(rest - middle.to(tl.float32))


@triton.jit
def _products(x, high, middle, low, total, TERMS: tl.constexpr):
    """total + x·b for numbers x and parts of b, the smallest first."""
    if TERMS == 3:
        x_high = (x.to(tl.int32, bitcast=True) & -0x2000).to(tl.float32, bitcast=True)
        total = tl.dot(x - x_high, high, total, input_precision="tf32")
        total = tl.dot(x_high, middle, total, input_precision="tf32")
        total = tl.dot(x_high, high, total, input_precision="tf32")
    else:
        x_high, x_middle, x_low = _split(x)
        total = tl.dot(x_high, low, total)
        if TERMS == 6:
            total = tl.dot(x_low, high, total)
            total = tl.dot(x_middle, middle, total)
        total = tl.dot(x_middle, high, total)
        total = tl.dot(x_high, middle, total)
        total = tl.dot(x_high, high, total)
    return total


@triton.jit
def _weighted(x, q, sums):
    """sums + xᵀ q, in two parts of 8 bits each."""
    x_high, x_middle, _ = _split(x)
    q_high, q_middle, _ = _split(q)
    tile = tl.dot(tl.trans(x_middle), q_high)
    tile = tl.dot(tl.trans(x_high), q_middle, tile)
    tile = tl.dot(tl.trans(x_high), q_high, tile)
    return sums + tile


@triton.jit
def _parts(beside, k_at, p_at, K_SIDE: tl.constexpr, P_SIDE: tl.constexpr, K_PAD: tl.constexpr, P_PAD: tl.constexpr, TERMS: tl.constexpr):
    """The parts of some centres in some dimensions, (P_SIDE, K_SIDE) each."""
    at = beside + (k_at + tl.arange(0, K_SIDE))[None, :] * P_PAD + (p_at + tl.arange(0, P_SIDE))[:, None]
    high = tl.load(at)
    middle = tl.load(at + K_PAD * P_PAD)
    low = middle
    if TERMS != 3:
        low = tl.load(at + 2 * K_PAD * P_PAD)
    return high, middle, low


@triton.jit
def _framed(
    values, ref, start, p_at, factor, project, there, P: tl.constexpr, P_SIDE: tl.constexpr, P_PAD: tl.constexpr, ROWS: tl.constexpr
):
    """x' of the items of a tile in some dimensions, (ROWS, P_SIDE)."""
    dims = p_at + tl.arange(0, P_SIDE)
    at = values + start.to(tl.int64) * P + tl.arange(0, ROWS)[:, None] * P + dims[None, :]
    if P == P_PAD:  # noqa: SIM108
        x = tl.load(at, mask=there[:, None], other=0.0)
    else:
        x = tl.load(at, mask=there[:, None] & (dims < P)[None, :], other=0.0)
    return (x - project[:, None] * tl.load(ref + dims)[None, :]) * factor[:, None]


@triton.jit
def _inner(
    values, ref, beside, start, k_at, factor, project, there,
    P: tl.constexpr, P_SIDE: tl.constexpr, P_PAD: tl.constexpr, K_SIDE: tl.constexpr, K_PAD: tl.constexpr,
    ROWS: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """x'·b over all dimensions, a tile of them at a time, (ROWS, K_SIDE)."""
    total = tl.zeros((ROWS, K_SIDE), tl.float32)
    for p_at in range(0, P_PAD, P_SIDE):
        x = _framed(values, ref, start, p_at, factor, project, there, P, P_SIDE, P_PAD, ROWS)
        high, middle, low = _parts(beside, k_at, p_at, K_SIDE, P_SIDE, K_PAD, P_PAD, TERMS)
        total = _products(x, high, middle, low, total, TERMS)
    return total


@triton.jit
def _measured(inner, along, cosine, rest_sq, offset, SCALED: tl.constexpr):
    """x̂·u for lines, and e = d − ‖x'‖²; ``rest_sq`` of means includes the offset."""
    if SCALED:
        inner = inner - along[:, None] * offset[None, :]
        parallel = along[:, None] * cosine[None, :]
        full = inner + parallel
        return full, (along * along)[:, None] * rest_sq[None, :] - inner * (full + parallel)
    return inner, rest_sq[None, :] - 2.0 * inner


@triton.jit
def _table(table, k_at, K_SIDE: tl.constexpr, K_PAD: tl.constexpr):
    """c, ‖b‖², b·(ref − ref32) and the logarithm of the mass, to base 2, of some centres."""
    at = table + k_at + tl.arange(0, K_SIDE)
    return tl.load(at), tl.load(at + K_PAD), tl.load(at + 2 * K_PAD), tl.load(at + 3 * K_PAD)


@triton.jit
def _store_sums(partial, sums, k_at, p_at, K_SIDE: tl.constexpr, P_SIDE: tl.constexpr, K_PAD: tl.constexpr):
    """Write sums (P_SIDE, K_SIDE) to their place among all, (P_PAD, K_PAD)."""
    at = (p_at + tl.arange(0, P_SIDE))[:, None] * K_PAD + (k_at + tl.arange(0, K_SIDE))[None, :]
    tl.store(partial + at, sums)


# --- the soft pass ------------------------------------------------------------------------------------------------------------------


@triton.jit
def _soft_fused(
    values, factors, projects, squares, weights, ref, beside, table, partial, size, n_items, beta,
    SCALED: tl.constexpr, P: tl.constexpr, P_PAD: tl.constexpr, K_PAD: tl.constexpr, ROWS: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """All sums of one program; β is per log 2."""
    cosine, rest_sq, offset, log_mass = _table(table, 0, K_PAD, K_PAD)
    high, middle, low = _parts(beside, 0, 0, K_PAD, P_PAD, K_PAD, P_PAD, TERMS)
    sums = tl.zeros((P_PAD, K_PAD), tl.float32)
    mass, share = tl.zeros((ROWS, K_PAD), tl.float32), tl.zeros((ROWS, K_PAD), tl.float32)
    log_partition, distortion = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    for block in range(tl.program_id(0), tl.cdiv(n_items, ROWS), tl.num_programs(0)):
        start = block * ROWS
        rows = start + tl.arange(0, ROWS)
        there = rows < n_items
        factor, project = tl.load(factors + rows, there, 0.0), tl.load(projects + rows, there, 0.0)
        sq, weight = tl.load(squares + rows, there, 0.0), tl.load(weights + rows, there, 0.0)
        along = factor * project
        x = _framed(values, ref, start, 0, factor, project, there, P, P_PAD, P_PAD, ROWS)
        inner = _products(x, high, middle, low, tl.zeros((ROWS, K_PAD), tl.float32), TERMS)
        full, beyond = _measured(inner, along, cosine, rest_sq, offset, SCALED)
        logit = log_mass[None, :] - beta * beyond
        top = tl.max(logit, axis=1)
        resp = tl.exp2(logit - top[:, None])
        total = tl.sum(resp, axis=1)
        log_partition += weight * ((top + tl.log2(total)) * NATURAL_LOG2 - beta * NATURAL_LOG2 * sq)
        resp = resp * (weight / total)[:, None]
        distortion += tl.sum(resp * beyond, axis=1) + weight * sq
        mass += resp
        if SCALED:
            resp = resp * full
            share += resp * along[:, None]
        sums = _weighted(x, resp, sums)
    partial += tl.program_id(0).to(tl.int64) * size
    _store_sums(partial, sums, 0, 0, K_PAD, P_PAD, K_PAD)
    columns = partial + P_PAD * K_PAD + tl.arange(0, K_PAD)
    tl.store(columns, tl.sum(mass, axis=0))
    tl.store(columns + K_PAD, tl.sum(share, axis=0))
    tl.store(partial + (P_PAD + 2) * K_PAD, tl.sum(log_partition, axis=0))
    tl.store(partial + (P_PAD + 2) * K_PAD + 1, tl.sum(distortion, axis=0))


@triton.jit
def _normalizers(
    values, factors, projects, squares, weights, ref, beside, table, tops, totals, n_items, beta,
    SCALED: tl.constexpr, P: tl.constexpr, P_SIDE: tl.constexpr, P_PAD: tl.constexpr, K_SIDE: tl.constexpr, K_PAD: tl.constexpr,
    ROWS: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """The largest logit of every item to base 2, and Z beside it, a tile of centres at a time; and Σ ω log Z of one program."""
    log_partition = tl.zeros((ROWS,), tl.float32)
    for block in range(tl.program_id(0), tl.cdiv(n_items, ROWS), tl.num_programs(0)):
        start = block * ROWS
        rows = start + tl.arange(0, ROWS)
        there = rows < n_items
        factor, project = tl.load(factors + rows, there, 0.0), tl.load(projects + rows, there, 0.0)
        along = factor * project
        top, total = tl.full((ROWS,), -3e38, tl.float32), tl.zeros((ROWS,), tl.float32)
        if P_SIDE == P_PAD:
            x = _framed(values, ref, start, 0, factor, project, there, P, P_SIDE, P_PAD, ROWS)
        for k_at in range(0, K_PAD, K_SIDE):
            if P_SIDE == P_PAD:
                high, middle, low = _parts(beside, k_at, 0, K_SIDE, P_SIDE, K_PAD, P_PAD, TERMS)
                inner = _products(x, high, middle, low, tl.zeros((ROWS, K_SIDE), tl.float32), TERMS)
            else:
                inner = _inner(values, ref, beside, start, k_at, factor, project, there, P, P_SIDE, P_PAD, K_SIDE, K_PAD, ROWS, TERMS)
            cosine, rest_sq, offset, log_mass = _table(table, k_at, K_SIDE, K_PAD)
            _, beyond = _measured(inner, along, cosine, rest_sq, offset, SCALED)
            logit = log_mass[None, :] - beta * beyond
            higher = tl.maximum(top, tl.max(logit, axis=1))
            total = total * tl.exp2(top - higher) + tl.sum(tl.exp2(logit - higher[:, None]), axis=1)
            top = higher
        tl.store(tops + rows, top, there)
        tl.store(tops + n_items + rows, total, there)
        sq, weight = tl.load(squares + rows, there, 0.0), tl.load(weights + rows, there, 0.0)
        log_partition += weight * ((top + tl.log2(total)) * NATURAL_LOG2 - beta * NATURAL_LOG2 * sq)
    tl.store(totals + tl.program_id(0), tl.sum(log_partition, axis=0))


@triton.jit
def _soft_tiles(
    values, factors, projects, squares, weights, tops, ref, beside, table, partial, size, n_items, n_chunks, beta,
    SCALED: tl.constexpr, P: tl.constexpr, P_SIDE: tl.constexpr, P_PAD: tl.constexpr, K_SIDE: tl.constexpr, K_PAD: tl.constexpr,
    ROWS: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """Sums of one program over its items, in one tile of centres and of dimensions, with the largest logits and Z given."""
    K_TILES: tl.constexpr = K_PAD // K_SIDE
    TILES: tl.constexpr = K_TILES * (P_PAD // P_SIDE)
    chunk, tile = tl.program_id(0) // TILES, tl.program_id(0) % TILES
    k_at, p_at = (tile % K_TILES) * K_SIDE, (tile // K_TILES) * P_SIDE
    cosine, rest_sq, offset, log_mass = _table(table, k_at, K_SIDE, K_PAD)
    high, middle, low = _parts(beside, k_at, p_at, K_SIDE, P_SIDE, K_PAD, P_PAD, TERMS)
    sums = tl.zeros((P_SIDE, K_SIDE), tl.float32)
    mass, share = tl.zeros((ROWS, K_SIDE), tl.float32), tl.zeros((ROWS, K_SIDE), tl.float32)
    distortion = tl.zeros((ROWS,), tl.float32)
    for block in range(chunk, tl.cdiv(n_items, ROWS), n_chunks):
        start = block * ROWS
        rows = start + tl.arange(0, ROWS)
        there = rows < n_items
        factor, project = tl.load(factors + rows, there, 0.0), tl.load(projects + rows, there, 0.0)
        sq, weight = tl.load(squares + rows, there, 0.0), tl.load(weights + rows, there, 0.0)
        along = factor * project
        x = _framed(values, ref, start, p_at, factor, project, there, P, P_SIDE, P_PAD, ROWS)
        if P_SIDE == P_PAD:
            inner = _products(x, high, middle, low, tl.zeros((ROWS, K_SIDE), tl.float32), TERMS)
        else:
            inner = _inner(values, ref, beside, start, k_at, factor, project, there, P, P_SIDE, P_PAD, K_SIDE, K_PAD, ROWS, TERMS)
        full, beyond = _measured(inner, along, cosine, rest_sq, offset, SCALED)
        logit = log_mass[None, :] - beta * beyond
        resp = tl.exp2(logit - tl.load(tops + rows, there, 0.0)[:, None])
        resp = resp * (weight / tl.load(tops + n_items + rows, there, 1.0))[:, None]
        distortion += tl.sum(resp * (beyond + sq[:, None]), axis=1)
        mass += resp
        if SCALED:
            resp = resp * full
            share += resp * along[:, None]
        sums = _weighted(x, resp, sums)
    partial += chunk.to(tl.int64) * size
    _store_sums(partial, sums, k_at, p_at, K_SIDE, P_SIDE, K_PAD)
    columns = partial + P_PAD * K_PAD + k_at + tl.arange(0, K_SIDE)
    first = p_at == 0  # of every tile of dimensions the same
    tl.store(columns, tl.sum(mass, axis=0), mask=first)
    tl.store(columns + K_PAD, tl.sum(share, axis=0), mask=first)
    tl.store(partial + (P_PAD + 2) * K_PAD + tile, tl.sum(distortion, axis=0), mask=first)


# --- the hard pass ------------------------------------------------------------------------------------------------------------------


@triton.jit
def _hard_fused(
    values, factors, projects, squares, weights, ref, beside, table, before, labels, partial, size, n_items,
    SCALED: tl.constexpr, LABELLED: tl.constexpr, P: tl.constexpr, P_PAD: tl.constexpr, K_PAD: tl.constexpr, ROWS: tl.constexpr,
    TERMS: tl.constexpr,
):  # fmt: skip
    """The nearest centre of every item, the first of equal ones, and all sums of one program."""
    cosine, rest_sq, offset, _ = _table(table, 0, K_PAD, K_PAD)
    high, middle, low = _parts(beside, 0, 0, K_PAD, P_PAD, K_PAD, P_PAD, TERMS)
    centers = tl.arange(0, K_PAD)
    sums = tl.zeros((P_PAD, K_PAD), tl.float32)
    mass, share = tl.zeros((ROWS, K_PAD), tl.float32), tl.zeros((ROWS, K_PAD), tl.float32)
    count, cost = tl.zeros((ROWS, K_PAD), tl.float32), tl.zeros((ROWS, K_PAD), tl.float32)
    changed = tl.zeros((ROWS,), tl.float32)
    for block in range(tl.program_id(0), tl.cdiv(n_items, ROWS), tl.num_programs(0)):
        start = block * ROWS
        rows = start + tl.arange(0, ROWS)
        there = rows < n_items
        factor, project = tl.load(factors + rows, there, 0.0), tl.load(projects + rows, there, 0.0)
        sq, weight = tl.load(squares + rows, there, 0.0), tl.load(weights + rows, there, 0.0)
        along = factor * project
        x = _framed(values, ref, start, 0, factor, project, there, P, P_PAD, P_PAD, ROWS)
        inner = _products(x, high, middle, low, tl.zeros((ROWS, K_PAD), tl.float32), TERMS)
        full, beyond = _measured(inner, along, cosine, rest_sq, offset, SCALED)
        least = tl.min(beyond, axis=1)
        label = tl.min(tl.where(beyond == least[:, None], centers[None, :], K_PAD), axis=1)
        own = centers[None, :] == label[:, None]
        tl.store(labels + rows, label, there)
        if LABELLED:
            changed += ((label != tl.load(before + rows, there, 0)) & there).to(tl.float32)
        count += tl.where(own, there.to(tl.float32)[:, None], 0.0)
        cost += tl.where(own, (weight * tl.maximum(least + sq, 0.0))[:, None], 0.0)
        resp = tl.where(own, weight[:, None], 0.0)
        mass += resp
        if SCALED:
            resp = resp * full
            share += resp * along[:, None]
        sums = _weighted(x, resp, sums)
    partial += tl.program_id(0).to(tl.int64) * size
    _store_sums(partial, sums, 0, 0, K_PAD, P_PAD, K_PAD)
    columns = partial + P_PAD * K_PAD + tl.arange(0, K_PAD)
    tl.store(columns, tl.sum(mass, axis=0))
    tl.store(columns + K_PAD, tl.sum(share, axis=0))
    tl.store(columns + 2 * K_PAD, tl.sum(count, axis=0))
    tl.store(columns + 3 * K_PAD, tl.sum(cost, axis=0))
    tl.store(partial + (P_PAD + 4) * K_PAD, tl.sum(changed, axis=0))


@triton.jit
def _nearest(
    values, factors, projects, squares, weights, ref, beside, table, before, labels, shares, costs, totals, n_items,
    SCALED: tl.constexpr, LABELLED: tl.constexpr, P: tl.constexpr, P_SIDE: tl.constexpr, P_PAD: tl.constexpr, K_SIDE: tl.constexpr,
    K_PAD: tl.constexpr, ROWS: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """The nearest centre of every item, a tile of centres at a time; its q, and ω max(d, 0); and how many labels of a program changed."""
    centers = tl.arange(0, K_SIDE)
    changed = tl.zeros((ROWS,), tl.float32)
    for block in range(tl.program_id(0), tl.cdiv(n_items, ROWS), tl.num_programs(0)):
        start = block * ROWS
        rows = start + tl.arange(0, ROWS)
        there = rows < n_items
        factor, project = tl.load(factors + rows, there, 0.0), tl.load(projects + rows, there, 0.0)
        along = factor * project
        least, label, own = tl.full((ROWS,), 3e38, tl.float32), tl.zeros((ROWS,), tl.int32), tl.zeros((ROWS,), tl.float32)
        if P_SIDE == P_PAD:
            x = _framed(values, ref, start, 0, factor, project, there, P, P_SIDE, P_PAD, ROWS)
        for k_at in range(0, K_PAD, K_SIDE):
            if P_SIDE == P_PAD:
                high, middle, low = _parts(beside, k_at, 0, K_SIDE, P_SIDE, K_PAD, P_PAD, TERMS)
                inner = _products(x, high, middle, low, tl.zeros((ROWS, K_SIDE), tl.float32), TERMS)
            else:
                inner = _inner(values, ref, beside, start, k_at, factor, project, there, P, P_SIDE, P_PAD, K_SIDE, K_PAD, ROWS, TERMS)
            cosine, rest_sq, offset, _ = _table(table, k_at, K_SIDE, K_PAD)
            full, beyond = _measured(inner, along, cosine, rest_sq, offset, SCALED)
            low_here = tl.min(beyond, axis=1)
            found = tl.min(tl.where(beyond == low_here[:, None], centers[None, :], K_SIDE), axis=1)
            nearer = low_here < least
            if SCALED:
                full_here = tl.sum(tl.where(centers[None, :] == found[:, None], full, 0.0), axis=1)
                own = tl.where(nearer, full_here, own)
            label = tl.where(nearer, k_at + found, label)
            least = tl.minimum(least, low_here)
        sq, weight = tl.load(squares + rows, there, 0.0), tl.load(weights + rows, there, 0.0)
        tl.store(labels + rows, label, there)
        tl.store(costs + rows, weight * tl.maximum(least + sq, 0.0), there)
        if SCALED:
            tl.store(shares + rows, weight * own, there)
        if LABELLED:
            changed += ((label != tl.load(before + rows, there, 0)) & there).to(tl.float32)
    tl.store(totals + tl.program_id(0), tl.sum(changed, axis=0))


@triton.jit
def _nearest_two(
    values, factors, projects, squares, ref, beside, table, labels, firsts, seconds, n_items,
    SCALED: tl.constexpr, LABELLED: tl.constexpr, P: tl.constexpr, P_SIDE: tl.constexpr, P_PAD: tl.constexpr, K_SIDE: tl.constexpr,
    K_PAD: tl.constexpr, ROWS: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """d of the centre that the label names and the least of the others; without labels of the nearest two, and the first's label."""
    centers = tl.arange(0, K_SIDE)
    for block in range(tl.program_id(0), tl.cdiv(n_items, ROWS), tl.num_programs(0)):
        start = block * ROWS
        rows = start + tl.arange(0, ROWS)
        there = rows < n_items
        factor, project = tl.load(factors + rows, there, 0.0), tl.load(projects + rows, there, 0.0)
        along = factor * project
        first, second = tl.full((ROWS,), 3e38, tl.float32), tl.full((ROWS,), 3e38, tl.float32)
        label = tl.zeros((ROWS,), tl.int32)
        if LABELLED:
            label = tl.load(labels + rows, there, 0)
        for k_at in range(0, K_PAD, K_SIDE):
            inner = _inner(values, ref, beside, start, k_at, factor, project, there, P, P_SIDE, P_PAD, K_SIDE, K_PAD, ROWS, TERMS)
            cosine, rest_sq, offset, _ = _table(table, k_at, K_SIDE, K_PAD)
            _, beyond = _measured(inner, along, cosine, rest_sq, offset, SCALED)
            if LABELLED:
                own = (k_at + centers)[None, :] == label[:, None]
                first = tl.minimum(first, tl.min(tl.where(own, beyond, 3e38), axis=1))
                second = tl.minimum(second, tl.min(tl.where(own, 3e38, beyond), axis=1))
            else:
                least_here = tl.min(beyond, axis=1)
                found = tl.min(tl.where(beyond == least_here[:, None], centers[None, :], K_SIDE), axis=1)
                next_here = tl.min(tl.where(centers[None, :] == found[:, None], 3e38, beyond), axis=1)
                second = tl.minimum(tl.minimum(second, next_here), tl.maximum(first, least_here))
                label = tl.where(least_here < first, k_at + found, label)
                first = tl.minimum(first, least_here)
        sq = tl.load(squares + rows, there, 0.0)
        if not LABELLED:
            tl.store(labels + rows, label, there)
        tl.store(firsts + rows, tl.maximum(first + sq, 0.0), there)
        tl.store(seconds + rows, tl.maximum(second + sq, 0.0), there)


@triton.jit
def _own(
    values, factors, projects, squares, weights, ref, beside, table, labels, shares, costs, n_items,
    SCALED: tl.constexpr, P: tl.constexpr, P_SIDE: tl.constexpr, P_PAD: tl.constexpr, K_PAD: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """q and ω max(d, 0) of every item for the centre that its label names; ``beside`` is in float32."""
    start = tl.program_id(0) * ROWS
    rows = start + tl.arange(0, ROWS)
    there = rows < n_items
    factor, project = tl.load(factors + rows, there, 0.0), tl.load(projects + rows, there, 0.0)
    sq, weight = tl.load(squares + rows, there, 0.0), tl.load(weights + rows, there, 0.0)
    label = tl.load(labels + rows, there, 0)
    inner = tl.zeros((ROWS,), tl.float32)
    for p_at in range(0, P_PAD, P_SIDE):
        x = _framed(values, ref, start, p_at, factor, project, there, P, P_SIDE, P_PAD, ROWS)
        mine = tl.load(beside + label[:, None] * P_PAD + (p_at + tl.arange(0, P_SIDE))[None, :])
        inner += tl.sum(x * mine, axis=1)
    rest_sq, along = tl.load(table + K_PAD + label), factor * project
    away = sq + rest_sq - 2.0 * inner
    if SCALED:
        inner -= along * tl.load(table + 2 * K_PAD + label)
        parallel = along * tl.load(table + label)
        full = inner + parallel
        away = sq + along * along * rest_sq - inner * (full + parallel)
        tl.store(shares + rows, weight * full, there)
    tl.store(costs + rows, weight * tl.maximum(away, 0.0), there)


@triton.jit
def _of_runs(
    values, factors, projects, weights, ref, shares, costs, order, runs, partial, size,
    SCALED: tl.constexpr, P: tl.constexpr, P_SIDE: tl.constexpr, P_PAD: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Sums of one run: items of one component at consecutive places of ``order``, from runs[0] to before runs[1]."""
    run, p_at = tl.program_id(0), tl.program_id(1) * P_SIDE
    first, last = tl.load(runs + 2 * run), tl.load(runs + 2 * run + 1)
    dims = p_at + tl.arange(0, P_SIDE)
    reference = tl.load(ref + dims)
    sums = tl.zeros((ROWS, P_SIDE), tl.float32)
    mass, share, cost = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    for at in range(first, last, ROWS):
        places = at + tl.arange(0, ROWS)
        there = places < last
        rows = tl.load(order + places, there, 0)
        x = tl.load(values + (rows * P)[:, None] + dims[None, :], there[:, None] & (dims < P)[None, :], 0.0)
        factor, project = tl.load(factors + rows, there, 0.0), tl.load(projects + rows, there, 0.0)
        weight = tl.load(weights + rows, there, 0.0)
        mass += weight
        cost += tl.load(costs + rows, there, 0.0)
        if SCALED:
            weight = tl.load(shares + rows, there, 0.0)
            share += weight * factor * project
        sums += (x - project[:, None] * reference[None, :]) * (factor * weight)[:, None]
    partial += run.to(tl.int64) * size
    tl.store(partial + dims, tl.sum(sums, axis=0))
    if p_at == 0:
        tl.store(partial + P_PAD, tl.sum(mass, axis=0))
        tl.store(partial + P_PAD + 1, tl.sum(share, axis=0))
        tl.store(partial + P_PAD + 2, tl.sum(cost, axis=0))


@triton.jit
def _joined(partial, ends, whole, size, LOTS: tl.constexpr, SIDE: tl.constexpr):
    """The partial sums of the runs of one component, ends[c] to before ends[c + 1], added in their order in float64."""
    component, columns = tl.program_id(0), tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    first, last = tl.load(ends + component), tl.load(ends + component + 1)
    total = tl.zeros((LOTS, SIDE), tl.float64)
    for at in range(first, last, LOTS):
        runs = at + tl.arange(0, LOTS)
        total += tl.load(partial + runs[:, None] * size + columns[None, :], (runs < last)[:, None], 0.0).to(tl.float64)
    tl.store(whole + component * size + columns, tl.sum(total, axis=0))


# --- keys ---------------------------------------------------------------------------------------------------------------------------


@triton.jit
def _keys(values, multipliers, keys, n_items, scale, P: tl.constexpr, P_SIDE: tl.constexpr, ROWS: tl.constexpr):
    """Σ multiplier · scrambled bits of every item, in words of 64 bits without a sign; as ``engines.base`` scrambles them."""
    start = tl.program_id(0).to(tl.int64) * ROWS
    rows = tl.arange(0, ROWS)
    there = start + rows < n_items
    key = tl.zeros((ROWS,), tl.uint64)
    for p_at in range(0, P, P_SIDE):
        dims = p_at + tl.arange(0, P_SIDE)
        among = dims < P
        x = tl.load(values + start * P + rows[:, None] * P + dims[None, :], there[:, None] & among[None, :], 0.0)
        number = (x * scale).to(tl.float64)
        bits = tl.where(number == 0.0, 0.0, number).to(tl.uint64, bitcast=True)  # −0.0 is 0.0
        bits ^= bits >> 32
        bits *= GOLDEN_WORD
        bits ^= bits >> 29
        bits *= tl.load(multipliers + dims, among, 0).to(tl.uint64, bitcast=True)[None, :]
        key += tl.sum(bits, axis=1)
    tl.store(keys + start + rows, key.to(tl.int64, bitcast=True), there)


# --- what calls them ----------------------------------------------------------------------------------------------------------------


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
