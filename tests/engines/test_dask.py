"""A cluster changes no bit: not by the number of its workers, not by their order, not by their deaths."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import count, pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.clusters import part_deaths, part_memory
from orthonmf import ONMF
from orthonmf.distortion.euclidean import Euclidean
from orthonmf.engines import ThreadTeam, layout, remote
from orthonmf.engines import dask as dask_engine
from orthonmf.engines.base import in_chunks
from orthonmf.engines.threads import TimeLimitReached
from orthonmf.exceptions import DistributedFitError, DistributedWarning, InvalidInputError
from orthonmf.passes.columns import Relabelled
from orthonmf.passes.hard import Nearer
from orthonmf.search.bounded.assigner import Bounded, ItemCosts
from orthonmf.search.bounded.assignment import HeldCosts
from orthonmf.search.budget import BUDGET
from orthonmf.search.partition import opened
from orthonmf.sources import chunked
from orthonmf.sources import cluster as cluster_module
from tests.engines.clusters import clouds, deaths, loading, local_cluster

LENGTHS = (3_000, 9_000, 1, 7_999)
FOUND = ("components_", "labels_", "scale_", "margin_", "counts_", "critical_betas_")


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        yield client


@pytest.fixture(autouse=True)
def far(monkeypatch):
    """Data of some thousand items are searched as millions are: on samples, and none come to this process because they are few."""
    monkeypatch.setattr(dask_engine, "FEW_BYTES", 0)
    before = {name: getattr(BUDGET, name) for name in ("many_items", "merge_numbers")}
    for name in before:
        object.__setattr__(BUDGET, name, 5000)
    yield
    for name, value in before.items():
        object.__setattr__(BUDGET, name, value)


@pytest.fixture
def no_client(monkeypatch):
    """As where the user has made none."""
    monkeypatch.setattr(cluster_module, "_client", lambda: None)
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture
def stored(tmp_path):
    np.save(tmp_path / "X.npy", clouds())
    return loading(tmp_path / "X.npy", LENGTHS)


def fitted_here(X, lengths, monkeypatch, weight=None, **parameters):
    """The fit of an engine of one machine that sees the same chunks."""
    build = layout.Layout.build
    with monkeypatch.context() as patch:
        borders = np.append(0, np.cumsum(lengths))
        patch.setattr(layout.Layout, "build", lambda *args, **options: in_chunks(build(*args, **options), borders))
        return ONMF(**parameters).fit(X, sample_weight=weight)


def assert_same(one, other):
    for name in FOUND:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert str(one.certificate_) == str(other.certificate_)
    assert (one.status_, one.n_iter_, one.data_digest_) == (other.status_, other.n_iter_, other.data_digest_)


MODELS = {
    "lines": {"n_components": 3},
    "means, weighted": {"n_components": 3, "scaling": "none"},
    "capacity": {"n_components": 3, "capacity": 7_000},
    "the data decide": {"max_components": 4},
    "compiled": {"n_components": 3, "engine": "compiled"},
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("held", ["loaded by every task", "held by the workers"])
@pytest.mark.parametrize("name", MODELS)
def test_the_bits_of_one_machine_with_the_same_chunks(client, stored, name, held, monkeypatch):
    weight = np.random.default_rng(0).gamma(1.0, 1.0, stored.shape[0]) if "weighted" in name else None
    parameters = {"engine": "dense", **MODELS[name]}
    expected = fitted_here(clouds(), LENGTHS, monkeypatch, weight, **parameters)
    assert_same(ONMF(**parameters).fit(stored if held.startswith("loaded") else stored.persist(), sample_weight=weight), expected)


def test_assignments_of_more_items_than_costs_are_held_of(client, stored, monkeypatch):
    """What labels are worth is found by the workers, to the same bits."""
    monkeypatch.setattr(Bounded, "_kinds", (ItemCosts, HeldCosts, 0))
    parameters = {"engine": "dense", **MODELS["capacity"]}
    assert_same(ONMF(**parameters).fit(stored), fitted_here(clouds(), LENGTHS, monkeypatch, **parameters))


@pytest.mark.parametrize("capacity", [None, 7_000])
def test_sparse_chunks(client, capacity, monkeypatch):
    X = clouds()
    X[np.random.default_rng(3).random(X.shape) < 0.3] = 0
    X = sp.csr_array(X)
    lengths = (8_000, 0, 12_000)
    borders = np.append(0, np.cumsum(lengths))
    parts = [X[start:stop] for start, stop in pairwise(borders)]
    chunks = [da.from_delayed(dask.delayed(part), part.shape, part.dtype, meta=sp.csr_array((0, 0))) for part in parts]
    model = ONMF(3, engine="sparse", capacity=capacity).fit(da.concatenate(chunks))
    assert_same(model, fitted_here(X, (8_000, 12_000), monkeypatch, n_components=3, engine="sparse", capacity=capacity))


@pytest.mark.parametrize("weighted", [False, True])
def test_features_in_chunks_of_columns(client, weighted, monkeypatch):
    X = np.ascontiguousarray(clouds(15_000, 10).T)
    weight = np.random.default_rng(0).integers(0, 3, len(X)) if weighted else None
    parameters = {"n_components": 3, "orthogonal": "features", "engine": "dense"}
    model = ONMF(**parameters).fit(da.from_array(X, chunks=(10, (9_000, 6_000))), sample_weight=weight)
    assert_same(model, fitted_here(X, (9_000, 6_000), monkeypatch, weight, **parameters))
    by_columns, by_rows = (model.transform(da.from_array(X, chunks=chunks)) for chunks in ((10, 9_000), (4, 15_000)))
    assert_allclose(by_columns, model.transform(X), rtol=1e-5)
    assert_allclose(by_rows.compute(), model.transform(X), rtol=1e-5)


def test_without_a_client_the_threads_of_dask_compute(no_client, stored, monkeypatch):
    assert_same(ONMF(3, engine="dense").fit(stored), fitted_here(clouds(), LENGTHS, monkeypatch, n_components=3, engine="dense"))


GRAPHS = {
    "cut": lambda X: X[1:],
    "cut anew": lambda X: X.rechunk((5_000, 8)),
    "masked": lambda X: X[X[:, 0] > 4],
    "from delayed": lambda X: da.concatenate(
        [da.from_delayed(each, (n, 8), X.dtype) for n, each in zip(LENGTHS, X.to_delayed()[:, 0], strict=True)]
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("clients", ["no_client", "client"])
def test_chunks_that_several_tasks_make(request, clients, stored, name, monkeypatch):
    request.getfixturevalue(clients)
    X = GRAPHS[name](stored)
    lengths = [len(each.compute()) for each in X.to_delayed()[:, 0]]
    expected = fitted_here(X.compute(), [n for n in lengths if n], monkeypatch, n_components=3, engine="dense")
    assert_same(ONMF(3, engine="dense").fit(X), expected)


@pytest.mark.parametrize("clients", ["no_client", "client"])
def test_chunks_computed_from_all_others_are_refused_unless_they_are_held(request, clients, stored):
    request.getfixturevalue(clients)
    many = stored.rechunk((1_000, 8))
    scaled = many / many.max(axis=0)
    with pytest.raises(InvalidInputError, match=r"computed from many others.*X = X\.persist\(\)"):
        ONMF(3).fit(scaled)
    assert ONMF(3, engine="dense").fit(scaled.persist()).n_components_ == 3


def test_numbers_of_the_client_are_sent_once(client):
    from distributed import Future

    X = da.from_array(clouds(), chunks=(5_000, 8)).map_blocks(lambda block: block + 1.0)
    assert all(isinstance(each, Future) for each in cluster_module.Cluster(X).blocks)


def test_a_fit_inside_a_task_is_refused(client):
    with pytest.raises(DistributedFitError, match="inside a task of dask"):
        client.submit(_fit_there).result()


def _fit_there():
    return ONMF(3).fit(da.ones((10, 3), chunks=(5, 3)))


def test_what_a_model_says_of_new_data_is_computed_when_it_is_asked_for(client, stored):
    X, model = clouds(), ONMF(3).fit(stored)
    expected = {"predict": model.predict(X), "transform": model.transform(X), "predict_proba": model.predict_proba(X)}
    for method, values in expected.items():
        found = getattr(model, method)(stored)
        assert isinstance(found, da.Array)
        assert found.chunks[0] == LENGTHS
        assert found.dtype == values.dtype
        assert_array_equal(found.compute(), values)
    assert model.score(stored) == pytest.approx(model.score(X), rel=1e-12)
    assert model.verify(stored).holds
    other = stored.map_blocks(lambda block: block[::-1])
    assert "digest" in model.verify(other).contradiction
    assert_array_equal(model.assign(stored[:900], capacity=400), model.assign(X[:900], capacity=400))


def test_data_frames_name_their_columns(client, monkeypatch):
    monkeypatch.undo()  # so few items come to this process
    frame = pd.DataFrame(clouds(3000, 4), columns=list("abcd"))
    chunks = dd.from_pandas(frame, npartitions=3)
    model = ONMF(3).fit(chunks)
    assert list(model.feature_names_in_) == list("abcd")
    assert_array_equal(model.predict(chunks).compute(), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(chunks[list("dcba")])


def test_chunks_of_unknown_length_and_whole_numbers(client, monkeypatch):
    monkeypatch.undo()  # so few items come to this process
    X = np.random.default_rng(0).poisson(3.0, (3000, 8))
    unknown = da.from_array(X, chunks=(1100, 8))
    unknown = unknown[unknown.sum(axis=1) >= 0]
    assert np.isnan(unknown.shape[0])
    assert_same(ONMF(3).fit(unknown), fitted_here(X, (1100, 1100, 800), monkeypatch, n_components=3))


# -- passes -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def rounds(monkeypatch):
    """What every pass was asked for: its name, how many chunks, and in which tasks their places came."""
    seen = []

    class Round(cluster_module._Round):
        def __init__(self, client, blocks, spread, name, function, calls, *rest):
            super().__init__(client, blocks, spread, name, function, calls, *rest)
            self.seen = (name, len(calls), [])
            seen.append(self.seen)

        def _submit(self, bundles):
            self.seen[2].extend(map(tuple, bundles))
            super()._submit(bundles)

    monkeypatch.setattr(cluster_module, "_Round", Round)
    return seen


def test_a_pass_has_no_more_tasks_than_chunks_and_columns_stay_with_the_workers(client, stored, rounds, monkeypatch):
    fetched = []
    fetch = dask_engine.DaskEngine.fetched
    monkeypatch.setattr(dask_engine.DaskEngine, "fetched", lambda self, recipe: (fetched.append(recipe), fetch(self, recipe))[1])
    ONMF(3, engine="dense").fit(stored)
    assert len(rounds) > 15
    assert all(len(tasks) <= n_calls <= len(LENGTHS) for _, n_calls, tasks in rounds)
    assert len(fetched) == 3  # labels, scales and margins of the fit, whatever the number of passes
    assert max(map(depth, fetched)) <= 6  # margins of labels and stored scales of the centres, however many passes there were


def depth(recipe):
    return 1 + max((depth(each) for each in recipe.columns.values() if isinstance(each, remote.Recipe)), default=0)


def test_recipes_do_not_grow_with_the_components_that_are_opened(client, stored, monkeypatch):
    recipes, answers = [], dask_engine.DaskEngine._answers

    def noted(self, recipe, **options):
        recipes.append(recipe)
        return answers(self, recipe, **options)

    monkeypatch.setattr(dask_engine.DaskEngine, "_answers", noted)
    with ThreadTeam(1) as team:
        engine = layout.Layout("samples", "dense").build(chunked.of(stored, "samples", "ONMF"), None, team)
        far = Euclidean.of(engine)
        here = in_chunks(layout.Layout("samples", "dense").build(clouds(), None, team), np.append(0, np.cumsum(LENGTHS)))
        assert_array_equal(opened(engine, far, far.origin, 9), opened(here, Euclidean(far.ref), far.origin, 9))
    opening = [each for each in recipes if isinstance(each.work, Nearer)]
    assert len(opening) == 9
    assert max(map(depth, opening)) == 2


def test_places_of_blocks_are_found_not_listed(client, stored):
    with ThreadTeam(1) as team:
        far = layout.Layout("samples", "dense").build(chunked.of(stored, "samples", "ONMF"), None, team)
        here = in_chunks(layout.Layout("samples", "dense").build(clouds(), None, team), np.append(0, np.cumsum(LENGTHS)))
        far._cut(700)
        here._cut(700)
    assert list(far.slices) == [far.slices[number] for number in range(len(far.slices))] == here.slices
    assert len(far.slices) == len(here.slices)
    assert not hasattr(far.slices, "append")


@pytest.mark.parametrize("values", [np.arange(300), np.zeros(0, np.intp), np.array([-1, 2]), np.array([0.5]), np.array([1], np.uint64)])
def test_numbers_are_the_same_after_a_journey(values):
    there = remote.unpacked(remote.packed(values))
    assert there.dtype == values.dtype
    assert_array_equal(there, values)
    assert remote.packed(np.arange(20)).itemsize == 1


def test_under_bounds_whole_numbers_travel_in_a_byte_and_columns_alone_not_at_all(client, stored, rounds, monkeypatch):
    travelled, taken = {}, cluster_module._Round._gathered

    def gathered(self, tasks):
        found = taken(self, tasks)
        for answers in found:
            for each in answers if isinstance(answers, list) else ():
                for name, values in getattr(each, "columns", {}).items():
                    travelled.setdefault((self.seen[0], name), set()).add(values.itemsize)
        return found

    monkeypatch.setattr(cluster_module._Round, "_gathered", gathered)
    ONMF(3, engine="dense", capacity=7_000).fit(stored)
    assert {name for name, *_ in rounds}.isdisjoint({"renamed", "relabelled", "bylabel", "converted", "signs"})
    assert travelled["nearest", "labels"] == {1}


@pytest.mark.parametrize("seed", [0])
def test_two_looks_for_nearer_centers_are_one(seed):
    rng = np.random.default_rng(seed)
    first, then, last = (Nearer(rng.standard_normal((n, 4)), 0.0, 0.0, begun) for n, begun in ((1, False), (2, True), (1, True)))
    with ThreadTeam(1) as team:
        engine = layout.Layout("samples", "dense").build(rng.random((50, 4)), None, team)
        frame = Euclidean.of(engine)
        found = engine.run(frame, first)
        for work in (then, last):
            found = engine.run(frame, work, found.columns)
        at_once = engine.run(frame, last.after(then.after(first)))
    assert_array_equal(at_once.columns["nearest"], found.columns["nearest"])
    assert at_once.total == found.total


@pytest.mark.parametrize("scaling", ["item", "none"])
def test_what_is_said_of_many_items_stays_with_the_cluster_as_a_value(client, stored, scaling, monkeypatch, tmp_path):
    weight = np.random.default_rng(0).gamma(1.0, 1.0, stored.shape[0])
    X = da.concatenate([stored[:5_000], stored[:0], stored[5_000:]])
    expected = ONMF(3, scaling=scaling, engine="dense").fit(X, sample_weight=weight)
    monkeypatch.setattr(dask_engine, "BROUGHT_ITEMS", 1_000)
    fetched = []
    monkeypatch.setattr(dask_engine.DaskEngine, "fetched", lambda self, recipe: fetched.append(recipe))
    model = ONMF(3, scaling=scaling, engine="dense").fit(X, sample_weight=weight)
    assert not fetched
    for name in ("labels_", "scale_", "margin_"):
        values = getattr(model, name)
        assert isinstance(values, da.Array)
        assert values.shape == (20_000,)
        assert values.dtype == getattr(expected, name).dtype
        own = set(values.dask) - set(X.dask)
        assert len(own) <= 2 * X.numblocks[0]  # as many tasks as chunks, with an argument each, however many passes there were
    expected_parts = expected.transform(clouds())
    assert_array_equal(ONMF(3, scaling=scaling, engine="dense").fit_transform(X, sample_weight=weight), expected_parts)
    monkeypatch.undo()
    assert_same(model, expected)
    assert model.verify(X, weight).holds
    for again in (pickle.loads(pickle.dumps(model)), _saved(model, tmp_path / "model.onmf")):
        assert isinstance(again.labels_, np.ndarray)
        assert_same(again, expected)


def _saved(model, path):
    model.save(path)
    return ONMF.load(path)


@pytest.fixture
def sent(client, monkeypatch):
    """The bytes of every message with tasks."""
    sizes, send = [], client._send_to_scheduler

    def noted(message):
        if message["op"] == "update-graph":
            sizes.append(sum(map(len, message["expr_ser"].frames)))
        return send(message)

    monkeypatch.setattr(client, "_send_to_scheduler", noted)
    return sizes


def test_weights_are_sent_once(client, stored, sent):
    weight = np.random.default_rng(0).gamma(1.0, 1.0, stored.shape[0])
    ONMF(3, engine="dense").fit(stored)
    plain, n_plain = sum(sent), len(sent)
    sent.clear()
    ONMF(3, engine="dense").fit(stored, sample_weight=weight)
    weighted = sum(sent)
    # Beside what a fit without weights sends: the weights once, the labels, scales and margins that the client has found, and tasks of
    # passes there are more of.
    more = max(len(sent) - n_plain, 0) * plain / n_plain
    assert weighted - plain - more < 8 * weight.nbytes
    assert len(sent) > 20  # with every message of a pass they would be that many


def test_weights_survive_a_restart(stored):
    weight = np.random.default_rng(0).gamma(1.0, 1.0, stored.shape[0])
    with local_cluster() as client:
        expected = ONMF(3, engine="dense").fit(stored, sample_weight=weight)
        restarted = iter([client])
        original = dask_engine.DaskEngine._compare

        def compare(self, arithmetic):
            original(self, arithmetic)
            if self._arrays and (one := next(restarted, None)):
                one.restart(wait_for_workers=False)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dask_engine.DaskEngine, "_compare", compare)
            assert_same(ONMF(3, engine="dense").fit(stored, sample_weight=weight), expected)
        assert next(restarted, None) is None


@pytest.mark.parametrize(("heavy", "ahead"), [(True, 2 + cluster_module.HEAVY_AHEAD), (False, cluster_module.LEAST_AHEAD)])
def test_few_answers_wait(client, heavy, ahead, monkeypatch):
    monkeypatch.setattr(cluster_module, "TASK_BYTES", 1)  # a task for each chunk
    chunks = cluster_module.Cluster(da.zeros((200, 2), chunks=(2, 2)))
    asked, submit = [], cluster_module._Round._submit
    monkeypatch.setattr(cluster_module._Round, "_submit", lambda self, bundles: (asked.extend(bundles), submit(self, bundles)))
    calls = [(number, (number,)) for number in range(100)]
    for place, answer in enumerate(chunks.map("few", _number, calls, lambda: None, heavy=heavy)):
        assert answer == place
        assert len(asked) - place <= ahead
    assert len(asked) == 100


def _number(block, number):
    return number


def _long(values, block, number):
    return values


def _n_tasks(dask_scheduler):
    return len(dask_scheduler.tasks)


def test_a_pass_is_one_message_and_so_are_its_answers(client, sent, monkeypatch):
    gathered, gather = [], client.gather
    monkeypatch.setattr(client, "gather", lambda futures, **options: (gathered.append(len(futures)), gather(futures, **options))[1])
    monkeypatch.setattr(cluster_module, "TASK_BYTES", 1)  # a task for each chunk
    chunks = cluster_module.Cluster(da.zeros((20, 2), chunks=(10, 2)))
    values = np.random.default_rng(0).random(10_000)
    calls = [(number, (number,)) for number in range(2)]
    for answer in chunks.map("long", partial(_long, values), calls, lambda: None):
        assert_array_equal(answer, values)
    assert gathered == [2]
    (size,) = sent
    assert values.nbytes < size < 1.5 * values.nbytes  # once for all tasks


@pytest.mark.parametrize(("n_numbers", "n_kept"), [(1, cluster_module.SPENT_TASKS), (cluster_module.SPENT_BYTES // 16, 2)])
def test_the_scheduler_forgets_what_was_answered(client, n_numbers, n_kept, monkeypatch):
    monkeypatch.setattr(cluster_module, "TASK_BYTES", 1)  # a task for each chunk
    chunks = cluster_module.Cluster(da.zeros((20, 2), chunks=(10, 2)))
    calls = [(number, (number,)) for number in range(2)]
    before, seen = client.run_on_scheduler(_n_tasks), []
    for _ in range(3 * n_kept):
        list(chunks.map("long", partial(_long, np.zeros(n_numbers)), calls, lambda: None))
        seen.append(client.run_on_scheduler(_n_tasks) - before)
    assert max(seen) <= 2 * (n_kept + 1)  # two workers, and the pass that has just ended
    assert min(seen[n_kept:]) <= 2


def test_small_chunks_share_a_task_and_one_that_fails_is_still_named(client, rounds):
    X = da.zeros((400, 2), chunks=(4, 2))
    held = X.map_blocks(lambda block: block + 1.0, dtype=float).persist()
    for chunks, most in ((cluster_module.Cluster(X), 2 * cluster_module.LOADED_TASKS), (cluster_module.Cluster(held), 4)):
        calls = [(number, (number,)) for number in range(100)]
        assert list(chunks.map("several", _number, calls, lambda: None)) == list(range(100))
        assert len(rounds[-1][2]) <= most
        assert sorted(place for places in rounds[-1][2] for place in places) == list(range(100))
        with pytest.raises(DistributedFitError, match="Chunk 37 of X could not be computed: ZeroDivisionError"):
            list(chunks.map("several", _divided, [(number, (37 - number,)) for number in range(100)], lambda: None))


def _divided(block, number):
    return 1 / number


def test_without_a_client_the_time_is_looked_at_within_a_pass(no_client):
    looks = []
    chunks = cluster_module.Cluster(da.zeros((200, 2), chunks=(1, 2)))

    def check():
        looks.append(True)
        if len(looks) > 3:
            raise TimeLimitReached

    with pytest.raises(TimeLimitReached):
        list(chunks.map("several", _number, [(number, (number,)) for number in range(200)], check))


def test_two_changes_of_labels_are_one():
    labels = np.arange(10) % 3
    first = Relabelled(np.array([1, 4, 7]), np.array([0, 0, 0]), 3)
    then = Relabelled(np.array([4, 5]), np.array([2, 2]), 3)
    columns = {"labels": labels, "index": np.arange(10)}
    one_by_one = then(None, {**columns, "labels": first(None, columns).columns["labels"]})
    at_once = then.after(first)(None, columns)
    assert_array_equal(at_once.columns["labels"], one_by_one.columns["labels"])


def test_what_is_not_remembered_is_found_again(client, stored, monkeypatch):
    expected = ONMF(3, engine="dense").fit(stored)
    with local_cluster(1) as forgetful:
        forgetful.run(setattr, remote, "REMEMBERED_BYTES", 0)
        assert_same(ONMF(3, engine="dense").fit(stored), expected)
        assert list(forgetful.run(_in_memory).values()) == [0]
    assert sum(client.run(_in_memory).values()) > 0


def _in_memory():
    return sum(nbytes for _, nbytes in remote._memory.values())


def test_workers_that_round_differently_are_told_of(no_client, stored, monkeypatch):
    answers = count()
    monkeypatch.setattr(remote, "arithmetic", lambda: f"{next(answers)}")
    with pytest.warns(DistributedWarning, match="round differently"):
        ONMF(3, engine="dense").fit(stored)


# -- deaths -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("held", ["loaded by every task", pytest.param("held by the workers", marks=pytest.mark.long)])
def test_workers_that_are_killed_change_no_bit(stored, held):
    with local_cluster() as client:
        data = stored if held.startswith("loaded") else stored.persist()
        expected = ONMF(3, engine="dense").fit(data)
        with deaths(client, 0.5, at_most=2) as killed:
            while len(killed) < 2:
                assert_same(ONMF(3, engine="dense").fit(data), expected)
            assert_same(ONMF(3, engine="dense").fit(data), expected)


@pytest.mark.parametrize("n_runs", [3, pytest.param(20, marks=pytest.mark.long)])
def test_deaths_every_two_seconds(tmp_path, n_runs):
    np.save(tmp_path / "X.npy", clouds(40_000, 32))
    data = loading(tmp_path / "X.npy", [5_000] * 8)
    with local_cluster() as client:
        expected = ONMF(3, engine="dense").fit(data)
        with deaths(client, 2.0) as killed:
            for _ in range(n_runs):
                assert_same(ONMF(3, engine="dense").fit(data), expected)
        assert len(killed) >= n_runs / 2


def _slowly(block):
    time.sleep(0.5)  # longer than a worker lives
    return block


def test_deaths_without_end_are_an_error_in_time(stored, monkeypatch, tmp_path):
    monkeypatch.setattr(cluster_module, "STALL_SECONDS", 5.0)
    slow = stored.map_blocks(_slowly, dtype=stored.dtype, meta=np.empty((0, 0), stored.dtype))
    model = ONMF(3, engine="dense", checkpoint=tmp_path / "c")
    with local_cluster() as client, deaths(client, 0.2):
        began = time.monotonic()
        with pytest.raises(DistributedFitError, match=r"for 5 seconds.*To go on, .*checkpoint='.*c'"):
            model.fit(slow)
        assert time.monotonic() - began < 30
    assert not hasattr(model, "labels_")


def test_a_restart_of_all_workers(stored):
    with local_cluster() as client:
        expected = ONMF(3, engine="dense").fit(stored)
        restarted = []

        def restart(*args):
            if not restarted:
                restarted.append(True)
                client.restart(wait_for_workers=False)

        with pytest.MonkeyPatch.context() as patch:
            original = dask_engine.DaskEngine._compare
            patch.setattr(dask_engine.DaskEngine, "_compare", lambda self, arithmetic: (restart(), original(self, arithmetic)))
            assert_same(ONMF(3, engine="dense").fit(stored), expected)
        assert restarted
        held = stored.persist()
        model = ONMF(3, engine="dense")
        with pytest.MonkeyPatch.context() as patch:
            restarted.clear()
            patch.setattr(dask_engine.DaskEngine, "_compare", lambda self, arithmetic: (restart(), original(self, arithmetic)))
            with pytest.raises(DistributedFitError, match=r"which the cluster held, is gone.*Persist X again"):
                model.fit(held)


def test_a_scheduler_that_dies_is_an_error_in_seconds_and_the_checkpoint_resumes(stored, tmp_path, monkeypatch):
    from distributed import Client

    monkeypatch.setattr(cluster_module, "SCHEDULER_SECONDS", 3.0)
    monkeypatch.setattr("orthonmf.model.checkpoint.EVERY", 0.0)
    expected = ONMF(3, engine="dense").fit(stored)
    address = tmp_path / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    places = ["--scheduler-file", str(address)]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--host", "127.0.0.1", "--port", "0", *places]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "cwd": tmp_path}
    scheduler = subprocess.Popen(command, **quiet)
    worker = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard", *places], **quiet)
    try:
        while not address.exists():
            time.sleep(0.1)
        folder = tmp_path / "checkpoints"
        with Client(scheduler_file=os.fspath(address), timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            passed = []

            def dying(self, arithmetic):
                passed.append(arithmetic)
                if len(list(folder.glob("checkpoint-*"))) >= 1 and scheduler.poll() is None:
                    os.kill(scheduler.pid, signal.SIGKILL)
                    scheduler.wait()
                    passed.append(time.monotonic())

            monkeypatch.setattr(dask_engine.DaskEngine, "_compare", dying)
            with pytest.raises(DistributedFitError, match=r"scheduler.*checkpoint"):
                ONMF(3, engine="dense", checkpoint=folder).fit(stored)
            assert time.monotonic() - max(each for each in passed if isinstance(each, float)) < 20
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    monkeypatch.setattr(dask_engine.DaskEngine, "_compare", lambda self, arithmetic: None)
    assert_same(ONMF(3, engine="dense", checkpoint=folder).fit(stored), expected)


KILLED = """
import os, signal, sys
from distributed import Client
from orthonmf import ONMF
from orthonmf.engines import dask, journal
from orthonmf.model.checkpoint import Checkpoint
from orthonmf.model.notes import Notebook
from orthonmf.search.budget import BUDGET
from tests.engines.clusters import loading

