"""The number of components is found: on data with an answer it is that answer, and on data without it says so."""

import numpy as np
import pytest

from orthonmf import ONMF
from orthonmf.datasets import make_nested, make_onmf, make_paper_synthetic
from orthonmf.exceptions import NothingStandsOutWarning

MAX_COMPONENTS = 30


def fitted(X, reading="auto", weight=None, max_components=MAX_COMPONENTS, **parameters):
    # The refinement does not change the number.
    return ONMF(n_components=reading, max_components=max_components, refine=False, **parameters).fit(X, sample_weight=weight)


def curve(model):
    """The persistence of every number of components, for the message of a failure."""
    return ", ".join(f"{m}: {length:.2f}" for m, length in enumerate(model.persistence_, start=2))


def wrong(cases, expected, **parameters):
    """Every case (name, X) in which another number is found, with what was found and why."""
    models = {name: fitted(X, **parameters) for name, X in cases}
    return [
        f"{name}: {model.n_components_} instead of {expected}; persistence {curve(model)}"
        for name, model in models.items()
        if model.n_components_ != expected
    ]


def peaks(model):
    """The two most persistent numbers of components."""
    return (np.argsort(-model.persistence_)[:2] + 2).tolist()


class TestByHand:
    def test_two_pairs(self):
        # 0, 1 and 9, 10, each ten times: two groups from β = 1/(2 · 20.5) on, four items from 1/(2 · ¼) = 2 on, for ever.
        X = np.repeat([[1.0], [2.0], [10.0], [11.0]], 10, axis=0)
        model = fitted(X, "persistence", scaling="none")
        np.testing.assert_allclose(model.critical_betas_, [1 / 41, 2, 2], rtol=0.03)
        assert peaks(model)[0] == 2
        assert model.n_components_ == 4
        assert "4 distinct items, repeated" in model.status_

    def test_two_pairs_are_two_groups(self):
        # Values in steps of 1 say no more than ±½: 1 and 2 are one group, far from 10 and 11.
        X = np.repeat([[1.0], [2.0], [10.0], [11.0]], 10, axis=0)
        assert fitted(X, scaling="none").n_components_ == 2

    def test_two_pairs_with_noise(self):
        # With noise far below 1 the four never persist for ever, but log(σ⁻²/2 / 2) exceeds log(2 · 41).
        noise = np.random.default_rng(0).normal(scale=1e-3, size=(40, 1))
        model = fitted(np.repeat([[1.0], [2.0], [10.0], [11.0]], 10, axis=0) + noise, scaling="none")
        assert model.n_components_ == 4
        assert peaks(model) == [4, 2]


LONG = pytest.mark.long
# The paper's reading follows the annealing to the end: it takes some times as long.
READINGS = ["auto", pytest.param("persistence", marks=LONG)]


def seeds(first, all_of_them):
    """The first seeds, and the others in the long run."""
    return pytest.mark.parametrize("seeds", [range(first), pytest.param(range(first, all_of_them), marks=LONG)], ids=["first", "others"])


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("which", [1, *(pytest.param(which, marks=LONG) for which in (2, 3, 4))])
@seeds(1, 20)
def test_data_sets_of_the_paper_have_20(which, seeds, reading):
    cases = ((f"seed {seed}", make_paper_synthetic(which, seed).X) for seed in seeds)
    assert wrong(cases, 20, reading=reading) == []


@pytest.mark.parametrize("reading", READINGS)
@seeds(1, 5)
@pytest.mark.parametrize("noise", [0.5, *(pytest.param(noise, marks=LONG) for noise in (0.01, 1.0))])
@pytest.mark.parametrize("k", [3, *(pytest.param(k, marks=LONG) for k in (5, 8, 12, 20))])
def test_gamma_centres_with_scales_and_noise(k, noise, seeds, reading):
    cases = ((f"seed {seed}", make_onmf(800, 20, k, noise=noise, item_scale=10, random_state=seed).X) for seed in seeds)
    assert wrong(cases, k, reading=reading) == []


