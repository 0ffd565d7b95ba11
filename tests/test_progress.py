"""Who listens to a fit hears every temperature, in the units of X."""

import numpy as np
import pytest

from orthonmf import ONMF
from orthonmf.progress import StopRequested, listening

X = np.array([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 3.0]])


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
            ONMF(2).fit(X)
        ONMF(2).fit(X)
    ONMF(2).fit(X)
    assert len(first) == 2 * len(second) > 0


def test_a_listener_may_stop_the_fit():
    def enough(temperature):
        if temperature.n_components > 1:
            raise StopRequested

    with listening(enough), pytest.warns(match="Stopped by a callback"):
        model = ONMF().fit(X)
    assert not model.converged_
