"""Passes on sparse tensors find what those on sparse matrices do, to rounding, where their numbers lie."""

import os
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from engines.test_compiled import assert_same, groups, works
from engines.test_torch import flat, other_works
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam, available
from orthonmf.engines.base import doubled, in_blocks
from orthonmf.engines.sparse import SparseEngine
from orthonmf.exceptions import DeviceMemoryError, InvalidInputError
from orthonmf.passes.raw import Coordinates, Digest, Energy, Keys, Pearson, Subspace, UnitWeight
from orthonmf.search.partition import item_points

if not available("torch") and not os.environ.get("CI"):
    pytest.skip("torch is not installed: make setup TORCH=torch", allow_module_level=True)

import torch

from orthonmf.engines import torch as torch_engine
from orthonmf.engines import torch_sparse
from orthonmf.engines.tensors import Tensor
from orthonmf.engines.torch_sparse import TorchSparseEngine

LOSSES = sorted(REGISTRY)
N_DIMS = 30


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse", UserWarning)  # of torch, about its sparse tensors
        yield


def thinned(dtype=np.float64):
    """Groups of items half of whose numbers are zero, one of which is zero and one of which has all of its numbers."""
    X, weight = groups(N_DIMS, dtype=dtype)
    kept = np.random.default_rng(5).random(X.shape) < 0.5
    kept[11] = True
    return sp.csr_array(np.where(kept, X, 0)), weight


def both(loss, dtype=np.float64):
    """A plain engine, one of tensors in several blocks, and the frame of both."""
    X, weight = thinned(dtype)
    plain, far = (kind(X, weight, shift=3, team=ThreadTeam(1)) for kind in (SparseEngine, TorchSparseEngine))
    far._cut(300)
    return plain, far, REGISTRY[loss].of(plain)


def more_works(frame, plain):
    """Passes that sparse items have beside those of dense ones."""
    centers = np.abs(frame.to_data(item_points(plain, frame, np.arange(20, 25))))
    labels = np.random.default_rng(1).integers(5, size=plain.n_items)
    vectors = np.random.default_rng(2).standard_normal((3, plain.n_dims))
    yield from other_works(frame, plain)
    yield None, Subspace(vectors, frame.ref), {}
    yield None, Coordinates(vectors, frame.ref), {}
    yield None, UnitWeight(frame), {}
    if frame.power == 1:
        yield None, Pearson(frame, centers), {"labels": labels}


@pytest.mark.parametrize("loss", LOSSES, ids="-".join)
def test_as_sparse_matrices(loss, monkeypatch):
    monkeypatch.setattr(torch_sparse, "PART_ENTRIES", 8)
    plain, far, frame = both(loss)
    for name, (work, columns) in works(frame, plain).items():
        held = {each: far.hold(values) for each, values in columns.items()}
        found = far.run(frame, work, held)
        assert all(isinstance(column, Tensor) for column in found.columns.values()), name
        assert_same(found, plain.run(frame, work, columns), 1e-11)


@pytest.mark.parametrize("loss", LOSSES, ids="-".join)
def test_other_passes_as_sparse_matrices(loss):
    plain, far, frame = both(loss)
    for seen, work, columns in more_works(frame, plain):
        held = {each: far.hold(values) for each, values in columns.items()}
        found, expected = far.run(seen, work, held), plain.run(seen, work, columns)
        for one, other in zip(flat(found.total), flat(expected.total), strict=True):
            # 1e-12: Σ p (1 − p) of items that one component has all but whole
            assert_allclose(one, other, rtol=1e-10, atol=1e-11 * np.abs(other).max(initial=0) + 1e-12, err_msg=type(work).__name__)
        for name, column in found.columns.items():
            assert isinstance(column, Tensor)
            size = np.abs(expected.columns[name]).max()
            rtol = 1e-6 if column.dtype == np.float32 else 1e-10
            assert_allclose(column.host(), expected.columns[name], rtol=0, atol=rtol * size, err_msg=name)


def test_keys_and_digests_are_those_of_sparse_matrices_to_the_bit():
    plain, far, _ = both(("frobenius", "item"))
    assert_array_equal(far.run(None, Keys()).columns["key"].host(), plain.run(None, Keys()).columns["key"])
    assert_array_equal(far.run(None, Digest()).total.sums, plain.run(None, Digest()).total.sums)


def test_rows_of_many_entries_are_added_in_parts(monkeypatch):
    monkeypatch.setattr(torch_sparse, "PART_ENTRIES", 3)
    X, _ = thinned()
    vectors = np.random.default_rng(0).random((N_DIMS, 4))
    tensor = torch_sparse.held_on(torch.device("cpu"), X)
    assert len(tensor._parts[0]) > len(tensor.indptr)
    assert_allclose((tensor @ vectors).host(), X @ vectors, rtol=1e-13)
    weights = np.random.default_rng(1).random((X.shape[0], 4))
    assert_allclose((tensor.T @ weights).host(), X.T @ weights, rtol=1e-13)
    assert_array_equal((tensor.T.T).host().toarray(), X.toarray())
    assert not (tensor @ vectors).host()[7].any()  # an item that stores nothing


