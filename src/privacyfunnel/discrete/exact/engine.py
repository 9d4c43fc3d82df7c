"""Column generation with stabilised duals: the loop that finds the optimum and proves it.

Each round solves the master, prices posteriors, and adds those that improve it. Prices of a master with few
columns swing wildly, so pricing happens half-way between them and the prices that gave the best bound so far
(in–out smoothing; Ben-Ameur & Neto 2007): either a posterior found there cuts the master's prices off, or the
bound rises. Where pricing is a heuristic, the loop first runs on what it finds, and the proof comes last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...solution import Status
from ..problem import NATS_PER_BIT, FloatArray, Problem
from .master import ROUNDING, Duals, Line, Master, Target
from .pricing import Priced, Pricing, letter_posterior
from .reduction import Posterior, reduce

SMOOTHING = 0.5
MAX_ROUNDS = 2_000
# Of the tolerance: where the heuristic stage ends, and what the proof may use up.
HEURISTIC_SHARE, PROOF_SHARE = 0.4, 0.95
NODES_PER_FACE = 1_000_000  # at first
SETTLING_SHARE = 0.3
LADDER = 2.0  # factor between the thresholds that are tried when the full proof is out of reach


@dataclass(frozen=True, eq=False)
class Limits:
    """When to stop: gap in nats, seconds, branch-and-bound nodes."""

    tol: float
    seconds: float
    nodes: float = np.inf


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best release found and the best line proved below all of them (nats)."""

    p: FloatArray  # (n_x, n_z) on the problem's letters
    line: Line
    status: Status
    history: FloatArray  # objective by round
    n_rounds: int
    n_columns: int
    n_nodes: int


Watcher = Callable[[float, float, int], None]  # objective, bound (nats), columns


class Engine:
    """Solves the funnel of one joint for any number of targets; posteriors found for one serve the next."""

    def __init__(self, problem: Problem, n_workers: int, seed: np.random.SeedSequence) -> None:
        self.problem = problem
        self.reduction = reduce(problem)
        self.pricing = Pricing(self.reduction, n_workers, seed)
        self.pool = [letter_posterior(x) for x in range(self.reduction.n)]
        # The constant release: the only start that satisfies any bound on leakage.
        self.pool.append(Posterior(np.arange(self.reduction.n), self.reduction.p))

    def add(self, p_z_given_x: FloatArray) -> None:
        """Offer the posteriors of a channel as columns."""
        self.pool += self.reduction.posteriors(p_z_given_x)

    def solve(self, target: Target, limits: Limits, watch: Watcher | None = None) -> Outcome:
        run = _Run(self, target, limits, watch)
        try:
            status = run.loop()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        self.pool += run.useful()
        return run.outcome(status)


