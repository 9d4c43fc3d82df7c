"""Finite actions: against a general solver, against random channels, and at its ends."""

import numpy as np
import pytest
from scipy.optimize import minimize

from privacyfunnel.discrete.convex import least_priced


def example(seed, n_x, n_y, n_a):
    rng = np.random.default_rng(seed)
    p_x = rng.dirichlet(np.full(n_x, 3.0))
    p_y_given_x = rng.dirichlet(np.ones(n_y), size=n_x)
    points, actions = rng.normal(size=(n_x, 2)), rng.normal(size=(n_a, 2))
    return rng, p_x, p_y_given_x, ((points[:, None] - actions[None]) ** 2).sum(axis=2)


def objective(p_x, p_y_given_x, cost, price, p):
    """E d + price · I(A;Y) in nats, term by term."""
    p_ya = p_y_given_x.T @ (p_x[:, None] * p)
    p_a, p_y = p_ya.sum(axis=0), p_ya.sum(axis=1)
    leakage = sum(
        p_ya[y, a] * np.log(p_ya[y, a] / (p_y[y] * p_a[a]))
        for y, a in np.ndindex(p_ya.shape)
        if p_ya[y, a] > 0
    )
    return float(p_x @ (p * cost).sum(axis=1)) + price * leakage, leakage


@pytest.mark.parametrize("price", [0.05, 1.0, 20.0])
@pytest.mark.parametrize(("n_x", "n_y", "n_a"), [(4, 2, 3), (3, 5, 4), (5, 3, 1), (1, 3, 4), (4, 1, 4)])
def test_numbers_are_right_and_nothing_is_better(n_x, n_y, n_a, price):
    rng, p_x, channel, cost = example(n_x + n_y, n_x, n_y, n_a)
    found = least_priced(p_x, [channel], cost, [price], tol=1e-7)
    value, leakage = objective(p_x, channel, cost, price, found.p)
    assert found.objective == pytest.approx(value, abs=1e-9)
    assert found.leakage[0] == pytest.approx(leakage, abs=1e-9)
    np.testing.assert_allclose(found.p.sum(axis=1), 1)
    assert -1e-9 <= found.objective - found.lower_bound <= 1e-7
    for p in rng.dirichlet(np.full(n_a, 0.3), size=(300, n_x)):
        assert objective(p_x, channel, cost, price, p)[0] >= found.lower_bound - 1e-12


def test_a_general_solver_finds_nothing_better():
    _, p_x, channel, cost = example(2, 4, 3, 3)
    found = least_priced(p_x, [channel], cost, [0.7], tol=1e-8)

    def value(flat):
        p = np.exp(flat.reshape(4, 3))
        return objective(p_x, channel, cost, 0.7, p / p.sum(axis=1, keepdims=True))[0]

    best = min(minimize(value, np.random.default_rng(s).normal(size=12)).fun for s in range(5))
    assert found.lower_bound <= best + 1e-9
    assert best == pytest.approx(found.objective, abs=1e-5)


def test_a_start_and_few_steps_still_give_a_bound():
    _, p_x, channel, cost = example(5, 30, 4, 30)
    best = least_priced(p_x, [channel], cost, [3.0], tol=1e-6)
    early = least_priced(p_x, [channel], cost, [3.0], tol=1e-12, max_steps=5)
    assert early.n_steps == 5
    assert early.lower_bound <= best.objective
    again = least_priced(p_x, [channel], cost, [3.0], tol=1e-4, start=best.p)
    assert again.n_steps < least_priced(p_x, [channel], cost, [3.0], tol=1e-4).n_steps


def test_rows_that_tell_a_class_for_sure():
    """Zeros in P(Y|x): logarithms of what cannot be."""
    cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = least_priced(np.array([0.5, 0.5]), [np.eye(2)], cost, [0.1], tol=1e-8)
    assert found.objective - found.lower_bound <= 1e-8
    private = least_priced(np.array([0.5, 0.5]), [np.eye(2)], cost, [100.0], tol=1e-6)
    assert private.leakage[0] < 1e-4
    assert private.cost == pytest.approx(0.5, abs=0.01)


def test_newton_steps_close_the_gap_that_descent_leaves():
    """To what rounding allows, for two attributes with a price each."""
    _, p_x, first, cost = example(7, 40, 3, 40)
    second = np.random.default_rng(8).dirichlet(np.ones(4), size=40)
    channels, prices = [first, second], [2.0, 0.5]
    slow = least_priced(p_x, channels, cost, prices, tol=1e-9, max_steps=400)
    quick = least_priced(p_x, channels, cost, prices, tol=1e-9)
    assert slow.objective - slow.lower_bound > 1e-7
    assert quick.objective - quick.lower_bound <= 1e-9
    assert slow.lower_bound <= quick.objective
    value = objective(p_x, first, cost, 2.0, quick.p)[0] + 0.5 * objective(p_x, second, cost, 1.0, quick.p)[1]
    assert quick.objective == pytest.approx(value, abs=1e-9)
    # The bound again, from the posteriors that prove it.
    reduced = cost.copy()
    for channel, price, r in zip(channels, prices, quick.posteriors, strict=True):
        assert r.sum(axis=0) == pytest.approx(np.ones(40))
        reduced += price * channel @ np.log(r / (p_x @ channel)[:, None])
    assert p_x @ reduced.min(axis=1) == pytest.approx(quick.lower_bound, abs=1e-9)
