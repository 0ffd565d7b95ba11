"""The four synthetic data sets of the paper's first table."""

from __future__ import annotations

import numpy as np

from ..exceptions import InvalidInputError
from .onmf import OnmfData

__all__ = ["make_paper_synthetic"]

_SHAPES = {1: (1000, 10), 2: (2000, 20), 3: (4000, 50), 4: (10000, 100)}  # (n_samples, n_features)
_N_COMPONENTS = 20
_GAMMA_SHAPE = 10.0
_NOISE = 0.01


def make_paper_synthetic(which: int, seed: int = 0) -> OnmfData:
    """Draw data set 1, 2, 3 or 4 of the paper: 20 components, noise far below their distances.

    The paper says that the columns of its X come from a Gamma distribution with uniform noise added. Its
    errors are those of the following reading: centres with entries Gamma(10, 1), one of 20 labels for each
    sample with equal probability, X = centers[labels] + Uniform(0, 0.01) for each entry. The error of the
    true partition is then about 0.0276 · sqrt(1 − 1/n_features) percent.

    Parameters
    ----------
    which : {1, 2, 3, 4}
        (n_samples, n_features) is (1000, 10), (2000, 20), (4000, 50) or (10000, 100). The paper, with samples
        as columns, writes them the other way round.
    seed : int, default=0
        Seed of ``numpy.random.default_rng``. The paper gives none: each seed is one draw of its data set.

    Returns
    -------
    OnmfData
        The data, labels, centres and scales (ones).

    Examples
    --------
    >>> make_paper_synthetic(1, seed=0).X.shape
    (1000, 10)
    """
    if which not in _SHAPES:
        raise InvalidInputError(f"which={which!r}, expected 1, 2, 3 or 4. Data set 5 of the paper is fetch_microarray().")
    n_samples, n_features = _SHAPES[which]
    rng = np.random.default_rng(seed)
    centers = rng.gamma(_GAMMA_SHAPE, 1.0, size=(_N_COMPONENTS, n_features))
    labels = rng.integers(_N_COMPONENTS, size=n_samples)
    X = centers[labels] + rng.uniform(0.0, _NOISE, size=(n_samples, n_features))
    return OnmfData(X=X, labels=labels, centers=centers, scale=np.ones(n_samples))
