"""The certificate cannot be fooled, and does not fail what is right."""

import tracemalloc
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam, base, dense
from orthonmf.engines.dense import DenseEngine
from orthonmf.engines.sparse import SparseEngine
from orthonmf.exceptions import ModelFormatError, OrthonmfError
from orthonmf.model import eckart_young
from orthonmf.model.certificate import STATIONARY

NEAREST = "every item is in its nearest component"
CENTRES = "the centres are the best for these labels"
SIZES = "every size is within its bounds"
STORED = "what the model stores is what the data give"


def groups(n, p, offset, apart, sd, dtype, seed):
    """Two groups of items about ``offset`` and ``offset + apart``."""
    rng = np.random.default_rng(seed)
    place = np.repeat([offset, offset + apart], [n // 2, n - n // 2])
    return (place[:, None] + sd * rng.standard_normal((n, p))).astype(dtype)


def given_labels(model, labels):
    """The model with other labels, and all that counts them in line."""
    model.labels_ = labels
    model.counts_ = np.bincount(labels, minlength=model.n_components_)
    return model


# -- labels -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0])
def test_random_labels_of_many_items_in_float32_do_not_hold(seed):
    # The groups are 30 standard deviations apart: random labels have 20 times the error.
    X = groups(200_000, 1, 1000, 0.3, 0.01, np.float32, seed)
    model = ONMF(2, scaling="none").fit(X)
    assert model.certificate_.holds, str(model.certificate_)
    labels = np.random.default_rng(seed).integers(0, 2, len(X))
    assert not given_labels(model, labels).verify(X).claims[NEAREST]


# Offsets that leave a few digits of the spread, in the type of X.
HARD = [(np.float32, 1e4, 0.3, 0.01), (np.float32, 1e3, 0.3, 0.01), (np.float64, 1e8, 1e-5, 1e-6), (np.float64, 1e4, 1e-9, 1e-10)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("dtype", "offset", "apart", "sd"), HARD)
@pytest.mark.parametrize("seed", [0, 1])
def test_labels_that_are_right_hold_and_random_ones_do_not(dtype, offset, apart, sd, sparse, seed):
    X = groups(600, 4, offset, apart, sd, dtype, seed)
    model = ONMF(2, scaling="none").fit(X)  # a sparse engine sees no such groups; dense components do for both
    assert np.array_equal(np.sort(model.counts_), [300, 300])
    given = sp.csr_array(X) if sparse else X
    if not sparse:
        assert model.verify(given).holds, str(model.verify(given))
    labels = np.random.default_rng(seed).integers(0, 2, len(X))
    assert not given_labels(model, labels).verify(given).claims[NEAREST]


@pytest.mark.parametrize("bounds", [{}, {"capacity": 0.55}], ids=["free", "bounded"])
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 1e4), (np.float64, 1e8)])
def test_fits_at_an_offset_hold(scaling, dtype, offset, bounds):
    # Lines are told apart by their direction: the groups differ in one dimension.
    X = np.full((300, 6), offset) + np.random.default_rng(0).standard_normal((300, 6)) * offset * 1e-5
    X[:150, 0] += offset * 1e-3
    model = ONMF(2, scaling=scaling, **bounds).fit(X.astype(dtype))
    assert model.verify(X.astype(dtype)).holds, str(model.verify(X.astype(dtype)))
    assert set(model.labels_[:150]) != set(model.labels_[150:])


def test_one_label_of_many_is_noticed():
    X = np.random.default_rng(0).gamma(2.0, size=(4000, 3))
    model = ONMF(3, scaling="none").fit(X)
    distance = np.square(X[:, None] - model.components_ / np.sqrt(model.counts_)[:, None]).sum(axis=2)
    between = np.sort(distance, axis=1)
    item = int(np.argmin(between[:, 1] - between[:, 0]))  # to be in the other component costs next to nothing
    labels = model.labels_.copy()
    labels[item] = np.argsort(distance[item])[1]
    certificate = given_labels(model, labels).verify(X)
    assert certificate.gap < 1e-6
    assert certificate.misplaced == 1
    assert not certificate.claims[NEAREST]


# -- centres ----------------------------------------------------------------------------------------------------------------------


