"""Items on a GPU, as tensors of torch: every pass is the text that arrays have, computed where its tensors lie (``tensors.py``).

On NVIDIA GPUs the passes that carry a fit are fused kernels (``fused.py``). Columns of items stay on the device. Few items are searched in
this process, where a pass over them is sooner done than a kernel is launched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from .._common.registry import imported
from .._common.typing import Array, Labels
from ..distortion.base import Distortion
from ..exceptions import DeviceMemoryError
from ..passes.base import INDEX, Columns, Found, Pass
from . import engine_class
from .base import BLIND, MIN_BLOCK, Engine, Framing
from .dense import DenseEngine, DenseRawRows
from .layout import automatic, in_memory
from .tensors import Tensor, brought, tensor_of, torch
from .threads import ThreadTeam

# Bytes of a block on a GPU: enough that its kernels take longer than to be launched.
GPU_BLOCK_BYTES = 1 << 28
# Of the memory of a GPU that is free, what X may take: a pass needs some blocks beside it, and numbers of every item.
SHARE_OF_DEVICE = 0.6
# Beyond 2 to this power, the factor of the items is no number of float32.
LARGEST_FLOAT32_SHIFT = 100
# So few items are searched in this process: a pass over them is sooner done than its kernels are launched.
FEW_ITEMS = 1 << 16


class OnDevice(Engine):
    """Items on a device: dense and sparse ones have this in common.

    Attributes
    ----------
    device : torch.device
    gives_tensors : bool
        Whether what a user gets of the items are tensors.
    """

    in_memory = "auto"
    #: Whether columns come to this process with every pass.
    _near = False
    _sent_weight: tuple[Any, Any] = (None, None)
    device: Any
    gives_tensors: bool
    _held: Any
    _dim_factor: Array | None = None

    def _lie(self, device: Any, block_bytes: int) -> None:
        """Lie on a device, in blocks of so many bytes where that is a GPU."""
        self.device = device
        if device.type != "cpu":
            self.block_bytes = self.doubled_bytes = block_bytes

    def _within(self, size: int) -> int:
        """On a GPU as many as there is memory for."""
        return super()._within(size) if self.device.type == "cpu" else max(size, -(-self.block_numbers // max(self.row_width, 1)))

    # -- items ------------------------------------------------------------------------------------------------------------------

    def _block_weight(self, where: slice) -> Any:
        if self.weight is None:
            return Tensor(torch.ones(where.stop - where.start, dtype=torch.float64, device=self.device))
        known, held = self._sent_weight
        if known is not self.weight:
            held = tensor_of(np.asarray(self.weight, np.float64), self.device)
            self._sent_weight = self.weight, held
        return held[where]

    def near(self) -> Engine:
        """Few items as an array of this process; of many, the same items with columns that come to this process."""
        if self.n_items <= FEW_ITEMS or self._held.nbytes <= GPU_BLOCK_BYTES:
            return self._here()
        other = copy(self)
        other._near, other._kept = True, {}
        return other

    def _here(self) -> Engine:
        """The same items on an engine of this process."""
        array = self._held.host()
        here = engine_class(automatic(array)).of(array, self.weight, self._dim_factor, self.shift, self.team)
        here.weight_shift, here.size, here.compiles, here.chunks = self.weight_shift, self.size, self.compiles, self.chunks
        return here

    # -- columns ----------------------------------------------------------------------------------------------------------------

    def hold(self, values: Any) -> Any:
        return values if self._near else tensor_of(values, self.device)

    def at_hand(self, column: Any) -> Any:
        """Of many items it stays on the device."""
        return super().at_hand(column) if self._near or self.n_items <= FEW_ITEMS else column

    def shown(self, column: Any, dtype: Any) -> Any:
        """For a user of tensors it stays on the device."""
        if not self.gives_tensors:
            return super().shown(column, dtype)
        return tensor_of(column, self.device).astype(dtype, copy=False)

    def _column(self, columns: Columns, name: str, where: slice) -> Any:
        if name == INDEX:
            return Tensor(torch.arange(self.first + where.start, self.first + where.stop, device=self.device))
        return tensor_of(super()._column(columns, name, where), self.device)

    def _join(self, joined: dict[str, Any], name: str, where: slice, values: Any) -> None:
        if self._near:
            return super()._join(joined, name, where, values)
        values = tensor_of(values, self.device)
        if where.stop - where.start == self.n_items:
            joined[name] = values
            return None
        if name not in joined:
            joined[name] = np.empty((self.n_items, *values.shape[1:]), dtype=values.dtype, like=values)
        joined[name][where] = values
        return None

    # -- passes -----------------------------------------------------------------------------------------------------------------

    def computed(self, frame: Framing | None, work: Pass, columns: Columns | None = None) -> Found:
        while True:
            try:
                with full_precision():
                    return super().computed(frame, work, columns)
            except torch.OutOfMemoryError as error:
                self._smaller(error)

    def _smaller(self, error: BaseException) -> None:
        """See half as many items at once, as long as those are many."""
        if self.block_items <= MIN_BLOCK:
            raise DeviceMemoryError(
                f"{self.device} has no memory for a pass over blocks of {self.block_items} items of {self.n_dims} dimensions; free some "
                "(torch.cuda.empty_cache, other processes), ask for fewer components, or use engine='auto' with X in this process."
            ) from error
        self._forget()
        torch.cuda.empty_cache()
        self._cut(self.block_items // 2)

    def _forget(self) -> None:
        """Let go of what is kept from one pass to the next."""
        self._kept.clear()

    def stream(self, frame: Framing | None, work: Pass, columns: Columns | None = None) -> Iterator[tuple[slice, Found]]:
        return ((where, self._left(part)) for where, part in self._found(frame, work, columns or {}))

    def _found(self, frame: Framing | None, work: Pass, columns: Columns) -> Iterator[tuple[slice, Found]]:
        """What is found in every block, where it lies."""
        return super().stream(frame, work, columns)

    def _left(self, part: Found) -> Found:
        """What is found in a block, where it belongs: totals in this process."""
        columns = {name: _host(values) for name, values in part.columns.items()} if self._near else part.columns
        return Found(brought(part.total), columns)

    def _parts(self, frame: Framing | None, work: Pass, columns: Columns) -> Iterable[Found]:
        """In turn, but for passes over columns, which may have work for this process: the device has threads of its own."""
        if frame is BLIND:
            yield from super()._parts(frame, work, columns)
            return
        for where in self.slices:
            self.team.check()
            yield work(*self._seen(frame, work, columns, where))


class TorchEngine(OnDevice, DenseEngine):
    """Items are the rows of a tensor, or of an array that goes to the device once.

    Parameters
    ----------
    array : ndarray or Tensor of shape (n_items, n_dims)
        A tensor stays on its device; an array goes to the GPU where there is one.
    weight : ndarray of shape (n_items,) or None
    dim_factor : ndarray of shape (n_dims,) or None
    shift : int
    team : ThreadTeam
    """

    def __init__(
        self, array: Any, weight: Array | None = None, *, dim_factor: Array | None = None, shift: int = 0, team: ThreadTeam
    ) -> None:
        self.gives_tensors = isinstance(array, Tensor)
        self._lie(array.values.device if self.gives_tensors else device_for(array), GPU_BLOCK_BYTES)
        self._held = held_on(self.device, array)
        super().__init__(self._held, weight, dim_factor=dim_factor, shift=shift, team=team)

    def rows(self, where: slice) -> DenseRawRows:
        kind: Any = imported("orthonmf.engines.fused:FusedRawRows") if self._has_kernels else DenseRawRows
        found: DenseRawRows = kind(self._scaled(self._given(where)))
        return found

    def _given(self, where: slice) -> Any:
        block: Any = self._held[where]
        return np.ascontiguousarray(block, self.dtype, like=block)

    def select(self, index: Labels) -> Engine:
        weight = None if self.weight is None else self.weight[index]
        chosen: Any = self._scaled(self._held.taken(np.asarray(index)).astype(np.float64))
        return in_memory(self, chosen.host(), weight)

    def _found(self, frame: Framing | None, work: Pass, columns: Columns) -> Iterator[tuple[slice, Found]]:
        if (kernel := self._kernel(frame, work)) is None:
            return super()._found(frame, work, columns)
        self.team.check()
        self.count_pass(frame)
        return self._fused(kernel, cast(Distortion, frame), work, columns)

    @property
    def _has_kernels(self) -> bool:
        """Whether there are fused kernels for numbers of this type on this device."""
        return self.device.type == "cuda" and self._held.dtype == self.dtype == np.float32 and has_kernels()

    def _kernel(self, frame: Framing | None, work: Pass) -> Any:
        """The fused kernel for a pass, where there is one for these items."""
        if self._dim_factor is not None or self.size is not None or not self._has_kernels or abs(self.shift) > LARGEST_FLOAT32_SHIFT:
            return None
        known: bool = type(frame) in imported("orthonmf.engines.fused:LOSSES")
        return imported("orthonmf.engines.fused:KERNELS").get(type(work)) if known else None

    def _fused(self, kernel: Any, frame: Distortion, work: Pass, columns: Columns) -> Iterator[tuple[slice, Found]]:
        """What a kernel finds: in all items at once where they lie on the device, else block by block."""
        sight = self._sight(frame)
        for where in [slice(0, self.n_items)] if isinstance(self._held, Tensor) else self.slices:
            read = {name: self._column(columns, name, where) for name in work.reads}
            yield where, kernel(work, sight.seen(self._held[where], where), read)

    def _sight(self, frame: Distortion) -> Any:
        """What frames the items for kernels, kept from one pass to the next in the same frame."""
        before, sight = self._kept.get((None, -1), (None, None))
        if before is not frame:
            framed = imported("orthonmf.engines.fused:framed")
            blocks = [framed(frame.items(self.rows(where), self._block_weight(where)), self.shift) for where in self.slices]
            sight = imported("orthonmf.engines.fused:sight")(frame, blocks)
            self._kept[None, -1] = frame, sight
        return sight


@cache
def has_kernels() -> bool:
    """Whether Triton is there, which torch brings for NVIDIA GPUs."""
    return find_spec("triton") is not None


def _host(values: Any) -> Array:
    return values.host() if isinstance(values, Tensor) else values


def held_on(device: Any, array: Any) -> Any:
    """Items on a device, or on the way to it where they are too many."""
    if isinstance(array, Tensor) or device.type == "cpu" or array.nbytes <= SHARE_OF_DEVICE * torch.cuda.mem_get_info(device)[0]:
        return tensor_of(array, device)
    return imported("orthonmf.engines.streamed:Streamed")(array, device)


def device_for(array: Array) -> Any:
    """The GPU, where there is one; else the device of this process."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@contextmanager
def full_precision() -> Iterator[None]:
    """Products of float32 as such, whatever the user allows torch to round; the user's choice comes back."""
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = False
    try:
        yield
    finally:
        matmul.allow_tf32 = before
