"""How a rule is made: records are split, cells chosen, counts taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray
from ..attributes import Attribute
from ..channels import posterior
from ..errors import InfeasibleError
from ..measures import Distance, Task
from .cells import LEAST_IN_CELL, Cells, Space, make_cells, make_space
from .held_out import HeldOut, counted, group_means
from .material import Material
from .problem import FEW_SHARES, CellProblem, Limits, cell_joint, rough_bits
from .reading import SOLVING_SHARE, Private

#: Cells, at most, and as many as a bit of the budget and a record to certify pay for.
MOST_CELLS, CELLS_PER_RECORD_BIT = 512, 0.2
#: Multiples of that number that are compared: more cells where they keep so much more, fewer where the limit
#: could not be certified otherwise.
MULTIPLES, MARGIN = (1.0, 2.0, 0.5), 0.005
#: Bits that cells are made for where no limit is set.
USUAL_BITS = 0.05


@dataclass(frozen=True, eq=False)
class Plan:
    """What is asked for, checked."""

    how: Any  # cells
    n_cells: int | None
    utility: str
    leakage: str
    limits: Limits | None
    confidence: float
    private: Private
    task: Attribute | None
    shape: tuple[int, ...] = ()  # of a record, for encoders of images

    @property
    def n_tasks(self) -> int:
        return 0 if self.task is None else self.task.n_classes

    def numbers_of_cells(self, n_certify: int, n_solve: int, p_y: FloatArray) -> list[int]:
        """How many cells to try."""
        if self.n_cells is not None:
            return [self.n_cells]
        bits = USUAL_BITS
        if self.limits is not None:
            given = self.limits if isinstance(self.limits, float) else min(self.limits.values())
            bits = rough_bits(self.leakage, given, p_y)
        rule = CELLS_PER_RECORD_BIT * n_certify * bits / (len(p_y) - 1)
        most = min(MOST_CELLS, max(2, n_solve // (2 * LEAST_IN_CELL)))
        return list(dict.fromkeys(int(min(max(round(m * rule), 2), most)) for m in MULTIPLES))


def choose_cells(
    plan: Plan, material: Material, n_certify: int, rng: np.random.Generator
) -> tuple[Cells, IntArray]:
    """Cells of these records, and the cell of each: the number that promises most, judged on them alone."""
    p_y = np.bincount(material.y, minlength=plan.private.n_classes) / len(material.y)
    numbers = plan.numbers_of_cells(n_certify, len(material.y), p_y)
    best = numbers[0] if len(numbers) == 1 else _best_number(plan, material, n_certify, numbers, rng)
    task = None if material.t is None else (material.t, plan.n_tasks)
    return make_cells(
        plan.how, material.points, best, private=material.y, task=task, rng=rng, shape=plan.shape
    )


def _best_number(
    plan: Plan, material: Material, n_certify: int, numbers: Sequence[int], rng: np.random.Generator
) -> int:
    """The number of cells whose rule keeps most of a third of these records, when made from the others.

    A rehearsal of the whole fit inside the records that solve: those that certify have no part in it.
    """
    order = rng.permutation(len(material.y))
    cut = math.ceil(SOLVING_SHARE * len(order))
    first, second = material.taken(order[:cut]), material.taken(order[cut:])
    task = None if first.t is None else (first.t, plan.n_tasks)
    base: tuple[Space, FloatArray | None] | None = None
    if plan.how == "kmeans":
        base = make_space(plan.how, first.points, private=first.y, task=task, rng=rng)
    kept = []
    for number in numbers:
        cells, at = make_cells(
            plan.how, first.points, number, private=first.y, task=task, rng=rng, base=base, shape=plan.shape
        )
        other = held_out_of(plan, cells, second, first.points.mean(axis=0))
        made = Made.of(plan, cells, at, first, other.counts * (n_certify / len(second.y)))
        try:
            channel = made.rehearsed(plan.limits)
        except InfeasibleError:
            kept.append(-math.inf)
            continue
        kept.append(made.score(plan.utility, channel, other))
    if kept[0] == -math.inf:
        best = max(kept)
        return min(numbers) if best == -math.inf else numbers[kept.index(best)]
    more = [i for i in range(len(numbers)) if numbers[i] > numbers[0] and kept[i] > kept[0] + MARGIN]
    return numbers[max(more, key=lambda i: kept[i])] if more else numbers[0]


def held_out_of(plan: Plan, cells: Cells, material: Material, centre: FloatArray) -> HeldOut:
    """The sums of records that had no part in the cells."""
    return HeldOut.of(
        material.points,
        cells(material.points),
        material.y,
        material.t,
        centre=centre,
        n_cells=cells.n_cells,
        n_classes=plan.private.n_classes,
        n_tasks=plan.n_tasks,
    )


@dataclass(frozen=True, eq=False)
class Made:
    """Cells as the solver sees them.

    Attributes
    ----------
    problem : CellProblem
    means : (n_cells, d) array
        Mean points.
    tasks : (n_cells, n_t) array, optional
        Records by cell and task.
    """

    problem: CellProblem
    means: FloatArray
    tasks: FloatArray | None

    @classmethod
    def of(cls, plan: Plan, cells: Cells, at: IntArray, first: Material, held_out: FloatArray) -> Made:
        """The problem on the cells of these records; `held_out` are counts of others."""
        n = cells.n_cells
        counts = counted(at, first.y, n, plan.private.n_classes)
        tasks = None if first.t is None else counted(at, first.t, n, plan.n_tasks)
        return cls.of_counts(plan, counts, tasks, group_means(first.points, at, n), held_out)

    @classmethod
    def of_counts(
        cls, plan: Plan, counts: FloatArray, tasks: FloatArray | None, means: FloatArray, held_out: FloatArray
    ) -> Made:
        """The same from counts of private classes and of the task."""
        joint = cell_joint(counts, plan.private.labels, plan.private.names)
        utility: str | Distance | Task = "information"
        if plan.utility == "distance":
            utility = Distance(means, kind="points")
        elif plan.utility == "task":
            assert tasks is not None
            utility = Task(shrunk(tasks))
        return cls(CellProblem(joint, utility, plan.leakage, held_out, plan.confidence), means, tasks)

    def rehearsed(self, limits: Limits | None) -> FloatArray:
        """The channel that a fit would take; where there is no limit, that of the knee."""
        if limits is None:
            from .choice import CertifiedFrontier

            return CertifiedFrontier.of(self.problem).knee.mechanism.p_z_given_x
        return self.problem.keep(limits, FEW_SHARES).mechanism.p_z_given_x

    def symbol_points(self, channel: FloatArray) -> FloatArray:
        """(n_z, d): the mean point of each symbol."""
        points: FloatArray = posterior(self.problem.joint.p_x, channel) @ self.means
        return points

    def symbol_tasks(self, channel: FloatArray) -> FloatArray:
        """(n_z, n_t): P(task | symbol)."""
        assert self.tasks is not None
        shares: FloatArray = posterior(self.problem.joint.p_x, channel) @ shrunk(self.tasks)
        return shares

    def score(self, utility: str, channel: FloatArray, other: HeldOut) -> float:
        """What a rule keeps of other records; more is better."""
        if utility == "task":
            return other.task_score(channel, self.symbol_tasks(channel))
        return other.variance_kept(channel, self.symbol_points(channel))


def shrunk(counts: FloatArray) -> FloatArray:
    """Shares by row, with one more record a row that has the overall shares."""
    table = counts + counts.sum(axis=0) / counts.sum()
    shares: FloatArray = table / table.sum(axis=1, keepdims=True)
    return shares
