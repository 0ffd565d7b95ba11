"""A start of one's own is refined as the annealed one is, and the better end of the two is the answer."""

import pickle

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from problems import PROBLEMS, SCALINGS, partition_cost, subset_costs
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from orthonmf import ONMF, estimator
from orthonmf.engines.threads import TimeLimitReached
from orthonmf.exceptions import InvalidInputError
from orthonmf.model import checkpoint
from orthonmf.search import stages

# Of a cost that is computed in another order.
ROUNDING = 1 + 1e-9


def clouds(seed, n_items=120, n_dims=6, n_clouds=9):
    rng = np.random.default_rng(seed)
    return rng.gamma(1, 1, (n_clouds, n_dims))[rng.integers(n_clouds, size=n_items)] + rng.gamma(1, 0.3, (n_items, n_dims))


def random_labels(seed, n_items, n_components):
    return np.random.default_rng(seed).permutation(np.arange(n_items) % n_components)


def cost(model, X):
    return partition_cost(X, model.labels_, model.scaling)


def test_two_pairs_by_hand():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    for init in ([0, 0, 1, 1], [1, 0, 1, 0], [[1, 0], [0, 1]], ONMF(2).fit(X)):
        assert ONMF(2, init=init).fit(X).reconstruction_err_ == 0


@pytest.mark.parametrize("problem", PROBLEMS[::3], ids=str)
def test_best_of_all_partitions_is_kept_where_nothing_is_refined(problem):
    # Without refinement the annealed components of some of these are not the best; the start is, and stays.
    model = ONMF(problem.n_components, scaling=problem.scaling, refine=False, init=problem.labels)
    model.fit(problem.X, sample_weight=problem.weight)
    found = partition_cost(problem.X, model.labels_, problem.scaling, problem.weight)
    assert found <= problem.best.cost * ROUNDING + 1e-20 * np.square(problem.X).sum()


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("seed", range(3))
def test_best_within_bounds_is_kept_where_nothing_is_refined(scaling, seed):
    # of 8 items in two components of four, all 70 halves
    X = clouds(seed, n_items=8, n_dims=3)
    costs = subset_costs(X, scaling)
    halves = [mask for mask in range(256) if mask.bit_count() == 4]
    best = min(halves, key=lambda mask: costs[mask] + costs[255 - mask])
    labels = np.array([best >> i & 1 for i in range(8)])
    model = ONMF(2, scaling=scaling, capacity=4, refine=False, init=labels).fit(X)
    assert cost(model, X) <= (costs[best] + costs[255 - best]) * ROUNDING


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"scaling": "none"}, {"capacity": 8}, {"capacity": 8, "scaling": "none"}, {"refine": False}, {"max_iter": 2}],
    ids=str,
)
def test_never_worse_than_without_nor_than_the_start(parameters, seed):
    X, scaling = clouds(seed, n_items=28), parameters.get("scaling", "item")
    annealed = ONMF(4, **parameters).fit(X)
    other = ONMF(4, **{**parameters, "refine": True, "max_iter": 300}).fit(X)
    for init in (random_labels(seed, len(X), 4), other, sparse.csr_array(X[8:12])):
        model = ONMF(4, init=init, **parameters).fit(X)
        assert model.counts_.max() <= parameters.get("capacity", len(X))
        assert cost(model, X) <= cost(annealed, X) * ROUNDING
        if not sparse.issparse(init):
            labels = init.labels_ if isinstance(init, ONMF) else init
            assert cost(model, X) <= partition_cost(X, labels, scaling) * ROUNDING
        assert model.verify(X).holds or not (model.converged_ and model.refine)


def test_start_leads_lower_where_the_search_is_short():
    # Without refinement the annealed components are far from the best.
    X = clouds(3)
    with_start = ONMF(8, refine=False, init=ONMF(8).fit(X)).fit(X)
    assert with_start.reconstruction_err_ < ONMF(8, refine=False).fit(X).reconstruction_err_


