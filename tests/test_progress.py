"""Who listens to a fit hears every temperature, in the units of X."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from orthonmf import ONMF
from orthonmf.progress import StopRequested, listening, plane

X = np.array([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 3.0]])


@pytest.mark.thinned(3)
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("factor", [1.0, 1000.0])
def test_what_is_heard_is_the_history(scaling, factor):
    heard, stages = [], []
    with listening(heard.append, stages.append):
        model = ONMF(scaling=scaling).fit(factor * X)
    for name in ("beta", "n_components", "free_energy", "distortion", "entropy"):
        np.testing.assert_array_equal([getattr(each, name) for each in heard], model.history_[name])
    assert stages == [
        "asking 4 items how many components they have, and how sure that is",
        f"refining {model.n_components_} components on 4 items",
    ]


def test_nobody_hears_outside_the_block_and_all_do_inside():
    first, second = [], []
    with listening(first.append):
        with listening(second.append):
            ONMF(2, schedule=2.0).fit(X)
        ONMF(2, schedule=2.0).fit(X)
    ONMF(2, schedule=2.0).fit(X)
    assert len(first) == 2 * len(second) > 0


def test_a_listener_may_stop_the_fit():
    def enough(temperature):
        if temperature.n_components > 1:
            raise StopRequested

    with listening(enough), pytest.warns(match="Stopped by a callback"):
        model = ONMF().fit(X)
    assert not model.converged_


@pytest.mark.parametrize("shape", [(40, 6), (40, 40), (12, 300), (2, 9), (1, 5), (3, 1)])
def test_plane_holds_what_spreads_most(shape):
    points = np.random.default_rng(0).gamma(1.0, size=shape) * np.linspace(3, 1, shape[1])
    basis, spread = plane(points), points - points.mean(axis=0)
    n_directions = min(2, *shape)
    assert_allclose((basis.T @ basis)[:n_directions, :n_directions], np.eye(n_directions), atol=1e-12)
    most = np.linalg.svd(spread, compute_uv=False)[:2]
    assert_allclose(np.sum((spread @ basis) ** 2), np.sum(most**2), rtol=1e-10, atol=1e-20)
