"""How many components, and how sure: a mixture along the leading directions, merged where one cloud explains what several balls do.

A component of n_j items in p dimensions splits where its *sample* moments say so, and chance inflates these, so that along the annealing
noise splits as early as structure. The number is therefore taken from a likelihood, in the few directions that carry more than noise
(`cloud`): balls of their own variance are fitted for every number, BIC takes one (`balls`), and where some of them are clearly pieces
of one longer cloud, pieces are put together (`merging`). `confidence` says how sure that is. Where numbers are missing, others are held
out, and the components that foretell them best are counted (`holdout`).
"""

from __future__ import annotations

from ...distortion.base import Distortion
from ...engines.base import Engine
from .choice import Number, number_of_components
from .confidence import gain_test
from .holdout import number_held_out

__all__ = ["Number", "counted", "gain_test", "number_held_out", "number_of_components"]


def counted(engine: Engine, distortion: Distortion, most: int, evidence: float, seed: int = 0) -> Number:
    """How many components the items of a small engine have, by what can be asked of them; see ``number_of_components``."""
    if distortion.partial:
        return number_held_out(engine, distortion, most, seed)
    return number_of_components(engine, distortion, most, evidence, seed)
