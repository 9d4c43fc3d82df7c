"""Records that had no part in a rule: sums by cell, which certify it and measure what it keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray
from ..attributes import LEAST_RECORDS


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Sums over records by their cell; sums of parts add up, so that records may come piece by piece.

    Attributes
    ----------
    counts : (n_cells, n_y) array
        Records by cell and private class.
    sums : (n_cells, d) array
        Of their points.
    square, total : (d,) arrays
        Of their squares, and of the squares of their distances from the mean of the records that solve.
    tasks : (n_cells, n_t) array, optional
        Records by cell and task.
    """

    counts: FloatArray
    sums: FloatArray
    square: FloatArray
    total: FloatArray
    tasks: FloatArray | None = None

    @classmethod
    def of(
        cls,
        points: FloatArray,
        cells: IntArray,
        y: IntArray,
        t: IntArray | None,
        *,
        centre: FloatArray,
        n_cells: int,
        n_classes: int,
        n_tasks: int,
    ) -> HeldOut:
        """The sums of some records."""
        return cls(
            counted(cells, y, n_cells, n_classes),
            group_sums(points, cells, n_cells),
            np.square(points).sum(axis=0),
            np.square(points - centre).sum(axis=0),
            None if t is None else counted(cells, t, n_cells, n_tasks),
        )

    def __add__(self, other: HeldOut) -> HeldOut:
        tasks = None if self.tasks is None or other.tasks is None else self.tasks + other.tasks
        return HeldOut(
            self.counts + other.counts,
            self.sums + other.sums,
            self.square + other.square,
            self.total + other.total,
            tasks,
        )

    def variance_kept(self, channel: FloatArray, symbols: FloatArray) -> float:
        """The share of the variance that the point of a record's symbol explains, averaged over symbols.

        `symbols` (n_z, d) comes from the records that solve.
        """
        total = float(self.total.sum())
        return 1 - float(self._left(channel, symbols).sum()) / total if total > 0 else 1.0

    def variance_by_column(
        self, channel: FloatArray, symbols: FloatArray, names: Sequence[str]
    ) -> dict[str, float]:
        """The same by the column that each coordinate belongs to; columns without variance are left out."""
        left, kept = self._left(channel, symbols), {}
        for name in dict.fromkeys(names):
            mine = np.array([one == name for one in names])
            total = float(self.total[mine].sum())
            if total > 0:
                kept[name] = 1 - float(left[mine].sum()) / total
        return kept

    def _left(self, channel: FloatArray, symbols: FloatArray) -> FloatArray:
        """The squared distances that are left, by coordinate."""
        expected, lengths = channel @ symbols, channel @ np.square(symbols)
        sizes = self.counts.sum(axis=1)
        left: FloatArray = self.square - 2 * (self.sums * expected).sum(axis=0) + sizes @ lengths
        return left

    def task_score(self, channel: FloatArray, by_symbol: FloatArray) -> float:
        """How well a symbol tells the task: AUC for two classes, else the share guessed right.

        `by_symbol` (n_z, n_t), P(task | symbol), comes from the records that solve.
        """
        assert self.tasks is not None
        soft = channel.T @ self.tasks
        if soft.shape[1] > 2:
            guess = by_symbol.argmax(axis=1)
            return float(soft[np.arange(len(guess)), guess].sum() / soft.sum())
        return weighted_auc(by_symbol[:, 1], soft)


def counted(rows: IntArray, columns: IntArray, n_rows: int, n_columns: int) -> FloatArray:
    """How often each pair of numbers occurs."""
    flat = np.bincount(rows * n_columns + columns, minlength=n_rows * n_columns)
    return flat.reshape(n_rows, n_columns).astype(np.float64)


def group_sums(points: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
    """The sum of the points of each group."""
    from scipy.sparse import csr_array

    n = len(points)
    found: FloatArray = csr_array((np.ones(n), (groups, np.arange(n))), shape=(n_groups, n)) @ points
    return found


def group_means(points: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
    """The mean point of each group; of an empty one the mean of all."""
    sizes = np.bincount(groups, minlength=n_groups)[:, None]
    sums = group_sums(points, groups, n_groups)
    means: FloatArray = np.where(sizes > 0, sums / np.maximum(sizes, 1), points.mean(axis=0))
    return means


def spread_of(points: FloatArray) -> FloatArray:
    """How far apart two records can be in each coordinate; of a few that are far out, ten deviations."""
    return np.asarray(np.minimum(np.ptp(points, axis=0), 10 * points.std(axis=0)))


def coarse(means: FloatArray, sizes: IntArray, spread: FloatArray) -> FloatArray:
    """Means of so many records each, rounded to a power of two that two of these or more can move them by.

    An exact mean tells the last record of a cell to whoever knows the others. So does one that is rounded to
    what a single record can move it by, where that is a value or none: it is a whole number of records. And
    multiples of a step that was computed from the size tell the size.
    """
    return in_steps(means, 2 * spread / np.maximum(sizes, 1)[:, None])


def in_steps(values: FloatArray, widths: FloatArray) -> FloatArray:
    """Values rounded to the power of two at or above each width; as they are where it is 0."""
    steps = 2.0 ** np.ceil(np.log2(np.where(widths > 0, widths, 1.0)))
    return np.where(widths > 0, np.rint(values / steps) * steps, values)


def coarse_mean(values: FloatArray) -> FloatArray:
    """The average of each column, rounded to a power of two that ten records or more can move it by.

    Of zeros and ones it is a count, so that the step is that of the largest value and not of a usual one.
    """
    return in_steps(values.mean(axis=0), LEAST_RECORDS * np.ptp(values, axis=0) / len(values))


def coarse_moments(values: FloatArray) -> tuple[float, float]:
    """Average and deviation of one column, as a file may tell them: both to ten records.

    The deviation of two values is that of their rounded average: rounded by itself, it would tell their
    count more closely together with this. A column that varies keeps a deviation above 0.
    """
    low, high, variance = values.min(), values.max(), values.var()
    mean = coarse_mean(values)
    reach = np.abs(values - values.mean()).max()
    width = np.asarray(LEAST_RECORDS * np.square(reach) / len(values))
    if np.all((values == low) | (values == high)):
        variance = max((mean - low) * (high - mean), 0.0)
        width = np.asarray(LEAST_RECORDS * np.square(high - low) / len(values))
    # Of less than half a step nothing would be left: it counts as a whole one.
    told = max(float(in_steps(variance, width)), float(in_steps(width, width)))
    return float(mean), math.sqrt(told) if high > low else 0.0


def weighted_auc(scores: FloatArray, counts: FloatArray) -> float:
    """The probability that one of class 1 has the higher score than one of class 0; ties count half."""
    _, place = np.unique(scores, return_inverse=True)
    table = np.zeros((int(place.max()) + 1, 2))
    np.add.at(table, place, counts)
    total = table.sum(axis=0)
    if not total.all():
        return math.nan
    below = np.cumsum(table[:, 0]) - table[:, 0] / 2
    return float((table[:, 1] * below).sum() / (total[0] * total[1]))
