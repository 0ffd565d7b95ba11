"""The kernel of keys, words of 64 bits."""

from __future__ import annotations

import triton
import triton.language as tl

# The golden ratio in 64 bits, of ``engines.base``.
GOLDEN_WORD = tl.constexpr(0x9E3779B97F4A7C15)


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
