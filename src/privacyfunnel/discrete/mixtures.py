"""Limits on leakage or utility over finite actions, for leakage in bits: prices until the limits are kept.

Channels over the same actions can be mixed: expected costs mix, and I(A;Y) of the mixture is at most the
mixture of theirs. So the channels found so far make a small linear programme, whose duals are prices of the
private attributes; the best channel at these prices (`convex.least_priced`) joins them, with a line

    E d + Σ_k μ_k I(A;Y_k) ≥ b    for every channel over these actions,

and the loop ends when the mixture is as good as the best line allows. It is Dantzig and Wolfe's, and in one
price that of Kelley's cutting planes. Several attributes, each in units of its limit, leak as much as the
largest of them: E d + (Σ μ) · leakage ≥ b is the line that is kept.
"""

from __future__ import annotations

import time

import numpy as np

from ..arrays import FloatArray
from ..solution import Proof, Status, Target
from .convex import Priced, least_priced
from .exact.master import ROUNDING, Line
from .exact.reduction import reduce
from .linear import INFINITY, least_mixture
from .problem import Problem

INNER_SHARE = 0.2  # of the gap that is left, to which the best channel at new prices is found
STALLED = 5  # rounds without any change
HIGHEST = 1e9  # price, where what is asked for is free


def least_limited(
    problem: Problem,
    cost: FloatArray,
    nothing: float,
    target: Target,
    tol: float,
    end: float,
    line: Line,
    start: FloatArray | None,
) -> tuple[FloatArray, Line, Proof | None, Status, list[float]]:
    """The best channel over the actions for a target in inner units, and the best line below all of them.

    `nothing` is the loss without a release, `line` one that is known, `start` a channel to begin from.
    """
    found = _Found(problem, cost, nothing, target)
    found.add_trivial()
    if start is not None:
        found.add(start)
    proof = None
    history: list[float] = []
    bound, best, stalled = line.bound(target), np.inf, 0
    while True:
        mixed = found.mixed()
        if mixed is None:
            return found.channels[0], line, proof, Status.NUMERICAL_LIMIT, history
        p, prices = mixed
        value = found.add(p)
        history.append(value)
        if value - bound <= 0.97 * tol:
            return p, line, proof, Status.OPTIMAL, history
        if time.perf_counter() > end:
            return p, line, proof, Status.TIME_LIMIT, history
        unit = 1.0 if target.kind == "max_leakage" else float(prices.sum())
        priced = least_priced(
            found.p_x,
            found.tables,
            cost,
            prices / found.scales,
            tol=INNER_SHARE * max(value - bound, tol) * unit,
            start=p,
            deadline=end,
        )
        found.add(priced.p)
        new = found.line(priced, prices)
        improved = value < best - 0.01 * tol
        best = min(best, value)
        if new.bound(target) > bound:
            improved = improved or new.bound(target) > bound + 0.01 * tol
            line, bound = new, new.bound(target)
            proof = _proof(line, cost, prices / found.scales, priced)
        stalled = 0 if improved else stalled + 1
        if stalled > STALLED:
            return p, line, proof, Status.NUMERICAL_LIMIT, history


class _Found:
    """Channels found so far: what they cost and what they leak."""

    def __init__(self, problem: Problem, cost: FloatArray, nothing: float, target: Target) -> None:
        self.problem, self.cost, self.nothing, self.target = problem, cost, nothing, target
        self.p_x = problem.p_x / problem.p_x.sum()
        self.tables = [problem.p_y_given_x @ part.members for part in problem.parts]
        self.scales = np.array([part.scale for part in problem.parts])
        self.channels: list[FloatArray] = []
        self.costs: list[float] = []
        self.leaks: list[FloatArray] = []

    def add(self, p: FloatArray) -> float:
        """Keep a channel; what is minimised, of it."""
        cost = float(self.p_x @ (p * self.cost).sum(axis=1))
        leaks = np.array([_told(self.p_x, table, p) for table in self.tables]) / self.scales
        self.channels.append(p)
        self.costs.append(cost)
        self.leaks.append(leaks)
        return self.target.objective(self.nothing - cost, float(leaks.max()))

    def add_trivial(self) -> None:
        """The best single action, and the best action of each letter."""
        for choice in (np.full(len(self.cost), np.argmin(self.p_x @ self.cost)), self.cost.argmin(axis=1)):
            p = np.zeros_like(self.cost)
            p[np.arange(len(p)), choice] = 1.0
            self.add(p)

    def mixed(self) -> tuple[FloatArray, FloatArray] | None:
        """The best mixture, and the prices that it puts on the leakages, in units of the cost."""
        costs, leaks = np.array(self.costs), np.array(self.leaks).T  # (k, n)
        kind, value = self.target.kind, self.target.value
        n, k = costs.size, len(leaks)
        if kind == "max_leakage":
            objective, extra, most = costs, np.zeros((0, n)), np.ones(k)
            leaks = leaks / value
        else:  # one variable more, the largest leakage
            objective = np.append(value * costs if kind == "beta" else np.zeros(n), 1.0)
            extra, most = np.zeros((0, n)), np.zeros(k)
        if kind == "min_utility":
            extra, most = costs[None], np.append(most, max(self.nothing - value, costs.min()))
        table = np.vstack([np.ones((1, n)), leaks, extra])
        every = np.arange(len(table))
        columns = [(every, table[:, j]) for j in range(n)]
        if kind != "max_leakage":
            columns.append((1 + np.arange(k), -np.ones(k)))
        low = np.append(1.0, np.full(most.size, -INFINITY))
        result = least_mixture(objective, columns, low, np.append(1.0, most))
        if result is None:
            return None
        shares, duals = np.maximum(result[0][:n], 0.0), np.maximum(-result[1][1:], 0.0)
        shares /= shares.sum()
        p = np.zeros_like(self.cost)
        for j in np.flatnonzero(shares):
            p += shares[j] * self.channels[j]
        if kind == "max_leakage":
            prices = duals / value
        else:
            prices = duals[:k] / max(value if kind == "beta" else float(duals[k]), 1.0 / HIGHEST)
        total = float(prices.sum())
        return p, prices if 0.0 < total <= HIGHEST else np.full(
            k, 1.0 / k
        ) if total == 0.0 else prices * HIGHEST / total

    def line(self, priced: Priced, prices: FloatArray) -> Line:
        """leakage ≥ value + β · utility, from E d + Σ prices · leakages ≥ b."""
        total = float(prices.sum())
        slack = reduce(self.problem).slack
        slack += ROUNDING * (1.0 + abs(priced.lower_bound) + self.nothing)
        value = (priced.lower_bound - self.nothing - slack) / total - slack / float(self.scales.min())
        return Line(1.0 / total, value)


def _told(p_x: FloatArray, table: FloatArray, p: FloatArray) -> float:
    """I(A;Y) in nats."""
    p_ya = (p_x[:, None] * table).T @ p
    with np.errstate(divide="ignore"):  # products of tiny probabilities would underflow
        apart = np.log(p_ya.sum(axis=1, keepdims=True)) + np.log(p_ya.sum(axis=0))
    here = p_ya > 0.0
    return max(float((p_ya[here] * (np.log(p_ya[here]) - apart[here])).sum()), 0.0)


def _proof(line: Line, cost: FloatArray, prices: FloatArray, priced: Priced) -> Proof:
    arrays = {"costs": cost, "prices": prices, "posteriors": np.vstack(priced.posteriors).T}
    return Proof("actions", line.beta, line.value, arrays)
