"""The same points as directions with a scale each, and as means."""

from _look import HUES, INK, np, plt, styled

from orthonmf import ONMF

rng = np.random.default_rng(1)
length = rng.uniform(0.6, 6.0, size=120)
angle = np.where(rng.random(120) < 0.5, 0.35, 1.1) + 0.06 * rng.normal(size=120)
X = np.abs(length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))

with styled():
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.3), layout="constrained", sharey=True)
    for axis, scaling, title in zip(axes, ("item", "none"), ("directions", "means"), strict=True):
        model = ONMF(2, scaling=scaling).fit(X)
        axis.scatter(*X.T, c=HUES[model.labels_], s=18, lw=0)
        for j, component in enumerate(model.components_):
            if scaling == "item":
                axis.plot(*np.outer(component, [0, 6.6]), color=HUES[j], lw=1.6, zorder=0)
            else:
                axis.scatter(*(component / np.sqrt(model.counts_[j])), c=[HUES[j]], edgecolors=INK, s=110, lw=1.8, zorder=3)
        axis.set_title(f'scaling="{scaling}": {title}', fontsize=12)
        axis.set(xlim=(0, 6.4), ylim=(0, 6.2), aspect="equal", xlabel="first feature")
    axes[0].set_ylabel("second feature")
