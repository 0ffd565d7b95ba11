"""Loops over the items of a block, compiled by numba: what the hot passes of ``engines.compiled`` are made of.

Items are seen in their frame, x' = factor · x − along · ref, a few of them (a tile) at a time, so that they stay in the cache and nothing
cancels. Products with the centres are left to BLAS; what follows runs along the items, which is what the processor's vectors are good at.
No sum is reordered by the compiler (contraction to fused multiply-adds aside), and the number of threads changes no bit.

Items are rows of an array, or of a matrix in CSR form: (data, indices, indptr), where the first row begins at indptr[0]. Those are not
formed in their frame: sums are of factor · x alone, and the caller subtracts what the reference adds up to. What differs between the two
is in seven functions, each with a text for an array and one for CSR, of which numba takes what fits when it compiles.

A row is named by its array and its number: to slice it off takes as long as to work with sixty numbers of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

OPTIONS: Any = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def compiled(function):
    """The function, compiled when it is first called and kept on disk, where there is a place to keep it."""
    try:
        return njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no folder of the package or of the user can be written to
        return njit(**OPTIONS)(function)


# Numbers of items that are framed at once: 64 KiB in float32, which stay in a core's second-level cache with their products.
TILE_NUMBERS = 1 << 14
MIN_TILE, MAX_TILE = 16, 256
# Rows that are transposed at once. Of 300 centres a hard pass took a third of the time that it takes with all of a tile at once.
AT_ONCE = 8

# Stored entries ahead for which a row of a matrix is asked for, and bytes that come at once. Of 50 000 words, 50 numbers for each, products
# took 15 ns an entry instead of 32; with four entries ahead, 30.
ENTRIES_AHEAD, LINE = 16, 64

# e^x = 2^n e^r with n = round(x / log 2); adding 1.5 · 2^52 rounds, and leaves n in the last bits. Log 2 is in two parts,
# the first of so few bits that n times it is exact; |r| ≤ log 2 / 2, where fourteen terms of the series are exact to rounding.
ROUNDER = 6755399441055744.0
PER_LOG2, LOG2_HIGH, LOG2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Below it e^x is taken for 0.
LEAST_EXPONENT = -700.0
TINY = float(np.finfo(float).tiny)
# A distance errs by as many roundings of its terms as the item stores numbers, and so many more.
EPSILON, ROUNDINGS = float(np.finfo(float).eps), 64


# As in ``scrambled``.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@compiled
def tile_size(n_items, n_dims):
    """Items to be framed at once."""
    return min(n_items, max(MIN_TILE, min(MAX_TILE, TILE_NUMBERS // n_dims)))


@compiled
def sum_of_products(one, i, factor, other, j, count):
    """Σ factor · one[i] · other[j] over the first ``count`` numbers of two rows, in float64, in four sums side by side."""
    a = b = c = d = 0.0
    whole = count - count % 4
    for n in range(0, whole, 4):
        a += one[i, n] * factor * other[j, n]
        b += one[i, n + 1] * factor * other[j, n + 1]
        c += one[i, n + 2] * factor * other[j, n + 2]
        d += one[i, n + 3] * factor * other[j, n + 3]
    for n in range(whole, count):
        a += one[i, n] * factor * other[j, n]
    return (a + b) + (c + d)


@compiled
def keys(values, multipliers, found):
    """As ``DenseRawRows.keys``: the bits of each number well mixed, times an odd number of its dimension, summed modulo 2**64."""
    row = np.empty(values.shape[1])
    words = row.view(np.uint64)
    for i in range(values.shape[0]):
        total = np.uint64(0)
        for j in range(values.shape[1]):
            row[j] = values[i, j] + 0.0
            word = (words[j] ^ (words[j] >> np.uint64(32))) * GOLDEN
            total += (word ^ (word >> np.uint64(29))) * multipliers[j]
        found[i] = total


@compiled
def squared_norms(values, found):
    """‖x‖² of every item in float64."""
    for i in range(values.shape[0]):
        found[i] = sum_of_products(values, i, 1.0, values, i, values.shape[1])


@compiled
def frame_row(values, i, factor, along, ref, j, rest, at):
    """One item in its frame about the row ``j`` of ``ref``, into the row ``at`` of ``rest``."""
    for d in range(values.shape[1]):
        rest[at, d] = values[i, d] * factor - along * ref[j, d]


@compiled
def squared_residuals(values, scale, labels, components, found):
    """‖x − scale · component‖² of every item: its square in a frame whose reference is its component."""
    rest = np.empty((1, values.shape[1]))
    for i in range(values.shape[0]):
        frame_row(values, i, 1.0, scale[i], components, labels[i], rest, 0)
        found[i] = sum_of_products(rest, 0, 1.0, rest, 0, values.shape[1])


@compiled
def line_numbers(values, scale, ref, given, factor, along, sq, weight):
    """For unit items about a direction: 1 / ‖x‖, the coordinate along ``ref``, what is left squared, and w ‖x‖²."""
    n_dims = values.shape[1]
    rest, direction = np.empty((1, n_dims)), ref.reshape((1, n_dims))
    for i in range(values.shape[0]):
        size = sum_of_products(values, i, scale * scale, values, i, n_dims)
        factor[i] = scale / np.sqrt(size) if size > 0 else 0.0
        along[i] = sum_of_products(values, i, factor[i], direction, 0, n_dims)
        weight[i] = given[i] * size
        frame_row(values, i, factor[i], along[i], direction, 0, rest, 0)
        sq[i] = sum_of_products(rest, 0, 1.0, rest, 0, n_dims)


@compiled
def mean_numbers(values, scale, ref, given, factor, along, sq, weight):
    """For items about a point: what is left squared."""
    n_dims = values.shape[1]
    rest, point = np.empty((1, n_dims)), ref.reshape((1, n_dims))
    for i in range(values.shape[0]):
        factor[i] = scale
        along[i] = 1.0
        weight[i] = given[i]
        frame_row(values, i, scale, 1.0, point, 0, rest, 0)
        sq[i] = sum_of_products(rest, 0, 1.0, rest, 0, n_dims)


@compiled
def sparse_numbers(data, indices, indptr, scale, ref, given, scaled, factor, along, sq, weight):
    """The same of items in CSR form: about a direction where they are ``scaled``, else about a point.

    What is left squared is that of the stored numbers, and of the reference where none is stored.
    """
    point = ref.reshape((1, ref.shape[0]))
    ref_sq = sum_of_products(point, 0, 1.0, point, 0, ref.shape[0])
    for i in range(indptr.shape[0] - 1):
        size = inner = stored = rest = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            x, r = data[at] * scale, ref[indices[at]]
            size += x * x
            inner += x * r
            stored += r * r
        if scaled:
            factor[i] = scale / np.sqrt(size) if size > 0 else 0.0
            along[i] = inner / np.sqrt(size) if size > 0 else 0.0
            weight[i] = given[i] * size
        else:
            factor[i], along[i], weight[i] = scale, 1.0, given[i]
        for at in range(indptr[i], indptr[i + 1]):
            left = data[at] * factor[i] - along[i] * ref[indices[at]]
            rest += left * left
        sq[i] = rest + along[i] * along[i] * max(ref_sq - stored, 0.0)


@compiled
def framed(values, few, factor, along, ref, rest):
    """A few items in their frame."""
    point = ref.reshape((1, ref.shape[0]))
    for i in range(few.start, few.stop):
        frame_row(values, i, factor[i], along[i], point, 0, rest, i - few.start)


@compiled
def line_distance(inner, along, sq, cosine, rest_sq):
    """Distance of an item to a line, from what they have in common beside the reference."""
    parallel = cosine * along
    return rest_sq * (along * along) + sq - (parallel + parallel + inner) * inner


@compiled
def mean_distance(inner, sq, rest_sq):
    """Squared distance of an item to a point."""
    return rest_sq + sq - (inner + inner)


@compiled
def line_distances(inner, j, along, sq, cosine, rest_sq, distance):
    """Distances of the items to one line."""
    for i in range(inner.shape[1]):
        distance[j, i] = line_distance(inner[j, i], along[i], sq[i], cosine[j], rest_sq[j])


@compiled
def mean_distances(inner, j, sq, rest_sq, distance):
    """Squared distances of the items to one point."""
    for i in range(inner.shape[1]):
        distance[j, i] = mean_distance(inner[j, i], sq[i], rest_sq[j])


@intrinsic
def ask_for(typing_context, rows, i, offset):
    """Have the processor fetch what lies so many bytes into the row ``rows[i]``, without waiting for it."""

    def emit(context, builder, signature, arguments):
        word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.ptrtoint(array.data, word)
        place = builder.add(place, builder.mul(builder.sext(arguments[1], word), cgutils.unpack_tuple(builder, array.strides)[0]))
        kind = ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for_reading, for_long, of_data = (ir.Constant(ir.IntType(32), each) for each in (0, 3, 1))
        builder.call(fetch, [builder.inttoptr(builder.add(place, arguments[2]), pointer), for_reading, for_long, of_data])

    return types.void(rows, types.intp, types.intp), emit


@compiled
def ask_for_row(rows, indices, at, last):
    """Have the processor fetch the row of an entry that comes later, if one does."""
    if at + ENTRIES_AHEAD < last:
        for offset in range(0, rows.shape[1] * rows.itemsize, LINE):
            ask_for(rows, indices[at + ENTRIES_AHEAD], offset)


@compiled
def ask_for_entries(rows, j, indices, first, last):
    """Have the processor fetch what a row has at the stored entries of an item that comes next.

    Of 50 000 words and 50 rows, a product with one row took 5 ns an entry instead of 9, and so did adding to one.
    """
    for at in range(first, last):
        ask_for(rows, j, indices[at] * rows.itemsize)


def buffers(values, n_items, n_dims, n_centers):
    """What a tile needs: items in their frame (tile, n_dims), and four rows for products, distances and the items' own numbers."""


