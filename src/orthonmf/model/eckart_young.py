"""The lower bound of the certificate: no factorisation of this rank has a smaller error (Eckart–Young)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.typing import Array
from ..distortion.base import Distortion, mean_of
from ..engines.base import Engine, in_blocks
from ..passes.raw import Gram, GramSum

__all__ = ["GRAM_SIDE", "GRAM_WORK", "lower_bound", "smaller_gram"]

# Largest side of the Gram matrix whose eigenvalues give the bound (a second of work, 32 MiB), and the most multiplications that form it:
# three seconds of one core. Beyond either there is no bound.
GRAM_SIDE, GRAM_WORK = 2000, 1e11
# A block of rows from which a part of the Gram matrix is formed stays in a core's cache, but has this many rows for each column, so that
# forming the part outweighs adding it up, and is no larger than this, few enough for a copy or two on each thread. A million rows of 64
# took 0.14 s instead of 0.32 with blocks of 32 MiB, which also held 130 MiB.
GRAM_BYTES, GRAM_ROWS, MAX_GRAM_BYTES = 1 << 20, 2, 4 << 20


@dataclass(frozen=True)
class _Gram:
    """A Gram matrix, and of how many products at most each of its entries is the sum, one after the other."""

    matrix: Array
    terms: int


def lower_bound(engine: Engine, distortion: Distortion, n_components: int) -> float | None:
    """√Σ_{i>r} σ_i² of the weighted items, less a margin for rounding: a proof, or None where it takes too much work.

    Of counts it is Σ_{i>r} σ_i² of their roots: D(x‖y) ≥ ‖√x − √y‖², and the roots of what is approximated have no larger rank.

    Where numbers are missing there is none.

    r is n_components, or one less where the components are means: about the mean of all items, k means span k − 1 dimensions.
    """
    if not distortion.measure.bounded:
        return None
    rooted = distortion.measure.rooted
    mean = None if rooted else mean_of(engine, distortion)
    rank = n_components - (mean is not None)
    side = min(engine.n_items, engine.n_dims)
    if side <= rank:
        return 0.0
    if side > GRAM_SIDE or float(engine.n_items) * engine.n_dims * side > GRAM_WORK:
        return None
    gram = smaller_gram(engine, mean, rooted=rooted)
    values, total = np.linalg.eigvalsh(gram.matrix)[::-1], float(np.trace(gram.matrix))
    tail = total - float(values[:rank].sum())
    # Sums of m products of numbers that add up to at most the trace (Cauchy–Schwarz) err by m ε trace, and so does each eigenvalue
    # (Weyl); the eigenvalue solver adds side ε trace. The tail is the trace less r eigenvalues.
    eps, shifted = float(np.finfo(float).eps), 0.0
    if mean is not None:
        weight = engine.n_items if engine.weight is None else float(engine.weight.sum())
        energy = weight * float(np.dot(mean, mean))
        # Where items are not formed, what was subtracted rounds too; and about a point that is not quite the mean the sum is too large.
        total += 0.0 if engine.forms_rows else energy
        shifted = energy * (engine.n_items * eps) ** 2
    margin = (rank + 1) * (gram.terms + side + 8) * eps * total + shifted
    return distortion.measure.error(max(tail - margin, 0.0))


def smaller_gram(engine: Engine, ref: Array | None, *, rooted: bool = False) -> _Gram:
    """Inner products of the weighted items about ``ref``, or of their dimensions, whichever are fewer; or those of their roots."""
    if engine.n_items < engine.n_dims:
        return _Gram(engine.outer(ref, rooted=rooted), engine.n_dims)
    width = 8 * engine.n_dims
    height = max(min(max(GRAM_BYTES // width, GRAM_ROWS * engine.n_dims), MAX_GRAM_BYTES // width), 1)
    # A GPU has no cache for them: its blocks are large, so that launching their kernels takes less time than computing them.
    blocks = engine if engine.doubled_bytes > MAX_GRAM_BYTES else in_blocks(engine, height)
    found: GramSum = blocks.run(None, Gram(ref, rooted)).total
    return _Gram(found.total, max(where.stop - where.start for where in blocks.slices) + len(blocks.slices))
