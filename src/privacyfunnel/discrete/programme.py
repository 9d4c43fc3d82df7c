"""Success, parity and lift over finite actions: one linear programme, for any number of private values.

With masses m(x, a) = p(x) P(a|x) and v_a(y) = Σ_x P(y|x) m(x, a), each of these leakages is Σ_a max_j f_j·v_a
for a few linear forms f_j: success has one a class, parity of two classes v(y)/P(y) − v(y')/P(y') and 0. A
limit on lift is v_a(y) ≤ 2^ε P(y) Σ v_a and the like, linear too. The programme

    minimise Σ m d   subject to   Σ_a m(x, a) = p(x) ,  Σ_a s_a ≤ limit ,  f_j·v_a ≤ s_a ,  c·v_a ≤ 0

has |X| times |A| columns m(x, a), of which few are used: they are generated. Whatever multipliers μ ≥ 0 of
the limits, 0 ≤ π_aj with Σ_j π_aj = μ and ν_a ≥ 0 are,

    Σ m d + μ · leakage ≥ Σ_x p(x) min_a [ d(x, a) + Σ_y P(y|x) ψ_a(y) ] ,  ψ_a = Σ_j π_aj f_j + Σ ν c

for every channel over these actions that keeps the limit on lift, because Σ_j π_aj f_j·v_a ≤ μ s_a and
ν c·v_a ≤ 0. That is the proof; the multipliers of the programme, made to fit, need not be exact.
"""

from __future__ import annotations

import time

import highspy
import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..solution import Proof, Status, Target
from .exact.master import ROUNDING, Line
from .exact.reduction import reduce
from .problem import Problem

NEAREST = 6  # answers of each letter that begin
MORE = 4  # that may join for each letter in a round
MOST_ROUNDS = 200
HIGHEST = 1e9
INFINITY = highspy.kHighsInf


def least_programme(
    problem: Problem,
    cost: FloatArray,
    nothing: float,
    target: Target,
    tol: float,
    end: float,
    line: Line,
    start: FloatArray | None,
) -> tuple[FloatArray, Line, Proof | None, Status, list[float]]:
    """The best channel over the actions for a target in inner units, and the best line below all of them."""
    programme = _Programme(problem, cost, nothing, target)
    programme.add(_first_columns(programme.p_x, cost, start))
    proof, bound = None, line.bound(target)
    history: list[float] = []
    status = Status.NUMERICAL_LIMIT
    p = np.zeros_like(cost)
    p[:, np.argmin(programme.p_x @ cost)] = 1.0
    for _ in range(MOST_ROUNDS):
        solved = programme.solve()
        if solved is None:
            # Near the most that a limit on lift allows, the few columns that began may not do.
            if programme.chosen.all():
                break
            programme.add(np.ones_like(programme.chosen))
            continue
        p, value, duals = solved
        history.append(value)
        new, arrays, reduced = programme.line(duals)
        if new is not None and new.bound(target) > bound:
            line, bound = new, new.bound(target)
            proof = Proof("programme", line.beta, line.value, arrays)
        if value - bound <= 0.97 * tol:
            status = Status.OPTIMAL
            break
        if time.perf_counter() > end:
            status = Status.TIME_LIMIT
            break
        fresh = programme.improving(reduced)
        if not fresh.any():
            break
        programme.add(fresh)
    return p, line, proof, status, history


def _first_columns(p_x: FloatArray, cost: FloatArray, start: FloatArray | None) -> NDArray[np.bool_]:
    """Which (letter, action) begin: the nearest few, the best answer for all, and those of a start."""
    order = np.argpartition(cost, min(NEAREST, cost.shape[1]) - 1, axis=1)[:, :NEAREST]
    chosen = np.zeros(cost.shape, dtype=bool)
    np.put_along_axis(chosen, order, True, axis=1)
    chosen[:, np.argmin(p_x @ cost)] = True
    if start is not None:
        chosen |= start > 1e-9
    return chosen


