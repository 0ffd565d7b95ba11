"""Passes on tensors find what those on arrays do, to rounding."""

import numpy as np
import pytest
from engines.test_compiled import assert_same, groups, works

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.dense import DenseEngine

torch = pytest.importorskip("torch")

from orthonmf.engines.tensors import Tensor  # noqa: E402
from orthonmf.engines.torch import TorchEngine  # noqa: E402

LOSSES = sorted(REGISTRY)


def both(X, weight=None, *, loss, **options):
    """A plain engine, one of tensors, and the frame of both."""
    plain, far = (kind(X, weight, team=ThreadTeam(1), **options) for kind in (DenseEngine, TorchEngine))
    return plain, far, REGISTRY[loss].of(plain)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES, ids="-".join)
def test_as_arrays(loss, dtype):
    X, weight = groups(7, dtype=dtype)
    plain, far, frame = both(X, weight, loss=loss)
    far._cut(300)
    rtol = 1e-11 if dtype == np.float64 else 2e-5
    for name, (work, columns) in works(frame, plain).items():
        held = {each: far.hold(values) for each, values in columns.items()}
        found, expected = far.run(frame, work, held), plain.run(frame, work, columns)
        assert all(isinstance(column, Tensor) for column in found.columns.values()), name
        assert_same(found, expected, rtol)
