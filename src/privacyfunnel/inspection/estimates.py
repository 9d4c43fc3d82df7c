"""What counts of values and private classes say: bits, guesses, and what to do with a column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..arrays import FloatArray, IntArray
from ..attributes import LEAST_RECORDS
from ..auditing.findings import normal_quantile, wilson_interval
from ..information import entropy
from ..measured import Estimate, Interval

#: Share of H(Y) from which on a column gives Y away, and below which it may stay.
GIVES_AWAY, HARMLESS = 0.5, 0.01
#: A value is as good as a class where records of others are so rare in it, and so much rarer than anywhere:
#: where nine of ten are of the class anyway, 99 of 100 are no news. So many of all records.
OTHERS, RARER, CERTAIN_RECORDS = 0.01, 0.02, 0.05


def told_bits(table: IntArray, confidence: float) -> Estimate:
    """I(X;Y) of counts (values, classes) in bits, corrected for its bias, with an interval.

    With d = (values − 1)(classes − 1), the plug-in is too large by d/(2 n ln 2) on average. Its variance is
    that of log p(x,y)/p(x)p(y) over n, plus that of χ² with d degrees of freedom, which is left where X and Y
    are independent. Values of fewer than ten records are one value; what they could tell besides,
    P(rare)·H(Y|rare), is added to the high end.
    """
    n = int(table.sum())
    merged, rare = _without_rare(table)
    p = merged / n
    seen = p > 0
    outer = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    ratio = np.log2(p[seen] / outer[seen])
    plug_in = float(p[seen] @ ratio)
    freedom = max((merged.shape[0] - 1) * (int((table.sum(axis=0) > 0).sum()) - 1), 0)
    value = max(0.0, plug_in - freedom / (2 * n * math.log(2)))
    variance = max(float(p[seen] @ ratio**2) - plug_in**2, 0.0) / n
    half = normal_quantile(confidence) * math.sqrt(variance + freedom / (2 * (n * math.log(2)) ** 2))
    hidden = float(rare.sum()) / n * entropy(rare / rare.sum()) if rare.sum() else 0.0
    most = entropy(p.sum(axis=0))
    value = min(value, most)
    high = min(max(value + half + hidden, value), most)
    interval = Interval(min(max(0.0, value - half), value), high, confidence, "in-sample", 0)
    return Estimate(value, "estimate", interval=interval, n_samples=n)


def guess_rate(table: IntArray, confidence: float) -> Estimate:
    """How often the class is guessed from the value, each record left out of its own count.

    Of a value that nobody else has, and where two classes are equally frequent, the class that is larger in
    all is guessed.
    """
    n = int(table.sum())
    shares = table.sum(axis=0) / n
    hits = 0
    for label in range(table.shape[1]):
        others = table.astype(np.float64)
        others[:, label] -= 1
        guess = (others + 1e-6 * shares).argmax(axis=1)
        hits += int(table[guess == label, label].sum())
    low, high = wilson_interval(hits, n, confidence)
    interval = Interval(float(low), float(high), confidence, "left-one-out", 0)
    return Estimate(hits / n, "estimate", interval=interval, n_samples=n, unit="")


def above(part: Estimate, most: float) -> Estimate:
    """What was measured of a part of the values, as a bound of what the whole ones tell."""
    return replace(part, kind="lower bound", interval=replace(part.interval, high=most))


def at_least(together: Estimate, alone: Sequence[Estimate]) -> Estimate:
    """What columns tell together, and where that is less than one of them tells alone, the latter.

    It cannot be less: pairs of values are rarer than values, and what rare ones tell is not counted.
    """
    best = max(alone, key=lambda one: one.value)
    if together.value >= best.value:
        return together
    interval = replace(best.interval, high=max(best.interval.high, together.interval.high))
    return replace(best, kind="lower bound", interval=interval)


def _without_rare(table: IntArray) -> tuple[FloatArray, FloatArray]:
    """The counts with all rare values as one, and how many records of each class those have."""
    sizes = table.sum(axis=1)
    rare = table[sizes < LEAST_RECORDS].sum(axis=0)
    common = table[sizes >= LEAST_RECORDS]
    merged = np.vstack([common, rare]) if rare.sum() else common
    return merged.astype(np.float64), rare.astype(np.float64)


def advice_for(table: IntArray, bits: Estimate, whole: float) -> tuple[str, str, float]:
    """What to do with a column, why, and the share of the records that it is certain about."""
    n, sizes = int(table.sum()), table.sum(axis=1)
    others = sizes - table.max(axis=1)
    usual = 1 - table.sum(axis=0)[table.argmax(axis=1)] / n
    sure = (sizes >= LEAST_RECORDS) & (others <= np.minimum(OTHERS, RARER * usual) * sizes)
    certain = float(sizes[sure].sum()) / n
    low, high = bits.interval
    if low >= GIVES_AWAY * whole:
        return "drop", "it gives the private value away", certain
    if certain >= CERTAIN_RECORDS and low > HARMLESS * whole:
        return "drop", f"it gives the private value of {certain:.0%} of the records away", certain
    if low > HARMLESS * whole:
        return "protect", "it tells something", certain
    if high <= HARMLESS * whole:
        return "keep", "it tells next to nothing", certain
    if low > 0:
        return "protect", "it tells a little, perhaps more", certain
    return "protect", "too few records to say that it tells nothing", certain