@overload(buffers, jit_options=OPTIONS)
def _buffers(values, n_items, n_dims, n_centers):
    def dense(values, n_items, n_dims, n_centers):
        tile = tile_size(n_items, n_dims)
        return np.empty((tile, n_dims), values.dtype), np.empty((4, n_centers * tile), values.dtype)

    def csr(values, n_items, n_dims, n_centers):
        tile = tile_size(n_items, n_centers)
        return np.empty((tile, 0)), np.empty((4, n_centers * tile))

    return csr if isinstance(values, types.BaseTuple) else dense


def at_once(values, n_items, vectors):
    """How many items are looked at before they are added to sums, and room for them in their frame: all where none are formed."""


@overload(at_once, jit_options=OPTIONS)
def _at_once(values, n_items, vectors):
    def dense(values, n_items, vectors):
        tile = tile_size(n_items, vectors.shape[-1])
        return tile, np.empty((tile, vectors.shape[-1]), vectors.dtype)

    def csr(values, n_items, vectors):
        return n_items, np.empty((0, 0))

    return csr if isinstance(values, types.BaseTuple) else dense


def multiplied(values, few, numbers, frame, centers, rest, products):
    """What a few items have in common with the centres beside the reference: (n_few, k). Items of an array are framed on the way."""


@overload(multiplied, jit_options=OPTIONS)
def _multiplied(values, few, numbers, frame, centers, rest, products):
    def dense(values, few, numbers, frame, centers, rest, products):
        framed(values, few, numbers[0], numbers[1], frame[0], rest)
        np.dot(rest[: few.stop - few.start], centers[1], products)

    def csr(values, few, numbers, frame, centers, rest, products):
        data, indices, indptr = values
        factor, along, beside, offset = numbers[0], numbers[1], centers[1], centers[3]
        products[:] = 0.0
        for i in range(few.start, few.stop):
            row = i - few.start
            for at in range(indptr[i], indptr[i + 1]):
                ask_for_row(beside, indices, at, indptr[-1])
                x, d = data[at], indices[at]
                for j in range(products.shape[1]):
                    products[row, j] += x * beside[d, j]
            for j in range(products.shape[1]):
                products[row, j] = products[row, j] * factor[i] - along[i] * offset[j]

    return csr if isinstance(values, types.BaseTuple) else dense


