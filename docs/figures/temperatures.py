"""Soft assignment at four temperatures: colours mix as the probabilities do."""

from _look import HUES, INK, groups, np, plt, styled


def settle(X, beta):
    """Three centres with masses, alternated to a fixed point: p_ij ∝ α_j exp(−β |x_i − y_j|²)."""
    centers = X.mean(axis=0) + 1e-3 * np.array([[-1.0, 0.0], [1.0, 1.0], [1.0, -1.0]])
    mass = np.full(3, 1 / 3)
    for _ in range(3000):
        energy = -beta * np.square(X[:, None] - centers).sum(axis=2)
        p = mass * np.exp(energy - energy.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        mass = p.mean(axis=0)
        centers = p.T @ X / p.sum(axis=0)[:, None]
    order = np.argsort(centers[:, 0] - centers[:, 1] / 9)  # the same colours in all panels
    return centers[order], p[:, order]


X = groups()
critical = 1 / (2 * np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1])
panels = {0.8: "all components coincide", 2.0: "two", 13.0: "three, still soft", 80.0: "each item in one"}
with styled():
    figure, axes = plt.subplots(2, 2, figsize=(8.4, 5.4), layout="constrained", sharex=True, sharey=True)
    for axis, (ratio, title) in zip(axes.flat, panels.items(), strict=True):
        centers, p = settle(X, ratio * critical)
        axis.scatter(*X.T, c=np.clip(p @ HUES, 0, 1), s=16, lw=0)
        axis.scatter(*centers.T, c="white", edgecolors=INK, s=70, lw=1.8, zorder=3)
        axis.set_title(title, fontsize=12)
        axis.set(xticks=[], yticks=[], aspect="equal", xlabel=rf"$\beta = {ratio:g}\,\beta_{{cr}}$")
