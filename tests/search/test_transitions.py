"""Phase transitions: where components give way, and how long a number of them persists."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh, null_space

from orthonmf.distortion import REGISTRY
from orthonmf.engines import ThreadTeam
from orthonmf.engines.base import weighted_mean
from orthonmf.engines.dense import DenseEngine
from orthonmf.passes.state import State
from orthonmf.search.gibbs import settle, soft_pass
from orthonmf.search.transitions import (
    Child,
    critical_values,
    distinct,
    halves,
    most_persistent,
    persistence,
    scan,
    with_children,
)

SCALINGS = ("item", "none")
EXACT = {"tol": 1e-13, "max_passes": 200}


@pytest.fixture(params=SCALINGS)
def scaling(request):
    return request.param


def build(X, scaling, weight=None):
    engine = DenseEngine(np.asarray(X, dtype=float), weight, team=ThreadTeam(1))
    return engine, REGISTRY["frobenius", scaling].about(weighted_mean(engine))


def at_rest(engine, distortion, beta=1.0, centers=None):
    """Components at rest: one at the centre of the items, unless centres are given."""
    centers = distortion.origin if centers is None else centers
    k = len(centers)
    state = State(beta, centers, np.full(k, -np.log(k)), tuple(range(k)))
    return settle(engine, distortion, state, tol=1e-22, max_passes=2000)


def responsibilities(X, weight, distortion, state, scaling):
    """ω_i p_ij (k, n) by the paper's formula, in the space of the data."""
    centers = distortion.to_data(state.centers)
    if scaling == "none":
        distance, omega = np.sum((X[None] - centers[:, None]) ** 2, axis=2), weight
    else:
        sq = np.sum(X**2, axis=1)
        distance, omega = 1 - (centers @ X.T) ** 2 / sq, weight * sq
    resp = np.exp(state.log_mass[:, None] - state.beta * (distance - distance.min(axis=0)))
    return omega * resp / resp.sum(axis=0)


def dense_critical_values(X, weight, distortion, state, scaling):
    """β_cr of every component by p × p matrices: 1/(2 λ_max(Cov)); min (uᵀSu − ψᵀSψ)/(2 ψᵀMψ) over ψ ⟂ u."""
    found = []
    resp = responsibilities(X, weight, distortion, state, scaling)
    for q, center in zip(resp / resp.sum(axis=1, keepdims=True), distortion.to_data(state.centers), strict=True):
        if scaling == "none":
            spread = np.linalg.eigvalsh((q * (X - center).T) @ (X - center))[-1]
            found.append(1 / (2 * spread))
            continue
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        second, fourth = (q * unit.T) @ unit, (q * (unit @ center) ** 2 * unit.T) @ unit
        basis = null_space(center[None])
        stiff = center @ second @ center * np.eye(basis.shape[1]) - basis.T @ second @ basis
        found.append(1 / eigh(2 * basis.T @ fourth @ basis, stiff, eigvals_only=True)[-1])
    return np.array(found)