class _Run:
    """One target's column generation."""

    def __init__(self, engine: Engine, target: Target, limits: Limits, watch: Watcher | None) -> None:
        self.engine, self.target, self.limits, self.watch = engine, target, limits, watch
        self.reduction, self.pricing = engine.reduction, engine.pricing
        self.end = time.perf_counter() + limits.seconds
        # What is left after that goes into the best bound that can still be proved.
        self.deadline = self.end - SETTLING_SHARE * limits.seconds
        self.master = Master(self.reduction, target)
        self.master.add(engine.pool)
        self.weights = np.empty(0)
        self.history: list[float] = []
        self.nodes = 0
        self.nodes_per_face = NODES_PER_FACE
        # Leakage and mutual information are not negative: the line that needs no proof.
        self.line = Line(target.value if target.kind == "beta" else 0.0, 0.0)
        if target.kind == "beta":
            entropy = engine.problem.joint.entropy_x * NATS_PER_BIT
            self.line = Line(target.value, -target.value * entropy * (1.0 + ROUNDING))
        self.bound = target.bound(self.line)

    def loop(self) -> Status:
        center: Duals | None = None  # the prices with the best bound that pricing suggests, proved or not
        hoped = -np.inf  # that bound
        tol = 0.97 * self.limits.tol  # the rest is for the round-off of the programme
        for _ in range(MAX_ROUNDS):
            duals, self.weights = self.master.solve()
            objective = self.mixture_objective()
            self.history.append(objective)
            if self.watch is not None:
                self.watch(objective, self.bound, len(self.master.columns))
            if objective - self.bound <= tol:
                return Status.OPTIMAL
            if self.out_of_limits():
                self.settle(center or duals)
                return Status.OPTIMAL if objective - self.bound <= tol else Status.TIME_LIMIT
            if objective - hoped <= HEURISTIC_SHARE * tol:
                priced = self.prove(center or duals, objective)
                if not priced.columns:
                    if objective - self.bound <= tol:
                        return Status.OPTIMAL
                    # Some face ran into its limit: once more, with patience.
                    self.nodes_per_face = min(8 * self.nodes_per_face, 2**50)
                    continue
                center, hoped = None, -np.inf
            else:
                at = duals if center is None else duals.mixed(center, SMOOTHING)
                priced = self.pricing.look(at)
                suggested = self.target.bound(at.line(self.reduction, max(priced.largest, 0.0)))
                if suggested > hoped:
                    center, hoped = at, suggested
                if priced.bound < np.inf:
                    self.keep(at.line(self.reduction, priced.bound))
                if not priced.columns and at is not duals:
                    continue
                if not priced.columns and objective - hoped > HEURISTIC_SHARE * tol:
                    hoped = objective  # the heuristic is at its end; only a proof can go on
            self.master.add(priced.columns)
        # Rounding keeps the last digits apart: what was asked for is finer than what can be proved here.
        self.settle(center or duals)
        return Status.TIME_LIMIT

    def prove(self, duals: Duals, objective: float) -> Priced:
        """Try to close the gap at these prices; keeps the line if nothing larger was found."""
        room = objective - self.target.bound(duals.line(self.reduction, 0.0))
        scale = max(duals.beta, 1e-300) if self.target.kind == "max_leakage" else 1.0
        threshold = max(PROOF_SHARE * self.limits.tol - room, 0.3 * self.limits.tol) * scale
        priced = self.pricing.prove(duals, threshold, self.deadline, self.nodes_left(self.nodes_per_face))
        self.nodes += priced.nodes
        if not priced.columns:
            self.keep(duals.line(self.reduction, priced.bound))
        return priced

    def settle(self, duals: Duals) -> None:
        """Prove what can be proved at these prices: thresholds fall by LADDER until one cannot be reached."""
        end = max(self.end, time.perf_counter() + 0.5)
        threshold = 4.0 * max(1.0, float(np.abs(duals.prices).max()))
        while threshold > 0.3 * self.limits.tol and time.perf_counter() < end:
            priced = self.pricing.prove(duals, threshold, end, self.nodes_left(self.nodes_per_face))
            self.nodes += priced.nodes
            if priced.columns:
                return
            self.keep(duals.line(self.reduction, priced.bound))
            if priced.bound > threshold:
                return
            threshold /= LADDER

    def keep(self, line: Line) -> None:
        if self.target.bound(line) > self.bound:
            self.line, self.bound = line, self.target.bound(line)

    def out_of_limits(self) -> bool:
        return time.perf_counter() > self.deadline or self.nodes >= self.limits.nodes

    def nodes_left(self, most: int) -> int:
        return int(min(most, max(self.limits.nodes - self.nodes, 1)))

    def mixture_objective(self) -> float:
        """What is minimised, in nats, of the master's mixture."""
        r = self.reduction
        noise = spread = 0.0
        for j in np.flatnonzero(self.weights):
            one = self.master.measures[j]
            noise += self.weights[j] * one[0]
            spread += self.weights[j] * one[1]
        return self.target.objective(r.entropy_x - spread, r.entropy_y - noise)

    def useful(self) -> list[Posterior]:
        """The columns in use that the engine did not have before."""
        new = range(len(self.engine.pool), len(self.master.columns))
        return [self.master.columns[j] for j in new if j < self.weights.size and self.weights[j] > 0.0]

    def outcome(self, status: Status) -> Outcome:
        used = np.flatnonzero(self.weights > 0.0)
        if used.size:
            p = self.reduction.expand([self.master.columns[j] for j in used], self.weights[used])
        else:  # interrupted before the first master was solved
            p = (
                np.ones((self.problem.n_x, 1))
                if self.target.kind == "max_leakage"
                else np.eye(self.problem.n_x)
            )
        return Outcome(
            p,
            self.line,
            status,
            np.array(self.history),
            len(self.history),
            len(self.master.columns),
            self.nodes,
        )

    @property
    def problem(self) -> Problem:
        return self.engine.problem
