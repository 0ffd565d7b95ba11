"""Loops of the exact assignment, compiled by numba: the same steps as in ``assignment``, for costs that are held as an array.

All items are in the pool. Each component's items are a list, linked both ways; ``weight[j, l]`` is min (c_il − c_ij) over the items of j.
"""

from __future__ import annotations

import numpy as np

from ...engines.kernels import compiled

EPS = float(np.finfo(np.float64).eps)
# Items that are ranked together: what is known of them stays in a core's first-level cache.
TILE = 512


@compiled
def two_cheapest(turned, prices, labels, runner, slack):
    """Of every item the component where cost (k, n) and price are least, the next, and what that costs more; ties to the lowest index."""
    n_components, n_items = turned.shape
    for start in range(0, n_items, TILE):
        stop = min(start + TILE, n_items)
        size = stop - start
        least, beyond = np.full(size, np.inf), np.full(size, np.inf)
        first, second = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32)
        for j in range(n_components):
            for i in range(size):  # no branch: the processor's vectors choose
                price = turned[j, start + i] + prices[j]
                cheaper, next_best = price < least[i], price < beyond[i]
                second[i] = first[i] if cheaper else (j if next_best else second[i])
                first[i] = j if cheaper else first[i]
                beyond[i] = least[i] if cheaper else (price if next_best else beyond[i])
                least[i] = price if cheaper else least[i]
        for i in range(size):
            labels[start + i], runner[start + i], slack[start + i] = first[i], second[i], beyond[i] - least[i]


@compiled
def shifted(prices, lower, upper, n_items):
    """The prices and the constant at which the bounds that they call for can sum to n."""
    room = lower.sum()
    for j in np.argsort(-prices, kind="mergesort"):
        room += upper[j] - lower[j]
        if room >= n_items:
            return prices - prices[j]
    return prices - prices.min()


@compiled
def imbalance(prices, labels, lower, upper, flow, excess):
    """Flow into the depot, (k,), and excess of every node, (k + 1,); how many items are out of place."""
    k = prices.shape[0]
    excess[:] = 0
    for i in range(labels.shape[0]):
        excess[labels[i]] += 1
    misplaced = 0
    for j in range(k):
        flow[j] = upper[j] if prices[j] > 0 else (lower[j] if prices[j] < 0 else min(max(excess[j], lower[j]), upper[j]))
        excess[j] -= flow[j]
        misplaced += max(excess[j], 0)
    excess[k] = flow.sum() - labels.shape[0]
    return misplaced + max(excess[k], 0)


@compiled
def spread(turned, prices, lower, upper, labels, slack):
    """Give each tied item to the first of its components that needs items, else the first that has room."""
    k = prices.shape[0]
    tied = np.flatnonzero(slack == 0)
    counts = np.zeros(k, dtype=np.int64)
    for i in range(labels.shape[0]):
        counts[labels[i]] += slack[i] != 0
    least, waiting = np.empty(tied.shape[0]), np.ones(tied.shape[0], dtype=np.bool_)
    for at in range(tied.shape[0]):
        least[at] = turned[labels[tied[at]], tied[at]] + prices[labels[tied[at]]]
    for turn in range(2):
        for j in range(k):
            need = (upper[j] if prices[j] > 0 else lower[j]) - counts[j]
            spare = upper[j] - max(lower[j], counts[j]) if prices[j] == 0 else 0
            room = need if turn == 0 else spare
            for at in range(tied.shape[0]):
                if room > 0 and waiting[at] and turned[j, tied[at]] + prices[j] == least[at]:
                    labels[tied[at]], waiting[at] = j, False
                    room -= 1


@compiled
def surveyed(turned, prices, lower, upper, labels, runner, slack, flow, excess):
    """Each item where cost and price are least, tied ones where there is room; flow and excess as those of ``imbalance``."""
    two_cheapest(turned, prices, labels, runner, slack)
    if 0 < imbalance(prices, labels, lower, upper, flow, excess) < 2 * np.count_nonzero(slack == 0):
        spread(turned, prices, lower, upper, labels, slack)
        imbalance(prices, labels, lower, upper, flow, excess)


