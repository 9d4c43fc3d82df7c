"""The published solvers for a known distribution: one step of each against a literal twin."""

import numpy as np
import pytest
from scipy.optimize import minimize

from privacyfunnel.datasets import paper_joint
from privacyfunnel.discrete.problem import Problem
from privacyfunnel.experiments import published

PROBLEM = Problem(paper_joint())
P_X = PROBLEM.p_x
P_Y_GIVEN_X = PROBLEM.p_y_given_x.T  # (y, x), as in the description
P_X_GIVEN_Y = PROBLEM.p_x_given_y.T  # (x, y)


def clipped(table):
    """Columns are distributions over the first axis."""
    table = np.clip(table, 1e-8, 1 - 1e-8)
    return table / table.sum(axis=0, keepdims=True)


def literal_target(p, beta):
    """p is (z, x): q is (z, y)."""
    p_z = p @ P_X
    c = np.log(p_z)[:, None] + beta * np.log(p / p_z[:, None])
    right_inverse = P_Y_GIVEN_X.T @ np.linalg.inv(P_Y_GIVEN_X @ P_Y_GIVEN_X.T)
    raw = c @ right_inverse
    raw = raw - raw.max(axis=1, keepdims=True)  # over y, where a softmax over z needs the maximum over z
    q = np.exp(raw)
    return clipped(q / q.sum(axis=0, keepdims=True))


def literal_sparse(p, q, alpha):
    def loss(log_p):
        return 0.5 * ((np.exp(log_p) @ P_X_GIVEN_Y - q) ** 2).sum() - alpha * log_p.sum()

    log_p = np.log(p)
    for _ in range(10_000):
        lse = np.log(np.exp(log_p) @ P_X_GIVEN_Y)  # (z, y)
        gradient = np.zeros_like(log_p)
        for z, x, y in np.ndindex(*log_p.shape, q.shape[1]):
            softmax = np.exp(np.log(P_X_GIVEN_Y[x, y]) + log_p[z, x] - lse[z, y])
            gradient[z, x] += lse[z, y] * softmax
        moved = log_p - 5e-3 * (gradient - alpha)
        moved = moved - np.log(np.exp(moved).sum(axis=0, keepdims=True))
        if abs(loss(moved) - loss(log_p)) < 1e-5:
            break
        log_p = moved
    return clipped(np.exp(log_p))


def literal_ridge(p, q, alpha):
    """The quadratic programme over simplices: a general solver says which entries are 0, and the optimality
    conditions, which are linear then, give the others."""
    n_z, n_x = p.shape

    def value(flat):
        table = flat.reshape(p.shape)
        return ((table @ P_X_GIVEN_Y - q) ** 2).sum() + alpha * (flat**2).sum()

    columns = np.tile(np.eye(n_x), n_z)  # sums over z
    constraint = {"type": "eq", "fun": lambda flat: columns @ flat - 1}
    options = {"maxiter": 2_000, "ftol": 1e-15}
    found = minimize(value, p.ravel(), bounds=[(0, 1)] * p.size, constraints=constraint, options=options)
    free = found.x > 1e-4
    hessian = np.kron(np.eye(n_z), 2 * (P_X_GIVEN_Y @ P_X_GIVEN_Y.T + alpha * np.eye(n_x)))
    linear = 2 * (q @ P_X_GIVEN_Y.T).ravel()
    inside = columns[:, free]
    conditions = np.block([[hessian[np.ix_(free, free)], -inside.T], [inside, np.zeros((n_x, n_x))]])
    solved = np.linalg.solve(conditions, np.append(linear[free], np.ones(n_x)))
    entries, multipliers = np.zeros(p.size), solved[free.sum() :]
    entries[free] = solved[: free.sum()]
    assert entries.min() >= 0
    assert (hessian @ entries - linear - columns.T @ multipliers).min() >= -1e-12
    return clipped(entries.reshape(p.shape))


