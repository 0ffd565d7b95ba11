"""
Choosing the number of components
=================================

Four groups of four clusters each: both 4 and 16 are right answers, and the data show both.
"""

# %%
# Without a number, ``ONMF`` takes the finest one that the data support, and ``status_`` says how sure that is. ``levels_`` holds the
# coarser numbers that stand out as well.

import warnings

import numpy as np

from orthonmf import ONMF
from orthonmf.datasets import make_nested
from orthonmf.exceptions import NothingStandsOutWarning
from orthonmf.plot import BifurcationDisplay, ErrorDisplay, NumberDisplay, PersistenceDisplay

X = make_nested(160, 20, random_state=5).X
model = ONMF(scaling="none").fit(X)
print(model.n_components_)
print(model.levels_)
print(model.status_)

# %%
# What speaks for each number: a likelihood, less what its parameters cost, and how far halves of the items give the same partition.

NumberDisplay.from_estimator(model)

# %%
# As the temperature falls, components part one after the other. ``persistence_`` holds, for 2, 3, … components, the logarithm of the range
# of the inverse temperature β over which that number lasts. The dashed line is what chance reaches.

PersistenceDisplay.from_estimator(model)

# %%
# The centres against β. With ``schedule=1.05`` the temperature falls in small steps, which draws smooth branches; the answer is the same.

slowly = ONMF(scaling="none", schedule=1.05).fit(X)
BifurcationDisplay.from_estimator(slowly)

# %%
# The usual alternative is to fit every number and look for a bend in the error. Each fit comes with a lower bound that no factorisation
# of that rank and scaling beats, so the picture also says how much there was to gain. Here the bends are at 4 and at 16.

ErrorDisplay.from_estimator(model, X, n_components=range(2, 19, 2))

# %%
# Where nothing stands out, a warning and ``status_`` say so. Noise has no parts:

with warnings.catch_warnings():
    warnings.simplefilter("ignore", NothingStandsOutWarning)
    print(ONMF(max_components=6).fit(20 + np.random.default_rng(0).normal(size=(100, 5))).status_)
