"""Free components at one temperature: what decreases, where it ends, and how fast."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.base import weighted_mean
from orthonmf.engines.dense import DenseEngine
from orthonmf.passes.state import State
from orthonmf.search.gibbs import plain_step, settle, soft_pass
from orthonmf.search.transitions import critical_values

SCALINGS = ("item", "none")
# F is a sum of terms of size β d: it is known to this fraction of them.
ROUNDING = 1e-13


@pytest.fixture(params=SCALINGS)
def scaling(request):
    return request.param


def build(X, scaling, weight=None):
    engine = DenseEngine(X, weight, team=ThreadTeam(1))
    return engine, REGISTRY["frobenius", scaling].about(weighted_mean(engine))


def random_state(distortion, seed, n_components, beta):
    rng = np.random.default_rng(seed)
    centers = distortion.to_frame(rng.gamma(3.0, size=(n_components, len(distortion.ref))))
    return State(beta, centers, np.log(rng.dirichlet(np.ones(n_components))), tuple(range(n_components)))


def random_case(seed, scaling, beta=3.0, n=40, p=4, k=3):
    """Weighted items without structure and components drawn at random, so that there is a long way down."""
    rng = np.random.default_rng(seed)
    engine, distortion = build(rng.gamma(3.0, size=(n, p)), scaling, rng.gamma(1.0, size=n))
    beta = beta * float(first_critical(engine, distortion))
    return engine, distortion, random_state(distortion, seed, k, beta)


def one_component(engine, distortion, beta=1.0):
    return settle(engine, distortion, State(beta, distortion.origin, np.zeros(1)), tol=1e-24, max_passes=300)


def first_critical(engine, distortion):
    at = one_component(engine, distortion)
    return critical_values(engine, distortion, at, tol=1e-12, max_passes=100).beta[0]


def free_energy(engine, distortion, state):
    return -soft_pass(engine, distortion, state).log_partition


def distances_by_definition(X, centers, scaling):
    """Distances (n, k) and weights (n,) as the paper writes them, in the space of the data."""
    if scaling == "none":
        return np.sum((X[:, None] - centers) ** 2, axis=2), np.ones(len(X))
    sq = np.sum(X**2, axis=1)
    return 1 - (X @ centers.T) ** 2 / sq[:, None], sq


def test_by_hand():
    # Items at 0 and 2, one component at 1: d = 1 for both, so F = 2β, D = 2, and there is no entropy.
    engine, distortion = build(np.array([[0.0], [2.0]]), "none")
    found = one_component(engine, distortion, beta=0.7)
    assert_allclose([found.free_energy, found.stats.distortion], [1.4, 2.0], rtol=1e-15)
    assert_allclose(found.stats.entropy(found.state), 0, atol=1e-15)
    assert found.passes == 1
    assert found.converged
    # Components on the items, half the mass each: Z = (1 + e^{−4β})/2.
    state = State(0.7, np.array([[-1.0], [1.0]]), np.log([0.5, 0.5]), (0, 1))
    stats = soft_pass(engine, distortion, state)
    own = 1 / (1 + np.exp(-2.8))
    assert_allclose(stats.log_partition, 2 * np.log((1 + np.exp(-2.8)) / 2), rtol=1e-14)
    assert_allclose(stats.mass, [1, 1], rtol=1e-14)
    assert_allclose(stats.sums, [[-own + (1 - own)], [own - (1 - own)]], rtol=1e-14)
    assert_allclose(stats.distortion, 2 * 4 * (1 - own), rtol=1e-14)
    assert_allclose(stats.entropy(state), -2 * (own * np.log(own) + (1 - own) * np.log(1 - own)), rtol=1e-13)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(100))
def test_free_energy_never_rises(scaling, seed):
    # The way to the minimum is the same whatever it is cut off after: each cut shows one more accepted pass.
    engine, distortion, state = random_case(seed, scaling, beta=[0.5, 1.5, 3.0, 30.0][seed % 4])
    ways = [settle(engine, distortion, state, tol=1e-14, max_passes=passes) for passes in range(1, 26)]
    energies = np.array([found.free_energy for found in ways])
    assert_allclose(energies[0], free_energy(engine, distortion, state), rtol=1e-15)
    assert np.all(np.diff(energies) <= ROUNDING * np.abs(energies[0]))
    assert energies[-1] < energies[0]


@pytest.mark.parametrize("seed", range(20))
def test_plain_step_never_raises_the_free_energy(scaling, seed):
    engine, distortion, state = random_case(seed, scaling)
    before = np.inf
    for _ in range(30):
        stats = soft_pass(engine, distortion, state)
        assert -stats.log_partition <= before + ROUNDING * abs(stats.log_partition)
        before = -stats.log_partition
        state = plain_step(distortion, state, stats)


@pytest.mark.parametrize("seed", range(5))
def test_gradient_of_the_free_energy(scaling, seed):
    engine, distortion, state = random_case(seed, scaling)
    stats = soft_pass(engine, distortion, state)
    rng = np.random.default_rng(seed)
    t = 1e-5  # error t², rounding 1e-15 / t: both some 1e-10 of F

    def derivative(moved):
        up, down = (free_energy(engine, distortion, moved(s)) for s in (t, -t))
        return (up - down) / (2 * t)

    near = {"rtol": 1e-6, "atol": 1e-7 * abs(stats.log_partition)}
    for _ in range(5):
        free = distortion.to_frame(rng.gamma(3.0, size=(3, engine.n_dims))) - state.centers
        direction = distortion.tangent(free, state.centers)
        numeric = derivative(lambda s, d=direction: state.set(centers=distortion.retract(state.centers + s * d)))
        exact = state.beta * np.vdot(distortion.slope(state, stats), direction)
        assert_allclose(numeric, exact, **near)
    for j, axis in enumerate(np.eye(3)):
        # d F / d log α_j with the masses kept at sum one: Σ ω α_j − mass_j
        def shifted(s, axis=axis):
            log_mass = state.log_mass + s * axis
            return state.set(log_mass=log_mass - np.logaddexp.reduce(log_mass))

        exact = stats.weight * np.exp(state.log_mass[j]) - stats.mass[j]
        assert_allclose(derivative(shifted), exact, **near)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("beta", [0.5, 2.0, 20.0])
def test_rest_satisfies_the_equations_of_the_paper(scaling, beta, seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(3.0, size=(40, 4))
    engine, distortion = build(X, scaling)
    beta = beta * float(first_critical(engine, distortion))
    found = settle(engine, distortion, random_state(distortion, seed, 3, beta), tol=1e-16, max_passes=2000)
    assert found.converged
    # below 1e-14 the steps that are left are lost in the rounding of F
    tol = max(found.residual, 1e-16)
    assert tol <= 1e-14
    centers, mass = distortion.to_data(found.state.centers), np.exp(found.state.log_mass)
    distance, weight = distances_by_definition(X, centers, scaling)
    # (5): p_{j|i} ∝ α_j exp(−β d_ij)
    logits = np.log(mass) - beta * distance
    resp = np.exp(logits - logits.max(axis=1, keepdims=True))
    resp /= resp.sum(axis=1, keepdims=True)
    # (6): α_j is the mean of p_{j|i}, and the centre the mean of the items or the leading direction of S.
    # In the residual, masses have Σ (Δα_j)² / α_j and centres 2 β Σ α_j |Δy_j|².
    share = weight @ resp / weight.sum()
    assert_allclose(mass.sum(), 1, rtol=1e-14)
    assert np.sum((share - mass) ** 2 / share) <= 2 * tol
    if scaling == "none":
        best = (resp.T @ X) / resp.sum(axis=0)[:, None]
        assert 2 * beta * np.sum(share * np.sum((best - centers) ** 2, axis=1)) <= 2 * tol
    else:
        unit = X / np.sqrt(weight)[:, None]
        for j, center in enumerate(centers):
            second = (weight * resp[:, j] * unit.T) @ unit / (weight @ resp[:, j])
            values, vectors = np.linalg.eigh(second)
            # an eigenvector to the residual over the gap; the leading one when β is beyond the spurious rests
            away = second @ center - (center @ second @ center) * center
            assert 2 * beta * share[j] * np.sum(away**2) <= 2 * tol * values[-1] ** 2
            assert abs(vectors[:, -1] @ center) > 1 - 1e-10


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("above", [1.003, 1.01])
def test_just_above_a_transition_the_fast_way_ends_where_thousands_of_plain_steps_lead(scaling, above, seed):
    # Mirror-symmetric items: two equal components part continuously, and the plain steps shrink to nothing.
    half = np.random.default_rng(seed).gamma([7.0, 4.0, 4.0], size=(20, 3))
    X = np.vstack([half, half[:, ::-1] if scaling == "item" else 2 * half.mean(axis=0) + 4 - half])
    engine, distortion = build(X, scaling)
    at = one_component(engine, distortion)
    critical = critical_values(engine, distortion, at, tol=1e-12, max_passes=100)
    beta = above * float(critical.beta[0])
    sides = [np.full(1, side / np.sqrt(2 * beta)) for side in (-1, 1)]
    centers = np.vstack([distortion.moved(at.state.centers, critical.directions, side) for side in sides])
    state = State(beta, centers, np.log([0.4, 0.6]), (0, 1))

    fast = settle(engine, distortion, state, tol=1e-13, max_passes=1000)
    for _ in range(3000):
        state = plain_step(distortion, state, soft_pass(engine, distortion, state))
    weight = fast.stats.weight
    assert fast.converged
    assert fast.passes <= 60
    assert fast.free_energy < free_energy(engine, distortion, at.state.set(beta=beta)) - 1e-7 * weight
    # What is left of the slow way, and no more: a plain step still gains some 1e-10 per unit weight.
    gap = (free_energy(engine, distortion, state) - fast.free_energy) / weight
    assert -1e-11 <= gap <= 2e-6


class TestExtremeTemperatures:
    @pytest.mark.parametrize("beta", [1e-300, 1e-30])
    def test_hot_components_share_every_item(self, scaling, beta):
        engine, distortion, state = random_case(0, scaling)
        found = settle(engine, distortion, state.set(beta=beta), tol=1e-18, max_passes=300)
        assert np.all(np.isfinite(found.state.centers))
        assert np.isfinite(found.free_energy / beta)
        # p_ij = α_j whatever the item: the entropy is that of the masses
        mass = np.exp(found.state.log_mass)
        assert_allclose(found.stats.mass, found.stats.weight * mass, rtol=1e-12)
        entropy = -found.stats.weight * np.dot(mass, found.state.log_mass)
        assert_allclose(found.stats.entropy(found.state), entropy, rtol=1e-12)

    @pytest.mark.filterwarnings(
        "ignore:overflow encountered", "ignore:invalid value encountered"
    )  # the gradient's size at β = 1e300 is no number
    def test_cold_responsibilities_are_hard(self, scaling):
        engine, distortion, state = random_case(0, scaling)
        found = settle(engine, distortion, state.set(beta=1e300), tol=1e-18, max_passes=300)
        assert np.all(np.isfinite(found.state.centers))
        assert np.isfinite(found.free_energy)
        assert np.isfinite(found.stats.distortion)
        X = engine.rows(slice(0, engine.n_items)).values
        distance, weight = distances_by_definition(X, distortion.to_data(found.state.centers), scaling)
        labels = distance.argmin(axis=1)
        assert_allclose(found.stats.mass, np.bincount(labels, weight * engine.weight, 3), rtol=1e-12)
        assert_allclose(found.stats.distortion, np.dot(weight * engine.weight, distance.min(axis=1)), rtol=1e-9)

    def test_massless_component_takes_no_part(self, scaling):
        engine, distortion, state = random_case(0, scaling)
        nothing = state.set(log_mass=np.array([np.log(0.4), np.log(0.6), -np.inf]))
        pair = State(state.beta, state.centers[:2], nothing.log_mass[:2], (0, 1))
        stats, expected = soft_pass(engine, distortion, nothing), soft_pass(engine, distortion, pair)
        assert_allclose(stats.log_partition, expected.log_partition, rtol=1e-14)
        assert_array_equal(stats.mass[2], 0)
        assert_allclose(stats.entropy(nothing), expected.entropy(pair), rtol=1e-12)
