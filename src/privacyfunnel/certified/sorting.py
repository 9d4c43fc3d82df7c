"""Records sorted into cells: counted piece by piece, and merged into fewer cells where many tell too much."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray, IntArray
from ..errors import InfeasibleError
from ..solution import Solution
from .cells import Cells
from .held_out import HeldOut, coarse, counted, group_means, spread_of, weighted_auc
from .making import Made, Plan, held_out_of, shrunk
from .material import Material
from .problem import SHARES

#: Records that whole records are scored on, at most.
MOST_SCORED = 1 << 19
#: How many cells go together where their own release cannot be certified.
MERGED = 4


class Counting:
    """Records that solve by cell: of private classes, and of the task where there is one."""

    def __init__(self, plan: Plan, cells: Cells, sample: Material, at: IntArray) -> None:
        self._plan, self._cells = plan, cells
        self.counts = np.zeros((cells.n_cells, plan.private.n_classes))
        self.tasks = None if plan.task is None else np.zeros((cells.n_cells, plan.n_tasks))
        self._count(sample, at)

    def add(self, part: Material) -> None:
        self._count(part, self._cells(part.points))

    def _count(self, part: Material, at: IntArray) -> None:
        self.counts += counted(at, part.y, *self.counts.shape)
        if self.tasks is not None and part.t is not None:
            self.tasks += counted(at, part.t, *self.tasks.shape)


class Certifying:
    """The sums of the records that certify, piece by piece; and how well whole records tell the task."""

    def __init__(self, plan: Plan, cells: Cells, sample: FloatArray) -> None:
        self._plan, self._cells, self._centre = plan, cells, sample.mean(axis=0)
        self.sums: HeldOut | None = None
        self._shares: list[FloatArray] = []
        self._tasks: list[IntArray] = []

    def add(self, part: Material) -> None:
        found = held_out_of(self._plan, self._cells, part, self._centre)
        self.sums = found if self.sums is None else self.sums + found
        predictor = self._cells.space.predictor
        if predictor is not None and part.t is not None and sum(map(len, self._tasks)) < MOST_SCORED:
            self._shares.append(predictor(part.points))
            self._tasks.append(part.t)

    def score(self) -> float | None:
        """By the model that the cells know, where there is one."""
        if not self._shares:
            return None
        predicted, t = np.concatenate(self._shares), np.concatenate(self._tasks)
        if self._plan.n_tasks > 2:
            return float((predicted.argmax(axis=1) == t).mean())
        return weighted_auc(predicted[:, 1], np.eye(2)[t])


@dataclass(frozen=True, eq=False)
class Sorted:
    """All records by cell.

    Attributes
    ----------
    cells : Cells
    at : (n,) array
        The cell of each record that the cells were made from.
    counts, tasks : (n_cells, n_y) and (n_cells, n_t) arrays
        Of the records that solve; no tasks where there is none.
    sums : HeldOut
        Of the records that certify.
    """

    cells: Cells
    at: IntArray
    counts: FloatArray
    tasks: FloatArray | None
    sums: HeldOut

    @property
    def sizes(self) -> IntArray:
        return np.bincount(self.at, minlength=self.cells.n_cells)

    def made(self, plan: Plan, points: FloatArray) -> Made:
        """The problem on the cells; `points` are those of the records that the cells were made from."""
        means = coarse(group_means(points, self.at, self.cells.n_cells), self.sizes, spread_of(points))
        return Made.of_counts(plan, self.counts, self.tasks, means, self.sums.counts)

    def merged(self, made: Made) -> Sorted | None:
        """The same with cells that lie together merged, four and four; None where there are too few."""
        n = self.cells.n_cells // MERGED
        if n < 2:
            return None
        from sklearn.cluster import KMeans

        places = made.means
        if self.tasks is not None:
            places = np.hstack([places, self.cells.space.weight * shrunk(self.tasks)])
        found = KMeans(n, n_init=1, random_state=0).fit(places, sample_weight=np.maximum(self.sizes, 1))
        group = np.unique(found.labels_, return_inverse=True)[1].astype(np.intp)

        def added(table: FloatArray) -> FloatArray:
            result = np.zeros((int(group.max()) + 1, table.shape[1]))
            np.add.at(result, group, table)
            return result

        sums = replace(
            self.sums,
            counts=added(self.sums.counts),
            sums=added(self.sums.sums),
            tasks=None if self.sums.tasks is None else added(self.sums.tasks),
        )
        return Sorted(
            replace(self.cells, number=group[self.cells.number]),
            group[self.at],
            added(self.counts),
            None if self.tasks is None else added(self.tasks),
            sums,
        )

    def kept(self, plan: Plan, points: FloatArray) -> tuple[Sorted, Made, Solution]:
        """The most daring release that keeps the limits, and the cells it is on.

        Where the number of cells is ours to choose, fewer are there to fall back on: the most careful release
        on merged cells is certified first, and the sequence goes on with the cells themselves only if it
        passes. So it is one sequence fixed beforehand, and costs no level.
        """
        assert plan.limits is not None
        made = self.made(plan, points)
        fewer = self.merged(made) if plan.n_cells is None else None
        if fewer is None:
            return self, made, made.problem.keep(plan.limits)
        careful = fewer.made(plan, points)
        first = careful.problem.keep(plan.limits, SHARES[:1])
        try:
            return self, made, made.problem.keep(plan.limits)
        except InfeasibleError:
            return fewer, careful, first
