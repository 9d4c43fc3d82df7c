"""The splitting method: its updates against slow twins, its end points against `dca` and stationarity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import wrightomega, xlogy
from strategies import joints, random_joint

from privacyfunnel.datasets.joints import paper_joint
from privacyfunnel.discrete.dca import Dca
from privacyfunnel.discrete.iterate import Iterated, iterate
from privacyfunnel.discrete.methods import METHODS
from privacyfunnel.discrete.problem import NATS_PER_BIT, Problem
from privacyfunnel.discrete.splitting import (
    FEASIBLE,
    STATIONARY,
    WEIGHT_Z,
    Splitting,
    SplittingState,
    entropy_prox,
    stacked,
    true_value_and_gap,
    update_p,
    update_q,
)
from privacyfunnel.information import utility_and_leakage
from privacyfunnel.joint import Joint
from privacyfunnel.solution import Status

DEFAULT_PENALTY = METHODS["splitting"].default


class Watched(Splitting):
    """Keeps the last state, which the loop's best iterate need not be."""

    state: SplittingState

    def start(self, problem, p, beta, parameter):
        self.state = super().start(problem, p, beta, parameter)
        return self.state


def random_channels(rng: np.random.Generator, n_tasks: int, n_x: int, n_z: int) -> np.ndarray:
    p = rng.random((n_tasks, n_x, n_z))
    return p / p.sum(axis=2, keepdims=True)


def run(
    problem: Problem, beta: np.ndarray, *, seed: int = 0, max_steps: int = 10_000
) -> tuple[Iterated, SplittingState]:
    rng = np.random.default_rng(seed)
    p = random_channels(rng, len(beta), problem.n_x, max(problem.n_x, problem.n_y) + 1)
    algorithm = Watched()
    parameter = np.full(len(beta), DEFAULT_PENALTY)
    ended = iterate(algorithm, problem, p, beta, parameter, tol=1e-6, max_steps=max_steps)
    return ended, algorithm.state


def polish(problem: Problem, p: np.ndarray, beta: np.ndarray) -> Iterated:
    return iterate(Dca(), problem, p, beta, np.zeros(len(beta)), tol=1e-12, max_steps=20_000)


def slow_j(
    problem: Problem, p: np.ndarray, q: np.ndarray, nu: np.ndarray, beta: float, penalty: float
) -> float:
    """The augmented Lagrangian from its definition, each entropy by name."""
    p_y = problem.p_y[:, None]
    h_z_given_x = -(problem.p_x[:, None] * xlogy(p, p)).sum()
    h_z = -xlogy(q[0], q[0]).sum()
    h_z_given_y = -(p_y * xlogy(q[1:], q[1:])).sum()
    r_z, r_y = problem.p_x @ p - q[0], problem.p_x_given_y @ p - q[1:]
    value = beta * h_z_given_x + (1 - beta) * h_z - h_z_given_y
    value += WEIGHT_Z * (nu[0] * r_z + penalty / 2 * r_z**2).sum()
    return float(value + (p_y * (nu[1:] * r_y + penalty / 2 * r_y**2)).sum())


@pytest.mark.parametrize("weight", [-3.0, -0.9, -0.05, 0.0, 0.05, 1.0, 9.0])
@pytest.mark.parametrize("penalty", [0.5, 8.0, 400.0])
def test_entropy_prox_is_the_minimiser(weight, penalty):
    def value(t):
        return weight * xlogy(t, t) - linear * t + penalty / 2 * t**2

    for linear in [-50.0, -3.0, -0.4, 0.0, 0.3, 1.0, 4.0, 60.0]:
        t = entropy_prox(weight, linear, penalty)
        assert t >= 0
        # The curve has at most two valleys: one at 0, one beyond the bend.
        bend = max(-weight / penalty, 0.0)
        top = 10 + 2 * (abs(linear) + abs(weight)) / penalty
        beyond = minimize_scalar(value, bounds=(bend, top), method="bounded", options={"xatol": 1e-12})
        least = min(value(0.0), beyond.fun, value(np.linspace(0, top, 4001)).min())
        assert value(t) <= least + 1e-14 * max(1.0, linear**2 / penalty)
        if t > 1e-300 and weight != 0:
            slope = weight * (np.log(t) + 1) - linear + penalty * t
            assert abs(slope) <= 1e-11 * (abs(linear) + abs(weight) * (1 + abs(np.log(t))) + penalty * t)


