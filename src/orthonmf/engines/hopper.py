"""The passes with memory laid out by hand for the matrix units of Hopper (compute capability 9.0), for items of 33 to 128 dimensions.

The same formulas and results as the kernels of that name in ``engines.tiles``, which leave the layout to the compiler: there the parts of
an item go to the matrix units by way of registers, and every product is waited for. Here they are written once to shared memory, where
all products of a pass read them, and the next tile is on its way while this one is worked on: of items where all centres are at hand, of
centres, part by part through a ring of four places, where there are too many.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import async_copy, fence_async_shared, warpgroup_mma, warpgroup_mma_wait

# As Triton calls them from 3.7 and 3.8 on, and as before.
barrier = getattr(gl, "barrier", None) or gl.thread_barrier
async_load = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared

LOG_OF_2 = gl.constexpr(0.6931471805599453)


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
def _narrowed(x):
    """The nearest number of 8 bits and what is left, two at a time."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 wide;
        cvt.rn.bf16x2.f32 $0, $4, $3;
        shl.b32 wide, $0, 16;
        sub.f32 $1, $3, wide;
        and.b32 wide, $0, -65536;
        sub.f32 $2, $4, wide;
        }""",
        "=&r,=&r,=&r,r,r",
        [x],
        dtype=(gl.bfloat16, gl.float32),
        is_pure=True,
        pack=2,
    )


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
def _loaded(values, projects, start, n_items, DIMS: gl.constexpr, P: gl.constexpr, ROWS: gl.constexpr, layout: gl.constexpr):
    """The numbers of a tile, and how much of the reference is in each of its items."""
    near = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    dims = gl.arange(0, P, gl.SliceLayout(0, layout))
    there = start + near < n_items
    at = values + start.to(gl.int64) * DIMS + near[:, None] * DIMS + dims[None, :]
    if DIMS == P:  # noqa: SIM108
        x = gl.load(at, mask=there[:, None], other=0.0)
    else:
        x = gl.load(at, mask=there[:, None] & (dims < DIMS)[None, :], other=0.0)
    return x, gl.load(projects + start + near, mask=there, other=0.0)


@gluon.jit
def _parts(beside, part, layout: gl.constexpr, P: gl.constexpr, SIDE: gl.constexpr, K: gl.constexpr):
    """One part of some of K centres, (P, SIDE), in shared memory."""
    centers, dims = gl.arange(0, SIDE, gl.SliceLayout(1, layout)), gl.arange(0, P, gl.SliceLayout(0, layout))
    return _kept(gl.load(beside + part * K * P + centers[:, None] * P + dims[None, :]), P, SIDE).permute((1, 0))


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
def _keep(x, x_high, x_middle, x_low, TERMS: gl.constexpr):
    """Write the parts of numbers to shared memory."""
    part, rest = _narrowed(x)
    x_high.store(part)
    if TERMS == 6:
        part, rest = _narrowed(rest)
        x_middle.store(part)
        x_low.store(_narrow(rest))
    else:
        x_middle.store(_narrow(rest))
    fence_async_shared()


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
def _table(table, layout: gl.constexpr, SIDE: gl.constexpr, K: gl.constexpr):
    """c, ‖b‖², b·(ref − ref32) and the logarithm of the mass of some of K centres."""
    at = table + gl.arange(0, SIDE, gl.SliceLayout(0, layout))
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
def _store_sums(partial, sums, layout: gl.constexpr, P: gl.constexpr, SIDE: gl.constexpr, K: gl.constexpr):
    dims, centers = gl.arange(0, P, gl.SliceLayout(1, layout)), gl.arange(0, SIDE, gl.SliceLayout(0, layout))
    gl.store(partial + dims[:, None] * K + centers[None, :], sums)


@gluon.jit
def soft_fused(
    values, factors, projects, squares, weights, ref, beside, table, partial, size, n_items, beta,
    SCALED: gl.constexpr, DIMS: gl.constexpr, P: gl.constexpr, K: gl.constexpr, ROWS: gl.constexpr, TERMS: gl.constexpr,
):  # fmt: skip
    """All sums of one program."""
    X: gl.constexpr = gl.BlockedLayout([1, 4], [128 // P, P // 4], [gl.num_warps(), 1], [1, 0])
    M: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, gl.num_warps() // 4], [16, K // (gl.num_warps() // 4), 16])
    high, middle, low = _parts(beside, 0, X, P, K, K), _parts(beside, 1, X, P, K, K), _parts(beside, 2, X, P, K, K)
    reference = gl.load(ref + gl.arange(0, P, gl.SliceLayout(0, X)))
    x_high, x_middle, x_low = _room(P, ROWS), _room(P, ROWS), _room(P, ROWS)
    q_high, q_middle = _room(K, ROWS), _room(K, ROWS)
    sums = gl.full([P, K], 0.0, gl.float32, M)
    nothing = gl.full([ROWS, K], 0.0, gl.float32, M)
    mass, share = _by_center(nothing, ROWS, K), _by_center(nothing, ROWS, K)
    log_partition = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, M))
    around, distortion = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, M)), _in_thread(nothing, ROWS, K)
    first, programs = gl.program_id(0), gl.num_programs(0)
    following, project = _loaded(values, projects, first * ROWS, n_items, DIMS, P, ROWS, X)
    for block in range(first, gl.cdiv(n_items, ROWS), programs):
        start = block * ROWS
        x = following - project[:, None] * reference[None, :]
        _keep(x, x_high, x_middle, x_low, TERMS)
        total = _products(x_high, x_middle, x_low, high, middle, low, M, ROWS, K, TERMS)
        following, project = _loaded(values, projects, start + programs * ROWS, n_items, DIMS, P, ROWS, X)
        factor, along, sq, weight, _, _ = _items(factors, projects, squares, weights, start, n_items, ROWS, M)
        inner = warpgroup_mma_wait(0, deps=[total]) * factor[:, None]
        cosine, rest_sq, offset, log_mass = _table(table, M, K, K)
        full, beyond = _measured(inner, along, cosine, rest_sq, offset, SCALED)
        logit = log_mass[None, :] - beta * beyond
        top = gl.max(logit, axis=1)
        resp = _exp2(logit - top[:, None])
        norm = gl.sum(resp, axis=1)
        log_partition += weight * ((top + _log2(norm)) * LOG_OF_2 - beta * LOG_OF_2 * sq)
        resp = resp * (weight * _inverse(norm))[:, None]
        around += weight * sq
        distortion += _in_thread(resp * beyond, ROWS, K)
        mass += _by_center(resp, ROWS, K)
        if SCALED:
            resp = resp * full
            share += _by_center(resp * along[:, None], ROWS, K)
        resp = resp * factor[:, None]
        _keep(resp, q_high, q_middle, q_middle, 4)
        sums += _weighted(x_high, x_middle, q_high, q_middle, M, P, K)
    partial += first.to(gl.int64) * size
    _store_sums(partial, sums, M, P, K, K)
    columns = partial + P * K + gl.arange(0, K, gl.SliceLayout(0, M))
    gl.store(columns, _over_rows(mass, M))
    gl.store(columns + K, _over_rows(share, M))
    gl.store(partial + (P + 2) * K, gl.sum(log_partition, axis=0))
    gl.store(partial + (P + 2) * K + 1, gl.sum(around, axis=0) + _altogether(distortion))


@gluon.jit
def hard_fused(
    values, factors, projects, squares, weights, ref, beside, table, before, labels, partial, size, n_items,
    SCALED: gl.constexpr, LABELLED: gl.constexpr, DIMS: gl.constexpr, P: gl.constexpr, K: gl.constexpr,
    ROWS: gl.constexpr, TERMS: gl.constexpr,
):  # fmt: skip
    """The nearest centre of every item, the first of equal ones, and all sums of one program."""
    X: gl.constexpr = gl.BlockedLayout([1, 4], [128 // P, P // 4], [gl.num_warps(), 1], [1, 0])
    M: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, gl.num_warps() // 4], [16, K // (gl.num_warps() // 4), 16])
    high, middle, low = _parts(beside, 0, X, P, K, K), _parts(beside, 1, X, P, K, K), _parts(beside, 2, X, P, K, K)
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
    following, project = _loaded(values, projects, first * ROWS, n_items, DIMS, P, ROWS, X)
    for block in range(first, gl.cdiv(n_items, ROWS), programs):
        start = block * ROWS
        x = following - project[:, None] * reference[None, :]
        _keep(x, x_high, x_middle, x_low, TERMS)
        total = _products(x_high, x_middle, x_low, high, middle, low, M, ROWS, K, TERMS)
        following, project = _loaded(values, projects, start + programs * ROWS, n_items, DIMS, P, ROWS, X)
        factor, along, sq, weight, rows, there = _items(factors, projects, squares, weights, start, n_items, ROWS, M)
        inner = warpgroup_mma_wait(0, deps=[total]) * factor[:, None]
        cosine, rest_sq, offset, _ = _table(table, M, K, K)
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
        _keep(resp, q_high, q_middle, q_middle, 4)
        sums += _weighted(x_high, x_middle, q_high, q_middle, M, P, K)
    partial += first.to(gl.int64) * size
    _store_sums(partial, sums, M, P, K, K)
    columns = partial + P * K + gl.arange(0, K, gl.SliceLayout(0, M))
    gl.store(columns, _over_rows(mass, M))
    gl.store(columns + K, _over_rows(share, M))
    gl.store(columns + 2 * K, _over_rows(count, M))
    gl.store(columns + 3 * K, _over_rows(cost, M))
    gl.store(partial + (P + 4) * K, gl.sum(changed, axis=0))


# --- more centres than are at hand at a time ----------------------------------------------------------------------------------------


@gluon.jit
def _fetch(ring, place, beside, part, k_at, P: gl.constexpr, SIDE: gl.constexpr, K: gl.constexpr):
    """Send for one part of some centres."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [256 // P, P // 8], [gl.num_warps(), 1], [1, 0])
    centers, dims = gl.arange(0, SIDE, gl.SliceLayout(1, layout)), gl.arange(0, P, gl.SliceLayout(0, layout))
    at = beside + (part * K + k_at) * P + centers[:, None] * P + dims[None, :]
    async_load(ring.index(place), at)
    async_copy.commit_group()


