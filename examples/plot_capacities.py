"""
Bounds on the size of each part
===============================

Parts of one size, parts of given sizes, and what the bounds cost.
"""

# %%
# Left alone, the parts of the digits differ in size by a factor of two and more.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from orthonmf import ONMF
from orthonmf.plot import SizesDisplay

X = load_digits().data[:500]
free = ONMF(8).fit(X)

# %%
# ``capacity`` bounds every part from above. A whole number counts items; a fraction is one of all items. The bound is met exactly: at the
# end the assignment is solved as a transportation problem, whose optimum is proven by its prices.

even = ONMF(8, capacity=63).fit(X)  # 8 × 63 = 504 places for 500 images

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
SizesDisplay.from_estimator(free, ax=left, title="no bounds")
SizesDisplay.from_estimator(even, ax=right, title="capacity=63")

# %%
# ``min_size`` bounds from below, and a list gives each component a bound of its own.

given = ONMF(4, capacity=[250, 125, 75, 50]).fit(X)
print(given.counts_)

# %%
# The error can only grow, and it is worth a look by how much.

for name, model in {"no bounds": free, "capacity=63": even}.items():
    print(f"{name:12} error {model.certificate_.relative_error:.2%}   sizes {model.counts_.min()} to {model.counts_.max()}")

# %%
# New samples: ``predict`` takes the nearest component, whatever its size; ``assign`` shares out the places there are.

new = load_digits().data[500:580]
print("nearest:      ", [int((even.predict(new) == j).sum()) for j in range(8)])
print("ten places:   ", [int((even.assign(new, capacity=10) == j).sum()) for j in range(8)])

# %%
# Bounds that nothing can meet are refused before any work is done, and the message says by how much.

try:
    ONMF(8, capacity=60).fit(X)
except ValueError as error:
    print(error)

# %%
# ``capacity_penalty`` makes the bounds soft: an item too many then costs this many times the mean squared norm of an item.

soft = ONMF(8, capacity=63, capacity_penalty=0.02).fit(X)
print(soft.counts_)
