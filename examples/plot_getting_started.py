"""
Getting started
===============

Ten parts of a thousand handwritten digits: every image belongs to exactly one.
"""

# %%
# The digits come with scikit-learn: 8 × 8 pixels, one image a row. All entries are nonnegative, which is all that ``ONMF`` asks for.

from sklearn.datasets import load_digits

from orthonmf import ONMF
from orthonmf.plot import ComponentsDisplay

X = load_digits().data[:1000]
model = ONMF(n_components=10).fit(X)
print(model.counts_)

# %%
# ``components_`` holds one row for each part. A row has as many entries as there are pixels, so it can be shown as an image.

display = ComponentsDisplay.from_estimator(model, image_shape=(8, 8))

# %%
# ``transform`` gives T: one nonzero in each row, in the column of the part, its size saying how strongly the image shows it. The product
# T C is the approximation of X.

T = model.transform(X)
print(T[:3].round(1))
print((T != 0).sum(axis=1).max(), "nonzero in a row at most")

# %%
# What is claimed can be checked. The certificate is recomputed from the data and the factors alone; the lower bound is one that no
# factorisation with ten components beats, overlapping or not.

print(model.verify(X))
