"""A run is a value: written down after any stage and read again, it leads to the same bits."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orthonmf import ONMF
from orthonmf.engines import ThreadTeam
from orthonmf.engines.layout import Layout
from orthonmf.progress import Monitor
from orthonmf.search import job as jobs
from orthonmf.search import refine, stages
from orthonmf.search.budget import BUDGET
from orthonmf.search.factorize import Progress, factorize
from orthonmf.search.run import Stage

PROBLEMS = {
    "given": {"n_components": 5},
    "means": {"n_components": 5, "scaling": "none"},
    "auto": {"max_components": 8},
    "persistence": {"n_components": "persistence", "max_components": 8},
    "annealed": {"n_components": 4, "refine": False},
    "bounds": {"n_components": 5, "capacity": 15, "min_size": 5},
    "soft": {"n_components": 3, "capacity": 17, "capacity_penalty": 0.1},
    "flow": {"n_components": 3, "capacity": 25, "solver": "cbf"},
    "wide": {"n_components": 3},
}
QUICK = ("given", "auto", "bounds", "annealed", "wide")


def data(name):
    rng = np.random.default_rng(0)
    n_items, n_dims = (20, 60) if name == "wide" else (60, 5)
    return np.maximum(rng.gamma(2, 1, (4, n_dims))[rng.integers(4, size=n_items)] + 0.5 * rng.standard_normal((n_items, n_dims)), 0)


def fresh(name):
    """An engine and a request, as in another process."""
    model, team = ONMF(**PROBLEMS[name]), ThreadTeam(1)
    engine = Layout("samples", "dense").build(data(name), None, team)
    return engine, model._request(engine, float(engine.n_items))


def assert_same(one, other):
    assert_array_equal(one.centers, other.centers)
    assert_array_equal(one.labels, other.labels)
    assert_array_equal(one.critical_betas, other.critical_betas)
    assert_array_equal(one.plane, other.plane)
    assert_array_equal(one.stability, other.stability)
    assert (one.status, one.sentences, one.splits, one.kkt_residual) == (other.status, other.sentences, other.splits, other.kkt_residual)
    assert len(one.temperatures) == len(other.temperatures)
    for before, after in zip(one.temperatures, other.temperatures, strict=True):
        assert before.beta == after.beta
        assert_array_equal(before.centers, after.centers)


def written(name):
    """The run after every stage, as bytes."""
    engine, request = fresh(name)
    with engine.team:
        job = jobs.Job.of(engine, request)
        return [pickle.dumps(run) for run in stages.stages(job, stages.begun(job, Monitor()))]


@pytest.fixture
def small_samples(monkeypatch):
    """Samples that are searched even where there are few items."""
    few = {"search_items": (15, 30, 45), "bounded_search_items": 32}
    for module in (stages, refine):
        monkeypatch.setattr(module, "BUDGET", BUDGET.__class__(**few))


def whole_and_runs(name):
    """What a fit finds in one go, and the run after every stage as another process reads it."""
    engine, request = fresh(name)
    with engine.team:
        whole = factorize(engine, request, Monitor())
    runs = [pickle.loads(run) for run in written(name)]
    assert len(runs) >= 3
    assert runs[-1].stage is Stage.DONE
    return whole, runs


def continued(name, run):
    engine, request = fresh(name)
    with engine.team:
        return factorize(engine, request, Monitor(), Progress(run, 0, 0))


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in PROBLEMS])
def test_continued_after_any_stage(small_samples, name):
    whole, runs = whole_and_runs(name)
    for run in runs:
        assert_same(continued(name, run), whole)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in QUICK])
def test_continued_after_the_stage_in_the_middle(small_samples, name):
    whole, runs = whole_and_runs(name)
    assert_same(continued(name, runs[len(runs) // 2]), whole)


def test_what_was_done_is_not_done_again(monkeypatch):
    annealed = pickle.loads(written("given")[1])
    assert annealed.stage is Stage.PLACES
    monkeypatch.setattr(stages, "Annealing", None)
    engine, request = fresh("given")
    with engine.team:
        assert len(factorize(engine, request, Monitor(), Progress(annealed, 0, 0)).centers) == 5
    with engine.team, pytest.raises(TypeError):  # from the start it anneals
        factorize(engine, request, Monitor())


def test_no_stage_changes_a_run(small_samples):
    engine, request = fresh("bounds")
    with engine.team:
        job = jobs.Job.of(engine, request)
        kept, before = [], []
        for run in stages.stages(job, stages.begun(job, Monitor())):
            kept.append(run)
            before.append(pickle.dumps(run))
        assert [pickle.dumps(run) for run in kept] == before
    assert Stage.SAMPLES in {run.stage for run in kept}
