"""Milliseconds and errors of the Triton kernels on a GPU as they are laid out by default, beside plain torch.

Run as ``python benchmarks/_gpu_kernels.py [all | SHAPE ...]``.

The package is read from ``src`` beside this file. Data are drawn on the device; errors are against float64, in chunks, on the device too.
"""

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import torch
from triton.testing import do_bench

from orthonmf.engines import triton as kernels
from orthonmf.engines.base import multipliers
from orthonmf.engines.dense import DenseRawRows
from orthonmf.engines.triton import Centers, Items

CHUNK = 1 << 17
# Seconds after which nothing more is begun.
BUDGET = 100.0
BEGUN = time.perf_counter()
# n, p and k.
SHAPES = {
    "k20": (10_000_000, 64, 20),
    "k128": (10_000_000, 64, 128),
    "k1024": (10_000_000, 128, 1024),
}
# The same where only errors are of interest: wide items, tiles of few centres, and what fills no power of two.
CHECKED = [(1 << 18, *sides) for sides in ((512, 256), (512, 1024), (100, 200), (50, 30))]


def say(*words):
    print(*words, flush=True)


def made(n, p, k, scaled, *, mean=2.0):
    """X, and what the kernels are given: clouds about a mean that is ``mean`` times their width."""
    torch.manual_seed(0)
    points = 0.3 * torch.randn((k, p), device="cuda", dtype=torch.float64)  # clouds that overlap
    away = mean * (1 + torch.rand(p, device="cuda", dtype=torch.float64))
    values = torch.empty((n, p), device="cuda")
    factor, project, sq = (torch.ones(n, device="cuda") for _ in range(3))
    ref = away / away.norm() if scaled else away
    weight = 0.5 + torch.rand(n, device="cuda")
    for at in range(0, n, CHUNK):
        few = slice(at, min(n, at + CHUNK))
        size = few.stop - at
        labels = torch.randint(k, (size,), device="cuda")
        values[few] = (away + points[labels]).float() + torch.randn((size, p), device="cuda")
        x = values[few].double()
        if scaled:
            factor[few], project[few] = 1 / x.norm(dim=1), x @ ref
            weight[few] *= x.norm(dim=1) ** 2 / float(away.norm() ** 2)
        sq[few] = framed(x, factor[few], project[few], ref).square().sum(1)
    if scaled:
        directions = (away + points) / (away + points).norm(dim=1)[:, None]
        cosine = directions @ ref
        beside = directions - cosine[:, None] * ref
    else:
        beside, cosine = points, torch.zeros(k, dtype=torch.float64, device="cuda")
    offset = beside @ (ref - ref.float().double())
    centers = Centers(*(each.cpu() for each in (beside, cosine, beside.square().sum(1), offset)))
    return values, Items(factor, project, sq, weight), centers, ref, scaled


def framed(x, factor, project, ref):
    return (x - project.double()[:, None] * ref) * factor.double()[:, None]


def in_chunks(problem, n):
    """x', s, ω, x̂·u and d of the first n items in float64, some at a time."""
    values, items, centers, ref, scaled = problem
    beside, cosine, rest_sq, _ = (each.cuda() for each in centers)
    for at in range(0, n, CHUNK):
        few = slice(at, min(n, at + CHUNK))
        factor, project, _, weight = (each[few].double() for each in items)
        x, along = framed(values[few].double(), factor, project, ref), factor * project
        inner, sq = x @ beside.T, x.square().sum(1)
        parallel = torch.outer(along, cosine)
        full = inner + parallel
        turned = torch.outer(along**2, rest_sq) - inner * (parallel + full) if scaled else rest_sq - 2 * inner
        yield x, along, weight, full if scaled else torch.ones_like(full), sq[:, None] + turned


def exact_soft(problem, n, beta, log_mass):
    mass = sums = free = cost = 0.0
    for x, _, weight, full, distance in in_chunks(problem, n):
        logits = log_mass.cuda() - beta * distance
        log_z = torch.logsumexp(logits, 1)
        resp = torch.exp(logits - log_z[:, None]) * weight[:, None]
        mass, sums = mass + resp.sum(0), sums + (resp * full).T @ x
        free, cost = free + weight @ log_z, cost + (resp * distance).sum()
    return mass, sums, free, cost


