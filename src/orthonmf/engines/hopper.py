"""The passes whose sums fit in a program, with memory laid out by hand for the matrix units of Hopper (compute capability 9.0).

The same formulas and results as the kernels of that name in ``engines.triton``, which leave the layout to the compiler: there the parts of
an item go to the matrix units by way of registers, and every product is waited for. Here they are written once to shared memory, where
both products of a pass read them, and the next tile is on its way while this one is worked on.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, warpgroup_mma, warpgroup_mma_wait

LOG2 = gl.constexpr(0.6931471805599453)


@gluon.jit
def _exp2(x):
    return gl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=r,r", [x], dtype=gl.float32, is_pure=True, pack=1)


@gluon.jit
def _log2(x):
    return gl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=r,r", [x], dtype=gl.float32, is_pure=True, pack=1)


@gluon.jit
def _inverse(x):
    return gl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=r,r", [x], dtype=gl.float32, is_pure=True, pack=1)


@gluon.jit
def _narrow(x):
    """The nearest number of 8 bits, two at a time."""
    return gl.inline_asm_elementwise("cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,r,r", [x], dtype=gl.bfloat16, is_pure=True, pack=2)


@gluon.jit
def _kept(numbers, WIDTH: gl.constexpr, HEIGHT: gl.constexpr):
    """Numbers (HEIGHT, WIDTH) in shared memory, as the matrix units read them."""
    layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([HEIGHT, WIDTH], gl.bfloat16)
    return gl.allocate_shared_memory(gl.bfloat16, [HEIGHT, WIDTH], layout, numbers)


@gluon.jit
def _room(WIDTH: gl.constexpr, HEIGHT: gl.constexpr):
    layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([HEIGHT, WIDTH], gl.bfloat16)
    return gl.allocate_shared_memory(gl.bfloat16, [HEIGHT, WIDTH], layout)


@gluon.jit
def _loaded(values, projects, start, n_items, P: gl.constexpr, ROWS: gl.constexpr, layout: gl.constexpr):
    """The numbers of a tile, and how much of the reference is in each of its items."""
    near = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    dims = gl.arange(0, P, gl.SliceLayout(0, layout))
    there = start + near < n_items
    x = gl.load(values + start.to(gl.int64) * P + near[:, None] * P + dims[None, :], mask=there[:, None], other=0.0)
    return x, gl.load(projects + start + near, mask=there, other=0.0)


@gluon.jit
def _parts(beside, part, layout: gl.constexpr, P: gl.constexpr, K: gl.constexpr):
    """One part of the centres, (P, K), in shared memory."""
    centers, dims = gl.arange(0, K, gl.SliceLayout(1, layout)), gl.arange(0, P, gl.SliceLayout(0, layout))
    return _kept(gl.load(beside + part * K * P + centers[:, None] * P + dims[None, :]), P, K).permute((1, 0))


@gluon.jit
def _items(factors, projects, squares, weights, start, n_items, ROWS: gl.constexpr, layout: gl.constexpr):
    """f, s, ‖x'‖², ω, and which items there are."""
    rows = start + gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    there = rows < n_items
    factor = gl.load(factors + rows, mask=there, other=0.0)
    along = factor * gl.load(projects + rows, mask=there, other=0.0)
    return factor, along, gl.load(squares + rows, mask=there, other=0.0), gl.load(weights + rows, mask=there, other=0.0), rows, there


@gluon.jit
def _products(x_high, x_middle, x_low, high, middle, low, layout: gl.constexpr, ROWS: gl.constexpr, K: gl.constexpr, TERMS: gl.constexpr):
    """x·b from their parts, the smallest first; on its way."""
    total = gl.full([ROWS, K], 0.0, gl.float32, layout)
    total = warpgroup_mma(x_high, low, total, use_acc=False, is_async=True)
    if TERMS == 6:
        total = warpgroup_mma(x_low, high, total, is_async=True)
        total = warpgroup_mma(x_middle, middle, total, is_async=True)
    total = warpgroup_mma(x_middle, high, total, is_async=True)
    total = warpgroup_mma(x_high, middle, total, is_async=True)
    return warpgroup_mma(x_high, high, total, is_async=True)


@gluon.jit
def _weighted(x_high, x_middle, q_high, q_middle, layout: gl.constexpr, P: gl.constexpr, K: gl.constexpr):
    """xᵀ q from their parts."""
    tile = gl.full([P, K], 0.0, gl.float32, layout)
    tile = warpgroup_mma(x_middle.permute((1, 0)), q_high, tile, use_acc=False, is_async=True)
    tile = warpgroup_mma(x_high.permute((1, 0)), q_middle, tile, is_async=True)
    tile = warpgroup_mma(x_high.permute((1, 0)), q_high, tile, is_async=True)
    return warpgroup_mma_wait(0, deps=[tile])


@gluon.jit
def _measured(inner, along, cosine, rest_sq, offset, SCALED: gl.constexpr):
    """x̂·u for lines, and e = d − ‖x'‖²."""
    full = inner
    if SCALED:
        inner = inner - along[:, None] * offset[None, :]
        full = inner + along[:, None] * cosine[None, :]
        beyond = (along * along)[:, None] * rest_sq[None, :] - inner * (full + along[:, None] * cosine[None, :])
    else:
        beyond = rest_sq[None, :] - 2.0 * inner
    return full, beyond