def add_items(values, few, numbers, shares, rows, rest, sums):
    """sums[row] += share · item, of a few items with a row and a share each; ``rest`` are these items where they are formed."""


@overload(add_items, jit_options=OPTIONS)
def _add_items(values, few, numbers, shares, rows, rest, sums):
    def dense(values, few, numbers, shares, rows, rest, sums):
        for at in range(few.stop - few.start):
            add_row(sums, rows[at], shares[at], rest, at)

    def csr(values, few, numbers, shares, rows, rest, sums):
        data, indices, indptr = values
        factor = numbers[0]
        for i in range(few.start, few.stop):
            j, share = rows[i - few.start], shares[i - few.start] * factor[i]
            if i + 1 < few.stop:
                ask_for_entries(sums, rows[i + 1 - few.start], indices, indptr[i + 1], indptr[i + 2])
            for at in range(indptr[i], indptr[i + 1]):
                sums[j, indices[at]] += share * data[at]

    return csr if isinstance(values, types.BaseTuple) else dense


def shared_sums(values, n_dims, n_centers):
    """Room for the sums of responsibilities."""


@overload(shared_sums, jit_options=OPTIONS)
def _shared_sums(values, n_dims, n_centers):
    def dense(values, n_dims, n_centers):
        return np.empty((n_centers, n_dims), values.dtype)

    def csr(values, n_dims, n_centers):
        return np.zeros((n_dims, n_centers))

    return csr if isinstance(values, types.BaseTuple) else dense


def add_shared(values, few, numbers, inner, rest, part, sums):
    """Add a few items to the sums, with the shares ``inner`` (k, n_few); those in CSR form to ``part``, which ``end_shared`` adds."""


