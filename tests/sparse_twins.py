"""Slow twins of what works on the nonzeros of a table: the same on the whole table."""

from __future__ import annotations

import numpy as np


def cumulative(table: np.ndarray) -> np.ndarray:
    """The distribution function of each row, zeros included."""
    sums = np.cumsum(table, axis=1)
    return sums / sums[:, -1:]


def draw(table: np.ndarray, rows: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The first symbol whose distribution function exceeds u."""
    cdf = cumulative(table)
    pairs = zip(rows.tolist(), u.tolist(), strict=True)
    return np.array([np.searchsorted(cdf[row], number, side="right") for row, number in pairs], dtype=np.intp)


def merged(table: np.ndarray, tolerance: float) -> np.ndarray:
    """Columns added up that are multiples of each other, each compared with every earlier one."""
    kept: list[np.ndarray] = []
    for column in table.T:
        if not column.any():
            continue
        shape = column / column.max()
        for number, other in enumerate(kept):
            there = other / other.max()
            if np.array_equal(shape > 0, there > 0) and np.all(
                np.abs(shape - there) <= tolerance * np.maximum(shape, there)
            ):
                kept[number] = other + column
                break
        else:
            kept.append(column)
    return np.array(kept).T
