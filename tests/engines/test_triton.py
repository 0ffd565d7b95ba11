"""The Triton kernels against the same sums written out in float64; where there is no GPU, Triton's interpreter runs them on the CPU."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from engines.test_compiled import SCALINGS, assert_same, groups, works
from numpy.testing import assert_array_equal

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam, available
from orthonmf.engines.base import multipliers
from orthonmf.engines.dense import DenseEngine, DenseRawRows
from orthonmf.passes.raw import Keys

if not (available("torch") and find_spec("triton")) and not os.environ.get("CI"):
    pytest.skip("torch or Triton is not installed: make setup TORCH=torch", allow_module_level=True)

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported

import triton
from triton.runtime import interpreter

from orthonmf.engines import fused
from orthonmf.engines import triton as kernels
from orthonmf.engines.torch import TorchEngine

pytestmark = [
    pytest.mark.skipif(
        kernels.INTERPRETED and np.lib.NumpyVersion(triton.__version__) < "3.7.0" and np.lib.NumpyVersion(np.__version__) >= "2.4.0",
        reason="the interpreter of Triton 3.6 takes arrays of one number for numbers, which NumPy 2.4 no longer does",
    ),
    # Sums over runs of items have columns that nobody writes or reads.
    pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning"),
]

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Of float32 sums of some hundred items; and of those whose numbers are in two parts of eight bits.
CLOSE, CLOSE_IN_PARTS = 3e-6, 1e-5


class Problem(NamedTuple):
    """Items and centres as the kernels are given them, and all that the sums are made of in float64."""

    values: torch.Tensor
    items: kernels.Items
    centers: kernels.Centers
    ref: torch.Tensor
    scaled: bool
    framed: torch.Tensor
    along: torch.Tensor
    weight: torch.Tensor
    full: torch.Tensor
    distance: torch.Tensor


def problem(n, p, k, scaled, *, mean=2.0, seed=0):
    """Clouds about a common mean, in units of their width."""
    draw = torch.Generator().manual_seed(seed)
    points = torch.randn((k, p), generator=draw, dtype=torch.float64)
    away = mean * (1 + torch.rand(p, generator=draw, dtype=torch.float64))
    labels = torch.randint(k, (n,), generator=draw)
    values = (away + points[labels] + 0.5 * torch.randn((n, p), generator=draw, dtype=torch.float64)).float()
    x, given = values.double(), 0.5 + torch.rand(n, generator=draw, dtype=torch.float64)
    if scaled:
        ref, size = away / away.norm(), x.norm(dim=1)
        factor, project, weight = 1 / size, x @ ref, given * size**2
        directions = (away + points) / (away + points).norm(dim=1)[:, None]
        cosine = directions @ ref
        beside = directions - cosine[:, None] * ref
    else:
        ref, factor, project, weight = away, torch.ones(n).double(), torch.ones(n).double(), given
        beside, cosine = points, torch.zeros(k).double()
    factor, project = factor.float().double(), project.float().double()
    along, framed = factor * project, factor[:, None] * (x - project[:, None] * ref)
    inner, sq, rest_sq = framed @ beside.T, framed.square().sum(1), beside.square().sum(1)
    parallel = torch.outer(along, cosine)
    full = inner + parallel if scaled else torch.ones_like(inner)
    turned = torch.outer(along**2, rest_sq) - inner * (parallel + full) if scaled else rest_sq - 2 * inner
    items = kernels.Items(*(each.float().to(DEVICE) for each in (factor, project, sq, weight)))
    offset = beside @ (ref - ref.float().double())
    centers = kernels.Centers(beside, cosine, rest_sq, offset)
    return Problem(values.to(DEVICE), items, centers, ref, scaled, framed, along, weight, full, sq[:, None] + turned)


def check(name, found, expected, close=CLOSE, size=None):
    found = found.cpu().double()
    error = float((found - expected).abs().max() / (expected.abs().max() if size is None else size))
    assert error <= close, f"{name}: {error:.1e} from what it should be, above {close:.0e}"


def sums_of(given, resp):
    """Mass, along and sums; in the frame of the rounded reference, which is what the kernels subtract."""
    mass, q = (resp * given.weight[:, None]).sum(0), resp * given.weight[:, None] * given.full
    along = q.T @ given.along
    lost = given.ref - given.ref.float().double()
    return mass, along, q.T @ given.framed + torch.outer(along, lost)


def check_soft(given, beta, tuning, close=CLOSE):
    log_mass = torch.log(torch.arange(1.0, 1 + given.full.shape[1], dtype=torch.float64))
    logits = log_mass - beta * given.distance
    log_z = torch.logsumexp(logits, 1)
    resp = torch.exp(logits - log_z[:, None])
    found = kernels.soft(given.values, given.items, given.centers, given.ref, given.scaled, beta, log_mass, tuning)
    for name, expected in zip(("mass", "along", "sums"), sums_of(given, resp), strict=True):
        check(name, getattr(found, name), expected, CLOSE_IN_PARTS if name == "sums" else close)
    spread = given.weight @ given.framed.square().sum(1)  # what distances are differences of
    check("log_partition", found.log_partition, given.weight @ log_z, close, given.weight @ log_z.abs() + beta * spread)
    check("distortion", found.distortion, given.weight @ (resp * given.distance).sum(1), close, spread)
    return found


def check_hard_sums(given, found, labels):
    one_hot = torch.nn.functional.one_hot(labels, given.full.shape[1]).double()
    for name, expected in zip(("mass", "along", "sums"), sums_of(given, one_hot), strict=True):
        check(name, getattr(found, name), expected, CLOSE_IN_PARTS if name == "sums" else CLOSE)
    own = given.distance.gather(1, labels[:, None])[:, 0]
    check("cost", found.cost, one_hot.T @ (given.weight * own), CLOSE, given.weight @ given.framed.square().sum(1))
    assert torch.equal(found.sizes.cpu(), one_hot.sum(0))


def check_hard(given, tuning):
    labels = given.distance.argmin(1)
    place = given.values, given.items, given.centers, given.ref, given.scaled
    before = labels.clone()
    before[::3] = (before[::3] + 1) % given.full.shape[1]
    found = kernels.hard(*place, before.int().to(DEVICE), tuning)
    assert torch.equal(found.labels.cpu().long(), labels)
    assert int(found.changed) == int((before != labels).sum())
    check_hard_sums(given, found, labels)


def check_two(given, labels, tuning):
    """The nearest two where no labels are given, else that of the label and the least of the others."""
    found = kernels.nearest_two(
        given.values, given.items, given.centers, given.ref, given.scaled, None if labels is None else labels.int().to(DEVICE), tuning
    )
    labels = given.distance.argmin(1) if labels is None else labels
    others = given.distance.scatter(1, labels[:, None], torch.inf)
    assert torch.equal(found[0].cpu().long(), labels)
    spread = given.framed.square().sum(1).max()
    check("first", found[1], given.distance.gather(1, labels[:, None])[:, 0].clamp(min=0), CLOSE, spread)
    check("second", found[2], others.amin(1).clamp(min=0), CLOSE, spread)


@pytest.fixture(autouse=True)
def spread(monkeypatch):
    """To the interpreter of Triton 3.9 a comparison of two numbers, spread over a tile, is one of integers, and no mask."""

    def as_it_is(builder, kind, number):
        return interpreter.TensorHandle(np.full(kind.shape, number.data.item(), number.data.dtype), number.dtype.scalar)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_splat", as_it_is)


# What fills no power of two, all sums in a program or cut in tiles, every number of products.
LAYOUTS = {
    "in a program": (301, 7, 5, kernels.Tuning(rows=32)),
    "three products": (301, 20, 18, kernels.Tuning(rows=64, terms=3)),
    "four products": (200, 16, 3, kernels.Tuning(rows=64, terms=4)),
    "one item": (1, 3, 1, kernels.Tuning()),
    "tiles of centres": (150, 128, 65, kernels.Tuning(rows=64, k_tile=32)),
    "tiles of centres and dimensions": (100, 200, 17, kernels.Tuning(rows=64, k_tile=16)),
    "tiles of dimensions, three products": (100, 200, 3, kernels.Tuning(rows=32, terms=3)),
}
each_layout = pytest.mark.parametrize(("n", "p", "k", "tuning"), LAYOUTS.values(), ids=LAYOUTS)
both_losses = pytest.mark.parametrize("scaled", [False, True], ids=["means", "lines"])


@each_layout
@both_losses
def test_sums_of_responsibilities_are_those_in_float64(n, p, k, tuning, scaled):
    given = problem(n, p, k, scaled)
    for beta in (0.3, 300.0) if scaled else (0.01, 3.0):
        check_soft(given, beta, tuning, 1e-5 if tuning.terms == 4 else CLOSE)


@each_layout
@both_losses
def test_labels_are_the_nearest_and_their_sums_those_in_float64(n, p, k, tuning, scaled):
    check_hard(problem(n, p, k, scaled), tuning)


@pytest.mark.parametrize(("n", "p", "k"), [(301, 7, 5), (100, 200, 3)])
@both_losses
def test_sums_of_given_labels_are_those_in_float64(n, p, k, scaled):
    given, labels = problem(n, p, k, scaled), torch.arange(n) % k
    check_hard_sums(given, kernels.labelled(given.values, given.items, given.centers, given.ref, scaled, labels.int().to(DEVICE)), labels)


@pytest.mark.parametrize("p", [5, 200])
def test_ties_go_to_the_lowest_index_and_first_labels_have_all_changed(p):
    """In a program and in tiles, of which two may tie."""
    given = problem(200, p, 10, False)
    twice = kernels.Centers(*(torch.cat([each, each]) for each in given.centers))
    found = kernels.hard(given.values, given.items, twice, given.ref, False, None, kernels.Tuning(rows=32, k_tile=16))
    assert torch.equal(found.labels.cpu().long(), given.distance.argmin(1))
    assert int(found.changed) == 200


@both_losses
def test_sums_by_label_are_those_of_components_of_any_number_of_runs(scaled):
    """Of several runs of sorted items, of one, and of none."""
    given = problem(3 * kernels.RUN_ITEMS, 3, 4, scaled)
    labels = torch.zeros(len(given.values), dtype=torch.int64)
    labels[::5], labels[7] = 3, 1
    place = given.values, given.items, given.centers, given.ref, scaled
    check_hard_sums(given, kernels.labelled(*place, labels.int().to(DEVICE)), labels)


@pytest.mark.parametrize(
    ("n", "p", "k", "tuning"), [(150, 20, 37, kernels.Tuning(rows=64, terms=3)), (64, 128, 100, kernels.Tuning(rows=64, k_tile=32))]
)
@both_losses
def test_distances_are_to_the_nearest_two_centres_or_to_that_of_a_label_and_the_next(n, p, k, tuning, scaled):
    given = problem(n, p, k, scaled)
    check_two(given, None, tuning)
    check_two(given, torch.arange(n) % k, tuning)


def test_beside_one_centre_there_is_no_other():
    given = problem(20, 3, 1, False)
    assert torch.isinf(kernels.nearest_two(given.values, given.items, given.centers, given.ref, False, None)[2]).all()


@pytest.mark.parametrize("n_dims", [1, 5, 200])
def test_keys_are_those_of_the_rows_of_an_array_and_zero_of_either_sign_is_the_same(n_dims):
    values = torch.randn((70, n_dims), generator=torch.Generator().manual_seed(0))
    values[::7], values[3::7] = 0.0, -0.0
    for numbers in (values, values.double()):
        expected = DenseRawRows((numbers * 0.125).numpy()).keys().view("int64")
        multiplied = torch.from_numpy(multipliers(n_dims).view("int64")).to(DEVICE)
        assert torch.equal(kernels.keys(numbers.to(DEVICE), 0.125, multiplied).cpu(), torch.from_numpy(expected))


@pytest.mark.parametrize("mean", [100.0, 1000.0])
@both_losses
def test_what_is_far_from_the_origin_cancels_nothing(scaled, mean):
    check_soft(problem(300, 24, 6, scaled, mean=mean), 24 * mean**2 if scaled else 1.0, kernels.Tuning(), 1e-5)


def test_results_repeat_bit_for_bit():
    given = problem(700, 24, 6, True)
    one, two = (check_soft(given, 30.0, kernels.Tuning(rows=32)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_passes_of_an_engine_find_what_those_on_arrays_do(scaling, monkeypatch):
    """Every pass that has a kernel."""
    monkeypatch.setattr(TorchEngine, "_has_kernels", True)
    X, weight = groups(7)
    plain, far = (kind(X.astype(np.float32), weight, team=ThreadTeam(1)) for kind in (DenseEngine, TorchEngine))
    frame, seen = REGISTRY["frobenius", scaling].of(plain), set()
    for work, columns in works(frame, plain).values():
        if type(work) not in fused.KERNELS:
            continue
        seen.add(type(work))
        found, expected = (engine.run(frame, work, {each: engine.hold(of) for each, of in columns.items()}) for engine in (far, plain))
        assert_same(found, expected, 2e-5)
    assert seen == set(fused.KERNELS)
    assert_array_equal(far.run(None, Keys()).columns["key"].host(), plain.run(None, Keys()).columns["key"])


@pytest.mark.long
def test_all_kernels_compile_for_hopper(tmp_path):
    """In a process that does not interpret them, without a GPU: whether they compile depends on the version of Triton."""
    environ = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environ |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TRITON_CACHE_DIR": str(tmp_path)}
    script = Path(__file__).with_name("hopper_compiled.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    by_hand = {"soft_fused", "hard_fused", "normalizers", "soft_tiles", "nearest", "nearest_two"}
    assert set(done.stdout.split()) >= by_hand | {f"_{name}" for name in by_hand} | {"_own", "_of_runs", "_joined", "_keys"}
