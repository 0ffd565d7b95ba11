"""An array of this process that is too large for a GPU: blocks of it are copied there as they are asked for, each ahead of its use."""

from __future__ import annotations

from typing import Any
from weakref import finalize

import numpy as np
import torch

from .._common.typing import Array, Labels
from .tensors import Tensor


class Streamed:
    """An array whose blocks come to a device, one after the other.

    Its memory is pinned, so that the device fetches a block by itself while it computes with the one before; it is let go with this object.

    Parameters
    ----------
    array : ndarray of shape (n_items, n_dims)
    device : torch.device
    """

    def __init__(self, array: Array, device: Any) -> None:
        self.dtype, self.shape, self.nbytes = array.dtype, array.shape, array.nbytes
        self._array, self._device = array, device
        self._pinned = torch.from_numpy(array) if array.flags.c_contiguous and array.flags.writeable else None
        if self._pinned is not None and not self._pinned.is_pinned():
            runtime = torch.cuda.cudart()
            if int(runtime.cudaHostRegister(array.ctypes.data, array.nbytes, 0)) == 0:
                finalize(self, runtime.cudaHostUnregister, array.ctypes.data)
        self._copies = torch.cuda.Stream(device)
        self._ahead: tuple[slice, Any] | None = None

    def __getitem__(self, where: slice) -> Tensor:
        """One block on the device; the next of as many items is on its way."""
        before, self._ahead = self._ahead, None
        block = before[1] if before is not None and before[0] == where else self._begun(where)
        now = torch.cuda.current_stream(self._device)
        now.wait_stream(self._copies)
        block.record_stream(now)
        following = slice(where.stop, min(2 * where.stop - where.start, self.shape[0]))
        if following.start < following.stop:
            self._ahead = following, self._begun(following)
        return Tensor(block)

    def _begun(self, where: slice) -> Any:
        """The copy of a block, which has begun."""
        source = torch.from_numpy(np.ascontiguousarray(self._array[where])) if self._pinned is None else self._pinned[where]
        with torch.cuda.stream(self._copies):
            return source.to(self._device, non_blocking=True)

    def taken(self, index: Labels) -> Tensor:
        """Some items, on the device."""
        return Tensor(torch.from_numpy(self._array[index]).to(self._device))

    def host(self) -> Array:
        """The array."""
        return self._array
