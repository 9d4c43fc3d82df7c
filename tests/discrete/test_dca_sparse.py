import numpy as np
import pytest
from discrete.twins import slow_paper_target
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from strategies import random_joint

from privacyfunnel.datasets import paper_joint
from privacyfunnel.discrete.dca_sparse import HIGHEST, DcaSparse, solve_sparse, sparse_value_and_gradient
from privacyfunnel.discrete.kernels import LOG_FLOOR
from privacyfunnel.discrete.problem import Problem


def slow_value(p_x_given_y, target, alpha, log_p):
    with np.errstate(divide="ignore"):
        fitted = logsumexp(np.log(p_x_given_y) + log_p, axis=1)
    return 0.5 * ((fitted - target) ** 2).sum() + alpha * np.abs(log_p).sum()


@pytest.mark.parametrize("kind", ["dense", "zeros", "low-rank", "deterministic"])
def test_value_and_gradient_match_the_definition_and_finite_differences(kind):
    rng = np.random.default_rng(1)
    problem = Problem(random_joint(rng, 5, 3, kind))
    a, target = problem.p_x_given_y, -rng.exponential(2, size=problem.n_y)
    log_p = -rng.exponential(2, size=problem.n_x) - 0.1
    gradient = np.empty(problem.n_x)
    value = sparse_value_and_gradient(a, target, 0.7, log_p, gradient)
    assert value == pytest.approx(slow_value(a, target, 0.7, log_p), rel=1e-12)
    h = 1e-6
    for x in range(problem.n_x):
        step = np.zeros(problem.n_x)
        step[x] = h
        numeric = (slow_value(a, target, 0.7, log_p + step) - slow_value(a, target, 0.7, log_p - step)) / (
            2 * h
        )
        assert gradient[x] == pytest.approx(numeric, abs=1e-7)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", ["dense", "zeros", "low-rank", "rank1"])
def test_the_inner_problem_ends_stationary_and_as_low_as_a_general_solver(alpha, kind):
    rng = np.random.default_rng(2)
    problem = Problem(random_joint(rng, 5, 3, kind))
    a = problem.p_x_given_y
    for _ in range(5):
        target = -rng.exponential(3, size=problem.n_y)
        start = np.clip(-rng.exponential(2, size=problem.n_x), LOG_FLOOR, HIGHEST)
        log_p = start.copy()
        solve_sparse(a, target, alpha, log_p)
        assert np.all((log_p >= LOG_FLOOR) & (log_p <= HIGHEST))
        gradient = np.empty(problem.n_x)
        value = sparse_value_and_gradient(a, target, alpha, log_p, gradient)
        assert np.abs(np.clip(log_p - gradient, LOG_FLOOR, HIGHEST) - log_p).max() <= 1e-6
        slow = minimize(
            lambda free, t=target: slow_value(a, t, alpha, free),
            start,
            method="L-BFGS-B",
            bounds=[(LOG_FLOOR, HIGHEST)] * problem.n_x,
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 10**6},
        )
        assert value <= slow.fun + 1e-6 * (1 + abs(slow.fun))


def test_a_step_is_the_papers_update():
    problem = Problem(paper_joint())
    rng = np.random.default_rng(3)
    start = rng.dirichlet(np.ones(3), size=3)
    algorithm = DcaSparse()
    state = algorithm.start(problem, start[None], np.array([0.4]), np.array([0.2]))
    algorithm.step(problem, state, np.array([0]))
    target = slow_paper_target(problem.p_xy, start, 0.4)
    log_p = np.empty((3, 3))
    for z in range(3):
        slow = minimize(
            lambda free, t=target[:, z]: slow_value(problem.p_x_given_y, t, 0.2, free),
            np.clip(np.log(start[:, z]), LOG_FLOOR, HIGHEST),
            method="L-BFGS-B",
            bounds=[(LOG_FLOOR, HIGHEST)] * 3,
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        log_p[:, z] = slow.x
    np.testing.assert_allclose(state.p[0], softmax(log_p, axis=1), atol=1e-4)
