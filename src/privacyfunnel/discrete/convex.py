"""Finite actions: the best release of actions when usefulness is a cost, for any number of private classes.

Z is an action a of a finite set, and d(x, a) what it costs that the record was x: a squared distance, or any
other number. With p(x) and P(y|x) known,

    minimise  F(P) = E d(X, A) + μ I(A;Y)   over channels P(a|x)

is convex, unlike the funnel with I(Z;X): the expected cost is linear in P, and I(A;Y) is convex in it (after
Calmon and Fawaz 2012). I(A;Y) is 1-smooth relative to Σ p(x) D(P(·|x) ‖ ·), so the step

    P(a|x) ← P(a|x) · exp( −g(x, a)/μ ) / normaliser ,   g(x, a) = d(x, a) + μ Σ_y P(y|x) log P(a|y)/P(a)

never raises F and converges to the global minimum. For any positive posteriors r_a of Y

    F(P) ≥ Σ_x p(x) min_a [ d(x, a) + μ Σ_y P(y|x) log r_a(y)/P(y) ]   for every channel P,

because D(·‖P_Y) lies above its tangents: with r_a of the present channel this is the proof, and the gap
closes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SMALLEST = 1e-290  # of a probability whose logarithm is taken
LONGEST = 64.0  # of a step, in units of the one that cannot raise F
ROUNDING = 1e-13  # relative, of every sum that a bound is made of


@dataclass(frozen=True, eq=False)
class Priced:
    """A channel for one price of leakage: F in the cost's unit, and what no channel stays below."""

    p: FloatArray  # (n_x, n_a)
    cost: float
    leakage: float  # nats
    objective: float
    lower_bound: float
    n_steps: int


def least_priced(
    p_x: FloatArray,
    p_y_given_x: FloatArray,
    cost: FloatArray,
    price: float,
    *,
    tol: float,
    max_steps: int = 20_000,
    start: FloatArray | None = None,
) -> Priced:
    """The channel that minimises E d + price · I(A;Y), proved to `tol` unless the steps end.

    Parameters
    ----------
    p_x : (n_x,) array, positive
    p_y_given_x : (n_x, n_y) array
    cost : (n_x, n_a) array
    price : float
        Of a nat of leakage, in the unit of the cost; more than 0.
    start : (n_x, n_a) array, optional
        A channel to begin from; zeros in it are kept from being final.
    """
    n_x, n_a = cost.shape
    p_y = p_x @ p_y_given_x
    p_x_given_y = (p_x[:, None] * p_y_given_x / p_y).T
    log_p = np.full((n_x, n_a), -np.log(n_a)) if start is None else np.log(np.maximum(start, 1e-30))
    scale = float(np.abs(cost).max()) + price * float(-np.log(p_y.min())) + 1.0
    best_bound, length, before = -np.inf, 1.0, np.inf
    kept = log_p
    for step in range(1, max_steps + 1):
        p = _normalised(log_p)
        by_class = np.maximum(p_x_given_y @ p, SMALLEST)  # P(a|y)
        p_a = p_y @ by_class
        excess = np.log(by_class) - np.log(p_a)
        gradient = cost + price * (p_y_given_x @ excess)
        objective = float(p_x @ (p * gradient).sum(axis=1))
        if objective > before + ROUNDING * scale and length > 1.0:
            # Too far: back to the last channel, with the step that is proved to descend.
            log_p, length, before = kept, 1.0, np.inf
            continue
        best_bound = max(best_bound, float(p_x @ gradient.min(axis=1)) - ROUNDING * scale)
        if objective - best_bound <= tol or step == max_steps:
            break
        kept, before = log_p, objective
        log_p = log_p - (length / price) * gradient
        log_p -= log_p.max(axis=1, keepdims=True)
        length = min(1.3 * length, LONGEST)
    leakage = float(p_y @ (by_class * excess).sum(axis=1))
    spent = float(p_x @ (p * cost).sum(axis=1))
    return Priced(p, spent, max(leakage, 0.0), objective, best_bound, step)


def _normalised(log_p: FloatArray) -> FloatArray:
    p: FloatArray = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p
