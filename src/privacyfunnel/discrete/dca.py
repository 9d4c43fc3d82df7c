"""`dca`: the monotone, closed-form difference-of-convex algorithm, accelerated. The default local solver.

With f = −H(Z|Y) and g = −H(Z) + β I(Z;X) (`eq:pf_dca_fg`), L = f − g. Linearise g at p^k as the paper
does (`eq:DCA_for_pf`), and majorise f at p^k by the log-sum inequality. The sum is minimised row by row:

    p^{k+1}(z|x) ∝ p^k(z|x) · exp d(z|x),   d = β log p(z|x) + (1−β) log p(z) − Σ_y P(y|x) log p(z|y)

Guarantee: L never rises; the limit is a stationary point. No rank condition and no inner solver; zeros stay
zeros. Cost O(n_x n_y n_z) a step. Convergence is linear and slow in flat directions, so every two steps are
extrapolated (SQUAREM, Varadhan & Roland 2008) in log p, lengths measured in the Fisher metric
Σ p(x) p(z|x) r², in which vanishing entries weigh nothing; an extrapolation that would raise L is dropped
for the plain step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..arrays import FloatArray
from .iterate import State
from .kernels import normalise_log_rows
from .problem import Problem


@dataclass
class DcaState(State):
    log_p: FloatArray  # (n_tasks, n_x, n_z), as are p and direction
    direction: FloatArray
    longest: FloatArray  # (n_tasks,) largest extrapolation tried next


class Dca:
    """See the module's text. `step` is one accelerated cycle: two or three evaluations of the map."""

    name = "dca"
    monotone = True

    def start(self, problem: Problem, p: FloatArray, beta: FloatArray, parameter: FloatArray) -> DcaState:
        with np.errstate(divide="ignore"):
            log_p = np.log(p)
        state = DcaState(
            p=np.empty_like(p),
            objective=np.empty(len(p)),
            beta=beta,
            parameter=parameter,
            log_p=log_p,
            direction=np.empty_like(p),
            longest=np.full(len(p), 4.0),
        )
        for task in range(len(p)):
            normalise_log_rows(log_p[task], state.p[task])
            state.objective[task] = evaluate(
                log_p[task], state.p[task], beta[task], *arrays_of(problem), state.direction[task]
            )
        return state

    def step(self, problem: Problem, state: DcaState, active: NDArray[np.intp]) -> None:
        _step(
            active,
            state.log_p,
            state.p,
            state.direction,
            state.objective,
            state.longest,
            state.beta,
            *arrays_of(problem),
        )


def arrays_of(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    return problem.p_x, problem.p_y, problem.p_y_given_x, problem.p_x_given_y


@njit(nogil=True, cache=True)
def evaluate(
    log_p: FloatArray,
    p: FloatArray,
    beta: float,
    p_x: FloatArray,
    p_y: FloatArray,
    p_y_given_x: FloatArray,
    p_x_given_y: FloatArray,
    direction: FloatArray,
) -> float:
    """L in nats at p = exp log_p; fills the step's direction d."""
    n_x, n_z = p.shape
    value = 0.0
    p_zy = np.dot(p_x_given_y, p)
    for y in range(p_y.size):
        part = 0.0
        for z in range(n_z):
            if p_zy[y, z] > 0.0:
                log_pzy = np.log(p_zy[y, z])
                part += p_zy[y, z] * log_pzy
                p_zy[y, z] = log_pzy
        value += p_y[y] * part
    np.dot(p_y_given_x, p_zy, direction)
    log_pz = np.dot(p_x, p)
    for z in range(n_z):
        if log_pz[z] > 0.0:
            p_z = log_pz[z]
            log_pz[z] = np.log(p_z)
            value -= (1.0 - beta) * p_z * log_pz[z]
    for x in range(n_x):
        part = 0.0
        for z in range(n_z):
            if p[x, z] > 0.0:
                part += p[x, z] * log_p[x, z]
                direction[x, z] = beta * log_p[x, z] + (1.0 - beta) * log_pz[z] - direction[x, z]
            else:
                direction[x, z] = 0.0
        value -= beta * p_x[x] * part
    return value


@njit(nogil=True, cache=True)
def _step(
    active: NDArray[np.intp],
    all_log_p: FloatArray,
    all_p: FloatArray,
    all_direction: FloatArray,
    objective: FloatArray,
    longest: FloatArray,
    betas: FloatArray,
    p_x: FloatArray,
    p_y: FloatArray,
    p_y_given_x: FloatArray,
    p_x_given_y: FloatArray,
) -> None:
    n_x, n_z = all_p.shape[1:]
    first = np.empty((n_x, n_z))
    second = np.empty((n_x, n_z))
    far = np.empty((n_x, n_z))
    p_first = np.empty((n_x, n_z))
    p_next = np.empty((n_x, n_z))
    next_direction = np.empty((n_x, n_z))
    for task in active:
        log_p, p, direction = all_log_p[task], all_p[task], all_direction[task]
        beta, before = betas[task], objective[task]

        for x in range(n_x):
            for z in range(n_z):
                first[x, z] = log_p[x, z] + direction[x, z]
        normalise_log_rows(first, p_first)
        after_first = evaluate(first, p_first, beta, p_x, p_y, p_y_given_x, p_x_given_y, next_direction)

        for x in range(n_x):
            for z in range(n_z):
                second[x, z] = first[x, z] + next_direction[x, z]
        normalise_log_rows(second, p_next)

        # SQUAREM: with r = first − log_p and v = second − 2 first + log_p, try log_p + 2 a r + a² v.
        r_norm, v_norm = 0.0, 0.0
        for x in range(n_x):
            for z in range(n_z):
                if p_next[x, z] > 0.0:
                    r = first[x, z] - log_p[x, z]
                    v = second[x, z] - first[x, z] - r
                    r_norm += p_x[x] * p_first[x, z] * r * r
                    v_norm += p_x[x] * p_first[x, z] * v * v
        length = min(np.sqrt(r_norm / v_norm), longest[task]) if v_norm > 0.0 else 1.0
        after = np.inf
        if length > 1.0:
            for x in range(n_x):
                for z in range(n_z):
                    far[x, z] = -np.inf
                    if p_next[x, z] > 0.0:
                        r = first[x, z] - log_p[x, z]
                        v = second[x, z] - first[x, z] - r
                        far[x, z] = log_p[x, z] + 2.0 * length * r + length * length * v
            normalise_log_rows(far, p_next)
            after = evaluate(far, p_next, beta, p_x, p_y, p_y_given_x, p_x_given_y, next_direction)
            if after <= after_first:
                if length == longest[task]:
                    longest[task] *= 4.0
                second, far = far, second
            else:
                longest[task] = max(2.0, longest[task] / 2.0)
                after = np.inf
        if after == np.inf:
            normalise_log_rows(second, p_next)
            after = evaluate(second, p_next, beta, p_x, p_y, p_y_given_x, p_x_given_y, next_direction)

        # Past the last digit the plain step may raise L by a rounding error; it is a fixed point then.
        if after <= before:
            for x in range(n_x):  # slice assignment would double the time to compile
                for z in range(n_z):
                    log_p[x, z] = second[x, z]
                    p[x, z] = p_next[x, z]
                    direction[x, z] = next_direction[x, z]
            objective[task] = after
        elif not after < np.inf:
            objective[task] = np.nan
