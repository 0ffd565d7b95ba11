"""How numpy answers overflow and the like while we compute: by its own defaults, whatever the user has set.

A probability that underflows to zero is as good as zero, so ``np.errstate(all="raise")`` around a fit must not turn it into an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

ERRORS: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}

P = ParamSpec("P")
R = TypeVar("R")


def own_arithmetic(function: Callable[P, R]) -> Callable[P, R]:
    """The function, computed under our settings. The user's are restored when it ends."""

    @wraps(function)
    def computed(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(**ERRORS):
            return function(*args, **kwargs)

    return computed