@gluon.jit
def _arrived():
    """Wait for the oldest of three parts that are on their way, and for all warps."""
    async_copy.wait_group(2)
    fence_async_shared()
    barrier()


@gluon.jit
def _ring(beside, P: gl.constexpr, SIDE: gl.constexpr, K: gl.constexpr):
    """Four places for parts of some centres, and those of the first tile on their way."""
    layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([SIDE, P], gl.bfloat16)
    ring = gl.allocate_shared_memory(gl.bfloat16, [4, SIDE, P], layout)
    _fetch(ring, 0, beside, 2, 0, P, SIDE, K)
    _fetch(ring, 1, beside, 1, 0, P, SIDE, K)
    _fetch(ring, 2, beside, 0, 0, P, SIDE, K)
    return ring


@gluon.jit
def _turned(
    ring, step, beside, next_at, x_high, x_middle, x_low, layout: gl.constexpr,
    P: gl.constexpr, SIDE: gl.constexpr, K: gl.constexpr, ROWS: gl.constexpr, TERMS: gl.constexpr,
):  # fmt: skip
    """x·b of a tile of centres, whose parts are at the ring's ``step`` and after; the parts of the next tile take the places of those done.

    A place is free when all warps have waited for what was read there: the barrier of ``_arrived`` says so of the last tile's highest part.
    """
    total = gl.full([ROWS, SIDE], 0.0, gl.float32, layout)
    _arrived()
    total = warpgroup_mma(x_high, ring.index(step % 4).permute((1, 0)), total, use_acc=False, is_async=True)
    _fetch(ring, (step + 3) % 4, beside, 2, next_at, P, SIDE, K)
    _arrived()
    middle = ring.index((step + 1) % 4).permute((1, 0))
    if TERMS == 6:
        total = warpgroup_mma(x_middle, middle, total, is_async=True)
    total = warpgroup_mma(x_high, middle, total, is_async=True)
    total = warpgroup_mma_wait(TERMS // 2 - 1, deps=[total])
    barrier()
    _fetch(ring, step % 4, beside, 1, next_at, P, SIDE, K)
    _arrived()
    high = ring.index((step + 2) % 4).permute((1, 0))
    if TERMS == 6:
        total = warpgroup_mma(x_low, high, total, is_async=True)
    total = warpgroup_mma(x_middle, high, total, is_async=True)
    total = warpgroup_mma(x_high, high, total, is_async=True)
    total = warpgroup_mma_wait(TERMS // 2, deps=[total])
    barrier()
    _fetch(ring, (step + 1) % 4, beside, 0, next_at, P, SIDE, K)
    return warpgroup_mma_wait(0, deps=[total])


@gluon.jit
def normalizers(
    values, factors, projects, squares, weights, ref, beside, table, tops, totals, n_items, beta,
    SCALED: gl.constexpr, DIMS: gl.constexpr, P: gl.constexpr, SIDE: gl.constexpr, K: gl.constexpr, ROWS: gl.constexpr, TERMS: gl.constexpr,
):  # fmt: skip
    """The largest logit of every item to base 2, and Z beside it, a tile of centres at a time; and Σ ω log Z of one program."""
    X: gl.constexpr = gl.BlockedLayout([1, 4], [128 // P, P // 4], [gl.num_warps(), 1], [1, 0])
    M: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, SIDE, 16])
    ring, step = _ring(beside, P, SIDE, K), 0
    reference = gl.load(ref + gl.arange(0, P, gl.SliceLayout(0, X)))
    x_high, x_middle, x_low = _room(P, ROWS), _room(P, ROWS), _room(P, ROWS)
    log_partition = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, M))
    for block in range(gl.program_id(0), gl.cdiv(n_items, ROWS), gl.num_programs(0)):
        start = block * ROWS
        x, project = _loaded(values, projects, start, n_items, DIMS, P, ROWS, X)
        barrier()
        _keep(x - project[:, None] * reference[None, :], x_high, x_middle, x_low, TERMS)
        factor, along, sq, weight, rows, there = _items(factors, projects, squares, weights, start, n_items, ROWS, M)
        top = gl.full([ROWS], -3e38, gl.float32, gl.SliceLayout(1, M))
        norm = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, M))
        for k_at in range(0, K, SIDE):
            total = _turned(ring, step, beside, (k_at + SIDE) % K, x_high, x_middle, x_low, M, P, SIDE, K, ROWS, TERMS)
            step += 3
            cosine, rest_sq, offset, log_mass = _table(table + k_at, M, SIDE, K)
            _, beyond = _measured(total * factor[:, None], along, cosine, rest_sq, offset, SCALED)
            logit = log_mass[None, :] - beta * beyond
            higher = gl.maximum(top, gl.max(logit, axis=1))
            norm = norm * _exp2(top - higher) + gl.sum(_exp2(logit - higher[:, None]), axis=1)
            top = higher
        gl.store(tops + rows, top, mask=there)
        gl.store(tops + n_items + rows, norm, mask=there)
        log_partition += weight * ((top + _log2(norm)) * LOG_OF_2 - beta * LOG_OF_2 * sq)
    async_copy.wait_group(0)
    gl.store(totals + gl.program_id(0), gl.sum(log_partition, axis=0))