@overload(add_shared, jit_options=OPTIONS)
def _add_shared(values, few, numbers, inner, rest, part, sums):
    def dense(values, few, numbers, inner, rest, part, sums):
        np.dot(inner, rest[: few.stop - few.start], part)
        for j in range(part.shape[0]):
            add_row(sums, j, 1.0, part, j)

    def csr(values, few, numbers, inner, rest, part, sums):
        data, indices, indptr = values
        shares = np.empty(part.shape[1])
        for i in range(few.start, few.stop):
            for j in range(part.shape[1]):
                shares[j] = inner[j, i - few.start] * numbers[0][i]
            for at in range(indptr[i], indptr[i + 1]):
                ask_for_row(part, indices, at, indptr[-1])
                x, d = data[at], indices[at]
                for j in range(part.shape[1]):
                    part[d, j] += x * shares[j]

    return csr if isinstance(values, types.BaseTuple) else dense


def end_shared(values, part, sums):
    """Add what is left to be added."""


@overload(end_shared, jit_options=OPTIONS)
def _end_shared(values, part, sums):
    def dense(values, part, sums):
        pass

    def csr(values, part, sums):
        for d in range(part.shape[0]):
            for j in range(part.shape[1]):
                sums[j, d] += part[d, j]

    return csr if isinstance(values, types.BaseTuple) else dense


def own_products(values, few, numbers, ref, rest, vectors, rows, offset, inner):
    """What each of a few items has in common with its row of ``vectors`` beside the reference, and the items in their frame.

    ``offset`` are the products of the vectors with the reference.
    """


@overload(own_products, jit_options=OPTIONS)
def _own_products(values, few, numbers, ref, rest, vectors, rows, offset, inner):
    def dense(values, few, numbers, ref, rest, vectors, rows, offset, inner):
        framed(values, few, numbers[0], numbers[1], ref, rest)
        for at in range(few.stop - few.start):
            inner[at] = sum_of_products(rest, at, 1.0, vectors, rows[at], rest.shape[1])

    def csr(values, few, numbers, ref, rest, vectors, rows, offset, inner):
        data, indices, indptr = values
        factor, along = numbers[0], numbers[1]
        for i in range(few.start, few.stop):
            j, total = rows[i - few.start], 0.0
            if i + 1 < few.stop:
                ask_for_entries(vectors, rows[i + 1 - few.start], indices, indptr[i + 1], indptr[i + 2])
            for at in range(indptr[i], indptr[i + 1]):
                total += data[at] * vectors[j, indices[at]]
            inner[i - few.start] = total * factor[i] - along[i] * offset[j]

    return csr if isinstance(values, types.BaseTuple) else dense


@compiled
def products(data, indices, indptr, first, beside, found):
    """x · v of items in CSR form from the ``first`` on, (n_items, n_vectors), for the columns v of ``beside``."""
    found[:] = 0.0
    for i in range(found.shape[0]):
        for at in range(indptr[first + i], indptr[first + i + 1]):
            ask_for_row(beside, indices, at, indptr[-1])
            x, d = data[at], indices[at]
            for j in range(found.shape[1]):
                found[i, j] += x * beside[d, j]


@compiled
def turned_products(data, indices, indptr, beside, found):
    """The same of all items, (n_vectors, n_items), a few at a time: they are turned while they are in the cache."""
    few = np.empty((min(MAX_TILE, found.shape[1]), found.shape[0]))
    for start in range(0, found.shape[1], MAX_TILE):
        stop = min(start + MAX_TILE, found.shape[1])
        products(data, indices, indptr, start, beside, few[: stop - start])
        transposed(few[: stop - start], found[:, start:stop])


@compiled
def coordinates(data, indices, indptr, scale, beside, offset, found):
    """(scale · x − about) · v of every item in CSR form, (n_items, n_vectors); ``offset`` are about · v."""
    products(data, indices, indptr, 0, beside, found)
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            found[i, j] = found[i, j] * scale - offset[j]


@compiled
def spread_back(data, indices, indptr, scale, weight, inner, sums, total):
    """Add w inner x to the sums (n_dims, n_vectors), and w inner to the total, of every item in CSR form."""
    share = np.empty_like(inner[0])
    for i in range(inner.shape[0]):
        for j in range(share.shape[0]):
            total[j] += weight[i] * inner[i, j]
            share[j] = weight[i] * inner[i, j] * scale
        for at in range(indptr[i], indptr[i + 1]):
            ask_for_row(sums, indices, at, indptr[-1])
            x, d = data[at], indices[at]
            for j in range(share.shape[0]):
                sums[d, j] += x * share[j]


@compiled
def sums_of_few(data, indices, indptr, weights, sums):
    """Add weights (k, n_items), most of which are 0, times the items in CSR form to their sums (k, n_dims)."""
    for j in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            if weights[j, i] != 0:
                for at in range(indptr[i], indptr[i + 1]):
                    sums[j, indices[at]] += weights[j, i] * data[at]


