"""Loops over the items of a block, compiled by numba: what the hot passes of ``engines.compiled`` are made of.

Items are seen in their frame, x' = factor · x − along · ref, a few of them at a time, so that they stay in the cache and nothing cancels.
Products with the centres are left to BLAS. No sum is reordered (contraction to fused multiply-adds aside), so results depend on neither
the machine's vectors nor the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def compiled(function):
    """The function, compiled when it is first called and kept on disk, where there is a place to keep it."""
    try:
        return njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no folder of the package or of the user can be written to
        return njit(**OPTIONS)(function)


# Numbers of items that are framed at once: half of a core's second-level cache holds them with their products.
TILE_NUMBERS = 1 << 14
MIN_TILE, MAX_TILE = 16, 256

# e^x = 2^n e^r with n = round(x / log 2); adding 1.5 · 2^52 rounds, and leaves n in the last bits.
ROUNDER = 6755399441055744.0
PER_LOG2, LOG2_HIGH, LOG2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Below it e^x is taken for 0.
LEAST_EXPONENT = -700.0
TINY = float(np.finfo(float).tiny)


@compiled
def tile_size(n_items, n_dims):
    """Items to be framed at once."""
    return min(n_items, max(MIN_TILE, min(MAX_TILE, TILE_NUMBERS // n_dims)))


@compiled
def sum_of_products(one, factor, other):
    """Σ factor · one · other in float64, in four sums side by side."""
    a = b = c = d = 0.0
    whole = one.shape[0] - one.shape[0] % 4
    for i in range(0, whole, 4):
        a += one[i] * factor * other[i]
        b += one[i + 1] * factor * other[i + 1]
        c += one[i + 2] * factor * other[i + 2]
        d += one[i + 3] * factor * other[i + 3]
    for i in range(whole, one.shape[0]):
        a += one[i] * factor * other[i]
    return (a + b) + (c + d)


@compiled
def squared_norms(values, found):
    """‖x‖² of every item in float64."""
    for i in range(values.shape[0]):
        found[i] = sum_of_products(values[i], 1.0, values[i])


@compiled
def squared_residuals(values, scale, labels, components, found):
    """‖x − scale · component‖² of every item, in four sums side by side."""
    whole = values.shape[1] - values.shape[1] % 4
    for i in range(values.shape[0]):
        row, center, s = values[i], components[labels[i]], scale[i]
        a = b = c = d = 0.0
        for j in range(0, whole, 4):
            a += (row[j] - s * center[j]) ** 2
            b += (row[j + 1] - s * center[j + 1]) ** 2
            c += (row[j + 2] - s * center[j + 2]) ** 2
            d += (row[j + 3] - s * center[j + 3]) ** 2
        for j in range(whole, values.shape[1]):
            a += (row[j] - s * center[j]) ** 2
        found[i] = (a + b) + (c + d)


@compiled
def frame_row(row, factor, along, ref, rest):
    """One item in its frame."""
    for d in range(row.shape[0]):
        rest[d] = row[d] * factor - along * ref[d]


@compiled
def line_numbers(values, scale, ref, given, factor, along, sq, weight):
    """For unit items about a direction: 1 / ‖x‖, the coordinate along ``ref``, what is left squared, and w ‖x‖²."""
    rest = np.empty(values.shape[1])
    for i in range(values.shape[0]):
        size = sum_of_products(values[i], scale * scale, values[i])
        factor[i] = scale / np.sqrt(size) if size > 0 else 0.0
        along[i] = sum_of_products(values[i], factor[i], ref)
        weight[i] = given[i] * size
        frame_row(values[i], factor[i], along[i], ref, rest)
        sq[i] = sum_of_products(rest, 1.0, rest)


@compiled
def mean_numbers(values, scale, ref, given, factor, along, sq, weight):
    """For items about a point: what is left squared."""
    rest = np.empty(values.shape[1])
    for i in range(values.shape[0]):
        factor[i] = scale
        along[i] = 1.0
        weight[i] = given[i]
        frame_row(values[i], scale, 1.0, ref, rest)
        sq[i] = sum_of_products(rest, 1.0, rest)


@compiled
def framed(values, factor, along, ref, rest):
    """The items in their frame."""
    for i in range(values.shape[0]):
        frame_row(values[i], factor[i], along[i], ref, rest[i])


@compiled
def line_distances(inner, along, sq, cosine, rest_sq, distance):
    """Distances of one item to all lines, from what it has in common with them beside the reference."""
    for j in range(inner.shape[0]):
        parallel = cosine[j] * along
        distance[j] = rest_sq[j] * (along * along) + sq - (parallel + parallel + inner[j]) * inner[j]


@compiled
def mean_distances(inner, sq, rest_sq, distance):
    """Squared distances of one item to all points."""
    for j in range(inner.shape[0]):
        distance[j] = rest_sq[j] + sq - (inner[j] + inner[j])


@compiled
def measured(values, factor, along, sq, ref, scaled, cosine, turned, rest_sq, rest, inner, distance):
    """A few items in their frame, their products with the centres beside the reference, and their distances to them.

    ``cosine``, ``turned`` (n_dims, k) and ``rest_sq`` are the centres along the reference, beside it, and that squared.
    """
    n_items = values.shape[0]
    framed(values, factor, along, ref, rest)
    np.dot(rest[:n_items], turned, inner[:n_items])
    ends = np.empty(2, values.dtype)
    for i in range(n_items):
        ends[0], ends[1] = along[i], sq[i]  # in the precision of the items
        if scaled:
            line_distances(inner[i], ends[0], ends[1], cosine, rest_sq, distance[i])
        else:
            mean_distances(inner[i], ends[1], rest_sq, distance[i])


@compiled
def lowest(numbers):
    """Where the least is, the first of equal ones."""
    best, least = 0, numbers[0]
    for j in range(1, numbers.shape[0]):
        if numbers[j] < least:
            best, least = j, numbers[j]
    return best


@compiled
def add_row(sums, weight, row):
    """sums += weight · row."""
    for d in range(row.shape[0]):
        sums[d] += weight * row[d]


@compiled
def hard(values, factor, along, sq, weight, ref, scaled, cosine, turned, rest_sq, labels, fixed, mass, sizes, cost, sums, changed):
    """Sums of the items by component, for each of several sets of centres. ``labels`` (n_items, n_sets) are found unless ``fixed``."""
    n_items, n_dims = values.shape
    n_sets, k = labels.shape[1], turned.shape[1] // labels.shape[1]
    tile = tile_size(n_items, n_dims)
    rest, inner = np.empty((tile, n_dims), values.dtype), np.empty((tile, turned.shape[1]), values.dtype)
    distance = np.empty_like(inner)
    for start in range(0, n_items, tile):
        few = slice(start, min(start + tile, n_items))
        measured(values[few], factor[few], along[few], sq[few], ref, scaled, cosine, turned, rest_sq, rest, inner, distance)
        for i in range(start, few.stop):
            away = distance[i - start]
            for s in range(n_sets):
                if not fixed:
                    found = lowest(away[s * k : s * k + k])
                    changed[s] += labels[i, s] != found
                    labels[i, s] = found
                j = s * k + labels[i, s]
                mass[j] += weight[i]
                sizes[j] += 1
                cost[j] += weight[i] * max(away[j], 0)
                share = weight[i] * (inner[i - start, j] + cosine[j] * along[i]) if scaled else weight[i]
                if scaled:
                    sums[j, 0] += share * along[i]
                add_row(sums[j, sums.shape[1] - n_dims :], share, rest[i - start])


@compiled
def nearest(values, factor, along, sq, weight, ref, scaled, cosine, turned, rest_sq, labels, least):
    """The nearest centre of every item, and how far it is."""
    n_items, n_dims = values.shape
    tile = tile_size(n_items, n_dims)
    rest, inner = np.empty((tile, n_dims), values.dtype), np.empty((tile, turned.shape[1]), values.dtype)
    distance = np.empty_like(inner)
    for start in range(0, n_items, tile):
        few = slice(start, min(start + tile, n_items))
        measured(values[few], factor[few], along[few], sq[few], ref, scaled, cosine, turned, rest_sq, rest, inner, distance)
        for i in range(start, few.stop):
            labels[i] = lowest(distance[i - start])
            least[i] = distance[i - start, labels[i]]


@compiled
def own_and_other(values, factor, along, sq, weight, ref, scaled, cosine, turned, rest_sq, labels, own, other):
    """How far every item is from its own centre, and from the nearest other."""
    n_items, n_dims = values.shape
    tile = tile_size(n_items, n_dims)
    rest, inner = np.empty((tile, n_dims), values.dtype), np.empty((tile, turned.shape[1]), values.dtype)
    distance = np.empty_like(inner)
    for start in range(0, n_items, tile):
        few = slice(start, min(start + tile, n_items))
        measured(values[few], factor[few], along[few], sq[few], ref, scaled, cosine, turned, rest_sq, rest, inner, distance)
        for i in range(start, few.stop):
            away = distance[i - start]
            own[i] = away[labels[i]]
            away[labels[i]] = np.inf
            other[i] = away[lowest(away)]


@compiled
def moves(values, factor, along, sq, weight, ref, scaled, cosine, turned, rest_sq, labels, moving, mass, cost, gain, goal):
    """What every item gains by moving to its best other component, with the weight ``moving``; as ``join`` and ``leave`` of the losses."""
    n_items, n_dims = values.shape
    tile = tile_size(n_items, n_dims)
    rest, inner = np.empty((tile, n_dims), values.dtype), np.empty((tile, turned.shape[1]), values.dtype)
    distance = np.empty_like(inner)
    for start in range(0, n_items, tile):
        few = slice(start, min(start + tile, n_items))
        measured(values[few], factor[few], along[few], sq[few], ref, scaled, cosine, turned, rest_sq, rest, inner, distance)
        for i in range(start, few.stop):
            leave, join = 0.0, np.inf
            for j in range(turned.shape[1]):
                added = moving[i] * max(distance[i - start, j], 0)
                full = inner[i - start, j] + cosine[j] * along[i]
                turn = moving[i] * full * full * added / max(mass[j] - cost[j], TINY)
                if j == labels[i]:
                    left = max(mass[j] - moving[i], max(1e-12 * mass[j], TINY))
                    leave = min(added + turn if scaled else added * mass[j] / left, cost[j])
                    continue
                risen = added - turn if scaled else added * (mass[j] / max(mass[j] + moving[i], TINY))
                if risen < join:
                    join, goal[i] = risen, j
            gain[i] = leave - join


@compiled
def exponentials(logits, top):
    """e^(logit − top) in the place of the logits, none of which is above ``top``; their sum."""
    for j in range(logits.shape[0]):
        x = max(logits[j] - top, LEAST_EXPONENT)
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
        power = np.int64(bits).view(np.float64)
        logits[j] = power if x > LEAST_EXPONENT else 0.0
    total = 0.0
    for j in range(logits.shape[0]):
        total += logits[j]
    return total


@compiled
def soft(values, factor, along, sq, weight, ref, scaled, cosine, turned, rest_sq, beta, log_mass, mass, sums):
    """Sums of Gibbs responsibilities; returns Σ ω, Σ ω log Z and Σ ω p d."""
    n_items, n_dims = values.shape
    k = turned.shape[1]
    tile = tile_size(n_items, n_dims)
    rest, inner = np.empty((tile, n_dims), values.dtype), np.empty((tile, k), values.dtype)
    distance, logits, part = np.empty_like(inner), np.empty(k), np.empty((k, n_dims), values.dtype)
    whole = log_partition = distortion = 0.0
    for start in range(0, n_items, tile):
        few = slice(start, min(start + tile, n_items))
        measured(values[few], factor[few], along[few], sq[few], ref, scaled, cosine, turned, rest_sq, rest, inner, distance)
        for i in range(start, few.stop):
            row, away = inner[i - start], distance[i - start]
            top = -np.inf
            for j in range(k):
                logits[j] = log_mass[j] - beta * away[j]
                top = max(top, logits[j])
            total = exponentials(logits, top)
            whole += weight[i]
            log_partition += weight[i] * (np.log(total) + top)
            share = weight[i] / total
            for j in range(k):
                resp = share * logits[j]
                mass[j] += resp
                logits[j] = resp * away[j]
                if scaled:
                    resp *= row[j] + cosine[j] * along[i]
                    sums[j, 0] += resp * along[i]
                row[j] = resp
            for j in range(k):
                distortion += logits[j]
        np.dot(inner[: few.stop - start].T, rest[: few.stop - start], part)
        for j in range(k):
            add_row(sums[j, sums.shape[1] - n_dims :], 1.0, part[j])
    return whole, log_partition, distortion


@compiled
def sides(values, factor, along, sq, weight, ref, scaled, cosine, rest_sq, halves, labels, mass, cost, sums):
    """Sums of the items of every component on either side, by the nearer of its two ``halves`` (2, k, n_dims), the first of equal ones.

    ``cosine`` and ``rest_sq`` (2, k) are the halves along the reference, and beside it squared.
    """
    n_items, n_dims = values.shape
    rest, distance, inner = np.empty(n_dims, values.dtype), np.empty(2), np.empty(2)
    for i in range(n_items):
        j = labels[i]
        frame_row(values[i], factor[i], along[i], ref, rest)
        for side in range(2):
            inner[side] = sum_of_products(rest, 1.0, halves[side, j])
            if scaled:
                parallel = cosine[side, j] * along[i]
                distance[side] = rest_sq[side, j] * (along[i] * along[i]) + sq[i] - (parallel + parallel + inner[side]) * inner[side]
            else:
                distance[side] = rest_sq[side, j] + sq[i] - (inner[side] + inner[side])
        side = 1 if distance[1] < distance[0] else 0
        mass[side, j] += weight[i]
        cost[side, j] += weight[i] * max(distance[side], 0)
        share = weight[i] * (inner[side] + cosine[side, j] * along[i]) if scaled else weight[i]
        if scaled:
            sums[side, j, 0] += share * along[i]
        add_row(sums[side, j, sums.shape[2] - n_dims :], share, rest)
