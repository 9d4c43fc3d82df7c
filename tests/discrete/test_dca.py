import numpy as np
import pytest
from discrete.twins import slow_dca_map, slow_information
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import joints, random_joint

from privacyfunnel.datasets import paper_joint
from privacyfunnel.discrete.dca import Dca
from privacyfunnel.discrete.iterate import iterate
from privacyfunnel.discrete.problem import NATS_PER_BIT, Problem


def random_channel(rng, n_x, n_z):
    p = rng.random((n_x, n_z))
    return p / p.sum(axis=1, keepdims=True)


def run(problem, beta, starts, **options):
    options = {"tol": 0.0, "max_steps": 200} | options
    betas = np.full(len(starts), beta)
    return iterate(Dca(), problem, np.stack(starts), betas, betas, **options)


@settings(max_examples=1000)
@given(joints(), st.floats(0, 3), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_the_objective_never_rises(joint, beta, n_z, seed):
    rng = np.random.default_rng(seed)
    problem = Problem(joint)
    starts = [random_channel(rng, problem.n_x, n_z) for _ in range(2)]
    ended = run(problem, beta, starts, max_steps=40)
    for start, end, history in zip(starts, ended.p, ended.history, strict=True):
        assert np.all(np.diff(history) <= 0)
        assert np.all(end >= 0)
        np.testing.assert_allclose(end.sum(axis=1), 1, atol=1e-12)
        # The claim, evaluated from the definition and not by the solver:
        before, after = (slow_information(problem.p_xy, p) for p in (start, end))
        assert after[1] - beta * after[0] <= before[1] - beta * before[0] + 1e-12


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("kind", ["dense", "zeros", "low-rank", "duplicated"])
def test_without_extrapolation_a_step_is_the_closed_form_twice(beta, kind):
    rng = np.random.default_rng(3)
    problem = Problem(random_joint(rng, 4, 3, kind))
    start = random_channel(rng, problem.n_x, 5)
    algorithm = Dca()
    state = algorithm.start(problem, start[None].copy(), np.array([beta]), np.array([np.nan]))
    state.longest[:] = 1.0
    algorithm.step(problem, state, np.array([0]))
    twice = slow_dca_map(problem.p_xy, slow_dca_map(problem.p_xy, start, beta), beta)
    np.testing.assert_allclose(state.p[0], twice, atol=1e-13)


def test_acceleration_saves_steps_and_ends_as_low():
    problem = Problem(random_joint(np.random.default_rng(0), 10, 3))
    start = random_channel(np.random.default_rng(1), 10, 11)
    fast = run(problem, 0.1, [start], tol=1e-13, max_steps=20_000)
    algorithm = Dca()
    state = algorithm.start(problem, start[None].copy(), np.array([0.1]), np.array([np.nan]))
    for _ in range(int(fast.n_steps[0]) * 2):
        state.longest[:] = 1.0
        algorithm.step(problem, state, np.array([0]))
    assert fast.objective[0] < state.objective[0]


@pytest.mark.parametrize("beta", [0.15, 0.3, 0.6])
def test_the_end_is_stationary(beta):
    problem = Problem(paper_joint())
    rng = np.random.default_rng(0)
    ended = run(problem, beta, [random_channel(rng, 3, 4) for _ in range(5)], tol=1e-15, max_steps=20_000)
    for p in ended.p:
        assert problem.stationarity_gap(p, beta) <= 1e-6


def test_the_objective_is_the_lagrangian_in_nats():
    rng = np.random.default_rng(5)
    problem = Problem(random_joint(rng, 5, 4, "zeros"))
    ended = run(problem, 0.4, [random_channel(rng, problem.n_x, 4)])
    utility, leakage = slow_information(problem.p_xy, ended.p[0])
    assert ended.objective[0] == pytest.approx((leakage - 0.4 * utility) * NATS_PER_BIT, abs=1e-13)


def test_zeros_stay_zeros():
    problem = Problem(paper_joint())
    start = np.array([[0.5, 0.5, 0.0], [0.0, 0.3, 0.7], [1.0, 0.0, 0.0]])
    ended = run(problem, 0.3, [start])
    assert np.all(ended.p[0][start == 0] == 0)


@pytest.mark.parametrize("kind", ["dense", "zeros", "low-rank"])
def test_the_gradient_matches_finite_differences(kind):
    rng = np.random.default_rng(2)
    problem = Problem(random_joint(rng, 4, 3, kind))
    p, beta, h = random_channel(rng, problem.n_x, 3), 0.7, 1e-6

    def objective(q):
        # Off the simplex: the formula of the Lagrangian as a function of free entries.
        p_z, p_zy = problem.p_x @ q, problem.p_x_given_y @ q
        xlogx = lambda t: t * np.log2(t)  # noqa: E731
        utility = (problem.p_x[:, None] * xlogx(q)).sum() - xlogx(p_z).sum()
        leakage = (problem.p_y[:, None] * xlogx(p_zy)).sum() - xlogx(p_z).sum()
        return leakage - beta * utility

    numeric = np.zeros_like(p)
    for index in np.ndindex(*p.shape):
        step = np.zeros_like(p)
        step[index] = h
        numeric[index] = (objective(p + step) - objective(p - step)) / (2 * h)
    np.testing.assert_allclose(problem.gradient(p, beta), numeric, atol=1e-8)
