"""Exact pricing on pairs of letters for a binary private attribute, any convex utility and any leakage.

With t_x = P(y₁|x), a posterior on letters i, j (t_i < t_j) with share s of j has the reduced value

    G(s) = A(t_i + sΔ) − β V(s) − (1−s) λ_i − s λ_j ,   Δ = t_j − t_i ,

where V is the concave loss whose fall is the utility, and −A the leakage. A limit on what a symbol may tell
keeps t inside an interval, and with it s. Two kinds of A:

- the entropy: on [a, b] G lies below the tangents of A at both ends plus the chord of the convex −βV. The
  interval is split where they meet, until that is no more than asked for or has been reached. For three
  utilities the sign of a quadratic N(s), of G'' times something positive, tells more: where N ≥ 0 G is
  largest at an end, and where N ≤ 0 it lies below its own tangents. With v(t) = t(1−t), N is
  βv(t) − Δ² s(1−s) for information, 2βD v(t) − Δ² for a squared distance D, and βδ² v(t) − Δ² v(a) for a task
  of two values, of which the second has the probability a(s) = a_i + sδ. N counts as not negative if (1+η)
  times its first term is not below the second: then G − ηβV is convex, and G is off by at most ηβV; the same
  for the other sign. Last, if G'' ≥ −κ on [a, b], then G is at most its chord plus ½ κ (s−a)(b−s).
- −w |t − k| with one kink: G is convex on both sides of it, so its largest value is at an end or at the kink.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...arrays import FloatArray

INFORMATION, DISTANCE, TASK, COST = 0, 1, 2, 3  # what V is
ENTROPY, KINKED = 0, 1  # what A is
MOST_PARTS = 200  # intervals of one pair
ROUND_OFF = 5e-13  # relative, of a reduced value
SHAPE = 1e-14  # η; the terms of N are known to a tenth of it


@njit(nogil=True, cache=True, inline="always")
def _entropy_term(a: float) -> float:
    return -a * np.log(a) if a > 0.0 else 0.0


@njit(nogil=True, cache=True)
def _pair_loss(kind: int, table: FloatArray, i: int, j: int, s: float) -> float:
    """V of the posterior (1−s, s) on i and j: entropy, variance, least cost, or entropy of the task."""
    r = 1.0 - s
    if kind == INFORMATION:
        return _entropy_term(s) + _entropy_term(r)
    if kind == DISTANCE:
        return s * r * table[i, j]  # type: ignore[no-any-return]
    if kind == COST:
        least = np.inf
        for k in range(table.shape[1]):
            least = min(least, r * table[i, k] + s * table[j, k])
        return least
    value = 0.0
    for k in range(table.shape[1]):
        value += _entropy_term(r * table[i, k] + s * table[j, k])
    return value


@njit(nogil=True, cache=True)
def price_shares(
    first: int,
    stride: int,
    kind: int,
    leak: int,
    t: FloatArray,
    rest: FloatArray,
    table: FloatArray,
    noise: FloatArray,
    loss: FloatArray,
    prices: FloatArray,
    beta: float,
    kink: float,
    weight: float,
    low: float,
    high: float,
    cutoff: float,
    tight: float,
    best: FloatArray,
    partner: NDArray[np.intp],
    share: FloatArray,
) -> float:
    """Price the pairs (i, j > i) for i in range(first, n, stride); an upper bound on G over them.

    `t` is sorted, `rest` is 1 − t; `noise` and `loss` are A and V of single letters; `low` and `high` are the
    limits of t. Posteriors that are single letters are left to the caller. For each letter, `best` receives
    the largest G of a pair it is in, with `partner` and the partner's `share`.
    """
    n = t.size
    bound = -np.inf
    at = np.empty((MOST_PARTS + 2, 8))
    for i in range(first, n, stride):
        if t[i] > high:
            break
        for j in range(i + 1, n):
            delta = t[j] - t[i] if t[i] < 0.5 else rest[i] - rest[j]
            if delta <= 0.0 or t[j] < low:
                continue
            begin = 0.0 if t[i] >= low else (low - t[i]) / delta
            end = 1.0 if t[j] <= high else (high - t[i]) / delta
            if begin > end:
                continue
            value, s, above = -np.inf, 0.0, -np.inf
            # Ends that are no letters, and the kink.
            for point in (begin, end, (kink - t[i]) / delta if leak == KINKED else -1.0):
                if point > 0.0 and point < 1.0 and begin <= point <= end:
                    r = 1.0 - point
                    here = r * t[i] + point * t[j]
                    if leak == KINKED:
                        tell = -weight * abs(here - kink)
                    else:
                        tell = _entropy_term(here) + _entropy_term(r * rest[i] + point * rest[j])
                    here = (
                        tell - beta * _pair_loss(kind, table, i, j, point) - r * prices[i] - point * prices[j]
                    )
                    if here > value:
                        value, s = here, point
            above = value
            if leak == ENTROPY and _shape(kind, i, j, begin, end, t, rest, table, beta, delta) <= 0:
                found, where, over = _largest(
                    kind,
                    i,
                    j,
                    begin,
                    end,
                    t,
                    rest,
                    table,
                    noise,
                    loss,
                    prices,
                    beta,
                    delta,
                    cutoff,
                    tight,
                    at,
                )
                above = max(above, over)
                if found > value:
                    value, s = found, where
            size = 1.0 + loss[i] + loss[j] + (table[i, j] if kind == DISTANCE else 0.0)
            above += ROUND_OFF * (1.0 + abs(prices[i]) + abs(prices[j]) + weight + beta * size)
            bound = max(bound, above)
            if value > best[i]:
                best[i], partner[i], share[i] = value, j, s
            if value > best[j]:
                best[j], partner[j], share[j] = value, i, 1.0 - s
    return bound


@njit(nogil=True, cache=True)
def _shape(
    kind: int,
    i: int,
    j: int,
    a: float,
    b: float,
    t: FloatArray,
    rest: FloatArray,
    table: FloatArray,
    beta: float,
    delta: float,
) -> int:
    """1 where G is convex on [a, b], −1 where it is concave, 0 where that is not known."""
    if kind == COST or (kind == TASK and table.shape[1] != 2):
        return 0
    change = beta
    if kind == DISTANCE:
        change = 2.0 * beta * table[i, j]
    elif kind == TASK:
        change = beta * (table[j, 1] - table[i, 1]) ** 2
        if change == 0.0:  # V is constant, and N = 0 would not tell where v(a) is 0 as well
            return -1
    middle = 0.5 * (a + b)
    bent, flat = np.empty(3), np.empty(3)  # the two terms of N at a, in the middle and at b
    for k, s in enumerate((a, middle, b)):
        r = 1.0 - s
        bent[k] = change * (r * t[i] + s * t[j]) * (r * rest[i] + s * rest[j])
        flat[k] = delta * delta
        if kind == INFORMATION:
            flat[k] *= s * r
        elif kind == TASK:
            flat[k] *= (r * table[i, 0] + s * table[j, 0]) * (r * table[i, 1] + s * table[j, 1])
    # A quadratic is between the least and the largest of its Bernstein coefficients.
    bent[1] = 2.0 * bent[1] - 0.5 * (bent[0] + bent[2])
    flat[1] = 2.0 * flat[1] - 0.5 * (flat[0] + flat[2])
    if np.all((1.0 + SHAPE) * bent >= flat):
        return 1
    return -1 if np.all(bent <= (1.0 + SHAPE) * flat) else 0


@njit(nogil=True, cache=True)
def _sag(
    kind: int,
    i: int,
    j: int,
    a: float,
    b: float,
    t: FloatArray,
    rest: FloatArray,
    table: FloatArray,
    beta: float,
    delta: float,
) -> float:
    """κ ≥ 0 with G'' ≥ −κ on [a, b]: −A'' = Δ²/v(t) is largest at an end, and of −V'' every term is least
    there, or for information in the middle."""
    tight = np.inf
    for s in (a, b):
        r = 1.0 - s
        tight = min(tight, (r * t[i] + s * t[j]) * (r * rest[i] + s * rest[j]))
    if tight <= 0.0:
        return np.inf
    bent = 0.0
    if kind == INFORMATION:
        middle = min(max(0.5, a), b)
        bent = 1.0 / (middle * (1.0 - middle)) if 0.0 < middle < 1.0 else 0.0
    elif kind == DISTANCE:
        bent = 2.0 * table[i, j]
    elif kind == TASK:
        for k in range(table.shape[1]):
            change = table[j, k] - table[i, k]
            if change != 0.0:
                s = b if change > 0.0 else a
                bent += change * change / ((1.0 - s) * table[i, k] + s * table[j, k])
    return max((1.0 + SHAPE) * delta * delta / tight - (1.0 - SHAPE) * beta * bent, 0.0)


@njit(nogil=True, cache=True)
def _above_chord(a: float, g_a: float, b: float, g_b: float, sag: float) -> tuple[float, float]:
    """The largest value of the chord from (a, g_a) to (b, g_b) plus ½ κ (s−a)(b−s), and where."""
    width, rise = b - a, g_b - g_a
    bow = 0.5 * sag * width * width
    if bow <= abs(rise):
        return max(g_a, g_b), 0.5 * (a + b)
    return 0.5 * (g_a + g_b) + 0.25 * bow + 0.25 * rise * rise / bow, 0.5 * (a + b) + 0.5 * rise / bow * width


@njit(nogil=True, cache=True)
def _loss_slope(kind: int, table: FloatArray, i: int, j: int, s: float) -> float:
    """V' for the utilities whose shape is known."""
    if kind == INFORMATION:
        return np.inf if s <= 0.0 else -np.inf if s >= 1.0 else np.log((1.0 - s) / s)
    if kind == DISTANCE:
        return (1.0 - 2.0 * s) * table[i, j]  # type: ignore[no-any-return]
    slope, r = 0.0, 1.0 - s
    for k in range(2):
        share, change = r * table[i, k] + s * table[j, k], table[j, k] - table[i, k]
        if change != 0.0:
            slope += np.inf * change if share <= 0.0 else -change * np.log(share)
    return slope