address, path, folder, left = *sys.argv[1:4], int(sys.argv[4])
dask.FEW_BYTES, journal.NOTED_SECONDS, journal.NOTED_BYTES_PER_SECOND = 0, 0.0, 1e18
for name in ("many_items", "merge_numbers"):
    object.__setattr__(BUDGET, name, 5000)
write = Notebook.write

def until(self, note):
    global left
    write(self, note)
    self.flush()
    left -= note.total.count == 20_000
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

Notebook.write, Checkpoint.keep = until, lambda *_: None  # no stage that ends writes a checkpoint
with Client(address):
    ONMF(3, engine="dense", checkpoint=folder).fit(loading(path, %r))
"""


def test_a_client_that_is_killed_does_not_make_its_passes_again(client, stored, tmp_path, monkeypatch):
    made, computed = [], dask_engine.DaskEngine.computed

    def counted(self, frame, work, columns=None):
        made.append(type(work).__name__)
        return computed(self, frame, work, columns)

    monkeypatch.setattr(dask_engine.DaskEngine, "computed", counted)
    expected, n_whole = ONMF(3, engine="dense").fit(stored), len(made)
    n_noted = 9  # of eleven, most of them in one stage; those before the search and after it are not noted
    places = [client.scheduler.address, os.fspath(tmp_path / "X.npy"), os.fspath(tmp_path / "checkpoints"), f"{n_noted}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", KILLED % (LENGTHS,), *places], env=environment, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    made.clear()
    assert_same(ONMF(3, engine="dense", checkpoint=tmp_path / "checkpoints").fit(stored), expected)
    assert len(made) == n_whole - n_noted


@pytest.mark.long
def test_two_gigabytes_and_a_worker_killed_twice(capsys):
    with capsys.disabled():
        undisturbed, killed = part_deaths()
    assert killed["deaths"] == 2
    assert killed["bits"] == undisturbed["bits"]


@pytest.mark.long
def test_data_twice_the_memory_of_the_workers(capsys):
    with capsys.disabled():
        (found,) = part_memory()
    assert found["largest"] < 800e6 / 2**20


# -- refusals ---------------------------------------------------------------------------------------------------------------------


def _poisoned(block, block_info=None):
    if block_info[0]["chunk-location"][0] == 2:
        raise OSError("the disk is gone")
    return block


@pytest.mark.parametrize("held", [False, True])
def test_a_chunk_that_cannot_be_loaded_is_named(client, stored, held):
    poisoned = stored.map_blocks(_poisoned, dtype=stored.dtype, meta=np.empty((0, 0), stored.dtype))
    with pytest.raises(DistributedFitError, match=r"Chunk 2 of X could not be computed: OSError: the disk is gone\. See .*X\.blocks\[2\]"):
        ONMF(3).fit(poisoned.persist() if held else poisoned)


def test_a_chunk_that_goes_missing_on_the_way(client, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, clouds())
    data, seen = loading(path, LENGTHS), []

    class Gone(ONMF):
        def _nearby(self, engine):
            os.remove(path)
            seen.append(True)
            return engine

    with pytest.raises(DistributedFitError, match=r"Chunk \d of X could not be computed: FileNotFoundError"):
        Gone(3).fit(data)
    assert seen


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X.__setitem__((12_003, 5), -1.0), "Negative values in data passed to ONMF: -1.0 at row 2 of chunk 3, column 5"),
        (lambda X: X.__setitem__((0, 0), np.nan), "contains NaN at row 0 of chunk 0, column 0"),
    ],
)
def test_numbers_that_must_not_be_are_named(client, spoil, message, tmp_path):
    X = clouds()
    spoil(X)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        ONMF(3).fit(loading(tmp_path / "X.npy", LENGTHS))


def test_chunks_that_cut_items_are_refused_with_the_line_that_helps(stored):
    cut = stored.rechunk((10_000, 2))
    with pytest.raises(InvalidInputError, match=r"4 chunks along its columns.*X = X\.rechunk\(\{1: -1\}\)\.persist\(\)"):
        ONMF(3).fit(cut)
    with pytest.raises(InvalidInputError, match=r"4 chunks along its rows.*X = X\.rechunk\(\{0: -1\}\)\.persist\(\)"):
        ONMF(3, orthogonal="features").fit(stored)


def test_what_is_no_matrix_of_numbers_is_refused(stored):
    with pytest.raises(InvalidInputError, match="1 dimensions; expected 2"):
        ONMF(3).fit(stored[:, 0])
    with pytest.raises(InvalidInputError, match="numbers are expected"):
        ONMF(3).fit(da.from_array(np.array([["a", "b"]] * 4)))
    for empty in (da.zeros((0, 5)), da.zeros((5, 0))):
        with pytest.raises(InvalidInputError, match="a minimum of 1 row and column is required"):
            ONMF(3).fit(empty)
    with pytest.raises(InvalidInputError, match=r"X is a Delayed of dask.*da\.from_delayed"):
        ONMF(3).fit(dask.delayed(np.ones)((4, 4)))
    with pytest.raises(InvalidInputError, match="1 dimensions; expected 2"):
        ONMF(2).fit(clouds(100)).predict(stored[:, 0])
    with pytest.raises(InvalidInputError, match="engine='dask' reads dask arrays"):
        ONMF(3, engine="dask").fit(clouds(100))