class TestCriticalValues:
    def test_two_points_by_hand(self):
        # ±a about the mean: Cov = a², β_cr = 1/(2a²); here a² = 1.5² + 2².
        engine, distortion = build([[1.0, 1.0], [4.0, 5.0]], "none")
        found = critical_values(engine, distortion, at_rest(engine, distortion), **EXACT)
        assert_allclose(found.beta, [1 / 12.5], rtol=1e-12)
        assert_allclose(np.abs(found.directions), [[0.6, 0.8]], rtol=1e-12)

    @pytest.mark.parametrize("angle", [0.01, 0.3, 0.7])
    def test_two_lines_by_hand(self, angle):
        # ±φ about u: uᵀSu = cos²φ, ψᵀSψ = sin²φ, ψᵀMψ = cos²φ sin²φ, so β_cr = 2 cos 2φ / sin² 2φ.
        middle = np.pi / 4
        X = [[np.cos(middle + side), np.sin(middle + side)] for side in (-angle, angle)]
        engine, distortion = build(X, "item")
        found = critical_values(engine, distortion, at_rest(engine, distortion), **EXACT)
        assert_allclose(found.beta, [2 * np.cos(2 * angle) / np.sin(2 * angle) ** 2], rtol=1e-10)

    @pytest.mark.parametrize("seed", range(10))
    @pytest.mark.parametrize("k", [1, 3])
    def test_equal_the_dense_eigenproblem(self, scaling, k, seed):
        rng = np.random.default_rng(seed)
        X, weight = rng.gamma(2.0, size=(60, 7)), rng.gamma(1.0, size=60)
        engine, distortion = build(X, scaling, weight)
        first = critical_values(engine, distortion, at_rest(engine, distortion), **EXACT).beta[0]
        centers = None if k == 1 else distortion.to_frame(rng.gamma(2.0, size=(k, 7)))
        at = at_rest(engine, distortion, beta=3 * float(first), centers=centers)
        expected = dense_critical_values(X, weight, distortion, at.state, scaling)
        assert_allclose(critical_values(engine, distortion, at, **EXACT).beta, expected, rtol=1e-6)
        # With the usual number of passes they are upper bounds, and near.
        quick = critical_values(engine, distortion, at).beta
        assert np.all(quick >= expected * (1 - 1e-10))
        assert np.all(quick <= expected * 1.02)

    @pytest.mark.parametrize("seed", range(10))
    @pytest.mark.parametrize("k", [1, 3])
    def test_sign_of_the_second_derivative_changes_there(self, scaling, k, seed):
        # A component halved in two that move apart by ±t: F falls where β is above its critical value.
        rng = np.random.default_rng(seed)
        X = rng.gamma(2.0, size=(40, 4))
        engine, distortion = build(X, scaling)
        first = float(critical_values(engine, distortion, at_rest(engine, distortion), **EXACT).beta[0])
        centers = None if k == 1 else distortion.to_frame(rng.gamma(2.0, size=(k, 4)))
        for beta in (0.5 * first, 0.98 * first, 1.02 * first, 2 * first, 5 * first):
            at = at_rest(engine, distortion, beta=beta, centers=centers)
            found = critical_values(engine, distortion, at, **EXACT)
            for j in range(k):
                if abs(found.beta[j] / beta - 1) > 1e-2:  # nearer, the difference drowns in the next order
                    rise = second_difference(engine, distortion, at.state, found.directions, j)
                    assert (rise < 0) == (beta > found.beta[j])

    @pytest.mark.parametrize("X", [np.full((5, 3), 2.0), np.eye(1, 4)], ids=["repeated", "single"])
    def test_no_spread_no_transition(self, scaling, X):
        engine, distortion = build(X, scaling)
        at = at_rest(engine, distortion)
        found = critical_values(engine, distortion, at)
        # Normalised items differ in their last bit: a β of the size of 1/eps², where nothing is looked for.
        assert found.beta[0] >= 0.01 / np.finfo(float).eps ** 2
        assert scaling == "item" or found.beta[0] == np.inf
        assert not any(child.pays for child in scan(engine, distortion, at, found))

    def test_component_without_spread_beside_one_with(self, scaling):
        X = np.array([[1.0, 0.0], [1.0, 0.0], [0.1, 1.0], [0.4, 1.0]])
        engine, distortion = build(X, scaling)
        at = at_rest(engine, distortion, beta=1e4, centers=distortion.to_frame(X[[0, 2]]))
        found = critical_values(engine, distortion, at, **EXACT).beta
        assert found[0] > 1e12  # rounding of the centre is all its spread
        assert 0 < found[1] < 1e4

    @pytest.mark.parametrize(
        "X",
        [
            [[1, 1], [1, 3], [3, 1], [3, 3]],  # the corners of a square: no direction is preferred
            [[3, 1, 1], [1, 3, 1], [1, 1, 3]],
            [[2 + np.cos(a), 2 + np.sin(a)] for a in np.linspace(0, 2 * np.pi, 12, endpoint=False)],
        ],
        ids=["square", "simplex", "circle"],
    )
    def test_symmetric_data_have_a_finite_one(self, scaling, X):
        X = np.asarray(X, dtype=float)
        engine, distortion = build(X, scaling)
        at = at_rest(engine, distortion)
        found = critical_values(engine, distortion, at, **EXACT)
        expected = dense_critical_values(X, np.ones(len(X)), distortion, at.state, scaling)
        assert_allclose(found.beta, expected, rtol=1e-9)
        assert_allclose(np.linalg.norm(found.directions, axis=1), 1, rtol=1e-12)
        children = scan(engine, distortion, at, found)
        assert np.all(np.isfinite([[child.excess, child.onset, child.mass] for child in children]))

    def test_orthogonal_items_have_no_best_line(self):
        # uᵀSu = ψᵀSψ for all directions: one line is optimal at no temperature.
        engine, distortion = build(np.eye(5), "item")
        at = at_rest(engine, distortion)
        found = critical_values(engine, distortion, at)
        assert_allclose(found.beta, [0], atol=1e-12)
        assert scan(engine, distortion, at_rest(engine, distortion, 5.0), found)[0].pays


