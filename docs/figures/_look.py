"""What the figures of the method share."""

import matplotlib.pyplot as plt
import numpy as np

from orthonmf.plot.style import INK, PALETTE, styled

__all__ = ["HUES", "INK", "groups", "np", "plt", "styled"]

HUES = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in (PALETTE[0], PALETTE[1], PALETTE[2])])


def groups():
    """Three groups in the plane; the last two are close to each other."""
    rng = np.random.default_rng(3)
    centers = np.array([[2.0, 2.2], [6.4, 4.0], [7.2, 1.4]])
    sizes = (70, 50, 30)
    return np.concatenate([center + 0.55 * rng.normal(size=(size, 2)) for center, size in zip(centers, sizes, strict=True)])
