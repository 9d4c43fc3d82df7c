"""Levels of a column: the values, and the ranges of numbers, that at least ten records share.

A number that ten records have is a level by itself. The others are put into ranges of at least ten records,
whose ends are round numbers half a step beside the grid of the column, so that no end is somebody's number;
the outermost ten records on either side are clipped (of fewer than twenty, a number in the middle stands for
all). What is rarer has no level and no trace.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, IntArray
from ..attributes import LEAST_RECORDS

Grid = NDArray[np.int64]

#: The most values of a category, and of numbers by themselves; what is beyond goes to the rest, or to ranges.
MOST_VALUES = 128
#: The most ranges of numbers.
MOST_RANGES = 64
#: Whole steps that the middle 80 % of numbers without a visible grid are rounded to, at least.
STEPS = 1000

_TENS = [10.0**power for power in range(9, -10, -1)]
# In microseconds: a week has no fixed start, so days are the coarsest.
_TIMES = [86_400e6, 3_600e6, 60e6, 1e6, 1e3, 1.0]


def grid_step(values: FloatArray, *, time: bool, accuracy: float) -> float:
    """The coarsest step that all but a few numbers are multiples of; a fraction of their spread if none.

    Parameters
    ----------
    values : (n,) array
        Finite; points and lengths of time in microseconds.
    time : bool
    accuracy : float
        The relative accuracy of numbers of this type.
    """
    size = float(np.quantile(np.abs(values), 0.9))
    for step in _TIMES if time else _TENS:
        if step < 20 * accuracy * size:
            break
        if _off_grid(values[:1000], step, accuracy) and _off_grid(values, step, accuracy):
            continue
        return step
    low, high = np.quantile(values, [0.1, 0.9])
    spread = float(high - low) or size or 1.0
    step = float(10.0 ** np.floor(np.log10(spread / STEPS)))
    return max(step, 1.0) if time else step


def _off_grid(values: FloatArray, step: float, accuracy: float) -> bool:
    wrong = np.abs(values - np.rint(values / step) * step) > accuracy * np.abs(values)
    return int(np.count_nonzero(wrong)) >= min(LEAST_RECORDS, max(values.size // 2, 1))


def to_grid(values: FloatArray, step: float) -> Grid:
    """The numbers in whole steps."""
    return np.rint(np.clip(values / step, -(2.0**62), 2.0**62)).astype(np.int64)


def from_grid(numbers: NDArray[np.generic], step: float) -> FloatArray:
    """Numbers of steps, whole or half, as numbers: 1234 steps of .01 are 12.34 to the last bit."""
    whole = numbers.astype(np.float64)
    result: FloatArray = whole * step if step >= 1 else whole / float(np.rint(1 / step))
    return result


def number_levels(numbers: Grid) -> tuple[Grid, Grid]:
    """Starts and stops, without the stop, of the levels of numbers in whole steps, in rising order.

    Empty if there are fewer than ten records.
    """
    found, counts = np.unique(numbers, return_counts=True)
    common = counts >= LEAST_RECORDS
    if np.count_nonzero(common) > MOST_VALUES:
        common = counts >= max(LEAST_RECORDS, numbers.size / MOST_VALUES)
    ranges = _ranges(np.repeat(found[~common], counts[~common]))
    starts = np.concatenate([found[common], [start for start, _ in ranges]]).astype(np.int64)
    stops = np.concatenate([found[common] + 1, [stop for _, stop in ranges]]).astype(np.int64)
    order = np.argsort(starts / 2 + stops / 2, kind="stable")
    return starts[order], stops[order]


def _ranges(rest: Grid) -> list[tuple[int, int]]:
    """Ranges of at least ten records each; `rest` is sorted."""
    n = rest.size
    if n < LEAST_RECORDS:
        return []
    n_ranges = min(MOST_RANGES, max(1, n // (2 * LEAST_RECORDS)))
    cuts = [0]
    for cut in np.arange(1, n_ranges) * n // n_ranges:
        end = int(np.searchsorted(rest, rest[cut - 1], side="right"))  # equal numbers stay together
        if end - cuts[-1] >= LEAST_RECORDS and n - end >= LEAST_RECORDS:
            cuts.append(end)
    cuts.append(n)
    lows = [int(rest[cut]) for cut in cuts[:-1]]
    highs = [int(rest[cut - 1]) for cut in cuts[1:]]
    ranges = []
    for i, (low, high) in enumerate(zip(lows, highs, strict=True)):
        margin = (high - low) // 4
        before = highs[i - 1] if i else low - margin - 1
        after = lows[i + 1] if i + 1 < len(lows) else high + margin + 1
        start = roundest(max(before, low - margin - 1), low)
        ranges.append((start, roundest(high, min(after, high + margin + 1))))
    # Of the outermost records neither the smallest nor the largest number may be told.
    n_clipped = min(LEAST_RECORDS, n // 2)
    first = roundest(int(rest[n_clipped - 1]), int(rest[n_clipped]))
    last = roundest(int(rest[n - n_clipped - 1]), int(rest[n - n_clipped]))
    ranges[0] = (first, ranges[0][1])
    ranges[-1] = (ranges[-1][0], max(last, ranges[-1][0] + 1))
    return ranges


def roundest(above: int, up_to: int) -> int:
    """The number with most zeros that is larger than `above` and not larger than `up_to`."""
    for power in range(18, 0, -1):
        number: int = up_to // 10**power * 10**power
        if number > above:
            return number
    return up_to


def find_levels(numbers: Grid, starts: Grid, stops: Grid) -> IntArray:
    """The level of each number: its own, else the range that it is in or next to, else the nearest."""
    single = stops - starts == 1
    own, wide = np.flatnonzero(single), np.flatnonzero(~single)
    if wide.size:
        wide = wide[np.argsort(starts[wide], kind="stable")]
        at = np.searchsorted(starts[wide], numbers, side="right") - 1
        found = wide[np.clip(at, 0, wide.size - 1)]
    else:
        middles = starts[:-1] / 2 + starts[1:] / 2
        found = np.searchsorted(middles, numbers, side="left")
    if own.size:
        near = np.minimum(np.searchsorted(starts[own], numbers), own.size - 1)
        found = np.where(starts[own][near] == numbers, own[near], found)
    return found.astype(np.intp)