def second_difference(engine, distortion, state, directions, j):
    """F with component j halved in two that are moved apart by ±t, less F."""
    step = np.zeros(state.n_components)
    step[j] = 1e-2 / np.sqrt(state.beta)
    up, down = (distortion.moved(state.centers, directions, side * step) for side in (1, -1))
    log_mass = np.append(state.log_mass, state.log_mass[j] - np.log(2))
    log_mass[j] -= np.log(2)
    pair = state.set(centers=np.vstack([up, down[j]]), log_mass=log_mass)
    return soft_pass(engine, distortion, state).log_partition - soft_pass(engine, distortion, pair).log_partition


class TestScan:
    """c(y) = Σ ω exp(−β d(x, y))/Z ≤ Σ ω everywhere is optimality: a child pays where it is exceeded."""

    @staticmethod
    def minor_group(scaling, gap, seed):
        """95 % of the items about 0 and 5 % about ``gap``, as numbers or as angles: c(y) has one argument."""
        rng = np.random.default_rng(seed)
        place = np.concatenate([rng.normal(0, 1, 380), rng.normal(gap, 1, 20)])
        if scaling == "none":
            return (place + 10)[:, None], place + 10, lambda x, y: (x - y) ** 2
        angle = 0.5 + 0.02 * place
        return np.column_stack([np.cos(angle), np.sin(angle)]), angle, lambda x, y: np.sin(x - y) ** 2

    @pytest.mark.thinned(5)
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(("gap", "factor"), [(5, 0.6), (10, 0.4)])
    def test_finds_a_minor_group_long_before_the_local_value(self, scaling, gap, factor, seed):
        X, place, distance = self.minor_group(scaling, gap, seed)
        engine, distortion = build(X, scaling)
        at = at_rest(engine, distortion)
        criticals = critical_values(engine, distortion, at, **EXACT)
        local = float(criticals.beta[0])
        center = distortion.to_data(at.state.centers)[0]
        center = center[0] if scaling == "none" else np.arctan2(center[1], center[0])
        grid = np.linspace(place.min(), place.max(), 2000)
        gain = distance(place, center)[:, None] - distance(place[:, None], grid)

        low, high = local / 50, local  # the β at which c first exceeds Σ ω on the grid
        for _ in range(30):
            middle = np.sqrt(low * high)
            exceeds = np.exp(middle * gain).mean(axis=0).max() > 1 + 1e-6
            low, high = (low, middle) if exceeds else (middle, high)
        assert high < factor * local

        def child(beta):
            return scan(engine, distortion, at_rest(engine, distortion, beta, at.state.centers), criticals)[0]

        assert not child(0.98 * high).pays
        found = child(1.02 * high)
        assert found.pays
        best = np.exp(1.02 * high * gain).mean(axis=0)
        assert found.excess <= best.max() - 1 + 1e-9
        # The child is nearer to the minor group than to the centre, and the onset is guessed within the jump.
        where = distortion.to_data(found.center[None])[0]
        where = where[0] if scaling == "none" else np.arctan2(where[1], where[0])
        assert abs(where - grid[best.argmax()]) < abs(where - center)
        assert 0.95 * high <= found.onset <= 1.02 * high

    @pytest.mark.parametrize("seed", range(5))
    def test_excess_and_mass_are_those_of_the_definition(self, scaling, seed):
        rng = np.random.default_rng(seed)
        X, weight = rng.gamma(2.0, size=(50, 3)), rng.gamma(1.0, size=50)
        engine, distortion = build(X, scaling, weight)
        first = float(critical_values(engine, distortion, at_rest(engine, distortion)).beta[0])
        at = at_rest(engine, distortion, 2 * first, distortion.to_frame(X[:2]))
        children = scan(engine, distortion, at, critical_values(engine, distortion, at))
        omega = weight * (1 if scaling == "none" else np.sum(X**2, axis=1))
        for child in children:
            # a component of no mass at the child has p = exp(−β d)/Z times its mass: read the ratio off that
            probe = at.state.set(
                centers=np.vstack([at.state.centers, child.center]),
                log_mass=np.append(at.state.log_mass, -80.0),
            )
            ratio = responsibilities(X, weight, distortion, probe, scaling)[-1] / omega * np.exp(80.0)
            assert_allclose(child.excess, omega @ ratio / omega.sum() - 1, rtol=1e-8, atol=1e-10)
            newton = (omega @ ratio - omega.sum()) / (omega @ (ratio - 1) ** 2)
            assert_allclose(child.mass, newton, rtol=1e-8, atol=1e-10)

    def test_newtons_mass_lowers_the_free_energy(self, scaling):
        X, _, _ = self.minor_group(scaling, 10, 0)
        engine, distortion = build(X, scaling)
        first = float(critical_values(engine, distortion, at_rest(engine, distortion)).beta[0])
        at = at_rest(engine, distortion, 0.5 * first)
        children = scan(engine, distortion, at, critical_values(engine, distortion, at))
        state = with_children(at.state, children, 5)
        assert state.ids == (0, 5)
        assert_allclose(np.exp(state.log_mass).sum(), 1, rtol=1e-14)
        assert soft_pass(engine, distortion, state).log_partition > at.stats.log_partition

    def test_halves_are_a_standard_deviation_away(self, scaling):
        X, _, _ = self.minor_group(scaling, 10, 0)
        engine, distortion = build(X, scaling)
        at = at_rest(engine, distortion)
        criticals = critical_values(engine, distortion, at)
        for factor, pays in ((0.9, False), (1.1, True)):
            beta = factor * float(criticals.beta[0])
            (child,) = halves(distortion, at_rest(engine, distortion, beta), criticals)
            assert child.pays == pays
            assert_allclose(child.excess, factor - 1, rtol=1e-9)
            assert_allclose(child.mass, 0.5, rtol=1e-12)


