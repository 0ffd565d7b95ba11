"""Passes on tensors find what those on arrays do, to rounding, and nothing leaves the device unasked."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from engines.test_compiled import SCALINGS, assert_same, chosen, groups, works
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf import ONMF
from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam, available
from orthonmf.engines.base import BLIND, MAX_BLOCK, doubled, reweighted
from orthonmf.engines.dense import DenseEngine
from orthonmf.engines.layout import Layout
from orthonmf.exceptions import DeviceMemoryError, InvalidInputError
from orthonmf.model.certificate import margin_pass
from orthonmf.passes.audit import Audit
from orthonmf.passes.base import host
from orthonmf.passes.columns import ByLabel, Chances, Converted, Drawn, Relabelled, Renamed, Signs
from orthonmf.passes.hard import FarthestItems, MeanReach, Nearer, Weights
from orthonmf.passes.priced import Priced, PricedSums
from orthonmf.passes.raw import Digest, Energy, Gram, Keys, LabelSums, Residual, Scales, WeightedSum
from orthonmf.passes.samples import LeastCost, Share, Shares
from orthonmf.search.bounded.assigner import ItemCosts

if not available("torch") and not os.environ.get("CI"):
    pytest.skip("torch is not installed: make setup TORCH=torch", allow_module_level=True)

import torch

from orthonmf.engines import torch as torch_engine
from orthonmf.engines.tensors import Tensor
from orthonmf.engines.torch import OnDevice, TorchEngine

LOSSES = sorted(REGISTRY)
N_COMPONENTS = 5


def both(X, weight=None, *, loss, **options):
    """A plain engine, one of tensors in several blocks, and the frame of both."""
    plain, far = (kind(X, weight, team=ThreadTeam(1), **options) for kind in (DenseEngine, TorchEngine))
    far._cut(300)
    return plain, far, REGISTRY[loss].of(plain)


def other_works(frame, plain):
    """Passes beside those that have compiled kernels: over items as they are, in their frame, and over columns alone."""
    rng, n = np.random.default_rng(1), plain.n_items
    centers = chosen(frame, plain, N_COMPONENTS, 20)
    labels = rng.integers(N_COMPONENTS, size=n)
    values, data = rng.random(n), np.abs(frame.to_data(centers))
    audit = Audit(frame, centers, data, 1e-9, True, margin_pass(plain, frame, data))
    shares = plain.run(frame, Shares(centers))
    share = plain.run(BLIND, Share(shares.total), shares.columns).columns["share"]
    priced = Priced(2.0, centers, tuple((j,) for j in range(N_COMPONENTS)), np.linspace(0.0, 0.1, N_COMPONENTS))
    return [
        (None, WeightedSum(), {}),
        (None, Energy(), {}),
        (None, Energy(1), {}),
        (None, Gram(None), {}),
        (None, Gram(frame.ref), {}),
        (None, Gram(None, rooted=True), {}),
        (None, Scales(frame.measure, data), {"labels": labels}),
        (None, LabelSums(N_COMPONENTS, plain.n_dims), {"labels": labels, "values": values}),
        (None, Residual(frame.measure, data), {"labels": labels, "scale": values}),
        (None, audit, {"labels": labels, "scale": values}),
        (frame, FarthestItems(centers), {"labels": labels}),
        (frame, Nearer(centers, 1e-9, 1e-9, begun=False), {}),
        (frame, Nearer(centers, 1e-9, 1e-9, begun=True), {"nearest": values}),
        (frame, LeastCost(centers[:1]), {"cost": values}),
        (frame, PricedSums(priced, 1e-3), {}),
        (frame, Weights(), {}),
        (frame, MeanReach(), {}),
        (BLIND, Renamed(values[:N_COMPONENTS]), {"labels": labels}),
        (BLIND, Converted(np.float32, 3), {"values": values}),
        (BLIND, Signs(), {"values": values - 0.5}),
        (BLIND, Relabelled(np.array([0, 299, 300, 699]), np.array([1, 2, 3, 4]), N_COMPONENTS), {"labels": labels}),
        (BLIND, ByLabel(N_COMPONENTS), {"labels": labels}),
        (BLIND, Share(shares.total), shares.columns),
        (BLIND, Chances(50.0), {"share": share}),
        (BLIND, Drawn(3, 50.0), {"share": share}),
    ]


def flat(total):
    """A total without totals in it."""
    for name in total.__dataclass_fields__:
        value = getattr(total, name)
        yield from flat(value) if hasattr(value, "__dataclass_fields__") else [np.asarray(value)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES, ids="-".join)
def test_as_arrays(loss, dtype):
    X, weight = groups(7, dtype=dtype)
    plain, far, frame = both(X, weight, loss=loss)
    rtol = 1e-11 if dtype == np.float64 else 2e-5
    for name, (work, columns) in works(frame, plain).items():
        held = {each: far.hold(values) for each, values in columns.items()}
        found, expected = far.run(frame, work, held), plain.run(frame, work, columns)
        assert all(isinstance(column, Tensor) for column in found.columns.values()), name
        assert_same(found, expected, rtol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES, ids="-".join)
def test_other_passes_as_arrays(loss, dtype):
    X, weight = groups(7, dtype=dtype)
    plain, far, frame = both(X, weight, loss=loss)
    for seen, work, columns in other_works(frame, plain):
        held = {each: far.hold(values) for each, values in columns.items()}
        found, expected = far.run(seen, work, held), plain.run(seen, work, columns)
        for one, other in zip(flat(found.total), flat(expected.total), strict=True):
            assert_allclose(one, other, rtol=1e-10, atol=(1e-5 if dtype == np.float32 else 1e-11) * np.abs(other).max(initial=0))
        for name, column in found.columns.items():
            assert isinstance(column, Tensor)
            size = np.abs(expected.columns[name]).max()
            assert_allclose(column.host(), expected.columns[name], rtol=0, atol=(1e-4 if dtype == np.float32 else 1e-11) * size)


def test_keys_and_digests_are_those_of_arrays_to_the_bit():
    X, weight = groups(7)
    plain, far, _ = both(X, weight, loss=("frobenius", "item"))
    assert_array_equal(far.run(None, Keys()).columns["key"].host(), plain.run(None, Keys()).columns["key"])
    assert_array_equal(far.run(None, Digest()).total.sums, plain.run(None, Digest()).total.sums)


def test_a_tensor_is_not_copied_to_this_process_unasked():
    tensor = Tensor(torch.ones(3))
    with pytest.raises(TypeError, match="host"):
        np.asarray(tensor)
    with pytest.raises(TypeError, match="host"):
        np.ones(4)[Tensor(torch.arange(3))]
    assert_array_equal(host(tensor), np.ones(3))


def test_numbers_have_the_types_that_numpy_gives_them():
    single, whole = np.arange(4, dtype=np.float32), np.arange(4)
    for compute in (lambda a, b: a + b, lambda a, b: b / a[1:].sum(), lambda a, b: a * np.float64(0.1), lambda a, b: a * 0.1, np.maximum):
        expected, found = compute(single, whole), compute(Tensor(torch.from_numpy(single)), Tensor(torch.from_numpy(whole)))
        assert found.dtype == expected.dtype
        assert_allclose(found.host(), expected)


def test_weights_are_sent_again_when_they_change():
    X, weight = groups(7)
    _, far, _ = both(X, weight, loss=("frobenius", "item"))
    before = far.run(None, Energy()).total.total
    doubled_weights = reweighted(far, 2 * weight).run(None, Energy()).total.total
    assert doubled_weights == pytest.approx(2 * before, rel=1e-14)
    assert doubled(far).run(None, Energy()).total.total == pytest.approx(before, rel=1e-14)


def test_too_little_memory_halves_the_blocks_and_then_says_so(monkeypatch):
    X, weight = groups(7)
    _, far, frame = both(X, weight, loss=("frobenius", "item"))
    far._cut(700)
    real, limit = TorchEngine._seen, [350]

    def seen(self, framing, work, columns, where):
        if where.stop - where.start > limit[0]:
            raise torch.OutOfMemoryError("as if")
        return real(self, framing, work, columns, where)

    monkeypatch.setattr(TorchEngine, "_seen", seen)
    assert far.run(frame, Weights()).total.count == 700
    assert far.block_items == 350
    limit[0] = 10
    with pytest.raises(DeviceMemoryError, match="fewer components"):
        far.run(frame, Weights())


class TestTensorsInTensorsOut:
    X = np.random.default_rng(0).gamma(2.0, 1.0, (300, 6)) + 9 * np.eye(6)[np.arange(300) % 4]

    @pytest.mark.parametrize("engine", ["auto", "torch"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("parameters", [{}, {"scaling": "none"}, {"capacity": 90}, {"orthogonal": "features"}], ids=str)
    def test_a_fit_is_that_of_the_array(self, parameters, dtype, engine):
        X = self.X.astype(dtype)
        T = torch.from_numpy(X.copy())
        expected, model = ONMF(4, **parameters).fit(X), ONMF(4, engine=engine, **parameters).fit(T)
        for name in ("components_", "labels_", "scale_", "margin_", "counts_"):
            found = getattr(model, name)
            assert isinstance(found, torch.Tensor)
            assert found.device == T.device
            assert_array_equal(found.numpy(), getattr(expected, name))
        assert_allclose(model.transform(T).numpy(), expected.transform(X), rtol=20 * np.finfo(dtype).eps)
        assert model.transform(T).dtype == T.dtype
        assert_allclose(model.fit_transform(T).numpy(), expected.fit_transform(X), rtol=20 * np.finfo(dtype).eps)
        assert_array_equal(T.numpy(), X)
        assert_allclose(model.inverse_transform(model.transform(T)).numpy(), expected.inverse_transform(expected.transform(X)), rtol=1e-5)
        assert model.score(T) == pytest.approx(expected.score(X), rel=1e-12)
        assert model.verify(T).holds
        if "orthogonal" not in parameters:
            assert_array_equal(model.predict(T).numpy(), expected.predict(X))
            assert_allclose(model.predict_proba(T).numpy(), expected.predict_proba(X), atol=1e-6)

    def test_a_saved_model_holds_arrays(self, tmp_path):
        model = ONMF(4).fit(torch.from_numpy(self.X))
        model.save(tmp_path / "parts.onmf")
        loaded = ONMF.load(tmp_path / "parts.onmf").labels_
        assert isinstance(loaded, np.ndarray)
        assert_array_equal(loaded, model.labels_.numpy())

    def test_sparse_tensors_of_this_process(self):
        X = np.where(self.X > 2, self.X, 0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of torch, about its sparse tensors
            model = ONMF(4).fit(torch.from_numpy(X).to_sparse_csr())
        assert_array_equal(model.labels_.numpy(), ONMF(4).fit(X).labels_)
        with pytest.raises(InvalidInputError, match="to_sparse_csr"):
            ONMF(4).fit(torch.from_numpy(X).to_sparse_coo())

    @pytest.mark.parametrize("engine", ["auto", "torch"])
    @pytest.mark.parametrize(
        ("X", "message"),
        [
            ([[1.0, float("nan")]], "NaN at row 0, column 1"),
            ([[1.0, 2.0], [float("inf"), 0.0]], "infinity at row 1, column 0"),
            ([[1.0, 2.0], [3.0, -1.0]], "Negative values in data passed to ONMF: -1.0 at row 1, column 1"),
            ([1.0, 2.0], "2"),
        ],
    )
    def test_bad_numbers_are_named(self, X, message, engine):
        with pytest.raises(ValueError, match=message):
            ONMF(1, engine=engine).fit(torch.tensor(X))

    def test_missing_numbers_are_read_in_this_process(self):
        X = self.X.copy()
        X[::7, 2] = np.nan
        model = ONMF(4, missing="ignore").fit(torch.from_numpy(X))
        assert isinstance(model.labels_, torch.Tensor)
        assert_array_equal(model.labels_.numpy(), ONMF(4, missing="ignore").fit(X).labels_)
        with pytest.raises(InvalidInputError, match=r"X is a tensor on meta; .*: X\.cpu\(\)"):
            model.fit(torch.from_numpy(X).to("meta"))
        with pytest.raises(InvalidInputError, match="engine='torch' reads no missing numbers; with missing='ignore' use engine='auto'"):
            ONMF(4, missing="ignore", engine="torch").fit(torch.from_numpy(X))

    def test_arrays_may_ask_for_tensors(self):
        model = ONMF(4, engine="torch").fit(self.X)
        assert isinstance(model.labels_, np.ndarray)
        assert_array_equal(model.labels_, ONMF(4).fit(self.X).labels_)

    def test_rounding_that_the_user_allows_comes_back(self):
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            _, far, frame = both(self.X, loss=("frobenius", "none"))
            far.run(frame, Weights())
            assert torch.backends.cuda.matmul.allow_tf32
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize("parameters", [{}, {"scaling": "none", "capacity": 0.4}], ids=str)
@pytest.mark.long
def test_many_items_stay_on_the_device(parameters, monkeypatch):
    monkeypatch.setattr(torch_engine, "GPU_BLOCK_BYTES", 1 << 10)
    rng = np.random.default_rng(0)
    X = (rng.gamma(2.0, 1.0, (3, 64))[rng.integers(3, size=70_000)] + rng.gamma(1.0, 1.0, (70_000, 64))).astype(np.float32)
    expected, model = ONMF(3, **parameters).fit(X), ONMF(3, engine="torch", **parameters).fit(torch.from_numpy(X))
    assert (model.labels_.numpy() != expected.labels_).mean() < 1e-3  # those on the border
    assert model.reconstruction_err_ == pytest.approx(expected.reconstruction_err_, rel=1e-6)
    assert model.certificate_.holds
    assert model.verify(torch.from_numpy(X)).holds


@pytest.mark.parametrize("scaling", SCALINGS)
def test_labels_under_bounds_are_judged_where_the_items_are(scaling, monkeypatch):
    """By an engine whose columns come to this process, as the search under bounds has it."""
    monkeypatch.setattr(torch_engine, "FEW_ITEMS", 100)
    monkeypatch.setattr(torch_engine, "GPU_BLOCK_BYTES", 1)
    X, weight = groups(7)
    plain, far, frame = both(X, weight, loss=("frobenius", scaling))
    centers, labels = chosen(frame, plain, N_COMPONENTS, 20), np.arange(len(X)) % 4
    here, there = (ItemCosts(engine.near(), frame, centers) for engine in (plain, far))
    assert isinstance(there.engine, TorchEngine)
    scale = here.worth(labels, np.zeros(N_COMPONENTS))[0] / len(X)
    assert_allclose(there.arcs(labels), here.arcs(labels), rtol=1e-11, atol=1e-11 * scale)
    assert np.isinf(there.arcs(labels)[4]).all()
    prices = np.linspace(0, scale, N_COMPONENTS)
    assert_allclose(there.worth(labels, prices), here.worth(labels, prices), rtol=1e-11)


DISPATCH = """
import numpy as np, sklearn, torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from orthonmf import ONMF

