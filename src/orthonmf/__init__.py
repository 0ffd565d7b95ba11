"""Orthogonal nonnegative matrix factorisation: X ≈ T C with parts that do not overlap."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import datasets, io, metrics, pl, plot, report, tl
    from .estimator import ONMF
    from .model.certificate import Certificate
    from .model.terms import top_terms

__version__ = "0.1.0"

__all__ = ["ONMF", "Certificate", "__version__", "datasets", "io", "metrics", "pl", "plot", "report", "tl", "top_terms"]

# The modules of the names that are no modules themselves.
_HOMES = {"ONMF": "estimator", "Certificate": "model.certificate", "top_terms": "model.terms"}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: scikit-learn alone takes longer than all the rest."""
    place = f"{__name__}.{_HOMES.get(name, name)}"
    try:
        module = import_module(place)
    except ModuleNotFoundError as error:
        if error.name != place:
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(module, name) if name in _HOMES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
