import numpy as np
import pytest
from discrete.twins import slow_paper_target
from scipy.optimize import minimize
from strategies import random_joint

from privacyfunnel.datasets import paper_joint
from privacyfunnel.discrete.dca_ridge import DcaRidge, solve_simplex_ridge
from privacyfunnel.discrete.kernels import LOG_FLOOR, paper_target, project_simplex
from privacyfunnel.discrete.problem import Problem


def random_channel(rng, n_x, n_z):
    p = rng.random((n_x, n_z))
    return p / p.sum(axis=1, keepdims=True)


def slow_projection(v):
    """By bisection on the threshold t of Σ max(v − t, 0) = 1."""
    low, high = v.min() - 1, v.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(v - low, 0)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_the_projection_on_the_simplex_agrees_with_bisection(n):
    rng = np.random.default_rng(n)
    for scale in (1e-3, 1.0, 1e3):
        v, out = rng.normal(scale=scale, size=n), np.empty(n)
        project_simplex(v, out, np.empty(n))
        np.testing.assert_allclose(out, slow_projection(v), atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "low-rank", "duplicated", "rank1"])
@pytest.mark.parametrize("beta", [0.2, 1.5])
def test_the_target_is_the_papers_kronecker_formula(kind, beta):
    rng = np.random.default_rng(7)
    problem = Problem(random_joint(rng, 4, 3, kind))
    p = random_channel(rng, problem.n_x, 3)
    target = np.empty((problem.n_y, 3))
    paper_target(p, beta, problem.p_x, problem.pseudo_inverse, target)
    expected = slow_paper_target(problem.p_xy, p, beta)
    assert expected.min() > LOG_FLOOR
    np.testing.assert_allclose(target, expected, atol=1e-9)


def ridge_residual(a, q, alpha, p):
    """Largest violation of the optimality conditions of min ½‖ap − q‖² + α/2‖p‖² over rows on the simplex.

    For each row a multiplier μ exists with gradient = μ where p > 0 and gradient ≥ μ where p = 0.
    """
    gradient = a.T @ (a @ p - q) + alpha * p
    worst = np.abs(p.sum(axis=1) - 1).max()
    for row, slope in zip(p, gradient, strict=True):
        multiplier = slope[row > 0].mean()
        worst = max(worst, np.abs(slope[row > 0] - multiplier).max())
        worst = max(worst, (multiplier - slope[row == 0]).max(initial=0.0))
    return worst


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", ["dense", "zeros", "low-rank", "duplicated", "rank1", "uniform"])
def test_the_quadratic_programme_satisfies_its_optimality_conditions(alpha, kind):
    rng = np.random.default_rng(11)
    for shape in ((3, 3), (6, 2), (2, 5), (1, 3), (12, 4)):
        problem = Problem(random_joint(rng, *shape, kind))
        a = problem.p_x_given_y
        q = rng.dirichlet(np.full(4, 0.3), size=problem.n_y)
        p = random_channel(rng, problem.n_x, 4)
        solve_simplex_ridge(a.T @ a, a.T @ q, alpha, p)
        assert ridge_residual(a, q, alpha, p) <= 1e-8


def test_the_residual_tells_a_wrong_solution():
    problem = Problem(paper_joint())
    a, q = problem.p_x_given_y, np.full((3, 4), 0.25)
    wrong = random_channel(np.random.default_rng(0), 3, 4)
    assert ridge_residual(a, q, 0.1, wrong) > 1e-3


@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_the_quadratic_programme_agrees_with_a_general_solver(alpha):
    rng = np.random.default_rng(4)
    problem = Problem(random_joint(rng, 4, 3))
    a, q = problem.p_x_given_y, rng.dirichlet(np.full(3, 0.2), size=3)
    p = random_channel(rng, 4, 3)
    start = p.copy()
    solve_simplex_ridge(a.T @ a, a.T @ q, alpha, p)

    def value(flat):
        channel = flat.reshape(4, 3)
        return 0.5 * ((a @ channel - q) ** 2).sum() + 0.5 * alpha * (channel**2).sum()

    slow = minimize(
        value,
        start.ravel(),
        method="SLSQP",
        bounds=[(0, 1)] * 12,
        constraints={"type": "eq", "fun": lambda flat: flat.reshape(4, 3).sum(axis=1) - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert value(p.ravel()) <= slow.fun + 1e-10
    np.testing.assert_allclose(p.ravel(), slow.x, atol=1e-5)


def test_a_step_solves_the_papers_problem():
    rng = np.random.default_rng(9)
    problem = Problem(paper_joint())
    start = random_channel(rng, 3, 3)
    algorithm = DcaRidge()
    state = algorithm.start(problem, start[None], np.array([0.5]), np.array([0.3]))
    algorithm.step(problem, state, np.array([0]))
    target = np.exp(slow_paper_target(problem.p_xy, start, 0.5))
    assert ridge_residual(problem.p_x_given_y, target, 0.3, state.p[0]) <= 1e-8