@compiled
def nearest_slacks(labels, runner, slack, size, count, reach):
    """Of the items between every two components, (k, k) with the lower one first: how many up to ``size``, and the most slack of those."""
    k = count.shape[0]
    starts = np.zeros(k * k + 1, dtype=np.int64)
    for i in range(labels.shape[0]):
        starts[min(labels[i], runner[i]) * k + max(labels[i], runner[i]) + 1] += 1
    starts = np.cumsum(starts)
    ends, ordered = starts[:-1].copy(), np.empty(labels.shape[0])
    for i in range(labels.shape[0]):
        pair = min(labels[i], runner[i]) * k + max(labels[i], runner[i])
        ordered[ends[pair]] = slack[i]
        ends[pair] += 1
    for pair in range(k * k):
        near = ordered[starts[pair] : starts[pair + 1]]
        if near.shape[0]:
            last = min(size, near.shape[0]) - 1
            count[pair // k, pair % k] = last + 1
            reach[pair // k, pair % k] = np.partition(near, last)[last]


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
def residual(weight, flow, lower, upper, graph):
    """Weights of the arcs between components and depot, (k + 1, k + 1); inf where there is none."""
    k = weight.shape[0]
    graph[:k, :k] = weight
    graph[k, k] = np.inf
    for j in range(k):
        graph[j, k] = 0.0 if flow[j] < upper[j] else np.inf
        graph[k, j] = 0.0 if flow[j] > lower[j] else np.inf


@compiled
def relax(graph, dist, rounds):
    """Distances by Bellman and Ford, in place, and the predecessors in each round; how many there were."""
    nodes = dist.shape[0]
    last, fell = dist.copy(), dist < np.inf
    for turn in range(nodes):
        for head in range(nodes):
            rounds[turn, head] = head
        for tail in range(nodes):
            if fell[tail]:  # what did not fall leads nowhere new
                for head in range(nodes):
                    length = last[tail] + graph[tail, head]
                    rounds[turn, head] = tail if length < dist[head] else rounds[turn, head]
                    dist[head] = min(length, dist[head])
        fell = dist < last
        if not fell.any():
            return turn
        last[:] = dist
    return nodes


@compiled
def walk(n_rounds, rounds, node, graph, path):
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
                length = graph[path[place], path[place + 1]]
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
    dist, graph, rounds = np.empty(nodes), np.empty((nodes, nodes)), np.empty((nodes, nodes), dtype=np.int64)
    path = np.empty(nodes + 2, dtype=np.int64)
    for _ in range(at_most):
        sink, waiting = -1, False
        for node in range(nodes):
            dist[node] = 0.0 if excess[node] > 0 else np.inf
            waiting |= excess[node] > 0
        if not waiting:
            return True
        residual(weight, flow, lower, upper, graph)
        n_rounds = relax(graph, dist, rounds)
        for node in range(nodes):
            if excess[node] < 0 and (sink < 0 or dist[node] < dist[sink]):
                sink = node
        size = walk(n_rounds, rounds, sink, graph, path)
        push(costs, path[:size], labels, weight, flow, lower, upper, excess, first, after, before)
    return False


@compiled
def prices_near(weight, flow, lower, upper, prices):
    """Prices that agree with all lengths of the residual graph, as near to the given ones as they allow."""
    nodes = prices.shape[0] + 1
    graph, rounds, dist = np.empty((nodes, nodes)), np.empty((nodes, nodes), dtype=np.int64), np.zeros(nodes)
    dist[:-1] = -prices
    residual(weight, flow, lower, upper, graph)
    relax(graph, dist, rounds)
    return dist[-1] - dist[:-1]
