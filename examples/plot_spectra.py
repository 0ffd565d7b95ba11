"""
A map of materials from spectra
===============================

A spectral image under uneven light: the scale of each pixel is its brightness, and the component is the material.
"""

# %%
# Forty by sixty pixels with a spectrum of 80 channels each. Three materials, in stripes with a round inclusion, lit from the left, so that
# the brightness of a pixel varies twentyfold; photon noise.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from orthonmf import ONMF

rng = np.random.default_rng(0)
rows, columns = np.mgrid[:40, :60]
material = np.where((rows - 20) ** 2 + (columns - 38) ** 2 < 130, 2, (rows + columns // 3) // 15 % 2)
channel = np.arange(80)
peaks = np.array([[20], [27], [34]])
spectra = np.exp(-(((channel - peaks) / 9) ** 2)) + 0.4 * np.exp(-(((channel - 2 * peaks) / 5) ** 2))
light = 200 * np.exp(-columns / 20)
X = rng.poisson(light.reshape(-1, 1) * (spectra[material.ravel()] + 0.1)).astype(float)

# %%
# ``scaling="item"`` compares shapes, not heights. k-means compares heights, and finds the light.

model = ONMF(max_components=8).fit(X)
means = KMeans(3, n_init=10, random_state=0).fit(X)
print(model.status_)

figure, axes = plt.subplots(1, 4, figsize=(12, 2.5), layout="constrained")
pictures = {
    "what there is": material,
    "brightness": model.scale_.reshape(40, 60),
    "ONMF: materials": model.labels_.reshape(40, 60),
    "k-means: the light": means.labels_.reshape(40, 60),
}
for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
    axis.imshow(picture, cmap="Greys_r" if title == "brightness" else "cividis")
    axis.set_title(title)
    axis.set_axis_off()

# %%
# The components are the spectra of the materials, in unit norm.

figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.plot(channel, model.components_.T, lw=2)
axis.set(xlabel="channel", ylabel="component", title="The spectra found")