@pytest.mark.parametrize("capacity", [None, 12])
def test_stopped_at_once_it_is_no_worse_than_the_start(capacity):
    X = clouds(0, n_items=80)
    start = ONMF(8, capacity=capacity).fit(X)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        stopped = ONMF(8, capacity=capacity, init=start, time_limit=1e-9).fit(X)
    assert stopped.reconstruction_err_ <= start.reconstruction_err_ * ROUNDING


def test_bounds_of_each_component_keep_their_names():
    X = clouds(1, n_items=30)
    labels = np.repeat([0, 1, 2], [5, 10, 15])
    model = ONMF(3, capacity=[5, 10, 15], init=labels).fit(X)
    assert (model.counts_ <= [5, 10, 15]).all()
    assert cost(model, X) <= partition_cost(X, labels, "item") * ROUNDING


def test_soft_bounds_count_what_is_out_of_them():
    X = clouds(2, n_items=30)
    without = ONMF(3, capacity=8, capacity_penalty=0.1).fit(X)
    model = ONMF(3, capacity=8, capacity_penalty=0.1, init=random_labels(0, 30, 3)).fit(X)
    penalty = 0.1 * np.square(X).sum(axis=1).mean()

    def whole(fitted):
        return cost(fitted, X) + penalty * np.maximum(fitted.counts_ - 8, 0).sum()

    assert whole(model) <= whole(without) * ROUNDING


def test_features_take_labels_and_models():
    X = clouds(0, n_items=40, n_dims=15)
    annealed = ONMF(4, orthogonal="features").fit(X)
    for init in (random_labels(0, 15, 4), annealed):
        assert ONMF(4, orthogonal="features", init=init).fit(X).reconstruction_err_ <= annealed.reconstruction_err_ * ROUNDING


@pytest.mark.parametrize("scaling", SCALINGS)
def test_model_of_other_data_gives_its_centres(scaling):
    X = 1000 * clouds(0, n_items=300)  # in other units than the engine's
    start = ONMF(8, scaling=scaling).fit(X[:150])
    model = ONMF(8, scaling=scaling, init=start, time_limit=1e-9)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    assert model.reconstruction_err_ <= -start.score(X) * ROUNDING


@pytest.mark.parametrize("scaling", SCALINGS)
def test_few_wide_items_are_started_in_their_span(scaling):
    X = clouds(0, n_items=20, n_dims=90)
    for init in (X[[0, 5, 9]], random_labels(0, 20, 3), np.random.default_rng(0).random((3, 90))):
        model = ONMF(3, scaling=scaling, refine=False, init=init).fit(X)
        if np.ndim(init) == 1:
            assert cost(model, X) <= partition_cost(X, init, scaling) * ROUNDING
        else:  # every item to the nearest centre, or along it
            length = np.linalg.norm(init, axis=1)
            away = np.square(X[:, None] - init).sum(axis=2)
            if scaling == "item":
                away = np.square(X).sum(axis=1)[:, None] - np.square(X @ init.T / length)
            assert cost(model, X) <= away.min(axis=1).sum() * ROUNDING


def test_bits_are_those_of_the_array_in_chunks_and_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(estimator, "FEW_BYTES", 0)
    X = clouds(0, n_items=400).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    for init in (random_labels(0, 400, 5), X[:5]):
        near = ONMF(5, init=init).fit(X)
        for other in (da.from_array(X, chunks=(90, -1)), tmp_path / "X.npy"):
            assert_array_equal(ONMF(5, init=init).fit(other).components_, near.components_)


def test_clones_pickles_and_files_have_the_start(tmp_path):
    X = clouds(0)
    start = ONMF(8).fit(X)
    model = ONMF(8, init=start).fit(X)
    assert clone(model).init is start
    assert_array_equal(clone(model).fit(X).labels_, model.labels_)
    assert_array_equal(pickle.loads(pickle.dumps(model)).init.labels_, start.labels_)
    model.save(tmp_path / "model")
    assert_array_equal(ONMF.load(tmp_path / "model").init, start.components_)
    labels = ONMF(8, init=start.labels_).fit(X)
    labels.save(tmp_path / "labels")
    again = ONMF.load(tmp_path / "labels")
    assert_array_equal(again.init, start.labels_)
    assert_array_equal(again.fit(X).components_, labels.components_)