@pytest.mark.parametrize("linear", [-800.0, -30.0, -1.0, 0.0, 2.0, 700.0])
def test_entropy_prox_equals_the_wright_omega_function(linear):
    # t log t − linear · t + (c/2) t²: c t + log(c t) = linear − 1 + log c
    for penalty in (0.1, 1.0, 50.0):
        expected = wrightomega(linear - 1 + np.log(penalty)) / penalty
        assert entropy_prox(1.0, linear, penalty) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_entropy_prox_at_the_edge_of_convexity():
    for weight in (-1e-17, 1e-17, -1e-300, 1e-300):
        assert entropy_prox(weight, 3.0, 2.0) == pytest.approx(1.5)
        assert entropy_prox(weight, -3.0, 2.0) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["dense", "zeros", "tiny", "deterministic"])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0, 4.0])
def test_both_primal_updates_lower_the_augmented_lagrangian(kind, beta):
    problem = Problem(random_joint(np.random.default_rng(4), 4, 3, kind))
    p = random_channels(np.random.default_rng(1), 1, problem.n_x, 4)
    state = Splitting().start(problem, p, np.array([beta]), np.array([DEFAULT_PENALTY]))
    arrays = stacked(problem)
    p, log_p, q, nu = state.p[0], state.log_p[0], state.q[0], state.nu[0]
    penalty, length = float(state.penalty[0]), float(state.length[0])
    value = slow_j(problem, p, q, nu, beta, penalty)
    utility, leakage = utility_and_leakage(problem.p_xy, p)
    assert value == pytest.approx((leakage - beta * utility) * NATS_PER_BIT, abs=1e-12)
    falls = []
    for _ in range(60):
        length = update_p(p, log_p, q, nu, beta, penalty, length, *arrays)
        after_p = slow_j(problem, p, q, nu, beta, penalty)
        falls.append(value - after_p)
        a = arrays[0] @ p
        leaving = ((a == 0) & (q > 0)).any()
        update_q(a, q, nu, beta, penalty)
        after_q = slow_j(problem, p, q, nu, beta, penalty)
        if not leaving:
            falls.append(after_p - after_q)
        nu += penalty * (a - q)
        value = slow_j(problem, p, q, nu, beta, penalty)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert min(falls) >= -1e-12
    if kind != "tiny":  # one pair of letters has nearly all the mass there
        assert max(falls) > 1e-6


def test_the_safe_length_descends_from_anywhere():
    rng = np.random.default_rng(8)
    problem = Problem(random_joint(rng, 5, 4))
    arrays = stacked(problem)
    for _ in range(30):
        p = random_channels(rng, 1, 5, 3)[0]
        q, nu = rng.random((5, 3)), rng.normal(size=(5, 3)) * 5
        beta, penalty = rng.uniform(0, 3), 10.0 ** rng.uniform(-1, 3)
        before = slow_j(problem, p, q, nu, beta, penalty)
        update_p(p, np.log(p), q, nu, beta, penalty, 1e-12, *arrays)
        assert slow_j(problem, p, q, nu, beta, penalty) < before


def test_the_gap_is_that_of_the_problem():
    rng = np.random.default_rng(2)
    problem = Problem(random_joint(rng, 4, 5, "zeros"))
    for beta in (0.0, 0.4, 1.0, 3.0):
        p = random_channels(rng, 1, problem.n_x, 3)[0]
        value, gap = true_value_and_gap(p, np.log(p), beta, *stacked(problem))
        utility, leakage = utility_and_leakage(problem.p_xy, p)
        assert value / NATS_PER_BIT == pytest.approx(leakage - beta * utility, abs=1e-12)
        assert gap / NATS_PER_BIT == pytest.approx(problem.stationarity_gap(p, beta), abs=1e-12)


