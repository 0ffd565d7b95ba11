"""Tensors of torch from a user, and back to one: what comes in on a device goes out on it.

Nothing here imports torch where X is no tensor of it. A tensor is never copied to another device: on a GPU it is computed with there, and
one of this process shares its memory with an array, unless ``engine="torch"`` asks for the text of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from .._common.registry import imported
from ..exceptions import InvalidInputError

Model = TypeVar("Model")

#: What a model of tensors holds as tensors.
ATTRIBUTES = ("components_", "labels_", "scale_", "margin_", "counts_")
#: Of these, what using it on new data needs.
SMALL = ("components_", "counts_")


def is_tensor(X: Any) -> bool:
    """Whether X is a tensor of torch."""
    return type(X).__module__.partition(".")[0] == "torch"


def taken(X: Any, engine: str, estimator: str) -> Any:
    """A tensor as what engines read: checked on its device, or as an array that shares its memory."""
    if X.device.type == "cpu" and engine != "torch":
        return shared(X)
    kind = "torch_sparse" if X.layout == imported("torch:sparse_csr") else "tensors"
    return imported(f"orthonmf.engines.{kind}:checked")(X, estimator)


def shared(X: Any) -> Any:
    """A tensor of this process as an array, or a sparse matrix, with the same memory."""
    X = X.detach()
    if X.layout == imported("torch:strided"):
        return X.numpy()
    if X.layout != imported("torch:sparse_csr"):
        raise InvalidInputError(f"X is a tensor of layout {X.layout}; expected strided or sparse_csr: X.to_sparse_csr() converts it.")
    parts = (X.values().numpy(), X.col_indices().numpy(), X.crow_indices().numpy())
    return imported("scipy.sparse:csr_array")(parts, shape=tuple(X.shape))


def in_kind(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, whose results for tensors are tensors on their device."""

    @wraps(method)
    def found(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        result = method(of_arrays(self, SMALL), X, *args, **options)
        return imported("orthonmf.engines.tensors:returned")(result, X.device) if is_tensor(X) else result

    return found


def of_tensors(model: Any, device: Any) -> None:
    """Hold what a model says as tensors on a device."""
    for name in ATTRIBUTES:
        setattr(model, name, imported("orthonmf.engines.tensors:returned")(getattr(model, name), device))


def of_arrays(model: Model, names: tuple[str, ...] = ATTRIBUTES) -> Model:
    """The same model with arrays of this process where it holds tensors under these names; itself where it holds none."""
    held = {name: getattr(model, name) for name in names if is_tensor(getattr(model, name, None))}
    if not held:
        return model
    other = copy_of(model)
    other.__dict__.update({name: np.asarray(values.cpu()) for name, values in held.items()})
    return other


def copy_of(model: Model) -> Model:
    """A model with the same attributes, that may be given others."""
    other = object.__new__(type(model))
    other.__dict__.update(model.__dict__)
    return other