def exact_hard(problem, n, labels=None):
    mass, sums, cost, at = 0.0, 0.0, 0.0, 0
    for x, _, weight, full, distance in in_chunks(problem, n):
        own = (distance.argmin(1) if labels is None else labels[at : at + len(x)].long())[:, None]
        resp = torch.zeros_like(distance).scatter_(1, own, weight[:, None])
        mass, sums, cost = mass + resp.sum(0), sums + (resp * full).T @ x, cost + weight @ distance.gather(1, own)[:, 0]
        at += len(x)
    return mass, sums, cost


def error(found, expected):
    return float((found - expected).abs().max() / expected.abs().max())


def corrected(found, ref):
    return found.sums - torch.outer(found.along, ref - ref.float().double())


def soft_errors(problem, n, beta, log_mass, tuning=None):
    found = kernels.soft(*few(problem, n), beta, log_mass, tuning)
    mass, sums, free, cost = exact_soft(problem, n, beta, log_mass)
    errors = error(found.mass, mass), error(corrected(found, problem[3]), sums), error(found.log_partition, free)
    return "mass {:.1e} sums {:.1e} free {:.1e} cost {:.1e}".format(*errors, error(found.distortion, cost))


def hard_errors(problem, n, labels=None):
    found = kernels.hard(*few(problem, n), None) if labels is None else kernels.labelled(*few(problem, n), labels[:n])
    mass, sums, cost = exact_hard(problem, n, labels)
    errors = error(found.mass, mass), error(corrected(found, problem[3]), sums), error(found.cost.sum(), cost)
    return "mass {:.1e} sums {:.1e} cost {:.1e}".format(*errors)


def two_errors(problem, n, labels=None):
    """Labels that are not the nearest, and errors of both distances beside the mean one."""
    found = kernels.nearest_two(*few(problem, n), None if labels is None else labels[:n])
    wrong, at, worst = 0, 0, [0.0, 0.0]
    for _, _, _, _, distance in in_chunks(problem, n):
        few_at = slice(at, at + len(distance))
        own = distance.argmin(1) if labels is None else labels[few_at].long()
        first = distance.gather(1, own[:, None])[:, 0]
        second = distance.scatter(1, own[:, None], torch.inf).amin(1)
        wrong += int((found[0][few_at] != own).sum())
        errors = [float((one[few_at] - two).abs().max() / two.mean()) for one, two in zip(found[1:], (first, second), strict=True)]
        worst, at = [max(pair) for pair in zip(worst, errors, strict=True)], few_at.stop
    return "wrong {} of {} first {:.1e} second {:.1e}".format(wrong, n, *worst)


def keys_agree(values, scale, words):
    n = 1 << 14
    return bool(
        (kernels.keys(values[:n], scale, words).cpu().numpy() == DenseRawRows(values[:n].cpu().numpy() * scale).keys().view("int64")).all()
    )


def few(problem, n):
    values, items, *rest = problem
    return values[:n], Items(*(each[:n] for each in items)), *rest


def milliseconds(call, rep=60):
    return do_bench(call, warmup=20, rep=rep, return_mode="median")


def tried(name, call):
    """What a call says; a layout that cannot be compiled is passed over."""
    begun = time.perf_counter()
    try:
        told = call()
    except Exception as failure:
        told = f"FAILED {type(failure).__name__}: {str(failure).strip().splitlines()[0][:150] if str(failure).strip() else ''}"
    say(f"  {name:<72} {told}   [{time.perf_counter() - begun:.1f} s]")


