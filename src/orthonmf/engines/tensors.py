"""Tensors of torch behind NumPy's protocols, so that a pass written for arrays runs where its tensors lie.

A ``Tensor`` answers NumPy's functions (``__array_ufunc__``, ``__array_function__``) with those of torch, in the types that NumPy would
give. Arrays that meet a tensor are copied to its device; a function that is not listed here brings its tensors to this process.
A result depends on nothing but its operands: sums by label are products with indicators, in a fixed order, never atomic additions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.mixins import NDArrayOperatorsMixin

from .._common.typing import Array
from .._common.validation import check_values
from ..exceptions import InvalidInputError, MissingExtraError

try:
    import torch as torch  # who reads tensors takes it from here
except ImportError as error:
    raise MissingExtraError(
        f"engine='torch' needs torch, which cannot be imported ({error}): pip install 'orthonmf[torch]', or use engine='auto'."
    ) from error

# Words of 64 bits without a sign are held as with one: sums and products modulo 2**64 are the same.
WORD = np.dtype(np.uint64)
TYPES: dict[Any, Any] = {
    np.dtype(np.float64): torch.float64,
    np.dtype(np.float32): torch.float32,
    np.dtype(np.float16): torch.float16,
    np.dtype(np.int64): torch.int64,
    np.dtype(np.int32): torch.int32,
    np.dtype(np.int16): torch.int16,
    np.dtype(np.int8): torch.int8,
    np.dtype(np.uint8): torch.uint8,
    np.dtype(np.bool_): torch.bool,
    WORD: torch.int64,
}
KINDS = {kind: dtype for dtype, kind in TYPES.items() if dtype != WORD}
# Numbers of an indicator that are held at once where values are summed by label.
INDICATOR_NUMBERS = 1 << 26
# Items whose products are summed in one part.
PART_ITEMS = 1 << 12


class Tensor(NDArrayOperatorsMixin):
    """A tensor of torch that NumPy's functions work on.

    Parameters
    ----------
    values : torch.Tensor
    dtype : dtype or None
        Told apart from that of ``values`` for words without a sign.
    """

    __slots__ = ("dtype", "values")
    #: The engine that reads it.
    engine = "torch"

    def __init__(self, values: Any, dtype: Any = None) -> None:
        self.values, self.dtype = values, KINDS[values.dtype] if dtype is None else dtype

    # -- shape ------------------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    @property
    def ndim(self) -> int:
        return int(self.values.ndim)

    @property
    def size(self) -> int:
        return int(self.values.numel())

    @property
    def nbytes(self) -> int:
        return self.size * int(self.dtype.itemsize)

    @property
    def T(self) -> Tensor:
        return Tensor(self.values.mT if self.ndim == 2 else self.values, self.dtype)

    def __len__(self) -> int:
        return len(self.values)

    def reshape(self, *shape: Any) -> Tensor:
        return Tensor(self.values.reshape(*shape), self.dtype)

    def ravel(self) -> Tensor:
        return self.reshape(-1)

    # -- this process -----------------------------------------------------------------------------------------------------------

    def host(self) -> Array:
        """The numbers as an array of this process."""
        found: Array = self.values.detach().cpu().numpy()
        return found.view(WORD) if self.dtype == WORD else found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        raise TypeError("A tensor is not copied to this process unasked; host() does so.")

    def __float__(self) -> float:
        return float(self.values)

    def __int__(self) -> int:
        found = int(self.values)
        return found % (1 << 64) if self.dtype == WORD else found

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self.values)

    def taken(self, index: Any) -> Tensor:
        """The rows at ``index``."""
        return self[index]

    def tolist(self) -> Any:
        return self.host().tolist()

    # -- numbers ----------------------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        return Tensor(self.values[self._place(index)], self.dtype)

    def __setitem__(self, index: Any, values: Any) -> None:
        self.values[self._place(index)] = self._operand(values, self.dtype)

    def _place(self, index: Any) -> Any:
        if isinstance(index, tuple):
            return tuple(self._place(each) for each in index)
        if isinstance(index, Tensor):
            return index.values if index.values.dtype in (torch.bool, torch.int64) else index.values.long()
        return torch.as_tensor(index, device=self.values.device) if isinstance(index, np.ndarray | list) else index

    def _operand(self, value: Any, dtype: Any = None) -> Any:
        """A number, an array or a tensor as torch takes it, in this type and on this device."""
        if isinstance(value, Tensor):
            return value.values if dtype is None or value.dtype == dtype else _cast(value, dtype).values
        if isinstance(value, np.ndarray):
            return _sent(value if dtype is None else value.astype(dtype, copy=False), self.values.device)
        if isinstance(value, np.generic) and dtype is not None:
            value = value.astype(dtype)
        if isinstance(value, np.uint64):
            return int(value.view(np.int64))
        return value.item() if isinstance(value, np.generic) else value

    def astype(self, dtype: Any, copy: bool = True) -> Tensor:
        return _cast(self, np.dtype(dtype), copy)

    def view(self, dtype: Any) -> Tensor:
        """The same bits as words without a sign."""
        return Tensor(self.values.view(torch.int64), np.dtype(dtype))

    def copy(self) -> Tensor:
        return Tensor(self.values.clone(), self.dtype)

    def sum(self, axis: Any = None, dtype: Any = None) -> Any:
        kind = None if dtype is None else TYPES[np.dtype(dtype)]
        found = self.values.sum(dtype=kind) if axis is None else self.values.sum(axis, dtype=kind)
        return Tensor(found, WORD if WORD in (self.dtype, dtype) else None)

    def min(self, axis: Any = None, initial: Any = None) -> Any:
        return self._extreme(torch.amin, torch.minimum, axis, initial)

    def max(self, axis: Any = None, initial: Any = None) -> Any:
        return self._extreme(torch.amax, torch.maximum, axis, initial)

    def _extreme(self, of: Any, both: Any, axis: Any, initial: Any) -> Tensor:
        if initial is not None and not self.size:
            return Tensor(torch.as_tensor(initial, dtype=self.values.dtype, device=self.values.device))
        found = of(self.values, () if axis is None else axis)
        return Tensor(found if initial is None else both(found, torch.full_like(found, initial)))

    def argmin(self, axis: Any = None) -> Tensor:
        return Tensor(self.values.argmin(axis))

    def argmax(self, axis: Any = None) -> Tensor:
        return Tensor(self.values.argmax(axis))

    def any(self) -> Tensor:
        return Tensor(self.values.any())

    def all(self) -> Tensor:
        return Tensor(self.values.all())

    # -- NumPy's protocols ------------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
        if method == "at":
            return _at(ufunc, *inputs)
        if method == "__call__" and ufunc in UFUNCS and not options:
            found = _called(self, ufunc, inputs)
        elif (ufunc, method) in REDUCED:
            found = REDUCED[ufunc, method](self, *inputs, **options)
        else:
            return getattr(ufunc, method)(*map(_here, inputs), **{name: _here(each) for name, each in options.items()})
        return found if out is None else _written(found, out[0], where)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function in FUNCTIONS:
            return FUNCTIONS[function](self, *args, **options)
        return function(*map(_here, args), **{name: _here(each) for name, each in options.items()})


def _here(value: Any) -> Any:
    """Tensors, in whatever they lie, as arrays of this process."""
    if isinstance(value, Tensor):
        return value.host()
    if isinstance(value, list | tuple):
        return type(value)(map(_here, value))
    return value


def _sent(array: Array, device: Any) -> Any:
    """An array of this process on a device."""
    array = array.view(np.int64) if array.dtype == WORD else array
    if not array.flags.writeable or not array.dtype.isnative or any(step < 0 for step in array.strides):
        array = array.astype(array.dtype.newbyteorder("="))
    return torch.as_tensor(array, device=device)


def tensor_of(values: Any, device: Any) -> Tensor:
    """An array, or a tensor, on a device."""
    if isinstance(values, Tensor):
        return values
    return Tensor(values.to(device)) if isinstance(values, torch.Tensor) else Tensor(_sent(values, device), values.dtype)


def brought(value: Any) -> Any:
    """A total with its tensors as arrays of this process."""
    if isinstance(value, Tensor):
        found = value.host()
        return found if found.ndim else found[()]
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{each.name: brought(getattr(value, each.name)) for each in fields(value)})
    return value


def _cast(tensor: Tensor, dtype: Any, copy: bool = False) -> Tensor:
    if dtype == tensor.dtype and not copy:
        return tensor
    return Tensor(tensor.values.to(TYPES[dtype], copy=copy), dtype)


def _common(inputs: Any) -> Any:
    """The type in which NumPy would compute."""
    return np.result_type(*(each.dtype if isinstance(each, Tensor | np.ndarray) else each for each in inputs))


# -- ufuncs ---------------------------------------------------------------------------------------------------------------------


def _logical_shift(values: Any, by: Any) -> Any:
    """The bits of words without a sign, moved down."""
    return (values >> by) & ((1 << (64 - int(by))) - 1)


def _product(one: Any, other: Any) -> Any:
    """A product of matrices; one that sums over items, in parts side by side, which a GPU would else leave to few of its processors."""
    if one.device.type == "cpu" or one.ndim != 2 or other.ndim != 2 or one.shape[1] < 2 * PART_ITEMS:
        return torch.matmul(one, other)
    parts, whole = one.shape[1] // PART_ITEMS, one.shape[1] // PART_ITEMS * PART_ITEMS
    first = one[:, :whole].unflatten(1, (parts, PART_ITEMS)).transpose(0, 1)
    found = torch.bmm(first, other[:whole].unflatten(0, (parts, PART_ITEMS))).sum(0)
    return found + one[:, whole:] @ other[whole:]


COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.isfinite, np.isnan, np.isinf}
FLOATING = {np.divide, np.exp, np.log, np.log1p, np.sqrt, np.logaddexp}

UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: torch.add,
    np.subtract: torch.sub,
    np.multiply: torch.mul,
    np.divide: torch.div,
    np.maximum: torch.maximum,
    np.minimum: torch.minimum,
    np.negative: torch.neg,
    np.absolute: torch.abs,
    np.square: torch.square,
    np.exp: torch.exp,
    np.log: torch.log,
    np.log1p: torch.log1p,
    np.sqrt: torch.sqrt,
    np.power: torch.pow,
    np.logaddexp: torch.logaddexp,
    np.matmul: _product,
    np.less: torch.lt,
    np.less_equal: torch.le,
    np.greater: torch.gt,
    np.greater_equal: torch.ge,
    np.equal: torch.eq,
    np.not_equal: torch.ne,
    np.isfinite: torch.isfinite,
    np.isnan: torch.isnan,
    np.isinf: torch.isinf,
    np.bitwise_and: torch.bitwise_and,
    np.bitwise_or: torch.bitwise_or,
    np.bitwise_xor: torch.bitwise_xor,
    np.invert: torch.bitwise_not,
    np.logical_and: torch.logical_and,
    np.logical_or: torch.logical_or,
    np.logical_not: torch.logical_not,
    np.right_shift: _logical_shift,
}
# What torch computes of two tensors alone, not of a tensor and a number.
OF_TENSORS = {np.maximum, np.minimum, np.matmul, np.logaddexp}


def _called(like: Tensor, ufunc: Any, inputs: Any) -> Tensor:
    dtype = _common(inputs)
    if ufunc in FLOATING and dtype.kind in "iub":
        dtype = np.dtype(np.float64)
    operands = [like._operand(each, dtype) for each in inputs]
    if ufunc in OF_TENSORS or not any(isinstance(each, torch.Tensor) for each in operands[:1]):
        like_them = {"dtype": TYPES[dtype], "device": like.values.device}
        operands = [each if isinstance(each, torch.Tensor) else torch.as_tensor(each, **like_them) for each in operands]
    found = UFUNCS[ufunc](*operands)
    return Tensor(found, None if ufunc in COMPARISONS or found.dtype == torch.bool else dtype)


def _written(found: Tensor, out: Any, where: Any) -> Any:
    """A result in the place that was given for it, where that is asked for."""
    if isinstance(out, np.ndarray):
        np.copyto(out, found.host(), where=_here(where), casting="unsafe")
        return out
    values = found.values.to(out.values.dtype)
    out.values.copy_(values if where is True else torch.where(out._operand(where), values, out.values))
    return out


# How many are taken at once, and what changes nothing.
AT: dict[Any, tuple[Any, Callable[[Any], Any]]] = {
    np.maximum: (torch.amax, lambda kind: -torch.inf if kind.is_floating_point else torch.iinfo(kind).min),
    np.minimum: (torch.amin, lambda kind: torch.inf if kind.is_floating_point else torch.iinfo(kind).max),
}


def _at(ufunc: Any, target: Any, index: Any, values: Any) -> None:
    """``ufunc.at`` of a maximum or a minimum."""
    like = next(each for each in (index, values, target) if isinstance(each, Tensor))
    place, given = like._operand(target), like._operand(values, target.dtype)
    both, rest = AT[ufunc]
    found, labels, names = place.clone(), like._place(index), torch.arange(len(place), device=place.device)
    step = max(INDICATOR_NUMBERS // max(len(place), 1), 1)
    for start in range(0, len(labels), step):
        some = slice(start, start + step)
        mine = torch.where(labels[some] == names[:, None], given.expand(len(labels))[some], rest(given.dtype))
        found = UFUNCS[ufunc](found, both(mine, 1))
    target[...] = found.cpu().numpy() if isinstance(target, np.ndarray) else Tensor(found)


def _outer(like: Tensor, one: Any, other: Any) -> Any:
    first, second = (each if isinstance(each, Tensor) else Tensor(like._operand(np.asarray(each))) for each in (one, other))
    return first.reshape(*first.shape, *(1,) * second.ndim) * second


REDUCED: dict[Any, Callable[..., Any]] = {
    (np.multiply, "outer"): _outer,
    (np.logaddexp, "reduce"): lambda like, values, axis=0: Tensor(torch.logsumexp(values.values, axis)),
}


# -- functions ------------------------------------------------------------------------------------------------------------------


def _made(make: Any) -> Callable[..., Tensor]:
    """What makes an array of a shape, like a tensor."""

    def of(like: Tensor, shape: Any, *args: Any, dtype: Any = np.float64, **_: Any) -> Tensor:
        dtype = np.dtype(dtype)
        size = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        return Tensor(make(size, *args, dtype=TYPES[dtype], device=like.values.device), dtype)

    return of


def _made_like(make: Any) -> Callable[..., Tensor]:
    def of(like: Tensor, values: Any, *args: Any, dtype: Any = None, **_: Any) -> Tensor:
        return Tensor(make(like._operand(values), *args, dtype=None if dtype is None else TYPES[np.dtype(dtype)]))

    return of


def _arange(like: Tensor, *borders: Any, dtype: Any = np.int64, **_: Any) -> Tensor:
    return Tensor(torch.arange(*borders, dtype=TYPES[np.dtype(dtype)], device=like.values.device))


def _as_array(like: Tensor, values: Any, dtype: Any = None, **_: Any) -> Tensor:
    found = values if isinstance(values, Tensor) else tensor_of(np.asarray(values), like.values.device)
    return found if dtype is None else _cast(found, np.dtype(dtype))


def _einsum(like: Tensor, subscripts: str, *operands: Any, dtype: Any = None, **_: Any) -> Tensor:
    dtype = _common(operands) if dtype is None else np.dtype(dtype)
    parts = [like._operand(each, dtype) for each in operands]
    return Tensor((parts[0] * parts[1]).sum(1) if subscripts == "ij,ij->i" else torch.einsum(subscripts, *parts))


def _where(like: Tensor, condition: Any, one: Any, other: Any) -> Tensor:
    dtype = _common((one, other))
    return Tensor(torch.where(like._operand(condition), like._operand(one, dtype), like._operand(other, dtype)).to(TYPES[dtype]))


def _joined(join: Any) -> Callable[..., Tensor]:
    def of(like: Tensor, parts: Any, axis: int = 0) -> Tensor:
        dtype = _common(parts)
        return Tensor(join([like._operand(each, dtype) for each in parts], axis), dtype)

    return of


def _bincount(like: Tensor, labels: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """Sums by label, added in the order of the items."""
    place = like._operand(labels).long()
    if weights is None:
        return Tensor(torch.bincount(place, minlength=minlength))
    given, names = like._operand(weights, np.dtype(np.float64)), torch.arange(minlength, device=place.device)
    step, sums = max(INDICATOR_NUMBERS // max(minlength, 1), 1), torch.zeros(minlength, dtype=torch.float64, device=place.device)
    for start in range(0, len(place), step):
        some = slice(start, start + step)
        sums += (place[some] == names[:, None]).double() @ given[some]
    return Tensor(sums)


def _vdot(like: Tensor, one: Any, other: Any) -> Tensor:
    dtype = np.dtype(np.float64) if _common((one, other)).kind == "f" else _common((one, other))
    return Tensor(torch.dot(like._operand(one, dtype).reshape(-1), like._operand(other, dtype).reshape(-1)))


def _dot(like: Tensor, one: Any, other: Any) -> Any:
    return _vdot(like, one, other) if one.ndim == other.ndim == 1 else one @ other


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.arange: _arange,
    np.zeros: _made(torch.zeros),
    np.ones: _made(torch.ones),
    np.empty: _made(torch.empty),
    np.full: _made(torch.full),
    np.zeros_like: _made_like(torch.zeros_like),
    np.ones_like: _made_like(torch.ones_like),
    np.empty_like: _made_like(torch.empty_like),
    np.full_like: _made_like(torch.full_like),
    np.asarray: _as_array,
    np.array: _as_array,
    np.ascontiguousarray: lambda like, values, dtype=None, **_: _as_array(like, Tensor(values.values.contiguous(), values.dtype), dtype),
    np.einsum: _einsum,
    np.where: _where,
    np.cumsum: lambda like, values: Tensor(torch.cumsum(values.values, 0), values.dtype),
    np.concatenate: _joined(torch.cat),
    np.stack: _joined(torch.stack),
    np.bincount: _bincount,
    np.vdot: _vdot,
    np.dot: _dot,
    np.count_nonzero: lambda like, values, axis=None: Tensor(torch.count_nonzero(values.values, axis)),
    np.flatnonzero: lambda like, values: Tensor(torch.nonzero(values.values.reshape(-1)).reshape(-1)),
    np.tile: lambda like, values, times: Tensor(values.values.repeat(times), values.dtype),
    np.diag: lambda like, values: Tensor(torch.diag(values.values)),
    np.sum: lambda like, values, axis=None, dtype=None, **_: values.sum(axis, dtype),
    np.shape: lambda like, values: values.shape,
    np.ndim: lambda like, values: values.ndim,
}


# -- from a user and back ---------------------------------------------------------------------------------------------------------


def checked(X: Any, estimator: str) -> Tensor:
    """A tensor of a user as what engines read: floating, finite and nonnegative, seen where it lies."""
    X = X.detach()
    if X.layout != torch.strided:
        raise InvalidInputError(
            f"X is a tensor of layout {X.layout} on {X.device}; expected strided or sparse_csr: X.to_sparse_csr() converts it."
        )
    check_kind(X)
    X = floating(X)
    check_numbers(X, lambda row, column: f"row {row}, column {column}", estimator)
    return Tensor(X)


def check_kind(X: Any) -> None:
    """Refuse a tensor of a user that is no matrix of real numbers."""
    if X.ndim != 2 or 0 in X.shape:
        raise InvalidInputError(
            f"X is a tensor of shape {tuple(X.shape)}; expected two dimensions, (n_samples, n_features), neither of them 0."
        )
    if X.is_complex():
        raise InvalidInputError("Complex data not supported: X is a tensor of complex numbers. Pass real ones, for example X.abs().")


def floating(values: Any) -> Any:
    """Numbers as they are computed with: float32 stays."""
    return values if values.dtype in (torch.float32, torch.float64) else values.double()


def check_numbers(values: Any, place: Callable[..., str], estimator: str) -> None:
    """Refuse NaN, infinity and negative numbers where they lie, naming the first; ``place`` says where that is in X."""
    if not values.numel():
        return
    least, most = values.amin(), values.amax()
    if bool(torch.isfinite(least)) and bool(torch.isfinite(most)) and bool(least >= 0):
        return
    first, *_ = torch.nonzero(~(torch.isfinite(values) & (values >= 0)))[0].tolist()
    check_values(values[first : first + 1].cpu().numpy(), lambda at, *more: place(first + at, *more), estimator)


def returned(found: Any, device: Any) -> Any:
    """A result as a user of tensors gets it: a tensor on the device of what was given."""
    if isinstance(found, Tensor):
        return found.values.to(device)
    if isinstance(found, np.ndarray):
        return torch.as_tensor(found, device=device)
    if sp.issparse(found):
        rows, columns, values = (torch.as_tensor(np.asarray(each), device=device) for each in (found.indptr, found.indices, found.data))
        return torch.sparse_csr_tensor(rows, columns, values, size=found.shape)
    return found
