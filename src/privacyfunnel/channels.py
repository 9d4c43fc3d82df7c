"""Tables P(Z|x) as plain arrays: validation, merging of equivalent symbols, posteriors, repetition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidInputError

FloatArray = NDArray[np.float64]

SUM_TOLERANCE = 1e-9

# Two symbols whose columns agree to this relative accuracy have the same posterior for every purpose:
# merging them changes a mutual information by about its square.
MERGE_TOLERANCE = 1e-12


def as_table(
    values: ArrayLike, name: str, shape: str, error: type[InvalidInputError] = InvalidInputError
) -> FloatArray:
    """A copy of `values` as a table of finite numbers, none negative; `shape` says in words what it is."""
    try:
        table = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise error(f"{name} must be a table of numbers {shape}.") from None
    if table.ndim != 2 or table.size == 0:
        raise error(f"{name} must be a non-empty table {shape}; its shape is {table.shape}.")
    # min() and max() see NaN and infinities without a temporary table.
    if not (table.min() >= 0 and table.max() < np.inf):
        row, column = np.argwhere(~np.isfinite(table) | (table < 0))[0]
        raise error(
            f"{name} must be finite and not negative; entry [{row}, {column}] is {table[row, column]}: "
            "correct it, or pass 0 for what cannot occur."
        )
    return table


def as_channel(
    values: ArrayLike, name: str, letters: str = "xz", error: type[InvalidInputError] = InvalidInputError
) -> FloatArray:
    """A copy of `values` as a table whose rows are distributions: for "xz" it is P(Z|x), (n_x, n_z)."""
    given, drawn = letters[0], letters[1]
    table = as_table(values, name, f"(n_{given}, n_{drawn})", error)
    sums = table.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > SUM_TOLERANCE:
        raise error(
            f"Each row of {name} must sum to 1 (tolerance {SUM_TOLERANCE:g}); row {worst} sums to "
            f"{sums[worst]:.6g}. Pass P({drawn.upper()}|{given}) as rows (axis 0 is the condition)."
        )
    return table


def with_rows_to_one(table: FloatArray) -> FloatArray:
    """A product of valid channels with its row sums kept inside the tolerance.

    Sums that are each off by up to the tolerance multiply up to more than it. Rows that are good
    to rounding stay as they are, to the last bit.
    """
    sums = table.sum(axis=1)
    if np.max(np.abs(sums - 1.0)) <= 1e-12:
        return table
    scaled: FloatArray = table / sums[:, None]
    return scaled


def merge_symbols(table: FloatArray, tolerance: float = MERGE_TOLERANCE) -> FloatArray:
    """The channel without its zero columns and with proportional columns added up.

    Proportional columns have the same posterior P(X|z), so nothing is lost or gained, whatever X
    is drawn from and however often the same x is released. Zeros must agree exactly. Symbols stay in the
    order of their first column.
    """
    table = table[:, table.max(axis=0) > 0]
    shapes = table / table.max(axis=0)
    # Columns that agree entry by entry to a relative ε agree in every positive combination too, so only
    # neighbours in the order of one such number have to be compared.
    keys = np.sqrt(np.arange(2.0, 2.0 + table.shape[0])) @ shapes
    order = np.argsort(keys, kind="stable")
    near = 4 * tolerance + table.shape[0] * np.finfo(np.float64).eps
    breaks = np.flatnonzero(np.diff(keys[order]) > near * keys[order][1:]) + 1
    target = np.arange(table.shape[1])
    for start, stop in pairwise([0, *breaks.tolist(), order.size]):
        if stop - start > 1:
            _join_equal(shapes, np.sort(order[start:stop]), target, tolerance)
    firsts, target = np.unique(target, return_inverse=True)
    if firsts.size == table.shape[1]:
        return table
    merged = np.zeros((table.shape[0], firsts.size))
    np.add.at(merged.T, target, table.T)
    return merged


def _join_equal(
    shapes: FloatArray, columns: NDArray[np.intp], target: NDArray[np.intp], tolerance: float
) -> None:
    """Point each of `columns` at the first one with the same shape, in place."""
    while columns.size > 1:
        first, rest = columns[0], columns[1:]
        here, others = shapes[:, [first]], shapes[:, rest]
        same = np.all(np.abs(others - here) <= tolerance * np.maximum(others, here), axis=0)
        target[rest[same]] = first
        columns = rest[~same]


def posterior(p_x: FloatArray, p_z_given_x: FloatArray) -> FloatArray:
    """P(X|z) as rows (n_z, n_x); a row of zeros for a symbol that is never released.

    Column by column scaling keeps the ratios of probabilities whose products would underflow.
    """
    rows = p_z_given_x.T * (p_x > 0)
    rows = rows / _divisor(rows.max(axis=1, keepdims=True))
    rows = rows * p_x
    rows = rows / _divisor(rows.max(axis=1, keepdims=True))
    result: FloatArray = rows / _divisor(rows.sum(axis=1, keepdims=True))
    return result


def conditional(p_ab: FloatArray) -> FloatArray:
    """P(B|a) as rows (n_a, n_b); a row of zeros for an a of probability 0."""
    rows = p_ab / _divisor(p_ab.max(axis=1, keepdims=True))
    result: FloatArray = rows / _divisor(rows.sum(axis=1, keepdims=True))
    return result


def _divisor(values: FloatArray) -> FloatArray:
    """The values with 1 for 0, to divide rows of zeros by."""
    return np.where(values > 0, values, 1.0)


def repeated(table: FloatArray, k: int) -> FloatArray:
    """The channel (n_x, n_z**k) of k independent uses of a channel, the last use fastest."""
    result = table
    for _ in range(k - 1):
        result = (result[:, :, None] * table[:, None, :]).reshape(table.shape[0], -1)
    return result
