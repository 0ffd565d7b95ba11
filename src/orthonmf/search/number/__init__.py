"""How many components, and how sure: a mixture along the leading directions, merged where one cloud explains what several balls do.

A component of n_j items in p dimensions splits where its *sample* moments say so, and chance inflates these, so that along the annealing
noise splits as early as structure. The number is therefore taken from a likelihood, in the few directions that carry more than noise
(`cloud`): balls of their own variance are fitted for every number, BIC takes one (`balls`), and where some of them are clearly pieces
of one longer cloud, pieces are put together (`merging`). `confidence` says how sure that is.
"""

from __future__ import annotations

from .choice import Number, number_of_components
from .confidence import gain_test

__all__ = ["Number", "gain_test", "number_of_components"]
