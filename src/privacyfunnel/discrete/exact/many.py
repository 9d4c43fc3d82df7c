"""A binary private attribute and very many letters: solve for clusters, deal out, prove for all.

Letters are sorted by t = P(y₁|x) and put into clusters of neighbours, whose funnel the engine solves. Its
mixture is dealt out to the letters (dealing.py), and its prices are those of a function of t that is taken at
every letter and then proved over all pairs (blocks.py). What either costs is of second order in the width of
the clusters, so each level has twice as many, starts from the prices and posteriors of the one before, and
the last has one a class: then this is column generation with a good start.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...arrays import FloatArray, IntArray
from ...joint import Joint
from ...solution import Status, Target
from ...sparse import Channel, SparseChannel, with_other_rows
from ..problem import Problem
from .blocks import build_blocks, lifted_prices, raise_prices
from .dealing import Mixture, deal, in_pairs
from .engine import Engine, Limits, Outcome, Watcher, line_without_search
from .master import Duals, Line
from .pairs import ENDS
from .reduction import Posterior, Reduction, entropy_nats, reduce
from .release import kept_to, objective_of

FEWEST, MOST = 100, 3200  # clusters of the first level, and beyond which tables of them are too large
NEARLY = 0.8  # of the classes: more clusters than that are not worth a level of their own
MOST_SOLVED = 2000  # classes that are solved without clusters, if it comes to that
# Of the tolerance: for the programme of a level. That of a coarse one, times the square of its clusters: what
# they cost themselves is ten times as much. Of the programme's: the threshold that is proved for all pairs.
LEVEL_SHARE, COARSE, THRESHOLD_SHARE = 0.1, 1e-2, 0.5
LEAST_THRESHOLD = 1e-11  # nats
NODES = 20_000  # pairs of blocks between two looks at the clock
MOST_NODES, LADDER = 2_000_000, 8.0  # for one threshold, and the factor to the next
DEPTH = 4096  # pairs of blocks that are open at a time, at most
AT_LEAST = 5.0  # seconds that a proof may take beyond the limit
# Letters at which prices are found, in between by interpolation: every one at the ends of t.
KNOTS, ENDMOST = 2_000, 100
TRIES = 4  # to keep a limit on leakage, each allowing what the last one leaked beyond it
SPARE = 1.05


@dataclass(frozen=True, eq=False)
class Dealt(Outcome):
    """An outcome for clusters of letters, dealt out to the letters."""

    n_clusters: int = 0
    n_letters: int = 0

    @property
    def note(self) -> str:
        return (
            f"Solved for {self.n_clusters:,} groups of letters of nearly the same P(Y|x) and dealt out to "
            f"{self.n_letters:,} letters, for all of which the bound is proved."
        )


class ManyEngine:
    """Solves the funnel of many letters and a binary Y for any number of targets, with the face of `Engine`.

    Between targets nothing is kept: a level is quick to solve.
    """

    def __init__(self, problem: Problem, n_workers: int, seed: np.random.SeedSequence) -> None:
        self.problem, self.n_workers, self.seed = problem, n_workers, seed
        self.reduction = reduce(problem)
        rest, t = self.reduction.channel.T
        self.t, self.rest = np.ascontiguousarray(t), np.ascontiguousarray(rest)
        self.fullest = SparseChannel.identity(problem.n_x)

    def find_fullest(self, limits: Limits) -> float:
        """X itself may be released: there is nothing to find."""
        return np.inf

    @cached_property
    def place(self) -> FloatArray:
        """Of each class in [0, 1): half by mass and half by angle, which is finer where h is steep."""
        p, angle = self.reduction.p, np.arcsin(np.sqrt(np.clip(self.t, 0.0, 1.0)))
        width = angle[-1] - angle[0]
        along = (angle - angle[0]) / width if width > 0.0 else np.zeros(p.size)
        return np.minimum(0.5 * (np.cumsum(p) - 0.5 * p) + 0.5 * along, 1.0 - 1e-12)

    def clusters(self, count: int) -> IntArray:
        """The cluster of each class; those of twice as many lie inside them."""
        if count >= self.reduction.n:
            return np.arange(self.reduction.n)
        return np.unique(np.floor(self.place * count).astype(np.intp), return_inverse=True)[1]

    def counts(self) -> list[int]:
        """How many clusters the levels have."""
        n, counts = self.reduction.n, []
        count = FEWEST
        while count <= NEARLY * n and count <= MOST:
            counts.append(count)
            count *= 2
        return [*counts, n] if n <= MOST_SOLVED or not counts else counts

    def solve(self, target: Target, limits: Limits, watch: Watcher | None = None) -> Outcome:
        """Solve one target; see `Engine.solve`."""
        run = _Run(self, target, limits, watch)
        if target.kind == "min_utility" and run.is_free():
            return run.outcome(Status.OPTIMAL)
        try:
            status = run.loop()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        return run.outcome(status)

    def deal(self, mixture: Mixture, cluster: IntArray, t: FloatArray) -> SparseChannel:
        """The channel on the problem's letters of a mixture of clusters with these t."""
        letters = self.reduction.letters
        group, p = cluster[self.reduction.class_of], self.problem.p_x[letters]
        channel = deal(mixture, group, p, t)
        order = np.argsort(letters)
        return with_other_rows(channel[order], letters[order], p[order], self.problem.n_x)

    @cached_property
    def private(self) -> SparseChannel:
        """A release that tells nothing about Y: pairs of classes, one on either side of P(y₁)."""
        classes = np.arange(self.reduction.n)
        return self.deal(in_pairs(self.reduction.p, self.t), classes, self.t)

    def lift(self, level: _Level, line: Line) -> Duals:
        """Prices of all classes from those of a level: for some by search, in between by interpolation."""
        n = self.reduction.n
        if line.beta >= 1.0:
            return Duals(self.noise, line.beta)
        first, last = np.arange(min(ENDMOST, n)), np.arange(max(n - ENDMOST, 0), n)
        at = np.unique(np.concatenate([first, np.arange(0, n, max(1, n // KNOTS)), last]))
        prices = level.lifted(line, self.t[at], self.rest[at])
        if at.size < n:
            prices = np.interp(self.t, self.t[at], prices)
        return Duals(np.maximum(prices, self.noise), line.beta)

    @cached_property
    def noise(self) -> FloatArray:
        """H(Y|class) in nats: what no price may be below."""
        rows = self.reduction.channel
        positive = np.where(rows > 0.0, rows, 1.0)
        return np.asarray(-(rows * np.log(positive)).sum(axis=1))

    def prove(self, duals: Duals, threshold: float, end: float) -> tuple[Line | None, int]:
        """The line of these prices, raised where pairs have more than the threshold, and nodes; None where
        time or nodes ran out."""
        if duals.beta >= 1.0:  # a single letter is best
            return duals.line(self.reduction, ENDS), 0
        parts, shape = build_blocks(self.t, duals.prices)
        stack, shares = np.zeros((DEPTH, 2), dtype=np.int64), np.zeros((DEPTH, 2))
        shares[0, 1] = 1.0
        raised = np.zeros(self.reduction.n)
        height, nodes = 1, 0
        while height:
            height = raise_prices(
                self.t,
                self.rest,
                duals.prices,
                duals.beta,
                threshold,
                parts,
                shape,
                stack,
                shares,
                height,
                NODES,
                raised,
            )
            nodes += NODES
            if height and (nodes > MOST_NODES or time.perf_counter() > end):
                return None, nodes
        return Duals(duals.prices + raised, duals.beta).line(self.reduction, threshold), nodes


class _Level:
    """The funnel of clusters, with what the level before found."""

    def __init__(self, many: ManyEngine, count: int) -> None:
        self.many = many
        self.cluster = many.clusters(count)
        r, k = many.reduction, int(self.cluster[-1]) + 1
        table = np.array([np.bincount(self.cluster, r.p * column, k) for column in r.channel.T]).T
        problem = Problem(Joint(table / table.sum()))
        self.engine = Engine(problem, many.n_workers, many.seed)
        self.reduced: Reduction = self.engine.reduction
        rest, t = self.reduced.channel.T
        self.t, self.rest = np.ascontiguousarray(t), np.ascontiguousarray(rest)
        # Clusters whose t are equal but for rounding are one to the engine.
        order = np.argsort(self.reduced.letters)
        at = np.searchsorted(self.reduced.letters[order], np.arange(k))
        self.cluster = self.reduced.class_of[order][np.minimum(at, order.size - 1)][self.cluster]
        self.near: Duals | None = None

    def start_from(self, before: _Level, mixture: Mixture, line: Line) -> None:
        """Take over posteriors and prices of a coarser level."""
        first = np.unique(self.cluster, return_index=True)[1]
        channel = deal(mixture, before.cluster[first], self.reduced.p, before.t)
        order = np.argsort(channel.symbols, kind="stable")
        masses = (self.reduced.p[channel.rows] * channel.probabilities)[order]
        ends = np.cumsum(np.bincount(channel.symbols, minlength=channel.n_z))
        rows = np.split(channel.rows[order], ends[:-1])
        for letters, shares in zip(rows, np.split(masses, ends[:-1]), strict=True):
            if letters.size > 1:
                self.engine.pool.append(Posterior(letters, shares / shares.sum()))
        if line.beta < 1.0:
            self.near = Duals(before.lifted(line, self.t, self.rest), line.beta)

    def lifted(self, line: Line, at: FloatArray, rest: FloatArray) -> FloatArray:
        """Prices of letters with these t, from the line of this level."""
        assert line.prices is not None
        prices = np.empty(at.size)
        lifted_prices(at, rest, self.t, self.rest, line.prices, line.beta, prices)
        return prices

    def solve(self, target: Target, limits: Limits, watch: Watcher | None) -> tuple[Outcome, Mixture]:
        outcome = self.engine.solve(self.inner(target), limits, watch, self.near)
        assert not isinstance(outcome.p, SparseChannel)
        rows = self.engine.problem.p_x[:, None] * outcome.p
        return outcome, Mixture.of(np.add.reduceat(rows[self.reduced.letters], self.reduced.starts), self.t)

    def inner(self, target: Target) -> Target:
        """The same target for clusters: members are told apart for free."""
        if target.kind != "min_utility":
            return target
        free = self.many.reduction.loss - entropy_nats(self.reduced.p)
        return replace(target, value=max(target.value - free, LEAST_THRESHOLD))


class _Run:
    """One target: levels until the gap is closed."""

    def __init__(self, many: ManyEngine, target: Target, limits: Limits, watch: Watcher | None) -> None:
        self.many, self.target, self.limits, self.watch = many, target, limits, watch
        self.end = time.perf_counter() + limits.seconds
        self.line = line_without_search(many.reduction, target)
        self.bound = self.line.bound(target)
        self.p: Channel | None = None
        self.objective = np.inf
        self.history: list[float] = []
        self.rounds = self.columns = self.nodes = self.n_clusters = 0

    def is_free(self) -> bool:
        """Whether what is asked for can be had without leakage; that release is then taken."""
        p = kept_to(self.target, self.many.problem, self.many.private, self.many.fullest)
        self.p, self.objective = p, objective_of(self.many.problem, p, self.target)
        return self.objective - self.bound <= 0.97 * self.limits.tol

    def loop(self) -> Status:
        level: _Level | None = None
        mixture: Mixture | None = None
        line: Line | None = None
        for count in self.many.counts():
            before, level = level, _Level(self.many, count)
            if before is not None and mixture is not None and line is not None:
                level.start_from(before, mixture, line)
            self.n_clusters = level.t.size
            outcome, mixture = self.solve(level, self.target)
            if outcome.line.prices is not None:
                line = outcome.line
                self.prove(level, line)
            self.release(level, mixture)
            self.history.append(self.objective)
            self.report()
            if outcome.status is Status.INTERRUPTED:
                return Status.INTERRUPTED
            if self.objective - self.bound <= 0.97 * self.limits.tol:
                return Status.OPTIMAL
            if time.perf_counter() > self.end or self.nodes >= self.limits.nodes:
                return Status.TIME_LIMIT
        return Status.NUMERICAL_LIMIT if self.n_clusters == self.many.reduction.n else Status.TOO_LARGE

    def solve(self, level: _Level, target: Target) -> tuple[Outcome, Mixture]:
        left = max(self.end - time.perf_counter(), 0.1)
        within = replace(self.limits, tol=self.tol_of(level), seconds=left)
        outcome, mixture = level.solve(target, within, None if self.watch is None else self.heartbeat)
        self.rounds += outcome.n_rounds
        self.columns += outcome.n_columns
        return outcome, mixture

    def tol_of(self, level: _Level) -> float:
        """The gap to which a level is solved."""
        whole = level.t.size == self.many.reduction.n
        return max(LEVEL_SHARE * self.limits.tol, 0.0 if whole else COARSE / level.t.size**2)

    def prove(self, level: _Level, found: Line) -> None:
        """Prove a line for all letters from that of the clusters."""
        unit = min(found.beta, 1.0) if self.target.kind == "max_leakage" else 1.0
        threshold = max(THRESHOLD_SHARE * self.tol_of(level) * unit, LEAST_THRESHOLD)
        lifted = self.many.lift(level, found)
        line, end = None, max(self.end, time.perf_counter()) + AT_LEAST
        while line is None and time.perf_counter() < end:
            # A threshold that takes too long is raised: a bound that is less sharp is better than none.
            line, nodes = self.many.prove(lifted, threshold, end)
            self.nodes += nodes
            threshold *= LADDER
        if line is not None and (bound := line.bound(self.target)) > self.bound:
            self.line, self.bound = line, bound

    def release(self, level: _Level, mixture: Mixture) -> None:
        """Deal the mixture out, and keep the release if it is the best one that keeps the constraint."""
        many, target = self.many, self.target
        p = many.deal(mixture, level.cluster, level.t)
        allowed = target.value
        for _ in range(TRIES):
            # Dealt out, pairs differ in P(Y|z), which tells a little more than the clusters did.
            excess = target.excess(*many.problem.evaluate(p))
            if target.kind != "max_leakage" or excess <= 0.0 or time.perf_counter() > self.end:
                break
            allowed -= SPARE * excess
            if allowed <= 0.0:
                break
            _, mixture = self.solve(level, replace(target, value=allowed))
            p = many.deal(mixture, level.cluster, level.t)
        kept = kept_to(target, many.problem, p, many.fullest)
        objective = objective_of(many.problem, kept, target)
        if self.p is None or objective < self.objective:
            self.p, self.objective = kept, objective

    def heartbeat(self, objective: float, bound: float, columns: int) -> None:
        """Tell the watcher what is known for the letters, while clusters are being solved."""
        if self.watch is not None and self.p is not None:
            self.watch(self.objective, self.bound, self.columns + columns)

    def report(self) -> None:
        if self.watch is not None:
            self.watch(self.objective, self.bound, self.columns)

    def outcome(self, status: Status) -> Dealt:
        p = self.p
        if p is None:  # interrupted before the first level was solved
            p = (
                np.ones((self.many.problem.n_x, 1))
                if self.target.kind == "max_leakage"
                else self.many.fullest
            )
        return Dealt(
            p,
            self.line,
            status,
            np.array(self.history),
            self.rounds,
            self.columns,
            self.nodes,
            self.n_clusters,
            int(self.many.problem.n_x),
        )