def plain_soft(problem, beta, log_mass):
    """The pass in torch, the items in chunks that fit."""
    values, items, centers, ref, scaled = problem
    beside, cosine, rest_sq, _ = (each.float().cuda() for each in centers)
    log_mass, ref = log_mass.float().cuda(), ref.float()
    k, n = len(beside), len(values)
    size = max(1, (1 << 28) // max(k, 64))
    mass, sums, free = torch.zeros(k, device="cuda"), torch.zeros_like(beside), 0.0
    for at in range(0, n, size):
        s = slice(at, min(n, at + size))
        factor, project, sq, weight = (each[s] for each in items)
        x = torch.addcmul(values[s], project[:, None], ref[None], value=-1) * factor[:, None]
        along, inner = factor * project, x @ beside.T
        parallel = torch.outer(along, cosine)
        full = inner + parallel
        turned = torch.outer(along**2, rest_sq) - inner * (parallel + full) if scaled else rest_sq - 2 * inner
        logits = log_mass - beta * (turned + sq[:, None])
        log_z = torch.logsumexp(logits, 1)
        resp = torch.exp(logits - log_z[:, None]) * weight[:, None]
        mass += resp.sum(0)
        free += torch.dot(weight, log_z)
        sums += (resp * full if scaled else resp).T @ x
    return mass, sums, free


def flash(problem):
    """The assignment alone of a public fused k-means, where it can be imported."""
    from flash_kmeans.assign_euclid_triton import euclid_assign_triton

    values, items, centers, *_ = problem
    beside = centers.beside.float().cuda()[None].contiguous()
    return milliseconds(lambda: euclid_assign_triton(values[None], beside, items.sq[None]))


def run(name):
    n, p, k = SHAPES[name]
    say(f"== {name}: {n} x {p}, k = {k}; reading X: {reading(n, p):.2f} ms (torch sum)")
    for scaled in (False, True):
        if time.perf_counter() - BEGUN < BUDGET:
            run_loss(name, scaled)
        torch.cuda.empty_cache()


def reading(n, p):
    values = torch.empty((n, p), device="cuda")
    return milliseconds(lambda: values.sum())


def run_loss(name, scaled):
    n, p, k = SHAPES[name]
    log_mass = torch.log(torch.arange(1.0, 1 + k, dtype=torch.float64))
    repeats, checked = 60 if k < 1024 else 200, 1 << 20
    problem = made(n, p, k, scaled)
    labels = torch.randint(k, (n,), device="cuda", dtype=torch.int32)
    # Some clouds in one, others apart: about the critical value.
    beta = 0.1 * 9 * p if scaled else 0.1
    loss = "lines" if scaled else "means"

    def line(what, call, errors):
        tried(f"{what} {loss}", lambda: f"{milliseconds(call, repeats):7.3f} ms  {errors()}")

    line("soft", lambda: kernels.soft(*problem, beta, log_mass), lambda: soft_errors(problem, checked, beta, log_mass))
    line("hard", lambda: kernels.hard(*problem, None), lambda: hard_errors(problem, checked))
    line("labelled", lambda: kernels.labelled(*problem, labels), lambda: hard_errors(problem, checked, labels))
    line("nearest two", lambda: kernels.nearest_two(*problem, None), lambda: two_errors(problem, checked))
    line("own and next", lambda: kernels.nearest_two(*problem, labels), lambda: two_errors(problem, checked, labels))
    repeats_exactly(problem, beta, log_mass, labels)
    if scaled:
        return
    for said, tuning in others(p, k).items():
        line(
            f"soft of {said}",
            lambda t=tuning: kernels.soft(*problem, beta, log_mass, t),
            lambda t=tuning: soft_errors(problem, checked, beta, log_mass, t),
        )
    words = torch.from_numpy(multipliers(p).view("int64")).cuda()
    line("keys", lambda: kernels.keys(problem[0], 0.125, words), lambda: f"equal {keys_agree(problem[0], 0.125, words)}")
    tried("plain torch soft", lambda: f"{milliseconds(lambda: plain_soft(problem, beta, log_mass), repeats):7.3f} ms")
    tried("flash_kmeans assignment", lambda: f"{flash(problem):7.3f} ms")


def others(p, k):
    """What the default is not."""
    usual = kernels.usual(p, k)
    few = {"3 programs": usual._replace(programs=3, registers=168)} if usual.warps == 4 else {}
    return few | {"4 terms": usual._replace(terms=4)}


def repeats_exactly(problem, beta, log_mass, labels):
    calls = (
        lambda: kernels.soft(*problem, beta, log_mass),
        lambda: kernels.hard(*problem, labels),
        lambda: kernels.labelled(*problem, labels),
    )
    same = [all(torch.equal(a, b) for a, b in zip(call(), call(), strict=True)) for call in calls]
    say("  soft, hard and labelled repeat bit for bit:", *same)


def accuracy():
    """Errors at several β, near and far from the origin, on 4 million items; and of shapes that are cut otherwise."""
    n, p, k = 1 << 22, 64, 20
    log_mass = torch.log(torch.arange(1.0, 1 + k, dtype=torch.float64))
    for mean in (2.0, 100.0):
        for scaled in (False, True):
            problem = made(n, p, k, scaled, mean=mean)
            size = 1.0 if not scaled else float((mean * 1.5) ** 2 * p)
            for times in (1.0, 10.0, 1000.0):
                said = f"errors {'lines' if scaled else 'means'} mean/dev {mean:.0f} beta x {times:.0f}"
                tried(said, lambda x=problem, b=0.46 * times * size: soft_errors(x, n, b, log_mass))
            tried("errors hard", lambda x=problem: hard_errors(x, n))
    for n, p, k in CHECKED:
        for scaled in (False, True):
            if time.perf_counter() - BEGUN < BUDGET:
                check_shape(n, p, k, scaled)


def check_shape(n, p, k, scaled):
    problem = made(n, p, k, scaled)
    log_mass, beta = torch.log(torch.arange(1.0, 1 + k, dtype=torch.float64)), 0.1 * 9 * p if scaled else 0.1
    labels = torch.randint(k, (n,), device="cuda", dtype=torch.int32)
    said = f"{n} x {p}, k = {k} {'lines' if scaled else 'means'}"
    tried(f"{said} soft", lambda: soft_errors(problem, n, beta, log_mass))
    tried(f"{said} soft beta x 1000", lambda: soft_errors(problem, n, 1000 * beta, log_mass))
    tried(f"{said} hard", lambda: hard_errors(problem, n))
    tried(f"{said} labelled", lambda: hard_errors(problem, n, labels))
    tried(f"{said} nearest two", lambda: two_errors(problem, n))


def compiled():
    """Compile all kernels, of every shape and loss in a process of its own: Triton keeps them on disk."""
    sides = {each[1:] for each in [*SHAPES.values(), *CHECKED]}
    told = [[str(p), str(k), str(int(scaled))] for p, k in sorted(sides) for scaled in (False, True)]
    for process in [subprocess.Popen([sys.executable, __file__, "compile", *each]) for each in told]:
        process.wait()
    say(f"compiled: {time.perf_counter() - BEGUN:.0f} s")


def called(p, k, scaled):
    """Every kernel of a shape once, on few items."""
    problem, log_mass = made(1 << 11, p, k, scaled), torch.zeros(k, dtype=torch.float64)
    labels = torch.zeros(1 << 11, device="cuda", dtype=torch.int32)
    for call in (
        lambda: kernels.soft(*problem, 1.0, log_mass),
        lambda: kernels.hard(*problem, None),
        lambda: kernels.hard(*problem, labels),
        lambda: kernels.labelled(*problem, labels),
        lambda: kernels.nearest_two(*problem, None),
        lambda: kernels.nearest_two(*problem, labels),
    ):
        with suppress(Exception):
            call()


if __name__ == "__main__":
    if sys.argv[1:2] == ["compile"]:
        called(int(sys.argv[2]), int(sys.argv[3]), bool(int(sys.argv[4])))
        sys.exit()
    device = torch.cuda.get_device_properties(0)
    say(f"{device.name}, {device.multi_processor_count} multiprocessors; torch {torch.__version__}")
    everything = [*SHAPES, "accuracy"]
    compiled()
    for shape in everything if sys.argv[1:] in ([], ["all"]) else sys.argv[1:]:
        accuracy() if shape == "accuracy" else run(shape)
    say(f"all: {time.perf_counter() - BEGUN:.0f} s")
