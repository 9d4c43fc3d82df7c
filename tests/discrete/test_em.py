"""`em`: its step against the relaxation it comes from, and its own form for a least utility."""

import numpy as np
import pytest
from scipy.optimize import minimize
from strategies import random_joint

import privacyfunnel as pf
from privacyfunnel.discrete.dca import Dca
from privacyfunnel.discrete.em import Em, em_with_utility, limited_step
from privacyfunnel.discrete.iterate import iterate
from privacyfunnel.discrete.problem import NATS_PER_BIT, Problem


def channel(rng, n_x, n_z):
    return rng.dirichlet(np.ones(n_z), size=n_x)


def relaxed(problem, p, beta, q, r, w):
    """Σ P(y|x) u log( P(y|x) u / (r q) ) − β Σ u log( w/p ), from its definition, loop by loop."""
    total = 0.0
    for x in range(problem.n_x):
        for z in range(p.shape[1]):
            u = problem.p_x[x] * p[x, z]
            for y in range(problem.n_y):
                share = problem.p_y_given_x[x, y]
                if share > 0:
                    total += share * u * np.log(share * u / (r[z] * q[x, y, z]))
            total -= beta * u * np.log(w[x, z] / problem.p_x[x])
    return total


def blocks(problem, p):
    """q, r and w of a channel."""
    u = problem.p_x[:, None] * p
    masses = problem.p_y_given_x[:, :, None] * u[:, None, :]
    return masses / masses.sum(axis=0), u.sum(axis=0), u / u.sum(axis=0)


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.7])
def test_a_step_minimises_the_relaxation(beta):
    rng = np.random.default_rng(int(10 * beta))
    problem = Problem(random_joint(rng, 3, 2))
    p = channel(rng, 3, 3)
    state = Em().start(problem, p[None].copy(), np.array([beta]), np.array([np.nan]))
    Em().step(problem, state, np.array([0]))
    q, r, w = blocks(problem, p)

    def value(logits):
        rows = np.exp(logits.reshape(3, 3))
        return relaxed(problem, rows / rows.sum(axis=1, keepdims=True), beta, q, r, w)

    least = minimize(value, np.log(p).ravel(), method="BFGS", options={"gtol": 1e-9})
    stepped = relaxed(problem, state.p[0], beta, q, r, w)
    assert stepped == pytest.approx(least.fun, abs=1e-9)
    rows = np.exp(least.x.reshape(3, 3))
    assert state.p[0] == pytest.approx(rows / rows.sum(axis=1, keepdims=True), abs=1e-4)
    # The relaxation touches L at its own blocks, but for the constant H(Y).
    utility, leakage = (NATS_PER_BIT * v for v in pf.information.utility_and_leakage(problem.p_xy, p))
    entropy = NATS_PER_BIT * pf.entropy(problem.p_y)
    assert relaxed(problem, p, beta, q, r, w) == pytest.approx(leakage - entropy - beta * utility, abs=1e-12)


def test_a_step_is_that_of_dca_without_its_extrapolation():
    rng = np.random.default_rng(1)
    problem = Problem(random_joint(rng, 6, 3))
    starts = np.stack([channel(rng, 6, 7) for _ in range(3)])
    betas = np.array([0.05, 0.3, 0.8])
    em = iterate(Em(), problem, starts, betas, np.full(3, np.nan), tol=1e-13, max_steps=50_000)
    for history in em.history:
        assert np.all(np.diff(history) <= 0.0)
    # Both end where L is stationary; from the same start mostly in the same place.
    dca = iterate(Dca(), problem, starts, betas, np.full(3, np.nan), tol=1e-13, max_steps=50_000)
    for p, beta in zip(em.p, betas, strict=True):
        assert problem.stationarity_gap(p, beta) < 1e-4
    assert em.objective == pytest.approx(dca.objective, abs=5e-2)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_every_step_of_its_own_form_keeps_the_utility_and_lowers_the_leakage(share):
    rng = np.random.default_rng(2)
    joint = random_joint(rng, 5, 3, "zeros")
    problem = Problem(joint)
    wanted = share * joint.entropy_x * NATS_PER_BIT
    (run,) = em_with_utility(problem, share * joint.entropy_x, [channel(rng, problem.n_x, 6)], 0.0, 300)
    assert np.all(np.diff(run.history) <= 0.0)
    utility, leakage = pf.information.utility_and_leakage(problem.p_xy, run.p)
    assert utility * NATS_PER_BIT >= wanted - 1e-9
    assert leakage * NATS_PER_BIT == pytest.approx(run.history[-1], abs=1e-9)
    proved = pf.solve(joint, min_utility=share * joint.entropy_x, method="exact", rng=0)
    assert leakage >= proved.lower_bound - 1e-9


def test_a_step_takes_the_least_price():
    rng = np.random.default_rng(3)
    problem = Problem(random_joint(rng, 4, 2))
    p = channel(rng, 4, 5)
    told = NATS_PER_BIT * pf.information.utility_and_leakage(problem.p_xy, p)[0]
    new = limited_step(problem, p, told)
    ratio = np.log(p / (problem.p_x @ p))
    assert problem.p_x @ (new * ratio).sum(axis=1) == pytest.approx(told, abs=1e-12)
    assert np.array_equal(limited_step(problem, p, 0.0), limited_step(problem, p, -1.0))
    assert limited_step(problem, p, 100.0) is None
    # With too few symbols no start is useful enough.
    assert em_with_utility(problem, 1.9, [channel(rng, 4, 2)], 1e-6, 10) == []


def test_it_is_a_method_of_solve():
    joint = pf.datasets.paper_joint()
    exact = pf.solve(joint, min_utility=0.7, method="exact", rng=0)
    found = pf.solve(joint, min_utility=0.7, method="em", n_starts=6, rng=0)
    assert found.method == "em"
    assert found.utility >= 0.7 - 1e-9
    assert exact.lower_bound <= found.leakage <= exact.leakage + 0.02