def start(seed, n_z):
    p = np.random.default_rng(seed).random((n_z, PROBLEM.n_x))
    return p / p.sum(axis=0, keepdims=True)


@pytest.mark.parametrize("n_z", [2, 4])
@pytest.mark.parametrize(("beta", "alpha"), [(0.1, 0.1), (1.0, 2.0), (10.0, 0.1)])  # the last has zeros
@pytest.mark.parametrize("sparse", [False, True], ids=["ridge", "sparse"])
def test_two_steps_are_those_of_a_literal_twin(sparse, beta, alpha, n_z):
    p = start(3, n_z)
    expected = p
    for _ in range(2):
        q = literal_target(expected, beta)
        expected = (literal_sparse if sparse else literal_ridge)(expected, q, alpha)
    found, target = np.ascontiguousarray(p.T), np.empty((PROBLEM.n_y, n_z))
    a = PROBLEM.p_x_given_y
    for _ in range(2):
        published._target(found, beta, P_X, PROBLEM.pseudo_inverse, target)
        if sparse:
            published._sparse_step(found, alpha, a, target)
        else:
            published.solve_simplex_ridge(a.T @ a, a.T @ target, alpha, found)
        published._clip_rows(found)
    np.testing.assert_allclose(found.T, expected, rtol=0, atol=1e-6)


def literal_loss(p, beta):
    """What the program lowers: I(Z;Y) times its own β, one over the paper's, minus I(Z;X), in nats."""
    p_z = (p @ P_X)[:, None]
    given_y = p @ P_X_GIVEN_Y
    leakage = (P_Y_GIVEN_X @ P_X * given_y * np.log(given_y / p_z)).sum()
    return leakage / beta - (P_X * p * np.log(p / p_z)).sum()


@pytest.mark.parametrize(
    ("sparse", "beta", "alpha"), [(False, 0.1, 0.5), (False, 3.0, 2.0), (True, 3.0, 0.5)]
)
def test_a_run_is_that_of_a_literal_twin(sparse, beta, alpha):
    """Steps until the loss changes by less than 1e-6, as many, and to the same end."""
    p = start(1, 3)
    losses, n_steps = [literal_loss(p, beta)], 0
    while n_steps == 0 or abs(losses[-1] - losses[-2]) >= 1e-6:
        p = (literal_sparse if sparse else literal_ridge)(p, literal_target(p, beta), alpha)
        losses.append(literal_loss(p, beta))
        n_steps += 1
    assert n_steps > 1
    found, steps = published.published_solve(PROBLEM, start(1, 3).T, beta, alpha, sparse=sparse)
    assert steps == n_steps
    np.testing.assert_allclose(found.T, p, rtol=0, atol=1e-6)


def test_a_run_ends_where_the_loss_hardly_changes():
    for sparse in (False, True):
        p, steps = published.published_solve(PROBLEM, start(0, 3).T, 0.5, 1.0, sparse=sparse)
        assert 1 <= steps < published.MOST_STEPS
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
        assert p.min() >= 0.9e-8


def test_a_run_of_the_grid():
    found = published.solves(seed=0, solver="ridge", n_z=2, betas=[0.1, 1.0], alphas=[0.1, 1.0, 10.0])
    assert {len(values) for values in found.values()} == {6}
    first = np.random.default_rng([0, 2, False]).random((PROBLEM.n_x, 2))
    first /= first.sum(axis=1, keepdims=True)
    p, steps = published.published_solve(PROBLEM, first, 0.1, 0.1, sparse=False)
    assert (found["n_steps"][0], found["gap"][0]) == (steps, PROBLEM.stationarity_gap(p, 0.1))
    assert all(0 <= leak <= use + 1e-9 for use, leak in zip(found["utility"], found["leakage"], strict=True))
    assert found == published.solves(seed=0, solver="ridge", n_z=2, betas=[0.1, 1.0], alphas=[0.1, 1.0, 10.0])