@njit(nogil=True, cache=True)
def _largest(
    kind: int,
    i: int,
    j: int,
    begin: float,
    end: float,
    t: FloatArray,
    rest: FloatArray,
    table: FloatArray,
    noise: FloatArray,
    loss: FloatArray,
    prices: FloatArray,
    beta: float,
    delta: float,
    cutoff: float,
    tight: float,
    at: FloatArray,
) -> tuple[float, float, float]:
    """The largest G found inside the pair, where, and a bound on all of it, with A the entropy.

    A row of `at` is an open interval: of both ends the share, G, the slope of A, and V.
    """
    value, s, above = -np.inf, 0.0, -np.inf
    slope = prices[i] - prices[j]
    for column, point in ((0, begin), (4, end)):
        r = 1.0 - point
        here, other = r * t[i] + point * t[j], r * rest[i] + point * rest[j]
        if point == 0.0:
            tell, lost = noise[i], loss[i]
        elif point == 1.0:
            tell, lost = noise[j], loss[j]
        else:
            tell = _entropy_term(here) + _entropy_term(other)
            lost = _pair_loss(kind, table, i, j, point)
        at[0, column] = point
        at[0, column + 1] = tell - beta * lost - r * prices[i] - point * prices[j]
        at[0, column + 2] = _tangent(here, other, delta)
        at[0, column + 3] = lost
    count, parts = 1, 0
    while count:
        count -= 1
        a, g_a, d_a, v_a, b, g_b, d_b, v_b = at[count]
        width = b - a
        # The part of G' that does not come from A: the chord of −βV and the prices.
        chord = slope - beta * (v_b - v_a) / width
        over, meet = _tangents(a, g_a, d_a + chord, b, g_b, d_b + chord)
        if over > cutoff and over > value + tight:
            shape = _shape(kind, i, j, a, b, t, rest, table, beta, delta)
            if shape > 0:
                above = max(above, g_a, g_b)
                continue
            if shape < 0:
                up = d_a + slope - beta * _loss_slope(kind, table, i, j, a)
                down = d_b + slope - beta * _loss_slope(kind, table, i, j, b)
                sharper, there = _tangents(a, g_a, up, b, g_b, down)
                if sharper < over:
                    over, meet = sharper, there
            sag = _sag(kind, i, j, a, b, t, rest, table, beta, delta)
            if sag < np.inf:
                sharper, there = _above_chord(a, g_a, b, g_b, sag)
                if sharper < over:
                    over, meet = sharper, there
        if over <= cutoff or over <= value + tight or width < 1e-15 or parts >= MOST_PARTS:
            above = max(above, over)
            continue
        parts += 1
        middle = min(max(meet, a + 0.1 * width), b - 0.1 * width)
        r = 1.0 - middle
        here, other = r * t[i] + middle * t[j], r * rest[i] + middle * rest[j]
        lost = _pair_loss(kind, table, i, j, middle)
        g_middle = (
            _entropy_term(here) + _entropy_term(other) - beta * lost - r * prices[i] - middle * prices[j]
        )
        if g_middle > value:
            value, s = g_middle, middle
        tangent = _tangent(here, other, delta)
        for column, part in enumerate((a, g_a, d_a, v_a, middle, g_middle, tangent, lost)):
            at[count, column] = part
        for column, part in enumerate((middle, g_middle, tangent, lost, b, g_b, d_b, v_b)):
            at[count + 1, column] = part
        count += 2
    return value, s, above


@njit(nogil=True, cache=True)
def _tangents(a: float, g_a: float, up: float, b: float, g_b: float, down: float) -> tuple[float, float]:
    """The largest value below two lines, through (a, g_a) and (b, g_b) with slopes `up` and `down`; and
    where.

    With slopes that are not known (infinity minus infinity) nothing is: the bound is infinite.
    """
    meet = 0.5 * (a + b)
    if np.isnan(up) or np.isnan(down):
        return np.inf, meet
    if up <= 0.0:
        return g_a, meet
    if down >= 0.0:
        return g_b, meet
    if up == np.inf and down == -np.inf:
        return np.inf, meet
    if up == np.inf:
        return g_b - down * (b - a), meet
    if down == -np.inf:
        return g_a + up * (b - a), meet
    meet = min(max((g_b - g_a + up * a - down * b) / (up - down), a), b)
    return g_a + up * (meet - a), meet


@njit(nogil=True, cache=True, inline="always")
def _tangent(here: float, other: float, delta: float) -> float:
    """The slope, in s, of the entropy of t = here = 1 − other."""
    if here <= 0.0:
        return np.inf
    if other <= 0.0:
        return -np.inf
    return delta * np.log(other / here)  # type: ignore[no-any-return]