@gluon.jit
def _table(table, layout: gl.constexpr, K: gl.constexpr):
    at = table + gl.arange(0, K, gl.SliceLayout(0, layout))
    return gl.load(at), gl.load(at + K), gl.load(at + 2 * K), gl.load(at + 3 * K)


@gluon.jit
def _by_center(x, ROWS: gl.constexpr, K: gl.constexpr):
    """Numbers (ROWS, K) as far added over the rows as a thread holds them."""
    return gl.sum(x.reshape([ROWS // 16, 2, 8, K]), axis=1)


@gluon.jit
def _over_rows(x, layout: gl.constexpr):
    """What ``_by_center`` left, added: (K,)."""
    return gl.convert_layout(gl.sum(gl.sum(x, axis=1), axis=0), gl.SliceLayout(0, layout))


@gluon.jit
def _in_thread(x, ROWS: gl.constexpr, K: gl.constexpr):
    """Numbers (ROWS, K) as far added as a thread holds them."""
    across: gl.constexpr = gl.num_warps() // 4
    x = gl.sum(_by_center(x, ROWS, K).reshape([ROWS // 16, 8, across, K // across // 8, 4, 2]), axis=5)
    return gl.sum(x, axis=3)


@gluon.jit
def _altogether(x):
    """What ``_in_thread`` left, added."""
    return gl.sum(gl.sum(gl.sum(gl.sum(x, axis=3), axis=2), axis=1), axis=0)


@gluon.jit
def _store_sums(partial, sums, layout: gl.constexpr, P: gl.constexpr, K: gl.constexpr):
    dims, centers = gl.arange(0, P, gl.SliceLayout(1, layout)), gl.arange(0, K, gl.SliceLayout(0, layout))
    gl.store(partial + dims[:, None] * K + centers[None, :], sums)


@gluon.jit
def soft_fused(
    values, factors, projects, squares, weights, ref, beside, table, partial, size, n_items, beta,
    SCALED: gl.constexpr, P: gl.constexpr, K: gl.constexpr, ROWS: gl.constexpr, TERMS: gl.constexpr,
):  # fmt: skip
    """All sums of one program."""
    X: gl.constexpr = gl.BlockedLayout([1, 4], [128 // P, P // 4], [gl.num_warps(), 1], [1, 0])
    M: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, gl.num_warps() // 4], [16, K // (gl.num_warps() // 4), 16])
    high, middle, low = _parts(beside, 0, X, P, K), _parts(beside, 1, X, P, K), _parts(beside, 2, X, P, K)
    reference = gl.load(ref + gl.arange(0, P, gl.SliceLayout(0, X)))
    x_high, x_middle, x_low = _room(P, ROWS), _room(P, ROWS), _room(P, ROWS)
    q_high, q_middle = _room(K, ROWS), _room(K, ROWS)
    sums = gl.full([P, K], 0.0, gl.float32, M)
    nothing = gl.full([ROWS, K], 0.0, gl.float32, M)
    mass, share = _by_center(nothing, ROWS, K), _by_center(nothing, ROWS, K)
    log_partition = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, M))
    around, distortion = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, M)), _in_thread(nothing, ROWS, K)
    first, programs = gl.program_id(0), gl.num_programs(0)
    following, project = _loaded(values, projects, first * ROWS, n_items, P, ROWS, X)
    for block in range(first, gl.cdiv(n_items, ROWS), programs):
        start = block * ROWS
        x = following - project[:, None] * reference[None, :]
        part = _narrow(x)
        x_high.store(part)
        rest = x - part.to(gl.float32)
        part = _narrow(rest)
        x_middle.store(part)
        if TERMS == 6:
            x_low.store(_narrow(rest - part.to(gl.float32)))
        fence_async_shared()
        total = _products(x_high, x_middle, x_low, high, middle, low, M, ROWS, K, TERMS)
        following, project = _loaded(values, projects, start + programs * ROWS, n_items, P, ROWS, X)
        factor, along, sq, weight, _, _ = _items(factors, projects, squares, weights, start, n_items, ROWS, M)
        inner = warpgroup_mma_wait(0, deps=[total]) * factor[:, None]
        cosine, rest_sq, offset, log_mass = _table(table, M, K)
        full, beyond = _measured(inner, along, cosine, rest_sq, offset, SCALED)
        logit = log_mass[None, :] - beta * beyond
        top = gl.max(logit, axis=1)
        resp = _exp2(logit - top[:, None])
        norm = gl.sum(resp, axis=1)
        log_partition += weight * ((top + _log2(norm)) * LOG2 - beta * LOG2 * sq)
        resp = resp * (weight * _inverse(norm))[:, None]
        around += weight * sq
        distortion += _in_thread(resp * beyond, ROWS, K)
        mass += _by_center(resp, ROWS, K)
        if SCALED:
            resp = resp * full
            share += _by_center(resp * along[:, None], ROWS, K)
        resp = resp * factor[:, None]
        part = _narrow(resp)
        q_high.store(part)
        q_middle.store(_narrow(resp - part.to(gl.float32)))
        fence_async_shared()
        sums += _weighted(x_high, x_middle, q_high, q_middle, M, P, K)
    partial += first.to(gl.int64) * size
    _store_sums(partial, sums, M, P, K)
    columns = partial + P * K + gl.arange(0, K, gl.SliceLayout(0, M))
    gl.store(columns, _over_rows(mass, M))
    gl.store(columns + K, _over_rows(share, M))
    gl.store(partial + (P + 2) * K, gl.sum(log_partition, axis=0))
    gl.store(partial + (P + 2) * K + 1, gl.sum(around, axis=0) + _altogether(distortion))


@gluon.jit
def hard_fused(
    values, factors, projects, squares, weights, ref, beside, table, before, labels, partial, size, n_items,
    SCALED: gl.constexpr, LABELLED: gl.constexpr, P: gl.constexpr, K: gl.constexpr, ROWS: gl.constexpr, TERMS: gl.constexpr,
):  # fmt: skip
    """The nearest centre of every item, the first of equal ones, and all sums of one program."""
    X: gl.constexpr = gl.BlockedLayout([1, 4], [128 // P, P // 4], [gl.num_warps(), 1], [1, 0])
    M: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, gl.num_warps() // 4], [16, K // (gl.num_warps() // 4), 16])
    high, middle, low = _parts(beside, 0, X, P, K), _parts(beside, 1, X, P, K), _parts(beside, 2, X, P, K)
    reference = gl.load(ref + gl.arange(0, P, gl.SliceLayout(0, X)))
    centers = gl.arange(0, K, gl.SliceLayout(0, M))
    x_high, x_middle, x_low = _room(P, ROWS), _room(P, ROWS), _room(P, ROWS)
    q_high, q_middle = _room(K, ROWS), _room(K, ROWS)
    sums = gl.full([P, K], 0.0, gl.float32, M)
    nothing = gl.full([ROWS, K], 0.0, gl.float32, M)
    mass, share = _by_center(nothing, ROWS, K), _by_center(nothing, ROWS, K)
    count, cost = _by_center(nothing, ROWS, K), _by_center(nothing, ROWS, K)
    changed = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, M))
    first, programs = gl.program_id(0), gl.num_programs(0)
    following, project = _loaded(values, projects, first * ROWS, n_items, P, ROWS, X)
    for block in range(first, gl.cdiv(n_items, ROWS), programs):
        start = block * ROWS
        x = following - project[:, None] * reference[None, :]
        part = _narrow(x)
        x_high.store(part)
        rest = x - part.to(gl.float32)
        part = _narrow(rest)
        x_middle.store(part)
        if TERMS == 6:
            x_low.store(_narrow(rest - part.to(gl.float32)))
        fence_async_shared()
        total = _products(x_high, x_middle, x_low, high, middle, low, M, ROWS, K, TERMS)
        following, project = _loaded(values, projects, start + programs * ROWS, n_items, P, ROWS, X)
        factor, along, sq, weight, rows, there = _items(factors, projects, squares, weights, start, n_items, ROWS, M)
        inner = warpgroup_mma_wait(0, deps=[total]) * factor[:, None]
        cosine, rest_sq, offset, _ = _table(table, M, K)
        full, beyond = _measured(inner, along, cosine, rest_sq, offset, SCALED)
        least = gl.min(beyond, axis=1)
        label = gl.min(gl.where(beyond == least[:, None], centers[None, :], K), axis=1)
        own = centers[None, :] == label[:, None]
        gl.store(labels + rows, label, mask=there)
        if LABELLED:
            changed += ((label != gl.load(before + rows, mask=there, other=0)) & there).to(gl.float32)
        count += _by_center(gl.where(own, there.to(gl.float32)[:, None], 0.0), ROWS, K)
        cost += _by_center(gl.where(own, (weight * gl.maximum(least + sq, 0.0))[:, None], 0.0), ROWS, K)
        resp = gl.where(own, weight[:, None], 0.0)
        mass += _by_center(resp, ROWS, K)
        if SCALED:
            resp = resp * full
            share += _by_center(resp * along[:, None], ROWS, K)
        resp = resp * factor[:, None]
        part = _narrow(resp)
        q_high.store(part)
        q_middle.store(_narrow(resp - part.to(gl.float32)))
        fence_async_shared()
        sums += _weighted(x_high, x_middle, q_high, q_middle, M, P, K)
    partial += first.to(gl.int64) * size
    _store_sums(partial, sums, M, P, K)
    columns = partial + P * K + gl.arange(0, K, gl.SliceLayout(0, M))
    gl.store(columns, _over_rows(mass, M))
    gl.store(columns + K, _over_rows(share, M))
    gl.store(columns + 2 * K, _over_rows(count, M))
    gl.store(columns + 3 * K, _over_rows(cost, M))
    gl.store(partial + (P + 4) * K, gl.sum(changed, axis=0))
