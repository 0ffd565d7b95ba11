"""
Parts of images
===============

``orthogonal="features"``: every pixel belongs to one part. The components, back in the shape of an image, do not overlap.
"""

# %%
# The rows of X are images, its columns pixels. Here the columns are assigned: C has one nonzero in each column.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from orthonmf import ONMF

digits = load_digits()
X, shape = digits.data, digits.images.shape[1:]
model = ONMF(8, orthogonal="features").fit(X)

# %%
# A component back in shape is ``model.components_[j].reshape(shape)``; so are the labels of the pixels. Pixels that are always blank have
# weight zero, and are left white here.

parts = np.where(model.scale_ > 0, model.labels_, np.nan).reshape(shape)

figure, axes = plt.subplots(1, 9, figsize=(12, 2), layout="constrained")
axes[0].imshow(parts, cmap="tab10", vmin=0, vmax=9)
axes[0].set_title("all parts")
for number, axis in enumerate(axes[1:]):
    axis.imshow(model.components_[number].reshape(shape), cmap="Greys", vmin=0)
    axis.set_title(f"part {number}")
for axis in axes:
    axis.set_axis_off()

# %%
# An image in terms of the parts: eight numbers instead of 64. ``inverse_transform`` takes them back to an image.

T = model.transform(X)
back = model.inverse_transform(T)

figure, axes = plt.subplots(2, 8, figsize=(10, 2.8), layout="constrained")
for column in range(8):
    for axis, image in zip(axes[:, column], (X, back), strict=True):
        axis.imshow(image[column].reshape(shape), cmap="Greys", vmin=0, vmax=16)
        axis.set_axis_off()
figure.suptitle("digits, and what eight parts keep of them")

# %%
# Since the parts do not overlap, ``components_ @ components_.T`` is the unit matrix: the parts are a basis of a subspace, and
# ``transform`` gives the coordinates of the projection on it.

print(np.abs(model.components_ @ model.components_.T - np.eye(8)).max() < 1e-12)
