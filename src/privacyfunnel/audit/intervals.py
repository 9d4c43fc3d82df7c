"""Confidence intervals and permutation tests of an audit."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def wilson_interval(hits: ArrayLike, n: ArrayLike, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Low and high ends for a probability of which `hits` of `n` were seen; (0, 1) where n is 0.

    Wilson's score interval keeps its confidence near 0 and 1, where mean ± spread has no width.
    """
    count = np.asarray(n, dtype=np.float64)
    share = np.asarray(hits, dtype=np.float64) / np.maximum(count, 1)
    z2 = normal_quantile(confidence) ** 2
    centre = (share + z2 / (2 * np.maximum(count, 1))) / (1 + z2 / np.maximum(count, 1))
    spread = np.sqrt(z2 * (share * (1 - share) + z2 / (4 * np.maximum(count, 1))) / np.maximum(count, 1)) / (
        1 + z2 / np.maximum(count, 1)
    )
    # At 0 and n hits the ends are exactly the value; rounding must not put them beyond it.
    low = np.where(count > 0, np.clip(centre - spread, 0.0, share), 0.0)
    high = np.where(count > 0, np.clip(centre + spread, share, 1.0), 1.0)
    return low, high


def mean_interval(terms: ArrayLike, confidence: float) -> tuple[float, float]:
    """Student's interval for the mean of independent terms; without ends for a single one."""
    values = np.asarray(terms, dtype=np.float64)
    mean, n = float(values.mean()), len(values)
    if n < 2:
        return -math.inf, math.inf
    half = student_quantile(n - 1, confidence) * float(values.std(ddof=1)) / math.sqrt(n)
    return mean - half, mean + half


def repeated_interval(table: ArrayLike, confidence: float) -> tuple[float, float]:
    """Interval for the mean of `table` (repeats, records): records and repeats are both samples.

    The errors of the records of one repeat belong together (one embedding, one clustering), so more records
    do not make the noise of repeats smaller. The square of the half-width is

        t²(n−1) s²(record means)/n + t²(R−1) s²(repeat means)/R,

    each variance with its own quantile of Student's (Banerjee 1960: never below the confidence, where
    Welch's degrees of freedom fall short for few repeats). The part that belongs to neither is counted
    twice, on the careful side. One repeat: what repeats would add is not known and left out.
    """
    values = np.atleast_2d(np.asarray(table, dtype=np.float64))
    repeats, n = values.shape
    mean = float(values.mean())
    if n < 2:
        return -math.inf, math.inf
    square = student_quantile(n - 1, confidence) ** 2 * float(values.mean(axis=0).var(ddof=1)) / n
    if repeats > 1:
        spread = float(values.mean(axis=1).var(ddof=1))
        square += student_quantile(repeats - 1, confidence) ** 2 * spread / repeats
    return mean - math.sqrt(square), mean + math.sqrt(square)


def jackknife_interval(value: float, without: ArrayLike, confidence: float) -> tuple[float, float]:
    """Interval for a statistic from its values with one group of records left out at a time."""
    parts = np.asarray(without, dtype=np.float64)
    n_groups = len(parts)
    error = math.sqrt((n_groups - 1) / n_groups * float(((parts - parts.mean()) ** 2).sum()))
    half = student_quantile(n_groups - 1, confidence) * error
    return value - half, value + half


def clipped(interval: tuple[float, float], value: float, low: float, high: float) -> tuple[float, float]:
    """The interval within what is possible at all, with the value inside."""
    return min(max(interval[0], low), value), max(min(interval[1], high), value)


def permutation_test(
    guesses: IntArray, y: IntArray, n_permutations: int, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """p-value of the success of these guesses, and the successes under random reorderings of y.

    The guesses must come from records other than those they are judged on. Reordering then leaves everything
    but the connection, and (1 + number as good)/(1 + number tried) is a valid p-value.
    """
    hits = int((guesses == y).sum())
    null = np.array([(guesses == rng.permutation(y)).sum() for _ in range(n_permutations)])
    return (1 + int((null >= hits).sum())) / (1 + n_permutations), null / max(len(y), 1)


def normal_quantile(confidence: float) -> float:
    """z with P(|N(0,1)| ≤ z) = confidence."""
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


def student_quantile(freedom: float, confidence: float) -> float:
    """t with P(|T| ≤ t) = confidence."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))
