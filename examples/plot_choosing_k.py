"""
Choosing the number of components
=================================

Four groups of four clusters each: both 4 and 16 are right answers, and the data show both.
"""

# %%
# Without a number, ``ONMF`` looks for one. It lowers the temperature and watches the components part. A number of components that lasts
# over a wide range of the inverse temperature β is one that the data have.

import numpy as np

from orthonmf import ONMF
from orthonmf.datasets import make_nested
from orthonmf.plot import BifurcationDisplay, ErrorDisplay, PersistenceDisplay

X = make_nested(160, 20, random_state=5).X
model = ONMF(scaling="none").fit(X)
print(model.n_components_)
print(model.status_)

# %%
# ``persistence_`` holds the logarithm of that range for 2, 3, … components. The highest bar is taken; the second peak tells of the groups.

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
# Where nothing lasts, ``status_`` says so. Uniform noise has no parts:

print(ONMF(max_components=6).fit(np.random.default_rng(0).uniform(size=(100, 5))).status_)
