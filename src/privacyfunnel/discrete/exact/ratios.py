"""How the shares of two letters in a maximiser of G can relate (docs/exact.md, section 7).

If i and j are both in the support of a maximiser, with shares in the proportion a : 1 − a, then

    β ≤ φ(a) = a(1−a) Σ_y (T_yi − T_yj)² / (a T_yi + (1−a) T_yj) ,

whatever the prices and the other letters are. φ is concave and not negative, so the proportions that pass
are an interval. Most pairs have a narrow one, and many have none.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ...arrays import FloatArray

HAIR = 1e-9  # relative; second-order conditions are checked with this much to spare
NEVER = 2.0  # a ratio that no letter of a smaller share has
STEPS, HALVINGS = 60, 24  # of the search for the top of φ, and for the two ends of the interval


@njit(nogil=True, cache=True)
def _phi(one: FloatArray, other: FloatArray, a: float) -> float:
    if a <= 0.0 or a >= 1.0:  # an end of the search, by rounding: nothing is outside it
        return 0.0
    total = 0.0
    for y in range(one.size):
        square = (one[y] - other[y]) ** 2
        if square > 0.0:
            total += square / (a * one[y] + (1.0 - a) * other[y])
    return a * (1.0 - a) * total


@njit(nogil=True, cache=True)
def _end(one: FloatArray, other: FloatArray, beta: float, top: float, height: float, outside: float) -> float:
    """Where the interval around `top` ends, between there and `outside`; rather too far out than too far in.

    A place counts as outside if φ is below β there and clearly below φ(top): then φ, which is concave, falls
    from there on.
    """
    inside = top
    for _ in range(HALVINGS):
        a = 0.5 * (inside + outside)
        value = _phi(one, other, a)
        if value * (1.0 + HAIR) < beta and value * (1.0 + 1e-3 * HAIR) < height:
            outside = a
        else:
            inside = a
    return outside


@njit(nogil=True, cache=True)
def share_ratios(channel: FloatArray, beta: float) -> tuple[FloatArray, FloatArray]:
    """least and most (n, n): the share of j over that of i in a maximiser where it is not larger is between
    them; NEVER and −1 where they are never in a support together like that."""
    n = channel.shape[0]
    least, most = np.full((n, n), NEVER), np.full((n, n), -1.0)
    for i in range(n):
        for j in range(i + 1, n):
            low, high = 0.0, 1.0
            top, height = 0.5, -1.0
            for _ in range(STEPS):
                a = low + (high - low) / 3.0
                b = high - (high - low) / 3.0
                value_a, value_b = _phi(channel[i], channel[j], a), _phi(channel[i], channel[j], b)
                if value_a > height:
                    top, height = a, value_a
                if value_b > height:
                    top, height = b, value_b
                if height * (1.0 + HAIR) >= beta:
                    break
                if value_a < value_b:
                    low = a
                else:
                    high = b
            if height * (1.0 + HAIR) < beta:
                continue
            first = _end(channel[i], channel[j], beta, top, height, 0.0)
            last = _end(channel[i], channel[j], beta, top, height, 1.0)
            # i has the larger share for a ≥ ½, j for a ≤ ½.
            if last >= 0.5:
                least[i, j] = (1.0 - last) / last * (1.0 - HAIR)
                most[i, j] = min(1.0, (1.0 - max(first, 0.5)) / max(first, 0.5) * (1.0 + HAIR))
            if first <= 0.5:
                least[j, i] = first / (1.0 - first) * (1.0 - HAIR)
                most[j, i] = min(1.0, min(last, 0.5) / (1.0 - min(last, 0.5)) * (1.0 + HAIR))
    return least, most
