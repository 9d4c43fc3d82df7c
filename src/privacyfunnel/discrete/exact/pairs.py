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
def pair_entropy(a: float, b: float) -> float:
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
            best_here, s, above = search_pair(
                t[i], rest[i], t[j], rest[j], prices[i], prices[j], beta, cutoff
            )
            bound = max(bound, above)
            if best_here > best[i]:
                best[i], partner[i], share[i] = best_here, j, s
            if best_here > best[j]:
                best[j], partner[j], share[j] = best_here, i, 1.0 - s
    return bound


@njit(nogil=True, cache=True)
def search_pair(
    t_i: float,
    rest_i: float,
    t_j: float,
    rest_j: float,
    price_i: float,
    price_j: float,
    beta: float,
    cutoff: float,
) -> tuple[float, float, float]:
    """The largest G inside the pair that was found, the share of j there, and a bound on all of it.

    All −∞ where G has no maximum inside. Once the bound is at most `cutoff` the search ends.
    """
    none = (-np.inf, 0.0, -np.inf)
    delta = t_j - t_i if t_i < 0.5 else rest_i - rest_j
    if delta <= 0.0:
        return none
    # The roots without cancellation: the lower one from s, the upper one from 1 − s.
    factor = beta / (delta * delta * (1.0 - beta))
    half = 0.5 * (delta - beta * (rest_i - t_i)) / (delta * (1.0 - beta))
    other = 0.5 * (delta - beta * (t_j - rest_j)) / (delta * (1.0 - beta))
    root = np.sqrt(max(half * half - factor * t_i * rest_i, 0.0))
    if half + root <= 0.0 or other + root <= 0.0:
        return none
    low = max(factor * t_i * rest_i / (half + root), SLIVER)
    above_high = max(factor * t_j * rest_j / (other + root), SLIVER)
    high = 1.0 - above_high
    if low >= high:
        return none
    letters = t_i, rest_i, t_j, rest_j, price_i, price_j, beta, delta
    v_low, g_low = _value_and_slope(low, 1.0 - low, *letters)
    v_high, g_high = _value_and_slope(high, above_high, *letters)
    if g_low <= 0.0 or g_high >= 0.0:
        return none
    best, s = max(v_low, v_high), low if v_low > v_high else high
    above = np.inf
    for _ in range(100):
        # Below the tangents at both ends: where they meet.
        meet = (v_high - v_low + g_low * low - g_high * high) / (g_low - g_high)
        above = v_low + g_low * (min(max(meet, low), high) - low)
        if above <= cutoff or above - best <= TIGHT:
            break
        # The zero of G' by the secant of its end values is inside by construction.
        middle = low + (high - low) * g_low / (g_low - g_high)
        middle = min(max(middle, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        value, gradient = _value_and_slope(middle, 1.0 - middle, *letters)
        if value > best:
            best, s = value, middle
        if gradient > 0.0:
            low, v_low, g_low = middle, value, gradient
        else:
            high, v_high, g_high = middle, value, gradient
    return best, s, above


@njit(nogil=True, cache=True)
def _value_and_slope(
    s: float,
    r: float,
    t_i: float,
    rest_i: float,
    t_j: float,
    rest_j: float,
    price_i: float,
    price_j: float,
    beta: float,
    delta: float,
) -> tuple[float, float]:
    """G and G' at the share s of j, r = 1 − s of i."""
    at, other = r * t_i + s * t_j, r * rest_i + s * rest_j
    value = pair_entropy(at, other) - beta * pair_entropy(s, r) - r * price_i - s * price_j
    return value, delta * np.log(other / at) - beta * np.log(r / s) + (price_i - price_j)
