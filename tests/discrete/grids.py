"""Slow twins for other measures than information: linear programmes over grids of posteriors, any |Y|."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from privacyfunnel.measures import Distance, Measures, Task


def plogp(p):
    return np.where(p > 0, p * np.log2(np.where(p > 0, p, 1.0)), 0.0)


def loss(measures, q):
    """V of posteriors (k, n_x), from its definition."""
    utility = measures.utility
    if isinstance(utility, Distance) and utility.kind == "costs":
        return (q @ utility.table).min(axis=1)
    if isinstance(utility, Distance):
        c = utility.table
        return q @ np.square(c).sum(axis=1) - np.square(q @ c).sum(axis=1)
    return -plogp(q if utility == "information" else q @ utility.p_t_given_x).sum(axis=1)


def told(measures, joint, q):
    """Λ of posteriors (k, n_x) and whether each of them may be a symbol; parity for two private values."""
    t = q @ (joint.p_xy / joint.p_x[:, None])
    if measures.leakage == "information":
        leakage = plogp(t).sum(axis=1) - plogp(joint.p_y).sum()
    elif measures.leakage == "success":
        leakage = t.max(axis=1)
    else:
        leakage = np.abs(t[:, 1] - joint.p_y[1]) / (2 * joint.p_y.prod())
    if measures.max_lift is None:
        return leakage, np.ones(len(q), dtype=bool)
    with np.errstate(divide="ignore"):
        lift = np.abs(np.log2(t / joint.p_y)).max(axis=1)
    return leakage, lift <= measures.max_lift + 1e-12


def grid(joint, steps=200, random=2000, seed=0):
    """Letters, P(X), pairs in steps, and random posteriors of any support."""
    n = joint.n_x
    shares = np.linspace(0, 1, steps + 1)[1:-1]
    parts = [np.eye(n), joint.p_x[None]]
    for i, j in combinations(range(n), 2):
        pair = np.zeros((shares.size, n))
        pair[:, i], pair[:, j] = 1 - shares, shares
        parts.append(pair)
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.full(n, 0.5), random)
    drawn *= rng.random(drawn.shape) < 0.7
    parts.append(drawn[drawn.sum(axis=1) > 0])
    q = np.vstack(parts)
    return q / q.sum(axis=1, keepdims=True)


def least_on_grid(joint, measures, kind, value, q=None):
    """What is minimised, over mixtures of a grid's posteriors; None where none keeps the limits."""
    q = grid(joint) if q is None else q
    leakage, allowed = told(measures, joint, q)
    q, leakage = q[allowed], leakage[allowed]
    utility = loss(measures, joint.p_x[None])[0] - loss(measures, q)
    limit = {}
    if kind == "beta":
        cost = leakage - value * utility
    elif kind == "min_utility":
        cost, limit = leakage, {"A_ub": -utility[None], "b_ub": [-value]}
    else:
        cost, limit = -utility, {"A_ub": leakage[None], "b_ub": [value]}
    result = linprog(cost, A_eq=q.T, b_eq=joint.p_x, method="highs", **limit)
    return result.fun


def utilities(rng, n, *, zeros=False):
    """One of each kind, for n letters; with zeros and equal entries if asked."""
    points = rng.normal(size=(n, 2))
    costs = rng.exponential(size=(n, n + 1))
    two, three = rng.dirichlet(np.ones(2), size=n), rng.dirichlet(np.ones(3), size=n)
    if zeros:
        points = np.round(points)
        costs *= rng.random(costs.shape) < 0.5
        two = np.eye(2)[rng.integers(2, size=n)]
        three[:, 2] = 0.0
        three[: n // 2, 1] = 0.0
        three[:, 0] += three.sum(axis=1) == 0
        three /= three.sum(axis=1, keepdims=True)
    return {
        "information": "information",
        "distance": Distance(points, kind="points"),
        "cost": Distance(costs, kind="costs"),
        "task of two": Task(two),
        "task of three": Task(three),
    }


def limits(joint, measures, share):
    """A target of each kind, at a share of what there is."""
    whole = np.eye(joint.n_x)
    most = measures.utility_of(joint.p_x, whole)
    least, top = measures.without_release(joint.p_y), measures.leakage_of(joint.p_xy, whole)
    beta = share * (top - least + 1e-3) / most if most > 1e-9 else share
    return {"beta": beta, "max_leakage": least + share * (top - least), "min_utility": share * most}


def all_measures(rng, n, *, zeros=False, lifts=(None, 0.4)):
    for name, utility in utilities(rng, n, zeros=zeros).items():
        for leakage in ("information", "success", "parity"):
            for lift in lifts:
                measures = Measures(utility, leakage, lift)
                if not measures.plain:
                    yield f"{name}, {leakage}, {lift}", measures