@compiled
def stored_residuals(data, indices, indptr, scale, labels, components, stored, covered):
    """Over the stored entries of items in CSR form, ‖x − scale · component‖² and ‖component‖² of every item."""
    for i in range(scale.shape[0]):
        if i + 1 < scale.shape[0]:
            ask_for_entries(components, labels[i + 1], indices, indptr[i + 1], indptr[i + 2])
        rest = size = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            value = components[labels[i], indices[at]]
            left = data[at] - value * scale[i]
            rest += left * left
            size += value * value
        stored[i], covered[i] = rest, size


@compiled
def settled(sums, parallel, ref, found):
    """Sums of items that were not formed, less what the reference adds up to; after those along it, where there is a place for them."""
    first = found.shape[1] - ref.shape[0]
    for j in range(sums.shape[0]):
        if first:
            found[j, 0] = parallel[j]
        for d in range(sums.shape[1]):
            found[j, first + d] = sums[j, d] - parallel[j] * ref[d]


@compiled
def transposed(one, other):
    """other = oneᵀ, a few rows at a time: where rows of 256 items follow each other, one number of each falls into the same cache sets."""
    whole = one.shape[0] - one.shape[0] % AT_ONCE
    for start in range(0, whole, AT_ONCE):
        for j in range(one.shape[1]):
            for i in range(AT_ONCE):
                other[j, start + i] = one[start + i, j]
    for i in range(whole, one.shape[0]):
        for j in range(one.shape[1]):
            other[j, i] = one[i, j]


@compiled
def measured(values, few, numbers, frame, centers, rest, room):
    """What a few items have in common with the centres beside the reference, and how far they are from them: (k, n_few) each.

    ``numbers`` are the factor, the coordinate along the reference, the square of the rest and the weight ω of every item; ``frame`` the
    reference, and whether items are scaled; ``centers`` those along the reference (k,), beside it (n_dims, k), that squared (k,), and its
    product with the reference (k,).
    """
    along, sq = numbers[1], numbers[2]
    cosine, rest_sq = centers[0], centers[2]
    n_few, k = few.stop - few.start, cosine.shape[0]
    inner, distance = room[0, : k * n_few].reshape((k, n_few)), room[1, : k * n_few].reshape((k, n_few))
    products = room[1, : k * n_few].reshape((n_few, k))  # BLAS is quicker this way round
    multiplied(values, few, numbers, frame, centers, rest, products)
    transposed(products, inner)
    room[2, :n_few], room[3, :n_few] = along[few], sq[few]  # in the precision of the items
    for j in range(k):
        if frame[1]:
            line_distances(inner, j, room[2, :n_few], room[3, :n_few], cosine, rest_sq, distance)
        else:
            mean_distances(inner, j, room[3, :n_few], rest_sq, distance)
    return inner, distance


@compiled
def lowest(distance, found, least):
    """For every item (column) the row of the least distance, the first of equal ones, and that distance."""
    found[:], least[:] = 0, distance[0]
    for j in range(1, distance.shape[0]):
        row = distance[j]
        for i in range(row.shape[0]):
            nearer = row[i] < least[i]
            least[i] = row[i] if nearer else least[i]
            found[i] = j if nearer else found[i]


@compiled
def add_row(sums, j, weight, rows, at):
    """sums[j] += weight · rows[at]."""
    for d in range(rows.shape[1]):
        sums[j, d] += weight * rows[at, d]


@compiled
def hard(values, numbers, frame, centers, labels, mass, sizes, cost, parallel, sums, changed):
    """The nearest centre of every item, and sums of the items by it, for each of several sets of centres: labels (n_items, n_sets).

    The sums are those along the reference, ``parallel``, and those beside it (n_sets · k, n_dims).
    """
    along, weight, scaled, cosine = numbers[1], numbers[3], frame[1], centers[0]
    n_items, n_dims = along.shape[0], frame[0].shape[0]
    n_sets, k = labels.shape[1], cosine.shape[0] // labels.shape[1]
    rest, room = buffers(values, n_items, n_dims, cosine.shape[0])
    found, least = np.empty(rest.shape[0], np.int32), np.empty(rest.shape[0], room.dtype)
    rows, shares = np.empty(rest.shape[0], np.intp), np.empty(rest.shape[0])
    for start in range(0, n_items, rest.shape[0]):
        few = slice(start, min(start + rest.shape[0], n_items))
        inner, distance = measured(values, few, numbers, frame, centers, rest, room)
        for s in range(n_sets):
            lowest(distance[s * k : s * k + k], found[: few.stop - start], least[: few.stop - start])
            for i in range(start, few.stop):
                changed[s] += labels[i, s] != found[i - start]
                labels[i, s] = found[i - start]
            for i in range(start, few.stop):
                j = s * k + labels[i, s]
                mass[j] += weight[i]
                sizes[j] += 1
                cost[j] += weight[i] * max(distance[j, i - start], 0)
                share = weight[i] * (inner[j, i - start] + cosine[j] * along[i]) if scaled else weight[i]
                parallel[j] += share * along[i]
                rows[i - start], shares[i - start] = j, share
            add_items(values, few, numbers, shares, rows, rest, sums)