class _Programme:
    """The programme, kept in HiGHS while columns are added."""

    def __init__(self, problem: Problem, cost: FloatArray, nothing: float, target: Target) -> None:
        self.problem, self.cost, self.nothing, self.target = problem, cost, nothing, target
        self.p_x = problem.p_x / problem.p_x.sum()
        self.table = problem.p_y_given_x
        n_x, n_a = cost.shape
        self.forms = [part.forms for part in problem.parts]
        self.cone = problem.cone  # (c, n_y)
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("threads", 1)
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self.solver.setOptionValue(name, 1e-9)
        # Rows: letters; of each action its forms and its cone; the limits; the cost.
        self.per_action = sum(len(one) for one in self.forms) + len(self.cone)
        self.first_limit = n_x + n_a * self.per_action
        low = [*self.p_x, *[-INFINITY] * (n_a * self.per_action)]
        high = [*self.p_x, *[0.0] * (n_a * self.per_action)]
        kind, value = target.kind, target.value
        for part in problem.parts:
            # Leakage counts beyond that of saying nothing, in units of the part's scale.
            low.append(-INFINITY)
            high.append((value if kind == "max_leakage" else 0.0) * part.scale + part.least)
        if kind == "min_utility":
            low.append(-INFINITY)
            high.append(max(nothing - value, float(self.p_x @ cost.min(axis=1))))
        for one, other in zip(low, high, strict=True):
            self.solver.addRow(one, other, 0, np.empty(0, dtype=np.int32), np.empty(0))
        self.chosen = np.zeros(cost.shape, dtype=bool)
        self.places: list[tuple[int, int]] = []
        self._add_leakages()

    def _add_leakages(self) -> None:
        """Variables: s_ak of each action and leakage, and the largest leakage where that is minimised."""
        n_x, n_a = self.cost.shape
        for a in range(n_a):
            at = n_x + a * self.per_action
            for k, forms in enumerate(self.forms):
                rows = [*range(at, at + len(forms)), self.first_limit + k]
                values = [*[-1.0] * len(forms), 1.0]
                low = 0.0 if self.problem.parts[k].least == 0.0 else -INFINITY
                self._column(0.0, rows, values, low)
                at += len(forms)
        if self.target.kind != "max_leakage":
            rows = [self.first_limit + k for k in range(len(self.forms))]
            self._column(1.0, rows, [-part.scale for part in self.problem.parts], -INFINITY)
        self.n_others = self.solver.getNumCol()

    def _column(self, cost: float, rows: list[int], values: list[float], low: float = 0.0) -> None:
        self.solver.addCol(
            cost, low, INFINITY, len(rows), np.array(rows, dtype=np.int32), np.array(values, dtype=np.float64)
        )

    def add(self, fresh: NDArray[np.bool_]) -> None:
        """Add columns m(x, a)."""
        n_x = len(self.p_x)
        stacked = (
            np.vstack([*self.forms, self.cone]) if self.per_action else np.zeros((0, self.table.shape[1]))
        )
        seen = self.table @ stacked.T  # (n_x, per_action): what a unit of x adds to the rows of an action
        kind = self.target.kind
        starts: list[int] = []
        rows: list[int] = []
        values: list[float] = []
        costs: list[float] = []
        for x, a in np.argwhere(fresh & ~self.chosen).tolist():
            starts.append(len(rows))
            rows.append(x)
            values.append(1.0)
            there = np.flatnonzero(seen[x])
            rows += (n_x + a * self.per_action + there).tolist()
            values += seen[x, there].tolist()
            price = float(self.cost[x, a])
            if kind == "min_utility":
                rows.append(self.first_limit + len(self.forms))
                values.append(price)
            costs.append(
                0.0 if kind == "min_utility" else price * (self.target.value if kind == "beta" else 1.0)
            )
            self.places.append((x, a))
        self.chosen |= fresh
        count = len(starts)
        self.solver.addCols(
            count,
            np.array(costs),
            np.zeros(count),
            np.full(count, INFINITY),
            len(rows),
            np.array(starts, dtype=np.int32),
            np.array(rows, dtype=np.int32),
            np.array(values),
        )

    def solve(self) -> tuple[FloatArray, float, FloatArray] | None:
        """The channel, what is minimised, and the multipliers of the rows."""
        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self.solver.clearSolver()
            self.solver.run()
            if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return None
        solution = self.solver.getSolution()
        values = np.maximum(np.array(solution.col_value)[self.n_others :], 0.0)
        m = np.zeros_like(self.cost)
        places = np.array(self.places)
        m[places[:, 0], places[:, 1]] = values
        # Letters whose whole mass is below the tolerance get what tells nothing: the answers of all others.
        lost = m.sum(axis=1) <= 0.0
        m[lost] = m.sum(axis=0)
        p = m / m.sum(axis=1, keepdims=True)
        spent = float(self.p_x @ (p * self.cost).sum(axis=1))
        told = (self.p_x[:, None] * p).T @ self.table  # v_a
        leaks = [
            ((told @ forms.T).max(axis=1, initial=0.0 if part.least == 0.0 else -np.inf).sum() - part.least)
            / part.scale
            for forms, part in zip(self.forms, self.problem.parts, strict=True)
        ]
        value = self.target.objective(self.nothing - spent, max(leaks, default=0.0))
        return p, value, -np.array(solution.row_dual)

    def line(self, duals: FloatArray) -> tuple[Line | None, dict[str, FloatArray], FloatArray]:
        """The line that multipliers prove, made to fit; the arrays of the proof; the reduced costs."""
        n_x, n_a = self.cost.shape
        kind, parts = self.target.kind, self.problem.parts
        k = len(parts)
        price_of_cost = 1.0
        if kind == "beta":
            price_of_cost = self.target.value
        elif kind == "min_utility":
            price_of_cost = max(float(duals[self.first_limit + k]), 1.0 / HIGHEST)
        limits = np.maximum(duals[self.first_limit : self.first_limit + k], 0.0) / price_of_cost
        by_action = (
            np.maximum(duals[n_x : self.first_limit].reshape(n_a, self.per_action), 0.0) / price_of_cost
        )
        slopes = np.zeros((n_a, self.table.shape[1]))
        fitted = by_action.copy()
        at = 0
        for forms, limit, part in zip(self.forms, limits.tolist(), parts, strict=True):
            weights = by_action[:, at : at + len(forms)]
            total = weights.sum(axis=1, keepdims=True)
            if part.least > 0.0:  # exactly the limit's price; without any, the first form will do
                weights = np.where(total > 0.0, weights, np.eye(len(forms))[0])
                weights = weights * (limit / weights.sum(axis=1, keepdims=True))
            else:  # at most the limit's price
                weights = weights * (limit / np.maximum(total, max(limit, 1e-300)))
            slopes += weights @ forms
            fitted[:, at : at + len(forms)] = weights
            at += len(forms)
        slopes += by_action[:, at:] @ self.cone
        reduced = self.cost + self.table @ slopes.T
        lowest = float(self.p_x @ reduced.min(axis=1))
        scales = np.array([part.scale for part in parts])
        least = np.array([part.least for part in parts])
        total = float(limits @ scales)
        if total <= 0.0:
            # No limit binds: utility is at most what the lift allows, whatever the leakage.
            total = 1.0 / HIGHEST
        size = (
            1.0 + float(self.cost.max()) + float(np.abs(slopes).max()) + float(limits @ least) + self.nothing
        )
        slack = reduce(self.problem).slack * (1.0 + float(np.abs(slopes).max()))
        bound = lowest - float(limits @ least) - ROUNDING * size - slack
        value = (bound - self.nothing) / total
        arrays = {"costs": self.cost, "prices": limits, "weights": fitted}
        return (
            Line(1.0 / total, value),
            arrays,
            reduced - reduced.min(axis=1, where=self.chosen, initial=np.inf)[:, None],
        )

    def improving(self, reduced: FloatArray) -> NDArray[np.bool_]:
        """The columns that improve the mixture, a few for each letter."""
        best = np.argpartition(reduced, min(MORE, reduced.shape[1]) - 1, axis=1)[:, :MORE]
        fresh = np.zeros(reduced.shape, dtype=bool)
        np.put_along_axis(fresh, best, True, axis=1)
        return fresh & (reduced < -1e-12) & ~self.chosen