def test_chosen_rows_and_dense_ones():
    X, _ = thinned()
    tensor, index = torch_sparse.held_on(torch.device("cpu"), X), np.array([699, 7, 11, 11, 0])
    assert_array_equal(tensor[index].host().toarray(), X[index].toarray())
    assert_array_equal(tensor[5:400].toarray().host(), X[5:400].toarray())
    _, far, _ = both(("frobenius", "item"))
    assert_allclose(far.select(index).rows(slice(0, 5)).values, np.ldexp(X[index].toarray(), 3))


def test_items_with_other_blocks_and_precision_are_the_same():
    _, far, _ = both(("frobenius", "item"))
    before = far.run(None, Energy()).total.total
    for other in (in_blocks(far, 77), doubled(far)):
        assert other.run(None, Energy()).total.total == pytest.approx(before, rel=1e-14)


class TestSparseTensorsInTensorsOut:
    @staticmethod
    def documents(n_samples=400, n_words=10, dtype=np.float64, seed=0):
        """Samples of four topics that have most of their words to themselves."""
        rng = np.random.default_rng(seed)
        rate = 0.05 + 2.0 * np.kron(np.eye(4), np.ones(n_words))
        return sp.csr_array(rng.poisson(rate[np.arange(n_samples) % 4])).astype(dtype)

    @staticmethod
    def tensor(X):
        return torch.sparse_csr_tensor(*(torch.from_numpy(part.copy()) for part in (X.indptr, X.indices, X.data)), size=X.shape)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("parameters", [{}, {"scaling": "none"}, {"capacity": 120}, {"orthogonal": "features"}], ids=str)
    def test_a_fit_is_that_of_the_matrix(self, parameters, dtype):
        X = self.documents(dtype=dtype)
        T = self.tensor(X)
        given = X.tocsc() if "orthogonal" in parameters else X
        expected, model = ONMF(4, engine="sparse", **parameters).fit(given), ONMF(4, engine="torch", **parameters).fit(T)
        for name in ("components_", "labels_", "scale_", "margin_", "counts_"):
            found = getattr(model, name)
            assert isinstance(found, torch.Tensor)
            assert_allclose(found.numpy(), getattr(expected, name), rtol=1e-12, atol=1e-12)
        assert model.score(T) == pytest.approx(expected.score(given), rel=1e-12)
        assert model.verify(T).holds
        if "orthogonal" not in parameters:
            assert_array_equal(model.predict(T).numpy(), expected.predict(X))
            assert_allclose(model.predict_proba(T).numpy(), expected.predict_proba(X), atol=1e-6)
            assert_allclose(model.transform(T).numpy(), expected.transform(X), rtol=1e-6)

    def test_sparse_matrices_may_ask_for_tensors(self):
        X = self.documents()
        model = ONMF(4, engine="torch").fit(X)
        assert isinstance(model.labels_, np.ndarray)
        assert_array_equal(model.labels_, ONMF(4).fit(X).labels_)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (float("nan"), "NaN at row 1, column 2"),
            (float("inf"), "infinity at row 1, column 2"),
            (-1.0, "Negative values in data passed to ONMF: -1.0 at row 1, column 2"),
        ],
    )
    def test_bad_numbers_are_named(self, value, message):
        X = torch.sparse_csr_tensor(torch.tensor([0, 1, 3]), torch.tensor([0, 1, 2]), torch.tensor([1.0, 2.0, value]), size=(2, 3))
        with pytest.raises(InvalidInputError, match=message):
            ONMF(1, engine="torch").fit(X)

    def test_matrices_larger_than_the_device_say_so(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 2000))
        monkeypatch.setattr(torch_sparse, "device_for", lambda array: torch.device("cuda"))
        with pytest.raises(DeviceMemoryError, match=r"stores 81 numbers in 9\.72e-07 GB, and cuda has 1e-06 GB free.*engine='auto'"):
            ONMF(1, engine="torch").fit(sp.csr_array(np.eye(81)))

    def test_places_outside_are_named(self):
        X = torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([5]), torch.tensor([1.0]), size=(1, 3), check_invariants=False)
        with pytest.raises(InvalidInputError, match="stores columns 5 to 5; expected 0 to 2"):
            ONMF(1, engine="torch").fit(X)

    def test_duplicates_are_summed_and_columns_sorted(self):
        parts = torch.tensor([0, 3, 3, 4]), torch.tensor([2, 0, 2, 1]), torch.tensor([1, 2, 3, 4])
        found = torch_sparse.checked(torch.sparse_csr_tensor(*parts, size=(3, 3), check_invariants=False), "ONMF")
        assert_array_equal(found.host().toarray(), [[2.0, 0, 4.0], [0, 0, 0], [0, 4.0, 0]])
        assert_array_equal(found.indices.host(), [0, 2, 1])

    @pytest.mark.parametrize("parameters", [{}, {"scaling": "none"}, {"scaling": "none", "capacity": 0.4}], ids=str)
    @pytest.mark.long
    def test_many_items_stay_on_the_device(self, parameters, monkeypatch):
        monkeypatch.setattr(torch_engine, "GPU_BLOCK_BYTES", 1 << 10)
        X = self.documents(90_000, 50, np.float32)
        expected, model = ONMF(4, **parameters).fit(X), ONMF(4, engine="torch", **parameters).fit(self.tensor(X))
        assert (model.labels_.numpy() != expected.labels_).mean() < 1e-3  # those on the border
        assert model.reconstruction_err_ == pytest.approx(expected.reconstruction_err_, rel=1e-6)
        assert model.certificate_.holds
