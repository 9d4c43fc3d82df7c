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

from ..problem import FloatArray

TIGHT = 1e-13  # nats between the value found and its bound


@njit(nogil=True, cache=True, inline="always")
def _entropy(a: float, b: float) -> float:
    value = 0.0
    if a > 0.0:
        value -= a * np.log(a)
    if b > 0.0:
        value -= b * np.log(b)
    return value


@njit(nogil=True, cache=True, inline="always")
def _logit(a: float) -> float:
    """h'(a) = log((1−a)/a)"""
    return float(np.log((1.0 - a) / a))


@njit(nogil=True, cache=True)
def price_pairs(
    first: int,
    last: int,
    stride: int,
    t: FloatArray,
    prices: FloatArray,
    beta: float,
    cutoff: float,
    best: FloatArray,
    partner: NDArray[np.intp],
    share: FloatArray,
) -> float:
    """Price the pairs (i, j > i) for i in range(first, last, stride); an upper bound on G over them.

    `t` is sorted and strictly rising. Pairs whose bound is at most `cutoff` are not searched. For each
    letter, `best` receives the largest G of a pair it is in, with `partner` and the partner's `share`.
    """
    n = t.size
    bound = -np.inf
    for i in range(first, last, stride):
        start = t[i] + beta * (1.0 - 2.0 * t[i]) + 2.0 * np.sqrt(beta * (1.0 - beta) * t[i] * (1.0 - t[i]))
        # A hair early: a pair at the border has no room for a maximum anyway.
        partners = np.searchsorted(t, start * (1.0 - 1e-12))
        for j in range(max(partners, i + 1), n):
            delta = t[j] - t[i]
            half = 0.5 * (delta - beta * (1.0 - 2.0 * t[i])) / (delta * (1.0 - beta))
            square = half * half - beta * t[i] * (1.0 - t[i]) / (delta * delta * (1.0 - beta))
            root = np.sqrt(max(square, 0.0))
            low, high = max(half - root, 0.0), min(half + root, 1.0)
            if low >= high:
                continue
            slope = prices[i] - prices[j]
            # At t = 0 or 1 an end of the concave part is an end of the pair, where G' → ±∞.
            at, g_low, v_low = low, np.inf, 0.0
            if low > 0.0:
                at = t[i] + low * delta
                g_low = delta * _logit(at) - beta * _logit(low) + slope
                v_low = _entropy(at, 1.0 - at) - beta * _entropy(low, 1.0 - low) - prices[i] + low * slope
            else:
                low = 1e-300
                at = t[i] + low * delta
                v_low = _entropy(at, 1.0 - at) - prices[i]
                g_low = delta * _logit(at) - beta * _logit(low) + slope if at > 0.0 else np.inf
            g_high, v_high = -np.inf, 0.0
            if high < 1.0:
                at = t[i] + high * delta
                g_high = delta * _logit(at) - beta * _logit(high) + slope if at < 1.0 else -np.inf
                v_high = _entropy(at, 1.0 - at) - beta * _entropy(high, 1.0 - high) - prices[i] + high * slope
            else:
                v_high = _entropy(t[j], 1.0 - t[j]) - prices[j]
            if g_low <= 0.0 or g_high >= 0.0:
                continue
            best_here, s = max(v_low, v_high), low if v_low > v_high else high
            above = np.inf
            for _ in range(100):
                # Below the tangents at both ends. Where t = 0 or 1 one of them can be vertical: bisect.
                middle = 0.5 * (low + high)
                if g_low < np.inf and g_high > -np.inf:
                    meet = (v_high - v_low + g_low * low - g_high * high) / (g_low - g_high)
                    above = v_low + g_low * (min(max(meet, low), high) - low)
                    # The zero of G' by the secant of its end values is inside by construction.
                    middle = low + (high - low) * g_low / (g_low - g_high)
                    middle = min(max(middle, low + 0.1 * (high - low)), high - 0.1 * (high - low))
                elif g_low < np.inf:
                    above = v_low + g_low * (high - low)
                elif g_high > -np.inf:
                    above = v_high - g_high * (high - low)
                if above <= cutoff or above - best_here <= TIGHT:
                    break
                at = t[i] + middle * delta
                value = (
                    _entropy(at, 1.0 - at)
                    - beta * _entropy(middle, 1.0 - middle)
                    - prices[i]
                    + middle * slope
                )
                gradient = delta * _logit(at) - beta * _logit(middle) + slope
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
