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

from dataclasses import dataclass, field

import highspy
import numpy as np

from ...arrays import FloatArray
from ...solution import Target
from .reduction import Posterior, Reduction

ROUNDING = 1e-13  # relative error granted to every sum below; the bound gives it away
# How HiGHS is asked, in this order, until it says "optimal" and the mixture really gives back p.
STRICT: dict[str, str | float] = {
    "presolve": "off",
    "solver": "choose",
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
ATTEMPTS: tuple[dict[str, str | float], ...] = (
    {},
    {"presolve": "on"},
    {"presolve": "on", "primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    {"presolve": "on", "primal_feasibility_tolerance": 1e-8, "dual_feasibility_tolerance": 1e-8},
    {"solver": "ipm", "primal_feasibility_tolerance": 1e-8, "dual_feasibility_tolerance": 1e-8},
)
MISSED = 1e-7  # largest |Σ w q − p| of a mixture that counts as solved


@dataclass(frozen=True)
class Line:
    """A proved bound, in inner units: leakage ≥ value + beta · utility for every release of the joint.

    What proves it, where that took a search: the prices and M of `Duals.line`.
    """

    beta: float
    value: float
    prices: FloatArray | None = field(default=None, compare=False, repr=False)
    largest: float = field(default=np.nan, compare=False, repr=False)

    def bound(self, target: Target) -> float:
        """The lower bound that it gives on what is minimised: L, the leakage, or −utility."""
        if target.kind == "min_utility":
            return self.value + self.beta * target.value
        if target.kind == "max_leakage":
            return (self.value - target.value) / self.beta if self.beta > 0.0 else -np.inf
        return self.value


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
        terms = abs(r.noise) + beta * r.loss + float(np.abs(self.prices) @ r.p) + abs(largest) + 1.0
        # A sum of n products is good to n roundings, in whatever order it is made.
        rounding = max(ROUNDING, 4.0 * np.finfo(np.float64).eps * r.problem.n_x)
        value = r.noise - beta * r.loss - float(self.prices @ r.p) - largest - rounding * terms
        return Line(beta, r.mass * value - (1.0 + beta) * r.slack, self.prices, largest)


class Master:
    """The programme, kept in HiGHS with its basis while columns are added.

    `tol` (nats) is the gap wanted: constraints are tightened by what costs at most 1 % of it, so that the
    release still satisfies them after HiGHS has met them to its own tolerance. `fullest` is the utility and
    leakage of the most useful release: no constraint can ask for more.
    """

    def __init__(
        self, reduction: Reduction, target: Target, tol: float, fullest: tuple[float, float] | None = None
    ) -> None:
        self.reduction = reduction
        self.target = target
        self.columns: list[Posterior] = []
        self.measures: list[tuple[float, float]] = []  # H(Tq) and H(q) of each
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("threads", 1)
        limits = [(share, share) for share in reduction.p]
        # Members of a class are told apart for free: their part of H(X) and of the utility cancels.
        infinity = highspy.kHighsInf
        # In units of the limit, because HiGHS's tolerance is absolute and a limit in nats can be tiny.
        self.leakage_unit = target.value if reduction.problem.measures.leakage == "information" else 1.0
        if target.kind == "min_utility":
            # Leakage rises by at most what utility rises; in other measures it is convex in utility, so its
            # slope is at most that of the chord to the most useful release.
            spare, most = 0.01 * tol, reduction.loss
            if fullest is not None:
                most = fullest[0]
                spare *= min(1.0, max(most - target.value, 0.0) / max(fullest[1], ROUNDING))
            limits.append((-infinity, reduction.loss - min(target.value + spare, most)))
        elif target.kind == "max_leakage":
            # Utility is concave in the leakage allowed, so it falls by at most the same share.
            spare = min(0.01 * tol / max(reduction.loss, tol), 1e-3)
            limits.append((-infinity, (1.0 - spare) * target.value / self.leakage_unit))
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
            noise, spread = self.reduction.measure(column)
            self.measures.append((noise, spread))
            starts.append(len(indices))
            indices += column.letters.tolist()
            values += column.shares.tolist()
            if kind == "beta":
                costs.append(self.target.value * spread - noise)
                continue
            costs.append(-noise if kind == "min_utility" else spread)
            indices.append(last_row)
            leaked = (self.reduction.noise - noise) / self.leakage_unit
            values.append(spread if kind == "min_utility" else leaked)
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

    def solve(self) -> tuple[Duals, FloatArray] | None:
        """The duals and the weights of the columns at the optimum; None where HiGHS finds none."""
        for attempt, options in enumerate(ATTEMPTS):
            for name, value in {**STRICT, **options}.items():
                self.solver.setOptionValue(name, value)
            if attempt:
                self.solver.clearSolver()  # the basis may be what went bad
            self.solver.run()
            if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                continue
            solution = self.solver.getSolution()
            weights = np.maximum(np.array(solution.col_value), 0.0)
            if self._missed(weights) <= MISSED:
                return self._duals(np.array(solution.row_dual)), weights
        return None

    def _missed(self, weights: FloatArray) -> float:
        """max |Σ w q − p|"""
        total = -self.reduction.p
        for j in np.flatnonzero(weights):
            total[self.columns[j].letters] += weights[j] * self.columns[j].shares
        return float(np.abs(total).max())

    def _duals(self, dual: FloatArray) -> Duals:
        prices = -dual[: self.reduction.n]
        if self.target.kind == "beta":
            return Duals(prices, self.target.value)
        extra = max(-float(dual[-1]), 0.0)
        if self.target.kind == "min_utility":
            return Duals(prices, extra)
        # Maximise −Σ w H(q) with Σ w (H(Y) − H(Tq)) / ε ≤ 1: G in units of the price of leakage, 1/β.
        scale = max(extra / self.leakage_unit, 1e-9)
        return Duals((prices + scale * self.reduction.noise) / scale, 1.0 / scale)
