"""The annealing as branches: where each component came from, with β only growing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._common.typing import Array, Labels

__all__ = ["Track", "criticals", "drawable", "how_to_locate", "located", "widest_view"]


@dataclass(frozen=True)
class Track:
    """The last rise of β in a history, and the branches that lead to its components.

    A transition is looked at from both sides and a bounded fit anneals twice, so β does not only grow in ``history_``. Of the
    temperatures that were looked at twice, the last look counts; a split that was tried and refused does not.

    Attributes
    ----------
    steps : ndarray of shape (n_temperatures,)
        Which entries of the history these are.
    beta : ndarray of shape (n_temperatures,)
        Increasing, positive, finite.
    ids : list of tuples of int
        Names of the components at each temperature.
    projection : list of ndarrays of shape (n_components, 2)
        The centres in the plane of the history.
    parents : dict of int to int
        The tree of splits, as far as the history knows it.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.datasets import make_nested
    >>> track = Track.of(ONMF(scaling="none").fit(make_nested(64, 10, random_state=0).X).history_)
    >>> len(track.ids[0]), len(track.ids[track.last(16)])
    (1, 16)
    """

    steps: Labels
    beta: Array
    ids: list[tuple[int, ...]]
    projection: list[Array]
    parents: dict[int, int]

    @classmethod
    def of(cls, history: dict[str, Any]) -> Track:
        """The track of a fitted model's ``history_``."""
        steps = _rise(history["beta"], history["ids"])
        return cls(
            steps=steps,
            beta=np.asarray(history["beta"])[steps],
            ids=[tuple(history["ids"][i]) for i in steps],
            projection=[np.asarray(history["projection"][i]) for i in steps],
            parents={child: parent for _, parent, child in history["splits"]},
        )

    def last(self, n_components: int) -> int:
        """The last temperature with that many components, or where there is none, with the most below it or the fewest."""
        numbers = [len(ids) for ids in self.ids]
        most = max((number for number in numbers if number <= n_components), default=min(numbers))
        return max(i for i, ids in enumerate(self.ids) if len(ids) == most)

    def branches(self, end: int) -> Labels:
        """For each component at temperature ``end``, the place of its ancestor in ``ids`` at each temperature up to it.

        Returns an array of shape (n_components, end + 1). A name goes on where it was; a new one comes from its parent in the tree or,
        where the tree does not tell (splits beyond the number that was chosen, bounded fits), from the nearest centre.
        """
        places = np.zeros((len(self.ids[end]), end + 1), dtype=np.intp)
        places[:, end] = np.arange(len(self.ids[end]))
        for i in range(end - 1, -1, -1):
            origin = np.array([self._origin(i + 1, j) for j in range(len(self.ids[i + 1]))])
            places[:, i] = origin[places[:, i + 1]]
        return places

    def paths(self, end: int) -> Array:
        """Where the ancestors of each component at ``end`` were, (n_components, end + 1, 2)."""
        places = self.branches(end)
        return np.stack([self.projection[i][places[:, i]] for i in range(end + 1)], axis=1)

    def start(self, end: int) -> int:
        """The first temperature worth showing up to ``end``: before the first split, a fifth as much of log β as after it."""
        parted = [i for i in range(end + 1) if len(self.ids[i]) > 1] or [0]
        first = np.log(self.beta[max(parted[0] - 1, 0)])
        least = first - 0.2 * (np.log(self.beta[end]) - first)
        return int(min(np.searchsorted(np.log(self.beta), least), max(parted[0] - 1, 0)))

    def _origin(self, i: int, place: int) -> int:
        """The place at temperature i − 1 of what component ``place`` at temperature i was then."""
        before, name = self.ids[i - 1], self.ids[i][place]
        while name not in before and name in self.parents:
            name = self.parents[name]
        if name in before:
            return before.index(name)
        return int(np.square(self.projection[i - 1] - self.projection[i][place]).sum(axis=1).argmin())


def _rise(beta: Any, ids: Any) -> Labels:
    """The entries of the last rise of β: those of the last annealing that no later one is at or below."""
    kept: list[int] = []
    for i, value in enumerate(beta):
        if i and value < beta[i - 1] and len(ids[i]) == 1 < len(ids[i - 1]):  # all in one place again: another annealing
            kept.clear()
        while kept and beta[kept[-1]] >= value:
            kept.pop()
        if 0 < value < np.inf:  # others have no place on a logarithmic axis
            kept.append(i)
    taken = [_before_refusal(i, after, beta, ids) for i, after in pairwise(kept)]
    return np.array([*taken, *kept[-1:]], dtype=np.intp)


def _before_refusal(i: int, after: int, beta: Any, ids: Any) -> int:
    """Entry i or, where a split was tried there whose child is gone at the next entry, the one before it at the same β."""
    gone, before = set(ids[i]) - set(ids[after]), max(i - 1, 0)
    return before if gone and beta[before] == beta[i] and not gone & set(ids[before]) else i


def widest_view(points: Array) -> Array:
    """The direction in the plane along which the closest two of the points (n, 2) are farthest apart.

    Examples
    --------
    >>> import numpy as np
    >>> np.abs(widest_view(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]))).round(6)
    array([1., 0.])
    """
    angles = np.linspace(0, np.pi, 181)
    directions = np.stack([np.cos(angles), np.sin(angles)])
    gaps = np.diff(np.sort(points @ directions, axis=0), axis=0).min(axis=0, initial=np.inf)
    return np.asarray(directions[:, gaps.argmax()])


def located(model: Any) -> bool:
    """Whether the critical values of a fitted model were located; with a number of components given, β only leaps from split to split."""
    return isinstance(model.n_components, str) or model.schedule != "adaptive"


def drawable(model: Any) -> bool:
    """Whether the last rise of β went in steps that show where components part: it did where they were located, or under bounds."""
    return located(model) or not model.certificate_.free


def criticals(model: Any) -> Array:
    """The critical values along the track of a fitted model; none where they were not located, or under bounds, which anneal once more."""
    return np.asarray(model.critical_betas_) if model.certificate_.free else np.zeros(0)


def how_to_locate(model: Any) -> str:
    """Why transitions are not known, and what to do, in a sentence."""
    return (
        f"n_components={model.n_components} was given, so the annealing leaps past several transitions at a time and does not show where "
        "components part, nor how long each number lasts; fit with n_components='auto', or with a growth factor such as schedule=1.05."
    )
