"""Loops of the exact assignment, compiled by numba: the same steps as in ``assignment``, for costs that are held as an array.

All items are in the pool. Each component's items are a list, linked both ways; ``weight[j, l]`` is min (c_il − c_ij) over the items of j.
"""

from __future__ import annotations

import numpy as np

from ...engines.kernels import compiled

EPS = float(np.finfo(np.float64).eps)


@compiled
def two_cheapest(costs, prices, labels, runner, slack):
    """Of every item the component where cost and price are least, the next, and what that costs more; ties to the lowest index."""
    n_items, n_components = costs.shape
    for i in range(n_items):
        first, second, least, next_least = 0, 0, np.inf, np.inf
        for j in range(n_components):
            price = costs[i, j] + prices[j]
            if price < least:
                second, next_least = first, least
                first, least = j, price
            elif price < next_least:
                second, next_least = j, price
        labels[i], runner[i], slack[i] = first, second, next_least - least


@compiled
def lists(labels, first, after, before):
    """The items of every component in ascending order: the first of them, and what comes after and before each; -1 for none."""
    first[:] = -1
    for i in range(labels.shape[0] - 1, -1, -1):
        put(i, labels[i], first, after, before)


@compiled
def put(item, j, first, after, before):
    """Put an item at the head of the list of ``j``."""
    after[item], before[item] = first[j], -1
    if first[j] >= 0:
        before[first[j]] = item
    first[j] = item


@compiled
def drop(item, j, first, after, before):
    """Take an item out of the list of ``j``."""
    if before[item] >= 0:
        after[before[item]] = after[item]
    else:
        first[j] = after[item]
    if after[item] >= 0:
        before[after[item]] = before[item]


@compiled
def margins(costs, labels, weight):
    """min (c_il − c_ij) over the items i of j, (k, k); inf where j has none, and on the diagonal."""
    weight[:] = np.inf
    for i in range(labels.shape[0]):
        j = labels[i]
        own = costs[i, j]
        for head in range(weight.shape[1]):
            weight[j, head] = min(weight[j, head], costs[i, head] - own)
    for j in range(weight.shape[0]):
        weight[j, j] = np.inf


@compiled
def arc(tail, head, weight, flow, lower, upper):
    """The weight of an arc of the residual graph, whose last node is the depot; inf where there is none."""
    k = weight.shape[0]
    if tail == head:
        return np.inf
    if head == k:
        return 0.0 if flow[tail] < upper[tail] else np.inf
    if tail == k:
        return 0.0 if flow[head] > lower[head] else np.inf
    return weight[tail, head]


@compiled
def relax(weight, flow, lower, upper, dist, rounds):
    """Distances by Bellman and Ford, in place, and the predecessors in each round; how many there were."""
    nodes = dist.shape[0]
    fresh = dist.copy()
    for turn in range(nodes):
        moved = False
        for head in range(nodes):
            rounds[turn, head] = head
            for tail in range(nodes):
                length = dist[tail] + arc(tail, head, weight, flow, lower, upper)
                if length < fresh[head]:
                    fresh[head], rounds[turn, head], moved = length, tail, True
        if not moved:
            return turn
        dist[:] = fresh
    return nodes


@compiled
def walk(n_rounds, rounds, node, weight, flow, lower, upper, path):
    """The shortest path to ``node``, or a negative cycle met on the way, whose ends are the same; how many nodes it has."""
    steps = np.empty(n_rounds + 1, dtype=np.int64)
    steps[0], n_steps = node, 1
    for turn in range(n_rounds - 1, -1, -1):
        tail = rounds[turn, steps[n_steps - 1]]
        if tail != steps[n_steps - 1]:
            steps[n_steps] = tail
            n_steps += 1
    size = 0
    for at in range(n_steps - 1, -1, -1):
        met = 0
        while met < size and path[met] != steps[at]:
            met += 1
        if met < size:
            path[size] = steps[at]
            total, extent = 0.0, 0.0
            for place in range(met, size):
                length = arc(path[place], path[place + 1], weight, flow, lower, upper)
                total += length
                extent += abs(length)
            # Each length was rounded once, and so was each sum. Beyond that the cost falls for certain: no cycle comes back.
            if total < -EPS * (size - met + 1) * extent:
                for place in range(met, size + 1):
                    path[place - met] = path[place]
                return size - met + 1
            size = met
        path[size] = steps[at]
        size += 1
    return size


