"""The structured quadratic programme: cases by hand, a library solver as oracle, and its laws."""

from dataclasses import replace

import numpy as np
import pytest

from orthonmf.exceptions import InvalidInputError
from orthonmf.search.bounded.qp import VelocityProblem, box_bound, project_items, solve_velocities

INF = np.inf


def two_entries(**changes):
    """One item, two components, slopes (1, −1), no bounds: minimise v₁² + v₂² + δ² with v₁ − v₂ − δ ≤ −1."""
    plain = VelocityProblem(
        resp_gradient=np.array([[1.0, -1.0]]),
        center_gradient=np.zeros((2, 1)),
        decrease=1.0,
        count_lower=np.full(2, -INF),
        count_upper=np.full(2, INF),
        lower=np.full((1, 2), -INF),
        mobility=np.ones((1, 2)),
        slack_weight=1.0,
    )
    return replace(plain, **changes)


def random_problem(seed, n_items=None):
    """A state of the flow at random, with bounds of every kind on some of its counts."""
    rng = np.random.default_rng(seed)
    n, k, d = n_items or rng.integers(2, 40), rng.integers(2, 7), rng.integers(1, 4)
    resp = rng.dirichlet(np.full(k, 10 ** rng.uniform(-1, 1)), size=n)
    resp = np.maximum(resp, 1e-9) / np.maximum(resp, 1e-9).sum(axis=1, keepdims=True)
    items, centers, beta = rng.normal(size=(n, d)), rng.normal(size=(k, d)), 10 ** rng.uniform(-1, 2)
    cost = ((items[:, None] - centers) ** 2).sum(axis=2)
    value = np.mean((resp * (cost + np.log(k * resp) / beta)).sum(axis=1))
    margin = np.where(rng.random(k) < 0.5, 0.0, rng.exponential(0.3 * n / k, size=k))
    spare = np.where(rng.random(k) < 0.5, INF, rng.exponential(0.05 * n / k, size=k))
    rates = 10 ** rng.uniform(-1, 1, size=3)
    return (
        resp,
        VelocityProblem(
            resp_gradient=(cost + (1 + np.log(resp)) / beta) / n,
            center_gradient=2 * (resp.sum(axis=0)[:, None] * centers - resp.T @ items) / n,
            decrease=rates[0] * value if seed % 40 else 0.0,
            count_lower=-rates[1] * spare,
            count_upper=rates[1] * margin,
            lower=box_bound(resp, rates[2]),
            mobility=np.maximum(resp, 1e-2) if seed % 3 == 0 else np.ones((n, k)),
            slack_weight=10 ** rng.uniform(-1, 3),
        ),
        rates[2],
    )


def box_above(resp, box_rate):
    """The paper's bound on v where p > ½, which the structured solver leaves out as implied."""
    over = resp > 0.5
    return np.where(over, box_rate * resp * (1 - resp) / np.where(over, 2 * resp - 1, 1), INF)


def by_library(problem, upper):
    """Velocities and objective of the whole programme, the upper bounds included, by PIQP."""
    piqp, sparse = pytest.importorskip("piqp"), pytest.importorskip("scipy.sparse")
    n, k = problem.resp_gradient.shape
    centers, rest = problem.center_gradient.size, problem.center_gradient.size + 1
    weights = [2 / problem.mobility.ravel(), np.full(centers, 2.0), [2 * problem.slack_weight]]
    weights = np.concatenate(weights)
    rows = sparse.hstack([sparse.kron(sparse.eye(n), np.ones((1, k))), sparse.csc_matrix((n, rest))])
    counts = sparse.hstack([sparse.kron(np.ones((1, n)), sparse.eye(k)), sparse.csc_matrix((k, rest))])
    slopes = [problem.resp_gradient.ravel(), problem.center_gradient.ravel(), [-1.0]]
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-12
    solver.settings.check_duality_gap = True
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-12
    solver.setup(
        sparse.diags(weights).tocsc(),
        np.zeros(len(weights)),
        rows.tocsc(),
        np.zeros(n),
        sparse.vstack([sparse.csc_matrix(np.concatenate(slopes)), counts]).tocsc(),
        np.concatenate([[-INF], problem.count_lower]),
        np.concatenate([[-problem.decrease], problem.count_upper]),
        np.concatenate([problem.lower.ravel(), np.full(rest, -INF)]),
        np.concatenate([upper.ravel(), np.full(rest, INF)]),
    )
    assert solver.solve() == piqp.PIQP_SOLVED
    point = solver.result.x
    return point[: n * k].reshape(n, k), point[n * k : -1].reshape(k, -1), 0.5 * weights @ point**2


