"""The frontier of a local method, and its best release under a constraint, by search over β.

A point that minimises L = leakage − β utility lies on the lower convex hull of all points, and touches it
with slope β. So after a first round of β, the slopes of the hull's own segments are the β worth trying: each
either finds a point below its segment or leaves it. Between two corners, time sharing is optimal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pkgutil import resolve_name

import numpy as np

from ..arrays import FloatArray
from ..information import utility_and_leakage
from ..joint import Joint
from ..progress import Report
from ..solution import Status, Target
from ..tradeoff import Frontier, TradeoffPoint
from .batch import Run, Task, random_starts, run_tasks
from .methods import METHODS, Method
from .problem import Problem

# Slopes that differ by less than this share of themselves find the same points.
SAME_SLOPE = 1e-3
# Segments of the hull shorter than this share of H(X) are not looked into.
NARROW = 0.005
# A round that lowers the leakage asked for by less than this (bits) ends the search.
PROGRESS = 1e-7
MAX_ROUNDS = 12


@dataclass(frozen=True)
class Options:
    """How a local method is run; tol in nats."""

    method: str
    n_z: tuple[int, ...]
    n_starts: int
    parameters: tuple[float, ...]
    tol: float
    max_steps: int
    n_jobs: int
    seed: np.random.SeedSequence
    end: float = np.inf  # of time.perf_counter, when runs stop where they are


@dataclass
class Search:
    """All runs so far of one method on one joint, as points of a frontier."""

    problem: Problem
    options: Options
    points: list[TradeoffPoint] = field(default_factory=list)
    tried: list[float] = field(default_factory=list)
    n_steps: int = 0

    @property
    def joint(self) -> Joint:
        return self.problem.joint

    @property
    def method(self) -> Method:
        return METHODS[self.options.method]

    @cached_property
    def _trivial(self) -> Frontier:
        """Nothing and X itself, whose table of letters and letters is made once."""
        return Frontier.for_joint(self.joint)

    @property
    def frontier(self) -> Frontier:
        return replace(self._trivial, points=(*self._trivial.points, *self.points))

    def run(
        self, betas: Sequence[float], warm: Sequence[FloatArray] = (), report: Report | None = None
    ) -> list[Run]:
        """Solve for each β from the random starts and the `warm` channels, and keep the points."""
        runs = run_tasks(
            self.problem,
            self.options.method,
            self._tasks(betas, warm),
            tol=self.options.tol,
            max_steps=self.options.max_steps,
            n_jobs=self.options.n_jobs,
            end=self.options.end,
            report=report,
        )
        self.tried += betas
        self.n_steps += sum(run.n_steps for run in runs)
        self.points += self._points(runs)
        return runs

    def add_release(self, p: FloatArray) -> None:
        """A release that was found elsewhere."""
        self.points += self._points([Run(Task(np.nan), p, np.nan, Status.FINISHED, 0, np.empty(0))])

    def add_own_form(self, min_utility: float) -> None:
        """The point of the method's own form for a least utility, where it has one."""
        if not self.method.with_utility:
            return
        own = resolve_name(self.method.with_utility)
        if self.method.starts:
            o = self.options
            runs = own(self.problem, min_utility, self._starts(), o.tol, o.max_steps, o.end)
        else:
            from .deterministic import as_channel

            found = own(self.problem, min_utility)
            channel, status = as_channel(found.labels), Status.FINISHED
            runs = [Run(Task(np.nan), channel, np.nan, status, found.n_rounds, found.history)]
        if runs:
            self.n_steps += sum(run.n_steps for run in runs)
            self.points += self._points(runs)

    def _starts(self) -> list[FloatArray]:
        options, starts = self.options, []
        for n_z in options.n_z:
            starts += random_starts(options.seed, options.method, self.problem.n_x, n_z, options.n_starts)
        return starts

    def _tasks(self, betas: Sequence[float], warm: Sequence[FloatArray]) -> list[Task]:
        options = self.options
        if not self.method.starts:
            return [Task(beta) for beta in betas]
        starts = [*warm, *self._starts()]
        return [
            Task(beta, parameter, start)
            for beta in betas
            for parameter in options.parameters
            for start in starts
        ]

    def _points(self, runs: Sequence[Run]) -> list[TradeoffPoint]:
        """Every run as a point. Only those that no other run of the batch beats keep their mechanism."""
        places = np.array([utility_and_leakage(self.problem.p_xy, run.p) for run in runs])
        kept = not_dominated(places)
        return [
            TradeoffPoint(
                float(utility),
                float(leakage),
                self.options.method,
                self.problem.mechanism(run.p) if keep else None,
                self._settings(run),
                run.status,
            )
            for run, (utility, leakage), keep in zip(runs, places, kept, strict=True)
        ]

    def _settings(self, run: Run) -> dict[str, float]:
        settings: dict[str, float] = {"n_z": run.p.shape[1], "n_steps": run.n_steps}
        if not np.isnan(run.task.beta):
            settings["beta"] = run.task.beta
        if self.method.parameter is not None and not np.isnan(run.task.parameter):
            settings[self.method.parameter] = run.task.parameter
        return settings

    def trace(self, n_betas: int, report: Report | None = None) -> None:
        """Spend up to n_betas values of β on the slopes of the hull, all segments at once."""
        while (left := n_betas - len(self.tried)) > 0:
            corners = self.frontier.envelope()
            # Local solvers leave clusters of almost equal corners, whose slopes are noise.
            wide = [pair for pair in pairwise(corners) if _width(pair) >= NARROW * self.joint.entropy_x]
            wide.sort(key=_width, reverse=True)
            slopes = self._untried([_slope(*pair) for pair in wide])[:left]
            if not slopes:
                return
            self.run(slopes, self._channels(corners), report)

    def refine(self, target: Target) -> list[float]:
        """Improve the hull where it meets a constraint; what is minimised, there, after each round."""
        history = []
        corners: tuple[TradeoffPoint, ...] = ()
        for _ in range(MAX_ROUNDS):
            front = self.frontier
            at = target.value if target.kind == "min_utility" else front.utility_at(target.value)
            history.append(target.objective(at, front.leakage_at(at)))
            settled = len(history) > 1 and history[-2] - history[-1] < PROGRESS
            before, corners = corners, corners_around(front, at)
            slopes = self._untried([_slope(*pair) for pair in pairwise(corners)])
            if not slopes or (settled and before == corners) or time.perf_counter() > self.options.end:
                break
            self.run(slopes, self._channels(corners))
        return history

    def _untried(self, slopes: Sequence[float]) -> list[float]:
        new: list[float] = []
        for slope in slopes:
            seen = np.array(self.tried + new)
            if slope > 0 and not np.any(np.abs(seen - slope) <= SAME_SLOPE * slope):
                new.append(slope)
        return new

    def _channels(self, corners: Sequence[TradeoffPoint]) -> list[FloatArray]:
        """The corners' channels on the letters that occur, as starts."""
        return [
            np.ascontiguousarray(point.mechanism.p_z_given_x[self.problem.rows])
            for point in corners
            if point.mechanism is not None
        ]


def not_dominated(places: FloatArray) -> np.ndarray:
    """Which points (utility, leakage) no other one beats in utility without leaking more."""
    order = np.lexsort((places[:, 1], -places[:, 0]))
    leakage = places[order, 1]
    least_before = np.minimum.accumulate(np.append(np.inf, leakage[:-1]))
    mask = np.zeros(len(places), dtype=bool)
    mask[order] = leakage < least_before
    return mask


def corners_around(front: Frontier, utility: float) -> tuple[TradeoffPoint, ...]:
    """The two corners of the hull on either side of a utility; one where the hull is a single point."""
    corners = front.envelope()
    right = next((i for i, point in enumerate(corners) if i and point.utility >= utility), len(corners) - 1)
    return corners[max(right - 1, 0) : right + 1]


def _width(pair: tuple[TradeoffPoint, TradeoffPoint]) -> float:
    return pair[1].utility - pair[0].utility


def _slope(left: TradeoffPoint, right: TradeoffPoint) -> float:
    return (right.leakage - left.leakage) / (right.utility - left.utility)
