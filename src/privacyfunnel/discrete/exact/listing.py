"""Which faces of the simplex can hold a maximum: sets of letters that pairwise get on (see faces.py)."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...arrays import FloatArray

HAIR = 1e-9  # relative; second-order conditions are checked with this much to spare


@njit(nogil=True, cache=True)
def compatible_pairs(channel: FloatArray, beta: float) -> NDArray[np.bool_]:
    """Which pairs can both be in the support of a maximiser of G, whatever the prices.

    max over a of a(1−a) Σ_y (T_yi − T_yj)² / (a T_yi + (1−a) T_yj) ≥ β. Each term is concave in a.
    """
    n, n_y = channel.shape
    allowed = np.zeros((n, n), dtype=np.bool_)
    for i in range(n):
        for j in range(i + 1, n):
            low, high = 0.0, 1.0
            for _ in range(60):
                a = low + (high - low) / 3.0
                b = high - (high - low) / 3.0
                value_a, value_b = 0.0, 0.0
                for y in range(n_y):
                    square = (channel[i, y] - channel[j, y]) ** 2
                    if square > 0.0:
                        value_a += a * (1.0 - a) * square / (a * channel[i, y] + (1.0 - a) * channel[j, y])
                        value_b += b * (1.0 - b) * square / (b * channel[i, y] + (1.0 - b) * channel[j, y])
                if max(value_a, value_b) * (1.0 + HAIR) >= beta:
                    allowed[i, j] = allowed[j, i] = True
                    break
                if value_a < value_b:
                    low = a
                else:
                    high = b
    return allowed


@njit(nogil=True, cache=True)
def next_faces(
    faces: NDArray[np.int32], allowed: NDArray[np.bool_], most: int
) -> tuple[NDArray[np.int32], int]:
    """The faces with one more letter whose pairs are all allowed, each once, letters rising; and how many
    there are. More than `most` are counted but not listed."""
    count, size = faces.shape
    n = allowed.shape[0]
    total = 0
    result = np.empty((0, size + 1), dtype=np.int32)
    for fill in range(2):  # count, then write
        if fill == 1:
            if total > most:
                return result, total
            result = np.empty((total, size + 1), dtype=np.int32)
        total = 0
        for f in range(count):
            for new in range(faces[f, size - 1] + 1, n):
                good = True
                for k in range(size):
                    if not allowed[faces[f, k], new]:
                        good = False
                        break
                if good:
                    if fill == 1:
                        for k in range(size):
                            result[total, k] = faces[f, k]
                        result[total, size] = new
                    total += 1
    return result, total