def test_descent_by_hand():
    # v = (−a, a): a = η/2, δ = η/2 and 2a + δ = 1 give η = 2/3.
    solution = solve_velocities(two_entries())
    np.testing.assert_allclose(solution.resp_velocity, [[-1 / 3, 1 / 3]], rtol=1e-14)
    assert (solution.slack, solution.descent_multiplier) == pytest.approx((1 / 3, 2 / 3))
    assert solution.objective == pytest.approx(1 / 3)
    assert solution.solved


def test_centers_by_hand():
    # h = (3, 0) joins in: ‖u‖ = 3η/2 and (2 + 9 + 1) η/2 = 1.
    solution = solve_velocities(two_entries(center_gradient=np.array([[3.0], [0.0]])))
    np.testing.assert_allclose(solution.center_velocity, [[-1 / 4], [0]], rtol=1e-14)
    assert solution.descent_multiplier == pytest.approx(1 / 6)


def test_full_capacity_by_hand():
    # Nothing may enter component 2: v = 0, so δ = 1, η = 2, and 2 + κ₁ + ν = 0 = −2 + κ₂ + ν with κ₁ = 0.
    solution = solve_velocities(two_entries(count_upper=np.array([INF, 0.0])))
    np.testing.assert_allclose(solution.resp_velocity, 0, atol=1e-15)
    np.testing.assert_allclose(solution.count_multipliers, [0, 4])
    assert solution.slack == pytest.approx(1)


def test_lower_count_by_hand():
    # At most 0.1 may leave component 1: v = (−0.1, 0.1), δ = 0.8, η = 1.6, and κ₁ = −2 · 1.6 + 4 · 0.1.
    solution = solve_velocities(two_entries(count_lower=np.array([-0.1, -INF])))
    np.testing.assert_allclose(solution.resp_velocity, [[-0.1, 0.1]])
    np.testing.assert_allclose(solution.count_multipliers, [-2.8, 0])


def test_box_by_hand():
    solution = solve_velocities(two_entries(lower=np.array([[-0.1, -INF]])))
    np.testing.assert_allclose(solution.resp_velocity, [[-0.1, 0.1]])
    assert solution.objective == pytest.approx(0.02 + 0.8**2)


def test_box_bound_by_hand():
    # p = 1/4: ½ v ≥ −2 · 3/16 gives −3/4; nothing below for p ≥ ½.
    np.testing.assert_allclose(box_bound(np.array([[0.25, 0.5, 0.75]]), 2.0), [[-0.75, -INF, -INF]])


def test_agrees_with_library_where_every_kind_of_constraint_is_active_and_inactive():
    seen = {}
    for seed in range(200):
        resp, problem, box_rate = random_problem(seed)
        upper = box_above(resp, box_rate)
        solution = solve_velocities(problem)
        velocity, center_velocity, objective = by_library(problem, upper)
        assert solution.solved, seed
        assert solution.objective == pytest.approx(objective, rel=1e-8, abs=1e-8), seed
        np.testing.assert_allclose(solution.resp_velocity, velocity, atol=1e-6, err_msg=str(seed))
        np.testing.assert_allclose(solution.center_velocity, center_velocity, atol=1e-6, err_msg=str(seed))
        for kind, active in activity(problem, solution, upper).items():
            seen.setdefault(kind, set()).update(active.tolist())
    assert all(kinds == {True, False} for kinds in seen.values()), seen


def activity(problem, solution, upper):
    """For every kind of constraint, which of them the solution meets with equality."""
    v, counts = solution.resp_velocity, solution.resp_velocity.sum(axis=0)
    finite = np.isfinite(upper)
    return {
        "descent": np.array([solution.descent_multiplier > 0]),
        "capacity": solution.count_multipliers > 0,
        "capacity met without force": (problem.count_upper == 0) & (counts > -1e-12),
        "lower count": (solution.count_multipliers < 0)[np.isfinite(problem.count_lower)],
        "box below": np.isclose(v, problem.lower)[np.isfinite(problem.lower)],
        "box above": np.isclose(v, upper)[finite],
    }


@pytest.mark.parametrize("seed", range(10))
def test_constraints_hold_and_multipliers_are_complementary(seed):
    _, problem, _ = random_problem(seed, n_items=500)
    solution = solve_velocities(problem)
    v, counts, kappa = solution.resp_velocity, solution.resp_velocity.sum(axis=0), solution.count_multipliers
    tiny = 1e-9 * np.abs(v).sum()
    np.testing.assert_allclose(v.sum(axis=1), 0, atol=1e-13 * (1 + np.abs(v).max()))
    assert (v >= problem.lower).all()
    assert (counts <= problem.count_upper + tiny).all()
    assert (counts >= problem.count_lower - tiny).all()
    np.testing.assert_allclose(counts[kappa > 0], problem.count_upper[kappa > 0], atol=tiny)
    np.testing.assert_allclose(counts[kappa < 0], problem.count_lower[kappa < 0], atol=tiny)
    assert solution.kkt_residual <= 1e-10