@pytest.mark.thinned(5)
@pytest.mark.parametrize("sizes", [(20, 5, 1), (20, 5, 1, 10, 3)], ids=str)
@pytest.mark.parametrize("noise", [0.5, 1.0])
@seeds(1, 5)
@pytest.mark.parametrize("reading", READINGS)
def test_components_of_very_different_sizes(sizes, noise, seeds, reading):
    k = len(sizes)
    cases = ((f"seed {seed}", make_onmf(800, 20, k, noise=noise, sizes=sizes, item_scale=10, random_state=seed).X) for seed in seeds)
    assert wrong(cases, k, reading=reading) == []


def blocks(sizes, rng, low, high, width=4):
    """Items in disjoint blocks of features, as many as ``sizes`` says."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return np.repeat(np.eye(len(sizes)), width, axis=1)[labels] * rng.uniform(low, high, size=(len(labels), width * len(sizes)))


@pytest.mark.thinned(5)
@pytest.mark.parametrize("background", [0.0, 0.02])
@pytest.mark.parametrize("sizes", [(30, 30, 30), (30,) * 5, (45, 44, 10), (10, 10, 10)], ids=str)
@seeds(1, 4)
def test_disjoint_blocks_are_counted(sizes, background, seeds):
    # From the line of one block every other is at a right angle: no local criterion sees it.
    rngs = {seed: np.random.default_rng(seed) for seed in seeds}
    cases = ((f"seed {seed}", (X := blocks(sizes, rng, 0.5, 1.5)) + background * rng.random(X.shape)) for seed, rng in rngs.items())
    assert wrong(cases, len(sizes), reading="persistence") == []


@pytest.mark.thinned(5)
@pytest.mark.parametrize("background", [0.0, 0.02])
@pytest.mark.parametrize("sizes", [(30, 30, 30), (30,) * 5, (45, 44, 10)], ids=str)
@seeds(1, 4)
def test_blocks_are_found_or_a_level(sizes, background, seeds):
    # Noise lies within the blocks, and is no ball: one of four such sets is cut finer, and the blocks are then a coarser level.
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = blocks(sizes, rng, 0.5, 1.5)
        assert len(sizes) in fitted(X + background * rng.random(X.shape)).levels_


def test_blocks_by_hand():
    # Weights ½, ⅓, ⅙ at right angles. One line on the first; the second pays once ⅓ exp(β) > ½, at β = log 3/2, which counts
    # from 1/(2 · the largest distance, 1) on.
    X = np.repeat(np.eye(3), [3, 2, 1], axis=0)
    model = fitted(np.repeat(X, 4, axis=0), "persistence")
    assert model.n_components_ == 3
    np.testing.assert_allclose(model.critical_betas_[0], 0.5)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("reading", ["auto", "persistence"])
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_the_unit_of_the_weights_does_not_matter(reading, scaling):
    # Whether items repeat is not judged by the sum of their weights.
    X = np.repeat(np.random.default_rng(0).gamma(1, 1, (5, 6)), 20, axis=0)
    found = [fitted(X, reading, scaling=scaling, weight=np.full(100, unit)).n_components_ for unit in (1.0, 1 / 200, 1e6)]
    assert found == [5, 5, 5]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("scaling", ["item", "none"])
@seeds(1, 5)
def test_nested_groups_show_both_levels(scaling, seeds):
    found = {}
    for seed in seeds:
        data = make_nested(320, 20, group_spread=10, cluster_spread=2, noise_spread=0.2, random_state=seed)
        model = fitted(data.X, scaling=scaling)
        found[seed] = (model.levels_.tolist(), peaks(model))
    assert found == dict.fromkeys(seeds, ([16, 4], [16, 4]))


@pytest.mark.parametrize("scaling", ["item", "none"])
class TestWithoutAnAnswer:
    @pytest.mark.parametrize("X", [np.full((30, 4), 2.5), np.zeros((10, 3)), np.ones((1, 3))], ids=["equal", "zero", "one"])
    def test_equal_items_are_one(self, scaling, X):
        model = fitted(X, scaling=scaling)
        assert model.n_components_ == 1
        assert "All items are equal" in model.status_
        assert model.persistence_.size == 0

    @pytest.mark.thinned(5)
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("p", [3, 20])
    def test_one_blob_has_no_number(self, scaling, p, seed):
        X = 20 + np.random.default_rng(seed).normal(size=(300, p))
        with pytest.warns(NothingStandsOutWarning, match="set n_components"):
            model = fitted(X, scaling=scaling)
        assert model.n_components_ == 1
        assert "Nothing stands out" in model.status_

    @seeds(1, 3)
    @pytest.mark.parametrize("p", [pytest.param(3, marks=LONG), 20])
    def test_in_one_blob_nothing_persists(self, scaling, p, seeds):
        X = 20 + np.random.default_rng(seeds[0]).normal(size=(300, p))
        paper = fitted(X, "persistence", scaling=scaling)
        assert "Nothing persists" in paper.status_, curve(paper)
        assert paper.persistence_.max() < np.log(2)

    @pytest.mark.thinned(5)
    @pytest.mark.parametrize("seed", range(3))
    def test_distinct_items_repeated_are_counted(self, scaling, seed):
        rng = np.random.default_rng(seed)
        X = rng.gamma(2.0, size=(10, 5))[rng.permutation(np.repeat(np.arange(10), 20))]
        model = fitted(X, scaling=scaling)
        assert model.n_components_ == 10, curve(model)
        whole = ONMF(10, scaling=scaling).fit(X)
        assert whole.reconstruction_err_ <= 1e-12 * np.linalg.norm(X)


def test_scaled_copies_of_few_directions_are_counted():
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(6, 5))[np.arange(120) % 6] * rng.gamma(2.0, size=(120, 1))
    assert fitted(X).n_components_ == 6
    assert fitted(X, "persistence", scaling="none").persistence_.size > 5  # their lengths differ: no few means


@pytest.mark.thinned(2)
@pytest.mark.parametrize("scaling", ["item", "none"])
def test_number_does_not_depend_on_the_units(scaling):
    X = make_nested(120, 12, n_groups=2, n_clusters=3, random_state=0).X
    model = fitted(X, scaling=scaling, max_components=8)
    assert model.n_components_ == 6
    for scale in (2.0**-500, 2.0**500):  # exact: every bit of the annealing is the same
        np.testing.assert_array_equal(fitted(X * scale, scaling=scaling, max_components=8).persistence_, model.persistence_)
    for scale in (1e-150, 1e150):  # rounded: transitions of the noise may change places, those of the groups not
        scaled = fitted(X * scale, scaling=scaling, max_components=8)
        assert scaled.n_components_ == 6
        np.testing.assert_allclose(scaled.persistence_[:5], model.persistence_[:5], rtol=1e-3, atol=1e-3)


def test_number_is_the_same_for_features():
    X = make_nested(60, 12, n_groups=2, n_clusters=3, random_state=0).X
    rows, columns = fitted(X, max_components=8), fitted(np.ascontiguousarray(X.T), max_components=8, orthogonal="features")
    np.testing.assert_allclose(columns.critical_betas_, rows.critical_betas_, rtol=1e-9)
    np.testing.assert_array_equal(columns.labels_, rows.labels_)


def test_maximum_bounds_the_search():
    X = make_onmf(300, 10, 8, noise=0.01, random_state=0).X
    model = ONMF(n_components="auto", max_components=5).fit(X)
    assert model.n_components_ == 5
    assert "The search ended at max_components" in model.status_
    assert len(model.critical_betas_) == 5  # the transition past the fifth is located, not taken
    assert ONMF(n_components="auto", max_components=1).fit(X).n_components_ == 1