@compiled
def labelled(values, numbers, frame, centers, labels, mass, sizes, cost, parallel, sums):
    """Sums of the items by the component that each has; ``centers`` as for ``hard``, but beside the reference (k, n_dims)."""
    along, sq, weight = numbers[1], numbers[2], numbers[3]
    (ref, scaled), (cosine, beside, rest_sq, offset) = frame, centers
    n_items = along.shape[0]
    tile, rest = at_once(values, n_items, beside)
    inner, shares = np.empty(tile), np.empty(tile)
    for start in range(0, n_items, tile):
        few = slice(start, min(start + tile, n_items))
        own_products(values, few, numbers, ref, rest, beside, labels[few], offset, inner)
        for i in range(start, few.stop):
            j, common = labels[i], inner[i - start]
            away = line_distance(common, along[i], sq[i], cosine[j], rest_sq[j]) if scaled else mean_distance(common, sq[i], rest_sq[j])
            mass[j] += weight[i]
            sizes[j] += 1
            cost[j] += weight[i] * max(away, 0)
            shares[i - start] = weight[i] * (common + cosine[j] * along[i]) if scaled else weight[i]
            parallel[j] += shares[i - start] * along[i]
        add_items(values, few, numbers, shares, labels[few], rest, sums)


@compiled
def led(data, indices, indptr, numbers, scaled, centers, moved, far, labels, lead):
    """The nearest centre of every item in CSR form, the first of equal ones, and by how much it leads: √d to the next less √d to it.

    √d obeys the triangle inequality. So an item that has a label (not −1) keeps it where its lead is more than its centre and the others
    have ``moved`` (k,) since it was found, and more than rounding may turn: an item and a centre are no farther from 0 than √‖x'‖² and
    ``far`` together.
    """
    factor, along, sq = numbers[0], numbers[1], numbers[2]
    cosine, beside, rest_sq, offset = centers
    k, inner, fastest = cosine.shape[0], np.empty(cosine.shape[0]), np.argmax(moved)
    most, next_most = moved[fastest], 0.0
    for j in range(k):
        if j != fastest:
            next_most = max(next_most, moved[j])
    for i in range(labels.shape[0]):
        rounding = (indptr[i + 1] - indptr[i] + ROUNDINGS) * EPSILON
        if labels[i] >= 0:
            lead[i] -= moved[labels[i]] + (next_most if labels[i] == fastest else most)
            if lead[i] > 4 * np.sqrt(rounding) * (np.sqrt(sq[i]) + far):
                continue
        inner[:] = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            ask_for_row(beside, indices, at, indptr[-1])
            x, d = data[at], indices[at]
            for j in range(k):
                inner[j] += x * beside[d, j]
        for j in range(k):
            common = inner[j] * factor[i] - along[i] * offset[j]
            inner[j] = line_distance(common, along[i], sq[i], cosine[j], rest_sq[j]) if scaled else mean_distance(common, sq[i], rest_sq[j])
        found, least, second = 0, inner[0], np.inf
        for j in range(1, k):
            if inner[j] < least:
                found, least, second = j, inner[j], least
            else:
                second = min(second, inner[j])
        labels[i], lead[i] = found, np.sqrt(max(second, 0.0)) - np.sqrt(max(least, 0.0))


@compiled
def nearest(values, numbers, frame, centers, labels, least):
    """The nearest centre of every item, and how far it is."""
    n_items = numbers[0].shape[0]
    rest, room = buffers(values, n_items, frame[0].shape[0], centers[0].shape[0])
    for start in range(0, n_items, rest.shape[0]):
        few = slice(start, min(start + rest.shape[0], n_items))
        _, distance = measured(values, few, numbers, frame, centers, rest, room)
        lowest(distance, labels[few], least[few])


@compiled
def costs(values, numbers, frame, centers, found):
    """ω d of every item and centre, (n_items, k)."""
    weight, n_items = numbers[3], numbers[0].shape[0]
    rest, room = buffers(values, n_items, frame[0].shape[0], centers[0].shape[0])
    for start in range(0, n_items, rest.shape[0]):
        few = slice(start, min(start + rest.shape[0], n_items))
        _, distance = measured(values, few, numbers, frame, centers, rest, room)
        for i in range(start, few.stop):
            for j in range(distance.shape[0]):
                found[i, j] = weight[i] * max(distance[j, i - start], 0)


