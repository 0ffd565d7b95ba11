"""The same points without bounds and in parts of one size."""

from _look import HUES, INK, groups, np, plt, styled

from orthonmf import ONMF

X = groups()
with styled():
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained", sharey=True)
    for axis, capacity in zip(axes, (None, 50), strict=True):
        model = ONMF(3, scaling="none", capacity=capacity).fit(X)
        centers = model.components_ / np.sqrt(model.counts_)[:, None]
        hue = np.argsort(np.argsort(centers[:, 0] - centers[:, 1] / 9))  # the same colours, from left to right, in both
        axis.scatter(*X.T, c=HUES[hue[model.labels_]], s=20, lw=0)
        axis.scatter(*centers.T, c=HUES[hue], edgecolors=INK, s=110, lw=1.8, zorder=3)
        for center, size in zip(centers, model.counts_, strict=True):
            axis.annotate(str(size), center, (9, 7), textcoords="offset points", fontweight="bold", fontsize=13)
        axis.set_title("no bounds" if capacity is None else f"capacity={capacity}", fontsize=12)
        axis.set(xticks=[], yticks=[], aspect="equal")
