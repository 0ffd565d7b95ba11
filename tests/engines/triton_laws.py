"""Laws of the Triton kernels, checked one by one: ``python triton_laws.py LAW ...``."""

import sys
from typing import NamedTuple

import torch

from orthonmf.engines import triton as kernels
from orthonmf.engines.base import multipliers
from orthonmf.engines.dense import DenseRawRows

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
    assert int(kernels.hard(*place, None, tuning).changed) == len(labels)
    check_hard_sums(given, found, labels)
    check_hard_sums(given, kernels.labelled(*place, before.int().to(DEVICE), tuning), before)


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


def both(n, p, k, **tuning):
    for scaled in (False, True):
        given = problem(n, p, k, scaled)
        for beta in (0.3, 300.0) if scaled else (0.01, 3.0):
            check_soft(given, beta, kernels.Tuning(**tuning), 1e-5 if tuning.get("terms") == 4 else CLOSE)
        check_hard(given, kernels.Tuning(**tuning))


def small():
    """All sums in the registers of a program; dimensions and centres that fill no power of two."""
    both(301, 7, 5, rows=32)
    both(301, 20, 18, rows=64, terms=3)
    both(200, 16, 3, rows=64, terms=4)
    both(1, 3, 1)


def tiles():
    """Sums cut by centres."""
    both(150, 128, 100, rows=64, k_tile=32)


def wide():
    """Sums cut by dimensions too."""
    both(100, 200, 37, rows=64, k_tile=32)
    both(100, 200, 3, rows=32, terms=3)


def ties():
    """Of equally near centres the first."""
    given = problem(200, 5, 4, False)
    twice = kernels.Centers(*(torch.cat([each, each]) for each in given.centers))
    found = kernels.hard(given.values, given.items, twice, given.ref, False, None, kernels.Tuning(rows=32))
    assert torch.equal(found.labels.cpu().long(), given.distance.argmin(1))


def runs():
    """Components of several runs of sorted items, of one, and of none."""
    for scaled in (False, True):
        given = problem(3 * kernels.RUN_ITEMS, 3, 4, scaled)
        labels = torch.zeros(len(given.values), dtype=torch.int64)
        labels[::5], labels[7] = 3, 1
        place = given.values, given.items, given.centers, given.ref, scaled
        check_hard_sums(given, kernels.labelled(*place, labels.int().to(DEVICE)), labels)


def two():
    """Distances to the nearest two centres, and to that of a label and the next."""
    for scaled in (False, True):
        for n, p, k, tuning in ((150, 20, 37, kernels.Tuning(rows=64, terms=3)), (64, 128, 100, kernels.Tuning(rows=64, k_tile=32))):
            given = problem(n, p, k, scaled)
            check_two(given, None, tuning)
            check_two(given, torch.arange(n) % k, tuning)
    place = problem(20, 3, 1, False)
    assert torch.isinf(kernels.nearest_two(place.values, place.items, place.centers, place.ref, False, None)[2]).all()


def words():
    """Keys are those of the rows of an array, bit for bit, and 0 of either sign is the same."""
    draw = torch.Generator().manual_seed(0)
    for n_dims in (1, 5, 200):
        values = torch.randn((70, n_dims), generator=draw)
        values[::7], values[3::7] = 0.0, -0.0
        for numbers in (values, values.double()):
            expected = DenseRawRows((numbers * 0.125).numpy()).keys().view("int64")
            multiplied = torch.from_numpy(multipliers(n_dims).view("int64")).to(DEVICE)
            assert torch.equal(kernels.keys(numbers.to(DEVICE), 0.125, multiplied).cpu(), torch.from_numpy(expected))


def far():
    """A mean that is a hundred or a thousand times the width."""
    for scaled in (False, True):
        for mean in (100.0, 1000.0):
            given = problem(300, 24, 6, scaled, mean=mean)
            check_soft(given, (24 * mean**2 if scaled else 1.0), kernels.Tuning(), 1e-5)


def repeat():
    """The same bits."""
    given = problem(700, 24, 6, True)
    one, two = (check_soft(given, 30.0, kernels.Tuning(rows=32)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


if __name__ == "__main__":
    for law in sys.argv[1:]:
        globals()[law]()
