"""The errors that the library raises.

All derive from `OrthonmfError`, and each also from the built-in exception a caller would expect, so that
``except ValueError`` keeps working. A message names the offending value, what was expected and what to do.
"""

__all__ = [
    "CheckpointWarning",
    "DataUnavailableError",
    "DeviceMemoryError",
    "DistributedFitError",
    "DistributedWarning",
    "FileAccessError",
    "InfeasibleCapacityError",
    "IntegrityError",
    "InvalidInputError",
    "MissingExtraError",
    "ModelFormatError",
    "NothingStandsOutWarning",
    "OrthonmfError",
    "UnitsWarning",
]


class OrthonmfError(Exception):
    """Base of every error that the library raises on purpose.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> from orthonmf.exceptions import OrthonmfError
    >>> try:
    ...     ONMF(2).fit([[1.0, -1.0], [2.0, 3.0]])
    ... except OrthonmfError as error:
    ...     print(type(error).__name__)
    InvalidInputError
    """


class InvalidInputError(OrthonmfError, ValueError):
    """Data or a parameter lies outside what the called function accepts.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> ONMF(5).fit([[1.0, 0.0], [2.0, 3.0]])
    Traceback (most recent call last):
        ...
    orthonmf.exceptions.InvalidInputError: n_components=5 is more than the 2 rows of X; ask for at most 2.
    """


class InfeasibleCapacityError(OrthonmfError, ValueError):
    """No assignment can satisfy the bounds on the sizes of the components.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> ONMF(2, capacity=1).fit([[1.0, 0.0], [2.0, 3.0], [0.0, 1.0]])
    Traceback (most recent call last):
        ...
    orthonmf.exceptions.InfeasibleCapacityError: The capacities [1, 1] hold 2 items, 1 fewer than the 3 there are; ...
    """


class IntegrityError(OrthonmfError, RuntimeError):
    """A conserved quantity was not conserved, as when a block of items is lost or counted twice.

    Examples
    --------
    >>> from orthonmf.exceptions import IntegrityError, OrthonmfError
    >>> issubclass(IntegrityError, OrthonmfError) and issubclass(IntegrityError, RuntimeError)
    True
    """


class ModelFormatError(OrthonmfError, ValueError):
    """A model is damaged, contradicts itself, or is stored in a format that this version does not read.

    Examples
    --------
    >>> from orthonmf.exceptions import ModelFormatError, OrthonmfError
    >>> issubclass(ModelFormatError, OrthonmfError) and issubclass(ModelFormatError, ValueError)
    True
    """


class MissingExtraError(OrthonmfError, ImportError):
    """An optional dependency is needed and not installed.

    Examples
    --------
    >>> from orthonmf.exceptions import MissingExtraError, OrthonmfError
    >>> issubclass(MissingExtraError, OrthonmfError) and issubclass(MissingExtraError, ImportError)
    True
    """


class DataUnavailableError(OrthonmfError, OSError):
    """A data set is neither on this machine nor obtainable.

    Examples
    --------
    >>> from orthonmf.exceptions import DataUnavailableError, OrthonmfError
    >>> issubclass(DataUnavailableError, OrthonmfError) and issubclass(DataUnavailableError, OSError)
    True
    """


class FileAccessError(OrthonmfError, OSError):
    """A file cannot be read or written.

    Examples
    --------
    >>> from orthonmf import ONMF
    >>> ONMF.load("no-such-folder/parts.onmf")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    orthonmf.exceptions.FileAccessError: no such file
    """


class DistributedFitError(OrthonmfError, RuntimeError):
    """A cluster did not do its part: workers that die again and again, a chunk that cannot be loaded, a scheduler out of reach.

    Examples
    --------
    >>> from orthonmf.exceptions import DistributedFitError, OrthonmfError
    >>> issubclass(DistributedFitError, OrthonmfError) and issubclass(DistributedFitError, RuntimeError)
    True
    """


class DeviceMemoryError(OrthonmfError, MemoryError):
    """A GPU has too little memory, even for a small part of a pass, or for a sparse matrix.

    Examples
    --------
    >>> from orthonmf.exceptions import DeviceMemoryError, OrthonmfError
    >>> issubclass(DeviceMemoryError, OrthonmfError) and issubclass(DeviceMemoryError, MemoryError)
    True
    """


class DistributedWarning(UserWarning):
    """The workers of a cluster are not alike, so that the last digits of a result depend on who computed what.

    Examples
    --------
    >>> import warnings
    >>> from orthonmf.exceptions import DistributedWarning
    >>> warnings.simplefilter("error", DistributedWarning)  # rather stop than get other digits next time
    >>> warnings.resetwarnings()
    """


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, or not be read; the fit goes on.

    Examples
    --------
    >>> import warnings
    >>> from orthonmf.exceptions import CheckpointWarning
    >>> warnings.simplefilter("error", CheckpointWarning)  # rather stop than go on without one
    >>> warnings.resetwarnings()
    """


class NothingStandsOutWarning(UserWarning):
    """No number of components above one stands out in the data.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from orthonmf import ONMF
    >>> from orthonmf.exceptions import NothingStandsOutWarning
    >>> X = 20 + np.random.default_rng(0).normal(size=(100, 5))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = ONMF().fit(X)
    >>> model.n_components_, [warning.category.__name__ for warning in caught]
    (1, ['NothingStandsOutWarning'])
    """


class UnitsWarning(UserWarning):
    """A few features hold almost all of the data, as when features have different units.

    Examples
    --------
    >>> import warnings
    >>> from orthonmf.exceptions import UnitsWarning
    >>> warnings.simplefilter("ignore", UnitsWarning)  # it is meant so
    >>> warnings.resetwarnings()
    """