@gluon.jit
def soft_tiles(
    values, factors, projects, squares, weights, tops, ref, beside, table, partial, size, n_items, n_chunks, beta,
    SCALED: gl.constexpr, DIMS: gl.constexpr, P: gl.constexpr, SIDE: gl.constexpr, K: gl.constexpr, ROWS: gl.constexpr, TERMS: gl.constexpr,
):  # fmt: skip
    """Sums of one program over its items, in one tile of centres, with the largest logits and Z given."""
    X: gl.constexpr = gl.BlockedLayout([1, 4], [128 // P, P // 4], [gl.num_warps(), 1], [1, 0])
    M: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, gl.num_warps() // 4], [16, SIDE // (gl.num_warps() // 4), 16])
    TILES: gl.constexpr = K // SIDE
    chunk, tile = gl.program_id(0) // TILES, gl.program_id(0) % TILES
    k_at = tile * SIDE
    beside += k_at * P
    high, middle, low = _parts(beside, 0, X, P, SIDE, K), _parts(beside, 1, X, P, SIDE, K), _parts(beside, 2, X, P, SIDE, K)
    reference = gl.load(ref + gl.arange(0, P, gl.SliceLayout(0, X)))
    x_high, x_middle, x_low = _room(P, ROWS), _room(P, ROWS), _room(P, ROWS)
    q_high, q_middle = _room(SIDE, ROWS), _room(SIDE, ROWS)
    sums, nothing = gl.full([P, SIDE], 0.0, gl.float32, M), gl.full([ROWS, SIDE], 0.0, gl.float32, M)
    mass, share, distortion = _by_center(nothing, ROWS, SIDE), _by_center(nothing, ROWS, SIDE), _in_thread(nothing, ROWS, SIDE)
    following, project = _loaded(values, projects, chunk * ROWS, n_items, DIMS, P, ROWS, X)
    for block in range(chunk, gl.cdiv(n_items, ROWS), n_chunks):
        start = block * ROWS
        _keep(following - project[:, None] * reference[None, :], x_high, x_middle, x_low, TERMS)
        total = _products(x_high, x_middle, x_low, high, middle, low, M, ROWS, SIDE, TERMS)
        following, project = _loaded(values, projects, start + n_chunks * ROWS, n_items, DIMS, P, ROWS, X)
        factor, along, sq, weight, rows, there = _items(factors, projects, squares, weights, start, n_items, ROWS, M)
        top, norm = gl.load(tops + rows, mask=there, other=0.0), gl.load(tops + n_items + rows, mask=there, other=1.0)
        inner = warpgroup_mma_wait(0, deps=[total]) * factor[:, None]
        cosine, rest_sq, offset, log_mass = _table(table + k_at, M, SIDE, K)
        full, beyond = _measured(inner, along, cosine, rest_sq, offset, SCALED)
        resp = _exp2(log_mass[None, :] - beta * beyond - top[:, None]) * (weight * _inverse(norm))[:, None]
        distortion += _in_thread(resp * (beyond + sq[:, None]), ROWS, SIDE)
        mass += _by_center(resp, ROWS, SIDE)
        if SCALED:
            resp = resp * full
            share += _by_center(resp * along[:, None], ROWS, SIDE)
        _keep(resp * factor[:, None], q_high, q_middle, q_middle, 4)
        sums += _weighted(x_high, x_middle, q_high, q_middle, M, P, SIDE)
    partial += chunk.to(gl.int64) * size
    _store_sums(partial + k_at, sums, M, P, SIDE, K)
    columns = partial + P * K + k_at + gl.arange(0, SIDE, gl.SliceLayout(0, M))
    gl.store(columns, _over_rows(mass, M))
    gl.store(columns + K, _over_rows(share, M))
    gl.store(partial + (P + 2) * K + tile, _altogether(distortion))


@gluon.jit
def nearest(
    values, factors, projects, squares, weights, ref, beside, table, before, labels, shares, costs, totals, n_items,
    SCALED: gl.constexpr, LABELLED: gl.constexpr, DIMS: gl.constexpr, P: gl.constexpr, SIDE: gl.constexpr, K: gl.constexpr,
    ROWS: gl.constexpr, TERMS: gl.constexpr,
):  # fmt: skip
    """The nearest centre of every item, a tile of centres at a time; its q, and ω max(d, 0); and how many labels of a program changed."""
    X: gl.constexpr = gl.BlockedLayout([1, 4], [128 // P, P // 4], [gl.num_warps(), 1], [1, 0])
    M: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, SIDE, 16])
    ring, step = _ring(beside, P, SIDE, K), 0
    reference = gl.load(ref + gl.arange(0, P, gl.SliceLayout(0, X)))
    x_high, x_middle, x_low = _room(P, ROWS), _room(P, ROWS), _room(P, ROWS)
    centers = gl.arange(0, SIDE, gl.SliceLayout(0, M))
    changed = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, M))
    for block in range(gl.program_id(0), gl.cdiv(n_items, ROWS), gl.num_programs(0)):
        start = block * ROWS
        x, project = _loaded(values, projects, start, n_items, DIMS, P, ROWS, X)
        barrier()
        _keep(x - project[:, None] * reference[None, :], x_high, x_middle, x_low, TERMS)
        factor, along, sq, weight, rows, there = _items(factors, projects, squares, weights, start, n_items, ROWS, M)
        least = gl.full([ROWS], 3e38, gl.float32, gl.SliceLayout(1, M))
        own = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, M))
        label = gl.full([ROWS], 0, gl.int32, gl.SliceLayout(1, M))
        for k_at in range(0, K, SIDE):
            total = _turned(ring, step, beside, (k_at + SIDE) % K, x_high, x_middle, x_low, M, P, SIDE, K, ROWS, TERMS)
            step += 3
            cosine, rest_sq, offset, _ = _table(table + k_at, M, SIDE, K)
            full, beyond = _measured(total * factor[:, None], along, cosine, rest_sq, offset, SCALED)
            least_here = gl.min(beyond, axis=1)
            found = gl.min(gl.where(beyond == least_here[:, None], centers[None, :], SIDE), axis=1)
            nearer = least_here < least
            if SCALED:
                full_here = gl.sum(gl.where(centers[None, :] == found[:, None], full, 0.0), axis=1)
                own = gl.where(nearer, full_here, own)
            label = gl.where(nearer, k_at + found, label)
            least = gl.minimum(least, least_here)
        gl.store(labels + rows, label, mask=there)
        gl.store(costs + rows, weight * gl.maximum(least + sq, 0.0), mask=there)
        if SCALED:
            gl.store(shares + rows, weight * own, mask=there)
        if LABELLED:
            changed += ((label != gl.load(before + rows, mask=there, other=0)) & there).to(gl.float32)
    async_copy.wait_group(0)
    gl.store(totals + gl.program_id(0), gl.sum(changed, axis=0))


