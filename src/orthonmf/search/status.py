"""Why a fit ended: one of a few reasons, each a sentence and what to change."""

from __future__ import annotations

from enum import Enum

__all__ = ["Status"]


class Status(Enum):
    """Why a fit, or a part of it, ended; the value is what happened and what to change (nothing, where it is empty).

    Examples
    --------
    >>> from orthonmf.search.status import Status
    >>> Status.TIME_LIMIT.sentence
    'Stopped at the time limit: raise time_limit for a better answer.'
    >>> Status.TIME_LIMIT.stopped, Status.CONVERGED.stopped
    (True, False)
    """

    CONVERGED = ("Converged", "")
    TIME_LIMIT = ("Stopped at the time limit", "raise time_limit for a better answer")
    CALLBACK = ("Stopped by a callback", "")
    INTERRUPTED = ("Interrupted", "call fit with the same data, parameters and checkpoint to carry it on")
    ANNEALING = ("Not converged: the annealing did not come to rest at every temperature", "raise max_iter or tol")
    ALTERNATION = ("Not converged: the alternation of labels and centres did not come to rest", "raise max_iter")
    PRICES = ("Not converged: the prices of the bounds did not come to rest", "use solver_options with a growth nearer to 1")
    FLOW_STEPS = ("Not converged: the barrier flow used up its steps", "in solver_options, raise max_steps or tol")
    FLOW_ROUNDING = ("Not converged: no step of the barrier flow lowers its energy beyond rounding", "in solver_options, raise tol")
    FLOW_PROGRAM = ("Not converged: the velocity problem of the barrier flow was not solved", "in solver_options, lower beta_stop")

    @property
    def sentence(self) -> str:
        """What happened, and what to change."""
        happened, remedy = self.value
        return f"{happened}: {remedy}." if remedy else f"{happened}."

    @property
    def stopped(self) -> bool:
        """Whether the fit was stopped from outside, before it had done what it could."""
        return self in (Status.TIME_LIMIT, Status.CALLBACK)