def test_a_centre_is_judged_by_the_spread_of_its_own_component():
    # 200 items of spread √3 about (10, 10, 10) and one at 10⁶: beside that one, nothing else has a spread.
    X = np.vstack([10 + np.random.default_rng(0).random((200, 3)), np.full((1, 3), 1e6)])
    model = ONMF(2, scaling="none").fit(X)
    assert model.verify(X).holds
    many = int(model.counts_.argmax())
    model.components_[many] += 40 * X[:200].std() * np.sqrt(200)
    certificate = model.verify(X)
    assert certificate.stationarity > 0.9  # about this centre, its distance from the right one is all the spread there is
    assert not certificate.claims[CENTRES]


@pytest.mark.parametrize("off", [0.5, 2.0])
def test_stationarity_by_hand(off):
    # Items −1, 1 about the centre 10 have the spread 1; the centre is off by a multiple of what is tolerated.
    X = np.array([[9.0, 1.0], [11.0, 1.0]])
    model = ONMF(1, scaling="none").fit(X)
    model.components_ += np.array([off * STATIONARY, 0.0]) * np.sqrt(2)
    certificate = model.verify(X)
    assert certificate.stationarity == pytest.approx(off * STATIONARY, rel=1e-4)  # about this centre the spread is as much more
    assert certificate.claims[CENTRES] == (off <= 1)


# -- what is stored ---------------------------------------------------------------------------------------------------------------

CLOUD = np.random.default_rng(0).gamma(2.0, size=(40, 6))


def scaled_up(model):
    model.scale_ = model.scale_ * 100


def scaled_away(model):
    model.scale_ = model.scale_ * 0


def one_scale(model):
    model.scale_ = model.scale_.copy()
    model.scale_[7] *= 1.001


def counted_wrong(model):
    model.counts_ = model.counts_[::-1] + 1


def better_error(model):
    model.reconstruction_err_ /= 2


def other_weights(model):
    model._weight = model._weight * 2


def capacity_of_one(model):
    model.set_params(capacity=1)


def least_of_all(model):
    model.set_params(min_size=len(model.labels_), capacity=None)


@cache
def fitted(orthogonal, scaling, capacity):
    return ONMF(3, orthogonal=orthogonal, scaling=scaling, capacity=capacity).fit(CLOUD if orthogonal == "samples" else CLOUD.T)


@pytest.mark.parametrize(
    "tamper", [scaled_up, scaled_away, one_scale, counted_wrong, better_error, other_weights, capacity_of_one, least_of_all]
)
@pytest.mark.parametrize("capacity", [None, 0.5])
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("orthogonal", ["samples", "features"])
def test_what_is_stored_is_compared_with_the_data(orthogonal, scaling, capacity, tamper):
    X, model = CLOUD if orthogonal == "samples" else CLOUD.T, deepcopy(fitted(orthogonal, scaling, capacity))
    assert model.verify(X).holds, str(model.verify(X))
    tamper(model)
    certificate = model.verify(X)
    assert not certificate.claims[STORED]
    assert certificate.contradiction in str(certificate)


def test_another_number_of_components_is_an_error():
    model = deepcopy(fitted("samples", "item", None))
    model.n_components_ = 2
    with pytest.raises(ModelFormatError, match="there are 2 components"):
        model.verify(CLOUD)


@pytest.mark.parametrize("scaling", ["item", "none"])
def test_a_far_reference_does_not_hold(scaling):
    X = CLOUD + 100  # directions that differ by a degree
    model = ONMF(3, scaling=scaling).fit(X)
    assert model.verify(X).holds, str(model.verify(X))
    model._reference = np.eye(6)[0] if scaling == "item" else model._reference + 1e9
    said = str(model.verify(X).contradiction)
    # whichever is seen first
    assert any(each in said for each in ("far from the samples", "margin_ is not what the data", "the separation of certificate_"))


def test_components_beyond_their_capacity_do_not_hold():
    X = np.repeat(np.eye(3), [11, 5, 4], axis=0) + 0.01 * np.random.default_rng(0).random((20, 3))
    model = ONMF(3).fit(X).set_params(capacity=8)
    assert tuple(model.counts_) == (11, 5, 4)
    assert not model.verify(X).claims[STORED]


