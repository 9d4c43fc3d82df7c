"""Published numbers are rounded: from shares to the last digit people can be counted, and looked for.

Somebody who knows all private values but one, and how many people are in each class, knows the last one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .findings import ENTROPY, Finding

FloatArray = NDArray[np.float64]
To = Literal["nearest", "below", "above"]

#: Fewer records than this are no group: nothing is published about them by themselves.
LEAST_RECORDS = 10
#: Records that a step of the size of a class is worth.
UNCOUNTED = 5
#: The step of other shares and bits, unless there are so many records that a smaller one hides five.
FINE = 0.001
#: What follows from the sizes of classes and so would tell them; an advantage is a success less a chance.
TELLS_SIZES = ("chance", "min-entropy leakage")
#: What counts the records of rare classes.
COUNTS_RARE = ("unmeasured success", "unmeasured leakage")


def step_for(n: int, records: float, finest: float = 1e-6) -> float:
    """1, 2 or 5 times a power of ten that is worth so many of n records or more; at most 0.2."""
    least = max(finest, records / max(n, 1))
    power = 10.0 ** math.floor(math.log10(least) + 1e-9)
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    return min(step, 0.2)


def size_step(n: int) -> float:
    """The step of what tells the sizes of classes among n records.

    Never above 0.05: of fewer than a hundred records nothing could be said, and their report says itself
    that it is as private as they are.
    """
    return min(step_for(n, UNCOUNTED), 0.05)


def in_steps(values: ArrayLike, step: ArrayLike, to: To = "nearest") -> FloatArray:
    """The values as multiples of the step; rounding errors of a multiple itself do not move it."""
    count = np.asarray(values, dtype=np.float64) / np.asarray(step)
    moved = {
        "nearest": np.floor(count + 0.5 + 1e-6),
        "below": np.floor(count + 1e-6),
        "above": np.ceil(count - 1e-6),
    }[to]
    result: FloatArray = np.round(moved * np.asarray(step), 9) + 0.0
    return result


def published(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings as they may be published; bounds and ends of intervals move to the careful side.

    What is not of records has no people in it and stays as it is.
    """
    shown = [one if one.n_samples is None else _rounded(one, one.n_samples) for one in findings]
    chance = {one.attribute: one for one in shown if one.quantity == "chance"}
    success = {(one.attribute, one.on, one.source): one for one in shown if one.quantity == "success"}
    return tuple(
        _difference(one, success.get((one.attribute, one.on, one.source)), chance.get(one.attribute))
        if one.quantity == "advantage" and one.n_samples is not None
        else one
        for one in shown
    )


def _rounded(finding: Finding, n: int) -> Finding:
    if finding.quantity in TELLS_SIZES or finding.source == ENTROPY:
        return _blurred(finding, size_step(n))
    if finding.quantity in COUNTS_RARE:
        step = size_step(n)
    elif finding.unit in ("share", "bits"):
        step = min(size_step(n), FINE)
    else:  # in the data's own unit: four digits
        largest = abs(finding.value)
        step = 10.0 ** (math.floor(math.log10(largest)) - 3) if 0 < largest < math.inf else 1e-9
    to: dict[str, To] = {"lower bound": "below", "upper bound": "above"}
    value = _moved(finding.value, step, to.get(finding.kind, "nearest"))
    if finding.interval is None:
        return replace(finding, value=value)
    low, high = finding.interval
    ends = _moved(low, step, "below"), _moved(high, step, "above")
    return replace(finding, value=value, interval=ends)


def _blurred(finding: Finding, step: float) -> Finding:
    """What tells the sizes of classes: ends rounded by themselves would tell more than the value."""
    low, high = finding.interval or (finding.value, finding.value)
    # Bits of k classes are at most log2 k, and k is whole.
    most = 1.0 if finding.unit == "share" else math.log2(max(math.ceil(2**high - 1e-9), 1))
    value = min(_moved(finding.value, step, "above" if finding.kind == "upper bound" else "nearest"), most)
    if finding.interval is None:
        return replace(finding, value=value)
    # With what the rounding of the value took, in wide steps.
    half = _moved(max(finding.value - low, high - finding.value) + step, 2 * step, "above")
    low, high = max(value - half, 0.0), min(value + half, most)
    return replace(finding, value=value, interval=(min(round(low, 9), value), max(round(high, 9), value)))


def _difference(finding: Finding, success: Finding | None, chance: Finding | None) -> Finding:
    """An advantage as the difference of the two numbers beside it, so that it tells no more than they do."""
    if success is None or chance is None:
        return _rounded(finding, finding.n_samples or 0)
    value = round(success.value - chance.value, 9)
    if finding.interval is None:
        return replace(finding, value=value)
    ends = [one.interval or (one.value, one.value) for one in (success, chance)]
    low, high = round(ends[0][0] - ends[1][1], 9), round(ends[0][1] - ends[1][0], 9)
    return replace(finding, value=value, interval=(min(low, value), max(high, value)))


def _moved(value: float, step: float, to: To) -> float:
    return float(in_steps(value, step, to)) if math.isfinite(value) else value
