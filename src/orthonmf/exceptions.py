"""The errors that the library raises.

All derive from `OrthonmfError`, and each also from the built-in exception a caller would expect, so that
``except ValueError`` keeps working. A message names the offending value, what was expected and what to do.
"""

__all__ = [
    "DataUnavailableError",
    "FileAccessError",
    "InfeasibleCapacityError",
    "IntegrityError",
    "InvalidInputError",
    "MissingExtraError",
    "ModelFormatError",
    "OrthonmfError",
]


class OrthonmfError(Exception):
    """Base of every error that the library raises on purpose."""


class InvalidInputError(OrthonmfError, ValueError):
    """Data or a parameter lies outside what the called function accepts."""


class InfeasibleCapacityError(OrthonmfError, ValueError):
    """No assignment can satisfy the bounds on the sizes of the components."""


class IntegrityError(OrthonmfError, RuntimeError):
    """A conserved quantity was not conserved, as when a block of items is lost or counted twice."""


class ModelFormatError(OrthonmfError, ValueError):
    """A stored model is damaged, inconsistent, or of a format this version does not read."""


class MissingExtraError(OrthonmfError, ImportError):
    """An optional dependency is needed and not installed."""


class DataUnavailableError(OrthonmfError, OSError):
    """A data set is neither on this machine nor obtainable."""


class FileAccessError(OrthonmfError, OSError):
    """A file cannot be read or written."""
