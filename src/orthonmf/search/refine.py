"""Refinement: from a good start to a partition that no swap of a component and no move of an item improves.

Annealing spends its splits in the order in which they become possible, which is not the order of what they gain. Four searches follow,
each deterministic and monotone, until all end without gain:

1. *alternation* of nearest labels and best centres;
2. *swaps*: take one component away and open another elsewhere, then alternate. All pairs of a component and a place are ranked by one
   pass (what the swap costs before anything adapts, and what it costs if the component is merged with its neighbour), and the most
   promising are tried, several at once where several pay;
3. *moves* of single items, which escape fixed points of the alternation. Equal items move together, so that weights equal repetition;
4. *regroupings*: merge two components and split a third, where that is sure to gain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, islice, zip_longest

import numpy as np

from .._common.typing import Array, Labels
from ..distortion.base import Moving
from ..engines.base import BLIND, Engine
from ..passes.columns import Relabelled
from ..passes.hard import Weights
from ..passes.moves import AllDistances, BestMoves, BestPairs, MoveGains, Movers
from ..passes.raw import Keys
from ..passes.swaps import SwapCosts, Swaps
from ..progress import at
from .batch import alternate_each, at_once, far_apart
from .budget import BUDGET
from .partition import Assigner, Distances, Free, Partition, all_known, centered, distances, item_places, many
from .regroup import farthest_points, first_of_each, halved, regrouped

# A result counts as better when the cost falls by more than this fraction.
GAIN = 1e-9


def refine(engine: Engine, distortion: Moving, start: Partition, assigner: Assigner | None = None) -> Partition:
    """Improve a partition until neither swaps nor moves nor regroupings gain; it stays as feasible as the assigner makes it."""
    assigner = assigner or Free(engine, distortion)
    best = start
    if many(engine):
        return moved(engine, distortion, start, assigner)
    if best.n_components == 1 or best.cost == 0 or (assigner.free and separated(engine, distortion, best)):
        return best
    groups = equal_items(engine)
    trials = _Trials(engine, distortion, assigner, _fresh(engine, distortion, assigner, best.n_components))
    # Under bounds a round on many items is dear: another one only while they gain what is worth it.
    worth = BUDGET.worth if not assigner.free and engine.n_items > BUDGET.dear_items else 0.0
    gain = np.inf
    while gain > worth * best.cost:
        before = best.cost
        better = _swapped(trials, best, groups) or _move_gain(trials, best, groups) or _regroup_gain(trials, best)
        if better is None:
            return best
        best, gain = better, before - better.cost
    return best


def moved(engine: Engine, distortion: Moving, start: Partition, assigner: Assigner) -> Partition:
    """Improve a partition by moves of single items alone."""
    best = _moved(engine, distortion, assigner, start, None)
    return start if best is start else _resting(assigner, best)


def _move_gain(trials: _Trials, best: Partition, groups: Labels) -> Partition | None:
    """Where moves of single items lead; None where none gains."""
    better = _moved(trials.engine, trials.distortion, trials.assigner, best, groups)
    return _resting(trials.assigner, better) if _gains(better, best) else None


def _regroup_gain(trials: _Trials, best: Partition) -> Partition | None:
    """Where free components lead of which two are merged while a third is split; None where that gains nothing."""
    if not trials.assigner.free:
        return None
    away = distances(trials.engine, trials.distortion, best)
    return trials.first_gain(best, regrouped(trials.engine, trials.distortion, best, away), 0.0)


def _resting(assigner: Assigner, part: Partition) -> Partition:
    """Where alternation leads from a partition, unless that costs more."""
    settled = assigner.alternate(part.centers, prices=part.prices)
    return settled if settled is not None and settled.cost <= part.cost else part


def gains(engine: Engine, distortion: Moving, start: Partition, worth: float) -> Iterator[Partition]:
    """The partition of a sample, and better ones by swaps and regroupings, each of which gains more than a fraction ``worth``."""
    best: Partition | None = start
    groups, trials = equal_items(engine), _Trials(engine, distortion, Free(engine, distortion), worth=worth)
    while best is not None:
        yield best
        if best.n_components == 1 or best.cost == 0 or separated(engine, distortion, best):
            return
        best = _swapped(trials, best, groups) or _regroup_gain(trials, best)


def rehearsed(engine: Engine, distortion: Moving, start: Partition, assigner: Assigner, n_tries: int) -> Partition:
    """Improve a partition of a sample by swaps alone, while one of ``n_tries`` gains what is worth it."""
    groups, best, gain = equal_items(engine), start, np.inf
    # Free components of a sample only say where to begin: what gains less than is worth it gets no single moves. 10 000 × 100 items under
    # bounds took 0.07 s less. Together with compiled passes 70 problems ended 0.04 % lower on average, 1.9 % lower to 0.9 % higher.
    trials = _Trials(engine, distortion, assigner, worth=BUDGET.worth if assigner.free else GAIN)
    while gain >= BUDGET.worth * best.cost:
        better = _swapped(trials, best, groups, n_tries)
        if better is None:
            break
        best, gain = better, best.cost - better.cost
    return best


def separated(engine: Engine, distortion: Moving, part: Partition) -> bool:
    """Whether the components are so far apart that no swap and no move is worth a try.

    With every item nearer to its own centre than half its distance to any other, a component reopened inside itself keeps its items; and
    when closing any component costs more than all the error there is, no place is worth it.
    """
    away = distances(engine, distortion, part)
    heavy = away.weight > 0
    if away.second[heavy].min() < 4 * away.own[heavy].max():
        return False
    closing = np.bincount(part.labels, away.weight * (away.second - away.own), part.n_components)
    merging = _merging(distortion, part).min(axis=1)
    return bool(np.minimum(closing, merging).min() > (1 + BUDGET.hopeless) * part.cost)


def _merging(distortion: Moving, part: Partition) -> Array:
    """What merging each component (rows) with each other (columns) adds to the cost, at most."""
    merge = distortion.merge(part.centers, part.stats.mass, part.stats.cost)
    np.fill_diagonal(merge, np.inf)
    return merge


def _gains(new: Partition | None, old: Partition, worth: float = GAIN) -> bool:
    return new is not None and new.cost < old.cost * (1 - worth)


# -- swaps ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """Where a component could be opened.

    Attributes
    ----------
    centers : ndarray of shape (n_places, n_coordinates)
    home : ndarray of shape (n_places,)
        The component each place lies in.
    """

    centers: Array
    home: Labels


@dataclass(frozen=True)
class _Swap:
    """Close component ``closed`` and open one at place ``place``; ``rise`` is what it is expected to add to the cost."""

    rise: float
    place: int
    closed: int


@dataclass
class _Trials:
    """Tries other centres.

    Attributes
    ----------
    engine, distortion, assigner
    fresh : iterator
        Centres that owe nothing to any partition; each is tried once, when no swap gains.
    worth : float
        A try gains when the cost falls by more than this fraction.
    vain : list of float
        Costs of what tries led to without gain: many lead to the same.
    tried : int
        Starts so far.
    tells : bool
        Whether those who listen hear of each.
    """

    engine: Engine
    distortion: Moving
    assigner: Assigner
    fresh: Iterator[Array] = field(default_factory=lambda: iter(()))
    worth: float = GAIN
    vain: list[float] = field(default_factory=list)
    tried: int = 0
    tells: bool = True

    def first_gain(self, best: Partition, starts: Iterator[Array], margin: float) -> Partition | None:
        """Where the first of the starts, as many at once as are quick, leads that ends below ``best``.

        What ends above it by up to ``margin`` gets its single moves first, except where they are not worth it.
        """
        size = at_once(self.engine, best.n_components) if self.assigner.free else 1
        bound = best.cost * (1 + margin if self.worth == GAIN else 1 - self.worth)
        while some := list(islice(starts, size)):
            self.tried += len(some)
            if self.tells:
                at(self.tried / (self.tried + BUDGET.max_swaps), f"{self.tried} other starts tried")
            for end in sorted(self._ends(some, best, bound), key=lambda end: end.cost):
                if _gains(end, best, self.worth):
                    self.assigner.keep(end)
                    return end
                if end.cost >= bound or self._known(end, best):
                    continue
                polished = _moved(self.engine, self.distortion, self.assigner, end, None, rounds=BUDGET.trial_rounds)
                if _gains(polished, best):
                    return polished
                self.vain.append(end.cost)
        return None

    def _ends(self, starts: list[Array], best: Partition, bound: float) -> list[Partition]:
        if self.assigner.free and len(starts) > 1:
            ends = alternate_each(self.engine, self.distortion, np.stack(starts), bound)
        else:
            ends = [self.assigner.alternate(centers, prices=best.prices, bound=bound) for centers in starts]
        return [end for end in ends if end is not None]

    def _known(self, end: Partition, best: Partition) -> bool:
        """Whether another try ended here."""
        return bool(np.abs(end.cost - np.array([best.cost, *self.vain])).min() <= GAIN * best.cost)


def _fresh(engine: Engine, distortion: Moving, assigner: Assigner, n_components: int) -> Iterator[Array]:
    """Starts from items far apart, as many as are cheap."""
    count = int(min(BUDGET.start_work / (engine.n_items * n_components * (engine.n_dims + 10)), BUDGET.max_starts))
    if not assigner.free:
        count = min(_n_tries(engine.n_items, n_components, engine.n_dims, assigner), BUDGET.max_bounded_starts)
    return far_apart(engine, distortion, n_components, count, 0) if count else iter(())


def _swapped(trials: _Trials, best: Partition, groups: Labels, n_tries: int | None = None) -> Partition | None:
    """The first swap, or set of swaps, that lowers the cost; None when none of ``n_tries`` does (or of as many as are worth it)."""
    engine, distortion, assigner = trials.engine, trials.distortion, trials.assigner
    away = distances(engine, distortion, best)
    # Counted without repetition, so that weights equal repetition.
    n_distinct = len(np.unique(groups[away.weight > 0]))
    if n_distinct == 0:
        return None
    places = _places(engine, distortion, best, away, groups)
    bare, merged, most = _rises(engine, distortion, best, away, places)
    n_tries = n_tries or _n_tries(n_distinct, best.n_components, engine.n_dims, assigner)
    limit, margin = BUDGET.hopeless * best.cost, BUDGET.nearly_items * best.n_components / n_distinct
    # Where all swaps can be tried, none is hopeless: with few items 13 of 948 problems ended above their optimum otherwise, now none.
    if assigner.free and bare.size <= n_tries:
        limit = np.finfo(float).max
    elif assigner.free:
        limit = min(limit, BUDGET.adapted * most)
        margin = min(BUDGET.nearly, margin)
    singles = _singles(bare, merged, places, limit)
    if assigner.free and best.n_components > BUDGET.many_components and at_once(engine, best.n_components) == 1:
        n_local = max(BUDGET.local_tries * n_tries, best.n_components)
        return _locally_swapped(trials, best, places, islice(singles, n_local))
    swapped = chain(_several(bare, places), ([swap] for swap in islice(singles, n_tries)))
    starts = chain((_with_swaps(best, places, swaps) for swaps in swapped), assigner.rearranged(best.centers), trials.fresh)
    return trials.first_gain(best, starts, margin)


def swapped_starts(engine: Engine, distortion: Moving, part: Partition) -> Iterator[Array]:
    """The centres of a partition with one component closed and one opened elsewhere, for all such swaps, the most promising first."""
    away = distances(engine, distortion, part)
    places = _places(engine, distortion, part, away, equal_items(engine))
    bare, merged, _ = _rises(engine, distortion, part, away, places)
    return (_with_swaps(part, places, [swap]) for swap in _singles(bare, merged, places, np.finfo(float).max))


def _locally_swapped(trials: _Trials, best: Partition, places: Places, swaps: Iterator[_Swap]) -> Partition | None:
    """Where all swaps lead that gain among the neighbours of what they close and open; None where none does."""
    engine, distortion = trials.engine, trials.distortion
    near = np.argsort(_merging(distortion, best), axis=1, kind="stable")[:, : BUDGET.neighbours]
    touched = np.zeros(best.n_components, dtype=bool)
    labels, centers, stats = best.labels.copy(), best.centers.copy(), best.stats
    for swap in swaps:
        # A gain may have changed what this swap was ranked by.
        ends = np.unique([swap.closed, places.home[swap.place]])
        if touched[ends].any():
            continue
        trials.tried += 1
        at(trials.tried / (trials.tried + BUDGET.local_tries * BUDGET.max_swaps), f"{trials.tried} swaps tried among neighbours")
        chosen = np.union1d(ends, near[ends])
        items = np.flatnonzero(np.isin(labels, chosen))
        part = engine.select(items)
        here = Partition(np.searchsorted(chosen, labels[items]), centers[chosen], stats.of(chosen))
        moved = centers[chosen]
        moved[np.searchsorted(chosen, swap.closed)] = places.centers[swap.place]
        margin = min(BUDGET.nearly, BUDGET.nearly_items * len(chosen) / len(items))
        found = _Trials(part, distortion, Free(part, distortion), worth=trials.worth, tells=False).first_gain(here, iter([moved]), margin)
        if found is not None:
            labels[items], centers[chosen], touched[ends] = chosen[found.labels], found.centers, True
            stats = stats.replaced(chosen, found.stats)
    if not touched.any():
        return None
    found = trials.assigner.alternate(centers)
    return found if _gains(found, best, trials.worth) else None


def _n_tries(n_items: int, n_components: int, n_dims: int, assigner: Assigner) -> int:
    allowed = BUDGET.swap_work / (n_items * n_components * (n_dims + 10))
    if assigner.free:
        return int(np.clip(allowed, BUDGET.min_swaps, BUDGET.max_swaps))
    return int(np.clip(allowed / BUDGET.assignment_passes, BUDGET.min_bounded_swaps, BUDGET.max_swaps))


def _with_swaps(best: Partition, places: Places, swaps: list[_Swap]) -> Array:
    centers = best.centers.copy()
    for swap in swaps:
        centers[swap.closed] = places.centers[swap.place]
    return centers


def _places(engine: Engine, distortion: Moving, best: Partition, away: Distances, groups: Labels) -> Places:
    """Items at even steps of the cost (all, when they are few), and the worst and the two halves of each component."""
    cost = away.weight * away.own
    order = np.argsort(away.own, kind="stable")
    running = np.cumsum(cost[order])
    steps = (np.arange(BUDGET.places) + 0.5) / BUDGET.places * running[-1]
    index = order[np.minimum(np.searchsorted(running, steps), len(order) - 1)]
    heavy = np.flatnonzero(away.weight > 0)
    if len(np.unique(groups[heavy])) <= BUDGET.places:
        index = heavy
    index = np.concatenate([index, first_of_each(best.labels, -cost)])
    index = index[np.unique(groups[index], return_index=True)[1]]
    starts = np.stack([best.centers, farthest_points(engine, distortion, best, away)])
    first, second = halved(engine, distortion, best, starts).centers
    return Places(
        centers=np.vstack([item_places(engine, distortion, index), first, second]),
        home=np.concatenate([best.labels[index], np.arange(len(first)), np.arange(len(second))]),
    )


def _rises(engine: Engine, distortion: Moving, best: Partition, away: Distances, places: Places) -> tuple[Array, Array, float]:
    """What closing each component (columns) and opening one at each place (rows) adds to the cost, in one pass, two ways.

    Bare: items go to the nearest centre that is left, and no centre moves. Merged: the closed component joins another whose centre follows.
    The third is the most that opening a component, at any place and as it is, takes off the cost.
    """
    work = Swaps(places.centers, places.home, best.n_components)
    columns = {"labels": best.labels, "own": away.own, "second": away.second}
    costs: SwapCosts = engine.run(distortion, work, columns).total
    merged = _merging(distortion, best).min(axis=1) - costs.gain[:, None]
    # A component reopened inside itself that neither loses nor gains items leads back to where it was.
    still = np.flatnonzero(costs.stir < BUDGET.stir * best.stats.cost[places.home])
    costs.bare[still, places.home[still]] = merged[still, places.home[still]] = np.inf
    return costs.bare, merged, float(costs.gain.max(initial=0.0))


def _ranked(rises: Array, places: Places, limit: float) -> Iterator[_Swap]:
    """Swaps in order of promise: the best of every (home, closed) pair first, then the second best, …"""
    left, closed = rises.copy(), np.arange(rises.shape[1])
    homes = [np.flatnonzero(places.home == home) for home in np.unique(places.home)]
    while True:
        place = np.stack([rows[left[rows].argmin(axis=0)] for rows in homes])
        flat = np.sort((place * len(closed) + closed)[left[place, closed] <= limit])
        if not flat.size:
            return
        for index in flat[np.argsort(rises.ravel()[flat], kind="stable")].tolist():
            where = divmod(index, len(closed))
            yield _Swap(float(rises[where]), *where)
        left.ravel()[flat] = np.inf


def _singles(bare: Array, merged: Array, places: Places, limit: float) -> Iterator[_Swap]:
    """Single swaps in order of promise, by what both ``_rises`` say in turns."""
    return _interleaved(*(_ranked(rises, places, limit) for rises in (bare, merged)))


def _interleaved(*lists: Iterator[_Swap]) -> Iterator[_Swap]:
    """The lists in turns, without repetition."""
    seen = set()
    for swap in chain.from_iterable(zip_longest(*lists)):
        if swap is not None and (swap.place, swap.closed) not in seen:
            seen.add((swap.place, swap.closed))
            yield swap


def _several(rises: Array, places: Places) -> Iterator[list[_Swap]]:
    """Sets of swaps that pay as they are and touch different components: all of them, then half as many, … down to two."""
    used: set[int] = set()
    swaps = []
    for swap in sorted(islice(_ranked(rises, places, 0.0), 2 * BUDGET.max_swaps), key=lambda swap: swap.rise):
        touched = {int(places.home[swap.place]), swap.closed}
        if not touched & used:
            used |= touched
            swaps.append(swap)
    size = len(swaps)
    while size > 1:
        yield swaps[:size]
        size //= 2


# -- moves ----------------------------------------------------------------------------------------------------------------------


def equal_items(engine: Engine) -> Labels:
    """A group number for every item, the same for equal items."""
    return np.unique(engine.run(None, Keys()).columns["key"], return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class _Move:
    """Items that change component together, between the components ``source`` and ``goal``.

    Attributes
    ----------
    items, goals : ndarray of shape (n_moved,)
    source, goal : int
    """

    items: Labels
    goals: Labels
    source: int
    goal: int

    @property
    def name(self) -> tuple[int, ...]:
        """What to remember a refused move by."""
        return (*self.items.tolist(), self.source, self.goal)


def _moved(
    engine: Engine,
    distortion: Moving,
    assigner: Assigner,
    best: Partition,
    groups: Labels | None,
    *,
    rounds: int | None = None,
) -> Partition:
    """Move items whose move pays: all at once while that works, then one move or exchange for each pair of components."""
    refused: set[tuple[int, ...]] = set()
    together, exactly = True, False
    for _ in range(rounds or _n_rounds(engine, best)):
        movers = (_exact_movers if exactly else _movers)(engine, distortion, best, groups)
        if together and len(movers.items) > 1:
            trial = _relabelled(engine, distortion, assigner, best, movers.items, movers.goal)
            together = _gains(trial, best)
            if trial is not None and together:
                best = trial
                continue
        moves = _one_each(assigner, best, movers, groups, refused)
        if not assigner.free:
            moves = moves or _exchanges(engine, distortion, best, refused)
        if moves:
            best = _verified(engine, distortion, assigner, best, moves, refused)
        elif exactly or rounds or engine.n_items > BUDGET.few_items:
            break
        exactly = not moves
    return best


def _n_rounds(engine: Engine, part: Partition) -> int:
    allowed = BUDGET.move_work / (engine.n_items * part.n_components * (engine.n_dims + 10))
    return int(np.clip(allowed, BUDGET.min_rounds, BUDGET.max_rounds))


def _movers(engine: Engine, distortion: Moving, best: Partition, groups: Labels | None) -> Movers:
    """Items that should move to another component (with their equals), what gains most first."""
    weight = _group_weight(engine, distortion, groups)
    least = GAIN / 10 * best.cost
    work = MoveGains(best.centers, best.stats.mass, best.stats.cost, together=weight is not None, least=least)
    columns = {"labels": best.labels, **({} if weight is None else {"together": weight})}
    found: Movers = engine.run(distortion, work, columns).total
    return found.taken(np.argsort(-found.gain, kind="stable"))


def _exact_movers(engine: Engine, distortion: Moving, best: Partition, groups: Labels | None) -> Movers:
    """The same for few items, where the other gains are right to second order only."""
    whole = np.arange(engine.n_items)
    found = engine.run(distortion, AllDistances(best.centers)).columns
    distance, weight = found["distance"].T, found["weight"]
    together = _group_weight(engine, distortion, groups)
    moving = weight if together is None else together
    costs = distortion.exact_moves(all_known(engine, distortion), weight, moving, best.labels, distance)
    leave, join = (np.zeros(engine.n_items), distance) if costs is None else costs
    join[best.labels, whole] = np.inf
    gain = leave - join.min(axis=0)
    pays = np.flatnonzero(gain > GAIN / 10 * best.cost)
    movers = Movers(len(whole), pays, gain[pays], best.labels[pays], join[:, pays].argmin(axis=0))
    return movers.taken(np.argsort(-movers.gain, kind="stable"))


def _group_weight(engine: Engine, distortion: Moving, groups: Labels | None) -> Array | None:
    """Σ ω over the equals of every item; None where no two items are equal."""
    if groups is None or groups.max(initial=0) + 1 == engine.n_items:
        return None
    weight = engine.run(distortion, Weights()).columns["weight"]
    return np.bincount(groups, weight)[groups]


def _relabelled(engine: Engine, distortion: Moving, assigner: Assigner, best: Partition, items: Labels, goals: Labels) -> Partition | None:
    """The partition with items given to other components; None where that may not be."""
    order = np.argsort(items)
    changed = engine.run(BLIND, Relabelled(items[order], goals[order], best.n_components), {"labels": best.labels})
    labels, sizes = changed.columns["labels"], changed.total.sizes
    if not assigner.allows(sizes, best.stats.sizes):
        return None
    found = replace(centered(engine, distortion, labels, best.centers), prices=best.prices, charge=assigner.charge(sizes))
    assigner.keep(found)
    return found


def _one_each(
    assigner: Assigner,
    best: Partition,
    movers: Movers,
    groups: Labels | None,
    refused: set[tuple[int, ...]],
) -> list[_Move]:
    """The best moves that touch different components; each is an item with its equals."""
    used: set[int] = set()
    moves = []
    repeated = groups is not None and len(groups) > groups.max(initial=-1) + 1

    @cache
    def allowed(source: int, goal: int, count: int) -> bool:
        sizes = best.stats.sizes.copy()
        sizes[[source, goal]] += np.array([-count, count])
        return assigner.allows(sizes, best.stats.sizes)

    for item, source, goal in zip(movers.items.tolist(), movers.source.tolist(), movers.goal.tolist(), strict=True):
        if {source, goal} & used:
            continue
        equals = np.array([item])
        if groups is not None and repeated:
            equals = np.flatnonzero(groups == groups[item])
            equals = equals[best.labels[equals] == source]
        if not allowed(source, goal, len(equals)):
            continue
        move = _Move(equals, np.full(len(equals), goal), source, goal)
        if move.name not in refused:
            used |= {source, goal}
            moves.append(move)
    return moves


def _exchanges(engine: Engine, distortion: Moving, best: Partition, refused: set[tuple[int, ...]]) -> list[_Move]:
    """Exchanges of two items that should pay, between different components: sizes stay as they are."""
    work = BestMoves(best.centers, best.stats.mass, best.stats.cost)
    found: BestPairs = engine.run(distortion, work, {"labels": best.labels}).total
    both = np.triu(found.gain + found.gain.T, 1)
    used: set[int] = set()
    moves = []
    for flat in np.argsort(-both, axis=None, kind="stable"):
        one, other = (int(j) for j in np.unravel_index(flat, both.shape))
        if both[one, other] <= GAIN / 10 * best.cost:
            break
        move = _Move(np.array([found.item[one, other], found.item[other, one]]), np.array([other, one]), one, other)
        if not {one, other} & used and move.name not in refused:
            used |= {one, other}
            moves.append(move)
    return moves


def _verified(
    engine: Engine,
    distortion: Moving,
    assigner: Assigner,
    best: Partition,
    moves: list[_Move],
    refused: set[tuple[int, ...]],
) -> Partition:
    """Apply the moves, keep those that lowered the cost of their two components, and remember the others."""
    trial = _relabelled(engine, distortion, assigner, best, *_joined(moves))
    if trial is None:
        refused |= {move.name for move in moves}
        return best
    fall = best.stats.cost - trial.stats.cost
    kept = [move for move in moves if fall[move.source] + fall[move.goal] > 1e-12 * best.cost]
    if len(kept) == len(moves):
        return trial
    refused |= {move.name for move in moves if move not in kept}
    again = _relabelled(engine, distortion, assigner, best, *_joined(kept)) if kept else None
    return best if again is None else again


def _joined(moves: list[_Move]) -> tuple[Labels, Labels]:
    """All items that move, and where each goes."""
    return np.concatenate([move.items for move in moves]), np.concatenate([move.goals for move in moves])
