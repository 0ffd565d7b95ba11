"""Another loss is one file and one line in the registry; what it cannot do is refused by name."""

import numpy as np
import pytest
from distortion.toy import ROOTS, Bare, Weighted

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.distortion.base import Curved, Distortion, Flowing, Moving, Splitting
from orthonmf.exceptions import InvalidInputError


@pytest.fixture
def losses(monkeypatch):
    monkeypatch.setitem(REGISTRY, ("frobenius", "weighted"), Weighted)
    monkeypatch.setitem(REGISTRY, ("frobenius", "bare"), Bare)


def blobs(seed=0):
    rng = np.random.default_rng(seed)
    return np.abs(rng.gamma(8, 1, (4, 4))[rng.integers(4, size=80)] + 0.4 * rng.standard_normal((80, 4)))


@pytest.mark.usefixtures("losses")
@pytest.mark.parametrize(
    "parameters", [{"n_components": 5}, {"n_components": "persistence", "max_components": 8}, {"n_components": 4, "capacity": 22}], ids=str
)
def test_the_answer_is_that_of_stretched_data(parameters):
    X = blobs()
    found = ONMF(scaling="weighted", **parameters).fit(X)
    stretched = ONMF(scaling="none", **parameters).fit(X * ROOTS)
    np.testing.assert_array_equal(found.labels_, stretched.labels_)
    np.testing.assert_allclose(found.components_ * ROOTS, stretched.components_, rtol=1e-6)
    np.testing.assert_allclose(found.critical_betas_, stretched.critical_betas_, rtol=1e-3)


@pytest.mark.usefixtures("losses")
@pytest.mark.parametrize("parameters", [{}, {"capacity": 1}], ids=str)
def test_fewer_items_than_features(parameters):
    # Two items of four features: they are not held in their span, in which features have no weight.
    X = blobs()[:2]
    found = ONMF(2, scaling="weighted", **parameters).fit(X)
    np.testing.assert_array_equal(found.labels_, ONMF(2, scaling="none", **parameters).fit(X * ROOTS).labels_)


@pytest.mark.usefixtures("losses")
def test_the_answer_differs_from_that_of_the_data_as_they_are():
    assert (ONMF(5, scaling="weighted").fit(blobs()).labels_ != ONMF(5, scaling="none").fit(blobs()).labels_).any()


@pytest.mark.usefixtures("losses")
def test_what_a_loss_cannot_do_is_refused_by_name():
    with pytest.raises(InvalidInputError, match="The annealing needs critical values, which the loss Bare does not have"):
        ONMF(3, scaling="bare").fit(blobs())


@pytest.mark.usefixtures("losses")
def test_a_solver_names_what_it_needs(monkeypatch):
    class Still(Weighted):
        """As if it had no flow."""

    monkeypatch.setitem(REGISTRY, ("frobenius", "weighted"), Still)
    monkeypatch.setattr(
        "orthonmf.search.bounded.REGISTRY", {"cbf": ("", "orthonmf.search.bounded.flow:FlowParameters", "distortion.test_toy:Never")}
    )
    with pytest.raises(InvalidInputError, match="solver='cbf' needs what nothing has, which the loss Still does not have"):
        ONMF(3, scaling="weighted", capacity=40, solver="cbf").fit(blobs())


class Never(Distortion):
    """An ability that no loss has."""

    ability = "what nothing has"


@pytest.mark.parametrize("interface", [Distortion, Curved, Splitting, Moving, Flowing])
def test_no_interface_asks_for_more_than_eight_methods(interface):
    own = [name for name, value in vars(interface).items() if callable(getattr(value, "__func__", value)) and not name.startswith("_")]
    assert 1 <= len(own) <= 8
