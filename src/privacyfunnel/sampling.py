"""Drawing symbols: random numbers and inverse distribution functions."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidInputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Rows drawn at a time: small enough for the temporaries to stay in the cache.
_CHUNK = 1 << 16


def uniform(n: int, rng: int | np.random.Generator | None) -> FloatArray:
    """n independent numbers, uniform on the multiples of 2⁻⁵³ in [0, 1).

    For None each number comes from the operating system's own bits. A generator seeded from them would
    not do: its state can be reconstructed from enough released symbols, and with it the random
    numbers behind all the others, which undoes the privacy of every row. int and Generator are for results
    that have to be reproduced.
    """
    if rng is None:
        bits = np.frombuffer(os.urandom(8 * n), dtype=np.uint64) >> np.uint64(11)
        return bits.astype(np.float64) * 2.0**-53
    if isinstance(rng, np.random.Generator):
        return rng.random(n)
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng)).random(n)
    raise InvalidInputError(f"rng must be None, a whole number ≥ 0 or a numpy Generator; it is {rng!r}.")


def random_order(n: int, rng: int | np.random.Generator | None) -> IntArray:
    """The numbers 0 … n−1 in random order; for None from the operating system's own bits.

    These are sorted on 64 random bits each. Two of n are equal, and keep their order, with a probability
    below n²/2⁶⁵.
    """
    if rng is None:
        return np.argsort(np.frombuffer(os.urandom(8 * n), dtype=np.uint64), kind="stable")
    return np.argsort(uniform(n, rng), kind="stable")


def cumulative(p_z_given_x: FloatArray) -> FloatArray:
    """The distribution function of each row, exactly 1 from the last possible symbol on.

    Symbol j is drawn for c[j−1] ≤ u < c[j], so equal neighbours mean never. Dividing by the row's own last
    sum makes that one exactly 1: rounding at the upper end cannot draw an impossible symbol, or none.
    """
    sums = np.cumsum(p_z_given_x, axis=1)
    result: FloatArray = sums / sums[:, -1:]
    return result


def draw(cdf: FloatArray, rows: IntArray, u: FloatArray) -> IntArray:
    """The symbol numbers that `u` draws from the rows of `cdf`: how many entries of the row are ≤ u."""
    n_z = cdf.shape[1]
    flat = cdf.ravel()
    result = np.empty(rows.size, dtype=np.intp)
    for start in range(0, rows.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        base, here = rows[part] * n_z, u[part]
        # Bisection of all rows at once; `found` symbols are known to lie at or below u.
        found = np.zeros(base.size, dtype=np.intp)
        step = 1 << max(0, (n_z - 1).bit_length() - 1)
        while step:
            probe = found + step
            # The last entry is 1 > u, so a probe cut off at it never advances.
            ahead = flat[base + np.minimum(probe, n_z) - 1] <= here
            found = np.where(ahead, probe, found)
            step >>= 1
        result[part] = found
    return result
