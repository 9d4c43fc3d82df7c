"""Compiled pieces that several algorithms share. Nats inside; callers convert.

The functions trust their input: shapes agree, probabilities are valid, p(x) > 0 and p(y) > 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..arrays import FloatArray
from .problem import Problem

# A conditional probability below this is a zero: its products with other small numbers would
# underflow one by one, and half-vanished symbols give 0·log 0 in some rows and not in others.
SMALLEST = 1e-300

# −M of the paper's smoothed simplex, in nats (a probability of 3e-7). The paper leaves M open. Of 5, 10, 15,
# 20 and 27.6 this one serves both of its solvers on its own example; a much lower floor makes the sparse
# step's squared log-misfits so large that most symbols die.
LOG_FLOOR = -15.0


@njit(nogil=True, cache=True)
def normalise_log_rows(log_p: FloatArray, p: FloatArray) -> None:
    """Shift each row of log_p to log-sum 0 in place, and fill p with its exponential."""
    n_x, n_z = log_p.shape
    for x in range(n_x):
        top = -np.inf
        for z in range(n_z):
            top = max(top, log_p[x, z])
        total = 0.0
        for z in range(n_z):
            p[x, z] = np.exp(log_p[x, z] - top)
            total += p[x, z]
        shift = top + np.log(total)
        for z in range(n_z):
            p[x, z] /= total
            log_p[x, z] -= shift
            if p[x, z] < SMALLEST:
                p[x, z] = 0.0
                log_p[x, z] = -np.inf


@njit(nogil=True, cache=True)
def lagrangian(
    p: FloatArray, beta: float, p_x: FloatArray, p_y: FloatArray, p_x_given_y: FloatArray
) -> float:
    """I(Z;Y) − β I(Z;X) in nats of one channel p (n_x, n_z)."""
    n_x, n_z = p.shape
    p_zy = np.dot(p_x_given_y, p)
    value = 0.0
    for y in range(p_y.size):
        for z in range(n_z):
            if p_zy[y, z] > 0.0:
                value += p_y[y] * p_zy[y, z] * np.log(p_zy[y, z])
    for z in range(n_z):
        p_z = 0.0
        for x in range(n_x):
            p_z += p_x[x] * p[x, z]
            if p[x, z] > 0.0:
                value -= beta * p_x[x] * p[x, z] * np.log(p[x, z])
        if p_z > 0.0:
            value -= (1.0 - beta) * p_z * np.log(p_z)
    return value


@njit(nogil=True, cache=True)
def project_simplex(v: FloatArray, out: FloatArray, scratch: FloatArray) -> None:
    """Euclidean projection of v on the probability simplex."""
    n = v.size
    # Insertion sort, descending: rows are short and nearly sorted from step to step.
    for i in range(n):
        value = v[i]
        j = i
        while j > 0 and scratch[j - 1] < value:
            scratch[j] = scratch[j - 1]
            j -= 1
        scratch[j] = value
    total = 0.0
    threshold = 0.0
    for i in range(n):
        total += scratch[i]
        candidate = (total - 1.0) / (i + 1)
        if scratch[i] > candidate:
            threshold = candidate
    total = 0.0
    for i in range(n):
        out[i] = max(v[i] - threshold, 0.0)
        total += out[i]
    for i in range(n):
        out[i] /= total


def lagrangians(problem: Problem, p: FloatArray, beta: FloatArray) -> FloatArray:
    """L in nats of each channel of the stack p (n_tasks, n_x, n_z) at its own β."""
    arrays = problem.p_x, problem.p_y, problem.p_x_given_y
    return np.array([lagrangian(one, b, *arrays) for one, b in zip(p, beta, strict=True)])


@njit(nogil=True, cache=True)
def paper_target(p: FloatArray, beta: float, p_x: FloatArray, pinv: FloatArray, out: FloatArray) -> None:
    """log q(z|y) of `eq:dca_inner_update`: the log-softmax over z of pinv · c.

    c(z,x) = log p(z) + β log( p(z|x)/p(z) ). Logs are floored at LOG_FLOOR: a channel may hold exact
    zeros, a pseudo-inverse may not meet −∞.
    """
    n_x, n_z = p.shape
    c = np.empty((n_x, n_z))
    for z in range(n_z):
        p_z = 0.0
        for x in range(n_x):
            p_z += p_x[x] * p[x, z]
        log_pz = max(np.log(p_z), LOG_FLOOR) if p_z > 0.0 else LOG_FLOOR
        for x in range(n_x):
            log_p = max(np.log(p[x, z]), LOG_FLOOR) if p[x, z] > 0.0 else LOG_FLOOR
            c[x, z] = log_pz + beta * (log_p - log_pz)
    raw = np.dot(pinv, c)
    for y in range(raw.shape[0]):
        top = -np.inf
        for z in range(n_z):
            top = max(top, raw[y, z])
        total = 0.0
        for z in range(n_z):
            total += np.exp(raw[y, z] - top)
        shift = top + np.log(total)
        for z in range(n_z):
            out[y, z] = max(raw[y, z] - shift, LOG_FLOOR)
