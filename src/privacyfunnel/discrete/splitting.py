"""`splitting`: the augmented Lagrangian method of Huang, El Gamal & El Gamal (2022, 2023). A baseline.

P(Z) and P(Z|Y) get copies of their own, q, in which L is separable. Stack A = [p_xᵀ; P(X|Y)]
(n_y + 1 rows), with masses m = (ω, p_y) and signs e = ((β−1)/ω, 1, …, 1):

    min  β H(Z|X)[p] + Σ_i m_i e_i Σ_z q_iz log q_iz   subject to   q = A p,   rows of p on the simplex

With multipliers ν, penalty c and r = A p − q, the augmented Lagrangian is

    J = objective + Σ_i m_i Σ_z [ ν r + (c/2) r² ]_iz

Weighting by p_y makes the method blind to how Y is spelled: a letter may be split into two alike ones. A step
moves p by N_INNER exponentiated-gradient steps with backtracking, then q exactly and entry by entry, then
ν ← ν + c r.

The parameter is the penalty in units of n_z max(1, β), the curvature of the entropies where Z is uniform. A
symbol of mass below (1−β)/(ω c) cannot be held by its copy, which jumps between 0 and more: the usual cause
of a limit cycle, and the reason for ω > 1.

Guarantee: J falls in both primal updates, except when a probability of p underflows to 0 and its copies are
taken out. L need not fall, and with a penalty that is too small the iterates wander. A task is settled only
where q agrees with p *and* p is a stationary point of L: a start is feasible, so without the second condition
the method would stop there.
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

WEIGHT_Z = 4.0  # ω
N_INNER = 4
LONGEST = 1.0  # largest step of the exponentiated gradient
STATIONARY = 1e-7  # largest stationarity gap of a settled task, nats
FEASIBLE = 1e-5  # largest m |r| of a settled task


@dataclass
class SplittingState(State):
    log_p: FloatArray  # (n_tasks, n_x, n_z)
    q: FloatArray  # (n_tasks, n_y + 1, n_z): copies of P(Z), in row 0, and of P(Z|Y)
    nu: FloatArray
    penalty: FloatArray  # (n_tasks,) c itself
    length: FloatArray  # (n_tasks,) exponentiated-gradient step tried next
    settled: NDArray[np.bool_]


class Splitting:
    """See the module's text. The parameter is the penalty c in units of n_z max(1, β)."""

    name = "splitting"
    monotone = False

    def start(
        self, problem: Problem, p: FloatArray, beta: FloatArray, parameter: FloatArray
    ) -> SplittingState:
        """Copies that agree with p, and the multipliers for which they are stationary."""
        n_tasks = len(p)
        arrays = stacked(problem)
        with np.errstate(divide="ignore"):
            log_p = np.log(p)
        p = p.copy()
        objective = np.empty(n_tasks)
        for task in range(n_tasks):
            normalise_log_rows(log_p[task], p[task])
            objective[task] = true_value_and_gap(p[task], log_p[task], beta[task], *arrays)[0]
        q = arrays[0] @ p
        signs = np.ones((n_tasks, q.shape[1], 1))
        signs[:, 0, 0] = (beta - 1.0) / WEIGHT_Z
        # A copy of 0 stays 0 (see `update_q`), and its multiplier is not used.
        nu = signs * (1.0 + np.log(np.where(q > 0, q, 1.0)))
        penalty = parameter * p.shape[2] * np.maximum(beta, 1.0)
        return SplittingState(
            p=p,
            objective=objective,
            beta=beta,
            parameter=parameter,
            log_p=log_p,
            q=q,
            nu=nu,
            penalty=penalty,
            length=np.full(n_tasks, LONGEST),
            settled=np.zeros(n_tasks, dtype=np.bool_),
        )

    def step(self, problem: Problem, state: SplittingState, active: NDArray[np.intp]) -> None:
        _step(
            active,
            state.p,
            state.log_p,
            state.q,
            state.nu,
            state.objective,
            state.length,
            state.settled,
            state.beta,
            state.penalty,
            *stacked(problem),
        )