def test_sizes_are_claimed_whenever_bounds_are_given():
    assert SIZES not in fitted("samples", "item", None).certificate_.claims
    roomy = ONMF(3, capacity=40).fit(CLOUD).certificate_  # excludes nothing
    assert roomy.claims[SIZES]
    assert roomy.claims[NEAREST]
    assert fitted("samples", "item", 0.5).certificate_.claims[SIZES]


@pytest.mark.parametrize("capacity", ["x", [1, "x"], -3, [1, 2, 3, [4]]])
def test_a_capacity_that_means_nothing_is_an_error(capacity):
    with pytest.raises(OrthonmfError, match="capacity"):
        deepcopy(fitted("samples", "item", None)).set_params(capacity=capacity).verify(CLOUD)


def test_new_samples_are_judged_without_what_was_stored():
    model = deepcopy(fitted("samples", "item", None))
    assert model.verify(CLOUD[:30]).claims[STORED]
    model.counts_ = model.counts_ + 1
    assert not model.verify(CLOUD[:30]).claims[STORED]


# -- numbers at their ends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("orthogonal", ["samples", "features"])
@pytest.mark.parametrize("bits", [2, 6])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_subnormal_data_hold(orthogonal, scaling, dtype, bits):
    # Numbers of a few bits, the last of which is the least there is: centres and scales are rounded to it.
    rng = np.random.default_rng(0)
    X = (np.vstack([np.eye(4)] * 5) + rng.random((20, 4)) / 4)[:, :4] * 2.0**bits
    X = np.round(X).astype(dtype) * np.finfo(dtype).smallest_subnormal
    model = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(X)
    assert model.verify(X).holds, str(model.verify(X))


# -- the lower bound --------------------------------------------------------------------------------------------------------------


def engine_of(X, kind, weight=None):
    team = ThreadTeam(1)
    return DenseEngine(X, weight, team=team) if kind == "dense" else SparseEngine(sp.csr_array(X), weight, team=team)


@pytest.mark.parametrize("shape", [(50, 300), (300, 50)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("scaling", ["item", "none"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_lower_bound_is_below_the_best_and_near_it(shape, kind, scaling, dtype, monkeypatch):
    monkeypatch.setattr(eckart_young, "GRAM_BYTES", 1 << 13)
    monkeypatch.setattr(dense, "OUTER_BYTES", 1 << 13)
    monkeypatch.setattr(base, "MAX_BLOCK", 20)
    monkeypatch.setattr(base, "MIN_BLOCK", 20)
    X = (100 + np.random.default_rng(0).random(shape)).astype(dtype)
    weight = np.random.default_rng(1).gamma(2.0, size=shape[0])
    engine = engine_of(X, kind, weight)
    bound = eckart_young.lower_bound(engine, REGISTRY["frobenius", scaling].of(engine), 5)
    exact = X.astype(np.longdouble)
    if scaling == "none":
        exact = exact - weight @ exact / weight.sum()
    values = np.linalg.svd((exact * np.sqrt(weight)[:, None]).astype(np.float64), compute_uv=False)
    best = np.linalg.norm(values[4 if scaling == "none" else 5 :])
    assert best * (1 - 1e-4) <= bound <= best * (1 + 1e-13)


@pytest.mark.parametrize("scaling", ["item", "none"])
def test_the_certificate_takes_little_memory(monkeypatch, scaling):
    # X itself is 8 MB; of the numbers of all items 1 MiB are held at once, and a few copies of a block of 2 MiB for each thread.
    monkeypatch.setattr(dense, "OUTER_BYTES", 1 << 20)
    monkeypatch.setattr(base, "MEDIAN_NUMBERS", 1 << 17)
    X = np.random.default_rng(0).random((100, 20_000), dtype=np.float32)
    model = ONMF(2, scaling=scaling, n_jobs=1, refine=False).fit(X)
    tracemalloc.start()
    assert model.verify(X).lower_bound > 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6


def test_no_lower_bound_where_it_takes_too_much_work(monkeypatch):
    monkeypatch.setattr(eckart_young, "GRAM_WORK", 40 * 6 * 6 - 1)
    certificate = ONMF(3).fit(CLOUD).certificate_
    assert certificate.lower_bound is None
    assert "lower bound not computed" in str(certificate)
    assert certificate.holds