@compiled
def two_cheapest(values, numbers, frame, centers, prices, labels, runner, slack):
    """The components in which every item costs least and next, ω d + price, the first of equal ones, and the difference."""
    weight, n_items = numbers[3], numbers[0].shape[0]
    rest, room = buffers(values, n_items, frame[0].shape[0], centers[0].shape[0])
    least, second = np.empty(rest.shape[0]), np.empty(rest.shape[0])
    for start in range(0, n_items, rest.shape[0]):
        few = slice(start, min(start + rest.shape[0], n_items))
        _, distance = measured(values, few, numbers, frame, centers, rest, room)
        least[:], second[:] = np.inf, np.inf
        labels[few], runner[few] = 0, 0
        for j in range(distance.shape[0]):
            for i in range(start, few.stop):
                cost = weight[i] * max(distance[j, i - start], 0) + prices[j]
                at = i - start
                if cost < least[at]:
                    second[at], runner[i] = least[at], labels[i]
                    least[at], labels[i] = cost, j
                elif cost < second[at]:
                    second[at], runner[i] = cost, j
        for i in range(start, few.stop):
            slack[i] = second[i - start] - least[i - start]


@compiled
def own_and_other(values, numbers, frame, centers, labels, own, other):
    """How far every item is from its own centre, and from the nearest other."""
    n_items = numbers[0].shape[0]
    rest, room = buffers(values, n_items, frame[0].shape[0], centers[0].shape[0])
    other[:] = np.inf
    for start in range(0, n_items, rest.shape[0]):
        few = slice(start, min(start + rest.shape[0], n_items))
        _, distance = measured(values, few, numbers, frame, centers, rest, room)
        for j in range(distance.shape[0]):
            for i in range(start, few.stop):
                away = distance[j, i - start]
                if labels[i] == j:
                    own[i] = away
                else:
                    other[i] = min(other[i], away)


@compiled
def moves(values, numbers, frame, centers, labels, moving, mass, cost, gain, goal):
    """What every item gains by moving to its best other component, with the weight ``moving``; as ``join`` and ``leave`` of the losses."""
    along, scaled, cosine = numbers[1], frame[1], centers[0]
    n_items = along.shape[0]
    rest, room = buffers(values, n_items, frame[0].shape[0], cosine.shape[0])
    leave, join = np.empty(rest.shape[0]), np.empty(rest.shape[0])
    for start in range(0, n_items, rest.shape[0]):
        few = slice(start, min(start + rest.shape[0], n_items))
        inner, distance = measured(values, few, numbers, frame, centers, rest, room)
        join[:] = np.inf
        for j in range(cosine.shape[0]):
            explained = max(mass[j] - cost[j], TINY)
            for i in range(start, few.stop):
                added = moving[i] * max(distance[j, i - start], 0)
                full = inner[j, i - start] + cosine[j] * along[i]
                turn = moving[i] * full * full * added / explained
                if labels[i] == j:
                    left = max(mass[j] - moving[i], max(1e-12 * mass[j], TINY))
                    leave[i - start] = min(added + turn if scaled else added * mass[j] / left, cost[j])
                    continue
                risen = added - turn if scaled else added * (mass[j] / max(mass[j] + moving[i], TINY))
                if risen < join[i - start]:
                    join[i - start], goal[i] = risen, j
        for i in range(start, few.stop):
            gain[i] = leave[i - start] - join[i - start]


@compiled
def swaps(values, numbers, frame, centers, labels, own, second, home, bare, gain, stir):
    """What opening a component at each of some places changes, as ``Swaps``: in all, where each other one is closed, and alone."""
    weight, n_items = numbers[3], numbers[0].shape[0]
    rest, room = buffers(values, n_items, frame[0].shape[0], centers[0].shape[0])
    for start in range(0, n_items, rest.shape[0]):
        few = slice(start, min(start + rest.shape[0], n_items))
        _, distance = measured(values, few, numbers, frame, centers, rest, room)
        for p in range(distance.shape[0]):
            for i in range(start, few.stop):
                away, j = max(distance[p, i - start], 0), labels[i]
                kept = min(away, own[i])
                less = weight[i] * (own[i] - kept)
                gain[p] += less
                stir[p] += weight[i] * max(away - second[i], 0) if j == home[p] else less
                bare[p, j] += weight[i] * (min(away, second[i]) - kept)


