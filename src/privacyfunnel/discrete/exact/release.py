"""From the mixture of the programme to the channel that is returned: constraints that hold, few symbols.

Whatever happened before, what is claimed here is evaluated from the channel alone.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from ...arrays import FloatArray
from ...measures import largest_lift
from ...merging import merge_symbols
from ...solution import Status, Target
from ...sparse import Channel, SparseChannel, beside
from ..batch import Task, run_tasks
from ..problem import Problem

POLISH_STEPS = 50
# Relative difference of symbols that are merged where it costs nothing.
ALIKE = 1e-4
# Nats by which a constraint or a bound may seem broken: the rounding of evaluating a channel.
ROUND_OFF = 1e-12
LIFT_ROUND_OFF = 1e-9  # bits


def evaluate(problem: Problem, p: Channel) -> tuple[float, float]:
    """Utility and leakage of a channel, in inner units."""
    return problem.evaluate(p)


def objective_of(problem: Problem, p: Channel, target: Target) -> float:
    """What is minimised, in nats."""
    return target.objective(*evaluate(problem, p))


@overload
def kept_to(target: Target, problem: Problem, p: FloatArray, fullest: Channel | None = ...) -> FloatArray: ...


@overload
def kept_to(
    target: Target, problem: Problem, p: SparseChannel, fullest: Channel | None = ...
) -> SparseChannel: ...


def kept_to(target: Target, problem: Problem, p: Channel, fullest: Channel | None = None) -> Channel:
    """The channel, shared in time with a constant, or the most useful release, as little as it takes to keep
    the constraint.

    A linear programme keeps its constraints to a tolerance; a release that was promised to leak at most ε
    must not leak more.
    """
    utility, leakage = evaluate(problem, p)
    excess = target.excess(utility, leakage)
    if excess <= (ROUND_OFF if target.value <= ROUND_OFF else 0.0):  # such a limit is 0 but for rounding
        return p
    other: Channel = np.ones((problem.n_x, 1))
    if target.kind == "min_utility":
        if (
            fullest is None and problem.measures.max_lift is not None
        ):  # X itself may tell too much of somebody
            return p
        other = np.eye(problem.n_x) if fullest is None else fullest
    if isinstance(p, SparseChannel) and not isinstance(other, SparseChannel):
        other = SparseChannel.from_dense(other)
    best = evaluate(problem, other)
    room = best[0] - utility if target.kind == "min_utility" else leakage - best[1]
    share = excess / room if room > 0.0 else 1.0
    while share < 1.0:
        shared = _time_shared(p, other, share)
        if target.excess(*evaluate(problem, shared)) <= 0.0:
            return shared
        share *= 1.5  # rounding
    return other


def _time_shared(p: Channel, other: Channel, share: float) -> Channel:
    """Both in one form."""
    if isinstance(p, SparseChannel) and isinstance(other, SparseChannel):
        values = (1.0 - share) * p.probabilities, share * other.probabilities
        return beside([p.with_values(values[0]), other.with_values(values[1])])
    return np.hstack([(1.0 - share) * np.asarray(p), share * np.asarray(other)])


def tidied(problem: Problem, p: Channel, target: Target, tol: float) -> Channel:
    """The channel with almost equal symbols merged, and for a fixed β after a few `dca` steps.

    Columns of the linear programme can be near twins, whose merging costs the square of their difference; the
    steps remove its round-off. Along a constraint they could leave it. Neither may cost more than 1 % of tol.
    Letters by the thousand are left as they were dealt out.
    """
    if isinstance(p, SparseChannel):
        return p
    before = objective_of(problem, p, target)
    merged = merge_symbols(p, ALIKE)
    if merged.shape[1] < p.shape[1]:
        utility, leakage = evaluate(problem, merged)
        dear = target.objective(utility, leakage) > before + 0.01 * tol
        if target.excess(utility, leakage) <= 0.0 and not dear:
            p = merged
    if target.kind == "beta" and problem.measures.plain:
        run = run_tasks(problem, "dca", [Task(target.value, start=p)], tol=0.0, max_steps=POLISH_STEPS)[0]
        if objective_of(problem, run.p, target) < objective_of(problem, p, target):
            return run.p
    return p


def within_lift(problem: Problem, p: Channel) -> Channel:
    """The channel, changed as little as it takes so that no symbol tells more than `max_lift` allows.

    A programme keeps its rows to a tolerance, which may leave a symbol to next to nobody that tells all about
    them. Such symbols are merged with others, and all are drawn anew now and then, each by its share: both
    are done to Z alone, so that no measure of leakage rises. Of as many merges as there may be, those are
    chosen that keep most.
    """
    lift = problem.measures.max_lift
    if lift is None or largest_lift(problem.p_xy, p) <= lift + LIFT_ROUND_OFF:
        return p
    table = p.dense() if isinstance(p, SparseChannel) else np.asarray(p)
    table = table[:, problem.p_x @ table > 0.0]
    best: FloatArray = np.ones((problem.n_x, 1))
    most = -np.inf
    while True:
        needed = _blend_needed(problem.p_xy.T @ table, problem.p_y, lift)
        share = min(float(needed.max()) * (1.0 + LIFT_ROUND_OFF), 1.0)
        blended = (1.0 - share) * table + share * (problem.p_x @ table)
        utility = evaluate(problem, blended)[0]
        if utility > most and largest_lift(problem.p_xy, blended) <= lift + LIFT_ROUND_OFF:
            best, most = blended, utility
        if share == 0.0 or table.shape[1] == 1:
            return best
        worst = int(np.argmax(needed))
        others = np.delete(table, worst, axis=1)
        # With the symbol whose people hide these best.
        merged = others + table[:, [worst]]
        partner = int(np.argmin(_blend_needed(problem.p_xy.T @ merged, problem.p_y, lift)))
        others[:, partner] = merged[:, partner]
        table = others


def _blend_needed(p_yz: FloatArray, p_y: FloatArray, lift: float) -> FloatArray:
    """How often each symbol must be drawn anew, by its share, to tell at most `lift` bits of any y."""
    factors = p_yz / (p_y[:, None] * p_yz.sum(axis=0))
    most, least = 2.0**lift, 2.0**-lift
    with np.errstate(invalid="ignore", divide="ignore"):
        above = np.where(factors > most, (factors - most) / (factors - 1.0), 0.0)
        below = np.where(factors < least, (least - factors) / (1.0 - factors), 0.0)
    needed: FloatArray = np.maximum(above, below).max(axis=0)
    return needed


def claim(
    problem: Problem, p: Channel, target: Target, status: Status, bound: float, tol: float
) -> tuple[Status, float]:
    """The status and the bound (nats) that may be claimed for this channel.

    "Optimal" needs a gap within tol and a constraint that holds. A channel below the bound would refute it.
    """
    utility, leakage = evaluate(problem, p)
    gap = target.objective(utility, leakage) - bound
    sound = -ROUND_OFF <= gap <= tol and target.excess(utility, leakage) <= ROUND_OFF
    lift = problem.measures.max_lift
    sound = sound and (lift is None or largest_lift(problem.p_xy, p) <= lift + LIFT_ROUND_OFF)
    if status is Status.OPTIMAL and not sound:
        status = Status.NUMERICAL_LIMIT
    return status, min(bound, bound + gap)
