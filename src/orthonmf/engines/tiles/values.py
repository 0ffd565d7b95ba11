"""What the kernels are given, what they find, and how they are laid out."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

Tensor: TypeAlias = Any  # of torch

# Largest tile of centres.
K_TILE = 64


class Items(NamedTuple):
    """What frames the items, float32 tensors of shape (n_items,) beside X.

    Attributes
    ----------
    factor, project, sq, weight : Tensor of shape (n_items,)
        f and a of x' = f (x − a · ref), ‖x'‖², and ω.
    """

    factor: Tensor
    project: Tensor
    sq: Tensor
    weight: Tensor


class Centers(NamedTuple):
    """Centres in the frame, float64 tensors on any device; on the host they are prepared there and sent at once.

    Attributes
    ----------
    beside : Tensor of shape (k, n_dims)
        b.
    cosine, rest_sq, offset : Tensor of shape (k,)
        c, 0 for means; ‖b‖²; b·(ref − ref32).
    """

    beside: Tensor
    cosine: Tensor
    rest_sq: Tensor
    offset: Tensor


class SoftSums(NamedTuple):
    """Float64 sums over items of responsibilities p, with q = ω p for means and ω p (x̂·u) for lines.

    Attributes
    ----------
    mass : Tensor of shape (k,)
        Σ ω p.
    along : Tensor of shape (k,)
        Σ q s.
    sums : Tensor of shape (k, n_dims)
        Σ q x'.
    log_partition, distortion : Tensor of shape ()
        Σ ω log Z and Σ ω p d.
    """

    mass: Tensor
    along: Tensor
    sums: Tensor
    log_partition: Tensor
    distortion: Tensor


class HardSums(NamedTuple):
    """Labels (n_items,) in int32, and float64 sums over the items of each component, with q = ω for means and ω (x̂·u) for lines.

    Attributes
    ----------
    labels : Tensor of shape (n_items,)
    mass, sizes, cost, along : Tensor of shape (k,)
        Σ ω, the number of items, Σ ω max(d, 0) and Σ q s.
    sums : Tensor of shape (k, n_dims)
        Σ q x'.
    changed : Tensor of shape ()
        Items whose label is not what it was before.
    """

    labels: Tensor
    mass: Tensor
    sizes: Tensor
    cost: Tensor
    along: Tensor
    sums: Tensor
    changed: Tensor


class Tuning(NamedTuple):
    """How a kernel is laid out on a device: it changes how quick it is, and, through ``terms`` alone, the last digits.

    Attributes
    ----------
    rows : int
        Items of a tile.
    warps, stages : int
        Of a program; the tiles that are read ahead.
    programs : int
        Of a multiprocessor.
    terms : int
        Products of the parts of an inner product: 6 or 4 of bf16, 3 of TF32.
    k_tile : int
        Centres of a tile, where they do not all fit.
    by_hand : bool
        By the kernels of ``engines.hopper``, where there are such.
    registers : int
        Of a thread, at most; 0 is as many as it takes.
    """

    rows: int = 64
    warps: int = 4
    stages: int = 2
    programs: int = 4
    terms: int = 6
    k_tile: int = K_TILE
    by_hand: bool = True
    registers: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """What the compiler is told."""
        limit = {"maxnreg": self.registers} if self.registers else {}
        return {"ROWS": self.rows, "num_warps": self.warps, "num_stages": self.stages, **limit}