@compiled
def exponentials(logits, j, count, top, total):
    """e^(logit − top) in the place of a row of logits, none of which is above ``top``; they are added to the total."""
    for i in range(count):
        x = max(logits[j, i] - top[i], LEAST_EXPONENT)
        shifted = x * PER_LOG2 + ROUNDER
        n = shifted - ROUNDER
        r = (x - n * LOG2_HIGH) - n * LOG2_LOW
        series = 1.0 / 6227020800.0
        series = series * r + 1.0 / 479001600.0
        series = series * r + 1.0 / 39916800.0
        series = series * r + 1.0 / 3628800.0
        series = series * r + 1.0 / 362880.0
        series = series * r + 1.0 / 40320.0
        series = series * r + 1.0 / 5040.0
        series = series * r + 1.0 / 720.0
        series = series * r + 1.0 / 120.0
        series = series * r + 1.0 / 24.0
        series = series * r + 1.0 / 6.0
        series = series * r + 0.5
        series = series * r + 1.0
        series = series * r + 1.0
        bits = np.float64(series).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
        logits[j, i] = np.int64(bits).view(np.float64) if x > LEAST_EXPONENT else 0.0
        total[i] += logits[j, i]


@compiled
def soft(values, numbers, frame, centers, beta, log_mass, mass, parallel, sums):
    """Sums of Gibbs responsibilities; returns Σ ω, Σ ω log Z and Σ ω p d."""
    along, weight, scaled, cosine = numbers[1], numbers[3], frame[1], centers[0]
    n_items, n_dims, k = along.shape[0], frame[0].shape[0], cosine.shape[0]
    rest, room = buffers(values, n_items, n_dims, k)
    tile = rest.shape[0]
    logits, top, total, part = np.empty((k, tile)), np.empty(tile), np.empty(tile), shared_sums(values, n_dims, k)
    ones, some = np.ones((1, tile)), np.empty((1, tile))
    whole = log_partition = distortion = 0.0
    for start in range(0, n_items, tile):
        few = slice(start, min(start + tile, n_items))
        n_few = few.stop - start
        inner, distance = measured(values, few, numbers, frame, centers, rest, room)
        top[:], total[:], some[0, :n_few] = -np.inf, 0.0, along[few]
        for j in range(k):
            for i in range(n_few):
                logits[j, i] = log_mass[j] - beta * distance[j, i]
                top[i] = max(top[i], logits[j, i])
        for j in range(k):
            exponentials(logits, j, n_few, top, total)
        for i in range(n_few):
            whole += weight[start + i]
            log_partition += weight[start + i] * (np.log(total[i]) + top[i])
            total[i] = weight[start + i] / total[i]
        for j in range(k):
            for i in range(n_few):
                logits[j, i] *= total[i]
            mass[j] += sum_of_products(logits, j, 1.0, ones, 0, n_few)
            distortion += sum_of_products(logits, j, 1.0, distance, j, n_few)
            if scaled:
                for i in range(n_few):
                    logits[j, i] *= inner[j, i] + cosine[j] * some[0, i]
            parallel[j] += sum_of_products(logits, j, 1.0, some, 0, n_few)
            for i in range(n_few):
                inner[j, i] = logits[j, i]
        add_shared(values, few, numbers, inner, rest, part, sums)
    end_shared(values, part, sums)
    return whole, log_partition, distortion


@compiled
def sides(values, numbers, frame, centers, labels, mass, cost, parallel, sums):
    """Sums of the items of every component on either side, by the nearer of its two halves, the first of equal ones.

    ``centers`` are the halves along the reference (2, k), beside it (2, k, n_dims), that squared, and its product with the reference.
    """
    along, sq, weight = numbers[1], numbers[2], numbers[3]
    (ref, scaled), (cosine, halves, rest_sq, offset) = frame, centers
    n_items, k, n_dims = along.shape[0], halves.shape[1], ref.shape[0]
    tile, rest = at_once(values, n_items, halves)
    inner, distance = np.empty((2, tile)), np.empty(2)
    rows, shares = np.empty(tile, np.intp), np.empty(tile)
    for start in range(0, n_items, tile):
        few = slice(start, min(start + tile, n_items))
        for side in range(2):
            own_products(values, few, numbers, ref, rest, halves[side], labels[few], offset[side], inner[side])
        for i in range(start, few.stop):
            j = labels[i]
            for side in range(2):
                common = inner[side, i - start]
                if scaled:
                    distance[side] = line_distance(common, along[i], sq[i], cosine[side, j], rest_sq[side, j])
                else:
                    distance[side] = mean_distance(common, sq[i], rest_sq[side, j])
            side = 1 if distance[1] < distance[0] else 0
            mass[side, j] += weight[i]
            cost[side, j] += weight[i] * max(distance[side], 0)
            share = weight[i] * (inner[side, i - start] + cosine[side, j] * along[i]) if scaled else weight[i]
            parallel[side, j] += share * along[i]
            rows[i - start], shares[i - start] = side * k + j, share
        add_items(values, few, numbers, shares, rows, rest, sums.reshape((2 * k, n_dims)))
