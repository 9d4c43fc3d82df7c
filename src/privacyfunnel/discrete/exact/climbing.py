"""Good posteriors, quickly and without a proof: sampled, raised by steps, and given further letters.

Everything here is about the reduced value G(q) = H(Tq) − β H(q) − λ·q of a posterior q with Tq = P(Y|z).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...arrays import FloatArray

FIRST_STEPS, STEPS = 8, 200  # of a climb: before it is known to be worth more, and in all
PORTIONS = (0.1, 0.25, 0.4)  # of a posterior that a further letter may take at first
WORTH = 1e-9  # nats that a further letter must be worth


def free_bound(channel: FloatArray, prices: FloatArray, beta: float) -> float:
    """(1−β) log Σ_k exp((H(Y|k) − λ_k) / (1−β)) ≥ G(q) for every posterior q, for β < 1; no search needed."""
    positive = np.where(channel > 0.0, channel, 1.0)
    own = -(positive * np.log(positive)).sum(axis=1) - prices
    largest = float(own.max())
    return largest + (1.0 - beta) * float(np.log(np.exp((own - largest) / (1.0 - beta)).sum()))


@njit(nogil=True, cache=True)
def reduced_value(q: FloatArray, t: FloatArray, linear: float, beta: float) -> float:
    """H(t) − β H(q) − linear"""
    value = -linear
    for y in range(t.size):
        if t[y] > 0.0:
            value -= t[y] * np.log(t[y])
    for k in range(q.size):
        if q[k] > 0.0:
            value += beta * q[k] * np.log(q[k])
    return value


@njit(nogil=True, cache=True)
def climb(channel: FloatArray, prices: FloatArray, beta: float, q: FloatArray, n_steps: int) -> float:
    """Raise G from q in place by q ∝ q^{1+β} exp(−Σ_y T_y log t_y − λ), which never lowers it; G at the end.

    `channel` (k, n_y) and `prices` (k,) are those of the face's letters.
    """
    size, n_y = channel.shape
    t = np.empty(n_y)
    log_t = np.empty(n_y)
    exponent = np.empty(size)
    for _ in range(n_steps):
        for y in range(n_y):
            t[y] = 0.0
            for k in range(size):
                t[y] += q[k] * channel[k, y]
            log_t[y] = np.log(t[y]) if t[y] > 0.0 else 0.0
        top = -np.inf
        for k in range(size):
            exponent[k] = -np.inf
            if q[k] > 0.0:
                exponent[k] = (1.0 + beta) * np.log(q[k]) - prices[k]
                for y in range(n_y):
                    exponent[k] -= channel[k, y] * log_t[y]
                top = max(top, exponent[k])
        total = 0.0
        moved = 0.0
        for k in range(size):
            exponent[k] = np.exp(exponent[k] - top)
            total += exponent[k]
        for k in range(size):
            new = exponent[k] / total
            if new < 1e-12:
                new = 0.0
            moved = max(moved, abs(new - q[k]))
            q[k] = new
        if moved < 1e-8:
            break
    total = q.sum()
    for k in range(size):
        q[k] /= total
    for y in range(n_y):
        t[y] = 0.0
        for k in range(size):
            t[y] += q[k] * channel[k, y]
    return reduced_value(q, t, np.dot(q, prices), beta)


@njit(nogil=True, cache=True)
def sample_chains(
    pairs: NDArray[np.int32],
    possible: NDArray[np.bool_],
    channel: FloatArray,
    prices: FloatArray,
    beta: float,
    shares: FloatArray,
    portions: FloatArray,
    letters: NDArray[np.int32],
    portion: FloatArray,
    value: FloatArray,
) -> None:
    """From each pair, with the best of a few shares, a chain of posteriors with one letter more each.

    The next letter is the one that is best with one of the portions.
    Row by row: letters (count, rank), the portion that each of them took, and G with so many letters (−∞
    where there are none left).
    """
    n, n_y = channel.shape
    rank = letters.shape[1]
    t = np.empty(n_y)
    for f in range(pairs.shape[0]):
        i, j = pairs[f]
        value[f] = -np.inf
        portion[f, 0] = 1.0
        letters[f, 0], letters[f, 1] = i, j
        spread, linear = 0.0, prices[i]
        for a in shares:
            g = _mixed_value(channel[i], 0.0, prices[i], channel[j], prices[j], beta, a)
            if g > value[f, 1]:
                value[f, 1], portion[f, 1] = g, a
        for y in range(n_y):
            t[y] = channel[i, y]
        for size in range(1, rank):
            a, x = portion[f, size], letters[f, size]
            spread = (1.0 - a) * spread - a * np.log(a) - (1.0 - a) * np.log(1.0 - a)
            linear = (1.0 - a) * linear + a * prices[x]
            for y in range(n_y):
                t[y] = (1.0 - a) * t[y] + a * channel[x, y]
            if size + 1 == rank:
                break
            best, letter = -np.inf, -1
            for x in range(n):
                good = True
                for k in range(size + 1):
                    if not possible[letters[f, k], x]:
                        good = False
                        break
                if good:
                    g = _mixed_value(
                        t, spread, linear, channel[x], prices[x], beta, portions[f % portions.size]
                    )
                    if g > best:
                        best, letter = g, x
            if letter < 0:
                break
            letters[f, size + 1] = letter
            for a in portions:
                g = _mixed_value(t, spread, linear, channel[letter], prices[letter], beta, a)
                if g > value[f, size + 1]:
                    value[f, size + 1], portion[f, size + 1] = g, a


@njit(nogil=True, cache=True)
def _mixed_value(
    t: FloatArray, spread: float, linear: float, row: FloatArray, price: float, beta: float, a: float
) -> float:
    """G of a posterior, with Tq = t, H(q) = spread and λ·q = linear, after a further letter took a part a."""
    g: float = -beta * ((1.0 - a) * spread - a * np.log(a) - (1.0 - a) * np.log(1.0 - a))
    g -= (1.0 - a) * linear + a * price
    for y in range(t.size):
        now = (1.0 - a) * t[y] + a * row[y]
        if now > 0.0:
            g -= now * np.log(now)
    return g


@njit(nogil=True, cache=True)
def swap_letters(
    letters: NDArray[np.int32],
    shares: FloatArray,
    channel: FloatArray,
    prices: FloatArray,
    other: NDArray[np.int32],
) -> None:
    """For each letter of each row (count, width; −1 where there is none) the other one with which G would be
    largest, shares as they are; −1 where there is none."""
    n, n_y = channel.shape
    without = np.empty(n_y)
    for row in range(letters.shape[0]):
        for k in range(letters.shape[1]):
            other[row, k] = -1
            if letters[row, k] < 0:
                continue
            for y in range(n_y):
                without[y] = 0.0
                for j in range(letters.shape[1]):
                    if j != k and letters[row, j] >= 0:
                        without[y] += shares[row, j] * channel[letters[row, j], y]
            best, share = -np.inf, shares[row, k]
            for x in range(n):
                g = -share * prices[x]
                for y in range(n_y):
                    t = without[y] + share * channel[x, y]
                    if t > 0.0:
                        g -= t * np.log(t)
                if g > best:
                    taken = False
                    for j in range(letters.shape[1]):
                        taken = taken or letters[row, j] == x
                    if not taken:
                        best, other[row, k] = g, x


@njit(nogil=True, cache=True)
def begin(
    letters: NDArray[np.int32],
    shares: FloatArray,
    channel: FloatArray,
    prices: FloatArray,
    beta: float,
    value: FloatArray,
) -> None:
    """A few steps from each row of letters and shares (count, width; letter −1 where there is none), in
    place; value: G after them."""
    for row in range(letters.shape[0]):
        size = 0
        while size < letters.shape[1] and letters[row, size] >= 0:
            size += 1
        chosen = letters[row, :size]
        value[row] = climb(channel[chosen], prices[chosen], beta, shares[row, :size], FIRST_STEPS)


@njit(nogil=True, cache=True)
def grow(
    letters: NDArray[np.int32],
    shares: FloatArray,
    channel: FloatArray,
    prices: FloatArray,
    beta: float,
    rank: int,
    value: FloatArray,
) -> None:
    """From each row of letters and shares, as above, climb, add the letter that raises G most, and so on
    while that pays, in place; value: G at the end."""
    width = letters.shape[1]
    n, n_y = channel.shape
    t = np.empty(n_y)
    for row in range(letters.shape[0]):
        size = 0
        while size < width and letters[row, size] >= 0:
            size += 1
        for _ in range(rank + 1):
            chosen = letters[row, :size].copy()
            q = shares[row, :size].copy()
            value[row] = climb(channel[chosen], prices[chosen], beta, q, STEPS)
            kept, spread, linear = 0, 0.0, 0.0
            for y in range(n_y):
                t[y] = 0.0
            for k in range(size):
                if q[k] > 0.0:
                    x = chosen[k]
                    letters[row, kept], shares[row, kept] = x, q[k]
                    kept += 1
                    spread -= q[k] * np.log(q[k])
                    linear += q[k] * prices[x]
                    for y in range(n_y):
                        t[y] += q[k] * channel[x, y]
            for k in range(kept, width):
                letters[row, k], shares[row, k] = -1, 0.0
            size = kept
            if size >= min(rank, width):
                break
            best, letter, portion = value[row] + WORTH, -1, 0.0
            for x in range(n):
                for a in PORTIONS:
                    g = _mixed_value(t, spread, linear, channel[x], prices[x], beta, a)
                    if g > best:
                        best, letter, portion = g, x, a
            if letter < 0:
                break
            at = size
            for k in range(size):
                shares[row, k] *= 1.0 - portion
                if letters[row, k] == letter:
                    at = k
            if at == size:
                letters[row, size], shares[row, size] = letter, 0.0
                size += 1
            shares[row, at] += portion