X = torch.from_numpy(np.random.default_rng(0).gamma(2.0, 1.0, (200, 5)))
with sklearn.config_context(array_api_dispatch=True):
    model = make_pipeline(MaxAbsScaler(), ONMF(3)).fit(X)
    assert isinstance(model.predict(X), torch.Tensor) and isinstance(model.transform(X), torch.Tensor)
expected = make_pipeline(MaxAbsScaler(), ONMF(3)).fit(X.numpy())
assert (model.predict(X).numpy() == expected.predict(X.numpy())).all()
"""


def test_tensors_go_through_a_pipeline_of_scikit_learn():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}  # scikit-learn asks for it before SciPy is imported
    subprocess.run([sys.executable, "-W", "ignore", "-c", DISPATCH], check=True, env=environment, timeout=300)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
class TestOnGPU:
    def items(self, n_items=300_000, n_dims=24):
        rng = np.random.default_rng(0)
        centers = rng.gamma(2.0, 1.0, (N_COMPONENTS, n_dims))
        return (centers[rng.integers(N_COMPONENTS, size=n_items)] + rng.gamma(1.0, 1.0, (n_items, n_dims))).astype(np.float32)

    @pytest.mark.parametrize("loss", LOSSES, ids="-".join)
    def test_passes_repeat_bit_for_bit(self, loss):
        plain, far, frame = both(self.items(), loss=loss)
        far._cut(100_000)
        for name, (work, columns) in works(frame, plain).items():
            held = {each: far.hold(values) for each, values in columns.items()}
            first, again = far.run(frame, work, held), far.run(frame, work, held)
            for one, other in zip(flat(first.total), flat(again.total), strict=True):
                assert_array_equal(one, other, err_msg=name)
            for column in first.columns:
                assert_array_equal(first.columns[column].host(), again.columns[column].host(), err_msg=name)

    @pytest.mark.parametrize("scaling", SCALINGS)
    def test_kernels_find_what_plain_tensors_do(self, scaling, monkeypatch):
        plain, far, frame = both(self.items(), loss=("frobenius", scaling))
        fused = {name: (far.run(frame, *work), work) for name, work in works(frame, plain).items()}
        monkeypatch.setattr(torch_engine, "has_kernels", lambda: False)
        far._cut(100_000)
        for name, (found, (work, columns)) in fused.items():
            expected = far.run(frame, work, columns)
            for one, other in zip(flat(found.total), flat(expected.total), strict=True):
                if name != "gibbs, cold":
                    assert_allclose(one, other, rtol=0, atol=1e-4 * max(np.abs(other).max(initial=0), 1), err_msg=name)

    @pytest.mark.parametrize("loss", LOSSES, ids="-".join)
    def test_streamed_items_are_those_that_lie_there(self, loss, monkeypatch):
        X = self.items()
        _, held, frame = both(X, loss=loss)
        monkeypatch.setattr(torch_engine, "SHARE_OF_DEVICE", 0.0)
        _, streamed, _ = both(X, loss=loss)
        for engine in (held, streamed):
            engine._cut(70_000)
        for name, (work, columns) in works(frame, DenseEngine.of(X, None, None, 0, ThreadTeam(1))).items():
            found, expected = streamed.run(frame, work, columns), held.run(frame, work, columns)
            for one, other in zip(flat(found.total), flat(expected.total), strict=True):
                assert_allclose(one, other, rtol=0, atol=1e-5 * max(np.abs(other).max(initial=0), 1), err_msg=name)

    @pytest.mark.parametrize("parameters", [{}, {"scaling": "none"}, {"capacity": 0.25}, {"loss": "kullback-leibler"}], ids=str)
    def test_a_fit_stays_on_the_device(self, parameters):
        X = self.items()
        T = torch.from_numpy(X).cuda()
        expected, model = ONMF(5, **parameters).fit(X), ONMF(5, **parameters).fit(T)
        assert model.labels_.is_cuda
        assert model.components_.is_cuda
        assert (model.labels_.cpu().numpy() != expected.labels_).mean() < 1e-3
        assert model.reconstruction_err_ == pytest.approx(expected.reconstruction_err_, rel=1e-5)
        assert model.certificate_.holds
        assert model.verify(T).holds
        assert model.predict(T).is_cuda
        assert model.transform(T).is_cuda
        assert_array_equal(T.cpu().numpy(), X)


def test_an_engine_of_arrays_refuses_what_lies_on_a_device():
    layout = Layout("samples", "dense")
    with ThreadTeam(1) as team, pytest.raises(InvalidInputError, match=r"engine='dense' reads arrays of this process.*X\.cpu\(\)"):
        layout.build(Tensor(torch.ones(3, 2)), None, team)


@pytest.mark.parametrize("far", [True, False], ids=["in tasks", "in this process"])
@pytest.mark.parametrize("parameters", [{}, {"scaling": "none", "capacity": 0.25}], ids=str)
def test_chunks_are_computed_as_tensors(parameters, far, monkeypatch):
    """A dask array whose chunks end where blocks do gives the bits of one tensor, wherever its few items are."""
    array, passes = pytest.importorskip("dask.array"), []
    monkeypatch.setattr(TorchEngine, "_parts", lambda self, *args: passes.append(self.n_items) or OnDevice._parts(self, *args))
    rng = np.random.default_rng(2)
    X = rng.gamma(2.0, size=(N_COMPONENTS, 7))[rng.integers(N_COMPONENTS, size=4 * MAX_BLOCK)] + rng.random((4 * MAX_BLOCK, 7))
    expected = ONMF(N_COMPONENTS, engine="torch", **parameters).fit(X)
    if far:
        monkeypatch.setattr("orthonmf.engines.dask.FEW_BYTES", 0)
    passes.clear()
    found = ONMF(N_COMPONENTS, engine="torch", **parameters).fit(array.from_array(X, chunks=(MAX_BLOCK, -1)))
    assert (MAX_BLOCK in passes) == far
    assert_array_equal(found.labels_, expected.labels_)
    assert_array_equal(found.components_, expected.components_)
