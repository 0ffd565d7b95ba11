"""Kernels of sums by label."""

from __future__ import annotations

import triton
import triton.language as tl

from .pieces import _framed


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
