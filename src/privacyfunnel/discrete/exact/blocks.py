"""Prices of very many letters made valid: all pairs at once, by pairs of blocks of neighbours.

Letters are sorted by t = P(y₁|x), and a tree halves them into blocks. Over a block A the prices lie above an
affine function of t, λ_x ≥ e + m (t_x − τ) where |t_x − τ| ≤ r. With any c = 1 − c' and d = log(c'/c), Gibbs
gives h(t) ≤ −log c' + t d, so a posterior with share s on a letter of B and 1 − s on one of A has

    G ≤ (1−s) α_A + s α_B − β h(s) ,    α = −log c' + τ d − e + |d − m| r ,

and −β h(s) lies below its chord. So the largest value for s in an interval is at its ends. What is below the
threshold is done; else the interval is halved, then the larger block. At an optimum the slope of the prices
is that of h, so |d − m| is small just where it matters.

A pair of letters that stays above the threshold has its two prices raised by what it is above, which lowers
G by as much, for every share. So one pass ends with prices for which the threshold is proved.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...arrays import FloatArray
from .pairs import pair_entropy, search_pair
from .ratios import HAIR

LEAF = 4  # letters of the smallest blocks
FINEST = 64  # parts of [0, 1] that one pair of blocks is looked at in, at most
# Relative error granted to every bound below: each has fewer than forty roundings of half an ulp, and four
# logarithms that are good to four.
MARGIN = 2e-14
RATIO = 2.0  # of how far shares may move t in one step to how wide the blocks are
STEEPEST = 64.0  # slopes of G at shares and t that are no less than 1e-14 from 0 and 1

IntTable = NDArray[np.int64]


@njit(nogil=True, cache=True)
def build_blocks(t: FloatArray, prices: FloatArray) -> tuple[IntTable, FloatArray]:
    """The tree over sorted letters: (first, end, first child or −1) and (τ, r, m, e, largest |λ|) of each
    block; the second child follows the first, and block 0 is the whole."""
    n = t.size
    most = 4 * n + 1
    parts = np.empty((most, 3), dtype=np.int64)
    shape = np.empty((most, 5))
    parts[0, 0], parts[0, 1] = 0, n
    count, at = 1, 0
    while at < count:
        first, end = parts[at, 0], parts[at, 1]
        middle = 0.5 * (t[first] + t[end - 1])
        radius = 0.5 * (t[end - 1] - t[first]) * (1.0 + MARGIN) + MARGIN * 1e-2
        total, mixed, square = 0.0, 0.0, 0.0
        mean = 0.0
        for x in range(first, end):
            mean += t[x]
            total += prices[x]
        mean, total = mean / (end - first), total / (end - first)
        for x in range(first, end):
            mixed += (t[x] - mean) * (prices[x] - total)
            square += (t[x] - mean) ** 2
        slope = mixed / square if square > 1e-28 else 0.0
        floor, largest = np.inf, 0.0
        for x in range(first, end):
            floor = min(floor, prices[x] - slope * (t[x] - middle))
            largest = max(largest, abs(prices[x]))
        floor -= MARGIN * (largest + abs(slope) * radius)
        shape[at, 0], shape[at, 1], shape[at, 2], shape[at, 3] = middle, radius, slope, floor
        shape[at, 4] = largest
        parts[at, 2] = -1
        if end - first > LEAF:
            # In the middle of t, or of the letters where that leaves next to none on one side.
            cut = first + np.searchsorted(t[first:end], middle)
            if min(cut - first, end - cut) <= (end - first) // 16:
                cut = (first + end) // 2
            parts[at, 2] = count
            parts[count, 0], parts[count, 1] = first, cut
            parts[count + 1, 0], parts[count + 1, 1] = cut, end
            count += 2
        at += 1
    return parts[:count].copy(), shape[:count].copy()


@njit(nogil=True, cache=True)
def open_shares(
    one: FloatArray, other: FloatArray, begin: float, end: float, beta: float, threshold: float
) -> tuple[float, float]:
    """The ends of the shares in [begin, end], of the right block `other`, that are not proved to have G at
    most the threshold; the second before the first where there are none."""
    reach = other[0] + other[1] - one[0] + one[1]  # the largest difference of two t
    # Halving shares is worth it until they move t less than the blocks are wide.
    finest = max((end - begin) / FINEST, min(0.5, RATIO * max(one[1], other[1]) / max(reach, 1e-300)))
    low, high = 2.0, -1.0
    starts, ends = np.empty(2 * FINEST), np.empty(2 * FINEST)
    starts[0], ends[0], count = begin, end, 1
    while count > 0:
        count -= 1
        a, b = starts[count], ends[count]
        s = 0.5 * (a + b)
        # A maximum needs Δ² s(1−s) ≥ β t(1−t), wherever in the blocks it is.
        bend = 0.25 if a <= 0.5 <= b else max(a * (1.0 - a), b * (1.0 - b))
        left = (1.0 - b) * (one[0] - one[1]) + b * (other[0] - other[1])
        right = (1.0 - a) * (one[0] + one[1]) + a * (other[0] + other[1])
        left, right = max(left, 0.0), min(right, 1.0)
        flat = min(left * (1.0 - left), right * (1.0 - right))
        if reach * reach * bend * (1.0 + HAIR) + 1e-15 < beta * flat:
            continue
        c = (1.0 - s) * one[0] + s * other[0]
        rest = (1.0 - s) * (1.0 - one[0]) + s * (1.0 - other[0])
        log_c, log_rest = np.log(max(c, 1e-300)), np.log(max(rest, 1e-300))
        d = log_rest - log_c
        alpha = one[0] * d - one[3] + abs(d - one[2]) * one[1] - log_rest
        gamma = other[0] * d - other[3] + abs(d - other[2]) * other[1] - log_rest
        at_a = (1.0 - a) * alpha + a * gamma - beta * pair_entropy(a, 1.0 - a)
        at_b = (1.0 - b) * alpha + b * gamma - beta * pair_entropy(b, 1.0 - b)
        size = 1.0 - log_c - log_rest + one[4] + other[4] + abs(one[2]) + abs(other[2])
        above = max(at_a, at_b) + MARGIN * size
        if above <= threshold:
            continue
        if b - a > finest and count + 2 <= starts.size:
            starts[count], ends[count] = a, s
            starts[count + 1], ends[count + 1] = s, b
            count += 2
            continue
        low, high = min(low, a), max(high, b)
    return low, high


@njit(nogil=True, cache=True)
def raise_prices(
    t: FloatArray,
    rest: FloatArray,
    prices: FloatArray,
    beta: float,
    threshold: float,
    parts: IntTable,
    shape: FloatArray,
    stack: IntTable,
    shares: FloatArray,
    height: int,
    nodes: int,
    raised: FloatArray,
) -> int:
    """Work on the pairs of blocks on the stack, at most so many `nodes`; how many are left on it.

    `stack` has the two blocks and `shares` the shares of the right one that are open. Where two letters have
    G above the threshold, `raised` receives by how much, for both.
    """
    while height > 0 and nodes > 0:
        nodes -= 1
        height -= 1
        a, b = stack[height, 0], stack[height, 1]
        begin, end = shares[height, 0], shares[height, 1]
        if a == b and parts[a, 2] >= 0:
            child = parts[a, 2]
            for k in range(3):
                stack[height, 0], stack[height, 1] = child + k // 2, child + (k + 1) // 2
                shares[height, 0], shares[height, 1] = 0.0, 1.0
                height += 1
            continue
        if a != b:
            # Letters this close in t never share a posterior: the border is concave in t.
            least = np.inf
            for x in (parts[a, 0], parts[a, 1] - 1):
                border = beta * (rest[x] - t[x]) + 2.0 * np.sqrt(beta * (1.0 - beta) * t[x] * rest[x])
                least = min(least, t[x] + border)
            if t[parts[b, 1] - 1] < least * (1.0 - 1e-12):
                continue
            begin, end = open_shares(shape[a], shape[b], begin, end, beta, threshold)
            if begin > end:
                continue
        if parts[a, 2] < 0 and parts[b, 2] < 0:
            for i in range(parts[a, 0], parts[a, 1]):
                for j in range(max(parts[b, 0], i + 1), parts[b, 1]):
                    _, _, above = search_pair(
                        t[i], rest[i], t[j], rest[j], prices[i], prices[j], beta, threshold
                    )
                    above += MARGIN * (STEEPEST + abs(prices[i]) + abs(prices[j])) - threshold
                    if above > raised[i]:
                        raised[i] = above
                    if above > raised[j]:
                        raised[j] = above
            continue
        wider = parts[b, 2] < 0 or (parts[a, 2] >= 0 and shape[a, 1] >= shape[b, 1])
        child = parts[a, 2] if wider else parts[b, 2]
        for k in range(2):
            stack[height, 0], stack[height, 1] = (child + k, b) if wider else (a, child + k)
            shares[height, 0], shares[height, 1] = begin, end
            height += 1
    return height


@njit(nogil=True, cache=True)
def lifted_prices(
    at: FloatArray,
    rest_at: FloatArray,
    t: FloatArray,
    rest: FloatArray,
    prices: FloatArray,
    beta: float,
    result: FloatArray,
) -> None:
    """Prices for letters `at` beside letters `t`: the least for which neither the letter alone nor a pair
    with one of those has G > 0."""
    for x in range(at.size):
        price = pair_entropy(at[x], rest_at[x])
        for c in range(t.size):
            for _ in range(20):
                if at[x] < t[c]:
                    value, own, _ = search_pair(at[x], rest_at[x], t[c], rest[c], price, prices[c], beta, 0.0)
                    own = 1.0 - own
                else:
                    value, own, _ = search_pair(t[c], rest[c], at[x], rest_at[x], prices[c], price, beta, 0.0)
                if value <= 1e-12 or own < 1e-9:
                    break
                # At this share a higher price lowers G in proportion to the letter's part.
                price += value / own
        result[x] = price