def test_checkpoints_of_another_start_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    X = clouds(0)
    first = ONMF(8, init=random_labels(0, len(X), 8), checkpoint=tmp_path).fit(X)
    with pytest.raises(InvalidInputError, match="init differs"):
        ONMF(8, init=random_labels(1, len(X), 8), checkpoint=tmp_path).fit(X)
    assert_array_equal(clone(first).fit(X).components_, first.components_)


X6 = clouds(0, n_items=6, n_dims=3)
GAP, ELSEWHERE = [0, 0, 0, 2, 2, 2], ONMF(2).fit(X6[:5])


@pytest.mark.parametrize(
    ("init", "parameters", "words"),
    [
        ([0, 1, 0], {}, "3 labels, X has 6 rows"),
        ([0, 1, 0], {"orthogonal": "features", "n_components": 3}, r"init has 2 components, and n_components=3"),
        ([0, 0, 0, 1, 1, -1], {}, r"init\[5\]=-1 is no label"),
        ([0, 0, 0, 1, 1, 0.5], {}, r"init\[5\]=0.5 is no label"),
        ([0, 0, 0, 1, 1, np.nan], {}, r"init\[5\]=nan is no label"),
        (GAP, {"n_components": 3}, "none that is 1"),
        ([0, 0, 0, 0, 0, 10**12], {}, "none that is 1"),
        (list("aabbcc"), {}, "return_inverse"),
        ("k-means++", {}, "expected centres"),
        ([[1, 2], [3]], {}, "expected centres"),
        (np.zeros((2, 2, 2)), {}, r"shape \(2, 2, 2\)"),
        (X6[:2, :2], {}, "2 columns, X has 3 features"),
        (np.diag([1.0, -1.0, 0])[:2], {}, "-1.0 at row 1, column 1"),
        (np.full((2, 3), np.inf), {}, "inf at row 0, column 0"),
        (np.eye(3)[[0, 0]] * [[1], [0]], {}, "Row 1 of init is all zero"),
        (X6[:2], {"n_components": "auto"}, "set n_components=2"),
        (X6[:3], {}, "set n_components=3"),
        (X6[:2], {"orthogonal": "features"}, "one for each of the 3 columns"),
        (ONMF(2), {}, "no fitted ONMF"),
        (KMeans(2), {}, "is a KMeans"),
        (ELSEWHERE, {"orthogonal": "features"}, "expected the same"),
        (ELSEWHERE, {"scaling": "none"}, r"init=model.predict\(X\)"),
        (ONMF(2).fit(X6[:, :2]), {}, "fitted to 2 features, X has 3"),
        ([0, 0, 0, 1, 1, 1], {"capacity": 3, "rounding": "nearest"}, "rounding='nearest'"),
    ],
    ids=lambda value: str(value)[:40].replace("\n", " "),
)
def test_refusals(init, parameters, words):
    with pytest.raises(InvalidInputError, match=words):
        ONMF(**{"n_components": 2, "init": init, **parameters}).fit(X6)


def test_columns_in_another_order_are_refused():
    import pandas as pd

    table = pd.DataFrame(X6, columns=list("abc"))
    start = ONMF(2).fit(table)
    with pytest.raises(InvalidInputError, match="Column 0 of X is 'b', and was 'a'"):
        ONMF(2, init=start).fit(table[["b", "a", "c"]])


def test_sizes_of_items_are_refused():
    with pytest.raises(InvalidInputError, match="item_size"):
        ONMF(2, capacity=3, capacity_penalty=1.0, init=[0, 0, 0, 1, 1, 1]).fit(X6, item_size=np.ones(6))


def test_stopped_when_the_start_has_its_turn_keeps_the_better_answer(monkeypatch):
    rng = np.random.default_rng(0)
    X, init = rng.gamma(1, 1, (60, 6)), np.r_[np.arange(5), rng.integers(5, size=55)]
    alone = ONMF(5).fit(X).reconstruction_err_

    def stopped(job, search):
        raise TimeLimitReached

    monkeypatch.setattr(stages, "_given", stopped)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = ONMF(5, init=init).fit(X)
    assert model.reconstruction_err_ <= alone * ROUNDING
