"""Bounds from a coarser private attribute, for a proof that does not end.

I(Z;Y) ≥ I(Z;f(Y)) for every function f (data processing). So a line below all releases for the merged values
f(Y) is one for Y, and with fewer values a proof is quicker. Which values stay apart is found step by step:
first one value against all others, then a second one beside the best of these, and so on while time is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...joint import Joint
from ...solution import Target
from ..problem import Problem
from .engine import Limits
from .master import Line

MOST_APART = 12  # values that are tried, the most frequent ones
SHARE_OF_GAP = 0.02  # that is proved for a coarser attribute, where the tolerance is less
SHARE_OF_TIME = 0.5  # of what is left, for each of them


@dataclass(frozen=True, eq=False)
class Coarser:
    """A line that was proved for merged private values."""

    problem: Problem
    groups: NDArray[np.intp]  # (n_y,) which value of the merged attribute each value became
    line: Line
    labels: tuple[object, ...]  # of the private values

    def said(self) -> str:
        """Where the bound comes from, for notes."""
        joint, names = self.problem.joint, []
        for group in range(joint.n_y - 1):
            names.append(str(self.labels[int(np.flatnonzero(self.groups == group)[0])]))
        return (
            f"The bound was proved for merged private values: {', '.join(names)}, and all others as one. "
            "What a release tells of these is never more than what it tells of all."
        )


def merged(problem: Problem, apart: list[int]) -> tuple[Problem, NDArray[np.intp]]:
    """The problem with all private values but these as one, and what became of each value."""
    table = problem.joint.p_xy
    groups = np.full(table.shape[1], len(apart), dtype=np.intp)
    groups[apart] = np.arange(len(apart))
    columns = [table[:, groups == group].sum(axis=1) for group in range(len(apart) + 1)]
    return replace(problem, joint=Joint(np.stack(columns, axis=1))), groups


def best_coarser(
    problem: Problem,
    target: Target,
    objective: float,
    bound: float,
    limits: Limits,
    prove: Callable[[Problem, Limits], Line],
) -> Coarser | None:
    """The best line from merged values that is above `bound`, within the limits; None if there is none."""
    joint = problem.joint
    end = time.perf_counter() + limits.seconds
    likely = [int(y) for y in np.argsort(-joint.p_y, kind="stable")[:MOST_APART] if joint.p_y[y] > 0.0]
    best: Coarser | None = None
    apart: list[int] = []
    alone: dict[int, float] = {}  # what each value against all others proved
    while len(apart) + 2 < joint.n_y:
        step: tuple[float, int] | None = None
        for y in likely:
            left = end - time.perf_counter()
            if y in apart or left <= 0.0:
                continue
            coarse, groups = merged(problem, [*apart, y])
            if target.kind == "max_leakage" and target.value >= coarse.evaluate(np.eye(problem.n_x))[1]:
                continue  # the limit says nothing there
            tol = max(limits.tol, SHARE_OF_GAP * (objective - bound))
            line = prove(coarse, replace(limits, tol=tol, seconds=SHARE_OF_TIME * left))
            proved = line.bound(target)
            alone.setdefault(y, proved)
            if step is None or proved > step[0]:
                step = proved, y
            if proved > bound:
                best, bound = Coarser(coarse, groups, line, joint.y_labels), proved
        if step is None:
            break
        apart.append(step[1])
        likely.sort(key=lambda y: -alone.get(y, -np.inf))
    return best
