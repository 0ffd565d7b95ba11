"""What the kernels are made of."""

from __future__ import annotations

import os
from math import log

import triton
import triton.language as tl

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The interpreter multiplies bf16 as if they were integers; the same numbers in float32 have the same products.
IN_WORDS = tl.constexpr(INTERPRETED)
NATURAL_LOG2 = tl.constexpr(log(2))


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
