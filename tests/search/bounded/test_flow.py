"""The barrier flow: a case by hand, the dual solution as oracle, and the laws of its trajectories."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from orthonmf.distortion.few import EuclideanCost, LineCost
from orthonmf.exceptions import InfeasibleCapacityError, InvalidInputError
from orthonmf.search.bounded import flow
from orthonmf.search.bounded.flow import FlowParameters, barrier_flow, relax
from orthonmf.search.status import Status

# Table II of the paper, 19 genes in a component at most (0.36 of 53).
PAPER_DISTORTION = (47.0, 56.7, 50.6, 64.7, 64.5, 48.8, 48.2)


class FixedCost:
    """Given distortions, centres that do not matter."""

    def __init__(self, distortions, weights):
        self.distortions, self.weights = distortions, weights

    def cost(self, centers):
        return self.distortions

    def center_gradient(self, resp, centers):
        return np.zeros_like(centers)

    def place(self, centers):
        return centers


class Recorded:
    """A cost that keeps every state at which the flow asked for velocities."""

    def __init__(self, cost):
        self.inner, self.weights, self.visited = cost, cost.weights, []
        self.cost, self.place, self.spread = cost.cost, cost.place, cost.spread

    def center_gradient(self, resp, centers):
        self.visited.append(resp)
        return self.inner.center_gradient(resp, centers)


def blobs(seed, n_items=40, n_dims=3, n_blobs=3):
    rng = np.random.default_rng(seed)
    centers = rng.gamma(10, 1, size=(n_blobs, n_dims))
    return centers[rng.integers(n_blobs, size=n_items)] + rng.normal(size=(n_items, n_dims))


def unit_rows(seed, n_items=40, n_dims=6):
    """Unit rows about three directions, and squared norms over two decades."""
    rng = np.random.default_rng(seed)
    directions = rng.gamma(1, 1, size=(3, n_dims))
    items = directions[rng.integers(3, size=n_items)] + rng.uniform(0, 0.4, size=(n_items, n_dims))
    return items / np.linalg.norm(items, axis=1, keepdims=True), 10 ** rng.uniform(-1, 1, size=n_items)


def dual_solution(distortions, weights, beta, lower, upper, floor=1e-3):
    """p_ij ∝ exp(−β(ω_i d_ij + price_j)/τ_i) at the prices a − b, a and b ≥ 0, that maximise the dual."""
    tau = np.maximum(weights, floor * weights.mean())
    k = distortions.shape[1]

    def negative_dual(z):
        logits = -beta * (weights[:, None] * distortions + z[:k] - z[k:]) / tau[:, None]
        counts = softmax(logits, axis=1).sum(axis=0)
        value = tau @ logsumexp(logits, axis=1) / beta + z[:k] @ upper - z[k:] @ lower
        return value, np.concatenate([upper - counts, counts - lower])

    options = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 10_000}
    found = minimize(negative_dual, np.zeros(2 * k), jac=True, bounds=[(0, None)] * (2 * k), options=options)
    prices = found.x[:k] - found.x[k:]
    logits = -beta * (weights[:, None] * distortions + prices) / tau[:, None]
    return softmax(logits, axis=1), prices


def uniform_start(n_items, lower, upper):
    share = lower + (upper - lower) * (n_items - lower.sum()) / (upper.sum() - lower.sum())
    return np.tile(share / n_items, (n_items, 1))


def hard_distortion(items, labels):
    return sum(((items[labels == j] - items[labels == j].mean(axis=0)) ** 2).sum() for j in set(labels)) / len(items)


def test_two_points_by_hand():
    # Items ±1, centres ±m: p = 1/(1 + exp(−4βm)), m = 2p − 1 = tanh(2βm); at β = 1, m = 0.957504.
    # At the start p = ½, and V is the mean distortion about ±0.1, (0.9² + 1.1²)/2.
    cost = EuclideanCost(np.array([[-1.0], [1.0]]))
    start = np.full((2, 2), 0.5)
    centers = np.array([[-0.1], [0.1]])
    result = relax(cost, start, centers, 1.0, np.ones(2), parameters=FlowParameters(tol=1e-9))
    assert result.converged
    np.testing.assert_allclose(result.centers, [[-0.957504], [0.957504]], atol=1e-6)
    np.testing.assert_allclose(result.resp, [[0.978752, 0.021248], [0.021248, 0.978752]], atol=1e-6)
    assert result.lyapunov[0] == pytest.approx(1.01)


def test_prices_by_hand():
    # Both items prefer component 1 by 1, which holds one and a half: p = ¾ needs β(1 − price) = log 3.
    cost = FixedCost(np.array([[0.0, 1.0], [0.0, 1.0]]), np.ones(2))
    result = relax(
        cost,
        np.full((2, 2), 0.5),
        np.zeros((2, 1)),
        2.0,
        np.array([1.5, 2]),
        parameters=FlowParameters(tol=1e-10),
    )
    np.testing.assert_allclose(result.resp, [[0.75, 0.25], [0.75, 0.25]], atol=1e-9)
    np.testing.assert_allclose(result.prices, [1 - np.log(3) / 2, 0], atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("beta", [0.5, 4.0, 32.0])
def test_fixed_centers_give_the_dual_solution(seed, beta):
    rng = np.random.default_rng(seed)
    distortions, weights = rng.exponential(size=(30, 3)), rng.exponential(size=30)
    weights[:2] = 0.0
    lower, upper = np.array([0.0, 0.0, 14.0]), np.array([6.0, 20.0, 20.0])
    cost = FixedCost(distortions, weights)
    start = uniform_start(30, lower, upper)
    parameters = FlowParameters(tol=1e-9)
    result = relax(cost, start, np.zeros((3, 1)), beta, upper, min_size=lower, parameters=parameters)
    resp, prices = dual_solution(distortions, weights, beta, lower, upper)
    assert result.converged, result.status
    np.testing.assert_allclose(result.resp, resp, atol=1e-6)
    np.testing.assert_allclose(result.prices, prices, atol=1e-5)
    assert result.prices[0] > 0


def test_both_metrics_come_to_the_same_rest():
    rng = np.random.default_rng(0)
    cost, upper = FixedCost(rng.exponential(size=(20, 3)), np.ones(20)), np.array([5.0, 9.0, 9.0])
    start = uniform_start(20, np.zeros(3), upper)
    # The paper's metric needs many steps where p is small, so this stays at a high temperature.
    ends = [
        relax(cost, start, np.zeros((3, 1)), 0.5, upper, parameters=FlowParameters(metric=metric, tol=1e-9))
        for metric in ("fisher", "euclidean")
    ]
    assert all(end.converged for end in ends)
    np.testing.assert_allclose(ends[0].resp, ends[1].resp, atol=1e-7)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("metric", ["fisher", "euclidean"])
@pytest.mark.parametrize("kind", ["euclidean", "line"])
@pytest.mark.parametrize("capacity", [(14.0, 14.0, 14.0), (8.0, 12.0, 20.0), (40.0, 40.0, 40.0)])
def test_trajectory_keeps_rows_box_capacity_and_descent(metric, kind, capacity):
    upper = np.array(capacity)
    cost = Recorded(EuclideanCost(blobs(0)) if kind == "euclidean" else LineCost(*unit_rows(0)))
    parameters = FlowParameters(metric=metric, max_steps=60, beta_stop=1e3)
    result = barrier_flow(cost, upper, parameters=parameters)
    assert len(cost.visited) > result.steps > 50
    for resp in cost.visited:
        np.testing.assert_allclose(resp.sum(axis=1), 1, atol=1e-13)  # a rounding of 1e-16 at each step
        assert (resp > 0).all()
        assert (resp < 1).all()
        # The programme is solved to 1e-10 of the speeds.
        assert (resp.sum(axis=0) <= upper + 1e-8).all()
    for record in result.history:
        # Relative to V: a sum of nonnegative terms, whose rounding is a few units in the last place.
        assert (np.diff(record.lyapunov) <= 2e-15 * record.lyapunov[:-1]).all()
        assert (record.lyapunov >= 0).all()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(5))
def test_annealing_converges_at_every_temperature_to_centroids(seed):
    items = blobs(seed)
    result = barrier_flow(EuclideanCost(items), np.full(3, 15.0))
    assert all(record.converged for record in result.history)
    means = result.resp.T @ items / result.resp.sum(axis=0)[:, None]
    # tol in units of the thermal length: the gradient 2 m_j(y − ȳ) times β^(1/2) is at most 1e-4.
    np.testing.assert_allclose(result.centers, means, atol=1e-3)


def test_sizes_bind_and_loose_ones_do_not():
    items = np.repeat(np.eye(3), [13, 10, 7], axis=0) * 10 + np.linspace(0, 1, 30)[:, None]
    free = barrier_flow(EuclideanCost(items), np.full(3, 30.0))
    assert sorted(np.bincount(free.resp.argmax(axis=1))) == [7, 10, 13]
    np.testing.assert_allclose(free.prices, 0, atol=1e-9)
    bound = barrier_flow(EuclideanCost(items), np.full(3, 12.0))
    assert np.bincount(bound.resp.argmax(axis=1)).max() <= 12
    assert bound.prices.max() > 0
    filled = barrier_flow(EuclideanCost(items), np.full(3, 30.0), min_size=np.full(3, 8.0))
    assert filled.resp.sum(axis=0).min() >= 8 - 1e-8
    assert filled.prices.min() < 0


@pytest.mark.thinned(3)
@pytest.mark.parametrize("time", range(7))
def test_no_worse_than_the_paper_on_its_genes(microarray, time):
    items = microarray[:, :, time]
    low, high = items.min(axis=0), items.max(axis=0)
    items = 1 + 9 * (items - low) / (high - low)
    result = barrier_flow(EuclideanCost(items), np.full(3, 19.0))
    labels = result.resp.argmax(axis=1)
    assert np.bincount(labels, minlength=3).max() <= 19
    assert hard_distortion(items, labels) <= PAPER_DISTORTION[time]


def test_weighted_vs_repeated():
    items, times = blobs(3, n_items=20), np.random.default_rng(3).integers(1, 4, size=20)
    parameters = FlowParameters(beta_stop=50, tol=1e-8)
    weighted = barrier_flow(EuclideanCost(items, times.astype(float)), np.full(3, 1e3), parameters=parameters)
    repeated = barrier_flow(EuclideanCost(np.repeat(items, times, axis=0)), np.full(3, 1e3), parameters=parameters)
    np.testing.assert_allclose(weighted.centers, repeated.centers, atol=1e-5)
    np.testing.assert_allclose(np.repeat(weighted.resp, times, axis=0), repeated.resp, atol=1e-5)


def test_item_without_weight_does_no_harm():
    items, weights = blobs(4), np.append(np.ones(40), 0.0)
    parameters = FlowParameters(beta_stop=50, tol=1e-8)
    without = barrier_flow(EuclideanCost(items), np.full(3, 41.0), parameters=parameters)
    stray = EuclideanCost(np.vstack([items, np.full(3, 1e3)]), weights)
    with_it = barrier_flow(stray, np.full(3, 41.0), parameters=parameters)
    np.testing.assert_allclose(with_it.centers, without.centers, atol=1e-5)
    np.testing.assert_allclose(with_it.resp[-1], 1 / 3, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_scale_and_offset_do_not_matter(scale):
    items = blobs(5)
    plain, scaled, moved = (barrier_flow(EuclideanCost(rows), np.full(3, 15.0)) for rows in (items, scale * items, items + 1e6))
    np.testing.assert_array_equal(plain.resp.argmax(axis=1), scaled.resp.argmax(axis=1))
    np.testing.assert_array_equal(plain.resp.argmax(axis=1), moved.resp.argmax(axis=1))


def test_same_flow_twice():
    first, second = (barrier_flow(EuclideanCost(blobs(6)), np.full(3, 15.0)) for _ in range(2))
    np.testing.assert_array_equal(first.resp, second.resp)
    np.testing.assert_array_equal(first.lyapunov, second.lyapunov)


@pytest.mark.parametrize("kind", ["euclidean", "line"])
def test_center_gradient_is_the_slope_of_the_cost(kind):
    items, weights = unit_rows(1, n_items=9)
    cost = EuclideanCost(items, weights) if kind == "euclidean" else LineCost(items, weights)
    rng = np.random.default_rng(1)
    resp, centers, turn = rng.dirichlet(np.ones(2), size=9), items[:2], rng.normal(size=(2, 6))
    if kind == "line":
        turn -= np.einsum("jd,jd->j", turn, centers)[:, None] * centers
    ahead, behind = (weights @ (resp * cost.cost(cost.place(centers + step * turn))).sum(axis=1) for step in (1e-5, -1e-5))
    gradient = cost.center_gradient(resp, centers)
    if kind == "line":  # nothing along the centre itself: the flow stays on the sphere to first order
        np.testing.assert_allclose((gradient * centers).sum(axis=1), 0, atol=1e-14 * weights.sum())
    slope = (gradient * turn).sum()
    assert slope == pytest.approx((ahead - behind) / 2e-5, rel=1e-7)  # central differences err by 1e-10


def test_line_cost_is_one_minus_squared_cosine():
    items, weights = unit_rows(2)
    cost = LineCost(items, weights)
    np.testing.assert_allclose(cost.cost(items[:3]), 1 - (items @ items[:3].T) ** 2, atol=1e-14)
    result = barrier_flow(cost, np.full(3, 15.0))
    np.testing.assert_allclose(np.linalg.norm(result.centers, axis=1), 1, rtol=1e-14)


def test_line_cost_keeps_digits_of_small_angles():
    angles = np.array([0.0, 1e-6, 3e-6])
    items = np.column_stack([np.cos(angles), np.sin(angles)])
    # sin² of the difference; 1 − cos² would lose all but four digits.
    expected = np.sin(angles[:, None] - angles) ** 2
    np.testing.assert_allclose(LineCost(items).cost(items), expected, rtol=1e-8, atol=1e-25)


def test_degenerate_items():
    alike = barrier_flow(EuclideanCost(np.ones((6, 2))), np.full(2, 4.0))
    assert alike.converged
    np.testing.assert_allclose(alike.resp, 0.5)
    one = barrier_flow(EuclideanCost(blobs(0)), np.array([40.0]))
    assert one.converged
    each = barrier_flow(EuclideanCost(blobs(0, n_items=3)), np.ones(3))
    np.testing.assert_array_equal(np.bincount(each.resp.argmax(axis=1)), [1, 1, 1])


def test_programme_that_fails_halves_the_step(monkeypatch):
    solve, calls, lengths = flow.solve_velocities, [], []

    def failing(problem, *, start=None):
        calls.append(problem)
        return replace(solve(problem, start=start), solved=len(calls) not in (3, 4))

    def advance(landscape, state, length):
        following, taken = advance.original(landscape, state, length)
        lengths.append(taken / min(length, 0.5))
        return following, taken

    advance.original = flow._advance
    monkeypatch.setattr(flow, "solve_velocities", failing)
    monkeypatch.setattr(flow, "_advance", advance)
    # Loose box and capacity rates, so that nothing but a failure shortens the second step.
    result = relax(
        EuclideanCost(np.array([[-1.0], [1.0]])),
        np.full((2, 2), 0.5),
        np.array([[-0.1], [0.1]]),
        1.0,
        np.ones(2),
    )
    assert result.converged
    assert lengths[:2] == [1.0, 0.25]


def test_no_step_is_longer_than_the_capacity_rate_allows(monkeypatch):
    # ψ(t + dt) ≥ (1 − λ dt) ψ is no promise beyond dt = 1/λ, however long a first step is asked for.
    advance, taken = flow._advance, []

    def recorded(*arguments):
        step = advance(*arguments)
        taken.append(step[1])
        return step

    monkeypatch.setattr(flow, "_advance", recorded)
    parameters = FlowParameters(step_size=100.0, capacity_rate=20.0, box_rate=0.01, max_steps=20)
    barrier_flow(EuclideanCost(blobs(0)), np.full(3, 15.0), parameters=parameters)
    assert max(taken) == 1 / 20


def test_programme_that_fails_at_once_is_flagged(monkeypatch):
    solve = flow.solve_velocities
    monkeypatch.setattr(flow, "solve_velocities", lambda p, start: replace(solve(p, start=start), solved=False))
    result = barrier_flow(EuclideanCost(blobs(0)), np.full(3, 15.0))
    assert not result.converged
    assert result.status is Status.FLOW_PROGRAM
    assert result.steps == 0


def test_unconverged_flow_says_so():
    result = barrier_flow(EuclideanCost(blobs(0)), np.full(3, 15.0), parameters=FlowParameters(max_steps=1))
    assert not result.converged
    assert result.kkt_residual > 1e-4
    assert result.status is Status.FLOW_STEPS


def test_memory_is_refused_with_its_size():
    cost = EuclideanCost(np.zeros((1000, 1)))
    with pytest.raises(InvalidInputError, match=r"1000 × 10 .* 0\.00 GiB.*max_bytes"):
        barrier_flow(cost, np.full(10, 200.0), parameters=FlowParameters(max_bytes=1_000_000))
    parameters = FlowParameters(max_bytes=10_000_000, max_steps=1, beta_stop=0.5)
    assert barrier_flow(cost, np.full(10, 200.0), parameters=parameters).converged


def test_infeasible_bounds_are_refused_with_their_sums():
    with pytest.raises(InfeasibleCapacityError, match=r"40 items .* 0 and 39"):
        barrier_flow(EuclideanCost(blobs(0)), np.full(3, 13.0))
    with pytest.raises(InfeasibleCapacityError, match="42 and 120"):
        barrier_flow(EuclideanCost(blobs(0)), np.full(3, 40.0), min_size=np.full(3, 14.0))
    with pytest.raises(InvalidInputError, match="min_size <= capacity"):
        barrier_flow(EuclideanCost(blobs(0)), np.full(3, 20.0), min_size=np.array([0.0, 0.0, 21.0]))


@pytest.mark.parametrize("make", [EuclideanCost, LineCost])
def test_bad_items_are_refused(make):
    with pytest.raises(InvalidInputError, match="finite"):
        make(np.array([[np.nan, 1.0]]))
    with pytest.raises(InvalidInputError, match="weights"):
        make(np.ones((2, 2)), np.array([1.0, -1.0]))


@pytest.mark.parametrize(("name", "value"), [("growth", 1.0), ("tol", 0.0), ("box_rate", np.nan), ("metric", "l1")])
def test_bad_parameters_are_refused_by_name(name, value):
    with pytest.raises(InvalidInputError, match=name):
        FlowParameters(**{name: value})


def test_infeasible_start_is_refused():
    cost, centers = EuclideanCost(np.array([[-1.0], [1.0]])), np.zeros((2, 1))
    with pytest.raises(InvalidInputError, match="rows sum to one"):
        relax(cost, np.full((2, 2), 0.4), centers, 1.0, np.ones(2))
    with pytest.raises(InvalidInputError, match="Counts"):
        relax(cost, np.array([[0.9, 0.1], [0.9, 0.1]]), centers, 1.0, np.ones(2))
