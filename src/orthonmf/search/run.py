"""The state of a fit: the best answer so far, which every improvement replaces, and why the fit ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .._common.typing import Array, Labels
from .anneal import Split
from .bounded.bounds import Bounds
from .number import Number
from .partition import Keep, Partition
from .status import Status

# Labels of all items for given centres and prices, within the bounds.
Assign = Callable[[Array, Array | None], Partition]


@dataclass(frozen=True)
class Answer:
    """What a fit would return if it ended now.

    Attributes
    ----------
    centers : ndarray of shape (n_components, n_coordinates)
        In the frame of the distortion; under bounds, the roomiest component first.
    labels : ndarray of shape (n_items,) or None
        Within the bounds; None stands for the nearest.
    prices : ndarray of shape (n_components,) or None
    cost : float
    """

    centers: Array
    labels: Labels | None = None
    prices: Array | None = None
    cost: float = np.inf


@dataclass
class Search:
    """How far a fit has come. It has an answer from the start, and an improvement is never given up.

    Attributes
    ----------
    bounds : Bounds or None
        On the sizes of the components.
    assign : callable
        Gives all items to components.
    best : Answer
        The best partition of all items so far.
    sketch : tuple of centres and prices, or None
        Found on a sample and not yet tried on all items.
    centers : ndarray
        Free components, where the next stage begins.
    critical_betas, splits
        Of the annealing.
    kkt_residual : float or None
        Of the relaxed problem, under bounds.
    evidence : float or None
        The effective number of items on which the number of components is found; None for a sample.
    number : Number or None
        What speaks for the number of components, where the data decided.
    faults : list of Status
        What did not converge; why it was stopped.
    remarks : list of str
        What else the user should know, in sentences.
    """

    bounds: Bounds | None
    assign: Assign
    best: Answer
    sketch: tuple[Array, Array | None] | None = None
    centers: Array = field(default_factory=lambda: np.zeros((0, 0)))
    critical_betas: Array = field(default_factory=lambda: np.zeros(0))
    splits: list[Split] = field(default_factory=list)
    kkt_residual: float | None = None
    evidence: float | None = None
    number: Number | None = None
    faults: list[Status] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, bounds: Bounds | None, assign: Assign, centers: Array) -> Search:
        """A search with its first answer."""
        search = cls(bounds, assign, Answer(centers))
        search.keep(assign(centers, None))
        return search

    def under(self, bounds: Bounds, assign: Assign, centers: Array) -> None:
        """From here on the components are those of ``bounds``, and what free ones are worth within them is known."""
        part = assign(centers, None)
        if self.bounds is None or len(self.bounds.upper) != len(bounds.upper):
            self.best = Answer(centers)
        self.bounds, self.assign, self.sketch = bounds, assign, None
        self.keep(part)

    def keep(self, part: Partition) -> None:
        """Take a partition of all items for the answer, if it is better; a sketch has then been tried."""
        self.sketch = None
        if part.cost < self.best.cost:
            labels = None if self.bounds is None else part.labels.copy()
            self.best = Answer(part.centers, labels, part.prices, part.cost)

    def sketching(self) -> Keep:
        """For partitions of a sample: the centres of the best one are tried on all items, at the latest when the fit is stopped."""
        least = np.inf

        def keep(part: Partition) -> None:
            nonlocal least
            if part.cost < least:
                least, self.sketch = part.cost, (part.centers, part.prices)

        return keep

    def offer(self, centers: Array, prices: Array | None) -> None:
        """See what centres and prices are worth on all items."""
        self.keep(self.assign(centers, prices))

    def propose(self, centers: Array) -> None:
        """See what free centres are worth on all items; fewer or more of them than before replace what there was."""
        if len(centers) != len(self.best.centers):
            self.best = Answer(centers)
        self.offer(centers, None)

    def tried(self) -> None:
        """See what the sketch is worth on all items."""
        if self.sketch is not None:
            self.offer(*self.sketch)

    def end(self, answer: Answer) -> None:
        """The search is over: what it has come to is the answer."""
        self.best, self.sketch = answer, None

    def fault(self, status: Status) -> None:
        """Note what did not converge, once."""
        if status not in self.faults:
            self.faults.append(status)

    @property
    def status(self) -> Status:
        """Why the fit ended: that it was stopped, else what did not converge first."""
        return next((fault for fault in self.faults if fault.stopped), self.faults[0] if self.faults else Status.CONVERGED)

    @property
    def sentences(self) -> str:
        """The status in words, and the remarks."""
        reasons = [self.status] if self.status.stopped or not self.faults else self.faults
        return " ".join([*(each.sentence for each in reasons), *self.remarks])
