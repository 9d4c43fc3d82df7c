"""Exact pricing for a binary private attribute: posteriors on pairs of letters.

With t_x = P(y₁|x), a posterior on letters i, j (t_i < t_j) with share s of j has

    G(s) = h(t_i + sΔ) − β h(s) − (1−s) λ_i − s λ_j ,   Δ = t_j − t_i ,   h the binary entropy in nats.

G'' has the sign of Δ²(1−β) s² + (βΔ(1−2t_i) − Δ²) s + β t_i(1−t_i). So G is concave exactly between the two
roots. They are real and positive only when Δ ≥ β(1−2t_i) + 2√(β(1−β) t_i(1−t_i)): with the letters sorted by
t, the partners of i are among the letters from some point on. Outside the roots G is convex and lies below
its ends; a maximum inside is the only zero of G' there, and the tangents at the ends of any interval around
it bound it.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...arrays import FloatArray

TIGHT = 1e-13  # nats between the value found and its bound

# Shares this close to 0 or 1 are not searched. There the posterior is a letter but for SLIVER, and G exceeds
# the letter's by at most h(SLIVER) < 4e-13 nats (`ENDS`), which the caller adds to the letters' own values.
SLIVER = 1e-14
ENDS = 4e-13


@njit(nogil=True, cache=True, inline="always")
def _entropy(a: float, b: float) -> float:
    value = 0.0
    if a > 0.0:
        value -= a * np.log(a)
    if b > 0.0:
        value -= b * np.log(b)
    return value


@njit(nogil=True, cache=True)
def price_pairs(
    first: int,
    last: int,
    stride: int,
    t: FloatArray,
    rest: FloatArray,
    prices: FloatArray,
    beta: float,
    cutoff: float,
    best: FloatArray,
    partner: NDArray[np.intp],
    share: FloatArray,
) -> float:
    """Price the pairs (i, j > i) for i in range(first, last, stride); an upper bound on G over them.

    `t` is sorted; `rest` is 1 − t, given apart because neither can be had from the other near its end. Pairs
    whose bound is at most `cutoff` are not searched. For each letter, `best` receives the largest G of a pair
    it is in, with `partner` and the partner's `share`.
    """
    n = t.size
    bound = -np.inf
    for i in range(first, last, stride):
        start = t[i] + beta * (rest[i] - t[i]) + 2.0 * np.sqrt(beta * (1.0 - beta) * t[i] * rest[i])
        # A hair early: a pair at the border has no room for a maximum anyway.
        partners = np.searchsorted(t, start * (1.0 - 1e-12))
        for j in range(max(partners, i + 1), n):
            delta = t[j] - t[i] if t[i] < 0.5 else rest[i] - rest[j]
            if delta <= 0.0:
                continue
            # The roots without cancellation: the lower one from s, the upper one from 1 − s.
            factor = beta / (delta * delta * (1.0 - beta))
            half = 0.5 * (delta - beta * (rest[i] - t[i])) / (delta * (1.0 - beta))
            other = 0.5 * (delta - beta * (t[j] - rest[j])) / (delta * (1.0 - beta))
            root = np.sqrt(max(half * half - factor * t[i] * rest[i], 0.0))
            if half + root <= 0.0 or other + root <= 0.0:
                continue
            low = max(factor * t[i] * rest[i] / (half + root), SLIVER)
            above_high = max(factor * t[j] * rest[j] / (other + root), SLIVER)
            high = 1.0 - above_high
            if low >= high:
                continue
            slope = prices[i] - prices[j]
            v_low, g_low = _value_and_slope(low, 1.0 - low, i, j, t, rest, prices, beta, delta, slope)
            v_high, g_high = _value_and_slope(high, above_high, i, j, t, rest, prices, beta, delta, slope)
            if g_low <= 0.0 or g_high >= 0.0:
                continue
            best_here, s = max(v_low, v_high), low if v_low > v_high else high
            above = np.inf
            for _ in range(100):
                # Below the tangents at both ends: where they meet.
                meet = (v_high - v_low + g_low * low - g_high * high) / (g_low - g_high)
                above = v_low + g_low * (min(max(meet, low), high) - low)
                if above <= cutoff or above - best_here <= TIGHT:
                    break
                # The zero of G' by the secant of its end values is inside by construction.
                middle = low + (high - low) * g_low / (g_low - g_high)
                middle = min(max(middle, low + 0.1 * (high - low)), high - 0.1 * (high - low))
                value, gradient = _value_and_slope(
                    middle, 1.0 - middle, i, j, t, rest, prices, beta, delta, slope
                )
                if value > best_here:
                    best_here, s = value, middle
                if gradient > 0.0:
                    low, v_low, g_low = middle, value, gradient
                else:
                    high, v_high, g_high = middle, value, gradient
            bound = max(bound, above)
            if best_here > best[i]:
                best[i], partner[i], share[i] = best_here, j, s
            if best_here > best[j]:
                best[j], partner[j], share[j] = best_here, i, 1.0 - s
    return bound


@njit(nogil=True, cache=True, inline="always")
def _value_and_slope(
    s: float,
    r: float,
    i: int,
    j: int,
    t: FloatArray,
    rest: FloatArray,
    prices: FloatArray,
    beta: float,
    delta: float,
    slope: float,
) -> tuple[float, float]:
    """G and G' at the share s of j, r = 1 − s of i."""
    at, other = r * t[i] + s * t[j], r * rest[i] + s * rest[j]
    value = _entropy(at, other) - beta * _entropy(s, r) - r * prices[i] - s * prices[j]
    return value, delta * np.log(other / at) - beta * np.log(r / s) + slope