@gluon.jit
def nearest_two(
    values, factors, projects, squares, ref, beside, table, labels, firsts, seconds, n_items,
    SCALED: gl.constexpr, LABELLED: gl.constexpr, DIMS: gl.constexpr, P: gl.constexpr, SIDE: gl.constexpr, K: gl.constexpr,
    ROWS: gl.constexpr, TERMS: gl.constexpr,
):  # fmt: skip
    """d of the centre that the label names and the least of the others; without labels of the nearest two, and the first's label."""
    X: gl.constexpr = gl.BlockedLayout([1, 4], [128 // P, P // 4], [gl.num_warps(), 1], [1, 0])
    M: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, SIDE, 16])
    ring, step = _ring(beside, P, SIDE, K), 0
    reference = gl.load(ref + gl.arange(0, P, gl.SliceLayout(0, X)))
    x_high, x_middle, x_low = _room(P, ROWS), _room(P, ROWS), _room(P, ROWS)
    centers = gl.arange(0, SIDE, gl.SliceLayout(0, M))
    for block in range(gl.program_id(0), gl.cdiv(n_items, ROWS), gl.num_programs(0)):
        start = block * ROWS
        x, project = _loaded(values, projects, start, n_items, DIMS, P, ROWS, X)
        barrier()
        _keep(x - project[:, None] * reference[None, :], x_high, x_middle, x_low, TERMS)
        factor, along, sq, _unused, rows, there = _items(factors, projects, squares, squares, start, n_items, ROWS, M)
        first = gl.full([ROWS], 3e38, gl.float32, gl.SliceLayout(1, M))
        second = gl.full([ROWS], 3e38, gl.float32, gl.SliceLayout(1, M))
        label = gl.full([ROWS], 0, gl.int32, gl.SliceLayout(1, M))
        if LABELLED:
            label = gl.load(labels + rows, mask=there, other=0)
        for k_at in range(0, K, SIDE):
            total = _turned(ring, step, beside, (k_at + SIDE) % K, x_high, x_middle, x_low, M, P, SIDE, K, ROWS, TERMS)
            step += 3
            cosine, rest_sq, offset, _ = _table(table + k_at, M, SIDE, K)
            _, beyond = _measured(total * factor[:, None], along, cosine, rest_sq, offset, SCALED)
            if LABELLED:
                own = (k_at + centers)[None, :] == label[:, None]
                first = gl.minimum(first, gl.min(gl.where(own, beyond, 3e38), axis=1))
                second = gl.minimum(second, gl.min(gl.where(own, 3e38, beyond), axis=1))
            else:
                least_here = gl.min(beyond, axis=1)
                found = gl.min(gl.where(beyond == least_here[:, None], centers[None, :], SIDE), axis=1)
                next_here = gl.min(gl.where(centers[None, :] == found[:, None], 3e38, beyond), axis=1)
                second = gl.minimum(gl.minimum(second, next_here), gl.maximum(first, least_here))
                label = gl.where(least_here < first, k_at + found, label)
                first = gl.minimum(first, least_here)
        if not LABELLED:
            gl.store(labels + rows, label, mask=there)
        gl.store(firsts + rows, gl.maximum(first + sq, 0.0), mask=there)
        gl.store(seconds + rows, gl.maximum(second + sq, 0.0), mask=there)
    async_copy.wait_group(0)
