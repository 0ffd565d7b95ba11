"""Newton's steps for the prices of few items at fixed centres, compiled by numba: the same steps as in ``dual``."""

from __future__ import annotations

import numpy as np

from ...engines.kernels import compiled, exponentials, sum_of_products


@compiled
def respond(costs, steepness, size, log_slots, prices, resp, counts):
    """Responsibilities (m, n) at some prices, and the counts they make; the smooth part of the dual and Σ ω p d come back."""
    m, n = costs.shape
    top, total = np.full(n, -np.inf), np.zeros(n)
    for j in range(m):
        for i in range(n):
            resp[j, i] = log_slots[j] - steepness[i] * (costs[j, i] + size[0, i] * prices[j])
            top[i] = max(top[i], resp[j, i])
    for j in range(m):
        exponentials(resp, j, n, top, total)
    soft_min = distortion = 0.0
    for i in range(n):
        soft_min -= (np.log(total[i]) + top[i]) / steepness[i]
        total[i] = 1 / total[i]
    for j in range(m):
        for i in range(n):
            resp[j, i] *= total[i]
        counts[j] = sum_of_products(resp, j, 1.0, size, 0, n)
        distortion += sum_of_products(resp, j, 1.0, costs, j, n)
    return soft_min, distortion


@compiled
def curved(resp, steepness, size, curvature):
    """Σ s² β/τ (diag p − p pᵀ) of all items."""
    m, n = resp.shape
    scaled = np.empty((m, n))
    for j in range(m):
        for i in range(n):
            scaled[j, i] = resp[j, i] * (size[0, i] * size[0, i] * steepness[i])
    curvature[:] = -np.dot(scaled, resp.T)
    for j in range(m):
        curvature[j, j] += scaled[j].sum()


@compiled
def violated(counts, prices, lower, upper, penalty, wrong):
    """By how much each count exceeds (+) or misses (−) the bound its price stands for; the largest."""
    largest = 0.0
    for j in range(counts.shape[0]):
        over, under = counts[j] - upper[j], counts[j] - lower[j]
        free = over if over > 0 else (under if under < 0 else 0.0)
        wrong[j] = over if prices[j] > 0 else (under if prices[j] < 0 else free)
        if abs(prices[j]) >= penalty and np.sign(wrong[j]) == np.sign(prices[j]):
            wrong[j] = 0.0
        largest = max(largest, abs(wrong[j]))
    return largest


@compiled
def dual_value(soft_min, prices, lower, upper):
    """The dual at some prices."""
    total = soft_min
    for j in range(prices.shape[0]):
        total -= prices[j] * (upper[j] if prices[j] > 0 else lower[j])
    return total


@compiled
def newton_step(curvature, wrong, prices, penalty, ridge, reach):
    """The step of the prices that are not held where they are, no longer than ``reach``."""
    m = len(prices)
    active = (wrong != 0) | ((prices != 0) & (np.abs(prices) < penalty))
    step, blocked = np.zeros(m), active.any()
    while blocked:
        matrix, aim = np.eye(m), np.zeros(m)
        for j in np.flatnonzero(active):
            aim[j] = wrong[j]
            for other in np.flatnonzero(active):
                matrix[j, other] = curvature[j, other]
            matrix[j, j] += ridge
        step[:], blocked = np.linalg.solve(matrix, aim), False
        for j in range(m):
            if active[j] and prices[j] == 0 and step[j] * wrong[j] < 0:
                active[j], blocked = False, True
        if not active.any():
            break
    longest = 0.0
    for j in range(m):
        step[j] = step[j] if active[j] else 0.0
        longest = max(longest, abs(step[j]))
    return step * min(1.0, reach / longest) if longest > 0 else step


@compiled
def priced_out(costs, steepness, size, log_slots, bounds, limits, prices, resp, counts):
    """Prices that maximise the dual, in place, with the responsibilities and counts at them.

    ``costs`` are ω d (m, n), ``steepness`` β/τ, ``bounds`` the lower and upper ones (2, m), and ``limits`` how far counts may miss them,
    the penalty, the ridge, the longest step where prices are none, and the most steps. Σ ω p d, the smooth part of the dual and the
    number of looks at the items come back.
    """
    (lower, upper), (close, penalty, ridge, width, most) = bounds, limits
    m = len(prices)
    wrong, curvature, trial = np.empty(m), np.empty((m, m)), np.empty(m)
    trial_resp, trial_counts = np.empty_like(resp), np.empty(m)
    soft_min, distortion = respond(costs, steepness, size, log_slots, prices, resp, counts)
    looks = 1
    for _ in range(most):
        if violated(counts, prices, lower, upper, penalty, wrong) <= close:
            break
        curved(resp, steepness, size, curvature)
        step = newton_step(curvature, wrong, prices, penalty, ridge, 4 * max(width, np.abs(prices).max()))
        value, noise = dual_value(soft_min, prices, lower, upper), 1e-13 * (abs(soft_min) + distortion)
        kink = np.inf
        for j in range(m):
            if prices[j] * step[j] < 0:
                kink = min(kink, -prices[j] / step[j] * (1 + 1e-12))
        length, moved = 1.0, False
        while not moved and length > min(1e-6, kink / 8):
            slope = 0.0
            for j in range(m):
                after = prices[j] + length * step[j]
                trial[j] = 0.0 if prices[j] * after < 0 else min(max(after, -penalty), penalty)
                slope += wrong[j] * (trial[j] - prices[j])
            trial_min, trial_distortion = respond(costs, steepness, size, log_slots, trial, trial_resp, trial_counts)
            looks += 1
            if dual_value(trial_min, trial, lower, upper) >= value + 1e-4 * min(slope, 0.0) - noise:
                soft_min, distortion, moved = trial_min, trial_distortion, True
                prices[:], resp[:], counts[:] = trial, trial_resp, trial_counts
            length = kink if length / 4 < kink < length else length / 4
        if not moved:
            break
    return distortion, soft_min, looks
