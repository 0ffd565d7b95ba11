"""Kernels of the soft pass."""

from __future__ import annotations

import triton
import triton.language as tl

from .pieces import NATURAL_LOG2, _framed, _inner, _measured, _parts, _products, _store_sums, _table, _weighted


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