@compiled
def tied(costs, j, head, weight, first, after, at_most, items):
    """The items of ``j`` that cost least to move to ``head``, as many as are wanted at most; how many."""
    count, item = 0, first[j]
    while item >= 0 and count < at_most:
        if costs[item, head] - costs[item, j] == weight[j, head]:
            items[count] = item
            count += 1
        item = after[item]
    return count


@compiled
def weigh(costs, j, heads, weight, first, after):
    """The weights of the arcs from ``j`` to some heads, anew."""
    for head in heads:
        weight[j, head] = np.inf
    item = first[j]
    while item >= 0:
        own = costs[item, j]
        for head in heads:
            weight[j, head] = min(weight[j, head], costs[item, head] - own)
        item = after[item]


@compiled
def move(costs, items, j, head, labels, weight, first, after, before):
    """Relabel items; of the weights of ``j`` only those that they determined change."""
    k = weight.shape[0]
    stale = np.zeros(k, dtype=np.bool_)
    for item in items:
        drop(item, j, first, after, before)
        put(item, head, first, after, before)
        labels[item] = head
        for other in range(k):
            if other != j and costs[item, other] - costs[item, j] == weight[j, other]:
                stale[other] = True
            if other != head:
                weight[head, other] = min(weight[head, other], costs[item, other] - costs[item, head])
    weigh(costs, j, np.flatnonzero(stale), weight, first, after)


@compiled
def push(costs, path, labels, weight, flow, lower, upper, excess, first, after, before):
    """Send along a path as many items as ties, bounds and the excess at its ends allow."""
    k, source, sink = weight.shape[0], path[0], path[-1]
    amount = labels.shape[0]
    if source != sink:
        amount = min(excess[source], -excess[sink])
    for at in range(path.shape[0] - 1):
        if path[at + 1] == k:
            amount = min(amount, upper[path[at]] - flow[path[at]])
        elif path[at] == k:
            amount = min(amount, flow[path[at + 1]] - lower[path[at + 1]])
    chosen = np.empty((path.shape[0], amount), dtype=np.int64)
    for at in range(path.shape[0] - 1):
        if max(path[at], path[at + 1]) < k:
            amount = tied(costs, path[at], path[at + 1], weight, first, after, amount, chosen[at])
    for at in range(path.shape[0] - 1):
        j, head = path[at], path[at + 1]
        if head == k:
            flow[j] += amount
        elif j == k:
            flow[head] -= amount
        else:
            move(costs, chosen[at, :amount], j, head, labels, weight, first, after, before)
    excess[source] -= amount
    excess[sink] += amount


@compiled
def repair(costs, labels, weight, flow, lower, upper, excess, first, after, before, at_most):
    """Send items out of place along shortest paths, until none is, or so many were sent; whether none is."""
    nodes = excess.shape[0]
    dist, rounds = np.empty(nodes), np.empty((nodes, nodes), dtype=np.int64)
    path = np.empty(nodes + 2, dtype=np.int64)
    for _ in range(at_most):
        sink, waiting = -1, False
        for node in range(nodes):
            dist[node] = 0.0 if excess[node] > 0 else np.inf
            waiting |= excess[node] > 0
        if not waiting:
            return True
        n_rounds = relax(weight, flow, lower, upper, dist, rounds)
        for node in range(nodes):
            if excess[node] < 0 and (sink < 0 or dist[node] < dist[sink]):
                sink = node
        size = walk(n_rounds, rounds, sink, weight, flow, lower, upper, path)
        push(costs, path[:size], labels, weight, flow, lower, upper, excess, first, after, before)
    return False