def stacked(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """A (n_y + 1, n_x), its adjoint in the weights p_x and m (n_x, n_y + 1), p_x, and m."""
    return (
        np.vstack([problem.p_x, problem.p_x_given_y]),
        np.hstack([np.full((problem.n_x, 1), WEIGHT_Z), problem.p_y_given_x]),
        problem.p_x,
        np.concatenate([[WEIGHT_Z], problem.p_y]),
    )


@njit(nogil=True, cache=True)
def entropy_prox(weight: float, linear: float, penalty: float) -> float:
    """argmin over t ≥ 0 of weight · t log t − linear · t + (penalty/2) t².

    weight > 0: convex. With s = penalty · t / weight the condition reads s + log s = k; Newton converges
    monotonically from the starts below. weight < 0: concave up to |weight|/penalty and convex beyond, so the
    minimiser is 0 or the upper root of the condition, whichever has the smaller value.
    """
    if weight == 0.0:
        return max(linear / penalty, 0.0)
    if weight > 0.0:
        k = linear / weight - 1.0 + np.log(penalty / weight)
        if k <= 1.0:
            u = k  # s = e^u; u + e^u is convex and too large here
            for _ in range(60):
                s = np.exp(u)
                move = (u + s - k) / (1.0 + s)
                u -= move
                if abs(move) <= 1e-15 * max(1.0, abs(u)):
                    break
            return float(np.exp(u) * weight / penalty)
        s = k  # s + log s is concave: the first step leads below the root, the others climb
        for _ in range(60):
            move = (s + np.log(s) - k) * s / (1.0 + s)
            s -= move
            if abs(move) <= 1e-15 * s:
                break
        return float(s * weight / penalty)
    bend = -weight / penalty
    # The slope weight (log t + 1) − linear + penalty · t is least at the bend.
    if weight * np.log(bend) >= linear:
        return 0.0
    t = max(2.0 * bend, (linear - weight) / penalty)
    for _ in range(60):
        move = (weight * (np.log(t) + 1.0) - linear + penalty * t) / (penalty + weight / t)
        t -= move
        if t <= bend:
            return 0.0
        if abs(move) <= 1e-15 * t:
            break
    return t if weight * np.log(t) - linear + 0.5 * penalty * t < 0.0 else 0.0


@njit(nogil=True, cache=True)
def conditional_entropy(p: FloatArray, log_p: FloatArray, p_x: FloatArray) -> float:
    """H(Z|X) in nats."""
    value = 0.0
    for x in range(p.shape[0]):
        part = 0.0
        for z in range(p.shape[1]):
            if p[x, z] > 0.0:
                part -= p[x, z] * log_p[x, z]
        value += p_x[x] * part
    return value


@njit(nogil=True, cache=True)
def copies_value(q: FloatArray, beta: float, mass: FloatArray) -> float:
    """Σ_i m_i e_i Σ_z q log q."""
    value = 0.0
    for i in range(q.shape[0]):
        part = 0.0
        for z in range(q.shape[1]):
            if q[i, z] > 0.0:
                part += q[i, z] * np.log(q[i, z])
        value += mass[i] * part * ((beta - 1.0) / WEIGHT_Z if i == 0 else 1.0)
    return value


@njit(nogil=True, cache=True)
def coupling_value(
    a: FloatArray, q: FloatArray, nu: FloatArray, penalty: float, mass: FloatArray, slope: FloatArray
) -> float:
    """Σ_i m_i Σ_z [ν r + (c/2) r²] with r = a − q; fills its slope in a, ν + c r."""
    value = 0.0
    for i in range(q.shape[0]):
        part = 0.0
        for z in range(q.shape[1]):
            r = a[i, z] - q[i, z]
            part += r * (nu[i, z] + 0.5 * penalty * r)
            slope[i, z] = nu[i, z] + penalty * r
        value += mass[i] * part
    return value


@njit(nogil=True, cache=True)
def true_value_and_gap(
    p: FloatArray,
    log_p: FloatArray,
    beta: float,
    forward: FloatArray,
    backward: FloatArray,
    p_x: FloatArray,
    mass: FloatArray,
) -> tuple[float, float]:
    """L of p and its stationarity gap (Problem.stationarity_gap), nats."""
    a = np.dot(forward, p)
    value = beta * conditional_entropy(p, log_p, p_x) + copies_value(a, beta, mass)
    for i in range(a.shape[0]):
        for z in range(a.shape[1]):
            if a[i, z] > 0.0:
                a[i, z] = np.log(a[i, z]) * ((beta - 1.0) / WEIGHT_Z if i == 0 else 1.0)
    gradient = np.dot(backward, a)
    gap = 0.0
    for x in range(p.shape[0]):
        mean, least = 0.0, np.inf
        for z in range(p.shape[1]):
            if p[x, z] > 0.0:
                slope = gradient[x, z] - beta * log_p[x, z]
                mean += p[x, z] * slope
                least = min(least, slope)
        gap += p_x[x] * (mean - least)
    return value, gap


@njit(nogil=True, cache=True)
def update_p(
    p: FloatArray,
    log_p: FloatArray,
    q: FloatArray,
    nu: FloatArray,
    beta: float,
    penalty: float,
    length: float,
    forward: FloatArray,
    backward: FloatArray,
    p_x: FloatArray,
    mass: FloatArray,
) -> float:
    """Lower J over p in place by exponentiated-gradient steps; the step length to try next.

    H(Z|X) is concave, and the penalty (1+ω)c-smooth relative to the Kullback–Leibler divergence, so a length
    of 1/((1+ω)c) always descends; longer ones are tried first.
    """
    n_x, n_z = p.shape
    safe = 1.0 / (penalty * (1.0 + WEIGHT_Z))
    slope = np.empty_like(q)
    trial, log_trial = np.empty_like(p), np.empty_like(p)
    value = beta * conditional_entropy(p, log_p, p_x)
    value += coupling_value(np.dot(forward, p), q, nu, penalty, mass, slope)
    for _ in range(N_INNER):
        gradient = np.dot(backward, slope)
        while True:
            for x in range(n_x):
                for z in range(n_z):
                    log_trial[x, z] = log_p[x, z]
                    if p[x, z] > 0.0:
                        log_trial[x, z] -= length * (gradient[x, z] - beta * log_p[x, z])
            normalise_log_rows(log_trial, trial)
            trial_value = beta * conditional_entropy(trial, log_trial, p_x)
            trial_value += coupling_value(np.dot(forward, trial), q, nu, penalty, mass, slope)
            if length <= safe:
                break
            # Sufficient decrease of a Bregman step: Σ_x p_x KL(p ‖ trial) / length.
            divergence = 0.0
            for x in range(n_x):
                for z in range(n_z):
                    if trial[x, z] > 0.0:
                        divergence += p_x[x] * p[x, z] * (log_p[x, z] - log_trial[x, z])
            if trial_value <= value - divergence / length:
                break
            length = max(0.5 * length, safe)
        value = trial_value
        for x in range(n_x):
            for z in range(n_z):
                p[x, z] = trial[x, z]
                log_p[x, z] = log_trial[x, z]
        length = min(2.0 * length, max(LONGEST, safe))
    return length


@njit(nogil=True, cache=True)
def update_q(a: FloatArray, q: FloatArray, nu: FloatArray, beta: float, penalty: float) -> None:
    """Minimise J over q in place, a = A p. Where a = 0 the symbol has left for good, and its copy with it."""
    for i in range(q.shape[0]):
        sign = (beta - 1.0) / WEIGHT_Z if i == 0 else 1.0
        for z in range(q.shape[1]):
            q[i, z] = entropy_prox(sign, nu[i, z] + penalty * a[i, z], penalty) if a[i, z] > 0.0 else 0.0


@njit(nogil=True, cache=True)
def _step(
    active: NDArray[np.intp],
    all_p: FloatArray,
    all_log_p: FloatArray,
    all_q: FloatArray,
    all_nu: FloatArray,
    objective: FloatArray,
    lengths: FloatArray,
    settled: NDArray[np.bool_],
    betas: FloatArray,
    penalties: FloatArray,
    forward: FloatArray,
    backward: FloatArray,
    p_x: FloatArray,
    mass: FloatArray,
) -> None:
    for task in active:
        p, log_p, q, nu = all_p[task], all_log_p[task], all_q[task], all_nu[task]
        beta, penalty = betas[task], penalties[task]
        lengths[task] = update_p(p, log_p, q, nu, beta, penalty, lengths[task], forward, backward, p_x, mass)
        a = np.dot(forward, p)
        update_q(a, q, nu, beta, penalty)
        residual = 0.0
        for i in range(q.shape[0]):
            for z in range(q.shape[1]):
                r = a[i, z] - q[i, z]
                nu[i, z] += penalty * r
                residual = max(residual, mass[i] * abs(r))
        objective[task], gap = true_value_and_gap(p, log_p, beta, forward, backward, p_x, mass)
        settled[task] = gap <= STATIONARY and residual <= FEASIBLE
