"""What a solver may be told: named constants, each with the range it must be in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Self

from ...exceptions import InvalidInputError

# The least factor between temperatures: below it there are tens of thousands of them, and at 1 no end.
LEAST_GROWTH = 1.001


def option(default: Any, check: Callable[..., None], **range_: Any) -> Any:
    """A field of an `Options` class whose values ``check(name, value, **range_)`` lets pass."""
    return field(default=default, metadata={"check": partial(check, **range_)})


@dataclass(frozen=True)
class Options:
    """The constants of a solver; every field is an `option`."""

    def __post_init__(self) -> None:
        for each in fields(self):
            each.metadata["check"](each.name, getattr(self, each.name))

    @classmethod
    def of(cls, given: Any) -> Self:
        """From what a user wrote: a dict of some of the names, or None."""
        names = [each.name for each in fields(cls)]
        expected = f"expected a dict with names among {', '.join(names)}, or None"
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise InvalidInputError(f"solver_options={given!r} is not usable; {expected}.")
        for name in given:
            if name not in names:
                raise InvalidInputError(f"solver_options has {name!r}, which is not known; {expected}.")
        return cls(**given)
