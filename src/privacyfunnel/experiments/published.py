"""The two solvers for a known distribution as the paper's authors run them, for comparison only.

Described from what their program computes; `discrete/dca_ridge.py` and `discrete/dca_sparse.py` are what
users call. Both take steps until the loss changes by at most 1e-6 nat, at most 10,000, from a start whose
columns are normalised uniform numbers. What is different from the text:

- the softmax of the target is stabilised by the largest value of each symbol over the *private* letters,
  which changes it, and every distribution is clipped to [1e-8, 1 − 1e-8] and normalised again;
- ridge: the quadratic programme over simplices is solved as it is, then clipped;
- sparse: gradient descent on log p(z|x) at a fixed rate, with a gradient that lacks its target, normalised
  after every step; it stops when ½ ‖e^l P(X|Y) − q‖² − α Σ l changes by less than 1e-5, and a step that
  changes it by less is not taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ..arrays import FloatArray
from ..datasets import paper_joint
from ..discrete.dca_ridge import solve_simplex_ridge
from ..discrete.kernels import lagrangian
from ..discrete.problem import Problem
from ..information import utility_and_leakage

TOLERANCE, MOST_STEPS = 1e-6, 10_000  # nats
INNER_TOLERANCE, MOST_INNER_STEPS, RATE = 1e-5, 10_000, 5e-3
CLIP = 1e-8


def solves(*, seed: int, solver: str, n_z: int, betas: list[float], alphas: list[float]) -> dict[str, Any]:
    """One start for every pair of β and α on the paper's example: utilities, leakages (bits) and steps.

    `gap` is how far each end is from a stationary point of I(Z;Y) − β I(Z;X), in bits.

    Parameters
    ----------
    seed : int
        Of the starts.
    solver : "ridge" or "sparse"
    n_z : int
    betas, alphas : lists of float
        β is the paper's, which multiplies I(Z;X).
    """
    problem = Problem(paper_joint())
    rng = np.random.default_rng([seed, n_z, solver == "sparse"])
    columns = ("utility", "leakage", "beta", "alpha", "n_steps", "gap")
    found: dict[str, list[float]] = {name: [] for name in columns}
    for beta in betas:
        for alpha in alphas:
            start = rng.random((problem.n_x, n_z))
            start /= start.sum(axis=1, keepdims=True)
            p, steps = published_solve(problem, start, beta, alpha, sparse=solver == "sparse")
            utility, leakage = utility_and_leakage(problem.p_xy, p)
            gap = problem.stationarity_gap(p, beta)
            row = (float(utility), float(leakage), beta, alpha, steps, gap)
            for column, value in zip(found.values(), row, strict=True):
                column.append(value)
    return found


def published_solve(
    problem: Problem, start: FloatArray, beta: float, alpha: float, *, sparse: bool
) -> tuple[FloatArray, int]:
    """The channel (n_x, n_z) that the published program ends at, and its steps."""
    p = np.ascontiguousarray(start, dtype=np.float64).copy()
    a = problem.p_x_given_y
    # The loss is I(Z;Y)/β − I(Z;X) there, so the stop rule on it is β times looser than one on L.
    steps = _run(p, beta, alpha, sparse, problem.p_x, problem.p_y, a, a.T @ a, problem.pseudo_inverse)
    return p, int(steps)


@njit(nogil=True, cache=True)
def _run(
    p: FloatArray,
    beta: float,
    alpha: float,
    sparse: bool,
    p_x: FloatArray,
    p_y: FloatArray,
    p_x_given_y: FloatArray,
    gram: FloatArray,
    pinv: FloatArray,
) -> int:
    target = np.empty((p_y.size, p.shape[1]))
    before = lagrangian(p, beta, p_x, p_y, p_x_given_y) / beta
    for step in range(1, MOST_STEPS + 1):
        _target(p, beta, p_x, pinv, target)
        if sparse:
            _sparse_step(p, alpha, p_x_given_y, target)
        else:
            # min ‖Ap − q‖² + α‖p‖²
            solve_simplex_ridge(gram, np.dot(p_x_given_y.T, target), alpha, p)
        _clip_rows(p)
        now = lagrangian(p, beta, p_x, p_y, p_x_given_y) / beta
        if abs(now - before) < TOLERANCE:
            return step
        before = now
    return MOST_STEPS


@njit(nogil=True, cache=True)
def _target(p: FloatArray, beta: float, p_x: FloatArray, pinv: FloatArray, q: FloatArray) -> None:
    """q(z|y), rows y: softmax over z of the pseudo-inverse of log p(z) + β log p(z|x)/p(z)."""
    n_x, n_z = p.shape
    c = np.empty((n_x, n_z))
    for z in range(n_z):
        p_z = 0.0
        for x in range(n_x):
            p_z += p_x[x] * p[x, z]
        for x in range(n_x):
            c[x, z] = np.log(p_z) + beta * (np.log(p[x, z]) - np.log(p_z))
    raw = np.dot(pinv, c)
    for z in range(n_z):
        top = raw[:, z].max()  # over y: not a constant of the softmax over z
        for y in range(raw.shape[0]):
            q[y, z] = np.exp(raw[y, z] - top)
    for y in range(raw.shape[0]):
        q[y] /= q[y].sum()
    _clip_rows(q)


@njit(nogil=True, cache=True)
def _clip_rows(table: FloatArray) -> None:
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            table[i, j] = min(max(table[i, j], CLIP), 1.0 - CLIP)
        table[i] /= table[i].sum()


@njit(nogil=True, cache=True)
def _sparse_step(p: FloatArray, alpha: float, p_x_given_y: FloatArray, q: FloatArray) -> None:
    """Gradient descent on l = log p(z|x), in place on p."""
    n_x, n_z = p.shape
    n_y = p_x_given_y.shape[0]
    log_p = np.log(p)
    gradient, last = np.empty((n_x, n_z)), p.copy()
    before = _inner_loss(p, log_p, alpha, p_x_given_y, q)
    for _ in range(MOST_INNER_STEPS):
        last[:] = p
        mixed = np.dot(p_x_given_y, p)  # (n_y, n_z), so its logarithm is lse
        for z in range(n_z):
            for x in range(n_x):
                gradient[x, z] = -alpha
                for y in range(n_y):
                    gradient[x, z] += np.log(mixed[y, z]) * p_x_given_y[y, x] * p[x, z] / mixed[y, z]
        for x in range(n_x):
            top = -np.inf
            for z in range(n_z):
                log_p[x, z] -= RATE * gradient[x, z]
                top = max(top, log_p[x, z])
            total = 0.0
            for z in range(n_z):
                total += np.exp(log_p[x, z] - top)
            for z in range(n_z):
                log_p[x, z] -= top + np.log(total)
                p[x, z] = np.exp(log_p[x, z])
        now = _inner_loss(p, log_p, alpha, p_x_given_y, q)
        if abs(now - before) < INNER_TOLERANCE:
            p[:] = last
            return
        before = now


@njit(nogil=True, cache=True)
def _inner_loss(
    p: FloatArray, log_p: FloatArray, alpha: float, p_x_given_y: FloatArray, q: FloatArray
) -> float:
    misfit = np.dot(p_x_given_y, p) - q
    return 0.5 * (misfit * misfit).sum() - alpha * log_p.sum()  # type: ignore[no-any-return]