@pytest.mark.parametrize("seed", range(10))
def test_unit_of_energy_does_not_matter(seed):
    _, problem, _ = random_problem(seed)
    scale = 2.0**30
    scaled = replace(
        problem,
        resp_gradient=scale * problem.resp_gradient,
        center_gradient=scale * problem.center_gradient,
        decrease=scale * problem.decrease,
        slack_weight=problem.slack_weight / scale**2,
    )
    expected = solve_velocities(problem).resp_velocity
    np.testing.assert_allclose(solve_velocities(scaled).resp_velocity, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_warm_start_reaches_the_same_solution_sooner(seed):
    _, problem, _ = random_problem(seed + 1, n_items=200)
    cold = solve_velocities(problem)
    multipliers = np.append(cold.descent_multiplier, cold.count_multipliers)
    warm = solve_velocities(problem, start=1.001 * multipliers)
    assert warm.n_iter <= cold.n_iter
    np.testing.assert_allclose(warm.resp_velocity, cold.resp_velocity, atol=1e-9)


def test_all_capacities_full():
    # Σψ = 0: every count is held, and only multipliers up to a common constant are determined.
    _, problem, _ = random_problem(7, n_items=50)
    solution = solve_velocities(replace(problem, count_upper=np.zeros_like(problem.count_upper)))
    assert solution.solved
    np.testing.assert_allclose(solution.resp_velocity.sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_nearly_hard_responsibilities_are_solved_in_the_fisher_metric(seed):
    rng = np.random.default_rng(seed)
    resp = np.maximum(np.exp(-rng.exponential(200, size=(30, 4))), 1e-300)
    resp /= resp.sum(axis=1, keepdims=True)
    problem = VelocityProblem(
        resp_gradient=rng.exponential(size=(30, 4)) + np.log(resp) / 100,
        center_gradient=np.zeros((4, 1)),
        decrease=1.0,
        count_lower=np.full(4, -INF),
        count_upper=np.zeros(4),
        lower=box_bound(resp, 2.0),
        mobility=resp,
        slack_weight=100.0,
    )
    solution = solve_velocities(problem)
    assert solution.solved
    assert (solution.resp_velocity >= -2.0 * resp * (1 + 1e-12) / np.maximum(1 - 2 * resp, 1e-2)).all()


def test_zero_decrease_asks_for_nothing():
    solution = solve_velocities(two_entries(decrease=0.0))
    assert not solution.resp_velocity.any()
    assert solution.solved
    assert solution.slack == 0


def test_unsolved_programme_is_flagged_with_its_residual():
    solution = solve_velocities(two_entries(), max_iter=0)
    assert not solution.solved
    assert solution.kkt_residual > 0.1


@pytest.mark.parametrize("name", list(VelocityProblem.__dataclass_fields__))
def test_nan_is_refused(name):
    with pytest.raises(InvalidInputError):
        two_entries(**{name: np.nan * getattr(two_entries(), name)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lower": np.zeros((2, 2))}, r"lower has shape \(2, 2\)"),
        ({"center_gradient": np.zeros((3, 1))}, "3 rows"),
        ({"slack_weight": 0.0}, "slack_weight must be positive, got 0.0"),
        ({"decrease": -1.0}, "decrease must not be negative, got -1.0"),
        ({"mobility": np.array([[1.0, 0.0]])}, "mobility must be positive"),
        ({"count_upper": np.array([-1.0, 1.0])}, "Zero velocity must be feasible"),
    ],
)
def test_bad_input_is_refused_by_name(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        two_entries(**changes)


@pytest.mark.parametrize("seed", range(20))
def test_projection_is_nearest_feasible_point(seed):
    # The nearest point makes an obtuse angle with every other feasible one.
    rng = np.random.default_rng(seed)
    target, mobility = rng.normal(size=(4, 1)), rng.exponential(size=(4, 1))
    lower = np.where(rng.random((4, 1)) < 0.5, -rng.exponential(0.3, size=(4, 1)), -INF)
    nearest, free = project_items(target, lower, mobility)
    assert nearest.sum() == pytest.approx(0, abs=1e-14)
    assert (free[nearest > lower] > 0).all()
    for _ in range(50):
        other, _ = project_items(rng.normal(scale=2, size=(4, 1)), lower, mobility)
        assert ((target - nearest) * (other - nearest) / mobility).sum() <= 1e-12
