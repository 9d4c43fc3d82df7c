"""The certified trade-off: releases at levels that were fixed beforehand, and mixtures of two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..combining import time_share
from ..errors import InfeasibleError
from ..frames import make_frame
from ..measured import Measured
from ..mechanism import TableMechanism
from .problem import CellProblem

#: Levels of the trade-off, as shares of what the cells tell; bits grow like squares of differences.
BIT_LEVELS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
OTHER_LEVELS = (1 / 12, 1 / 6, 1 / 4, 1 / 3, 1 / 2, 3 / 4)


@dataclass(frozen=True, eq=False)
class CertifiedPoint:
    """A release and what it tells at most.

    Attributes
    ----------
    mechanism : TableMechanism
        On cells.
    utility : float
        On the records that solve, as a share of what the cells keep.
    bound : Measured
        For every adversary; the bounds of all points hold together.
    guess : dict of float
        How often anybody can be right about each attribute.
    """

    mechanism: TableMechanism
    utility: float
    bound: Measured
    guess: dict[str, float]


@dataclass(frozen=True, eq=False)
class CertifiedFrontier:
    """Releases from careful to daring whose bounds hold together, so that one may be chosen after looking.

    A mixture of two releases, drawn afresh for each person, tells at most the average of what they tell.
    """

    points: tuple[CertifiedPoint, ...]

    @classmethod
    def of(cls, problem: CellProblem) -> CertifiedFrontier:
        """The trade-off of cells. Its levels depend on the records that solve, not on those that certify."""
        whole = problem.measures.utility_of(problem.joint.p_x, np.eye(problem.joint.n_x))
        most = problem.measures.leakage_of(problem.joint.p_xy, np.eye(problem.joint.n_x))
        least = problem.least()
        shares = BIT_LEVELS if problem.leakage == "information" else OTHER_LEVELS
        channels = [TableMechanism.constant(problem.joint)]
        if most > least:
            channels += [problem.solve(least + share * (most - least)).mechanism for share in shares]
        channels.append(TableMechanism.identity(problem.joint))
        n_tests = len(channels)
        certifier = problem.certifier(n_tests)
        points = []
        for one in channels:
            table = one.p_z_given_x
            bound = certifier.bound(table)
            utility = problem.measures.utility_of(problem.joint.p_x, table) / whole if whole > 0 else 0.0
            points.append(CertifiedPoint(one, utility, bound, problem.guess_bounds(table, n_tests)))
        return cls(tuple(points))

    @property
    def knee(self) -> CertifiedPoint:
        """The point at which more usefulness begins to cost more than it did on average."""
        most = max(point.utility for point in self.points) or 1.0
        low, high = self.points[0].bound.value, max(point.bound.value for point in self.points)
        room = (high - low) or 1.0

        def gain(point: CertifiedPoint) -> float:
            return point.utility / most - (point.bound.value - low) / room

        return max(self.points, key=gain)

    def most_useful(self, limit: float) -> CertifiedPoint:
        """The most useful release, or mixture of two, whose bound is at most `limit`."""
        if self.points[0].bound.value > limit:
            raise InfeasibleError(
                f"The least that the trade-off certifies is {self.points[0].bound.value:.4g}; allow more.",
                names=("max_leakage",),
            )
        return max(self._mixtures(lambda a, b: _share(a.bound.value, b.bound.value, limit)), key=_utility)

    def least_telling(self, utility: float) -> CertifiedPoint:
        """The release, or mixture of two, with the least bound among those of at least this utility."""
        found = self._mixtures(lambda a, b: _share(-a.utility, -b.utility, -utility))
        return min(found, key=lambda point: point.bound.value)

    def _mixtures(self, share: Any) -> list[CertifiedPoint]:
        """Points and mixtures of two that keep what `share` says; the weight of the second, or None."""
        found = []
        for i, a in enumerate(self.points):
            if share(a, a) is not None:
                found.append(a)
            for b in self.points[i + 1 :]:
                weight = share(a, b)
                if weight is not None and 0 < weight < 1:
                    found.append(mixture(a, b, weight))
        return found

    def to_frame(self) -> Any:
        """A row a point: its bound and what it keeps."""
        columns: dict[str, Sequence[Any]] = {
            "at most": [point.bound.value for point in self.points],
            "kept": [point.utility for point in self.points],
            "symbols": [point.mechanism.n_z for point in self.points],
        }
        for name in self.points[0].guess:
            columns[f"{name} guessed at most"] = [point.guess[name] for point in self.points]
        return make_frame(columns)


def mixture(a: CertifiedPoint, b: CertifiedPoint, weight: float) -> CertifiedPoint:
    """The release that takes the second with this probability, afresh for each person."""

    def between(x: float, y: float) -> float:
        return (1 - weight) * x + weight * y

    value = between(a.bound.value, b.bound.value)
    interval = a.bound.interval and replace(a.bound.interval, high=value)
    return CertifiedPoint(
        time_share([a.mechanism, b.mechanism], [1 - weight, weight]),
        between(a.utility, b.utility),
        replace(a.bound, value=value, interval=interval),
        {name: between(a.guess[name], b.guess[name]) for name in a.guess},
    )


def _share(first: float, second: float, limit: float) -> float | None:
    """The weight of the second that brings the average to the limit; 0 or 1 where one of them is below it."""
    if first == second:
        return 0.0 if first <= limit else None
    if first <= limit and second <= limit:
        return 0.0
    if min(first, second) > limit:
        return None
    return (limit - first) / (second - first)


def _utility(point: CertifiedPoint) -> float:
    return point.utility