class TestDistinct:
    def test_joins_coincident_components(self):
        state = State(1.0, np.array([[0.0], [5.0], [1e-3], [5.0]]), np.log([0.1, 0.2, 0.3, 0.4]), (3, 1, 4, 5))
        found = distinct(state)
        assert_array_equal(found.centers, [[0], [5]])
        assert_allclose(np.exp(found.log_mass), [0.4, 0.6], rtol=1e-14)
        assert found.ids == (3, 1)

    def test_drops_massless_components(self):
        state = State(1.0, np.array([[0.0], [5.0], [9.0]]), np.array([np.log(0.4), -np.inf, np.log(0.6)]), (0, 1, 2))
        found = distinct(state)
        assert_array_equal(found.centers, [[0], [9]])
        assert_allclose(np.exp(found.log_mass), [0.4, 0.6], rtol=1e-14)
        assert found.ids == (0, 2)

    def test_what_coincides_depends_on_the_temperature(self):
        state = State(1.0, np.array([[0.0], [1e-3]]), np.log([0.5, 0.5]), (0, 1))
        assert distinct(state).n_components == 1
        cold = state.set(beta=1e6)
        assert distinct(cold) is cold


class TestPersistence:
    def test_by_hand(self):
        # 2 components exist from β = 1, 3 from 2, 4 from 16, 5 from 17
        critical = np.array([1.0, 2.0, 16.0, 17.0])
        assert_allclose(persistence(critical), np.log([2, 8, 17 / 16]), rtol=1e-14)
        assert most_persistent(critical, endless=False) == 3
        assert most_persistent(critical, endless=True) == 5

    @pytest.mark.parametrize("critical", [[], [1.0]])
    def test_too_few_transitions_say_one(self, critical):
        assert persistence(np.array(critical)).size == 0
        assert most_persistent(np.array(critical), endless=False) == 1

    def test_components_that_appear_together_do_not_persist(self):
        critical = np.array([1.0, 1.0, 1.0, 5.0, 6.0])
        assert_allclose(persistence(critical)[:2], 0, atol=0)
        assert most_persistent(critical, endless=False) == 4


def test_child_pays_beyond_rounding_only():
    assert not Child(0, 1e-5, 1.0, np.zeros(1), 0.1).pays
    assert Child(0, 1e-3, 1.0, np.zeros(1), 0.1).pays
