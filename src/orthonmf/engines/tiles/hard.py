"""Kernels of the hard pass, and of the distances that say how sure a label is."""

from __future__ import annotations

import triton
import triton.language as tl

from .pieces import _framed, _inner, _measured, _parts, _products, _store_sums, _table, _weighted


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
