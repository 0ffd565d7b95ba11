"""The state of a fit: a value that every step replaces, with the best answer so far and what comes next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from .._common.typing import Array, Labels
from ..progress import Monitor, Temperature, at
from .anneal import Split
from .bounded.bounds import Bounds
from .number import Number
from .partition import Keep, Partition
from .status import Status

# All items given to components, for some centres and prices, within the bounds.
Assign = Callable[[Array, Array | None], Partition]


class Stage(Enum):
    """What a fit does next."""

    NUMBER = "see whether items differ, and find the number of components where the data decide"
    ANNEALING = "anneal, until as many components are distinct"
    PLACES = "see how far the components are out of the bounds, if any, and whether they are to be refined"
    SAMPLES = "search for better free components on samples that grow"
    ALL_ITEMS = "refine the free components on all items"
    WITHIN_BOUNDS = "search for the best components within the bounds; where there are none, take the free ones"
    GIVEN = "see whether the start that was given leads to better free components"
    DONE = "nothing"


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


@dataclass(frozen=True)
class Run:
    """How far a fit has come. It can be written down after every stage, and continued on the same items.

    Attributes
    ----------
    best : Answer
        The best partition of all items so far.
    bounds : Bounds or None
        On the sizes of the components.
    stage : Stage
        What comes next.
    sketch : tuple of centres and prices, or None
        Found on a sample and not yet tried on all items.
    centers : ndarray
        Free components, where the next stage begins; each stage but the last replaces them.
    free : Answer or None
        Under bounds, the best free components of all items so far; samples replace them.
    n_samples : int
        Samples that have been searched.
    temperatures : tuple of Temperature
    critical_betas, splits
        Of the annealing.
    kkt_residual : float or None
        Of the relaxed problem, under bounds.
    number : Number or None
        What speaks for the number of components, where the data decided.
    faults : tuple of Status
        What did not converge; why it was stopped.
    remarks : tuple of str
        What else the user should know, in sentences.
    """

    best: Answer
    bounds: Bounds | None = None
    stage: Stage = Stage.NUMBER
    sketch: tuple[Array, Array | None] | None = None
    centers: Array = field(default_factory=lambda: np.zeros((0, 0)))
    free: Answer | None = None
    n_samples: int = 0
    temperatures: tuple[Temperature, ...] = ()
    critical_betas: Array = field(default_factory=lambda: np.zeros(0))
    splits: tuple[Split, ...] = ()
    kkt_residual: float | None = None
    number: Number | None = None
    faults: tuple[Status, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """Why the fit ended: that it was stopped, else what did not converge first."""
        return next((fault for fault in self.faults if fault.stopped), self.faults[0] if self.faults else Status.CONVERGED)

    @property
    def sentences(self) -> str:
        """The status in words, and the remarks."""
        reasons = [self.status] if self.status.stopped or not self.faults else self.faults
        return " ".join([*(each.sentence for each in reasons), *self.remarks])


@dataclass
class Search:
    """Who carries a run on. It has an answer from the start, which only a better one replaces, until the last stage has its own.

    Attributes
    ----------
    run : Run
        Replaced whenever something is found.
    assign : callable
        Gives all items to components.
    monitor : Monitor
        Told of stages and temperatures.
    """

    run: Run
    assign: Assign
    monitor: Monitor

    def put(self, **found: Any) -> None:
        """Replace what the run holds under these names."""
        self.run = replace(self.run, **found)

    def under(self, bounds: Bounds, assign: Assign, centers: Array) -> None:
        """From here on the components are those of ``bounds``, and what free ones are worth within them is known."""
        part, before = assign(centers, None), self.run.bounds
        if before is None or len(before.upper) != len(bounds.upper):
            self.put(best=Answer(centers))
        self.assign = assign
        self.put(bounds=bounds, sketch=None)
        self.keep(part)

    def keep(self, part: Partition) -> None:
        """Take a partition of all items for the answer, if it is better; a sketch has then been tried."""
        best = self.run.best
        if part.cost >= best.cost and self.run.sketch is None:
            return
        if part.cost < best.cost:
            labels = None if self.run.bounds is None else part.labels.copy()
            best = Answer(part.centers, labels, part.prices, part.cost)
        self.put(best=best, sketch=None)

    def sketching(self) -> Keep:
        """For partitions of a sample: the centres of the best one are tried on all items, at the latest when the fit is stopped."""
        least = np.inf

        def keep(part: Partition) -> None:
            nonlocal least
            if part.cost < least:
                least = part.cost
                self.put(sketch=(part.centers, part.prices))

        return keep

    def offer(self, centers: Array, prices: Array | None) -> None:
        """See what centres and prices are worth on all items."""
        self.keep(self.assign(centers, prices))

    def propose(self, centers: Array) -> None:
        """See what free centres are worth on all items; fewer or more of them than before replace what there was."""
        if len(centers) != len(self.run.best.centers):
            self.put(best=Answer(centers))
        self.offer(centers, None)

    def tried(self) -> None:
        """See what the sketch is worth on all items."""
        if self.run.sketch is not None:
            self.offer(*self.run.sketch)

    def temperature(self, record: Temperature) -> None:
        """Take note of a settled temperature."""
        self.put(temperatures=(*self.run.temperatures, record))
        self.monitor.temperature(record)
        at(0.0, f"β {record.beta:.4g}, {record.n_components} components")

    def fault(self, status: Status) -> None:
        """Note what did not converge, once."""
        if status not in self.run.faults:
            self.put(faults=(*self.run.faults, status))

    def remark(self, sentence: str) -> None:
        """Note what else the user should know."""
        self.put(remarks=(*self.run.remarks, sentence))
