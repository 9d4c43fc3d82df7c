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

from ...arrays import FloatArray
from ...solution import Status, Target
from ...sparse import Channel, SparseChannel
from ..problem import NATS_PER_BIT, Problem
from .master import ROUNDING, Duals, Line, Master
from .pricing import WORTHWHILE, Priced, Pricing, letter_posterior
from .reduction import Posterior, Reduction, reduce
from .release import kept_to
from .starting import matched_posteriors

SMOOTHING = 0.5
MAX_ROUNDS = 2_000
# Rounds without any change before smoothing ends, and before the loop does.
PATIENCE, STALLED = 4, 30
# Of the tolerance: where the heuristic stage ends, and what the proof may use up.
HEURISTIC_SHARE, PROOF_SHARE = 0.4, 0.95
STUCK = 0.02  # of the tolerance: a master that moves less in a round counts as stuck
# Of the time, kept for after the loop; less where an interrupted proof has settled it already.
SETTLING_SHARE, SEARCH_SETTLING_SHARE = 0.3, 0.1
SHARE_OF_GAP = 0.02
STEEPEST = 1e9  # β of a line that says that utility is at most what it is


@dataclass(frozen=True, eq=False)
class Limits:
    """When to stop: gap in nats, seconds, branch-and-bound nodes."""

    tol: float
    seconds: float
    nodes: float = np.inf


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best release found and the best line proved below all of them (nats)."""

    p: Channel  # (n_x, n_z) on the problem's letters; constraints hold but for rounding
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
        self.pool = [letter_posterior(int(x)) for x in np.flatnonzero(self.pricing.allowed)]
        # The constant release: the only start that satisfies any bound on leakage.
        self.pool.append(Posterior(np.arange(self.reduction.n), self.reduction.p))
        if not problem.measures.plain and self.pricing.in_pairs:
            self.pool += matched_posteriors(self.reduction)
        # The most useful release that is allowed: X itself, unless some letter tells too much.
        self.fullest: FloatArray | None = np.eye(problem.n_x) if self.pricing.allowed.all() else None

    @property
    def most(self) -> tuple[float, float] | None:
        """Utility and leakage of the most useful release, for other measures than information."""
        if self.fullest is None or self.problem.measures.plain:
            return None
        return self.problem.evaluate(self.fullest)

    def find_fullest(self, limits: Limits) -> float:
        """Where X itself may not be released, find what is most useful; no utility is above the result."""
        if self.fullest is not None:
            return np.inf
        whole = Target("max_leakage", self.problem.evaluate(np.eye(self.problem.n_x))[1])
        outcome = self.solve(whole, limits)
        assert not isinstance(outcome.p, SparseChannel)
        self.fullest = outcome.p
        return -outcome.line.bound(whole)

    def add(self, p_z_given_x: FloatArray) -> None:
        """Offer the posteriors of a channel as columns."""
        self.pool += self.reduction.posteriors(p_z_given_x)

    def solve(
        self, target: Target, limits: Limits, watch: Watcher | None = None, near: Duals | None = None
    ) -> Outcome:
        """Solve one target; `near` are prices that are thought to be close to the optimal ones."""
        run = _Run(self, target, limits, watch)
        run.near = near
        try:
            status = run.loop()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        self.pool += run.useful()
        return run.outcome(status)


def line_without_search(reduction: Reduction, target: Target) -> Line:
    """The best line that needs no search: leakage ≥ 0, leakage ≥ utility − H(X|Y), and what lies between.

    The second one because what Z leaves open of Y cannot be more than what it leaves open of X.
    """
    joint = reduction.problem.joint
    if not reduction.problem.measures.plain:
        whole = reduction.problem.evaluate(np.eye(reduction.problem.n_x))[0]
        most = whole * (1.0 + ROUNDING) + reduction.slack
        beta = target.value if target.kind == "beta" else STEEPEST if target.kind == "max_leakage" else 0.0
        return Line(beta, -beta * most)
    spare = ROUNDING * (1.0 + joint.entropy_x) + reduction.slack
    entropy = joint.entropy_x * NATS_PER_BIT + spare
    rest = (joint.entropy_x - joint.mutual_information) * NATS_PER_BIT + 2.0 * spare
    if target.kind == "beta":
        # For β > 1 the utility that the second line counts too little is at most H(X).
        beta = target.value
        return Line(beta, -min(beta, 1.0) * rest - max(beta - 1.0, 0.0) * entropy)
    return max(Line(0.0, 0.0), Line(1.0, -rest), key=lambda line: line.bound(target))


class _Run:
    """One target's column generation."""

    def __init__(self, engine: Engine, target: Target, limits: Limits, watch: Watcher | None) -> None:
        self.engine, self.target, self.limits, self.watch = engine, target, limits, watch
        self.reduction, self.pricing = engine.reduction, engine.pricing
        self.begun = time.perf_counter()
        self.end = self.begun + limits.seconds
        # What is left after that goes into the best bound that can still be proved.
        share = SETTLING_SHARE if self.pricing.in_pairs else SEARCH_SETTLING_SHARE
        self.deadline = self.end - share * limits.seconds
        self.tried: Duals | None = None  # prices at which the last proof was tried
        self.master = Master(self.reduction, target, limits.tol, engine.most)
        self.master.add(engine.pool)
        self.weights = np.empty(0)
        self.history: list[float] = []
        self.nodes = 0
        self.line = line_without_search(self.reduction, target)
        self.bound = self.line.bound(target)
        # A utility counts 1/β of the reduced values: what is not worth a column depends on it.
        self.share_of_tol = 0.05 * limits.tol
        self.near: Duals | None = None

    def loop(self) -> Status:
        center = self.near  # the prices with the best bound that pricing suggests, proved or not
        hoped = -np.inf  # that bound
        tol = 0.97 * self.limits.tol  # the rest is for the round-off of the programme
        known, since = (np.inf, -np.inf, -np.inf), 0
        for _ in range(MAX_ROUNDS):
            solved = self.master.solve()
            if solved is None:
                break
            duals, self.weights = solved
            objective = self.mixture_objective()
            self.history.append(objective)
            if self.watch is not None:
                self.watch(objective, self.bound, len(self.master.columns))
            if objective - self.bound <= tol:
                return Status.OPTIMAL
            since = since + 1 if (objective, hoped, self.bound) == known else 0
            moved, known = known[0] - objective > STUCK * tol, (objective, hoped, self.bound)
            if since > STALLED:
                break
            if self.out_of_limits():
                self.settle(center or duals)
                return Status.OPTIMAL if objective - self.bound <= tol else Status.TIME_LIMIT
            if objective - hoped <= HEURISTIC_SHARE * tol:
                priced = self.prove(center or duals, objective)
                if not priced.columns:
                    if objective - self.bound <= tol:
                        return Status.OPTIMAL
                    if not priced.limited:
                        break
                    continue
                center, hoped = None, -np.inf
            else:
                # While nothing changes, closer and closer to the master's own prices: only what is positive
                # there changes it.
                at = duals
                # A heuristic that no longer moves the master is asked at its own prices at once.
                hopeful = self.pricing.in_pairs or moved
                if center is not None and since <= PATIENCE and hopeful:
                    at = self.between(duals, center, SMOOTHING / 2**since)
                priced = self.pricing.look(at, self.worthwhile(at, objective), self.in_use())
                suggested = at.line(self.reduction, max(priced.largest, 0.0)).bound(self.target)
                better = suggested > hoped
                if better:
                    center, hoped = at, suggested
                if priced.bound < np.inf:
                    self.keep(at.line(self.reduction, priced.bound))
                if not priced.columns and at is not duals:
                    continue
                if not priced.columns and objective - hoped > HEURISTIC_SHARE * tol:
                    hoped = objective  # the heuristic is at its end; only a proof can go on
            self.master.add(priced.columns)
        # Rounding keeps the last digits apart: what was asked for is finer than what can be proved here.
        if center is not None or solved is not None:
            self.settle(center or duals)
        return Status.NUMERICAL_LIMIT

    def prove(self, duals: Duals, objective: float) -> Priced:
        """Try to close the gap at these prices; keeps the line if nothing larger was found."""
        room = objective - duals.line(self.reduction, 0.0).bound(self.target)
        threshold = max(PROOF_SHARE * self.limits.tol - room, 0.3 * self.limits.tol) * self.unit(duals)
        self.tried = duals
        priced = self.pricing.prove(
            duals, threshold, self.deadline, self.limits.nodes - self.nodes, self.in_use()
        )
        self.nodes += priced.nodes
        if not priced.columns:
            self.keep(duals.line(self.reduction, priced.bound))
        return priced

    def settle(self, duals: Duals) -> None:
        """Prove what can be proved at these prices in the time that is left, if that was not tried yet."""
        if duals is self.tried and not self.pricing.in_pairs:
            return
        end = max(self.end, time.perf_counter() + 0.2)
        threshold = 0.3 * self.limits.tol * self.unit(duals)
        priced = self.pricing.prove(duals, threshold, end, self.limits.nodes - self.nodes)
        self.nodes += priced.nodes
        self.keep(duals.line(self.reduction, priced.bound))

    def keep(self, line: Line) -> None:
        if (bound := line.bound(self.target)) > self.bound:
            self.line, self.bound = line, bound

    def out_of_limits(self) -> bool:
        now = time.perf_counter()
        return now > self.deadline or self.nodes >= self.limits.nodes

    def unit(self, duals: Duals) -> float:
        """Reduced value, in nats, that is worth one nat of what is minimised."""
        if self.target.kind != "max_leakage":
            return 1.0
        return min(duals.beta, 1.0) if self.problem.measures.plain else duals.beta

    def between(self, out: Duals, best: Duals, share: float) -> Duals:
        """Prices between the master's and the best ones.

        Where utility is maximised, they are mixed in its unit, 1/β of the reduced values: the price of a
        limit on leakage that does not bind is 0, and β then beyond all measure.
        """
        if self.target.kind == "max_leakage" and not self.problem.measures.plain:
            share = share * out.beta / ((1.0 - share) * best.beta + share * out.beta)
        return out.mixed(best, share)

    def worthwhile(self, duals: Duals, objective: float) -> float:
        """Reduced value below which a posterior does not matter, or not yet: it is little of the gap."""
        share = self.share_of_tol * self.unit(duals)
        if self.problem.measures.plain:
            return min(WORTHWHILE, share)
        return max(share, SHARE_OF_GAP * (objective - self.bound) * self.unit(duals))

    def mixture_objective(self) -> float:
        """What is minimised, in nats, of the master's mixture."""
        r = self.reduction
        noise = spread = 0.0
        for j in np.flatnonzero(self.weights):
            one = self.master.measures[j]
            noise += self.weights[j] * one[0]
            spread += self.weights[j] * one[1]
        return self.target.objective(r.loss - spread, r.noise - noise)

    def in_use(self) -> list[Posterior]:
        """The columns of the master's mixture."""
        return [self.master.columns[j] for j in np.flatnonzero(self.weights > 0.0)]

    def useful(self) -> list[Posterior]:
        """The columns in use that the engine did not have before."""
        new = range(len(self.engine.pool), len(self.master.columns))
        return [self.master.columns[j] for j in new if j < self.weights.size and self.weights[j] > 0.0]

    def outcome(self, status: Status) -> Outcome:
        used = np.flatnonzero(self.weights > 0.0)
        if used.size:
            p = self.reduction.expand([self.master.columns[j] for j in used], self.weights[used])
            p = kept_to(self.target, self.problem, p, self.engine.fullest)
        else:  # interrupted before the first master was solved
            whole = None if self.target.kind == "max_leakage" else self.engine.fullest
            p = np.ones((self.problem.n_x, 1)) if whole is None else whole
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
