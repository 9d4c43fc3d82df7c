"""The master linear programme: the best mixture of the posteriors known so far.

A release is a set of posteriors q_j with weights w_j ≥ 0, Σ w_j q_j = p; H(Tq) = H(Y|z) and H(q) = H(X|z):

    beta:         maximise Σ w (H(Tq) − β H(q))
    min_utility:  maximise Σ w H(Tq)   subject to  Σ w H(q) ≤ H(X) − η
    max_leakage:  maximise −Σ w H(q)   subject to  Σ w H(Tq) ≥ H(Y) − ε

The duals are prices λ of the letters and one of the constraint. Scaled so that H(Tq) has the coefficient 1,
they say: a posterior improves the mixture exactly if its reduced value G(q) = H(Tq) − β H(q) − λ·q is
positive. And whatever λ and β ≥ 0 are, M ≥ max G proves a line below *every* release of the joint:

    leakage ≥ value + β · utility ,   value = H(Y) − β H(X) − λ·p − M

because Σ w (H(Tq) − β H(q)) ≤ λ·p + M. Such a line is the certificate for all three problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np

from ..problem import FloatArray
from .reduction import Posterior, Reduction

ROUNDING = 1e-13  # relative error granted to every sum below; the bound gives it away


@dataclass(frozen=True)
class Line:
    """A proved bound, in nats: leakage ≥ value + beta · utility for every release of the joint."""

    beta: float
    value: float


@dataclass(frozen=True)
class Target:
    """What is asked for: kind "beta", "min_utility" or "max_leakage", and its number in nats (β as it is)."""

    kind: str
    value: float

    def bound(self, line: Line) -> float:
        """The lower bound that a line gives on what is minimised: L, the leakage, or −utility."""
        if self.kind == "min_utility":
            return line.value + line.beta * self.value
        if self.kind == "max_leakage":
            return (line.value - self.value) / line.beta if line.beta > 0.0 else -np.inf
        return line.value

    def objective(self, utility: float, leakage: float) -> float:
        """What is minimised, in nats."""
        if self.kind == "min_utility":
            return leakage
        return -utility if self.kind == "max_leakage" else leakage - self.value * utility


@dataclass(frozen=True, eq=False)
class Duals:
    """λ and β of the reduced value G(q) = H(Tq) − β H(q) − λ·q."""

    prices: FloatArray
    beta: float

    def mixed(self, other: Duals, share: float) -> Duals:
        """(1 − share) · self + share · other"""
        prices = (1.0 - share) * self.prices + share * other.prices
        return Duals(prices, (1.0 - share) * self.beta + share * other.beta)

    def line(self, reduction: Reduction, largest: float) -> Line:
        """The line proved by M = largest ≥ max G. Rounding and what the reduction left out weaken it."""
        r, beta = reduction, self.beta
        terms = r.entropy_y + beta * r.entropy_x + float(np.abs(self.prices) @ r.p) + abs(largest) + 1.0
        value = r.entropy_y - beta * r.entropy_x - float(self.prices @ r.p) - largest - ROUNDING * terms
        return Line(beta, r.mass * value - (1.0 + beta) * r.slack)


class Master:
    """The programme, kept in HiGHS with its basis while columns are added."""

    def __init__(self, reduction: Reduction, target: Target) -> None:
        self.reduction = reduction
        self.target = target
        self.columns: list[Posterior] = []
        self.measures: list[tuple[float, float]] = []  # H(Tq) and H(q) of each
        self.solver = highspy.Highs()
        for name, value in (
            ("output_flag", False),
            ("presolve", "off"),
            ("threads", 1),
            ("primal_feasibility_tolerance", 1e-10),
            ("dual_feasibility_tolerance", 1e-10),
        ):
            self.solver.setOptionValue(name, value)
        limits = [(share, share) for share in reduction.p]
        # Members of a class are told apart for free: their part of H(X) and of the utility cancels.
        infinity = highspy.kHighsInf
        if target.kind == "min_utility":
            limits.append((-infinity, max(reduction.entropy_x - target.value, 0.0)))
        elif target.kind == "max_leakage":
            limits.append((max(reduction.entropy_y - target.value, 0.0), infinity))
        for low, high in limits:
            self.solver.addRow(low, high, 0, np.empty(0, dtype=np.int32), np.empty(0))

    def add(self, columns: list[Posterior]) -> None:
        """Add posteriors."""
        kind, last_row = self.target.kind, self.reduction.n
        costs: list[float] = []
        starts: list[int] = []
        indices: list[int] = []
        values: list[float] = []
        for column in columns:
            noise, spread = self.reduction.entropies(column)
            self.measures.append((noise, spread))
            starts.append(len(indices))
            indices += column.letters.tolist()
            values += column.shares.tolist()
            if kind == "beta":
                costs.append(self.target.value * spread - noise)
                continue
            costs.append(-noise if kind == "min_utility" else spread)
            indices.append(last_row)
            values.append(spread if kind == "min_utility" else noise)
        count = len(columns)
        self.solver.addCols(
            count,
            np.array(costs),
            np.zeros(count),
            np.full(count, highspy.kHighsInf),
            len(indices),
            np.array(starts, dtype=np.int32),
            np.array(indices, dtype=np.int32),
            np.array(values),
        )
        self.columns += columns

    def solve(self) -> tuple[Duals, FloatArray]:
        """The duals and the weights of the columns at the optimum."""
        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self.solver.clearSolver()  # a basis that has gone bad: once more from scratch
            self.solver.run()
        solution = self.solver.getSolution()
        dual = np.array(solution.row_dual)
        weights = np.maximum(np.array(solution.col_value), 0.0)
        prices = -dual[: self.reduction.n]
        if self.target.kind == "beta":
            return Duals(prices, self.target.value), weights
        extra = float(dual[-1])
        if self.target.kind == "min_utility":
            return Duals(prices, max(-extra, 0.0)), weights
        scale = max(extra, 1e-9)  # price of leakage in terms of utility, 1/β
        return Duals(prices / scale, 1.0 / scale), weights
