"""`em`: the relaxation of the privacy funnel by expectation and maximisation (Chen et al. 2024). A baseline.

With u(x,z) = p(x) P(z|x), r(z) = P(z) and v(y,z) = Σ_x P(y|x) u(x,z), the leakage is Σ v log( v/r ) but for a
constant. Jensen's inequality with weights q(x|y,z) that sum to 1 over x, and Gibbs' with w(x|z), give

    Σ v log( v/r ) ≤ Σ_xyz P(y|x) u log( P(y|x) u / (r q) ) ,     I(Z;X) ≥ Σ_xz u log( w/p ) ,

both equalities at q ∝ P(y|x) u and w = u/r. So for a price β of utility the blocks are minimised in turn:
q, r and w by these formulas, and u, convex in it, by

    P(z|x) ∝ r(z) · w(x|z)^β · exp Σ_y P(y|x) log q(x|y,z)
           ∝ P(z|x)^{1+β} P(z)^{1−β} exp( −Σ_y P(y|x) log P(z|y) ) .

That is the step of `dca` (`discrete/dca.py`), found in another way: L never rises. What differs is that `dca`
extrapolates its steps, and what is done for a least utility: here β is chosen anew in every step, as the
smallest one with Σ u log( w/p ) ≥ the utility asked for, so that every iterate has it and the leakage falls.

Guarantee: stationary in the limit, no statement about the optimum. Slow where `dca` without its extrapolation
is. After arXiv:2405.00616, from its model; the derivation above and the code are ours.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..solution import Status
from .batch import Run, Task
from .dca import Dca, DcaState, arrays_of, evaluate
from .kernels import normalise_log_rows
from .problem import NATS_PER_BIT, Problem

STEEPEST = 1e6  # β at which a step is as useful as it can be made
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0)  # of X itself in a start, until it is useful enough
BISECTIONS = 60


class Em(Dca):
    """See the module's text. `step` is one evaluation of the map for each active task."""

    name = "em"

    def step(self, problem: Problem, state: DcaState, active: NDArray[np.intp]) -> None:
        for task in active.tolist():
            before, log_p, p = state.objective[task], state.log_p[task], state.p[task]
            kept, direction = log_p.copy(), state.direction[task]
            log_p += direction
            normalise_log_rows(log_p, p)
            after = evaluate(log_p, p, state.beta[task], *arrays_of(problem), direction)
            if after > before:  # a fixed point but for rounding
                log_p[:] = kept
                normalise_log_rows(log_p, p)
                after = evaluate(log_p, p, state.beta[task], *arrays_of(problem), direction)
                after = min(after, before)
            state.objective[task] = after


def em_with_utility(
    problem: Problem,
    min_utility: float,
    starts: Sequence[FloatArray],
    tol: float,
    max_steps: int,
    end: float = np.inf,
) -> list[Run]:
    """The leakage lowered in steps that keep I(Z;X) ≥ min_utility bits, from each start.

    A start that has less is mixed with X itself. The history is I(Z;Y) in nats.
    """
    wanted = min_utility * NATS_PER_BIT
    runs = []
    for start in starts:
        p = _useful_start(problem, start, wanted)
        if p is None:
            continue
        history, status = [_leakage(problem, p)], Status.STEP_LIMIT
        for _ in range(max_steps):
            new = limited_step(problem, p, wanted)
            if new is None or time.perf_counter() > end:
                status = Status.CONVERGED if new is None else Status.INTERRUPTED
                break
            leakage = _leakage(problem, new)
            if leakage > history[-1]:  # a fixed point but for rounding
                status = Status.CONVERGED
                break
            p = new
            history.append(leakage)
            if history[-2] - leakage <= tol:
                status = Status.CONVERGED
                break
        runs.append(Run(Task(np.nan), p, np.nan, status, len(history) - 1, np.array(history)))
    return runs


def limited_step(problem: Problem, p: FloatArray, wanted: float) -> FloatArray | None:
    """The step with the least β for which Σ u log( w/p ) ≥ wanted (nats); None where no β reaches it."""
    p_z = problem.p_x @ p
    with np.errstate(divide="ignore", invalid="ignore"):
        told = np.where(p > 0.0, np.log(p) - np.log(p_z), 0.0)  # log w(x|z)/p(x)
        by_class = np.log(problem.p_x_given_y @ p)
        plain = np.log(p) + np.log(p_z) - problem.p_y_given_x @ np.where(np.isfinite(by_class), by_class, 0.0)
    plain[p == 0.0] = -np.inf

    def at(beta: float) -> tuple[FloatArray, float]:
        log_u = plain + beta * told
        u: FloatArray = np.exp(log_u - log_u.max(axis=1, keepdims=True))
        u /= u.sum(axis=1, keepdims=True)
        return u, float(problem.p_x @ (u * told).sum(axis=1))

    u, useful = at(0.0)
    if useful >= wanted:
        return u
    low, high = 0.0, 1.0
    while at(high)[1] < wanted:  # it rises with β: its slope is a variance
        low, high = high, 2.0 * high
        if high > STEEPEST:
            return None
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if at(middle)[1] < wanted:
            low = middle
        else:
            high = middle
    return at(high)[0]


def _useful_start(problem: Problem, start: FloatArray, wanted: float) -> FloatArray | None:
    n_x, n_z = start.shape
    itself = np.eye(n_z)[np.arange(n_x) % n_z]
    for share in SHARES:
        p: FloatArray = (1.0 - share) * start + share * itself
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(p > 0.0, p * np.log(p / (problem.p_x @ p)), 0.0)
        if float(problem.p_x @ terms.sum(axis=1)) >= wanted:
            return p
    return None


def _leakage(problem: Problem, p: FloatArray) -> float:
    """I(Z;Y) in nats."""
    by_class = problem.p_x_given_y @ p
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(by_class > 0.0, by_class * np.log(by_class / (problem.p_y @ by_class)), 0.0)
    return float(problem.p_y @ terms.sum(axis=1))
