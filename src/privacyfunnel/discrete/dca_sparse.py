"""`dca-sparse`: the paper's solver in log-likelihoods (`eq:lse_q1`).

From p^k form log q(z|y) (`eq:dca_inner_update`), then over l(z|x) ∈ [−M, −m]

    l^{k+1} = argmin ½ ‖ lse_x( log P(x|y) + l(z|x) ) − log q(z|y) ‖² + α ‖l‖₁ ,   p^{k+1} = softmax_z l^{k+1}

l ≤ 0, so ‖l‖₁ = −Σ l: the penalty is linear and pulls l towards 0, which under Σ_z e^l = 1 favours *flat*
rows. That is the paper's form, kept as it is. The problem falls apart into one for each z, solved by spectral
projected gradient (Birgin, Martínez & Raydan 2000). It is convex only while no residual lse − log q is
negative, so the minimum found is a stationary point in general.

Guarantee: none for L, as for `dca-ridge`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..arrays import FloatArray
from .iterate import State
from .kernels import LOG_FLOOR, lagrangian, lagrangians, paper_target
from .problem import Problem

HIGHEST = -1e-9  # −m
TOLERANCE = 1e-9  # largest entry of l − clip(l − gradient)
MAX_INNER_STEPS = 10_000
MEMORY = 8  # values that the non-monotone line search looks back on


class DcaSparse:
    """See the module's text. The parameter is α."""

    name = "dca-sparse"
    monotone = False

    def start(self, problem: Problem, p: FloatArray, beta: FloatArray, parameter: FloatArray) -> State:
        return State(p.copy(), lagrangians(problem, p, beta), beta, parameter)

    def step(self, problem: Problem, state: State, active: NDArray[np.intp]) -> None:
        _step(
            active,
            state.p,
            state.objective,
            state.beta,
            state.parameter,
            problem.p_x,
            problem.p_y,
            problem.p_x_given_y,
            problem.pseudo_inverse,
        )


@njit(nogil=True, cache=True)
def sparse_value_and_gradient(
    p_x_given_y: FloatArray, target: FloatArray, alpha: float, log_p: FloatArray, gradient: FloatArray
) -> float:
    """Value of one symbol's problem at log_p (n_x,), and its gradient Σ_y softmax_x(·) (lse − target) − α."""
    n_y, n_x = p_x_given_y.shape
    value = 0.0
    top = log_p.max()
    for x in range(n_x):
        value -= alpha * log_p[x]
        gradient[x] = -alpha
    weight = np.exp(log_p - top)
    for y in range(n_y):
        total = 0.0
        for x in range(n_x):
            total += p_x_given_y[y, x] * weight[x]
        residual = top + np.log(max(total, 1e-300)) - target[y]
        value += 0.5 * residual * residual
        scale = residual / max(total, 1e-300)
        for x in range(n_x):
            gradient[x] += p_x_given_y[y, x] * weight[x] * scale
    return value


@njit(nogil=True, cache=True)
def solve_sparse(p_x_given_y: FloatArray, target: FloatArray, alpha: float, log_p: FloatArray) -> int:
    """Minimise one symbol's problem over the box, in place from log_p; steps used."""
    n_x = log_p.size
    gradient = np.empty(n_x)
    trial = np.empty(n_x)
    trial_gradient = np.empty(n_x)
    past = np.full(MEMORY, -np.inf)
    value = sparse_value_and_gradient(p_x_given_y, target, alpha, log_p, gradient)
    past[0] = value
    spectral = 1.0
    for step in range(1, MAX_INNER_STEPS + 1):
        residual = 0.0
        slope = 0.0
        for x in range(n_x):
            unit = min(max(log_p[x] - gradient[x], LOG_FLOOR), HIGHEST) - log_p[x]
            residual = max(residual, abs(unit))
            trial[x] = min(max(log_p[x] - spectral * gradient[x], LOG_FLOOR), HIGHEST) - log_p[x]
            slope += gradient[x] * trial[x]
        if residual <= TOLERANCE:
            return step
        direction = trial.copy()
        ceiling = past.max()
        length = 1.0
        while True:
            for x in range(n_x):
                trial[x] = min(max(log_p[x] + length * direction[x], LOG_FLOOR), HIGHEST)
            trial_value = sparse_value_and_gradient(p_x_given_y, target, alpha, trial, trial_gradient)
            if trial_value <= ceiling + 1e-4 * length * slope or length < 1e-12:
                break
            length *= 0.5
        change = 0.0
        curvature = 0.0
        for x in range(n_x):
            moved = trial[x] - log_p[x]
            change += moved * moved
            curvature += moved * (trial_gradient[x] - gradient[x])
            log_p[x] = trial[x]
            gradient[x] = trial_gradient[x]
        if change == 0.0:
            return step
        spectral = min(max(change / curvature, 1e-10), 1e10) if curvature > 0.0 else 1e10
        past[step % MEMORY] = trial_value
    return MAX_INNER_STEPS


@njit(nogil=True, cache=True)
def _step(
    active: NDArray[np.intp],
    all_p: FloatArray,
    objective: FloatArray,
    betas: FloatArray,
    alphas: FloatArray,
    p_x: FloatArray,
    p_y: FloatArray,
    p_x_given_y: FloatArray,
    pinv: FloatArray,
) -> None:
    n_x, n_z = all_p.shape[1:]
    target = np.empty((p_y.size, n_z))
    log_p = np.empty((n_z, n_x))
    for task in active:
        p = all_p[task]
        paper_target(p, betas[task], p_x, pinv, target)
        for z in range(n_z):
            for x in range(n_x):
                log_p[z, x] = min(max(np.log(p[x, z]), LOG_FLOOR), HIGHEST) if p[x, z] > 0.0 else LOG_FLOOR
            solve_sparse(p_x_given_y, target[:, z].copy(), alphas[task], log_p[z])
        for x in range(n_x):
            top = log_p[:, x].max()
            total = 0.0
            for z in range(n_z):
                p[x, z] = np.exp(log_p[z, x] - top)
                total += p[x, z]
            for z in range(n_z):
                p[x, z] /= total
        objective[task] = lagrangian(p, betas[task], p_x, p_y, p_x_given_y)
