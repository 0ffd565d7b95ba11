"""The free energy of two centres as they are pulled apart, just below, at and above the critical β."""

from _look import HUES, INK, np, plt, styled

x = np.concatenate([np.linspace(-1.6, -0.4, 60), np.linspace(0.4, 1.6, 60)])
critical = 1 / (2 * x.var())
t = np.linspace(-1.6, 1.6, 241)


def free_energy(beta):
    """J of the centres ±t with masses ½, per item."""
    return np.array([-np.log(0.5 * np.exp(-beta * (x - s) ** 2) + 0.5 * np.exp(-beta * (x + s) ** 2)).mean() / beta for s in t])


with styled():
    figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for ratio, color, words in ((0.6, HUES[0], "below: stay together"), (1.0, INK, "critical"), (2.0, HUES[1], "above: part")):
        curve = free_energy(ratio * critical)
        axis.plot(t, (curve - curve[len(t) // 2]) * ratio, color=color, lw=2.2, label=rf"$\beta = {ratio:g}\,\beta_{{cr}}$, {words}")
    axis.axhline(0, color="0.8", lw=0.8, zorder=0)
    axis.set(xlabel="place $t$ of one centre, the other at $-t$", ylabel="free energy, from the middle", yticks=[0], ylim=(-0.95, 1.2))
    axis.legend(loc="upper center")