def test_it_does_not_stop_at_its_start():
    problem = Problem(paper_joint())
    ended, _ = run(problem, np.full(10, 0.5), max_steps=3000)
    assert ended.n_steps.min() > 5
    assert all(history[-1] < history[0] - 0.01 for history in ended.history)


@pytest.mark.parametrize("case", ["paper", "dense", "zeros", "low-rank", "duplicated"])
def test_where_it_settles_is_feasible_stationary_and_kept_by_dca(case):
    rng = np.random.default_rng(6)
    problem = Problem(paper_joint() if case == "paper" else random_joint(rng, 4, 3, case))
    beta = np.repeat([0.1, 0.3, 0.6, 1.0, 3.0], 4)
    ended, state = run(problem, beta, max_steps=4000)
    done = np.array([status is Status.CONVERGED for status in ended.status])
    assert done.mean() >= 0.8
    forward, _, _, mass = stacked(problem)
    residual = (mass[:, None] * np.abs(forward @ state.p - state.q)).max(axis=(1, 2))
    gaps = np.array([problem.stationarity_gap(p, b) for p, b in zip(state.p, beta, strict=True)])
    assert residual[done].max() <= FEASIBLE
    assert gaps[done].max() <= STATIONARY / NATS_PER_BIT * 1.01
    moved = state.objective - polish(problem, state.p, beta).objective
    assert np.abs(moved[done]).max() <= 1e-6


def test_as_good_as_dca_on_the_papers_joint():
    problem = Problem(paper_joint())
    beta = np.repeat([0.1, 0.25, 0.45, 0.65, 1.0, 10.0], 20)
    ended, _ = run(problem, beta)
    assert sum(status is Status.CONVERGED for status in ended.status) >= 0.95 * len(beta)
    start = random_channels(np.random.default_rng(0), len(beta), 3, 4)
    reference = polish(problem, start, beta).objective.reshape(-1, 20).min(axis=1)
    np.testing.assert_allclose(ended.objective.reshape(-1, 20).min(axis=1), reference, atol=1e-4)
    for p, b, objective in zip(ended.p, beta, ended.objective, strict=True):
        utility, leakage = utility_and_leakage(problem.p_xy, p)
        assert objective / NATS_PER_BIT == pytest.approx(leakage - b * utility, abs=1e-12)


def test_the_spelling_of_y_does_not_matter():
    joint = random_joint(np.random.default_rng(9), 4, 3)
    spelled = Joint(np.column_stack([joint.p_xy[:, :2], 0.3 * joint.p_xy[:, 2], 0.7 * joint.p_xy[:, 2]]))
    p = random_channels(np.random.default_rng(0), 3, 4, 4)
    beta, parameter = np.array([0.2, 0.6, 2.0]), np.full(3, DEFAULT_PENALTY)
    first, second = (
        iterate(Splitting(), Problem(j), p, beta, parameter, tol=1e-6, max_steps=20).p
        for j in (joint, spelled)
    )
    np.testing.assert_allclose(first, second, atol=1e-10)


@settings(max_examples=60)
@given(joint=joints(max_x=5, max_y=5), beta=st.sampled_from([0.0, 0.03, 0.4, 1.0, 1.5, 10.0, 1e3]))
def test_any_joint_gives_a_valid_channel_no_worse_than_its_start(joint, beta):
    problem = Problem(joint)
    ended, state = run(problem, np.full(2, beta), max_steps=150)
    assert Status.NOT_FINITE not in ended.status
    assert np.isfinite(state.nu).all()
    assert (ended.p >= 0).all()
    np.testing.assert_allclose(ended.p.sum(axis=2), 1, atol=1e-12)
    assert all(ended.objective[task] <= ended.history[task][0] for task in range(2))


def test_zeros_of_a_start_stay_and_do_no_harm():
    problem = Problem(paper_joint())
    p = np.array([[[1.0, 0, 0], [0.5, 0.5, 0], [0, 0.25, 0.75]]])
    ended = iterate(
        Splitting(), problem, p, np.array([0.4]), np.array([DEFAULT_PENALTY]), tol=1e-6, max_steps=5000
    )
    assert ended.status == [Status.CONVERGED]
    assert (ended.p[p == 0] == 0).all()
