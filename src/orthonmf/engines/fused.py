"""The passes that carry a fit, as fused kernels on NVIDIA GPUs: every tile of items is read once, and nothing of items × centres written.

A kernel computes in float32, on items that it frames as it reads them, and adds up in float64; see ``engines.tiles``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from .._common.typing import Array
from ..distortion.base import Distortion, Items
from ..distortion.euclidean import Euclidean
from ..distortion.line import Line
from ..passes.base import Columns, Count, Found
from ..passes.hard import HardStats, Labelled, Nearest, OwnAndOther
from ..passes.samples import Shares, ShareSums
from ..passes.soft import Gibbs
from ..passes.state import Stats
from . import triton as kernels
from .base import multipliers
from .dense import DenseRawRows
from .tensors import WORD, Tensor

# Losses that the kernels know.
LOSSES = (Line, Euclidean)


class Sight(NamedTuple):
    """Items as the kernels read them.

    Attributes
    ----------
    frame : Distortion
    ref : torch.Tensor of shape (n_dims,)
        The reference of the frame in float32.
    values : torch.Tensor of shape (n_items, n_dims) or None
        None where only what frames them is at hand.
    items : kernels.Items
        Whose weights are in units of ``unit``.
    unit : float
    """

    frame: Distortion
    ref: Any
    values: Any
    items: kernels.Items
    unit: float

    def seen(self, values: Tensor, where: slice) -> Sight:
        """The items of a block."""
        return self._replace(values=values.values.contiguous(), items=kernels.Items(*(each[where] for each in self.items)))

    def of(self, centers: Array) -> kernels.Centers:
        """Centres in the frame."""
        rest = centers[:, int(self.frame.scaled) :]
        cosine = centers[:, 0] if self.frame.scaled else np.zeros(len(centers))
        parts = rest, cosine, np.einsum("ij,ij->i", rest, rest), rest @ self.rounded
        return kernels.Centers(*(torch.from_numpy(np.array(each)) for each in parts))

    @property
    def rounded(self) -> Array:
        """What float32 cuts off the reference."""
        return self.frame.ref - self.frame.ref.astype(np.float32)

    def sums(self, along: Array, sums: Array) -> Array:
        """What makes the centres, in the coordinates of the frame."""
        beside = sums - np.multiply.outer(along, self.rounded)
        return np.column_stack([along, beside]) if self.frame.scaled else beside

    def hard(self, found: Any) -> HardStats:
        """The sums of one component for each item."""
        mass, cost, along, sums, sizes, changed = _host(found.mass, found.cost, found.along, found.sums, found.sizes, found.changed)
        return HardStats(
            count=len(self.values),
            mass=self.unit * mass,
            sizes=sizes.astype(np.intp),
            cost=self.unit * cost,
            sums=self.unit * self.sums(along, sums),
            changed=int(changed),
        )


def _host(*tensors: Any) -> list[Array]:
    """Tensors of float64 as arrays of this process, in one copy."""
    together: Array = torch.cat([each.double().reshape(-1) for each in tensors]).cpu().numpy()
    parts = np.split(together, np.cumsum([each.numel() for each in tensors])[:-1])
    return [part.reshape(each.shape) for part, each in zip(parts, tensors, strict=True)]


def framed(items: Items, shift: int) -> tuple[Any, ...]:
    """What frames the items of a block, of X as it was given: f and a of x' = f (x − a · ref), ‖x'‖² and ω."""
    how: Any = items.rows.how  # type: ignore[attr-defined]
    ones = np.ones_like(items.weight)
    factor, along = (ones if each is None else each for each in (how.factor, how.along))
    factor = factor * 2.0**shift
    project = np.divide(along, factor, out=np.zeros_like(factor), where=factor > 0)
    return factor, project, items.sq, items.weight


def sight(frame: Distortion, blocks: list[tuple[Any, ...]]) -> Sight:
    """Items of whose blocks it is known what frames them."""
    factor, project, sq, weight = (torch.cat([each.values for each in column]) for column in zip(*blocks, strict=True))
    unit = float(weight.max()) or 1.0
    ref = torch.as_tensor(frame.ref.astype(np.float32), device=sq.device)
    return Sight(frame, ref, None, kernels.Items(factor.float(), project.float(), sq.float(), (weight / unit).float()), unit)


def _soft(work: Gibbs, at: Sight, columns: Columns) -> Found:
    state = work.state
    log_mass = torch.as_tensor(state.log_mass, device=at.values.device)
    found = kernels.soft(at.values, at.items, at.of(state.centers), at.ref, at.frame.scaled, state.beta, log_mass)
    mass, along, sums, log_partition, distortion = (at.unit * each for each in _host(*found))
    total = Stats(len(at.values), float(mass.sum()), mass, at.sums(along, sums), float(log_partition), float(distortion))
    return Found(total)


def _hard(work: Nearest, at: Sight, columns: Columns) -> Found:
    before = columns["labels"].values.int() if work.labelled else None
    found = kernels.hard(at.values, at.items, at.of(work.centers), at.ref, at.frame.scaled, before)
    return Found(at.hard(found), {"labels": Tensor(found.labels.long())})


def _given(work: Labelled, at: Sight, columns: Columns) -> Found:
    labels = columns["labels"].values.int()
    return Found(at.hard(kernels.labelled(at.values, at.items, at.of(work.centers), at.ref, at.frame.scaled, labels)))


def _distances(centers: Array, at: Sight, labels: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Labels, distances to the centre of the label and to the nearest other, and ω."""
    names, first, second = kernels.nearest_two(at.values, at.items, at.of(centers), at.ref, at.frame.scaled, labels)
    return Tensor(names), Tensor(first.double()), Tensor(second.double()), Tensor(at.unit * at.items.weight.double())


def _shares(work: Shares, at: Sight, columns: Columns) -> Found:
    labels, nearest, _, weight = _distances(work.centers, at, None)
    cost = weight * nearest
    total = ShareSums(len(at.values), cost.sum(), np.bincount(labels, weight, len(work.centers)))
    return Found(total, {"labels": labels, "cost": cost, "mass": weight})


def _own_and_other(work: OwnAndOther, at: Sight, columns: Columns) -> Found:
    _, own, second, weight = _distances(work.centers, at, columns["labels"].values.int())
    found = {"own": own, "second": second, "sq": Tensor(at.items.sq.double()), "weight": weight}
    return Found(Count(len(at.values)), found)


KERNELS: dict[type, Callable[[Any, Sight, Columns], Found]] = {
    Gibbs: _soft,
    Nearest: _hard,
    Labelled: _given,
    Shares: _shares,
    OwnAndOther: _own_and_other,
}


class FusedRawRows(DenseRawRows):
    """Items as they were given, of which a kernel finds what stands for each."""

    def keys(self) -> Any:
        values: Any = self.values
        words = torch.from_numpy(multipliers(values.shape[1]).view(np.int64)).to(values.values.device)
        return Tensor(kernels.keys(values.values, 1.0, words), WORD)
